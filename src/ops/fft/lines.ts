// The primitive of all Fourier transforms: lines of complex numbers in pairs, without a factor. The transforms are composed of it, so that derivatives and vmap follow.
import { DTypeError, InternalError, ShapeError } from '../../errors/index.ts'
import { BoundedCache } from '../../kernels/index.ts'
import { Tensor, formatShape, windowOf } from '../../tensor/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { sizeAt } from '../shared/shapes.ts'
import { contiguous } from '../view/reshape.ts'
import { planOf } from './plan.ts'
import type { Complex, Plan } from './plan.ts'

/** Plans and their working memory, by length. */
const plans = new BoundedCache<Plan & { readonly x: Complex; readonly work: Complex }>('Fourier transforms', 64 * 2 ** 20)

function planFor(n: number): Plan & { readonly x: Complex; readonly work: Complex } {
  const key = String(n)
  const known = plans.get(key)
  if (known !== undefined) return known
  const plan = planOf(n)
  const numbers = (): Complex => ({ re: new Float64Array(plan.room), im: new Float64Array(plan.room) })
  const made = { ...plan, x: numbers(), work: numbers() }
  plans.set(key, made, plan.bytes + 32 * plan.room)
  return made
}

/** Where the numbers of a contiguous tensor are. */
function numbersOf(tensor: Tensor): { readonly data: Float32Array | Float64Array; readonly start: number } {
  const { data, base } = windowOf(tensor)
  if (!(data instanceof Float32Array || data instanceof Float64Array)) throw new InternalError(`a Fourier transform of ${tensor.dtype}`)
  return { data, start: base + tensor.offset }
}

/** Transforms `count` lines of `n` pairs. The way back is the same transform with the parts exchanged. */
function transformLines(source: Tensor, target: Tensor, n: number, inverse: boolean): void {
  const { x, work, run } = planFor(n)
  const [first, second] = inverse ? [x.im, x.re] : [x.re, x.im]
  const from = numbersOf(source)
  const to = numbersOf(target)
  const lines = source.numel / (2 * n)
  for (let line = 0; line < lines; line++) {
    const [a, b] = [from.start + 2 * n * line, to.start + 2 * n * line]
    for (let k = 0; k < n; k++) {
      first[k] = from.data[a + 2 * k] ?? 0
      second[k] = from.data[a + 2 * k + 1] ?? 0
    }
    run(x, work)
    for (let k = 0; k < n; k++) {
      to.data[b + 2 * k] = first[k] ?? 0
      to.data[b + 2 * k + 1] = second[k] ?? 0
    }
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
