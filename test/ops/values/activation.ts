// Activations, of torch, of torch.nn.functional, and their internal backwards.
import { build, each, erf, reduce, sample, t, total } from '../plain.ts'
import type { Plain } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const x = sample([2, 3], 1)
const wide = sample([6], 3, -8, 8)
const g = sample([2, 3], 4)
const sigmoid = (v: number): number => 1 / (1 + Math.exp(-v))
const relu = (v: number): number => Math.max(v, 0)
const normalCdf = (v: number): number => (1 + erf(v / Math.SQRT2)) / 2
const normalPdf = (v: number): number => Math.exp((-v * v) / 2) / Math.sqrt(2 * Math.PI)
const inner = (v: number): number => Math.sqrt(2 / Math.PI) * (v + 0.044715 * v ** 3)
const geluTanh = (v: number): number => (v / 2) * (1 + Math.tanh(inner(v)))
/** The slope of geluTanh, from its difference quotient of order 4. */
const slope = (fn: (v: number) => number, v: number, h = 1e-3): number => (8 * (fn(v + h) - fn(v - h)) - (fn(v + 2 * h) - fn(v - 2 * h))) / (12 * h)

export const softmaxOf = (a: Plain, dim: number): Plain => {
  const sums = reduce(a, [dim], true, (line) => total(line.map(Math.exp)))
  return build(a.shape, (...i) => Math.exp(a.at(...i)) / sums.at(...i))
}
const logSoftmaxOf = (a: Plain, dim: number): Plain => softmaxOf(a, dim).map(Math.log)

export default {
  'torch.relu': [
    { args: [x], gives: each(relu) },
    { args: [t([-1, 0, 2], 'int')], gives: t([0, 0, 2], 'int') },
  ],
  'torch.nn.functional.logsigmoid': [
    { args: [x], gives: each((v) => -Math.log1p(Math.exp(-v))) },
    { args: [t([0, 1000, -1000])], gives: t([-Math.LN2, 0, -1000]) },
  ],
  'torch.nn.functional.softplus': [
    { args: [wide], gives: each((v) => Math.log1p(Math.exp(v))) },
    { args: [wide, { beta: 2, threshold: 3 }], gives: each((v) => (2 * v > 3 ? v : Math.log1p(Math.exp(2 * v)) / 2)) },
    { args: [t([0, 1000, -1000])], gives: t([Math.LN2, 1000, 0]) },
  ],
  'torch.ops.tensorfx.threshold_backward': [{ args: [g, x, 0.2], gives: each((a, v) => (v > 0.2 ? a : 0)) }],
  'torch.nn.functional.gelu': [
    { args: [x], gives: each((v) => v * normalCdf(v)) },
    { args: [wide], gives: each((v) => v * normalCdf(v)) },
    { args: [x, { approximate: 'tanh' }], gives: each(geluTanh) },
  ],
  'torch.ops.tensorfx.gelu_backward': [
    { args: [g, x], gives: each((a, v) => a * (normalCdf(v) + v * normalPdf(v))) },
    { args: [g.map(Math.fround), x.map(Math.fround), { approximate: 'tanh' }], gives: each((a, v) => a * slope(geluTanh, v)) },
  ],
  'torch.nn.functional.silu': [
    { args: [x], gives: each((v) => v * sigmoid(v)) },
    { args: [wide], gives: each((v) => v * sigmoid(v)) },
  ],
  'torch.nn.functional.leaky_relu': [
    { args: [x], gives: each((v) => (v > 0 ? v : 0.01 * v)) },
    { args: [x, 0.2], gives: each((v) => (v > 0 ? v : 0.2 * v)) },
  ],
  'torch.nn.functional.elu': [
    { args: [x], gives: each((v) => (v > 0 ? v : Math.expm1(v))) },
    { args: [x, { alpha: 0.5 }], gives: each((v) => (v > 0 ? v : 0.5 * Math.expm1(v))) },
  ],
  'torch.nn.functional.relu': [
    { args: [x], gives: each(relu) },
    { args: [x, { inplace: false }], gives: each(relu) },
  ],
  'torch.nn.functional.sigmoid': [{ args: [x], gives: each(sigmoid) }],
  'torch.nn.functional.tanh': [{ args: [x], gives: each(Math.tanh) }],
  'torch.softmax': [
    { args: [x, 1], gives: softmaxOf },
    { args: [x, -2], gives: softmaxOf },
    { args: [t([1000, 1000]), 0], gives: t([0.5, 0.5]), noGradient: 'differences of 1000 lose digits' },
  ],
  'torch._safe_softmax': [
    { args: [x, 1], gives: softmaxOf },
    {
      args: [
        t([
          [0, -Infinity],
          [-Infinity, -Infinity],
        ]),
        -1,
      ],
      gives: t([
        [1, 0],
        [0, 0],
      ]),
      noGradient: 'infinite',
    },
    { args: [t([0, 0], 'int'), { dim: 0, dtype: 'float64' }], gives: t([0.5, 0.5], 'float64') },
  ],
  'torch.log_softmax': [
    { args: [x, 1], gives: logSoftmaxOf },
    { args: [x, 0], gives: logSoftmaxOf },
    { args: [t([1000, 0]), 0], gives: t([0, -1000]), noGradient: 'differences of 1000 lose digits' },
  ],
  'torch.nn.functional.softmax': [
    { args: [x, { dim: -1 }], gives: (a: Plain) => softmaxOf(a, 1) },
    { args: [t([1, 2], 'int'), { dim: 0, dtype: 'float32' }], gives: softmaxOf(t([1, 2], 'float32'), 0).as('float32') },
  ],
  'torch.nn.functional.log_softmax': [
    { args: [x, 0], gives: logSoftmaxOf },
    { args: [t([1, 2], 'int'), { dim: 0, dtype: 'float64' }], gives: logSoftmaxOf(t([1, 2]), 0).as('float64') },
  ],
  'torch.logsumexp': [
    { args: [x, 1], gives: (a: Plain) => reduce(a, [1], false, (line) => Math.log(total(line.map(Math.exp)))) },
    { args: [x, [0, 1], { keepdim: true }], gives: (a: Plain) => reduce(a, [0, 1], true, (line) => Math.log(total(line.map(Math.exp)))) },
    { args: [t([1000, 1000]), 0], gives: t(1000 + Math.log(2)), noGradient: 'differences of 1000 lose digits' },
    { args: [t([-Infinity, -Infinity]), 0], gives: t(-Infinity), noGradient: 'infinite' },
    { args: [t([Infinity, 1]), [0]], gives: t(Infinity), noGradient: 'infinite' },
  ],
} satisfies ValueCases
