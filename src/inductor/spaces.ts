// Iteration spaces: lists of dimensions, row-major. Two nodes can share loops when their dimensions have a common refinement
// ([32, 64] and [32, 8, 8] refine to [32, 8, 8]); splitting a dimension keeps every access affine.

/** Dimensions without those of size 1. */
export const squeezed = (dims: readonly number[]): number[] => dims.filter((d) => d !== 1)

export const product = (dims: readonly number[]): number => dims.reduce((a, b) => a * b, 1)

/** The coarsest dimensions that both lists split into; null when there are none. Sizes of 1 are dropped. */
export function refine(a: readonly number[], b: readonly number[]): number[] | null {
  const x = squeezed(a)
  const y = squeezed(b)
  const out: number[] = []
  let i = x.length - 1
  let j = y.length - 1
  let restX = x[i] ?? 1
  let restY = y[j] ?? 1
  while (i >= 0 && j >= 0) {
    const step = Math.min(restX, restY)
    if (step === 0 || restX % step !== 0 || restY % step !== 0) return null
    out.push(step)
    restX /= step
    restY /= step
    if (restX === 1) restX = x[--i] ?? 1
    if (restY === 1) restY = y[--j] ?? 1
  }
  return i < 0 && j < 0 ? out.reverse() : null
}

/** Splits flags along with their dimensions: `fine` refines `dims`. */
export function refineFlags(dims: readonly number[], flags: readonly boolean[], fine: readonly number[]): boolean[] {
  return splitAlong(dims, fine).map((source) => flags[source] as boolean)
}

/** For each dimension of `fine`, the index of the dimension of `dims` it is a part of. `fine` must refine `dims`. */
export function splitAlong(dims: readonly number[], fine: readonly number[]): number[] {
  const out = new Array<number>(fine.length)
  let d = dims.length - 1
  let rest = 1
  for (let f = fine.length - 1; f >= 0; f--) {
    if (rest === 1) {
      while (dims[d] === 1) d--
      rest = dims[d] as number
    }
    out[f] = d
    rest /= fine[f] as number
    if (rest === 1) d--
  }
  return out
}

/** An access's strides over `fine`, from its strides over `dims`. */
export function splitStrides(dims: readonly number[], strides: readonly number[], fine: readonly number[]): number[] {
  const owner = splitAlong(dims, fine)
  const out = new Array<number>(fine.length)
  for (let f = fine.length - 1; f >= 0; f--) {
    const next =
      f + 1 < fine.length && owner[f + 1] === owner[f] ? (out[f + 1] as number) * (fine[f + 1] as number) : (strides[owner[f] as number] as number)
    out[f] = next
  }
  return out
}

/** Whether an access over `dims` walks a contiguous buffer from its first element, row-major: element f of the loop is element f of the buffer. */
export function isFlatIdentity(dims: readonly number[], strides: readonly number[], offset: number, numel: number): boolean {
  if (offset !== 0) return false
  let step = 1
  for (let i = dims.length - 1; i >= 0; i--) {
    const size = dims[i] as number
    if (size === 1) continue
    if (strides[i] !== step) return false
    step *= size
  }
  return step === numel
}

/**
 * An access's strides over `dims`, from its strides over `iter`, where the two lists may split and merge each other's dimensions; null when
 * they have no common refinement, or a merged dimension is not walked in one step size.
 */
export function stridesOver(iter: readonly number[], strides: readonly number[], dims: readonly number[]): number[] | null {
  const fine = refine(iter, dims)
  if (fine === null) return null
  const over = splitStrides(iter, strides, fine)
  const wanted = squeezed(dims)
  const owner = splitAlong(wanted, fine)
  const merged = new Array<number>(wanted.length)
  for (let f = fine.length - 1; f >= 0; f--) {
    const d = owner[f] as number
    if (f + 1 < fine.length && owner[f + 1] === d) {
      if (over[f] !== (over[f + 1] as number) * (fine[f + 1] as number)) return null
    } else merged[d] = over[f] as number
  }
  let next = 0
  return dims.map((size) => (size === 1 ? 0 : (merged[next++] as number)))
}
