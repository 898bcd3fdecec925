// Other orders and shapes of the same elements: movedim, unflatten, rot90, tile and more, composed of permute, reshape, flip and repeat.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import {
  formatShape,
  sameShape,
  sizeEq,
  sizeFloorDiv,
  sizeProduct,
  Tensor,
  windowOf,
  wrapDim,
  sizeAdd,
  sizeAtMost,
  sizeMul,
  sizeSub,
} from '../../tensor/index.ts'
import { valueText } from '../../protocol/index.ts'
import { rangeOf } from '../create/creation.ts'
import { add, mul } from '../pointwise/arithmetic.ts'
import { indexSelect } from './indexing.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { dimAndSize, sizeAt } from '../shared/shapes.ts'
import { flip, repeat } from './repeat.ts'
import { permute, transpose } from './permute.ts'
import { clone, reshape, unsqueeze, view } from './reshape.ts'
import { expand } from './windows.ts'

type Dims = number | readonly number[]

/**
 * Moves dimensions to other places; the others keep their order. A view. PyTorch's `torch.movedim`.
 *
 * Shape: the sizes of `self` in the new order.
 *
 * @throws ArgumentError if the lists differ in length or repeat a dimension.
 * @throws ShapeError if a dimension is out of range.
 * @example torch.movedim(torch.zeros([2, 3, 4]), 0, -1).shape // [3, 4, 2]
 */
export const movedim: OpFunction<(self: Tensor, source: Dims, destination: Dims) => Tensor> = defineOp({
  schema: 'movedim(Tensor self, int[] source, int[] destination) -> Tensor',
  method: true,
  decompose: (self, source, destination) => {
    const from = source.map((d) => wrapDim('torch.movedim', d, self.ndim))
    const to = destination.map((d) => wrapDim('torch.movedim', d, self.ndim))
    if (from.length !== to.length || new Set(from).size !== from.length || new Set(to).size !== to.length)
      throw new ArgumentError(
        `torch.movedim: source [${source.join(', ')}] and destination [${destination.join(', ')}] must name as many dimensions, each once.`,
      )
    const rest = self.symSizes.flatMap((_, d) => (from.includes(d) ? [] : [d]))
    const order = self.symSizes.map((_, d) => (to.includes(d) ? (from[to.indexOf(d)] ?? d) : (rest.shift() ?? d)))
    return permute(self, order)
  },
})

/**
 * Moves dimensions to other places: {@link movedim}. A view. PyTorch's `torch.moveaxis`.
 *
 * Shape: the sizes of `self` in the new order.
 *
 * @throws ShapeError if a dimension is out of range.
 * @example torch.moveaxis(torch.zeros([2, 3, 4]), 0, -1).shape // [3, 4, 2]
 */
export const moveaxis: OpFunction<(self: Tensor, source: Dims, destination: Dims) => Tensor> = defineOp({
  schema: 'moveaxis(Tensor self, int[] source, int[] destination) -> Tensor',
  method: true,
  decompose: (self, source, destination) => movedim(self, source, destination),
})

/**
 * Swaps two dimensions: {@link transpose}. A view. PyTorch's `torch.swapaxes`.
 *
 * Shape: that of `self`, with two sizes swapped.
 *
 * @throws ShapeError if a dimension is out of range.
 * @example torch.swapaxes(torch.zeros([2, 3]), 0, 1).shape // [3, 2]
 */
export const swapaxes: Op['swapaxes'] = defineOp({
  schema: 'swapaxes(Tensor self, int axis0, int axis1) -> Tensor',
  method: true,
  decompose: (self, a, b) => transpose(self, a, b),
})

/**
 * Swaps two dimensions: {@link transpose}. A view. PyTorch's `torch.swapdims`.
 *
 * Shape: that of `self`, with two sizes swapped.
 *
 * @throws ShapeError if a dimension is out of range.
 * @example torch.swapdims(torch.zeros([2, 3]), 0, 1).shape // [3, 2]
 */
export const swapdims: Op['swapdims'] = defineOp({
  schema: 'swapdims(Tensor self, int dim0, int dim1) -> Tensor',
  method: true,
  decompose: (self, a, b) => transpose(self, a, b),
})

