// Arithmetic.
import { each, ints, sample, t } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const [x, y] = [sample([2, 3], 1), sample([2, 3], 2)]
const row = sample([3], 3)
const column = sample([2, 1], 4)
const positive = sample([2, 3], 5, 0.3, 2)
const [i, j] = [ints([7, -7, 5, -5]), ints([3, 3, -2, -2])]
const mod = (a: number, b: number): number => a - b * Math.floor(a / b)

export default {
  'torch.add': [
    { args: [x, y], gives: each((a, b) => a + b) },
    { args: [x, row, { alpha: 2.5 }], gives: each((a, b) => a + 2.5 * b) },
    { args: [column, row], gives: each((a, b) => a + b) },
    { args: [x, 3], gives: each((a, b) => a + b) },
    { args: [ints([1, 2]), 0.5], gives: t([1.5, 2.5], 'float32') },
    { args: [i, j, { alpha: 10 }], gives: ints([37, 23, -15, -25]) },
    { args: [t([true, false]), t([true, true])], gives: t([true, true]) },
    { args: [sample([0, 3], 1), 1], gives: each((a, b) => a + b) },
  ],
  'torch.sub': [
    { args: [x, y], gives: each((a, b) => a - b) },
    { args: [x, column, { alpha: 2 }], gives: each((a, b) => a - 2 * b) },
    { args: [i, 1], gives: ints([6, -8, 4, -6]) },
  ],
  'torch.mul': [
    { args: [x, y], gives: each((a, b) => a * b) },
    { args: [x, row], gives: each((a, b) => a * b) },
    { args: [x, -2.5], gives: each((a, b) => a * b) },
    { args: [i, j], gives: ints([21, -21, -10, 10]) },
  ],
  'torch.div': [
    { args: [x, positive], gives: each((a, b) => a / b) },
    { args: [x, sample([], 3, 0.5, 1)], gives: each((a, b) => a / b) },
    { args: [x, 0.3, { roundingMode: 'floor' }], gives: each((a, b) => Math.floor(a / b)) },
    { args: [x, 0.3, { roundingMode: 'trunc' }], gives: each((a, b) => Math.trunc(a / b)) },
    { args: [ints([7, -7]), 2], gives: t([3.5, -3.5], 'float32') },
    { args: [t([1, -1, 0]), t([0, 0, 0])], gives: t([Infinity, -Infinity, NaN]), noGradient: 'infinite' },
  ],
  'torch.remainder': [
    { args: [x, 0.7], gives: each(mod) },
    { args: [x, sample([2, 3], 9, 0.4, 0.9)], gives: each(mod) },
    { args: [i, j], gives: ints([1, 2, -1, -1]) },
    { args: [t([-(2 ** 31), -(2 ** 31), 7], 'int32'), t([-1, 3, -1], 'int32')], gives: t([0, 1, 0], 'int32') },
  ],
  'torch.fmod': [
    { args: [x, 0.7], gives: each((a, b) => a % b) },
    { args: [x, sample([2, 3], 9, 0.4, 0.9)], gives: each((a, b) => a % b) },
    { args: [i, j], gives: ints([1, -1, 1, -1]) },
    { args: [t([-(2 ** 31), -(2 ** 31), -7], 'int32'), t([-1, 3, 7], 'int32')], gives: t([0, -2, 0], 'int32') },
    { args: [t([2, -2, Infinity, 1]), t([Infinity, Infinity, 2, 0])], gives: t([2, -2, NaN, NaN]), noGradient: 'infinite' },
  ],
  'torch.floor_divide': [
    { args: [x, 0.7], gives: each((a, b) => Math.floor(a / b)), noGradient: 'PyTorch has none' },
    { args: [i, j], gives: ints([2, -3, -3, 2]) },
    { args: [t([Infinity, 1, -1, 2, -2]), t([2, 0, 0, Infinity, Infinity])], gives: t([NaN, Infinity, -Infinity, 0, -1]), noGradient: 'infinite' },
  ],
  'torch.pow': [
    { args: [2, x], gives: each((a, b) => a ** b) },
    { args: [3, ints([0, 2])], gives: ints([1, 9]) },
    { args: [0, t([0, 2])], gives: t([1, 0]) },
    { args: [positive, x], gives: each((a, b) => a ** b) },
    ...[0, 1, 2, 3, -1].map((exponent) => ({ args: [x, exponent], gives: each((a, b) => a ** b) })),
    ...[0.5, 2.5, -0.5].map((exponent) => ({ args: [positive, exponent], gives: each((a, b) => a ** b) })),
    { args: [ints([2, -3]), 3], gives: ints([8, -27]) },
    { args: [t([0, 0]), t([2, 3])], gives: t([0, 0]), noGradient: '0^x has no slope to the left of 0' },
  ],
  'torch.neg': [
    { args: [x], gives: each((a) => -a) },
    { args: [i], gives: ints([-7, 7, -5, 5]) },
  ],
  'torch.abs': [
    { args: [x], gives: each(Math.abs) },
    { args: [i], gives: ints([7, 7, 5, 5]) },
  ],
  'torch.sign': [
    { args: [x], gives: each(Math.sign) },
    { args: [ints([4, 0, -4])], gives: ints([1, 0, -1]) },
  ],
  'torch.maximum': [
    { args: [x, y], gives: each(Math.max) },
    { args: [t([NaN, 1, 2]), t([1, NaN, 3])], gives: t([NaN, NaN, 3]), noGradient: 'NaN' },
  ],
  'torch.minimum': [
    { args: [x, y], gives: each(Math.min) },
    { args: [t([NaN, 1, 2]), t([1, NaN, 3])], gives: t([NaN, NaN, 2]), noGradient: 'NaN' },
  ],
  'torch.lerp': [
    { args: [x, y, 0.3], gives: each((a, b, w) => a + w * (b - a)) },
    { args: [x, y, row], gives: each((a, b, w) => a + w * (b - a)) },
  ],
  'torch.addcmul': [{ args: [x, row, column, { value: 0.5 }], gives: each((a, b, c) => a + 0.5 * b * c) }],
  'torch.addcdiv': [
    { args: [x, y, positive, { value: 0.5 }], gives: each((a, b, c) => a + (0.5 * b) / c) },
    { args: [x, y, positive], gives: each((a, b, c) => a + b / c) },
  ],
} satisfies ValueCases
