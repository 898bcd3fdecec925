// Indexing by tensors, Python's `x[i, j]` and `x[mask]`: index and indexPut, composed of indexSelect, indexAdd and indexCopy on the flattened dimensions.
import type { Size } from '../../protocol/index.ts'
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { valueText } from '../../protocol/index.ts'
import {
  broadcastShapes,
  formatShape,
  inverseOrder,
  sameShape,
  sizeEq,
  Tensor,
  sizeFloorDiv,
  sizeProduct,
  sizeSub,
  scalarOf,
} from '../../tensor/index.ts'
import { full } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { checkIndexType } from './indices.ts'
import { add, mul } from '../pointwise/arithmetic.ts'
import { ge, logicalNot, logicalOr, lt } from '../pointwise/comparison.ts'
import { clamp, maskedFill, where } from '../pointwise/select.ts'
import { sizeAt } from '../shared/shapes.ts'
import { indexSelect } from './indexing.ts'
import { permute } from './permute.ts'
import { fromStart, indexAdd, indexCopy, nonzero } from './positions.ts'
import { clone, contiguous, reshape } from './reshape.ts'
import { expand } from './windows.ts'

/** For each of the first dimensions, the positions in it, or null for all of it. A bool tensor counts for as many dimensions as it has. */
export type TensorIndices = readonly (Tensor | null)[]

const isIndices = (value: unknown): value is TensorIndices => Array.isArray(value) && value.every((item) => item === null || item instanceof Tensor)

/** A tensor of positions for each indexed dimension: a mask stands for the positions at which it holds. */
function perDimension(op: string, self: Tensor, given: unknown): readonly (Tensor | null)[] {
  if (!isIndices(given)) throw new ArgumentError(`${op}: argument 'indices' must be an array of Tensors and nulls, got ${valueText(given)}.`)
  const found: (Tensor | null)[] = []
  for (const item of given) {
    if (item === null || item.dtype !== 'bool') {
      if (item !== null) checkIndexType(op, 'indices', item)
      found.push(item)
      continue
    }
    const covered = self.symSizes.slice(found.length, found.length + item.ndim)
    if (!sameShape(covered, item.symSizes))
      throw new ShapeError(
        `${op}: a mask of shape ${formatShape(item.symSizes)} does not fit dimensions ${found.length} and following of self, of shape ${formatShape(self.symSizes)}.`,
      )
    found.push(...nonzero(item, { asTuple: true }))
  }
  if (found.length > self.ndim)
    throw new ArgumentError(`${op}: ${found.length} indices for a tensor of ${self.ndim} dimensions (shape ${formatShape(self.symSizes)}).`)
  return found
}

/** How the indexed dimensions become one: what an index says, apart from the values. */
interface Plan {
  /** The indexed dimensions first, then the others. */
  readonly order: readonly number[]
  /** Sizes of the dimensions that are not indexed. */
  readonly rest: readonly Size[]
  /** The number of positions in the indexed dimensions. */
  readonly count: Size
  /** The common shape of the tensors of positions. */
  readonly shape: readonly Size[]
  /** Positions in the indexed dimensions as one. */
  readonly flat: Tensor
  /** Where the dimensions of `shape` are in the result: in place of the indexed ones if these are neighbours, otherwise in front. */
  readonly at: number
}

