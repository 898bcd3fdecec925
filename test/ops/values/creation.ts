// Creating tensors.
import { build, ints, sample, t } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const like = sample([2, 3], 1)
const filled = (shape: readonly number[], value: number) => build(shape, () => value)

export default {
  'torch.ops.tensorfx.full': [
    {
      args: [[2, 2], 3, 'int32'],
      gives: ints([
        [3, 3],
        [3, 3],
      ]),
    },
    { args: [[], 1.5, 'float64'], gives: t(1.5, 'float64') },
    { args: [[0, 2], 1, 'float32'], gives: filled([0, 2], 1) },
  ],
  'torch.full': [
    { args: [[2], 2.5], gives: t([2.5, 2.5]) },
    { args: [[2], true], gives: t([true, true]) },
    { args: [[2], 7, { dtype: 'int32' }], gives: ints([7, 7]) },
  ],
  'torch.zeros': [
    { args: [[2, 3]], gives: filled([2, 3], 0) },
    { args: [2, 1, { dtype: 'int32' }], gives: ints([[0], [0]]) },
  ],
  'torch.ones': [
    { args: [3], gives: t([1, 1, 1]) },
    { args: [[2], { dtype: 'bool' }], gives: t([true, true]) },
  ],
  'torch.empty': [{ args: [[2, 2]], gives: filled([2, 2], 0) }],
  'torch.empty_strided': [
    {
      args: [
        [2, 3],
        [1, 2],
      ],
      gives: filled([2, 3], 0),
    },
    { args: [[2, 0], [7, 8], { dtype: 'int32' }], gives: filled([2, 0], 0).as('int32') },
    { args: [[], []], gives: filled([], 0) },
  ],
  'torch.empty_permuted': [
    {
      args: [
        [2, 3],
        [1, 0],
      ],
      gives: filled([2, 3], 0),
    },
    { args: [[], [], { dtype: 'bool' }], gives: filled([], 0).as('bool') },
  ],
  'torch.Tensor.new_empty_strided': [
    { args: [ints([5, 6]), [2, 3], [3, 1]], gives: filled([2, 3], 0).as('int') },
    { args: [like, [2], [0], { dtype: 'int32' }], gives: filled([2], 0).as('int32') },
  ],
  'torch.Tensor.new_zeros': [
    { args: [ints([5, 6]), [2, 3]], gives: filled([2, 3], 0).as('int') },
    { args: [like, [2], { dtype: 'int32' }], gives: filled([2], 0).as('int32') },
  ],
  'torch.Tensor.new_ones': [{ args: [ints([5, 6]), [2, 3]], gives: filled([2, 3], 1).as('int') }],
  'torch.Tensor.new_empty': [{ args: [ints([5, 6]), [2, 3]], gives: filled([2, 3], 0).as('int') }],
  'torch.Tensor.new_full': [
    { args: [ints([5, 6]), [2, 3], 7], gives: filled([2, 3], 7).as('int') },
    { args: [like, [2], 1, { dtype: 'bool' }], gives: filled([2], 1).as('bool') },
  ],
  'torch.Tensor.type_as': [{ args: [ints([5, 6]), t([true])], gives: filled([2], 1).as('bool') }],
  'torch.zeros_like': [
    { args: [like], gives: filled([2, 3], 0) },
    { args: [like, { dtype: 'int32' }], gives: filled([2, 3], 0).as('int32') },
  ],
  'torch.ones_like': [
    { args: [like], gives: filled([2, 3], 1) },
    { args: [ints([5, 6])], gives: ints([1, 1]) },
  ],
  'torch.full_like': [
    { args: [like, -2], gives: filled([2, 3], -2) },
    { args: [ints([5]), 9], gives: ints([9]) },
  ],
  'torch.empty_like': [{ args: [like], gives: filled([2, 3], 0) }],
  'torch.scalar_tensor': [
    { args: [2.5], gives: t(2.5) },
    { args: [2, { dtype: 'int32' }], gives: ints(2) },
  ],
  'torch.ops.tensorfx.range': [
    { args: [1, 2, 3, 'int32'], gives: ints([1, 3, 5]) },
    { args: [0.5, -0.25, 4, 'float32'], gives: t([0.5, 0.25, 0, -0.25]) },
    { args: [0, 1, 0, 'int32'], gives: ints([]) },
  ],
  'torch.arange': [
    { args: [4], gives: t([0, 1, 2, 3]) },
    { args: [1, 4, { dtype: 'int32' }], gives: ints([1, 2, 3]) },
    { args: [1, 2, 0.4], gives: t([1, 1.4, 1.8]) },
    { args: [3, -2, -2], gives: t([3, 1, -1]) },
    { args: [2, 2], gives: t([]) },
  ],
  'torch.linspace': [
    { args: [0, 1, 5], gives: t([0, 0.25, 0.5, 0.75, 1]) },
    { args: [3, 7, 1], gives: t([3]) },
    { args: [1, -1, 3, { dtype: 'float64' }], gives: t([1, 0, -1], 'float64') },
  ],
  'torch.eye': [
    {
      args: [2],
      gives: t([
        [1, 0],
        [0, 1],
      ]),
    },
    {
      args: [2, 3, { dtype: 'int32' }],
      gives: ints([
        [1, 0, 0],
        [0, 1, 0],
      ]),
    },
    { args: [3, { m: 1 }], gives: t([[1], [0], [0]]) },
  ],
} satisfies ValueCases
