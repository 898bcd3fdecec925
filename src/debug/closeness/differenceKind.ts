// In which way a result is wrong. A search for one kind must not end in another: a wrong value is not a NaN in another place.
import { treeLeaves } from '../../pytree/index.ts'
import { Tensor, exactElements, sameShape } from '../../tensor/index.ts'

/**
 * The ways: another shape, dtype or structure; NaN or infinity in other places; another value; another integer or boolean; a wrong value that the graph writes to an input,
 * a buffer or a parameter; a wrong gradient.
 */
export const DIFFERENCE_KINDS = ['form', 'nan', 'value', 'integer', 'written', 'gradient'] as const
export type DifferenceKind = (typeof DIFFERENCE_KINDS)[number]

/** How `res` differs from `ref`. `differsInFloats`: whether it still does if integers and booleans do not count. */
export function differenceKind(name: string, ref: unknown, res: unknown, differsInFloats: () => boolean): DifferenceKind {
  if (name.startsWith('gradient of')) return 'gradient'
  if (name !== 'output') return 'written'
  const [wanted, got] = [treeLeaves(ref), treeLeaves(res)]
  if (wanted.length !== got.length || wanted.some((leaf, i) => !haveSameForm(leaf, got[i]))) return 'form'
  if (!differsInFloats()) return 'integer'
  return wanted.some((leaf, i) => !haveSamePlaces(leaf, got[i])) ? 'nan' : 'value'
}

function haveSameForm(a: unknown, b: unknown): boolean {
  if (a instanceof Tensor && b instanceof Tensor) return a.dtype === b.dtype && sameShape(a.shape, b.shape)
  return !(a instanceof Tensor) && !(b instanceof Tensor) && typeof a === typeof b
}

/** Whether two values are finite in the same places. */
function haveSamePlaces(a: unknown, b: unknown): boolean {
  if (typeof a === 'number' && typeof b === 'number') return Number.isFinite(a) === Number.isFinite(b)
  if (!(a instanceof Tensor) || !(b instanceof Tensor)) return true
  const [x, y] = [exactElements(a), exactElements(b)]
  return Array.from(x).every((element, i) => Number.isFinite(element) === Number.isFinite(y[i]))
}