function planOf(op: string, self: Tensor, given: unknown): Plan | null {
  const indices = perDimension(op, self, given)
  const dims = indices.flatMap((index, d) => (index === null ? [] : [d]))
  const [first] = dims
  if (first === undefined) return null
  const count = sizeProduct(dims.map((d) => sizeAt(self.symSizes, d)))
  let shape: readonly Size[] = []
  let flat: Tensor | null = null
  let step = count
  for (const d of dims) {
    const index = indices[d]
    if (index === undefined || index === null) continue
    const size = sizeAt(self.symSizes, d)
    step = sizeEq(size, 0) ? 0 : sizeFloorDiv(step, size)
    shape = broadcastShapes(op, shape, index.symSizes)
    const positions = dtypeInfo[index.dtype].size < 4 ? index.to('int64') : index
    // A position outside its dimension must not be one of another slice: it goes beyond all of them, where it is noticed.
    const outside = logicalOr(lt(positions, scalarOf(sizeSub(0, size))), ge(positions, scalarOf(size)))
    const part = where(outside, scalarOf(count), mul(fromStart(positions, size), scalarOf(step)))
    flat = flat === null ? part : add(flat, part)
  }
  if (flat === null) return null
  const others = self.symSizes.flatMap((_, d) => (dims.includes(d) ? [] : [d]))
  const neighbours = (dims.at(-1) ?? first) - first === dims.length - 1
  return {
    order: [...dims, ...others],
    rest: others.map((d) => sizeAt(self.symSizes, d)),
    count,
    shape,
    flat: reshape(flat, -1),
    at: neighbours ? first : 0,
  }
}

/** The order of dimensions that moves `n` dimensions from the front to `at`. */
function fromFront(n: number, at: number, total: number): readonly number[] {
  const others = Array.from({ length: total - n }, (_, i) => n + i)
  return [...others.slice(0, at), ...Array.from({ length: n }, (_, i) => i), ...others.slice(at)]
}

/**
 * The elements at positions, one tensor of them for each of the first dimensions (null for all of one), which broadcast; negative positions count from the end. A
 * bool tensor stands for the positions at which it holds. Python's `x[i, j]`; PyTorch's `aten.index`.
 *
 * Shape: the common shape of the positions, in place of the indexed dimensions (in front, if they are not neighbours).
 *
 * @throws ArgumentError if a position is out of range, or there are more indices than dimensions.
 * @throws ShapeError if the positions do not broadcast, or a mask does not fit.
 * @example
 * torch.index(torch.tensor([[1, 2], [3, 4]]), [torch.tensor([0, 1]).long(), torch.tensor([1, -1]).long()]).toArray() // [2, 4]
 * torch.index(torch.tensor([1, 2, 3]), [torch.tensor([true, false, true])]).toArray() // [1, 3]
 */
export const index: OpFunction<(self: Tensor, indices: TensorIndices) => Tensor> = defineOp({
  schema: 'index(Tensor self, any indices) -> Tensor',
  method: true,
  decompose: (self, indices) => {
    const plan = planOf('torch.index', self, indices)
    if (plan === null) return self
    const { order, rest, count, shape, flat, at } = plan
    // One indexed dimension stays where it is.
    if (rest.length === self.ndim - 1)
      return reshape(indexSelect(self, at, flat), [...self.symSizes.slice(0, at), ...shape, ...self.symSizes.slice(at + 1)])
    const chosen = reshape(indexSelect(reshape(permute(self, order), [count, ...rest]), 0, flat), [...shape, ...rest])
    return at === 0 ? chosen : contiguous(permute(chosen, fromFront(shape.length, at, chosen.ndim)))
  },
})

/**
 * A copy of `self` with `values` written at positions; with `accumulate` they are added, also at a position that occurs several times. PyTorch's `torch.index_put`.
 *
 * Shapes: `indices` as for {@link index}, to whose result `values` broadcasts. The result has the shape of `self`.
 *
 * @throws ArgumentError if a position is out of range, or there are more indices than dimensions.
 * @throws ShapeError if the positions do not broadcast, a mask does not fit, or `values` does not broadcast.
 * @example torch.indexPut(torch.zeros([3]), [torch.tensor([2, -3]).long()], torch.tensor([5, 7])).toArray() // [7, 0, 5]
 */
export const indexPut: OpFunction<
  (self: Tensor, indices: TensorIndices, values: Tensor, accumulate?: boolean | { readonly accumulate?: boolean }) => Tensor