/**
 * Swaps the last two dimensions, and conjugates complex numbers; a view of real ones. PyTorch's `torch.adjoint`.
 *
 * Shape: that of `self`, with the last two sizes swapped.
 *
 * @throws ShapeError if a dimension is out of range.
 * @example torch.adjoint(torch.zeros([2, 3, 4])).shape // [2, 4, 3]
 */
export const adjoint: Op['adjoint'] = defineOp({
  schema: 'adjoint(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => transpose(self, -2, -1),
})

/**
 * Splits a dimension into several; one size may be -1. PyTorch's `torch.unflatten`.
 *
 * Shape: that of `self`, with `sizes` in place of `dim`.
 *
 * @throws ShapeError if the sizes do not multiply to that of `dim`.
 * @example torch.unflatten(torch.zeros([2, 6]), 1, [3, -1]).shape // [2, 3, 2]
 */
export const unflatten: Op['unflatten'] = defineOp({
  schema: 'unflatten(Tensor self, int dim, SymInt[] sizes) -> Tensor',
  method: true,
  decompose: (self, dim, sizes) => {
    const [at, size] = dimAndSize('torch.unflatten', self, dim)
    const known = sizeProduct(sizes.filter((s) => s !== -1))
    const full = sizes.map((s) => (s === -1 ? sizeFloorDiv(size, known) : s))
    if (!sizeEq(sizeProduct(full), size))
      throw new ShapeError(`torch.unflatten: the sizes ${formatShape(sizes)} do not multiply to ${size.toString()}, the size of dimension ${dim}.`)
    return reshape(self, [...self.symSizes.slice(0, at), ...full, ...self.symSizes.slice(at + 1)])
  },
})

/**
 * The elements in one dimension. PyTorch's `torch.ravel`.
 *
 * Shape: one dimension with all elements.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.ravel(torch.tensor([[1, 2], [3, 4]])).toArray() // [1, 2, 3, 4]
 */
export const ravel: Op['ravel'] = defineOp({
  schema: 'ravel(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => reshape(self, -1),
})

/**
 * A view of the shape of another tensor. PyTorch's `Tensor.view_as`.
 *
 * Shape: that of `other`.
 *
 * @throws ShapeError if the shapes do not fit.
 * @example torch.zeros([6]).viewAs(torch.zeros([2, 3])).shape // [2, 3]
 */
export const viewAs: Op['viewAs'] = defineOp({
  schema: 'view_as(Tensor self, Tensor other) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, other) => view(self, other.symSizes),
})

/**
 * The elements in the shape of another tensor. PyTorch's `Tensor.reshape_as`.
 *
 * Shape: that of `other`.
 *
 * @throws ShapeError if the shapes do not fit.
 * @example torch.zeros([6]).reshapeAs(torch.zeros([2, 3])).shape // [2, 3]
 */
export const reshapeAs: Op['reshapeAs'] = defineOp({
  schema: 'reshape_as(Tensor self, Tensor other) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, other) => reshape(self, other.symSizes),
})

/**
 * Repeats dimensions of size 1 as the shape of another tensor needs. A view. PyTorch's `Tensor.expand_as`.
 *
 * Shape: that of `other`.
 *
 * @throws ShapeError if the shapes do not fit.
 * @example torch.zeros([1, 3]).expandAs(torch.zeros([2, 3])).shape // [2, 3]
 */
export const expandAs: Op['expandAs'] = defineOp({
  schema: 'expand_as(Tensor self, Tensor other) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, other) => expand(self, other.symSizes),
})

/**
 * Repeats dimensions of size 1 as `size` needs. A view. PyTorch's `torch.broadcast_to`.
 *
 * Shape: `size`.
 *
 * @throws ShapeError if the shape does not broadcast to `size`.
 * @example torch.broadcastTo(torch.zeros([3]), [2, 3]).shape // [2, 3]
 */
export const broadcastTo: Op['broadcastTo'] = defineOp({
  schema: 'broadcast_to(Tensor self, int[] size) -> Tensor',
  method: true,
  decompose: (self, size) => expand(self, size),
})

