// Every pair of options of FullyShardedDataParallel with every policy and both layouts on two to four ranks: weights, optimizer states and what was saved equal one process. One
// world a day, since what is new here, options together, does not depend on how ranks talk to each other.
// TENSORFX_FSDP_SEED=2 draws other combinations.
import { describe, expect, test } from 'vitest'
import { SEVERAL_NODES, describeWorld } from './worlds.ts'
import type { World } from './worlds.ts'
import { pairwise } from './scenarios/pairwise.mjs'
import { turn } from '../helpers/rotation.ts'

interface Drawn {
  readonly names: Readonly<Record<string, string>>
  readonly wrong: readonly string[]
}

const suite = ({ results }: World): void =>
  void test('train as one process does, synchronized at the start or not (difference: sync-on-cpu)', () => {
    const ranks = results<{ readonly combinations: readonly Drawn[] }>('fsdpOptions')
    for (const { combinations } of ranks) {
      expect(combinations.length).toBeGreaterThan(20)
      expect(
        combinations.filter(({ wrong }) => wrong.length > 0).map(({ names, wrong }) => [Object.values(names).join(' '), wrong.slice(0, 3)]),
      ).toEqual([])
    }
  })

for (const [kind, size, env] of turn([
  ['threads', 2, {}],
  ['mpi', 3, {}],
  ['threads', 4, {}],
  ['mpi', 2, SEVERAL_NODES],
  ['threads', 3, {}],
  ['mpi', 2, {}],
] as const))
  describeWorld(kind, size, [suite], ['fsdpOptions'], env)

describe('the combinations', () => {
  test.each([1, 2, 3])('of seed %d hold every pair of values', (seed) => {
    const factors = { a: { x: 1, y: 2, z: 3 }, b: { x: 1, y: 2 }, c: { p: 0, q: 1, r: 2, s: 3 } }
    const rows = pairwise(factors, seed)
    for (const [one, ones] of Object.entries(factors))
      for (const [other, others] of Object.entries(factors))
        for (const a of Object.keys(ones))
          for (const b of Object.keys(others))
            expect(one === other || rows.some(({ names }) => names[one] === a && names[other] === b), `${one}=${a} ${other}=${b}`).toBe(true)
    expect(rows.length).toBeLessThan(20)
  })
})
