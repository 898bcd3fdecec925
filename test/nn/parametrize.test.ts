// Parametrizations beyond the goldens: orthogonal weights, what is loaded, cached and removed.
import { describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Linear, Module, init, utils } from 'tensorfx/nn'
import { detInit, detInput } from '../helpers/deterministic.ts'

const { orthogonal, weightNorm } = utils.parametrizations
const { cached, registerParametrization, removeParametrizations } = utils.parametrize
const values = (t: Tensor): number[] => Array.from(t.detach().contiguous().toTypedArray(), Number)
const close = (a: Tensor, b: Tensor): void => {
  expect(a.shape).toEqual(b.shape)
  values(a).forEach((v, i) => expect(v).toBeCloseTo(values(b)[i] as number, 5))
}
/** The product that is the identity: of the columns, or of the rows if there are fewer of them. */
const gram = (w: Tensor): Tensor => (w.size(-2) < w.size(-1) ? torch.matmul(w, w.transpose(-2, -1)) : torch.matmul(w.transpose(-2, -1), w))

describe.each([
  [3, 3],
  [5, 3],
  [3, 5],
  [4, 1],
])('orthogonal weights of shape %i, %i', (out, into) => {
  describe.each(['matrix_exp', 'cayley', 'householder'] as const)('%s', (orthogonalMap) => {
    test.each([true, false])('stay orthogonal while they are trained (useTrivialization: %s)', (useTrivialization) => {
      torch.manualSeed(1)
      const layer = orthogonal(detInit(new Linear(into, out)), { orthogonalMap, useTrivialization })
      const identity = torch.eye(Math.min(out, into))
      close(gram(layer.weight), identity)
      const optimizer = new torch.optim.SGD(layer.parameters(), { lr: 0.1 })
      const target = detInput([2, out], 5)
      const before = layer.weight.detach().clone()
      for (let step = 0; step < 3; step++) {
        optimizer.zeroGrad()
        layer
          .call(detInput([2, into], step))
          .sub(target)
          .square()
          .sum()
          .backward()
        optimizer.step()
      }
      close(gram(layer.weight), identity)
      expect(layer.weight.sub(before).abs().max().item()).toBeGreaterThan(1e-3)
    })
  })
})

test('an orthogonal weight that is assigned is kept', () => {
  torch.manualSeed(2)
  for (const [out, into] of [
    [3, 3],
    [4, 2],
    [2, 4],
  ] as const) {
    const wanted = init.orthogonal_(torch.empty([out, into]))
    for (const options of [
      { orthogonalMap: 'householder', useTrivialization: false },
      { orthogonalMap: 'householder' },
      { orthogonalMap: 'cayley' },
    ] as const) {
      const layer = orthogonal(new Linear(into, out), options)
      Reflect.set(layer, 'weight', wanted)
      close(layer.weight, wanted)
    }
  }
})

test('orthogonal weights have the names of PyTorch, and refuse what cannot be orthogonal', () => {
  const layer = orthogonal(new Linear(3, 3))
  expect([...layer.stateDict().keys()]).toEqual(['bias', 'parametrizations.weight.original', 'parametrizations.weight.0.base'])
  expect(() => orthogonal(new Linear(3, 3), { name: 'bias' })).toThrow("'bias' must be a matrix or a batch of matrices, got shape [3]")
  expect(() => orthogonal(new Linear(3, 3), { orthogonalMap: 'qr' as 'cayley' })).toThrow(
    "orthogonalMap must be 'matrix_exp', 'cayley' or 'householder', got 'qr'",
  )
  const plain = orthogonal(new Linear(3, 3), { orthogonalMap: 'cayley', useTrivialization: false })
  expect(() => Reflect.set(plain, 'weight', torch.eye(3))).toThrow('has no method rightInverse')
})

test('a normalized weight loads the names of the older form', () => {
  const old = utils.weightNorm(detInit(new Linear(3, 2)))
  const model = new (class extends Module {
    fc = weightNorm(new Linear(3, 2))
    override forward(x: Tensor): Tensor {
      return this.fc.call(x)
    }
  })()
  const state = new Map([...old.stateDict()].map(([name, t]) => [`fc.${name}`, t]))
  expect([...state.keys()].toSorted()).toEqual(['fc.bias', 'fc.weight_g', 'fc.weight_v'])
  model.loadStateDict(state)
  close(model.fc.weight, old.weight)
})

/** Counts how often the weight is computed. */
class Counted extends Module {
  count = 0
  override forward(x: Tensor): Tensor {
    this.count++
    return x.mul(2)
  }
}

test('within cached a weight is computed once, outside each time', async () => {
  const [counted, layer] = [new Counted(), detInit(new Linear(2, 2))]
  registerParametrization(layer, 'weight', counted)
  const start = counted.count
  const sums = cached(() => [layer.weight.sum().item(), cached(() => layer.weight.sum().item()), layer.weight.sum().item()])
  expect([new Set(sums).size, counted.count - start]).toEqual([1, 1])
  void [layer.weight, layer.weight]
  expect(counted.count - start).toBe(3)
  await cached(async () => {
    void layer.weight
    await Promise.resolve()
    void layer.weight
  })
  expect(counted.count - start).toBe(4)
  expect(() =>
    cached(() => {
      throw new Error('no')
    }),
  ).toThrow('no')
  void [layer.weight, layer.weight]
  expect(counted.count - start).toBe(6)
})

test('removeParametrizations leaves the value, or what it was computed from', () => {
  const original = detInit(new Linear(2, 2)).weight.detach().clone()
  const made = (): Linear => registerParametrization(detInit(new Linear(2, 2)), 'weight', new Counted())
  close(removeParametrizations(made(), 'weight').weight, original.mul(2))
  close(removeParametrizations(made(), 'weight', { leaveParametrized: false }).weight, original)
  expect(() => removeParametrizations(weightNorm(new Linear(2, 2)), 'weight', { leaveParametrized: false })).toThrow(
    "'weight' is computed from 2 parameters",
  )
})

test('a layer with an orthogonal weight compiles', () => {
  const layer = orthogonal(detInit(new Linear(3, 3)), { orthogonalMap: 'cayley', useTrivialization: false })
  const compiled = compile((x: Tensor) => layer.call(x))
  const x = detInput([2, 3], 1)
  close(compiled(x), layer.call(x))
})