/**
 * Reverses dimension 1. PyTorch's `torch.fliplr`.
 *
 * Shape: that of `self`.
 *
 * @throws ShapeError if a dimension is out of range.
 * @example torch.fliplr(torch.tensor([[1, 2], [3, 4]])).toArray() // [[2, 1], [4, 3]]
 */
export const fliplr: Op['fliplr'] = defineOp({
  schema: 'fliplr(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => flip(self, 1),
})

/**
 * Reverses dimension 0. PyTorch's `torch.flipud`.
 *
 * Shape: that of `self`.
 *
 * @throws ShapeError if a dimension is out of range.
 * @example torch.flipud(torch.tensor([[1, 2], [3, 4]])).toArray() // [[3, 4], [1, 2]]
 */
export const flipud: Op['flipud'] = defineOp({
  schema: 'flipud(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => flip(self, 0),
})

/**
 * Turns the plane of two dimensions by `k` quarters, from the first towards the second. PyTorch's `torch.rot90`.
 *
 * Shape: that of `self`, with the two sizes swapped for odd `k`.
 *
 * @throws ArgumentError unless `dims` names two different dimensions.
 * @example torch.rot90(torch.tensor([[1, 2], [3, 4]])).toArray() // [[2, 4], [1, 3]]
 */
export const rot90: Op['rot90'] = defineOp({
  schema: 'rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor',
  method: true,
  decompose: (self, k, dims) => {
    const [a, b] = dims.map((d) => wrapDim('torch.rot90', d, self.ndim))
    if (a === undefined || b === undefined || a === b || dims.length !== 2)
      throw new ArgumentError(`torch.rot90: dims must name two different dimensions, got [${dims.join(', ')}].`)
    const turns = ((k % 4) + 4) % 4
    if (turns === 0) return clone(self)
    if (turns === 2) return flip(self, [a, b])
    return turns === 1 ? transpose(flip(self, b), a, b) : flip(transpose(self, a, b), b)
  },
})

/**
 * The elements repeated `dims` times along each dimension; missing dimensions are added in front, of the tensor or of `dims`. PyTorch's `torch.tile`.
 *
 * Shape: the sizes of `self` times `dims`.
 *
 * @throws ArgumentError if `dims` is not a list of integers.
 * @example torch.tile(torch.tensor([1, 2]), [2]).toArray() // [1, 2, 1, 2]
 */
export const tile: OpFunction<(self: Tensor, ...dims: readonly (number | readonly number[])[]) => Tensor> = defineOp({
  schema: 'tile(Tensor self, int[] dims) -> Tensor',
  method: true,
  decompose: (self, dims) => repeat(self, [...self.symSizes.slice(0, Math.max(0, self.ndim - dims.length)).map(() => 1), ...dims]),
})

/**
 * Windows of `size` elements, `step` apart, along a dimension; the elements of each are a new last dimension. PyTorch's `Tensor.unfold`.
 *
 * Shape: that of `self` with the number of windows in `dimension`, and `size` at the end.
 *
 * @throws ArgumentError if the windows do not fit.
 * @example torch.tensor([1, 2, 3, 4]).unfold(0, 2, 1).toArray() // [[1, 2], [2, 3], [3, 4]]
 */
export const unfold: Op['unfold'] = defineOp({
  schema: 'unfold(Tensor self, int dimension, int size, int step) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, dimension, size, step) => {
    if (self.ndim === 0) return unfold(reshape(self, [1]), dimension, size, step).select(0, 0)
    const [at, length] = dimAndSize('torch.Tensor.unfold', self, dimension)
    if (!(size >= 0 && sizeAtMost(size, length) && step > 0))
      throw new ArgumentError(
        `torch.Tensor.unfold: windows of ${size} elements, ${step} apart, do not fit dimension ${dimension} of size ${length.toString()} (shape ${formatShape(self.symSizes)}).`,
      )
    const count = sizeAdd(sizeFloorDiv(sizeSub(length, size), step), 1)
    const positions = add(mul(unsqueeze(rangeOf(0, 1, count, 'int64'), 1), step), rangeOf(0, 1, size, 'int64'))
    const windows = unflatten(indexSelect(self, at, reshape(positions, -1)), at, [count, size])
    return movedim(windows, at + 1, -1)
  },
})

