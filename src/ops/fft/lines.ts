// The primitive of all Fourier transforms: lines of complex numbers in pairs, without a factor. The transforms are composed of it, so that derivatives and vmap follow.
import { DTypeError, ShapeError } from '../../errors/index.ts'
import { BoundedCache } from '../../kernels/index.ts'
import { Tensor, formatShape } from '../../tensor/index.ts'
import { defineOp } from '../define/defineOp.ts'
import { launch } from '../eager/launch.ts'
import type { Op } from '../generated/signatures.ts'
import { sizeAt } from '../shared/shapes.ts'
import { contiguous } from '../view/reshape.ts'
import { putTogether, takeApart } from './kernels.ts'
import { empty, planOf } from './plan.ts'
import type { Plan } from './plan.ts'

/** Plans by length. */
const plans = new BoundedCache<Plan>('Fourier transforms', 64 * 2 ** 20)

function planFor(n: number): Plan {
  const key = String(n)
  let plan = plans.get(key)
  if (plan === undefined) {
    plan = planOf(n)
    plans.set(key, plan, plan.bytes)
  }
  return plan
}

/** As many lines go through all stages together as stay in the processor's cache, in complex numbers. */
const TOGETHER = 2 ** 13

/** Transforms lines of `n` pairs. The way back is the same transform with the parts exchanged. */
function transformLines(source: Tensor, target: Tensor, n: number, inverse: boolean): void {
  const { room, run } = planFor(n)
  const dtype = source.dtype === 'float32' ? 'float32' : 'float64'
  const all = source.numel / (2 * n)
  const most = Math.min(all, Math.max(1, Math.floor(TOGETHER / room)))
  const [x, work] = [empty(most * room), empty(most * room)]
  for (let line = 0; line < all; line += most) {
    const lines = Math.min(most, all - line)
    launch(takeApart(dtype, inverse), [...x, source], [2 * n * line, lines, n, room])
    launch(putTogether(dtype, inverse), [target, ...run(x, work, lines)], [2 * n * line, lines, n, room])
  }
}

/**
 * The discrete Fourier transform of lines of complex numbers, as pairs along the last dimension, without a factor: with exp(-2 pi i jk / n), or exp(2 pi i jk / n) if `inverse`.
 * Internal; PyTorch's `aten._fft_c2c` of the last dimension. It is computed in float64.
 *
 * Shape: [.., n, 2], and so is the result.
 *
 * @throws DTypeError unless `self` is float32 or float64; ShapeError for another shape, or n = 0.
 * @example torch.ops.tensorfx.fftLines(torch.tensor([[1, 0], [2, 0]]), false).toArray() // [[3, 0], [-1, 0]]
 */
export const fftLines: Op['fftLines'] = defineOp({
  schema: 'fft_lines(Tensor self, bool inverse) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  vmap: { leading: ['self'] },
  onnx: { none: 'ONNX has no operators on complex numbers' },
  autocast: 'as is',
  meta: (self) => {
    if (self.dtype !== 'float32' && self.dtype !== 'float64')
      throw new DTypeError(`torch.ops.tensorfx.fft_lines: self must be float32 or float64, got ${self.dtype}; convert it first: x.float().`)
    if (self.ndim < 2 || self.sizes.at(-1) !== 2 || self.sizes.at(-2) === 0)
      throw new ShapeError(`torch.ops.tensorfx.fft_lines: self must have a shape [.., n, 2] with n of at least 1, got ${formatShape(self.symSizes)}.`)
    return { shape: self.sizes, dtype: self.dtype }
  },
  kernel: (self, inverse) => {
    const source = contiguous(self)
    const out = Tensor.empty(self.sizes, self.dtype)
    if (out.numel > 0) transformLines(source, out, sizeAt(self.sizes, -2), inverse)
    return out
  },
  derivative: ([g], { args: [, inverse] }) => [fftLines(g, !inverse), null],
})
