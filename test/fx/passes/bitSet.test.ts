// Sets of small numbers as bits, against Set.
import { describe, expect, it } from 'vitest'
import * as fc from 'fast-check'
import { BitSet } from '../../../src/fx/passes/bitSet.ts'

const numbers = fc.array(fc.nat(200))
const bits = (list: readonly number[]): BitSet => {
  const set = new BitSet()
  for (const number of list) set.add(number)
  return set
}
const all = Array.from({ length: 260 }, (_, i) => i)
const members = (set: BitSet): number[] => all.filter((number) => set.has(number))
const sorted = (list: Iterable<number>): number[] => [...new Set(list)].sort((a, b) => a - b)

describe('a set of bits', () => {
  it('has what was added and not deleted, and what another set had', () => {
    fc.assert(
      fc.property(numbers, numbers, numbers, (added, deleted, more) => {
        const set = bits(added)
        for (const number of deleted) set.delete(number)
        const rest = added.filter((number) => !deleted.includes(number))
        expect(members(set)).toEqual(sorted(rest))
        const copy = set.copy()
        copy.addAll(bits(more))
        expect(members(copy)).toEqual(sorted([...rest, ...more]))
        expect(members(set)).toEqual(sorted(rest))
      }),
    )
  })

  it('has no negative numbers', () => expect(bits([31, 63]).has(-1)).toBe(false))

  it('says whether two sets together have all of it', () => {
    fc.assert(
      fc.property(numbers, numbers, numbers, (set, direct, beyond) => {
        const both = { direct: bits(direct), beyond: bits(beyond) }
        expect(bits(set).isWithin(both)).toBe(set.every((number) => direct.includes(number) || beyond.includes(number)))
        expect(bits([...direct, ...beyond]).isWithin(both)).toBe(true)
      }),
    )
  })

  it('gives the next number that another set has not', () => {
    fc.assert(
      fc.property(numbers, numbers, fc.nat(220), (set, excluded, from) => {
        const expected = sorted(set).find((number) => number >= from && !excluded.includes(number)) ?? -1
        expect(bits(set).nextOutside(bits(excluded), from)).toBe(expected)
      }),
    )
  })
})
