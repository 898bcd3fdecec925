// Iteration spaces: lists of dimensions, row-major. Two nodes can share loops when their dimensions have a common refinement
// ([32, 64] and [32, 8, 8] refine to [32, 8, 8]); splitting a dimension keeps every access affine.
import { InternalError } from '../errors/index.ts'
import { contiguousStrides, sameShape } from '../tensor/index.ts'

/** A dimension of a space: its size, and whether a reduction combines the values along it. */
export interface Dim {
  readonly size: number
  readonly reduced: boolean
}

/** The sizes of a space's dimensions. */
export const sizesOf = (space: readonly Dim[]): number[] => space.map((dim) => dim.size)

/** The dimensions that are not reduced. */
export const keptOf = (space: readonly Dim[]): Dim[] => space.filter((dim) => !dim.reduced)

/** Dimensions of these sizes, none of them reduced. */
export const keptDims = (sizes: readonly number[]): Dim[] => sizes.map((size) => ({ size, reduced: false }))

/** Dimensions without those of size 1. */
export const squeezed = (dims: readonly number[]): number[] => dims.filter((d) => d !== 1)

export const product = (dims: readonly number[]): number => dims.reduce((a, b) => a * b, 1)

/** The coarsest dimensions that both lists split into; null when there are none. Sizes of 1 are dropped. */
export function refine(a: readonly number[], b: readonly number[]): number[] | null {
  const x = squeezed(a)
  const y = squeezed(b)
  const out: number[] = []
  let restX = x.pop()
  let restY = y.pop()
  while (restX !== undefined && restY !== undefined) {
    const step = Math.min(restX, restY)
    if (restX !== restY && (step === 0 || restX % step !== 0 || restY % step !== 0)) return null
    out.push(step)
    restX = restX === step ? x.pop() : restX / step
    restY = restY === step ? y.pop() : restY / step
  }
  return restX === undefined && restY === undefined ? out.reverse() : null
}

/** For each of `dims`, the sizes in `fine` that it is split into: none for a size of 1. `fine` must refine `dims`. */
export function split(dims: readonly number[], fine: readonly number[]): readonly (readonly number[])[] {
  const rest = [...fine]
  const parts = dims.map((size) => {
    const own: number[] = []
    for (let left = size; left !== 1;) {
      const part = rest.shift()
      if (part === undefined) throw notRefined(dims, fine)
      own.push(part)
      if (part === left) break
      left /= part
      if (!Number.isInteger(left)) throw notRefined(dims, fine)
    }
    return own
  })
  if (rest.length > 0) throw notRefined(dims, fine)
  return parts
}

const notRefined = (dims: readonly number[], fine: readonly number[]): InternalError =>
  new InternalError(`inductor: the dimensions [${fine.join(', ')}] do not refine [${dims.join(', ')}]`)

/** A space whose dimensions are split into those of `fine`. */
export const splitSpace = (space: readonly Dim[], fine: readonly number[]): Dim[] =>
  split(sizesOf(space), fine).flatMap((parts, i) => parts.map((size) => ({ size, reduced: space[i]?.reduced === true })))

/** An access's strides over `fine`, from its strides over `dims`. */
function splitStrides(dims: readonly number[], strides: readonly number[], fine: readonly number[]): number[] {
  return split(dims, fine).flatMap((parts, i) => contiguousStrides(parts).map((step) => step * (strides[i] ?? 0)))
}

/** Whether an access over `dims` walks a contiguous buffer from its first element, row-major: element f of the loop is element f of the buffer. */
export function isFlatIdentity(dims: readonly number[], strides: readonly number[], offset: number, numel: number): boolean {
  if (offset !== 0) return false
  const flat = contiguousStrides(dims)
  return product(dims) === numel && dims.every((size, i) => size === 1 || strides[i] === flat[i])
}

/**
 * Converts an access's strides over `iter` to strides over `dims`, where the two lists may split and merge each other's dimensions. Returns null when
 * they have no common refinement, or when a merged dimension would need more than one step size.
 */
export function stridesOver(iter: readonly number[], strides: readonly number[], dims: readonly number[]): number[] | null {
  if (sameShape(iter, dims)) return dims.map((size, i) => (size === 1 ? 0 : (strides[i] ?? 0)))
  const fine = refine(iter, dims)
  if (fine === null) return null
  const over = splitStrides(iter, strides, fine)
  const merged: number[] = []
  for (const parts of split(dims, fine)) {
    const own = over.splice(0, parts.length)
    // A dimension of size 1 needs no stride.
    const stride = own.at(-1) ?? 0
    const steps = contiguousStrides(parts)
    if (own.some((s, i) => s !== stride * (steps[i] ?? 0))) return null
    merged.push(stride)
  }
  return merged
}
