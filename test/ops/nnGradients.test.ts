// Every differentiable operator of linalg/ and nn/ against finite differences in float64, once and twice.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { opOf } from 'tensorfx/ops'
import { builtInOps } from './builtInOps.ts'
import * as ops from '../../src/ops/index.ts'
import { FakeTensorMode, fakeLike, withMode } from '../../src/dispatch/index.ts'
import type { OpDef } from '../../src/dispatch/index.ts'
import { gradcheck, gradgradcheck, sample } from './gradcheck.ts'

const { allclose, tensor } = torch
const { grad } = torch.autograd

const F = torch.nn.functional
const ints = (values: number[], shape: number[]): Tensor => tensor(Int32Array.from(values)).view(shape)

interface Case {
  readonly fn: (...inputs: Tensor[]) => Tensor | readonly Tensor[]
  readonly inputs: readonly Tensor[]
  /** Names of the primitives that the case exercises. */
  readonly covers: readonly string[]
  /** Linear in every input: there is no second derivative to check. */
  readonly once?: boolean
}

const T = (...shape: number[]): Tensor => sample(shape, shape.length * 7 + (shape[0] ?? 1))

const cases: Record<string, Case> = {
  mm: { fn: (a, b) => torch.mm(a as Tensor, b as Tensor), inputs: [T(2, 3), T(3, 4)], covers: ['mm'] },
  bmm: { fn: (a, b) => torch.bmm(a as Tensor, b as Tensor), inputs: [T(2, 2, 3), T(2, 3, 2)], covers: ['bmm'] },
  linear: { fn: (x, w, b) => F.linear(x as Tensor, w as Tensor, b as Tensor), inputs: [T(2, 2, 3), T(4, 3), T(4)], covers: ['linear'] },
  'matmul with broadcast batches': { fn: (a, b) => torch.matmul(a as Tensor, b as Tensor), inputs: [T(2, 1, 2, 3), T(3, 3, 2)], covers: [] },
  'matmul of many rows by one matrix': { fn: (a, b) => torch.matmul(a as Tensor, b as Tensor), inputs: [T(2, 2, 3), T(3, 2)], covers: [] },
  'mv, dot, outer': {
    fn: (m, v, w) => [torch.mv(m as Tensor, v as Tensor), torch.dot(v as Tensor, v as Tensor), torch.outer(v as Tensor, w as Tensor)],
    inputs: [T(2, 3), T(3), T(4)],
    covers: [],
  },
  conv2d: {
    fn: (x, w, b) => F.conv2d(x as Tensor, w as Tensor, b as Tensor, { stride: [2, 1], padding: 1 }),
    inputs: [T(2, 2, 4, 4), T(2, 2, 3, 3), T(2)],
    covers: ['convolution', 'convolution_backward'],
  },
  'conv2d with groups and dilation': {
    fn: (x, w) => F.conv2d(x as Tensor, w as Tensor, null, { groups: 2, dilation: 2, padding: [2, 1] }),
    inputs: [T(1, 4, 4, 4), T(2, 2, 2, 2)],
    covers: [],
  },
  "conv2d with padding 'same'": {
    fn: (x, w) => F.conv2d(x as Tensor, w as Tensor, null, { padding: 'same' }),
    inputs: [T(1, 1, 4, 3), T(1, 1, 2, 3)],
    covers: [],
  },
  maxPool2d: {
    fn: (x) => F.maxPool2d(x as Tensor, 2, { stride: 1 }),
    inputs: [T(1, 2, 3, 4)],
    covers: ['max_pool2d_with_indices', 'max_pool2d_backward'],
    once: true,
  },
  avgPool2d: {
    fn: (x) => F.avgPool2d(x as Tensor, 3, { stride: 2, padding: 1, countIncludePad: false }),
    inputs: [T(1, 2, 4, 5)],
    covers: ['avg_pool2d', 'avg_pool2d_backward'],
    once: true,
  },
  adaptiveAvgPool2d: { fn: (x) => F.adaptiveAvgPool2d(x as Tensor, [2, 3]), inputs: [T(1, 2, 5, 4)], covers: [], once: true },
  'batchNorm, training': {
    fn: (x, w, b) => F.batchNorm(x as Tensor, null, null, w as Tensor, b as Tensor, { training: true }),
    inputs: [T(3, 2, 2, 2), T(2), T(2)],
    covers: ['native_batch_norm'],
  },
  'batchNorm of vectors': { fn: (x) => F.batchNorm(x as Tensor, null, null, { training: true }), inputs: [T(5, 3)], covers: [] },
  layerNorm: {
    fn: (x, w, b) => F.layerNorm(x as Tensor, [2, 3], w as Tensor, b as Tensor),
    inputs: [T(2, 2, 3), T(2, 3), sample([2, 3], 3)],
    covers: ['native_layer_norm'],
  },
  rmsNorm: { fn: (x, w) => F.rmsNorm(x as Tensor, [2, 3], w as Tensor), inputs: [T(2, 2, 3), T(2, 3)], covers: ['fused_rms_norm'] },
  groupNorm: {
    fn: (x, w, b) => F.groupNorm(x as Tensor, 2, w as Tensor, b as Tensor),
    inputs: [T(2, 4, 3), T(4), sample([4], 9)],
    covers: ['fused_group_norm'],
  },
  embedding: {
    fn: (w) => F.embedding(ints([0, 2, 2, 1], [2, 2]), w as Tensor),
    inputs: [T(3, 4)],
    covers: ['embedding', 'embedding_backward'],
    once: true,
  },
  nllLoss: {
    fn: (x) => F.nllLoss(x as Tensor, ints([0, 2, -100], [3]), tensor(Float64Array.from([1, 2, 3, 4])), { reduction: 'none' }),
    inputs: [T(3, 4)],
    covers: ['nll_loss_forward', 'nll_loss_backward'],
    once: true,
  },
  'crossEntropy over planes': { fn: (x) => F.crossEntropy(x as Tensor, ints([0, 1, 2, 0, 1, 1], [2, 3])), inputs: [T(2, 3, 3)], covers: [] },
  'crossEntropy with probabilities': {
    fn: (x, p) => F.crossEntropy(x as Tensor, p as Tensor, { labelSmoothing: 0.2 }),
    inputs: [T(2, 3), sample([2, 3], 4, 0.1, 0.9)],
    covers: [],
  },
  scaledDotProductAttention: {
    fn: (q, k, v) => F.scaledDotProductAttention(q as Tensor, k as Tensor, v as Tensor, { isCausal: true }),
    inputs: [T(2, 3, 2), T(2, 3, 2), T(2, 3, 4)],
    covers: [],
  },
}

