// In-place operators, and the functional forms of copies and fills.
import { each, ints, sample, t } from '../plain.ts'
import type { Plain } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const [x, y] = [sample([2, 3], 1), sample([2, 3], 2)]
const row = sample([3], 3)
const positive = sample([2, 3], 5, 0.3, 2)
/** PyTorch keeps a copy; here backward throws. */
const OVERWRITTEN = 'the gradient needs the overwritten values'

export default {
  'torch.Tensor.add_': [
    { args: [x, row, { alpha: 2 }], gives: each((a, b) => a + 2 * b) },
    { args: [x, 3], gives: each((a, b) => a + b) },
    { args: [ints([1, 2]), 3], gives: ints([4, 5]) },
  ],
  'torch.Tensor.sub_': [{ args: [x, y, { alpha: 0.5 }], gives: each((a, b) => a - 0.5 * b) }],
  'torch.Tensor.mul_': [{ args: [x, row], gives: each((a, b) => a * b), constants: [1] }],
  'torch.Tensor.div_': [
    { args: [x, 0.7], gives: each((a, b) => a / b) },
    { args: [x, positive], gives: each((a, b) => a / b), noGradient: OVERWRITTEN },
    { args: [x, 0.7, { roundingMode: 'floor' }], gives: each((a, b) => Math.floor(a / b)) },
  ],
  'torch.Tensor.neg_': [{ args: [x], gives: each((a) => -a) }],
  'torch.Tensor.sqrt_': [{ args: [positive], gives: each(Math.sqrt) }],
  'torch.Tensor.exp_': [{ args: [x], gives: each(Math.exp) }],
  'torch.relu_': [{ args: [x], gives: each((a) => Math.max(a, 0)) }],
  'torch.Tensor.clamp_': [
    { args: [x, -0.5, 0.5], gives: each((a) => Math.min(Math.max(a, -0.5), 0.5)), noGradient: OVERWRITTEN },
    { args: [x, null, 0.5], gives: each((a) => Math.min(a, 0.5)), noGradient: OVERWRITTEN },
  ],
  'torch.Tensor.lerp_': [{ args: [x, y, 0.3], gives: each((a, b, w) => a + w * (b - a)) }],
  'torch.Tensor.addcmul_': [{ args: [x, y, row, { value: 2 }], gives: each((a, b, c) => a + 2 * b * c) }],
  'torch.Tensor.addcdiv_': [{ args: [x, y, positive], gives: each((a, b, c) => a + b / c) }],
  'torch.ops.tensorfx.copy': [
    { args: [x, row], gives: each((_, b) => b) },
    { args: [ints([1, 2]), t([1.7, -1.7])], gives: ints([1, -1]) },
  ],
  'torch.Tensor.copy_': [
    { args: [x, row], gives: each((_, b) => b) },
    { args: [ints([1, 2]), t([1.7, -1.7])], gives: ints([1, -1]) },
  ],
  'torch.ops.tensorfx.fill': [{ args: [x, 2.5], gives: each(() => 2.5) }],
  'torch.Tensor.fill_': [
    { args: [x, 2.5], gives: each(() => 2.5) },
    { args: [t([true, false]), 1], gives: t([true, true]) },
  ],
  'torch.Tensor.zero_': [{ args: [x], gives: each(() => 0) }],
  'torch.ops.tensorfx.uniform_': [
    { args: [x, 3, 3], gives: (a: Plain) => a.map(() => 3), noGradient: 'random' },
    { args: [x, { from: -1, to: -1 }], gives: (a: Plain) => a.map(() => -1), noGradient: 'random' },
  ],
  'torch.ops.tensorfx.normal_': [{ args: [x, 3, 0], gives: (a: Plain) => a.map(() => 3), noGradient: 'random' }],
} satisfies ValueCases
