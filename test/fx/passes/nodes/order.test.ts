// The one sort of the passes: for any needs, each thing comes after those that it needs, and the place where the ready ones wait decides which is next.
import { describe, expect, it } from 'vitest'
import * as fc from 'fast-check'
import { Graph } from 'tensorfx/fx'
import { Dependencies, FirstReady, LastReady, NodeHeap, sortByNeed } from '../../../../src/fx/passes/nodes/order.ts'

const size = 8
const index = fc.nat({ max: size - 1 })
const needs = fc.array(fc.tuple(index, index), { maxLength: 16 })
const ways = { first: () => new FirstReady<number>(), last: () => new LastReady<number>() }

/** The things that a thing needs, directly or not. */
function allNeeds(edges: readonly (readonly [number, number])[], from: number): ReadonlySet<number> {
  const found = new Set<number>()
  const waiting = [from]
  for (const item of waiting)
    for (const [user, needed] of edges)
      if (user === item && needed !== item && !found.has(needed)) {
        found.add(needed)
        waiting.push(needed)
      }
  return found
}

describe.each(Object.entries(ways))('of several that are ready, the %s comes', (name, make) => {
  it('after what it needs; what needs a cycle has no place', () => {
    fc.assert(
      fc.property(needs, (edges) => {
        const things = new Dependencies(Array.from({ length: size }, (_, i) => i))
        for (const [user, needed] of edges) things.require(user, needed)
        const { order, cyclic } = things.order(make())
        expect([...order, ...cyclic].toSorted((a, b) => a - b)).toEqual(Array.from({ length: size }, (_, i) => i))
        const inCycle = (item: number): boolean => allNeeds(edges, item).has(item)
        for (let item = 0; item < size; item++) {
          const all = allNeeds(edges, item)
          expect(cyclic.includes(item)).toBe(inCycle(item) || [...all].some(inCycle))
          if (order.includes(item)) for (const needed of all) expect(order.indexOf(needed)).toBeLessThan(order.indexOf(item))
        }
      }),
    )
  })

  it('as a simple sort says that looks for the ready ones each time', () => {
    fc.assert(
      fc.property(needs, (edges) => {
        const things = new Dependencies(Array.from({ length: size }, (_, i) => i))
        for (const [user, needed] of edges) things.require(user, needed)
        const ready: number[] = []
        const done: number[] = []
        const known = new Set<number>()
        const look = (candidates: readonly number[]): void => {
          for (const item of candidates)
            if (!known.has(item) && edges.every(([user, needed]) => user !== item || needed === item || done.includes(needed))) {
              known.add(item)
              ready.push(item)
            }
        }
        look(Array.from({ length: size }, (_, i) => i))
        for (;;) {
          const item = name === 'first' ? ready.shift() : ready.pop()
          if (item === undefined) break
          done.push(item)
          look(edges.filter(([, needed]) => needed === item).map(([user]) => user))
        }
        expect(things.order(make()).order).toEqual(done)
      }),
    )
  })
})

it('users that are not sorted do not count, and several needs of one thing are met at once', () => {
  const users = new Map([
    ['a', ['b', 'b', 'elsewhere']],
    ['b', ['a2']],
  ])
  const { order, cyclic } = sortByNeed(['b', 'a', 'a2'], (item) => users.get(item) ?? [], new FirstReady())
  expect([order, cyclic]).toEqual([['a', 'b', 'a2'], []])
})

it('a heap of nodes gives them by position', () => {
  const positions = fc.array(fc.nat({ max: 50 }), { maxLength: 40 })
  fc.assert(
    fc.property(positions, (list) => {
      const heap = new NodeHeap()
      for (const position of list) {
        const node = new Graph().placeholder('x')
        node.position = position
        heap.add(node)
      }
      const taken: number[] = []
      for (let node = heap.take(); node !== undefined; node = heap.take()) taken.push(node.position)
      expect(taken).toEqual(list.toSorted((a, b) => a - b))
    }),
  )
})