/** The options of {@link repeatInterleave}. */
export interface RepeatOptions {
  readonly dim?: number | null
  /** The size that the result will have, which is checked. */
  readonly outputSize?: number | null
}

/**
 * Each slice of a dimension `repeats` times, one after the other; without `dim`, each element. A tensor of repeats says how often for each; alone, it
 * gives the positions that are repeated. PyTorch's `torch.repeat_interleave`.
 *
 * Shape: that of `self`, with the sum of the repeats in `dim`.
 *
 * @throws ArgumentError if `repeats` is neither a whole number nor a Tensor.
 * @throws ShapeError if a tensor of repeats has another size.
 * @example
 * torch.repeatInterleave(torch.tensor([1, 2]), 2).toArray() // [1, 1, 2, 2]
 * torch.repeatInterleave(torch.tensor([1, 2]), torch.tensor([0, 3]).long()).toArray() // [2, 2, 2]
 */
export const repeatInterleave: OpFunction<
  (self: Tensor, repeats?: number | Tensor | null, dim?: number | null | RepeatOptions, options?: RepeatOptions) => Tensor
> = defineOp({
  schema: 'repeat_interleave(Tensor self, any repeats=None, int? dim=None, *, int? output_size=None) -> Tensor',
  method: true,
  decompose: (self, repeats, dim, outputSize) => {
    const out = repeated(self, repeats, dim)
    const size = sizeAt(out.symSizes, dim ?? 0)
    if (outputSize !== null && !sizeEq(outputSize, size))
      throw new ArgumentError(`torch.repeat_interleave: output_size is ${outputSize}, but the repeats give ${String(size)} slices.`)
    return out
  },
})

/** What {@link repeatInterleave} gives. */
function repeated(self: Tensor, repeats: unknown, dim: number | null): Tensor {
  if (repeats === null) {
    if (self.ndim !== 1) throw new ShapeError(`torch.repeat_interleave: repeats must be a vector, got shape ${formatShape(self.symSizes)}.`)
    return repeatInterleave(rangeOf(0, 1, self.symNumel, 'int64'), self)
  }
  const flat = dim === null ? reshape(self, -1) : self
  const [at, size] = dimAndSize('torch.repeat_interleave', flat, dim ?? 0)
  if (repeats instanceof Tensor && !sizeEq(repeats.symNumel, 1)) {
    if (!sameShape(repeats.symSizes, [size]))
      throw new ShapeError(
        `torch.repeat_interleave: repeats must have shape ${formatShape([size])}, one for each slice, got ${formatShape(repeats.symSizes)}.`,
      )
    const counts = Array.from(repeats.toTypedArray(), Number)
    const wrong = counts.find((n) => !Number.isInteger(n) || n < 0)
    if (wrong !== undefined) throw new ArgumentError(`torch.repeat_interleave: repeats must be whole numbers that are not negative, got ${wrong}.`)
    // The tensor first: it says whether there is memory for this many.
    const positions = Tensor.empty([counts.reduce((a, b) => a + b, 0)], 'int32')
    const { data, base } = windowOf(positions)
    let next = base
    counts.forEach((n, i) => {
      for (const end = next + n; next < end; next++) data[next] = i
    })
    return indexSelect(flat, at, positions)
  }
  const times = repeats instanceof Tensor ? repeats.item() : repeats
  if (typeof times !== 'number' || !Number.isInteger(times) || times < 0)
    throw new ArgumentError(`torch.repeat_interleave: repeats must be a whole number that is not negative, or a Tensor, got ${valueText(times)}.`)
  const spread = expand(unsqueeze(flat, at + 1), [...flat.symSizes.slice(0, at + 1), times, ...flat.symSizes.slice(at + 1)])
  return reshape(spread, flat.symSizes.with(at, sizeMul(size, times)))
}
