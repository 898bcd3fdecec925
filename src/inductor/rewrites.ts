// Operators that compile better as other operators when their sizes are known: pooling as pointwise reads of the window, its gradient as a comparison,
// the input gradient of a convolution as a convolution with the rotated weight, a write to a part as a choice. Each rewrite is exact.
import type { OpDef, Result } from '../dispatch/index.ts'
import {
  add,
  arange,
  asStrided,
  clone,
  convolution,
  convolutionBackward,
  defineCustomOp,
  eq,
  expand,
  gt,
  logicalOr,
  maxPool2dBackward,
  maxPool2dWithIndices,
  mul,
  ne,
  reshape,
  selectScatter,
  sliceScatter,
  to,
  unsqueeze,
  where,
  windowSpec,
} from '../ops/index.ts'
import type { OpFunction } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { four } from './opCall.ts'
import type { OpCall } from './opCall.ts'

type Pair = readonly [number, number]
type Rewrite = (call: OpCall) => (() => Result) | null

const both = ([a, b]: Pair, wanted: number): boolean => a === wanted && b === wanted

/** Windows with more elements would unroll into too much code. */
const MAX_WINDOW = 16

/** Finds rewrites. It remembers earlier calls of the same graph. */
export class Rewrites {
  /** Indices of poolings whose windows tile the image, with the window and the indices as int32. */
  readonly #tiled = new Map<Tensor, { readonly window: Pair; readonly index: Tensor }>()
  readonly #rules: ReadonlyMap<OpDef, Rewrite> = new Map<OpDef, Rewrite>([
    [maxPool2dWithIndices.op, (call) => this.#maxPool(call)],
    [maxPool2dBackward.op, (call) => this.#maxPoolBackward(call)],
    [convolutionBackward.op, convolutionGradient],
    [selectScatter.op, selectScatterAsChoice],
    [sliceScatter.op, sliceScatterAsChoice],
  ])

  /** What to compute instead of the call, or null. Run it under the lowering mode. */
  find(call: OpCall): (() => Result) | null {
    return call.hasSymbols ? null : (this.#rules.get(call.op)?.(call) ?? null)
  }

  #maxPool(call: OpCall): (() => Result) | null {
    const input = call.tensor('self')
    if (input.ndim !== 4 || !both(call.pair('padding'), 0) || !both(call.pair('dilation'), 1) || input.dtype === 'bool') return null
    const [kh, kw] = call.pair('kernelSize')
    const given = call.value('stride')
    const [sh, sw] = given === null || (Array.isArray(given) && given.length === 0) ? [kh, kw] : call.pair('stride')
    const [n, c, h, w] = four(input.shape)
    if (call.flag('ceilMode') && ((h - kh) % sh !== 0 || (w - kw) % sw !== 0)) return null
    if (kh * kw > MAX_WINDOW || h < kh || w < kw) return null
    const [oh, ow] = [Math.floor((h - kh) / sh) + 1, Math.floor((w - kw) / sw) + 1]
    const [s0, s1, s2, s3] = four(input.strides)
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
          // NaN wins, and the first of equals, as 0 and -0 are: maximum would make 0 of these.
          const wins = logicalOr(gt(value, best), ne(value, value))
          index = where(wins, add(base, y * w + x), index)
          best = where(wins, value, best)
        }
      }
      const indices = to(index, 'int64')
      if (sh === kh && sw === kw && oh * kh === h && ow * kw === w) this.#tiled.set(indices, { window: [kh, kw], index })
      return [kh * kw === 1 ? clone(best) : best, indices]
    }
  }

  /** If windows tile the image, an element gets the gradient of its window if it was the greatest there. */
  #maxPoolBackward(call: OpCall): (() => Result) | null {
    const [grad, indices] = [call.tensor('grad'), call.tensor('indices')]
    const [height, width] = [call.number('height'), call.number('width')]
    const tiled = this.#tiled.get(indices)
    if (tiled === undefined) return null
    const [kh, kw] = tiled.window
    const [n, c, oh, ow] = four(grad.shape)
    return () => {
      const cells = (t: Tensor): Tensor => expand(unsqueeze(unsqueeze(t, 3), 5), [n, c, oh, kh, ow, kw])
      const position = reshape(arange(height * width, { dtype: 'int32' }), [oh, kh, ow, kw])
      return reshape(where(eq(cells(tiled.index), position), cells(grad), 0), [n, c, height, width])
    }
  }
}

