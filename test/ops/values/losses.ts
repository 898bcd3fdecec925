// Losses.
import { Plain, build, each, ints, sample, sumOf, t, total } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'
import { softmaxOf } from './activation.ts'

const [x, y] = [sample([2, 3], 1), sample([2, 3], 2)]
const row = sample([3], 3)
const probabilities = sample([2, 3], 4, 0.1, 0.9)
const targets = t([
  [0, 1, 1],
  [1, 0, 0],
])
const mean = (a: Plain): Plain => t(total(a.data) / a.data.length)
const sum = (a: Plain): Plain => t(total(a.data))
/** A loss of pairs, with each reduction. */
const pairLoss = (fn: (d: number) => number, options: object = {}) => [
  { args: [x, y, options], gives: (a: Plain, b: Plain) => mean(each((p, q) => fn(p - q))(a, b)) },
  { args: [x, y, { ...options, reduction: 'sum' }], gives: (a: Plain, b: Plain) => sum(each((p, q) => fn(p - q))(a, b)) },
  { args: [x, row, { ...options, reduction: 'none' }], gives: (a: Plain, b: Plain) => each((p, q) => fn(p - q))(a, b) },
]
const smooth = (beta: number) => (d: number) => (Math.abs(d) < beta ? (0.5 * d * d) / beta : Math.abs(d) - 0.5 * beta)
const huber = (delta: number) => (d: number) => (Math.abs(d) < delta ? 0.5 * d * d : delta * (Math.abs(d) - 0.5 * delta))
const bce = (p: number, q: number): number => -(q * Math.max(Math.log(p), -100) + (1 - q) * Math.max(Math.log(1 - p), -100))
const sigmoid = (v: number): number => 1 / (1 + Math.exp(-v))

interface Options {
  readonly weight?: Plain | null
  readonly posWeight?: Plain | null
  readonly ignoreIndex?: number
  readonly reduction?: string
  readonly labelSmoothing?: number
}

/** Losses and weights of the elements: input [N, C, ..], target [N, ..]. */
function nll(a: Plain, target: Plain, weight: Plain | null, ignore: number): readonly [Plain, Plain] {
  const at = (index: readonly number[], c: number): number => a.at(index[0] ?? 0, c, ...index.slice(1))
  const weights = build(target.shape, (...i) => (target.at(...i) === ignore ? 0 : (weight?.at(target.at(...i)) ?? 1)))
  return [build(target.shape, (...i) => (target.at(...i) === ignore ? 0 : -weights.at(...i) * at(i, target.at(...i)))), weights]
}
function nllLoss(a: Plain, target: Plain, { weight = null, ignoreIndex = -100, reduction = 'mean' }: Options = {}): Plain {
  const [losses, weights] = nll(a, target, weight, ignoreIndex)
  return reduction === 'none' ? losses : t(total(losses.data) / (reduction === 'sum' ? 1 : total(weights.data)))
}
const logSoftmax = (a: Plain): Plain => softmaxOf(a, 1).map(Math.log)

function crossEntropy(a: Plain, target: Plain, options: Options = {}): Plain {
  const { weight = null, ignoreIndex = -100, reduction = 'mean', labelSmoothing: s = 0 } = options
  const logs = logSoftmax(a)
  const classes = a.shape[1] ?? 0
  if (target.kind !== 'int') {
    const losses = build([a.shape[0] ?? 0, ...a.shape.slice(2)], (n, ...rest) =>
      sumOf(classes, (c) => -logs.at(n, c, ...rest) * (weight?.at(c) ?? 1) * ((1 - s) * target.at(n, c, ...rest) + s / classes)),
    )
    return reduction === 'none' ? losses : reduction === 'sum' ? sum(losses) : mean(losses)
  }
  const [hard, weights] = nll(logs, target, weight, ignoreIndex)
  const uniform = build(target.shape, (n, ...rest) =>
    target.at(n, ...rest) === ignoreIndex ? 0 : sumOf(classes, (c) => -logs.at(n, c, ...rest) * (weight?.at(c) ?? 1)) / classes,
  )
  const losses = hard.map((v, i) => (1 - s) * v + s * (uniform.data[i] ?? NaN))
  return reduction === 'none' ? losses : t(total(losses.data) / (reduction === 'sum' ? 1 : total(weights.data)))
}

const logits = sample([3, 4], 5)
const planes = sample([2, 3, 2], 6)
const classes = ints([1, 3, 0])
const planeClasses = ints([
  [0, 2],
  [1, 1],
])
const [w4, w3] = [sample([4], 7, 0.5, 1.5), sample([3], 8, 0.5, 1.5)]
const soft = softmaxOf(sample([3, 4], 9), 1)

