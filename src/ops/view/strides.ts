// The arithmetic of views: the strides under which a storage shows another shape.
import { ShapeError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { contiguousStrides, formatShape, numelOf, reachOf } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'

/** The layout of a view of `self`. */
export const viewSpec = (self: Tensor, shape: readonly number[], strides: readonly number[], offset: number = self.offset): TensorSpec => ({
  shape,
  strides,
  offset,
  dtype: self.dtype,
})

/**
 * Throws ShapeError unless a window lies within `stored` elements, those of `owner` in the message. Strides may be negative.
 */
export function checkWindow(op: string, size: readonly number[], stride: readonly number[], offset: number, stored: number, owner: string): void {
  if (size.length !== stride.length)
    throw new ShapeError(`${op}: size ${formatShape(size)} and stride ${formatShape(stride)} must have the same length.`)
  if (size.some((s) => !Number.isSafeInteger(s) || s < 0))
    throw new ShapeError(`${op}: argument 'size' must hold integers of at least 0, got ${formatShape(size)}.`)
  const [lowest, highest] = reachOf(size, stride, offset) ?? [0, -1]
  if (!(lowest >= 0 && highest < stored && offset >= 0))
    throw new ShapeError(
      `${op}: size ${formatShape(size)}, stride ${formatShape(stride)} and storageOffset ${offset} reach from element ${lowest} to ${highest}, ` +
        `but ${owner} has ${stored} elements.`,
    )
}

/** How many elements the storage of a tensor holds, as far as is known: that of a fake tensor is as large as the tensor that it is a view of needs. */
export function storedElementsOf(self: Tensor): number {
  let root = self
  while (root.storage === null && root.viewBase !== null) root = root.viewBase
  // The numbers of complex tensors are views of another dtype.
  const { size } = dtypeInfo[self.dtype]
  if (root.storage !== null) return Math.floor(root.storage.nbytes / size)
  return Math.floor((((reachOf(root.sizes, root.steps, root.offset)?.[1] ?? -1) + 1) * dtypeInfo[root.dtype].size) / size)
}

/** A shape with its -1, if it has one, filled in. Throws ShapeError if the sizes do not fit. */
export function inferShape(op: string, self: Tensor, shape: readonly number[]): readonly number[] {
  const unknown = shape.indexOf(-1)
  const known = shape.reduce((n, s) => (s === -1 ? n : n * s), 1)
  const out = unknown < 0 ? shape : shape.map((s, i) => (i === unknown ? self.numel / known : s))
  if (shape.filter((s) => s === -1).length > 1)
    throw new ShapeError(
      `${op}: the shape ${formatShape(shape)} has more than one -1; only one size can be left to the others. self has ${self.numel} elements (shape ${formatShape(self.sizes)}).`,
    )
  if (out.some((s) => !Number.isInteger(s) || s < 0) || numelOf(out) !== self.numel) {
    throw new ShapeError(
      `${op}: the shape ${formatShape(shape)} does not hold the ${self.numel} elements of self (shape ${formatShape(self.sizes)}).`,
    )
  }
  return out
}

/** What {@link viewStrides} reads of a tensor. */
type Laid = Pick<Tensor, 'sizes' | 'steps' | 'numel' | 'contiguousLayout'>

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
function runsOf({ sizes, steps }: Laid): readonly { readonly size: number; readonly stride: number }[] {
  const runs: { size: number; stride: number }[] = []
  sizes.toReversed().forEach((size, i) => {
    const stride = steps.at(-1 - i)
    if (size === 1 || stride === undefined) return
    const run = runs.at(-1)
    if (run !== undefined && stride === run.stride * run.size) run.size *= size
    else runs.push({ size, stride })
  })
  return runs
}
