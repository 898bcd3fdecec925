// Sizes are values: what users see of a tensor's shape and strides are frozen lists, so that no tensor can be changed through them.
//
// V8 reads frozen lists slowly (a slice takes 20 times as long), and slows down every loop that meets a frozen list once. So operators read plain lists (`x.sizes`, `x.steps`),
// which they neither change nor hand out, and the frozen copies are made when a program asks for them. Tensors of the same sizes share them.

/** Where the elements of a tensor lie in its memory. */
export interface Layout {
  readonly sizes: readonly number[]
  /** The strides, in elements. */
  readonly steps: readonly number[]
  /** The place of the first element. */
  readonly offset: number
}

/** Frozen lists by a hash of their numbers. A list that finds its place taken replaces the other one, so two equal lists may be different objects. */
const known = new Array<readonly number[] | undefined>(1024).fill(undefined)

/** A frozen list of the same numbers. */
export function frozenList(list: readonly number[]): readonly number[] {
  let hash = list.length
  for (let i = 0; i < list.length; i++) hash = (Math.imul(hash, 31) + (list[i] ?? 0)) | 0
  const place = (hash ^ (hash >>> 10)) & (known.length - 1)
  const shared = known[place]
  if (shared !== undefined && areEqual(shared, list)) return shared
  // Adding 0 turns -0, which is found in the place of 0, into 0.
  const copy = Object.freeze(list.map((n) => n + 0))
  known[place] = copy
  return copy
}

/** Like sameShape, which must not meet frozen lists. */
function areEqual(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}
