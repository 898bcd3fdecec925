// The inverse of pooling by maximum.
import { sizeAdd, sizeMul, sizeProduct, sizeSub } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import { zeros } from '../../create/creation.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { reshape } from '../../view/reshape.ts'
import { scatterValues } from '../../view/scatter.ts'
import { checkSpatial, sizesOf } from './windowTables.ts'
import type { Sizes } from './windowTables.ts'

const F = 'torch.nn.functional'

/** Options of `maxUnpool1d`, `maxUnpool2d` and `maxUnpool3d`. */
export interface MaxUnpoolOptions {
  readonly stride?: Sizes | null
  readonly padding?: Sizes
  /** The sizes of the result, where the windows leave a choice. */
  readonly outputSize?: readonly number[] | null
}

type MaxUnpool = (input: Tensor, indices: Tensor, kernelSize: Sizes, options?: MaxUnpoolOptions) => Tensor

function unpooled(
  op: string,
  input: Tensor,
  indices: Tensor,
  spatial: number,
  given: { kernel: unknown; stride: unknown; padding: unknown; size: unknown },
): Tensor {
  checkSpatial(op, input, spatial)
  const own = input.symSizes.slice(-spatial)
  const kernel = sizesOf(op, 'kernel_size', given.kernel, spatial, 1)
  const stride = given.stride === null ? kernel : sizesOf(op, 'stride', given.stride, spatial, 1)
  const padding = sizesOf(op, 'padding', given.padding, spatial, 0)
  const sizes =
    given.size === null
      ? own.map((size, d) => sizeAdd(sizeMul(sizeSub(size, 1), stride[d] ?? 1), (kernel[d] ?? 1) - 2 * (padding[d] ?? 0)))
      : sizesOf(op, 'output_size', Array.isArray(given.size) ? given.size.slice(-spatial) : given.size, spatial, 1)
  const lead = input.symSizes.slice(0, -spatial)
  const flat = (t: Tensor): Tensor => reshape(t, [...lead, sizeProduct(own)])
  const empty = zeros([...lead, sizeProduct(sizes)], { dtype: input.dtype })
  return reshape(scatterValues(empty, -1, flat(indices), flat(input), 'set'), [...lead, ...sizes])
}

/**
 * The values at their positions in a line of zeros: undoes maxPool1d with its indices. PyTorch's `F.max_unpool1d`.
 *
 * Shapes: `input` and `indices` [.., L]; the length of the result is `outputSize`, or (L - 1) stride - 2 padding + kernelSize.
 *
 * @throws ShapeError unless the input has 2 or 3 dimensions.
 * @throws ArgumentError if an index is out of range.
 * @example F.maxUnpool1d(torch.tensor([[7, 3]]), torch.tensor([[1, 2]]).long(), 2).toArray() // [[0, 7, 3, 0]]
 */
export const maxUnpool1d: OpFunction<MaxUnpool> = defineOp({
  schema: 'max_unpool1d(Tensor self, Tensor indices, any kernel_size, any? stride=None, any padding=0, any? output_size=None) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (input, indices, kernel, stride, padding, size) => unpooled(`${F}.max_unpool1d`, input, indices, 1, { kernel, stride, padding, size }),
})

/**
 * The values at their positions in an image of zeros: undoes maxPool2d with its indices. PyTorch's `F.max_unpool2d`.
 *
 * Shapes: `input` and `indices` [.., H, W]; the sizes of the result are `outputSize`, or those that the windows imply.
 *
 * @throws ShapeError unless the input has 3 or 4 dimensions.
 * @throws ArgumentError if an index is out of range.
 * @example F.maxUnpool2d(torch.tensor([[[7]]]), torch.tensor([[[2]]]).long(), 2).toArray() // [[[0, 0], [7, 0]]]
 */
export const maxUnpool2d: OpFunction<MaxUnpool> = defineOp({
  schema: 'max_unpool2d(Tensor self, Tensor indices, any kernel_size, any? stride=None, any padding=0, any? output_size=None) -> Tensor',
  namespace: 'torch.nn.functional',
  autocast: 'float32',
  decompose: (input, indices, kernel, stride, padding, size) => unpooled(`${F}.max_unpool2d`, input, indices, 2, { kernel, stride, padding, size }),
})

/**
 * The values at their positions in a volume of zeros: undoes maxPool3d with its indices. PyTorch's `F.max_unpool3d`.
 *
 * Shapes: `input` and `indices` [.., D, H, W]; the sizes of the result are `outputSize`, or those that the windows imply.
 *
 * @throws ShapeError unless the input has 4 or 5 dimensions.
 * @throws ArgumentError if an index is out of range.
 * @example F.maxUnpool3d(torch.tensor([[[[7]]]]), torch.tensor([[[[1]]]]).long(), [1, 1, 2]).toArray() // [[[[0, 7]]]]
 */
export const maxUnpool3d: OpFunction<MaxUnpool> = defineOp({
  schema: 'max_unpool3d(Tensor self, Tensor indices, any kernel_size, any? stride=None, any padding=0, any? output_size=None) -> Tensor',
  namespace: 'torch.nn.functional',
  autocast: 'float32',
  decompose: (input, indices, kernel, stride, padding, size) => unpooled(`${F}.max_unpool3d`, input, indices, 3, { kernel, stride, padding, size }),
})