describe('gradients agree with finite differences', () => {
  for (const [name, { fn, inputs }] of Object.entries(cases)) it(name, () => gradcheck(fn, inputs))
})

describe('second derivatives agree with finite differences', () => {
  for (const [name, { fn, inputs, once }] of Object.entries(cases)) if (once !== true) it(name, () => gradgradcheck(fn, inputs))
})

describe('fake tensors', () => {
  const list = (r: Tensor | readonly Tensor[]): readonly Tensor[] => (Array.isArray(r) ? r : [r]) as readonly Tensor[]
  const forwardAndBackward = (fn: Case['fn'], leaves: readonly Tensor[]): string[] => {
    const outputs = list(fn(...leaves))
    const loss = outputs
      .filter((t) => t.requiresGrad)
      .map((t) => t.sum())
      .reduce((a, b) => a.add(b))
    const grads = grad(loss, leaves, { allowUnused: true })
    return [...outputs, ...grads].map((t) => (t === null ? 'none' : `${t.dtype} ${t.shape.join('x')}`))
  }
  for (const [name, { fn, inputs }] of Object.entries(cases)) {
    it(`${name} has the same shapes and dtypes without data, forward and backward`, () => {
      const leaves = inputs.map((t) => t.detach().requiresGrad_())
      const real = forwardAndBackward(fn, leaves)
      const fake = withMode(new FakeTensorMode(), () => forwardAndBackward(fn, leaves.map(fakeLike)))
      expect(fake).toEqual(real)
    })
  }
})

