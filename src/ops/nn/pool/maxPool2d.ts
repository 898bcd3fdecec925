// The maximum over windows of images, and where it is.
import { isWatched } from '../../../dispatch/index.ts'
import { ShapeError } from '../../../errors/index.ts'
import type { Size } from '../../../protocol/index.ts'
import { Tensor, formatShape, numbersOf, sizeEq, sizeProduct } from '../../../tensor/index.ts'
import type { TensorSpec } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { lateOperator } from '../../define/late.ts'
import type { Op } from '../../generated/signatures.ts'
import { launch } from '../../eager/launch.ts'
import { to } from '../../pointwise/cast.ts'
import { checkOperand, sizeAt } from '../../shared/shapes.ts'
import { gather } from '../../view/indexing.ts'
import { checkIndexType } from '../../view/indices.ts'
import { contiguous, reshape } from '../../view/reshape.ts'
import { checkedPair, checkedStride, planeCount, planeOf, pooledShape, symbolicPlaneOf } from './plane.ts'
import type { WindowArguments } from './plane.ts'
import { maxPoolBackwardKernel, maxPoolKernel } from './poolKernels.ts'
import type { Pair } from '../windows.ts'

const NAME = 'torch.nn.functional.max_pool2d'

const heightAndWidth = ({ symSizes }: Tensor): readonly [Size, Size] => [sizeAt(symSizes, -2), sizeAt(symSizes, -1)]

function valuesAndIndices(input: Tensor, windows: WindowArguments): readonly [TensorSpec<Size>, TensorSpec<Size>] {
  const shape = pooledShape(input.symSizes, symbolicPlaneOf(NAME, input, windows))
  return [
    { shape, dtype: input.dtype },
    { shape, dtype: 'int64' },
  ]
}

function backwardSpec(grad: Tensor, indices: Tensor, height: Size, width: Size): TensorSpec<Size> {
  if (grad.ndim < 2)
    throw new ShapeError(`${NAME}: argument 'grad' must have at least 2 dimensions [.., OH, OW], got shape ${formatShape(grad.symSizes)}.`)
  checkIndexType(NAME, 'indices', indices)
  checkOperand(NAME, 'indices', indices, grad.symSizes, indices.dtype)
  return { shape: [...grad.symSizes.slice(0, -2), height, width], dtype: grad.dtype }
}

/**
 * The gradient of max pooling: each gradient goes to the position of its maximum. Internal; PyTorch's `aten.max_pool2d_with_indices_backward`.
 *
 * Shapes: `grad` and `indices` [.., OH, OW] give [.., height, width]. Indices outside of the plane are ignored.
 *
 * @throws ShapeError if the shapes differ, ArgumentError if a size is not an integer.
 * @example torch.ops.tensorfx.maxPool2dBackward(torch.tensor([[[5]]]), torch.tensor([[[3]]]).long(), 2, 2).toArray() // [[[0, 0], [0, 5]]]
 */
export const maxPool2dBackward: Op['maxPool2dBackward'] = defineOp({
  schema: 'max_pool2d_backward(Tensor grad, Tensor indices, SymInt height, SymInt width) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  vmap: { folded: ['grad', 'indices'], rank: 4 },
  onnx: { none: 'it computes a gradient, and models are exported for inference' },
  autocast: 'as is',
  meta: backwardSpec,
  halvesInFloat32: true,
  kernel: (grad, indices, height, width) => {
    const out = Tensor.empty(numbersOf(backwardSpec(grad, indices, height, width)).shape, grad.dtype)
    if (sizeEq(out.symNumel, 0)) return out
    const planes = planeCount(grad)
    const outPlane = planes === 0 ? 0 : grad.numel / planes
    launch(
      maxPoolBackwardKernel(grad.dtype),
      [out, contiguous(grad), contiguous(to(indices, 'int32'))],
      [out.numel, planes, height * width, outPlane],
    )
    return out
  },
  derivative: ([g], { args: [grad, indices] }) => {
    const lead = grad.symSizes.slice(0, -2)
    const flat = reshape(g, [...lead, sizeProduct(heightAndWidth(g))])
    return [reshape(gather(flat, -1, reshape(indices, [...lead, sizeProduct(heightAndWidth(grad))])), grad.symSizes), null, null, null]
  },
})

/**
 * The maximum over windows and its flat position in each plane: [values, indices]; `maxPool2d` is the public form. Internal; PyTorch's
 * `aten.max_pool2d_with_indices`.
 *
 * Shapes: [.., H, W] gives twice [.., OH, OW]. The indices are int64.
 *
 * @throws ShapeError unless the input has 3 or 4 dimensions and the window fits.
 * @throws ArgumentError if a window size is out of range.
 * @example torch.ops.tensorfx.maxPool2dWithIndices(torch.tensor([[[1, 7], [3, 2]]]), 2, null, 0, 1, false).map((t) => t.toArray()) // [[[[7]]], [[[1]]]]
 */
