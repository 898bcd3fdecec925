// Backwards from several results of one function, one after the other: each frees the part of the tape that it walks, and one that meets a freed part is refused, as in eager mode.
import { describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { aotFunction } from 'tensorfx/aot'
import { compileFx } from 'tensorfx/inductor'
import { interpreted } from './asInEager.ts'

/** Functions of two tensors, with three results each. */
const functions: Readonly<Record<string, (x: Tensor, y: Tensor) => readonly Tensor[]>> = {
  'with nothing in common': (x, y) => [x.sin(), y.cos(), x.exp()],
  'of which two share an operator': (x, y) => {
    const both = x.mul(y)
    return [both.sin(), both.cos(), y.exp()]
  },
  'of which one is computed from another': (x, y) => {
    const first = x.sin()
    return [first, first.mul(y), y.cos()]
  },
  'of which one is a view of another': (x, y) => {
    const first = x.sin()
    return [first, first.select(0, 0), y.cos()]
  },
  'that all lead to one': (x, y) => {
    const sum = x.add(y)
    return [sum.sin(), sum.cos(), sum.exp()]
  },
  'of which one is an argument': (x, y) => [x, x.sin(), y.cos()],
  'that two operators with several results give': (x, y) => {
    const [a, b] = x.chunk(2)
    return [a ?? x, (b ?? x).mul(2), y.cos()]
  },
}

/** Which results are walked, in which order, and whether the first walk keeps the graph. */
const orders = [0, 1, 2].flatMap((first) =>
  [0, 1, 2].flatMap((second) => [false, true].map((retainGraph) => ({ walks: [first, second, 3 - first], retainGraph }))),
)

function outcomes(f: (x: Tensor, y: Tensor) => readonly Tensor[], { walks, retainGraph }: (typeof orders)[number]): readonly unknown[] {
  const leaves = [torch.tensor([0.5, 1, 1.5, 2]).requiresGrad_(), torch.tensor([3, 2, 1, 0.5]).requiresGrad_()] as const
  const results = f(leaves[0].mul(1), leaves[1].mul(1))
  return walks.map((i, step) => {
    const result = results[i]
    if (result === undefined) return null
    try {
      result.backward(torch.onesLike(result), { retainGraph: step === 0 && retainGraph })
    } catch (error) {
      return error instanceof Error ? error.constructor.name : error
    }
    return leaves.map(({ grad }) => grad?.toArray() ?? null)
  })
}

describe.each(Object.keys(functions))('results %s', (name) => {
  const f = functions[name]
  test.each([
    ['interpreted graphs', interpreted],
    ['kernels', compileFx],
  ])('as %s are walked as in eager mode', (_, fwCompiler) => {
    if (f === undefined) throw new Error(name)
    const compiled = aotFunction(f, { fwCompiler })
    for (const order of orders) expect(outcomes(compiled, order), JSON.stringify(order)).toEqual(outcomes(f, order))
  })
})
