// A short run of fuzz:mutation. What it finds becomes a test of its own.
import { expect, test, vi } from 'vitest'
import { nn, optim, torch } from 'tensorfx'
import * as func from 'tensorfx/func'
import { fuzzMutations, mutationApi } from '../../scripts/fuzz/mutation.mjs'
import { Tensor } from '../../src/tensor/index.ts'

const entries: Readonly<Record<string, () => Promise<unknown>>> = {
  tensorfx: () => import('tensorfx'),
  aot: () => import('tensorfx/aot'),
  compile: () => import('tensorfx/compile'),
  func: () => import('tensorfx/func'),
  interop: () => import('tensorfx/interop'),
  fx: () => import('tensorfx/fx'),
  pytree: () => import('tensorfx/pytree'),
}
const api = await mutationApi((entry) => entries[entry]?.() ?? Promise.reject(new Error(entry)))

test('80 random programs compute the same, whatever happens to the lists, options and results that went in and out', () => {
  expect(fuzzMutations(api, 80, 1)).toEqual([])
})

test('the run finds shapes that are handed out as they are', () => {
  const shape = vi.spyOn(Tensor.prototype, 'shape', 'get').mockImplementation(function (this: Tensor) {
    return this.sizes
  })
  try {
    expect(fuzzMutations(api, 80, 1, 1)).toHaveLength(1)
  } finally {
    shape.mockRestore()
  }
})

test.each([
  [
    'grad',
    () => {
      const argnums = [0, 1]
      const slope = func.grad((x: Tensor, y: Tensor) => x.mul(y).sum(), { argnums })
      argnums.reverse()
      argnums.push(4000)
      return slope(torch.tensor([2]), torch.tensor([3])).map((g) => g.item())
    },
    [3, 2],
  ],
  [
    'vmap',
    () => {
      const inDims = [0, 1]
      const each = func.vmap((x: Tensor, y: Tensor) => x.sub(y), { inDims })
      inDims.fill(0)
      return each(torch.tensor([[1, 2]]), torch.tensor([[1], [1]])).toArray()
    },
    [[0, 1]],
  ],
  [
    'nn.LayerNorm',
    () => {
      const shape = [2]
      const layer = new nn.LayerNorm(shape)
      shape.push(4000)
      return layer(torch.tensor([[1, 1]])).toArray()
    },
    [[0, 0]],
  ],
  [
    'nn.MaxPool1d',
    () => {
      const kernelSize = [2]
      const layer = new nn.MaxPool1d(kernelSize)
      kernelSize[0] = 1
      return layer(torch.tensor([[1, 2, 3, 4]])).toArray()
    },
    [[2, 4]],
  ],
  [
    'nn.Unflatten',
    () => {
      const sizes = [2, 1]
      const layer = new nn.Unflatten(1, sizes)
      sizes.reverse()
      return layer(torch.zeros([1, 2])).shape
    },
    [1, 2, 1],
  ],
  [
    'an optimizer, and its state dict',
    () => {
      const betas: [number, number] = [0.5, 0.6]
      const optimizer = new optim.Adam([torch.zeros([1]).requiresGrad_()], { betas })
      betas[0] = 4000
      const [group] = optimizer.stateDict().paramGroups
      const given: unknown = Reflect.get(group ?? {}, 'betas')
      if (Array.isArray(given)) given[1] = 4000
      return optimizer.paramGroups[0]?.betas
    },
    [0.5, 0.6],
  ],
])('%s keeps copies of the lists that it was given', (_, run, expected) => {
  expect(run()).toEqual(expected)
})
