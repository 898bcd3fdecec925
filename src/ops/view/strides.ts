// The arithmetic of views: the strides under which a storage shows another shape.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { contiguousStrides, formatShape, numelOf } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'

/** The layout of a view of `self`. */
export const viewSpec = (self: Tensor, shape: readonly number[], strides: readonly number[], offset: number = self.offset): TensorSpec => ({
  shape,
  strides,
  offset,
  dtype: self.dtype,
})

/** The lowest and the highest position that a layout reaches; equal to `offset` if it has no elements. */
function reachOf(size: readonly number[], stride: readonly number[], offset: number): readonly [number, number] {
  let [low, high] = [offset, offset]
  if (size.includes(0)) return [low, high]
  size.forEach((count, i) => {
    const step = (count - 1) * (stride[i] ?? 0)
    if (step > 0) high += step
    else low += step
  })
  return [low, high]
}

/** Throws ArgumentError unless a window lies within `count` elements. */
export function checkWindow(op: string, size: readonly number[], stride: readonly number[], offset: number, count: number): void {
  const [low, high] = reachOf(size, stride, offset)
  const empty = size.includes(0)
  if (size.length !== stride.length)
    throw new ArgumentError(`${op}: size ${formatShape(size)} and stride ${formatShape(stride)} must be equally long.`)
  if (size.some((n) => n < 0) || low < 0 || (empty ? high > count : high >= count))
    throw new ArgumentError(
      `${op}: size ${formatShape(size)}, stride ${formatShape(stride)} and storage_offset ${offset} reach from position ${low} to ${high}, but there are ${count} elements.`,
    )
}

/** The number of elements that the storage of a tensor has room for. For a tensor without data: those that it, or what it is a view of, reaches. */
export function roomOf(self: Tensor): number {
  let root = self
  while (root.storage === null && root.viewBase !== null) root = root.viewBase
  if (root.storage !== null) return root.storage.nbytes / dtypeInfo[root.dtype].size
  return root.numel === 0 ? root.offset : reachOf(root.shape, root.strides, root.offset)[1] + 1
}

/** A shape with its -1, if it has one, filled in. Throws ShapeError if the sizes do not fit. */
export function inferShape(op: string, self: Tensor, shape: readonly number[]): readonly number[] {
  const unknown = shape.indexOf(-1)
  const known = shape.reduce((n, s) => (s === -1 ? n : n * s), 1)
  const out = unknown < 0 ? shape : shape.map((s, i) => (i === unknown ? self.numel / known : s))
  if (shape.filter((s) => s === -1).length > 1 || out.some((s) => !Number.isInteger(s) || s < 0) || numelOf(out) !== self.numel) {
    throw new ShapeError(
      `${op}: the shape ${formatShape(shape)} does not hold the ${self.numel} elements of self (shape ${formatShape(self.shape)}).`,
    )
  }
  return out
}

/** What {@link viewStrides} reads of a tensor. */
type Laid = Pick<Tensor, 'shape' | 'strides' | 'numel' | 'contiguousLayout'>

/** Strides under which the elements of `self` form `shape` without a copy; null if its layout does not allow that. */
export function viewStrides(self: Laid, shape: readonly number[]): readonly number[] | null {
  if (self.contiguousLayout || self.numel === 0) return contiguousStrides(shape)
  const out = shape.map(() => 1)
  let target = shape.length - 1
  for (const run of runsOf(self)) {
    // The sizes of `shape`, from the last, must divide the run exactly.
    let { size } = run
    let step = run.stride
    while (target >= 0 && size > 1) {
      const s = shape[target] ?? 1
      if (size % s !== 0) return null
      out[target--] = step
      step *= s
      size /= s
    }
    if (size !== 1) return null
  }
  return shape.slice(0, target + 1).every((s) => s === 1) ? out : null
}

/** Stretches of dimensions that are walked as one, from the last; dimensions of size 1 do not count. */
function runsOf({ shape, strides }: Laid): readonly { readonly size: number; readonly stride: number }[] {
  const runs: { size: number; stride: number }[] = []
  shape.toReversed().forEach((size, i) => {
    const stride = strides.at(-1 - i)
    if (size === 1 || stride === undefined) return
    const run = runs.at(-1)
    if (run !== undefined && stride === run.stride * run.size) run.size *= size
    else runs.push({ size, stride })
  })
  return runs
}