> = defineOp({
  schema: 'index_put(Tensor self, any indices, Tensor values, bool accumulate=False) -> Tensor',
  autocast: 'untouched',
  method: true,
  inPlace: 'function',
  decompose: (self, indices, values, accumulate) => {
    const plan = planOf('torch.index_put', self, indices)
    if (plan === null) return accumulate ? add(self, values) : expand(values, self.symSizes)
    const { order, rest, count, shape, flat, at } = plan
    const layout = fromFront(shape.length, at, shape.length + rest.length)
    const wanted = layout.map((d) => [...shape, ...rest][d] ?? 1)
    const source = reshape(permute(expand(values, wanted), inverseOrder(layout)), [flat.symNumel, ...rest])
    const target = permute(self, order)
    const lines = reshape(target, [count, ...rest])
    const written = accumulate ? indexAdd(lines, 0, flat, source) : indexCopy(lines, 0, flat, source)
    return permute(reshape(written, target.symSizes), inverseOrder(order))
  },
})

/** The indices within the sizes of `self`: what a mask leaves out may point anywhere. */
function clamped(op: string, self: Tensor, mask: Tensor, indices: unknown): TensorIndices {
  if (mask.dtype !== 'bool') throw new DTypeError(`${op}: mask must be bool, got ${mask.dtype}.`)
  return perDimension(op, self, indices).map((index, d) =>
    index === null ? null : clamp(index, scalarOf(sizeSub(0, sizeAt(self.symSizes, d))), scalarOf(sizeSub(sizeAt(self.symSizes, d), 1))),
  )
}

/**
 * The elements of `self` at `indices` where `mask` holds, and `fill` elsewhere, where an index may be out of range. PyTorch's `aten._unsafe_masked_index`.
 *
 * Shape: that to which the indices broadcast, followed by the dimensions without an index; `mask` broadcasts to it.
 *
 * @throws DTypeError unless `mask` is bool.
 * @throws ArgumentError if `indices` is not an array of tensors and nulls, or has more of them than `self` has dimensions.
 * @example torch._unsafeMaskedIndex(torch.tensor([1, 2]), torch.tensor([true, false]), [torch.tensor([1, 9]).long()], -1).toArray() // [2, -1]
 */
export const unsafeMaskedIndex: OpFunction<(self: Tensor, mask: Tensor, indices: TensorIndices, fill: number) => Tensor> = defineOp({
  schema: '_unsafe_masked_index(Tensor self, Tensor mask, any indices, Scalar fill) -> Tensor',
  decompose: (self, mask, indices, fill) => {
    const places = clamped('torch._unsafe_masked_index', self, mask, indices)
    if (sizeEq(self.symNumel, 0)) return full(mask.symSizes, fill, { dtype: self.dtype })
    return maskedFill(index(self, places), logicalNot(mask), fill)
  },
})

/**
 * `self` with the elements of `values` added at `indices` where `mask` holds. Elsewhere an index may be out of range. PyTorch's `aten._unsafe_masked_index_put_accumulate`.
 *
 * Shape: that of `self`; `values` and `mask` have the shape to which the indices broadcast.
 *
 * @throws DTypeError unless `mask` is bool.
 * @throws ArgumentError if `indices` is not an array of tensors and nulls, or has more of them than `self` has dimensions.
 * @example torch._unsafeMaskedIndexPutAccumulate(torch.zeros([2]), torch.tensor([true, false]), [torch.tensor([1, 9]).long()], torch.tensor([3, 4])).toArray() // [0, 3]
 */
export const unsafeMaskedIndexPutAccumulate: OpFunction<(self: Tensor, mask: Tensor, indices: TensorIndices, values: Tensor) => Tensor> = defineOp({
  schema: '_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, any indices, Tensor values) -> Tensor',
  decompose: (self, mask, indices, values) => {
    const places = clamped('torch._unsafe_masked_index_put_accumulate', self, mask, indices)
    return sizeEq(self.symNumel, 0) ? clone(self) : indexPut(self, places, maskedFill(values, logicalNot(mask), 0), true)
  },
})