export const maxPool2dWithIndices: OpFunction<
  (input: Tensor, kernelSize: Pair, stride: Pair | null, padding: Pair, dilation: Pair, ceilMode: boolean) => readonly [Tensor, Tensor]
> = defineOp({
  schema: 'max_pool2d_with_indices(Tensor self, any kernel_size, any? stride, any padding, any dilation, bool ceil_mode) -> (Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  vmap: { folded: ['self'], rank: 4 },
  onnx: 'maxPool',
  autocast: 'as is',
  meta: (input, kernelSize, stride, padding, dilation, ceilMode) => valuesAndIndices(input, { kernelSize, stride, padding, dilation, ceilMode }),
  kernel: (input, kernelSize, stride, padding, dilation, ceilMode): readonly [Tensor, Tensor] => {
    const plane = planeOf(NAME, input, { kernelSize, stride, padding, dilation, ceilMode })
    const shape = pooledShape(input.sizes, plane)
    const [out, indices] = [Tensor.empty(shape, input.dtype), Tensor.empty(shape, 'int64')]
    launch(maxPoolKernel(input.dtype, true, plane), [out, indices, contiguous(input)], [planeCount(input)])
    return [out, indices]
  },
  derivative: ([g], { args: [input], outputs: [, indices] }) => [
    g === null ? null : lateOperator<Op['maxPool2dBackward']>('torch.ops.tensorfx.max_pool2d_backward')(g, indices, ...heightAndWidth(input)),
    null,
    null,
    null,
    null,
    null,
  ],
})

/** The maximum over windows of a real tensor, without positions. */
function valuesOnly(input: Tensor, windows: WindowArguments): Tensor {
  const plane = planeOf(NAME, input, windows)
  const out = Tensor.empty(pooledShape(input.sizes, plane), input.dtype)
  launch(maxPoolKernel(input.dtype, false, plane), [out, contiguous(input)], [planeCount(input)])
  return out
}

/** Options of maxPool2d. */
export interface MaxPoolOptions {
  readonly kernelSize?: Pair
  readonly stride?: Pair | null
  readonly padding?: Pair
  readonly dilation?: Pair
  readonly ceilMode?: boolean
  readonly returnIndices?: false
}

type MaxPool = {
  (
    input: Tensor,
    kernelSize: Pair,
    stride: Pair | null,
    padding: Pair,
    dilation: Pair,
    ceilMode: boolean,
    returnIndices: true,
  ): readonly [Tensor, Tensor]
  (
    input: Tensor,
    kernelSize: Pair,
    options: Omit<MaxPoolOptions, 'returnIndices' | 'kernelSize'> & { readonly returnIndices: true },
  ): readonly [Tensor, Tensor]
  (input: Tensor, kernelSize: Pair, stride?: Pair | null, padding?: Pair, dilation?: Pair, ceilMode?: boolean, returnIndices?: false): Tensor
  (input: Tensor, kernelSize: Pair, stride: Pair | null, options: MaxPoolOptions): Tensor
  (input: Tensor, kernelSize: Pair, stride: Pair | null, padding: Pair, options: MaxPoolOptions): Tensor
  (input: Tensor, kernelSize: Pair, stride: Pair | null, padding: Pair, dilation: Pair, options: MaxPoolOptions): Tensor
  (input: Tensor, kernelSize: Pair, options?: MaxPoolOptions): Tensor
}

/**
 * The maximum over windows; with `returnIndices` also the flat position of each maximum in its plane (int64). `stride` is the kernel size by default.
 * PyTorch's `F.max_pool2d`.
 *
 * Shapes: [.., H, W] gives [.., OH, OW].
 *
 * @throws ShapeError unless the input has 3 or 4 dimensions and the window fits.
 * @throws ArgumentError if a window size is out of range.
 * @example F.maxPool2d(torch.tensor([[[1, 7], [3, 2]]]), 2).toArray() // [[[7]]]
 */
export const maxPool2d: OpFunction<MaxPool> = defineOp({
  schema:
    'max_pool2d(Tensor self, any kernel_size, any? stride=None, any padding=0, any dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor',
  namespace: 'torch.nn.functional',
  meta: (input, kernelSize, stride, padding, dilation, ceilMode, returnIndices) => {
    const [values, indices] = valuesAndIndices(input, { kernelSize, stride, padding, dilation, ceilMode })
    return returnIndices ? [values, indices] : values
  },
  decompose: (input, kernelSize, stride, padding, dilation, ceilMode, returnIndices) => {
    if (!returnIndices && !input.isFake && !isWatched([input])) return valuesOnly(input, { kernelSize, stride, padding, dilation, ceilMode })
    const both = maxPool2dWithIndices(
      input,
      checkedPair(NAME, 'kernel_size', kernelSize),
      checkedStride(NAME, stride),
      checkedPair(NAME, 'padding', padding),
      checkedPair(NAME, 'dilation', dilation),
      ceilMode,
    )
    return returnIndices ? both : both[0]
  },
})
