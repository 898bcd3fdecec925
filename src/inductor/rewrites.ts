// Inductor's rewrites: operators that compile better as other operators when their sizes are known. Each is exact.
import type { OpDef, Result } from '../dispatch/index.ts'
import {
  add,
  arange,
  asStrided,
  clone,
  convolutionBackward,
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
} from '../ops/index.ts'
import type { OpFunction } from '../ops/index.ts'
import { defineRewrite } from '../pipeline/index.ts'
import type { Rewrite, RewriteDefinition } from '../pipeline/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { nth } from './known.ts'
import { four } from './opCall.ts'
import type { OpCall } from './opCall.ts'
import { isFloat32 } from './templates/gemm.ts'

type Pair = readonly [number, number]

/** Poolings whose windows tile the image, by their indices: the window, and the indices as int32. */
type Tilings = Map<Tensor, { readonly window: Pair; readonly index: Tensor }>

/** A call of a graph, with what is known of earlier calls. */
interface Place {
  readonly call: OpCall
  readonly tilings: Tilings
}

/** A rewrite of the calls of an operator. It is not tried where a number is known only when the program runs. */
interface CallRewrite extends Rewrite<Place, Result> {
  readonly op: OpDef
}

const ofCalls = <M>(fn: OpFunction, definition: RewriteDefinition<Place, M, Result>): CallRewrite => ({ op: fn.op, ...defineRewrite(definition) })

const both = ([a, b]: Pair, wanted: number): boolean => a === wanted && b === wanted

/** Windows with more elements would unroll into too much code. */
const MAX_WINDOW = 16

const maxPool = ofCalls(maxPool2dWithIndices, {
  name: 'maximum pool as reads of its window',
  what: 'A maximum pool without padding and dilation, of windows of at most 16 elements, becomes one read for each of them and comparisons, which fuse.',
  match: ({ call }) => {
    const input = call.tensor('self')
    if (input.ndim !== 4) return null
    const kernel = call.pair('kernelSize')
    const given = call.value('stride')
    return { input, kernel, stride: given === null || (Array.isArray(given) && given.length === 0) ? kernel : call.pair('stride') }
  },
  condition: ({ input, kernel: [kh, kw], stride: [sh, sw] }, { call }) => {
    const [, , h, w] = four(input.shape)
    return (
      both(call.pair('padding'), 0) &&
      both(call.pair('dilation'), 1) &&
      input.dtype !== 'bool' &&
      !(call.flag('ceilMode') && ((h - kh) % sh !== 0 || (w - kw) % sw !== 0)) &&
      kh * kw <= MAX_WINDOW &&
      h >= kh &&
      w >= kw
    )
  },
  replace: ({ input, kernel: [kh, kw], stride: [sh, sw] }, { tilings }) => {
    const [n, c, h, w] = four(input.shape)
    const [oh, ow] = [Math.floor((h - kh) / sh) + 1, Math.floor((w - kw) / sw) + 1]
    const [s0, s1, s2, s3] = four(input.strides)
    const window = (y: number, x: number): Tensor => asStrided(input, [n, c, oh, ow], [s0, s1, s2 * sh, s3 * sw], input.offset + y * s2 + x * s3)
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
    if (sh === kh && sw === kw && oh * kh === h && ow * kw === w) tilings.set(indices, { window: [kh, kw], index })
    return [kh * kw === 1 ? clone(best) : best, indices]
  },
})

const maxPoolBackward = ofCalls(maxPool2dBackward, {
  name: 'gradient of a maximum pool as a comparison',
  what: 'If the windows of the pool tile the image, each element gets the gradient of its window if it was the greatest there.',
  match: ({ call, tilings }) => tilings.get(call.tensor('indices')) ?? null,
  replace: ({ window: [kh, kw], index }, { call }) => {
    const grad = call.tensor('grad')
    const [height, width] = [call.number('height'), call.number('width')]
    const [n, c, oh, ow] = four(grad.shape)
    const cells = (t: Tensor): Tensor => expand(unsqueeze(unsqueeze(t, 3), 5), [n, c, oh, kh, ow, kw])
    const position = reshape(arange(height * width, { dtype: 'int32' }), [oh, kh, ow, kw])
    return reshape(where(eq(cells(index), position), cells(grad), 0), [n, c, height, width])
  },
})

const selectScatterRewrite = ofCalls(selectScatter, {
  name: 'write to an index as a choice',
  what: 'A write to an index of a dimension, select_scatter, becomes a choice by position, which fuses with what is before and after it.',
  match: ({ call }) => {
    const [self, dim, index] = [call.tensor('self'), call.number('dim'), call.number('index')]
    const at = dim < 0 ? dim + self.ndim : dim
    return { self, at, index: index < 0 ? index + (self.shape[at] ?? 1) : index }
  },
  replace: ({ self, at, index }, { call }) => chosenPart(self, unsqueeze(call.tensor('src'), at), at, index),
})

const sliceScatterRewrite = ofCalls(sliceScatter, {
  name: 'write to a slice as a choice',
  what: 'A write to one of several equal parts of a dimension, slice_scatter, becomes a choice by position.',
  match: ({ call }) => {
    const [self, src, dim] = [call.tensor('self'), call.tensor('src'), call.number('dim')]
    const at = dim < 0 ? dim + self.ndim : dim
    const [size, part] = [self.shape[at] ?? 1, src.shape[at] ?? 1]
    const given = call.value('start')
    const from = typeof given === 'number' ? given : 0
    return { self, src, at, size, part, start: Math.min(size, Math.max(0, from < 0 ? from + size : from)) }
  },
  condition: ({ size, part, start }, { call }) => call.number('step') === 1 && size % part === 0 && start % part === 0,
  replace: ({ self, src, at, part, start }) => chosenPart(self, src, at, start / part),
})

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

const convolutionGradients = ofCalls(convolutionBackward, {
  name: 'gradients of a convolution one by one',
  what: 'The gradients for the input and for the weight of a convolution are two calls: each has a kernel of its own, with what follows it.',
  match: ({ call }) =>
    call.flag('needInput') && call.flag('needWeight')
      ? { grad: call.tensor('grad'), input: call.tensor('input'), weight: call.tensor('weight'), groups: call.number('groups') }
      : null,
  condition: ({ input }, { call }) => input.ndim === 4 && isFloat32(call),
  replace: ({ grad, input, weight, groups }, { call }) => {
    const one = (needInput: boolean): Tensor =>
      nth(
        convolutionBackward(grad, input, weight, call.pair('stride'), call.pair('padding'), call.pair('dilation'), groups, needInput, !needInput),
        needInput ? 0 : 1,
      )
    return [one(true), one(false)]
  },
})

/** The rewrites that lowering tries, by name. */
export const rewrites: readonly CallRewrite[] = [maxPool, maxPoolBackward, convolutionGradients, selectScatterRewrite, sliceScatterRewrite]

/** Finds rewrites. It remembers earlier calls of the same graph. */
export class Rewrites {
  readonly #tilings: Tilings = new Map()

  /** The name of the rewrite for a call and what to compute instead of it, or null. Run it under the lowering mode. */
  find(call: OpCall): { readonly name: string; readonly replace: () => Result } | null {
    if (call.hasSymbols) return null
    for (const { op, name, at } of rewrites) {
      const replace = op === call.op ? at({ call, tilings: this.#tilings }) : null
      if (replace !== null) return { name, replace }
    }
    return null
  }
}
