// What a backward outside of the function reads: what a kept tape has saved, and which writes in between are errors.
import { describe, expect, it } from 'vitest'
import { compile, noGrad, torch } from 'tensorfx'
import type { FunctionContext, Tensor } from 'tensorfx'
import { agree, attempt, times } from '../against.ts'

const gradOf = (w: Tensor): Tensor | null => w.grad
const leaf = (...values: number[]): Tensor => torch.tensor(values).requiresGrad_()

/** A custom Function, whose own backward runs at every call: the tape before it is kept. */
class Same extends torch.autograd.Function {
  static override forward(_ctx: FunctionContext, x: Tensor): Tensor {
    return x.mul(1)
  }
  static override backward(_ctx: FunctionContext, g: Tensor): Tensor {
    return g
  }
}

describe('a tape that is kept has saved', () => {
  /** The values that the graph of a function returns for the tape, all of them large. */
  const savedBy = (fn: (w: Tensor, x: Tensor, k: number) => Tensor): readonly string[] => {
    const [w, x] = [torch.ones([4, 20]).requiresGrad_(), torch.ones([4, 20])]
    const f = compile((k: number) => Same.apply(fn(w, x, k)).sum(), { backend: 'eager' })
    for (const k of [2, 3]) {
      w.grad = null
      f(k).backward()
      const gradient = gradOf(w)
      w.grad = null
      fn(w, x, k).sum().backward()
      expect(gradient?.toArray()).toEqual(gradOf(w)?.toArray())
    }
    const names =
      f
        .graphs()
        .at(-1)
        ?.graph.outputNode()
        .allInputNodes.map((node) => node.name) ?? []
    return names.filter((name) => name !== 'sum_1')
  }

  it.each<[string, (w: Tensor, x: Tensor, k: number) => Tensor, readonly string[]]>([
    ['nothing for sums and products with numbers', (w, x) => w.add(x).mul(3).neg(), []],
    ['the factors of a product', (w, x) => w.neg().mul(x.exp()), ['neg', 'exp']],
    ['the result of an exponential', (w) => w.neg().exp().add(1), ['exp']],
    ['no tensors of a list that is put together', (w, x) => torch.cat([w.neg(), x.exp(), w.add(2)]).mul(2), []],
    ['matrices that are multiplied', (w, x) => w.neg().t().clone().matmul(x.exp()), ['clone', 'exp']],
    ['the place of a maximum, not the maximum', (w) => (w.neg().max(0)[0] ?? w).mul(2), ['argmax']],
  ])('%s', (_what, fn, expected) => {
    expect(savedBy(fn)).toEqual(expected)
  })
})

describe.each(['eager', 'inductor'])('on the backend %s', (backend) => {
  // The gradient of eigenvalues is computed with the eigenvectors alone, that of eigenvectors with both.
  it.each([
    ['values', 'values'],
    ['values', 'vectors'],
    ['values', 'both'],
    ['vectors', 'values'],
    ['vectors', 'vectors'],
  ] as const)('a write to the %s of eigh, and then a backward of %s, is an error where it is one eagerly', (written, differentiated) => {
    agree(backend, (c) => {
      const w = leaf(2, 1, 0, 1, 3, 1, 0, 1, 4)
      const f = c((x: Tensor) => torch.linalg.eigh(w.mul(x).view(3, 3)))
      return times(2, (i) => {
        w.grad = null
        const [values, vectors] = f(torch.full([9], i + 1))
        noGrad(() => (written === 'values' ? values : vectors).detach().add_(1))
        const loss = { values: values.sum(), vectors: vectors.abs().sum(), both: values.sum().add(vectors.sum()) }[differentiated]
        const error = attempt(() => loss.backward())
        return [error instanceof Error ? error.name : null, w.grad]
      })
    })
  })
})