/** One index of a dimension gets other values: one of its parts of size 1. */
function selectScatterAsChoice(call: OpCall): (() => Result) | null {
  const [self, dim, index] = [call.tensor('self'), call.number('dim'), call.number('index')]
  const at = dim < 0 ? dim + self.ndim : dim
  const size = self.shape[at] ?? 1
  return () => chosenPart(self, unsqueeze(call.tensor('src'), at), at, index < 0 ? index + size : index)
}

/** Some elements of a dimension get other values: one of several parts of the same size. */
function sliceScatterAsChoice(call: OpCall): (() => Result) | null {
  const [self, src, dim] = [call.tensor('self'), call.tensor('src'), call.number('dim')]
  const at = dim < 0 ? dim + self.ndim : dim
  const [size, part] = [self.shape[at] ?? 1, src.shape[at] ?? 1]
  const given = call.value('start')
  const from = typeof given === 'number' ? given : 0
  const start = Math.min(size, Math.max(0, from < 0 ? from + size : from))
  if (call.number('step') !== 1 || size % part !== 0 || start % part !== 0) return null
  return () => chosenPart(self, src, at, start / part)
}

/** `self` with `src` in the place of one of the equal parts of a dimension: a choice by position, which fuses with what is before and after it. */
function chosenPart(self: Tensor, src: Tensor, dim: number, index: number): Tensor {
  const { shape } = self
  const size = src.shape[dim] ?? 1
  const count = (shape[dim] ?? 1) / size
  if (count === 1) return clone(src)
  const positions = reshape(
    arange(count, { dtype: 'int32' }),
    [...shape, 1].map((_, i) => (i === dim ? count : 1)),
  )
  const parts = reshape(self, shape.toSpliced(dim, 1, count, size))
  return reshape(where(eq(positions, index), unsqueeze(src, dim), parts), shape)
}

/** A window with negative strides, which `asStrided` does not make. */
const turnedWindow: OpFunction<(self: Tensor, size: readonly number[], stride: readonly number[], offset: number) => Tensor> = defineCustomOp({
  schema: 'turned_window(Tensor self, int[] size, int[] stride, int offset) -> Tensor',
  namespace: 'torch.ops.inductor',
  tags: ['view'],
  meta: windowSpec,
})

/** The input gradient of a plain convolution is a convolution of the gradient with the weight, rotated by 180 degrees and with its channels swapped. */
function convolutionGradient(call: OpCall): (() => Result) | null {
  const [grad, input, weight] = [call.tensor('grad'), call.tensor('input'), call.tensor('weight')]
  const [stride, padding, dilation] = [call.pair('stride'), call.pair('padding'), call.pair('dilation')]
  const groups = call.number('groups')
  if (!call.flag('needInput') || groups !== 1 || !both(stride, 1) || !both(dilation, 1)) return null
  if (!weight.contiguousLayout || weight.dtype !== 'float32') return null
  const [o, i, kh, kw] = four(weight.shape)
  const [ph, pw] = padding
  if (ph > kh - 1 || pw > kw - 1) return null
  return () => {
    const turned = clone(turnedWindow(weight, [i, o, kh, kw], [kh * kw, i * kh * kw, -kw, -1], weight.offset + kh * kw - 1))
    const gradInput = convolution(grad, turned, null, [1, 1], [kh - 1 - ph, kw - 1 - pw], [1, 1], 1)
    // If the weight's gradient was not requested, it is not used.
    if (!call.flag('needWeight')) return [gradInput, gradInput]
    return [gradInput, ...convolutionBackward(grad, input, weight, stride, padding, dilation, groups, false, true).slice(1)]
  }
}
