// The mean over windows of images.
import { Tensor } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { lateOperator } from '../../define/late.ts'
import { launch } from '../../eager/launch.ts'
import { zeros } from '../../create/creation.ts'
import { checkOperand } from '../../shared/shapes.ts'
import { contiguous } from '../../view/reshape.ts'
import { expand } from '../../view/windows.ts'
import { checkedPair, checkedStride, planeCount, planeOf, pooledShape, symbolicPlaneOf } from './plane.ts'
import { avgPoolBackwardKernel, avgPoolKernel } from './poolKernels.ts'
import { NO_GRADIENTS } from '../windows.ts'
import type { Pair } from '../windows.ts'
import { divisorOf } from './divisor.ts'

const NAME = 'torch.nn.functional.avg_pool2d'

/** The first arguments of an average pool after its input. */
const checked = (kernelSize: unknown, stride: unknown, padding: unknown) =>
  [checkedPair(NAME, 'kernel_size', kernelSize), checkedStride(NAME, stride), checkedPair(NAME, 'padding', padding)] as const

/**
 * The gradient of mean pooling; the arguments after `grad` are those of the forward call. Internal; PyTorch's `aten.avg_pool2d_backward`.
 *
 * Shape: that of `input`.
 *
 * @throws ShapeError unless the input has 3 or 4 dimensions and the window fits.
 * @throws ArgumentError if a window size is out of range.
 * @example torch.ops.tensorfx.avgPool2dBackward(torch.tensor([[[4]]]), torch.zeros([1, 2, 2]), 2, null, 0, false, true, null).toArray() // [[[1, 1], [1, 1]]]
 */
export const avgPool2dBackward: OpFunction<
  (
    grad: Tensor,
    input: Tensor,
    kernelSize: Pair,
    stride: Pair | null,
    padding: Pair,
    ceilMode: boolean,
    countIncludePad: boolean,
    divisorOverride: number | null,
  ) => Tensor
> = defineOp({
  schema:
    'avg_pool2d_backward(Tensor grad, Tensor self, any kernel_size, any? stride, any padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  vmap: { folded: ['self', 'grad'], rank: 4 },
  onnx: { none: 'it computes a gradient, and models are exported for inference' },
  autocast: 'as is',
  meta: (grad, input, kernelSize, stride, padding, ceilMode) => {
    const plane = symbolicPlaneOf(NAME, input, { kernelSize, stride, padding, ceilMode })
    checkOperand(NAME, 'grad', grad, pooledShape(input.symSizes, plane), input.dtype)
    return { shape: input.symSizes, dtype: input.dtype }
  },
  halvesInFloat32: true,
  kernel: (grad, input, kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride) => {
    const plane = planeOf(NAME, input, { kernelSize, stride, padding, ceilMode })
    checkOperand(NAME, 'grad', grad, pooledShape(input.sizes, plane), input.dtype)
    const out = Tensor.empty(input.sizes, input.dtype)
    const kernel = avgPoolBackwardKernel(input.dtype, divisorOf(NAME, countIncludePad, divisorOverride), plane)
    launch(kernel, [out, contiguous(grad)], [out.numel, planeCount(input)])
    return out
  },
  derivative: ([g], { args: [, , kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride] }) => [
    avgPool2d(g, ...checked(kernelSize, stride, padding), ceilMode, countIncludePad, divisorOverride),
    null,
    ...NO_GRADIENTS,
  ],
})

/** Options of avgPool2d. */
export interface AvgPoolOptions {
  readonly stride?: Pair | null
  readonly padding?: Pair
  readonly ceilMode?: boolean
  readonly countIncludePad?: boolean
  readonly divisorOverride?: number | null
}

type AvgPool = {
  (
    input: Tensor,
    kernelSize: Pair,
    stride?: Pair | null,
    padding?: Pair,
    ceilMode?: boolean,
    countIncludePad?: boolean,
    divisorOverride?: number | null,
  ): Tensor
  (input: Tensor, kernelSize: Pair, stride: Pair | null, padding: Pair, options: AvgPoolOptions): Tensor
  (input: Tensor, kernelSize: Pair, stride: Pair | null, options: AvgPoolOptions): Tensor
  (input: Tensor, kernelSize: Pair, options: AvgPoolOptions): Tensor
}

/**
 * The mean over windows; `stride` is the kernel size by default. PyTorch's `F.avg_pool2d`.
 *
 * Shapes: [.., H, W] gives [.., OH, OW].
 *
 * @throws ShapeError unless the input has 3 or 4 dimensions and the window fits.
 * @throws ArgumentError if a window size or `divisorOverride` is out of range.
 * @example F.avgPool2d(torch.tensor([[[1, 7], [3, 1]]]), 2).toArray() // [[[3]]]
 */
export const avgPool2d: OpFunction<AvgPool> = defineOp({
  schema:
    'avg_pool2d(Tensor self, any kernel_size, any? stride=None, any padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor',
  namespace: 'torch.nn.functional',
  vmap: { folded: ['self'], rank: 4 },
  onnx: 'avgPool',
  autocast: 'as is',
  meta: (input, kernelSize, stride, padding, ceilMode) => ({
    shape: pooledShape(input.symSizes, symbolicPlaneOf(NAME, input, { kernelSize, stride, padding, ceilMode })),
    dtype: input.dtype,
  }),
  halvesInFloat32: true,
  kernel: (input, kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride) => {
    const plane = planeOf(NAME, input, { kernelSize, stride, padding, ceilMode })
    const out = Tensor.empty(pooledShape(input.sizes, plane), input.dtype)
    const kernel = avgPoolKernel(input.dtype, divisorOf(NAME, countIncludePad, divisorOverride), plane)
    launch(kernel, [out, contiguous(input)], [planeCount(input)])
    return out
  },
  derivative: ([g], { args: [input, kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride] }) => [
    lateOperator<typeof avgPool2dBackward>('torch.ops.tensorfx.avg_pool2d_backward')(
      g,
      // Only the shape matters: a graph of the backward need not keep the input.
      expand(zeros([], { dtype: input.dtype }), input.symSizes),
      ...checked(kernelSize, stride, padding),
      ceilMode,
      countIncludePad,
      divisorOverride,
    ),
    ...NO_GRADIENTS,
  ],
})
