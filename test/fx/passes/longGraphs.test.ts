// Every pass on a graph of many nodes with little stack left: none recurses over the nodes, and what it makes is well formed. A third of the passes each day. bench/passes.mjs measures
// how the time grows.
import { expect, it } from 'vitest'
import { GraphModule } from 'tensorfx/fx'
import { cases } from '../../../bench/passes.mjs'
import { third } from '../../helpers/rotation.ts'

const CALLS = 3000

let entered = 0

function atDepth<T>(depth: number, fn: () => T): T {
  entered++
  return depth === 0 ? fn() : atDepth(depth - 1, fn)
}

/** Runs `fn` with a quarter of the stack left. */
function withLittleStack<T>(fn: () => T): T {
  entered = 0
  expect(() => atDepth(Infinity, () => null)).toThrow(RangeError)
  return atDepth(Math.floor(entered * 0.75), fn)
}

it('a function that recursed over the nodes would run out of stack here', () => {
  const count = (n: number, text: string): string => (n === 0 ? text : count(n - 1, `${text}${n % 2}`))
  expect(count(CALLS, '')).toHaveLength(CALLS)
  expect(() => withLittleStack(() => count(CALLS, ''))).toThrow(RangeError)
})

it.each(third(cases))('%s', { timeout: 60_000 }, (_, make, run) => {
  const gm = make(CALLS)
  // What is compiled at the first call needs stack too.
  run(make(100))
  const made: unknown = withLittleStack(() => run(gm))
  for (const result of [gm, made]) if (result instanceof GraphModule) expect(() => result.graph.lint()).not.toThrow()
})
