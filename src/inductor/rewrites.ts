// Operators that compile better as other operators when their sizes are known: pooling as pointwise reads of the window, its gradient as a comparison,
// the input gradient of a convolution as a convolution with the turned weight. Each rewrite is exact.
import type { Arg, OpDef, Result } from '../dispatch/index.ts'
import {
  add,
  arange,
  asStrided,
  clone,
  convolution,
  convolutionBackward,
  eq,
  expand,
  gt,
  logicalOr,
  maximum,
  mul,
  ne,
  reshape,
  unsqueeze,
  where,
} from '../ops/index.ts'
import { Tensor } from '../tensor/index.ts'

type Pair = readonly [number, number]

const pair = (value: unknown): Pair =>
  typeof value === 'number'
    ? [value, value]
    : [(value as readonly number[])[0] as number, (value as readonly number[])[1] ?? ((value as readonly number[])[0] as number)]
const both = (value: unknown, wanted: number): boolean => pair(value).every((v) => v === wanted)

/** Finds rewrites; it remembers what earlier calls of the same graph were. */
export class Rewrites {
  /** Indices of poolings whose windows tile the image, with the window. */
  readonly #tiled = new Map<Tensor, Pair>()

  /** What to compute instead of the call, or null. Run it under the lowering mode. */
  find(op: OpDef, args: readonly Arg[]): (() => Result) | null {
    if (op.name === 'max_pool2d_with_indices') return this.#maxPool(args)
    if (op.name === 'max_pool2d_backward') return this.#maxPoolBackward(args)
    if (op.name === 'convolution_backward') return convolutionGradient(args)
    return null
  }

  #maxPool(args: readonly Arg[]): (() => Result) | null {
    const [input, kernel, stride, padding, dilation, ceilMode] = args as [Tensor, Arg, Arg, Arg, Arg, boolean]
    if (input.ndim !== 4 || !both(padding, 0) || !both(dilation, 1) || input.dtype === 'bool') return null
    const [kh, kw] = pair(kernel)
    const [sh, sw] = stride === null || (Array.isArray(stride) && stride.length === 0) ? [kh, kw] : pair(stride)
    const [n, c, h, w] = input.shape as [number, number, number, number]
    if (ceilMode && ((h - kh) % sh !== 0 || (w - kw) % sw !== 0)) return null
    if (kh * kw > 16 || h < kh || w < kw) return null
    const [oh, ow] = [Math.floor((h - kh) / sh) + 1, Math.floor((w - kw) / sw) + 1]
    const [s0, s1, s2, s3] = input.strides as [number, number, number, number]
    const window = (y: number, x: number): Tensor => asStrided(input, [n, c, oh, ow], [s0, s1, s2 * sh, s3 * sw], input.offset + y * s2 + x * s3)
    return () => {
      // Position of each window's first element in its plane.
      const rows = mul(arange(oh, { dtype: 'int32' }), sh * w)
      const base = add(unsqueeze(rows, 1), mul(arange(ow, { dtype: 'int32' }), sw))
      let best = window(0, 0)
      let index = expand(base, [n, c, oh, ow])
      for (let y = 0; y < kh; y++) {
        for (let x = 0; x < kw; x++) {
          if (x + y === 0) continue
          const value = window(y, x)
          index = where(logicalOr(gt(value, best), ne(value, value)), add(base, y * w + x), index)
          best = maximum(best, value)
        }
      }
      const indices = kh * kw === 1 ? clone(index) : index
      if (sh === kh && sw === kw && oh * kh === h && ow * kw === w) this.#tiled.set(indices, [kh, kw])
      return [kh * kw === 1 ? clone(best) : best, indices]
    }
  }

  /** Windows that tile the image: an element gets the gradient of its window if it was the greatest there. */
  #maxPoolBackward(args: readonly Arg[]): (() => Result) | null {
    const [grad, indices, height, width] = args as [Tensor, Tensor, number, number]
    const window = this.#tiled.get(indices)
    if (window === undefined) return null
    const [kh, kw] = window
    const [n, c, oh, ow] = grad.shape as [number, number, number, number]
    return () => {
      const cells = (t: Tensor): Tensor => expand(unsqueeze(unsqueeze(t, 3), 5), [n, c, oh, kh, ow, kw])
      const position = reshape(arange(height * width, { dtype: 'int32' }), [oh, kh, ow, kw])
      return reshape(where(eq(cells(indices), position), cells(grad), 0), [n, c, height, width])
    }
  }
}

/** The input gradient of a plain convolution is a convolution of the gradient with the weight turned by half a turn, channels swapped. */
function convolutionGradient(args: readonly Arg[]): (() => Result) | null {
  const [grad, input, weight, stride, padding, dilation, groups, needInput, needWeight] = args as [
    Tensor,
    Tensor,
    Tensor,
    Arg,
    Arg,
    Arg,
    number,
    boolean,
    boolean,
  ]
  if (!needInput || groups !== 1 || !both(stride, 1) || !both(dilation, 1) || !weight.contiguousLayout || weight.dtype !== 'float32') return null
  const [o, i, kh, kw] = weight.shape as [number, number, number, number]
  const [ph, pw] = pair(padding)
  if (ph > kh - 1 || pw > kw - 1) return null
  return () => {
    const turned = clone(asStrided(weight, [i, o, kh, kw], [kh * kw, i * kh * kw, -kw, -1], weight.offset + kh * kw - 1))
    const gradInput = convolution(grad, turned, null, [1, 1], [kh - 1 - ph, kw - 1 - pw], [1, 1], 1)
    const gradWeight = needWeight
      ? (convolutionBackward(grad, input, weight, stride as Pair, padding as Pair, dilation as Pair, groups, false, true)[1] as Tensor)
      : gradInput
    return [gradInput, gradWeight]
  }
}
