// Trigonometry, special functions, questions about numbers, and activations of straight pieces.
import { each, erf, ints, sample, t } from '../plain.ts'
import type { Plain } from '../plain.ts'
import type { ValueCase, ValueCases } from '../valueCases.ts'

const x = sample([2, 3], 1)
const y = sample([2, 3], 2)
const inside = sample([2, 3], 3, -0.9, 0.9)
const positive = sample([2, 3], 4, 0.3, 4)
const wide = sample([7], 5, -9, 9)
const special = t([Infinity, -Infinity, NaN, 1, 0, -2])
const of = (fn: (v: number) => number, ...args: Plain[]): ValueCase[] => args.map((arg) => ({ args: [arg], gives: each(fn) }))
const question = (...answers: boolean[]): ValueCase[] => [{ args: [special], gives: t(answers) }]

// References by integration or by series, independent of the kernels.
/** The integral of fn from a to b, by Gauss' rule of order 3 on pieces. */
function integral(fn: (v: number) => number, a: number, b: number, pieces = 4000): number {
  const h = (b - a) / pieces
  let sum = 0
  for (let i = 0; i < pieces; i++) {
    const mid = a + (i + 0.5) * h
    const d = (h / 2) * Math.sqrt(0.6)
    sum += (5 * fn(mid - d) + 8 * fn(mid) + 5 * fn(mid + d)) / 18
  }
  return sum * h
}
/** log gamma of positive numbers, from the product that defines it, far out, and Stirling's first terms there. */
function logGamma(v: number): number {
  let shift = 0
  let z = v
  for (; z < 40; z++) shift += Math.log(z)
  return (z - 0.5) * Math.log(z) - z + Math.log(2 * Math.PI) / 2 + 1 / (12 * z) - 1 / (360 * z ** 3) + 1 / (1260 * z ** 5) - shift
}
const psi = (v: number): number => {
  let shift = 0
  let z = v
  for (; z < 40; z++) shift += 1 / z
  return Math.log(z) - 1 / (2 * z) - 1 / (12 * z * z) + 1 / (120 * z ** 4) - 1 / (252 * z ** 6) - shift
}
const trigamma = (v: number): number => {
  let sum = 0
  let z = v
  for (; z < 60; z++) sum += 1 / (z * z)
  return sum + 1 / z + 1 / (2 * z * z) + 1 / (6 * z ** 3) - 1 / (30 * z ** 5)
}
/** The number at which erf has a value, by bisection. */
function inverseErf(v: number): number {
  let [low, high] = [-6, 6]
  for (let i = 0; i < 200; i++) {
    const mid = (low + high) / 2
    if (erf(mid) < v) low = mid
    else high = mid
  }
  return low
}
const limit = (v: number, low: number, high: number): number => Math.min(Math.max(v, low), high)
const softplus = (v: number): number => Math.log1p(Math.exp(v))
const selu = (v: number): number => 1.0507009873554805 * (v > 0 ? v : 1.6732632423543772 * Math.expm1(v))
const celu = (v: number, a = 1): number => (v > 0 ? v : a * Math.expm1(v / a))

