// New tensors with strides that the program chooses.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import type { DType } from '../../kernels/index.ts'
import { formatShape, getDefaultDtype, inverseOrder } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { asLeaf, checkSize, empty } from './creation.ts'
import type { CreationOptions } from './creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { sizeAt } from '../shared/shapes.ts'
import { permute } from '../view/permute.ts'
import { asStrided } from '../view/strided.ts'

function withStrides(op: string, size: readonly number[], stride: readonly number[], dtype: DType, requiresGrad: boolean): Tensor {
  checkSize(op, size)
  if (size.length !== stride.length)
    throw new ShapeError(`${op}: size and stride must have the same length, got ${formatShape(size)} and ${formatShape(stride)}.`)
  if (stride.some((s) => !Number.isInteger(s) || s < 0))
    throw new ArgumentError(`${op}: argument 'stride' must hold integers of at least 0, got ${formatShape(stride)}.`)
  const elements = size.includes(0) ? 0 : size.reduce((last, n, d) => last + (n - 1) * sizeAt(stride, d), 1)
  return asLeaf(op, asStrided(empty([elements], { dtype }), size, stride), requiresGrad)
}

/**
 * A tensor with these strides, whose values are unspecified. PyTorch's `torch.empty_strided`.
 *
 * Shape: `size`.
 *
 * @throws ShapeError if a size is negative, or there is not one stride for each size.
 * @throws ArgumentError if a stride is negative, or `requiresGrad` is set for a dtype that is not floating.
 * @example torch.emptyStrided([2, 3], [1, 2]).stride() // [1, 2]
 */
export const emptyStrided: OpFunction<(size: readonly number[], stride: readonly number[], options?: CreationOptions) => Tensor> = defineOp({
  schema: 'empty_strided(int[] size, int[] stride, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (size, stride, dtype, requiresGrad) => withStrides('torch.empty_strided', size, stride, dtype ?? getDefaultDtype(), requiresGrad),
})

/**
 * A tensor in the dtype of `self` with these strides, whose values are unspecified. PyTorch's `Tensor.new_empty_strided`.
 *
 * Shape: `size`.
 *
 * @throws ShapeError if a size is negative, or there is not one stride for each size.
 * @throws ArgumentError if a stride is negative, or `requiresGrad` is set for a dtype that is not floating.
 * @example torch.tensor([1, 2]).newEmptyStrided([2, 3], [1, 2]).shape // [2, 3]
 */
export const newEmptyStrided: OpFunction<(self: Tensor, size: readonly number[], stride: readonly number[], options?: CreationOptions) => Tensor> =
  defineOp({
    schema: 'new_empty_strided(Tensor self, int[] size, int[] stride, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
    namespace: 'torch.Tensor',
    method: true,
    decompose: (self, size, stride, dtype, requiresGrad) =>
      withStrides('torch.Tensor.new_empty_strided', size, stride, dtype ?? self.dtype, requiresGrad),
  })

/**
 * A tensor whose dimensions lie in memory in the order of `physicalLayout`, the outermost first. Its values are unspecified. PyTorch's `torch.empty_permuted`.
 *
 * Shape: `size`.
 *
 * @throws ShapeError if a size is negative.
 * @throws ArgumentError unless `physicalLayout` names each dimension once, or if `requiresGrad` is set for a dtype that is not floating.
 * @example torch.emptyPermuted([2, 3, 5], [0, 2, 1]).stride() // [15, 1, 3]
 */
export const emptyPermuted: OpFunction<(size: readonly number[], physicalLayout: readonly number[], options?: CreationOptions) => Tensor> = defineOp({
  schema: 'empty_permuted(int[] size, int[] physical_layout, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (size, layout, dtype, requiresGrad) => {
    const op = 'torch.empty_permuted'
    checkSize(op, size)
    const isOrder = layout.length === size.length && size.every((_, d) => layout.includes(d))
    if (!isOrder)
      throw new ArgumentError(
        `${op}: physical_layout must name each of the ${size.length} dimensions once, counted from 0, got ${formatShape(layout)}.`,
      )
    const inMemory = empty(
      layout.map((d) => sizeAt(size, d)),
      { dtype: dtype ?? getDefaultDtype() },
    )
    return asLeaf(op, permute(inMemory, inverseOrder(layout)), requiresGrad)
  },
})
