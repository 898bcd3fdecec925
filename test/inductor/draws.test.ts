// Graphs that call operators that draw: each run draws anew, as the graph itself does, and compiling draws nothing. (What compile captures draws by inputs of its own.)
import { expect, test } from 'vitest'
import { memoryStore } from '../../scripts/fuzz/memoryStore.mjs'
import { torch } from '../../src/index.ts'
import type { Tensor } from '../../src/index.ts'
import { makeFx } from '../../src/entries/aot.ts'
import { compileFx } from '../../src/inductor/index.ts'
import { setVerification } from '../../src/pipeline/index.ts'
import { setResultStore } from '../../src/protocol/index.ts'

const { functional: F } = torch.nn

const programs: Readonly<Record<string, (x: Tensor) => unknown>> = {
  'one draw': (x) => torch.rand([3]).add(x),
  'several draws': (x) => [
    torch
      .randn([3])
      .mul(torch.rand([3]))
      .add(x),
    torch.randint(0, 100, [5]),
  ],
  dropout: (x) => F.dropout(F.dropout(x.repeat(8), 0.5), 0.25),
  'draws by parameters': (x) => [torch.normal(x, x), torch.bernoulli(x.mul(0.5)), torch.poisson(x)],
  permutations: () => torch.randperm(9),
  'without replacement': (x) => torch.multinomial(x, 2),
  'no draw': (x) => x.add(1),
}

const listsOf = (results: unknown): unknown => (Array.isArray(results) ? results : [results]).map((result: Tensor) => result.toArray())

test.each(Object.entries(programs))('%s: two runs have the numbers of two runs of the graph', (_, f) => {
  const x = torch.ones([3])
  const gm = makeFx(f)(x)
  const twice = (run: (x: Tensor) => unknown): readonly unknown[] => [listsOf(run(x)), listsOf(run(x))]
  torch.manualSeed(5)
  const expected = twice((value) => gm(value))
  const verified = setVerification(false)
  const { store, counts } = memoryStore()
  setResultStore(store)
  for (const _ of ['made', 'found']) {
    torch.manualSeed(5)
    const compiled = compileFx(gm, [x])
    expect(twice((value) => compiled(value))).toEqual(expected)
  }
  setResultStore(null)
  setVerification(verified)
  expect(counts.found).toBe(1)
})