export default {
  'torch.tan': of(Math.tan, x, inside),
  'torch.asin': of(Math.asin, inside),
  'torch.acos': of(Math.acos, inside),
  'torch.atan': of(Math.atan, x, wide),
  'torch.sinh': of(Math.sinh, x, wide),
  'torch.cosh': of(Math.cosh, x, wide),
  'torch.asinh': of(Math.asinh, x, wide),
  'torch.acosh': of(Math.acosh, sample([5], 2, 1.1, 5)),
  'torch.atanh': of(Math.atanh, inside),
  'torch.atan2': [
    { args: [x, y], gives: each(Math.atan2) },
    { args: [ints([1, -1]), ints([0, -1])], gives: each((a, b) => Math.fround(Math.atan2(a, b)), 'float32') },
  ],
  'torch.exp2': of((v) => 2 ** v, x, wide),
  'torch.log2': of(Math.log2, positive),
  'torch.log10': of(Math.log10, positive),
  'torch.erfc': [
    ...of((v) => 1 - erf(v), x),
    { args: [t([3, 5])], gives: each((v) => (2 / Math.sqrt(Math.PI)) * integral((s) => Math.exp(-s * s), v, v + 6)), tolerance: 1e-12 },
  ],
  'torch.erfinv': [
    { args: [inside], gives: each(inverseErf) },
    { args: [t([1, -1, 2])], gives: t([Infinity, -Infinity, NaN]), noGradient: 'infinite' },
  ],
  'torch.lgamma': [
    ...of(logGamma, positive),
    { args: [t([1, 2, -0.5, 0, 50])], gives: t([0, 0, Math.log(2 * Math.sqrt(Math.PI)), Infinity, logGamma(50)]), noGradient: 'at a pole' },
  ],
  'torch.digamma': [...of(psi, positive), { args: [t([-0.5])], gives: t([psi(1.5) - Math.PI / Math.tan(-Math.PI / 2)]), tolerance: 1e-6 }],
  'torch.polygamma': [
    { args: [1, positive], gives: (_: number, a: Plain) => a.map(trigamma), tolerance: 1e-5 },
    { args: [0, positive], gives: (_: number, a: Plain) => a.map(psi) },
  ],
  'torch.sinc': [...of((v) => Math.sin(Math.PI * v) / (Math.PI * v), x), { args: [t([0])], gives: t([1]), gradient: t([0]) }],
  'torch.logaddexp2': [{ args: [x, y], gives: each((a, b) => Math.log2(2 ** a + 2 ** b)) }],
  'torch.hypot': [{ args: [x, y], gives: each(Math.hypot) }],
  'torch.xlogy': [
    { args: [x, positive], gives: each((a, b) => a * Math.log(b)) },
    { args: [3, positive], gives: each((a, b) => a * Math.log(b)) },
    { args: [t([0, 0, 2]), t([0, NaN, 0])], gives: t([0, NaN, -Infinity]), noGradient: 'infinite' },
    // At 0 the slope is log other, where that is finite.
    { args: [t([0, 0]), t([3, 0.5])], gives: t([0, 0]) },
  ],
  'torch.logit': [
    { args: [sample([4], 2, 0.1, 0.9)], gives: each((v) => Math.log(v / (1 - v))) },
    { args: [t([0.01, 0.4, 0.99]), { eps: 0.1 }], gives: each((v) => Math.log(limit(v, 0.1, 0.9) / (1 - limit(v, 0.1, 0.9)))) },
  ],
  'torch.isinf': question(true, true, false, false, false, false),
  'torch.isfinite': [...question(false, false, false, true, true, true), { args: [ints([1, 2])], gives: t([true, true]) }],
  'torch.isposinf': question(true, false, false, false, false, false),
  'torch.isneginf': question(false, true, false, false, false, false),
  'torch.isreal': question(true, true, true, true, true, true),
  'torch.signbit': [
    { args: [t([1, -1, 0, -0, -Infinity])], gives: t([false, true, false, true, true]) },
    { args: [ints([1, 0])], gives: t([false, false]) },
  ],
  'torch.logical_xor': [{ args: [t([true, true, false]), t([true, false, false])], gives: t([false, true, false]) }],
  'torch.copysign': [
    { args: [x, y], gives: each((a, b) => Math.abs(a) * Math.sign(b)) },
    { args: [t([2]), t([-0])], gives: t([-2]), noGradient: 'at a step' },
  ],
  'torch.heaviside': [{ args: [t([-1, 0, 2, NaN]), t([0.5])], gives: t([0, 0.5, 1, 0]), noGradient: 'PyTorch has none' }],
  'torch.fmax': [
    { args: [x, y], gives: each(Math.max) },
    { args: [t([NaN, 1, NaN]), t([2, NaN, NaN])], gives: t([2, 1, NaN]), noGradient: 'NaN' },
  ],
  'torch.fmin': [
    { args: [x, y], gives: each(Math.min) },
    { args: [t([NaN, 1, NaN]), t([2, NaN, NaN])], gives: t([2, 1, NaN]), noGradient: 'NaN' },
  ],
  'torch.sgn': of(Math.sign, x),
  'torch.positive': of((v) => v, x),
  'torch.fix': of(Math.trunc, x),
  'torch.frac': of((v) => v - Math.trunc(v), x),
  'torch.deg2rad': of((v) => (v * Math.PI) / 180, wide),
  'torch.rad2deg': of((v) => (v * 180) / Math.PI, x),
  'torch.true_divide': [
    { args: [x, positive], gives: each((a, b) => a / b) },
    { args: [ints([1, 3]), 2], gives: each((a, b) => a / b, 'float32') },
  ],
  'torch.rsub': [
    { args: [x, y, { alpha: 2 }], gives: each((a, b) => b - 2 * a) },
    { args: [ints([1, 2]), 3], gives: ints([2, 1]) },
  ],
  'torch.nan_to_num': [
    { args: [x], gives: each((v) => v) },
    { args: [special, 5, 6, -7], gives: t([6, -7, 5, 1, 0, -2]), noGradient: 'at values that are replaced' },
    { args: [ints([1, 2])], gives: ints([1, 2]) },
  ],
  'torch.isclose': [
    { args: [t([1, 1, Infinity, NaN, Infinity]), t([1, 1.1, Infinity, NaN, 1])], gives: t([true, false, true, false, false]) },
    { args: [t([1, NaN]), t([1.05, NaN]), { rtol: 0.1, atol: 0, equalNan: true }], gives: t([true, true]) },
  ],
  'torch.ldexp': [{ args: [x, t([1, -2, 3])], gives: each((a, b) => a * 2 ** b), notInHalf: 'it computes in float32' }],
  'torch.clamp_min': [{ args: [x, 0.2], gives: each(Math.max) }],
  'torch.clamp_max': [{ args: [x, 0.2], gives: each(Math.min) }],
  'torch.clip': [{ args: [x, -0.2, 0.3], gives: each((v) => limit(v, -0.2, 0.3)) }],
  'torch.nn.functional.hardtanh': [
    ...of((v) => limit(v, -1, 1), x, wide),
    { args: [wide, { minVal: -2, maxVal: 0.5 }], gives: each((v) => limit(v, -2, 0.5)) },
  ],
  'torch.nn.functional.relu6': of((v) => limit(v, 0, 6), wide),
  'torch.nn.functional.hardsigmoid': of((v) => limit(v + 3, 0, 6) / 6, x, wide),
  'torch.nn.functional.hardswish': of((v) => (v * limit(v + 3, 0, 6)) / 6, x, wide),
  'torch.nn.functional.hardshrink': [
    ...of((v) => (Math.abs(v) <= 0.5 ? 0 : v), x),
    { args: [x, 0.1], gives: each((v) => (Math.abs(v) <= 0.1 ? 0 : v)) },
  ],
  'torch.nn.functional.softshrink': [
    { args: [x, 0.4], gives: each((v) => (Math.abs(v) <= 0.4 ? 0 : v - 0.4 * Math.sign(v))) },
    { args: [t([NaN])], gives: t([NaN]), noGradient: 'NaN' },
  ],
  'torch.nn.functional.threshold': [{ args: [x, 0.2, 9], gives: each((v) => (v > 0.2 ? v : 9)) }],
  'torch.nn.functional.prelu': [
    { args: [x, t([0.3])], gives: each((v, w) => (v > 0 ? v : v * w)) },
    { args: [x, t([0.3, 0.1, 2])], gives: each((v, w) => (v > 0 ? v : v * w)) },
  ],
  'torch.nn.functional.selu': of(selu, x),
  'torch.selu': of(selu, x),
  'torch.nn.functional.celu': [...of(celu, x), { args: [x, 1.7], gives: each((v) => celu(v, 1.7)) }],
  'torch.celu': [{ args: [x, { alpha: 0.5 }], gives: each((v) => celu(v, 0.5)) }],
  'torch.nn.functional.mish': of((v) => v * Math.tanh(softplus(v)), x, wide),
  'torch.nn.functional.softsign': of((v) => v / (1 + Math.abs(v)), x),
  'torch.nn.functional.tanhshrink': [{ args: [x], gives: each((v) => v - Math.tanh(v)), halfTolerance: 16 }],
  'torch.nn.functional.softmin': [{ args: [t([1, 2]), 0], gives: t([Math.E / (1 + Math.E), 1 / (1 + Math.E)]) }],
  'torch.nn.functional.glu': [
    {
      args: [
        t([
          [1, 2],
          [3, 4],
        ]),
        0,
      ],
      gives: t([[1 / (1 + Math.exp(-3)), 2 / (1 + Math.exp(-4))]]),
    },
  ],
  'torch.nn.functional.rrelu': [
    { args: [x], gives: each((v) => (v > 0 ? v : (v * (1 / 8 + 1 / 3)) / 2)) },
    { args: [x, { lower: 0.2, upper: 0.2, training: true }], gives: each((v) => (v > 0 ? v : v * 0.2)) },
  ],
  'torch.nn.functional.normalize': [
    {
      args: [
        t([
          [3, 4],
          [6, 8],
        ]),
      ],
      gives: t([
        [0.6, 0.8],
        [0.6, 0.8],
      ]),
    },
    {
      args: [
        t([
          [3, 4],
          [1, -4],
        ]),
        { p: 1, dim: 0 },
      ],
      gives: t([
        [0.75, 0.5],
        [0.25, -0.5],
      ]),
    },
  ],
} satisfies ValueCases
