// PyTorch's own databases of operators, modules and refused inputs judge tensorfx, eager and compiled. The suite takes a tenth of the cases, another one each day; `npm run test:opdb` takes all
// of them and prints how they went. What fails is listed in opdb/known.json, which only shrinks: a case in it that has come to agree fails the test, too.
//
// TENSORFX_OPDB=all: all cases, with a report. TENSORFX_OPDB_NAMES='softmax|linalg': those that match.
// TENSORFX_UPDATE_OPDB=1: takes what agrees off the list.
import { describe, expect, it } from 'vitest'
import { reasonOf } from './opdb/reasons.ts'
import { allCases, expected, readKnown, report, writeKnown } from './opdb/suite.ts'
import type { Case, Judged } from './opdb/suite.ts'
import { isChosen } from '../helpers/rotation.ts'

const { TENSORFX_OPDB: which, TENSORFX_OPDB_NAMES: names, TENSORFX_UPDATE_OPDB: update } = process.env
/** Compilation takes time: outside the command, every third of the tenth. */
const all = allCases()
const inCompiled = (cases: readonly Case[]): readonly Case[] => (which === 'all' || names !== undefined ? cases : cases.filter((_, i) => i % 3 === 0))
const chosen = all.filter((one) => (names === undefined ? which === 'all' || isChosen(one.key) : new RegExp(names).test(one.key)))
const known = readKnown()

describe.each([
  ['eager', false, chosen],
  ['compiled', true, inCompiled(chosen)],
] as const)('%s', (how, compiled, cases) => {
  it(`each of ${cases.length} calls ends as it is known to`, () => {
    const judged: readonly Judged[] = cases.map((one) => ({ one, verdict: one.judge(compiled) }))
    if (which !== undefined || names !== undefined) console.log(report(judged, how))
    const changed = judged.filter(({ one, verdict }) => verdict.kind !== expected(known, one))
    const worse = changed.filter(({ one, verdict }) => verdict.kind !== 'agree' && expected(known, one) !== 'missing')
    expect(worse.map(({ one, verdict }) => `${verdict.kind} ${one.database} ${one.key}: ${verdict.why}`)).toEqual([])
    if (update === '1' && which === 'all') writeKnown(judged)
    else
      expect(
        changed.map(
          ({ one }) =>
            `${one.database} ${one.key} is not ${expected(known, one)} any more: TENSORFX_UPDATE_OPDB=1 npm run test:opdb takes it off opdb/known.json`,
        ),
      ).toEqual([])
  }, 1_200_000)
})

it('the list of failures names calls that there are', () => {
  const there = new Set(all.flatMap(({ database, name, key }) => [`${database} ${key}`, `${database} ${name}`]))
  expect([...known.keys()].filter((key) => !there.has(key))).toEqual([])
})

it('what differs for a reason is a call that there is (difference: numbers-for-tensors) (difference: own-triangle) (difference: outside-the-window) (difference: channels-second)', () => {
  const there = new Set(all.map(({ database, key }) => `${database} ${key}`))
  expect([...reasonOf.keys()].filter((key) => !there.has(key))).toEqual([])
  // Each of them differs: the cases above expect it, and these are judged whatever tenth is drawn.
  const differing = all.filter(({ database, key }) => reasonOf.has(`${database} ${key}`))
  expect(differing.filter((one) => one.judge(false).kind !== expected(known, one)).map(({ key }) => key)).toEqual([])
})
