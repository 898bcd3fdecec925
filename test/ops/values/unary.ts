// Functions of one value.
import { each, erf, ints, sample, t } from '../plain.ts'
import type { Plain } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const x = sample([2, 3], 1)
const positive = sample([2, 3], 2, 0.3, 2)
const wide = sample([7], 3, -12, 12)
const even = (v: number): number => (Math.abs(v % 1) === 0.5 ? 2 * Math.round(v / 2) : Math.round(v))
const ofIntegers = (fn: (v: number) => number) => ({ args: [ints([0, 1, 4])], gives: each((v) => Math.fround(fn(v)), 'float32') })
const halves = t([0.5, 1.5, 2.5, -0.5, -1.5, 2, -2.7, 2.3])
const rounding = (fn: (v: number) => number) => [
  { args: [x], gives: each(fn) },
  { args: [wide], gives: each(fn) },
  { args: [halves], gives: each(fn), gradient: (a: Plain) => a.map(() => 0) },
]

export default {
  'torch.exp': [{ args: [x], gives: each(Math.exp) }, { args: [wide], gives: each(Math.exp) }, ofIntegers(Math.exp)],
  'torch.expm1': [
    { args: [x], gives: each(Math.expm1) },
    { args: [t([1e-6, -1e-6, 0])], gives: each(Math.expm1), tolerance: 1e-12 },
  ],
  'torch.log': [
    { args: [positive], gives: each(Math.log) },
    { args: [t([0, 1, Infinity, -1])], gives: t([-Infinity, 0, Infinity, NaN]), noGradient: 'infinite' },
  ],
  'torch.log1p': [
    { args: [positive], gives: each(Math.log1p) },
    { args: [t([1e-6, -1e-6, 0])], gives: each(Math.log1p), tolerance: 1e-12 },
  ],
  'torch.sqrt': [{ args: [positive], gives: each(Math.sqrt) }, ofIntegers(Math.sqrt)],
  'torch.rsqrt': [{ args: [positive], gives: each((v) => 1 / Math.sqrt(v)) }],
  'torch.reciprocal': [
    { args: [positive], gives: each((v) => 1 / v) },
    { args: [x], gives: each((v) => 1 / v) },
  ],
  'torch.sin': [
    { args: [x], gives: each(Math.sin) },
    { args: [wide], gives: each(Math.sin) },
  ],
  'torch.cos': [
    { args: [x], gives: each(Math.cos) },
    { args: [wide], gives: each(Math.cos) },
  ],
  'torch.tanh': [
    { args: [x], gives: each(Math.tanh) },
    { args: [wide], gives: each(Math.tanh) },
  ],
  'torch.sigmoid': [
    { args: [x], gives: each((v) => 1 / (1 + Math.exp(-v))) },
    { args: [wide], gives: each((v) => 1 / (1 + Math.exp(-v))) },
  ],
  'torch.erf': [
    { args: [x], gives: each(erf) },
    { args: [sample([6], 4, -5, 5)], gives: each(erf) },
  ],
  'torch.floor': rounding(Math.floor),
  'torch.ceil': rounding(Math.ceil),
  'torch.round': rounding(even),
  'torch.trunc': rounding(Math.trunc),
  'torch.square': [
    { args: [x], gives: each((v) => v * v) },
    { args: [ints([-3, 2])], gives: ints([9, 4]) },
  ],
} satisfies ValueCases
