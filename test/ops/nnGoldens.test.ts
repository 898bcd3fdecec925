// The operators of neural networks against PyTorch's numbers, outputs and gradients.
import { describe, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { checkGolden, deterministic } from './goldens.ts'

const { sigmoid, softmax, tensor } = torch

const F = torch.nn.functional
type Inputs = Record<string, Tensor>
const ints = (values: number[]): Tensor => tensor(Int32Array.from(values))
const t = (): Tensor => ints([1, 0, 4])

function batchNorm({ x, w, b }: Inputs, training: boolean): Tensor[] {
  const runningMean = deterministic([3], 20)
  const runningVar = deterministic([3], 21, 0.2, 1)
  const y = F.batchNorm(x as Tensor, runningMean, runningVar, w as Tensor, b as Tensor, { training })
  return [y, runningMean, runningVar]
}

const cases: Record<string, (i: Inputs & { x: Tensor; w: Tensor; b: Tensor; y: Tensor }) => Tensor | readonly Tensor[]> = {
  linear: ({ x, w, b }) => F.linear(x, w, b),
  linear_nobias_3d: ({ x, w }) => F.linear(x, w),
  conv2d_basic: ({ x, w, b }) => F.conv2d(x, w, b),
  conv2d_dilation2: ({ x, w }) => F.conv2d(x, w, null, { dilation: 2, padding: 2 }),
  conv2d_groups2: ({ x, w, b }) => F.conv2d(x, w, b, { groups: 2, padding: 1 }),
  conv2d_depthwise: ({ x, w, b }) => F.conv2d(x, w, b, { groups: 3, padding: [1, 0], stride: [2, 1] }),
  conv2d_1x1: ({ x, w, b }) => F.conv2d(x, w, b),
  conv1d: ({ x, w, b }) => F.conv1d(x, w, b, { stride: 2, padding: 1 }),
  batch_norm_train: (i) => batchNorm(i, true),
  batch_norm_eval: (i) => batchNorm(i, false),
  layer_norm: ({ x, w, b }) => F.layerNorm(x, [4], w, b),
  layer_norm_2d: ({ x }) => F.layerNorm(x, [3, 4]),
  group_norm: ({ x, w, b }) => F.groupNorm(x, 2, w, b),
  instance_norm: ({ x }) => F.instanceNorm(x),
  max_pool2d: ({ x }) => F.maxPool2d(x, 2),
  max_pool2d_k3s2p1: ({ x }) => F.maxPool2d(x, 3, 2, 1),
  max_pool2d_ceil_dil: ({ x }) => F.maxPool2d(x, 2, 2, 0, 2, { ceilMode: true }),
  max_pool2d_indices: ({ x }) => F.maxPool2d(x, 2, { returnIndices: true }),
  avg_pool2d_pad: ({ x }) => F.avgPool2d(x, 3, 2, 1),
  avg_pool2d_nopadcount: ({ x }) => F.avgPool2d(x, 3, 2, 1, { countIncludePad: false, ceilMode: true }),
  adaptive_avg_pool2d_1: ({ x }) => F.adaptiveAvgPool2d(x, 1),
  adaptive_avg_pool2d_3x4: ({ x }) => F.adaptiveAvgPool2d(x, [3, 4]),
  embedding: ({ w }) => F.embedding(ints([0, 2, 2, 5, 1, 0]).view([2, 3]), w),
  one_hot: () => F.oneHot(ints([0, 2, 1]), 4),
  cross_entropy: ({ x }) => F.crossEntropy(x, t()),
  cross_entropy_sum: ({ x }) => F.crossEntropy(x, t(), { reduction: 'sum' }),
  cross_entropy_ignore_index: ({ x }) => F.crossEntropy(x, ints([1, -100, 4])),
  cross_entropy_ignore_0: ({ x }) => F.crossEntropy(x, t(), { ignoreIndex: 0 }),
  cross_entropy_label_smoothing: ({ x }) => F.crossEntropy(x, t(), { labelSmoothing: 0.1 }),
  cross_entropy_weight: ({ x, w }) => F.crossEntropy(x, t(), { weight: w.detach() }),
  cross_entropy_prob_target: ({ x, p }) => F.crossEntropy(x, softmax(p as Tensor, 1).detach()),
  cross_entropy_2d: ({ x }) => F.crossEntropy(x, ints([0, 1, 2, 1]).view([2, 2])),
  cross_entropy_all_ignored: ({ x }) => F.crossEntropy(x, ints([-100, -100, -100])),
  nll_loss: ({ x }) => F.nllLoss(F.logSoftmax(x, 1), t()),
  mse_sum: ({ x, y }) => F.mseLoss(x, y, { reduction: 'sum' }),
  l1: ({ x, y }) => F.l1Loss(x, y),
  smooth_l1: ({ x, y }) => F.smoothL1Loss(x, y, { beta: 0.5 }),
  huber: ({ x, y }) => F.huberLoss(x, y, { delta: 0.7 }),
  bce_with_logits: ({ x, y }) => F.binaryCrossEntropyWithLogits(x, y.gt(0).float()),
  bce_with_logits_pos_weight: ({ x, y }) => F.binaryCrossEntropyWithLogits(x, y.gt(0).float(), { posWeight: tensor([1, 2, 3, 4, 5]) }),
  bce: ({ x, y }) => F.binaryCrossEntropy(sigmoid(x), y.gt(0).float()),
  bmm: ({ a, b }) => (a as Tensor).bmm(b),
  matmul_vec: ({ a, b }) => [(a as Tensor).matmul(b), b.matmul(b)],
  addmm: ({ c, a, b }) => torch.addmm(c as Tensor, a as Tensor, b, { beta: 0.5, alpha: 2 }),
  baddbmm: ({ c, a, b }) => torch.baddbmm(c as Tensor, a as Tensor, b),
  sdpa: ({ q, k, v }) => F.scaledDotProductAttention(q as Tensor, k as Tensor, v as Tensor),
  sdpa_causal: ({ q, k, v }) => F.scaledDotProductAttention(q as Tensor, k as Tensor, v as Tensor, { isCausal: true }),
  sdpa_boolmask: ({ q, k, v }) =>
    F.scaledDotProductAttention(q as Tensor, k as Tensor, v as Tensor, {
      attnMask: tensor(Array.from({ length: 4 }, () => [true, false, true, true])),
    }),
  sdpa_floatmask_scale: ({ q, k, v, m }) =>
    F.scaledDotProductAttention(q as Tensor, k as Tensor, v as Tensor, { attnMask: (m as Tensor).detach(), scale: 0.3 }),
}

describe('agrees with PyTorch in values and gradients', () => {
  for (const [name, fn] of Object.entries(cases)) it(name, () => checkGolden(name, fn as (inputs: Inputs) => Tensor))
})
