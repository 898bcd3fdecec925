// Pooling by powers: the p-norm of each window.
import type { Tensor } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { abs, mul, pow, sign } from '../../pointwise/arithmetic.ts'
import { relu } from '../../pointwise/activation.ts'
import { avgPool2d } from './avgPool2d.ts'
import { avgPool1d, avgPool3d } from './pool3d.ts'
import { single, sizesOf, strideOf } from './windowTables.ts'
import type { Sizes } from './windowTables.ts'

const F = 'torch.nn.functional'

/** (sum of x^p)^(1/p) from the mean of x^p: PyTorch multiplies by the size of the whole window, even where it is cut off. */
const rootOf = (means: Tensor, count: number, p: number): Tensor => pow(mul(mul(sign(means), relu(abs(means))), count), 1 / p)

type LpPool = {
  (input: Tensor, normType: number, kernelSize: Sizes, options?: { readonly stride?: Sizes | null; readonly ceilMode?: boolean }): Tensor
  (input: Tensor, normType: number, kernelSize: Sizes, stride?: Sizes | null, ceilMode?: boolean): Tensor
}

/**
 * The p-norm of windows of a line, p being `normType`. PyTorch's `F.lp_pool1d`.
 *
 * Shapes: [.., L] gives [.., OL].
 *
 * @throws ShapeError unless the input has 2 or 3 dimensions and the window fits.
 * @throws ArgumentError if a window size is out of range.
 * @example F.lpPool1d(torch.tensor([[3, 4, 0, 2]]), 2, 2).toArray() // [[5, 2]]
 */
export const lpPool1d: OpFunction<LpPool> = defineOp({
  schema: 'lp_pool1d(Tensor self, float norm_type, any kernel_size, any? stride=None, bool ceil_mode=False) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (input, p, kernelSize, stride, ceilMode) => {
    const kernel = single(`${F}.lp_pool1d`, 'kernel_size', kernelSize, 1)
    const [step = kernel] = strideOf(`${F}.lp_pool1d`, stride, [kernel])
    return rootOf(avgPool1d(pow(input, p), kernel, step, 0, ceilMode), kernel, p)
  },
})

/**
 * The p-norm of windows of an image, p being `normType`. PyTorch's `F.lp_pool2d`.
 *
 * Shapes: [.., H, W] gives [.., OH, OW].
 *
 * @throws ShapeError unless the input has 3 or 4 dimensions and the window fits.
 * @throws ArgumentError if a window size is out of range.
 * @example F.lpPool2d(torch.tensor([[[3, 4], [0, 0]]]), 2, 2).toArray() // [[[5]]]
 */
export const lpPool2d: OpFunction<LpPool> = defineOp({
  schema: 'lp_pool2d(Tensor self, float norm_type, any kernel_size, any? stride=None, bool ceil_mode=False) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (input, p, kernelSize, stride, ceilMode) => {
    const kernel = sizesOf(`${F}.lp_pool2d`, 'kernel_size', kernelSize, 2, 1)
    const step = strideOf(`${F}.lp_pool2d`, stride, kernel)
    return rootOf(avgPool2d(pow(input, p), kernel, step, 0, ceilMode), (kernel[0] ?? 1) * (kernel[1] ?? 1), p)
  },
})

/**
 * The p-norm of windows of a volume, p being `normType`. PyTorch's `F.lp_pool3d`.
 *
 * Shapes: [.., D, H, W] gives [.., OD, OH, OW].
 *
 * @throws ShapeError unless the input has 4 or 5 dimensions and the window fits.
 * @throws ArgumentError if a window size is out of range.
 * @example F.lpPool3d(torch.tensor([[[[3, 4], [0, 0]]]]), 2, [1, 2, 2]).toArray() // [[[[5]]]]
 */
export const lpPool3d: OpFunction<LpPool> = defineOp({
  schema: 'lp_pool3d(Tensor self, float norm_type, any kernel_size, any? stride=None, bool ceil_mode=False) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (input, p, kernelSize, stride, ceilMode) => {
    const kernel = sizesOf(`${F}.lp_pool3d`, 'kernel_size', kernelSize, 3, 1)
    const step = strideOf(`${F}.lp_pool3d`, stride, kernel)
    return rootOf(
      avgPool3d(pow(input, p), kernel, step, 0, ceilMode),
      kernel.reduce((a, b) => a * b, 1),
      p,
    )
  },
})