describe('linear operators', () => {
  it('have backwards that are differentiable in the gradient', () => {
    const x = T(1, 2, 3, 4)
    const [, indices] = F.maxPool2d(x, 2, { returnIndices: true })
    gradcheck((g) => ops.maxPool2dBackward(g as Tensor, indices, 3, 4), [T(1, 2, 1, 2)])
    gradcheck((g) => ops.avgPool2dBackward(g as Tensor, x, 2, null, 0, false, true, null), [T(1, 2, 1, 2)])
    gradcheck((g) => ops.embeddingBackward(g as Tensor, ints([0, 2, 2], [3]), 4, 2), [T(3, 2)])
    gradcheck((g) => ops.nllLossBackward(g as Tensor, T(3, 4), ints([0, 2, -100], [3]), null, -100), [T(3)])
  })

  it('embedding gives the padding row no gradient', () => {
    const w = T(3, 2).requiresGrad_()
    F.embedding(ints([0, 1, 1, 2], [4]), w, { paddingIdx: 1 })
      .sum()
      .backward()
    expect(w.grad?.toArray()).toEqual([
      [1, 1],
      [0, 0],
      [1, 1],
    ])
  })
})

describe('the table of cases', () => {
  it('covers every differentiable primitive of these rooms', () => {
    const covered = new Set(Object.values(cases).flatMap((c) => c.covers))
    // Their derivative is never recorded: the forward operator's derivative uses the formula where it is differentiated again.
    for (const name of ['native_batch_norm_backward', 'native_layer_norm_backward', 'fused_group_norm_backward', 'fused_rms_norm_backward'])
      covered.add(name)
    const here = [
      'mm',
      'bmm',
      'linear',
      'convolution',
      'convolution_backward',
      'embedding',
      'embedding_backward',
      'nll_loss_forward',
      'nll_loss_backward',
    ]
    const missing = builtInOps()
      .filter((op) => op.derivative !== null && (here.includes(op.name) || /pool|_norm$|norm_backward/.test(op.name)))
      .map((op) => op.name)
      .filter((name) => !covered.has(name))
    expect(missing).toEqual([])
  })
})

describe('decompositions', () => {
  const decomposed = (fn: unknown, ...args: unknown[]): readonly Tensor[] => {
    const { decompose } = opOf(fn) as OpDef
    const result = (decompose as unknown as (...a: unknown[]) => Tensor | readonly Tensor[])(...args)
    return (Array.isArray(result) ? result : [result]) as readonly Tensor[]
  }
  const same = (a: readonly Tensor[], b: readonly Tensor[]): void => {
    expect(a.length).toBe(b.length)
    a.forEach((t, i) => expect(allclose(t, b[i] as Tensor, { rtol: 1e-9, atol: 1e-9 }), `result ${i}`).toBe(true))
  }
  const both = (fn: (...args: never[]) => readonly Tensor[] | Tensor, ...args: unknown[]): void => {
    const result = fn(...(args as never[]))
    same(decomposed(fn, ...args), (Array.isArray(result) ? result : [result]) as readonly Tensor[])
  }

  it('of batch normalization and its backward equal the kernels', () => {
    const [x, w, b, g] = [T(3, 2, 4), T(2), sample([2], 5), sample([3, 2, 4], 8)]
    both(ops.nativeBatchNorm, x, w, b, 1e-5)
    const [, mean, invstd] = ops.nativeBatchNorm(x, w, b, 1e-5)
    both(ops.nativeBatchNormBackward, g, x, w, mean, invstd)
  })

  it('of layer normalization and its backward equal the kernels', () => {
    const [x, w, b, g] = [T(3, 4), T(4), sample([4], 5), sample([3, 4], 8)]
    both(ops.nativeLayerNorm, x, [4], w, b, 1e-5)
    const [, mean, rstd] = ops.nativeLayerNorm(x, [4], w, b, 1e-5)
    both(ops.nativeLayerNormBackward, g, x, [4], mean, rstd, w)
  })

  it('of the negative log likelihood and its backward equal the kernels', () => {
    const [x, w, target] = [T(2, 3, 2), sample([3], 2, 0.5, 1.5), ints([0, 2, 1, 1], [2, 2])]
    for (const weight of [null, w]) {
      for (const ignore of [-100, 1]) {
        both(ops.nllLossForward, x, target, weight, ignore)
        both(ops.nllLossBackward, sample([2, 2], 6), x, target, weight, ignore)
      }
    }
  })
})