export default {
  'torch.nn.functional.mse_loss': pairLoss((d) => d * d),
  'torch.nn.functional.l1_loss': pairLoss(Math.abs),
  'torch.nn.functional.smooth_l1_loss': [...pairLoss(smooth(1)), ...pairLoss(smooth(0.4), { beta: 0.4 }), ...pairLoss(Math.abs, { beta: 0 })],
  'torch.nn.functional.huber_loss': [...pairLoss(huber(1)), ...pairLoss(huber(0.4), { delta: 0.4 })],
  'torch.nn.functional.binary_cross_entropy': [
    { args: [probabilities, targets], gives: (p: Plain, q: Plain) => mean(each(bce)(p, q)) },
    { args: [probabilities, probabilities, { reduction: 'none' }], gives: (p: Plain, q: Plain) => each(bce)(p, q) },
    {
      args: [probabilities, targets, { weight: row, reduction: 'sum' }],
      gives: (p: Plain, q: Plain, o: Options) => sum(each((l, w) => l * w)(each(bce)(p, q), o.weight)),
    },
    { args: [t([0, 1]), t([1, 1]), { reduction: 'none' }], gives: t([100, 0]), noGradient: 'at the bound' },
  ],
  'torch.nn.functional.binary_cross_entropy_with_logits': [
    { args: [x, targets], gives: (a: Plain, q: Plain) => mean(each((v, z) => bce(sigmoid(v), z))(a, q)) },
    {
      args: [x, targets, { posWeight: row, reduction: 'none' }],
      gives: (a: Plain, q: Plain, o: Options) =>
        each((v, z, p) => -(p * z * Math.log(sigmoid(v)) + (1 - z) * Math.log(1 - sigmoid(v))))(a, q, o.posWeight),
    },
    {
      args: [x, targets, { weight: row, reduction: 'sum' }],
      gives: (a: Plain, q: Plain, o: Options) => sum(each((v, z, w) => w * bce(sigmoid(v), z))(a, q, o.weight)),
    },
    { args: [t([200, -200]), t([0, 1]), { reduction: 'none' }], gives: t([200, 200]) },
  ],
  'torch.ops.tensorfx.nll_loss_forward': [
    { args: [logits, classes, null, -100], gives: nll, differentiable: 1 },
    { args: [logits, classes, w4, 3], gives: nll, constants: [2], differentiable: 1 },
    { args: [planes, planeClasses, w3, 1], gives: nll, constants: [2], differentiable: 1 },
    { args: [planes, planeClasses, null, 1], gives: nll, differentiable: 1 },
  ],
  'torch.ops.tensorfx.nll_loss_backward': [
    {
      args: [row, logits, classes, w4, 3],
      gives: (g: Plain, a: Plain, target: Plain, w: Plain) => build(a.shape, (n, c) => (target.at(n) === c && c !== 3 ? g.at(n) * w.at(c) : 0)),
      constants: [3],
    },
    {
      args: [sample([2, 2], 3), planes, planeClasses, null, -100],
      gives: (g: Plain, a: Plain, target: Plain) => build(a.shape, (n, c, i) => (target.at(n, i) === c ? g.at(n, i) : 0)),
    },
  ],
  'torch.nn.functional.nll_loss': [
    { args: [logits, classes], gives: nllLoss },
    { args: [logits, classes, { weight: w4, ignoreIndex: 3 }], gives: nllLoss, constants: [2] },
    {
      args: [logits, classes, w4, { reduction: 'sum' }],
      gives: (a: Plain, target: Plain, weight: Plain) => nllLoss(a, target, { weight, reduction: 'sum' }),
      constants: [2],
    },
    { args: [planes, planeClasses, { reduction: 'none' }], gives: nllLoss },
    { args: [t([-1, -2]), ints(1)], gives: t(2) },
    { args: [t([-1, -2]), ints(1), { reduction: 'none' }], gives: t(2) },
  ],
  'torch.nn.functional.cross_entropy': [
    { args: [logits, classes], gives: crossEntropy },
    { args: [logits, classes, { weight: w4, ignoreIndex: 0, labelSmoothing: 0.2 }], gives: crossEntropy, constants: [2] },
    { args: [planes, planeClasses, { reduction: 'none', labelSmoothing: 0.1 }], gives: crossEntropy },
    { args: [planes, planeClasses, { reduction: 'sum' }], gives: crossEntropy },
    { args: [logits, soft], gives: crossEntropy },
    { args: [logits, soft, { weight: w4, labelSmoothing: 0.2, reduction: 'sum' }], gives: crossEntropy },
    { args: [logits, soft, { reduction: 'none' }], gives: crossEntropy },
    { args: [t([0, 0]), ints(1)], gives: t(Math.log(2)) },
    { args: [t([0, 0]), ints(1), { labelSmoothing: 0.3, reduction: 'none' }], gives: t(Math.log(2)) },
    { args: [t([0, 0]), t([0.5, 0.5])], gives: (a: Plain) => t(Math.log(a.data.length)) },
  ],
} satisfies ValueCases
