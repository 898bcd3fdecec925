// The plan of mutation testing: which tests run for a mutant, and in which order.
import { expect, test } from 'vitest'
import { planShared, planTests } from '../../scripts/mutate/plan.mjs'

const coverage = {
  fixed: { 7: 2 },
  tests: [
    { id: 'slow', file: 'test/ops/a.test.ts', ms: 9000, hits: { 1: 5 } },
    { id: 'other', file: 'test/fx/b.test.ts', ms: 10, hits: { 1: 1, 7: 1 } },
    { id: 'own', file: 'test/nn/c.test.ts', ms: 500, hits: { 1: 3 } },
    { id: 'blind', file: 'test/nn/c.test.ts', ms: 1, hits: {} },
  ],
}
const plan = (id: string, budget: number): ReturnType<typeof planTests> => planTests({ id }, coverage, 'src/nn/linear.ts', budget)

test('tests that reach the mutant run, the room’s own first, then the fastest', () => {
  expect(Object.entries(plan('1', 60).specs)).toEqual([
    ['test/nn/c.test.ts', ['own']],
    ['test/fx/b.test.ts', ['other']],
    ['test/ops/a.test.ts', ['slow']],
  ])
  // 100 times the hits of the unchanged code, and some for code that was not hit at all.
  expect(plan('1', 60).hitLimit).toBe(1000)
})

test('tests beyond the budget are left out', () => {
  expect(plan('1', 1)).toMatchObject({ ms: 510, specs: { 'test/nn/c.test.ts': ['own'], 'test/fx/b.test.ts': ['other'] } })
})

test('code that runs while modules load concerns all tests of the room', () => {
  expect(Object.values(plan('7', 60).specs).flat()).toEqual(['blind', 'own', 'other'])
})

test('a mutant that no test reaches has no plan', () => {
  expect(plan('9', 60).specs).toEqual({})
})

test('in shared processes only tests that reach the mutant run, at most 60 and for at most 5 seconds', () => {
  expect(Object.entries(planShared({ id: '7' }, coverage, 'src/nn/linear.ts').specs)).toEqual([['test/fx/b.test.ts', ['other']]])
  expect(Object.values(planShared({ id: '1' }, coverage, 'src/nn/linear.ts').specs).flat()).toEqual(['own', 'other'])
  const many = Array.from({ length: 100 }, (_, i) => ({ id: String(i), file: 'test/nn/c.test.ts', ms: i, hits: { 1: 1 } }))
  expect(Object.values(planShared({ id: '1' }, { fixed: {}, tests: many }, 'src/nn/linear.ts').specs).flat()).toHaveLength(60)
})
