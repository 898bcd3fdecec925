// The arithmetic of views: the strides under which a storage shows another shape.
import { ShapeError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { Size } from '../../protocol/index.ts'
import {
  contiguousStrides,
  formatShape,
  reachOf,
  sizeAdd,
  sizeAtMost,
  sizeEq,
  sizeFloorDiv,
  sizeLess,
  sizeMod,
  sizeMul,
  sizeProduct,
} from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'

/** The layout of a view of `self`. */
export const viewSpec = (self: Tensor, shape: readonly Size[], strides: readonly Size[], offset: Size = self.symOffset): TensorSpec<Size> => ({
  shape,
  strides,
  offset,
  dtype: self.dtype,
})

/**
 * Throws ShapeError unless a window lies within `stored` elements, those of `owner` in the message. Strides may be negative.
 */
export function checkWindow(op: string, size: readonly Size[], stride: readonly Size[], offset: Size, stored: Size, owner: string): void {
  if (size.length !== stride.length)
    throw new ShapeError(`${op}: size ${formatShape(size)} and stride ${formatShape(stride)} must have the same length.`)
  if (size.some((s) => typeof s === 'number' && (!Number.isSafeInteger(s) || s < 0)))
    throw new ShapeError(`${op}: argument 'size' must hold integers of at least 0, got ${formatShape(size)}.`)
  const [lowest, highest] = reachOf(size, stride, offset) ?? [0, -1]
  if (!(sizeAtMost(0, lowest) && sizeLess(highest, stored) && sizeAtMost(0, offset)))
    throw new ShapeError(
      `${op}: size ${formatShape(size)}, stride ${formatShape(stride)} and storageOffset ${offset.toString()} reach from element ${lowest.toString()} to ${highest.toString()}, ` +
        `but ${owner} has ${stored.toString()} elements.`,
    )
}

/** How many elements the storage of a tensor holds, as far as is known: that of a fake tensor is as large as the tensor that it is a view of needs. */
export function storedElementsOf(self: Tensor): Size {
  let root = self
  while (root.storage === null && root.viewBase !== null) root = root.viewBase
  // The numbers of complex tensors are views of another dtype.
  const { size } = dtypeInfo[self.dtype]
  if (root.storage !== null) return Math.floor(root.storage.nbytes / size)
  const [, highest] = reachOf(root.symSizes, root.symSteps, root.symOffset) ?? [0, -1]
  return sizeFloorDiv(sizeMul(sizeAdd(highest, 1), dtypeInfo[root.dtype].size), size)
}

/** A shape with its -1, if it has one, filled in. Throws ShapeError if the sizes do not fit. */
export function inferShape(op: string, self: Tensor, shape: readonly Size[]): readonly Size[] {
  const unknown = shape.indexOf(-1)
  if (unknown >= 0 && shape.includes(-1, unknown + 1))
    throw new ShapeError(
      `${op}: the shape ${formatShape(shape)} has more than one -1; only one size can be left to the others. self has ${String(self.symNumel)} elements (shape ${formatShape(self.symSizes)}).`,
    )
  const out = unknown < 0 ? shape : filledIn(self.symNumel, shape, unknown)
  const fits =
    out !== null && out.every((size) => typeof size !== 'number' || (Number.isInteger(size) && size >= 0)) && sizeEq(sizeProduct(out), self.symNumel)
  if (fits) return out
  throw new ShapeError(
    `${op}: the shape ${formatShape(shape)} does not hold the ${String(self.symNumel)} elements of self (shape ${formatShape(self.symSizes)}).`,
  )
}

/** The shape with what is left of `numel` in the place of its -1; null if the other sizes do not divide it. */
function filledIn(numel: Size, shape: readonly Size[], unknown: number): readonly Size[] | null {
  const known = sizeProduct(shape.toSpliced(unknown, 1))
  if (sizeEq(known, 0) || !sizeEq(sizeMod(numel, known), 0)) return null
  return shape.with(unknown, sizeFloorDiv(numel, known))
}

/** What {@link viewStrides} reads of a tensor. */
type Laid = Pick<Tensor, 'symSizes' | 'symSteps' | 'symNumel' | 'contiguousLayout'>

/** Strides under which the elements of `self` form `shape` without a copy; null if its layout does not allow that. */
export function viewStrides(self: Laid, shape: readonly Size[]): readonly Size[] | null {
  if (self.contiguousLayout || sizeEq(self.symNumel, 0)) return contiguousStrides(shape)
  const out = shape.map((): Size => 1)
  let target = shape.length - 1
  for (const run of runsOf(self)) {
    // The sizes of `shape`, from the last, must divide the run exactly.
    let { size } = run
    let step = run.stride
    while (target >= 0 && sizeLess(1, size)) {
      const s = shape[target] ?? 1
      if (!sizeEq(sizeMod(size, s), 0)) return null
      out[target--] = step
      step = sizeMul(step, s)
      size = sizeFloorDiv(size, s)
    }
    if (!sizeEq(size, 1)) return null
  }
  return shape.slice(0, target + 1).every((s) => sizeEq(s, 1)) ? out : null
}

/** Stretches of dimensions that are walked as one, from the last; dimensions of size 1 do not count. */
function runsOf({ symSizes, symSteps }: Laid): readonly { readonly size: Size; readonly stride: Size }[] {
  const runs: { size: Size; stride: Size }[] = []
  symSizes.toReversed().forEach((size, i) => {
    const stride = symSteps.at(-1 - i)
    if (stride === undefined || sizeEq(size, 1)) return
    const run = runs.at(-1)
    if (run !== undefined && sizeEq(stride, sizeMul(run.stride, run.size))) run.size = sizeMul(run.size, size)
    else runs.push({ size, stride })
  })
  return runs
}
