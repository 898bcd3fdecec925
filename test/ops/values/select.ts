// Choosing between values, bits, and casts.
import { each, ints, longs, sample, t } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const [x, y] = [sample([2, 3], 1), sample([2, 3], 2)]
const mask = t([
  [true, false, true],
  [false, true, true],
])
const [i, j] = [ints([12, 5, -7, 0]), ints([10, 3, 2, 31])]
const bits = (fn: (a: number, b: number) => number) => each((a, b) => fn(a, b) | 0, 'int')

export default {
  'torch.where': [
    { args: [mask, x, y], gives: each((c, a, b) => (c ? a : b)) },
    { args: [mask, x, sample([3], 5)], gives: each((c, a, b) => (c ? a : b)) },
    { args: [mask, 2, x], gives: each((c, a, b) => (c ? a : b)) },
    { args: [mask, ints([1, 2, 3]), 0], gives: each((c, a) => (c ? a : 0), 'int') },
  ],
  'torch.masked_fill': [
    { args: [x, mask, -7], gives: each((a, c, v) => (c ? v : a)) },
    { args: [x, t([true, false, true]), 0.5], gives: each((a, c, v) => (c ? v : a)) },
  ],
  'torch.clamp': [
    { args: [x, -0.5, 0.7], gives: each((a) => Math.min(Math.max(a, -0.5), 0.7)) },
    { args: [x, null, 0.2], gives: each((a) => Math.min(a, 0.2)) },
    { args: [x, { min: 0.1 }], gives: each((a) => Math.max(a, 0.1)) },
    { args: [x, { min: 2, max: 1 }], gives: each(() => 1) },
    { args: [ints([1, 5, 9]), 2, 8], gives: ints([2, 5, 8]) },
  ],
  'torch.bitwise_and': [
    { args: [i, j], gives: bits((a, b) => a & b) },
    { args: [i, 6], gives: bits((a, b) => a & b) },
    { args: [t([true, true, false]), t([true, false, false])], gives: t([true, false, false]) },
  ],
  'torch.bitwise_or': [
    { args: [i, j], gives: bits((a, b) => a | b) },
    { args: [t([true, true, false]), t([true, false, false])], gives: t([true, true, false]) },
  ],
  'torch.bitwise_xor': [
    { args: [i, j], gives: bits((a, b) => a ^ b) },
    { args: [t([true, true, false]), t([true, false, false])], gives: t([false, true, false]) },
  ],
  'torch.bitwise_not': [
    { args: [i], gives: bits((a) => ~a) },
    { args: [t([true, false])], gives: t([false, true]) },
  ],
  'torch.bitwise_left_shift': [
    { args: [i, j], gives: bits((a, b) => a << b) },
    { args: [ints([1, 5, -3]), t([64, -1, 100], 'int64')], gives: longs([0, 0, 0]) },
  ],
  'torch.bitwise_right_shift': [
    { args: [i, j], gives: bits((a, b) => a >> b) },
    { args: [ints([1, 5, -3]), t([64, -1, 100], 'int64')], gives: longs([0, 0, -1]) },
  ],
  'torch.ops.tensorfx.to_copy': [
    { args: [t([1.7, -1.7, NaN, 3e9], 'float64'), 'int32'], gives: t([1, -1, 0, 2147483647], 'int32') },
    { args: [ints([1, 2, 100]), 'float16'], gives: t([1, 2, 100], 'float16') },
    { args: [t([1.5, 257, 1e40], 'float64'), 'bfloat16'], gives: t([1.5, 256, Infinity], 'bfloat16') },
    { args: [ints([0, 3]), 'bool'], gives: t([false, true]) },
    { args: [x, 'float64'], gives: each((a) => a, 'float64') },
  ],
  'torch.Tensor.to': [
    { args: [x, 'float32'], gives: each((a) => Math.fround(a), 'float32'), noGradient: 'float32 is too coarse for finite differences' },
    { args: [x, { dtype: 'float64' }], gives: each((a) => a, 'float64') },
    { args: [x, 'cpu'], gives: each((a) => a) },
    { args: [t([true, false]), 'int32'], gives: t([1, 0], 'int32') },
  ],
  'torch.Tensor.float': [{ args: [ints([1, -2])], gives: t([1, -2], 'float32') }],
  'torch.Tensor.double': [
    { args: [ints([1, -2])], gives: t([1, -2], 'float64') },
    { args: [x], gives: each((a) => a, 'float64') },
  ],
  'torch.Tensor.int': [{ args: [t([1.7, -1.7])], gives: t([1, -1], 'int32'), noGradient: 'integers' }],
  'torch.Tensor.half': [
    { args: [t([1.5, 0.1, 70000], 'float64')], gives: t([1.5, 0.0999755859375, Infinity], 'float16') },
    { args: [ints([1, 2])], gives: t([1, 2], 'float16') },
  ],
  'torch.Tensor.bfloat16': [
    { args: [t([1.5, 0.1, 70000], 'float64')], gives: t([1.5, 0.10009765625, 70144], 'bfloat16') },
    { args: [ints([1, 2])], gives: t([1, 2], 'bfloat16') },
  ],
  'torch.Tensor.char': [{ args: [t([1.7, -1.7])], gives: t([1, -1], 'int8'), noGradient: 'integers' }],
  'torch.Tensor.byte': [{ args: [t([1.7, 255])], gives: t([1, 255], 'uint8'), noGradient: 'integers' }],
  'torch.Tensor.short': [{ args: [t([1.7, -1.7])], gives: t([1, -1], 'int16'), noGradient: 'integers' }],
  'torch.Tensor.long': [{ args: [t([1.7, -1.7])], gives: longs([1, -1]), noGradient: 'integers' }],
  'torch.Tensor.type': [
    { args: [ints([1, -2]), 'float64'], gives: t([1, -2], 'float64') },
    { args: [x, 'float64'], gives: each((a) => a, 'float64') },
  ],
  'torch.Tensor.bool': [{ args: [t([0.5, 0, -1])], gives: t([true, false, true]), noGradient: 'booleans' }],
} satisfies ValueCases
