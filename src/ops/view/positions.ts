// Reading and writing at positions, composed of gather and scatter: indexAdd, indexCopy, take, put, masks, nonzero.
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import type { Size } from '../../protocol/index.ts'
import {
  Tensor,
  broadcastShapes,
  contiguousStrides,
  formatShape,
  numelOf,
  sameShape,
  scalarOf,
  sizeLess,
  sizeOfData,
  tensorFromValues,
  wrapDim,
} from '../../tensor/index.ts'
import type { ComplexNumber } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { full, onesLike, zeros } from '../create/creation.ts'
import { cat, unbind } from '../join/join.ts'
import { add, floorDivide, mul, remainder } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { lt } from '../pointwise/comparison.ts'
import { checkMask, where } from '../pointwise/select.ts'
import { sizeAt } from '../shared/shapes.ts'
import { gather, indexSelect, scatterAdd } from './indexing.ts'
import { reshape } from './reshape.ts'
import { scatterReduce, scatterValues } from './scatter.ts'
import type { ScatterReduction } from './scatter.ts'
import { narrow } from './slicing.ts'
import { expand } from './windows.ts'

/** What an operator on slices writes: `line` at the positions `full` along the dimension `at`, from `values`. */
interface Slices {
  readonly line: Tensor
  readonly at: number
  readonly full: Tensor
  readonly values: Tensor
}

/**
 * `write` with a list of positions along `dim` as the index of a scatter of whole slices. A tensor without dimensions is a line of one element, and so is a single slice
 * of one.
 */
function writeSlices(op: string, self: Tensor, dim: number, index: Tensor, source: Tensor | null, write: (slices: Slices) => Tensor): Tensor {
  const at = wrapDim(op, dim, self.ndim)
  if (index.ndim > 1) throw new ShapeError(`${op}: argument 'index' must have 1 dimension, got shape ${formatShape(index.symSizes)}.`)
  const line = self.ndim === 0 ? reshape(self, [1]) : self
  const along = reshape(
    index,
    line.symSizes.map((_, d) => (d === at ? index.symNumel : 1)),
  )
  const values = source === null ? line : source.ndim === 0 && line.ndim === 1 ? reshape(source, [1]) : source
  const sizes = line.symSizes.with(at, index.symNumel)
  if (source !== null && !sameShape(values.symSizes, sizes))
    throw new ShapeError(
      `${op}: argument 'source' has shape ${formatShape(source.symSizes)}, but ${index.symNumel} slices of self (shape ${formatShape(self.symSizes)}) have shape ${formatShape(sizes)}.`,
    )
  return reshape(write({ line, at, full: expand(along, sizes), values }), self.symSizes)
}

/** Positions in a dimension of `size` elements, negative ones counted from its end. */
export const fromStart = (index: Tensor, size: Size): Tensor => where(lt(index, 0), add(index, scalarOf(size)), index)

/** {@link flatPositions} as a tensor. */
function flatIndex(self: Tensor): Tensor {
  const positions = flatPositions(self)
  return tensorFromValues(positions, [positions.length], 'int64')
}

/** The flat positions of the elements that are not 0. */
function flatPositions(self: Tensor): readonly number[] {
  const positions: number[] = []
  Array.from(self.contiguous().toTypedArray(), Number).forEach((value, i) => {
    if (value !== 0) positions.push(i)
  })
  return positions
}

/**
 * A copy of `self` with `alpha` times the slices of `source` added at the positions of `index` along `dim`. PyTorch's `torch.index_add`.
 *
 * Shapes: `index` [n]; `source` has n slices along `dim`. The result has the shape of `self`.
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError if an index is out of range.
 * @example torch.indexAdd(torch.zeros([3]), 0, torch.tensor([2, 2]).long(), torch.tensor([1, 5])).toArray() // [0, 0, 6]
 */
export const indexAdd: Op['indexAdd'] = defineOp({
  schema: 'index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor',
  method: true,
  inPlace: 'method',
  decompose: (self, dim, index, source, alpha) =>
    writeSlices('torch.index_add', self, dim, index, source, ({ line, at, full, values }) =>
      scatterAdd(line, at, full, alpha === 1 ? values : to(mul(values, alpha), values.dtype)),
    ),
})

/**
 * A copy of `self` with the slices of `source` written at the positions of `index` along `dim`. PyTorch's `torch.index_copy`.
 *
 * Shapes: `index` [n]; `source` has n slices along `dim`. The result has the shape of `self`.
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError if an index is out of range.
 * @example torch.indexCopy(torch.zeros([3]), 0, torch.tensor([2, 0]).long(), torch.tensor([1, 5])).toArray() // [5, 0, 1]
 */
export const indexCopy: Op['indexCopy'] = defineOp({
  schema: 'index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor',
  method: true,
  inPlace: 'method',
  autocast: 'promote',
  decompose: (self, dim, index, source) =>
    writeSlices('torch.index_copy', self, dim, index, source, ({ line, at, full, values }) => scatterValues(line, at, full, values, 'set')),
})

/**
 * A copy of `self` with one number at the positions of `index` along `dim`. PyTorch's `torch.index_fill`.
 *
 * Shapes: `index` [n]. The result has the shape of `self`.
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError if an index is out of range.
 * @example torch.indexFill(torch.zeros([3]), 0, torch.tensor([2]).long(), 5).toArray() // [0, 0, 5]
 */
export const indexFill: OpFunction<(self: Tensor, dim: number, index: Tensor, value: number | ComplexNumber | Tensor) => Tensor> = defineOp({
  schema: 'index_fill(Tensor self, int dim, Tensor index, any value) -> Tensor',
  method: true,
  inPlace: 'method',
  decompose: (self, dim, index, value) => {
    if (typeof value !== 'number' && typeof value !== 'boolean' && !(value instanceof Tensor && value.ndim === 0))
      throw new ArgumentError(`torch.index_fill: argument 'value' must be a number or a Tensor without dimensions, got ${valueText(value)}.`)
    // A mask, not a scatter of values: what is filled twice counts once in the gradient of `value`.
    return writeSlices('torch.index_fill', self, dim, index, null, ({ line, at }) => {
      const places = scatterValues(
        zeros([sizeAt(line.symSizes, at)], { dtype: 'bool' }),
        0,
        reshape(index, [-1]),
        onesLike(reshape(index, [-1]), { dtype: 'bool' }),
        'set',
      )
      const mask = reshape(
        places,
        line.symSizes.map((size, d) => (d === at ? size : 1)),
      )
      return where(mask, value instanceof Tensor ? to(value, self.dtype) : full([], Number(value), { dtype: self.dtype }), line)
    })
  },
})

/**
 * A copy of `self` with the slices of `source` reduced into the positions of `index` along `dim`. PyTorch's `torch.index_reduce`.
 *
 * Shapes: `index` [n]; `source` has n slices along `dim`. The result has the shape of `self`.
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError unless `reduce` is 'prod', 'mean', 'amax' or 'amin'.
 * @example torch.indexReduce(torch.ones([2]), 0, torch.tensor([0, 0]).long(), torch.tensor([5, 7]), 'prod').toArray() // [35, 1]
 */
export const indexReduce: OpFunction<
  (
    self: Tensor,
    dim: number,
    index: Tensor,
    source: Tensor,
    reduce: Exclude<ScatterReduction, 'sum'>,
    options?: { readonly includeSelf?: boolean },
  ) => Tensor
> = defineOp({
  schema: 'index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor',
  method: true,
  inPlace: 'method',
  decompose: (self, dim, index, source, reduce, includeSelf) => {
    if (reduce !== 'prod' && reduce !== 'mean' && reduce !== 'amax' && reduce !== 'amin')
      throw new ArgumentError(`torch.index_reduce: reduce must be 'prod', 'mean', 'amax' or 'amin', got ${valueText(reduce)}.`)
    return writeSlices('torch.index_reduce', self, dim, index, source, ({ line, at, full, values }) =>
      scatterReduce(line, at, full, values, reduce, { includeSelf }),
    )
  },
})

/**
 * The elements at flat positions; negative ones count from the end. PyTorch's `torch.take`.
 *
 * Shape: that of `index`.
 *
 * @throws ArgumentError if an index is out of range.
 * @example torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([3, -4]).long()).toArray() // [4, 1]
 */
export const take: Op['take'] = defineOp({
  schema: 'take(Tensor self, Tensor index) -> Tensor',
  method: true,
  decompose: (self, index) => reshape(gather(reshape(self, -1), 0, reshape(fromStart(index, self.symNumel), -1)), index.symSizes),
})

/**
 * A copy of `self` with the elements of `source` at flat positions; with `accumulate` they are added. PyTorch's `torch.put`.
 *
 * Shapes: `index` and `source` have as many elements. The result has the shape of `self`.
 *
 * @throws ArgumentError if an index is out of range.
 * @example torch.put(torch.zeros([3]), torch.tensor([2, 0]).long(), torch.tensor([5, 7])).toArray() // [7, 0, 5]
 */
export const put: Op['put'] = defineOp({
  schema: 'put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor',
  method: true,
  inPlace: 'method',
  decompose: (self, index, source, accumulate) => {
    const [flat, positions, values] = [reshape(self, -1), reshape(fromStart(index, self.symNumel), -1), reshape(source, -1)]
    return reshape(accumulate ? scatterAdd(flat, 0, positions, values) : scatterValues(flat, 0, positions, values, 'set'), self.symSizes)
  },
})

/**
 * The elements at `indices` along a dimension, as {@link gather}, but both tensors broadcast in the others; without `dim`, of all elements in a row. PyTorch's `torch.take_along_dim`.
 *
 * Shape: the common shape, with the size of `indices` in `dim`.
 *
 * @throws ArgumentError if an index is out of range.
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.takeAlongDim(torch.tensor([[3, 1], [2, 4]]), torch.tensor([[1], [0]]).long(), 1).toArray() // [[1], [2]]
 */
export const takeAlongDim: Op['takeAlongDim'] = defineOp({
  schema: 'take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor',
  method: true,
  decompose: (self, indices, dim) => {
    if (dim === null) return gather(reshape(self, -1), 0, reshape(fromStart(indices, self.symNumel), -1))
    const at = wrapDim('torch.take_along_dim', dim, self.ndim)
    if (self.ndim === 0 && indices.ndim === 0) return reshape(gather(reshape(self, [1]), 0, fromStart(reshape(indices, [1]), 1)), [])
    if (self.ndim !== indices.ndim)
      throw new ShapeError(
        `torch.take_along_dim: self and indices must have as many dimensions, got shapes ${formatShape(self.symSizes)} and ${formatShape(indices.symSizes)}.`,
      )
    const shape = broadcastShapes('torch.take_along_dim', self.symSizes.with(at, 1), indices.symSizes.with(at, 1))
    const size = sizeAt(self.symSizes, at)
    return gather(expand(self, shape.with(at, size)), at, expand(fromStart(indices, size), shape.with(at, sizeAt(indices.symSizes, at))))
  },
})

const nonzeroTable = (self: Tensor): Tensor => {
  const positions = flatPositions(self)
  const steps = contiguousStrides(self.sizes)
  const rows = positions.flatMap((p) => steps.map((step, d) => Math.floor(p / step) % sizeAt(self.sizes, d)))
  return tensorFromValues(rows, [positions.length, self.ndim], 'int64')
}

/**
 * {@link nonzero} as an operator that traces record: a fake tensor has no positions. Internal; PyTorch's `torch.nonzero`.
 *
 * Shape: [n, number of dimensions].
 *
 * @throws UnsupportedError for a fake tensor outside of a symbolic trace.
 * @example torch.ops.tensorfx.nonzeroRows(torch.tensor([0, 3, 4])).toArray() // [[1], [2]]
 */
export const nonzeroRows: Op['nonzeroRows'] = defineOp({
  schema: 'nonzero_rows(Tensor self) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  tags: ['dataShape'],
  vmap: { none: 'examples have different numbers of non-zero elements' },
  onnx: { none: 'the shape of the result depends on data' },
  autocast: 'as is',
  meta: (self) => ({ shape: [sizeOfData('torch.nonzero', self.symNumel), self.ndim], dtype: 'int64' }),
  kernel: nonzeroTable,
})

/**
 * The positions of the elements that are not 0, as rows; with `asTuple`, a tensor of positions for each dimension. PyTorch's `torch.nonzero`.
 *
 * Shapes: [n, number of dimensions]; or one [n] for each dimension.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example
 * torch.nonzero(torch.tensor([0, 3, 4])).toArray() // [[1], [2]]
 * torch.nonzero(torch.tensor([[0, 3]]), { asTuple: true }).map((t) => t.toArray()) // [[0], [1]]
 */
export const nonzero: OpFunction<{
  (self: Tensor, options: { readonly asTuple: true }): readonly Tensor[]
  (self: Tensor, options?: { readonly asTuple?: false }): Tensor
}> = defineOp({
  schema: 'nonzero(Tensor self, *, bool as_tuple=False) -> any',
  method: true,
  decompose: (self, asTuple) => {
    const table = self.isFake ? nonzeroRows(self) : nonzeroTable(self)
    return asTuple ? unbind(table, 1) : table
  },
})

function rowCount<S extends Size>(size: S): S {
  if (sizeLess(size, 0)) throw new ArgumentError(`torch.nonzero_static: size must be at least 0, got ${size.toString()}.`)
  return size
}

/**
 * The first `size` rows of {@link nonzero}, and rows of `fillValue` where there are fewer, so that the shape does not depend on the data. PyTorch's `torch.nonzero_static`.
 *
 * Shape: [size, number of dimensions]. It is int64.
 *
 * @throws ArgumentError if `size` is negative.
 * @example torch.nonzeroStatic(torch.tensor([0, 3, 4]), { size: 3 }).toArray() // [[1], [2], [-1]]
 */
export const nonzeroStatic: Op['nonzeroStatic'] = defineOp({
  schema: 'nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor',
  method: true,
  vmap: { none: 'examples have different numbers of non-zero elements' },
  onnx: { none: 'the positions depend on data' },
  autocast: 'as is',
  meta: (self, size) => ({ shape: [rowCount(size), self.ndim], dtype: 'int64' }),
  kernel: (self, size, fillValue) => {
    const found = nonzero(self)
    const rows = Math.min(rowCount(size), sizeAt(found.sizes, 0))
    return cat([narrow(found, 0, 0, rows), full([size - rows, self.ndim], fillValue, { dtype: 'int64' })])
  },
})

/**
 * The positions of the elements that are not 0, as rows: {@link nonzero}. PyTorch's `torch.argwhere`.
 *
 * Shape: [n, number of dimensions].
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.argwhere(torch.tensor([0, 3, 4])).toArray() // [[1], [2]]
 */
export const argwhere: Op['argwhere'] = defineOp({
  schema: 'argwhere(Tensor self) -> Tensor',
  method: true,
  decompose: (self) => nonzero(self),
})

/**
 * The elements where a mask holds, in a row. PyTorch's `torch.masked_select`.
 *
 * Shapes: `self` and `mask` broadcast; the result has one dimension.
 *
 * @throws ShapeError if the shapes do not broadcast, DTypeError unless `mask` holds booleans.
 * @example torch.maskedSelect(torch.tensor([1, 2, 3]), torch.tensor([true, false, true])).toArray() // [1, 3]
 */
export const maskedSelect: Op['maskedSelect'] = defineOp({
  schema: 'masked_select(Tensor self, Tensor mask) -> Tensor',
  method: true,
  decompose: (self, mask) => {
    checkMask('torch.masked_select', mask)
    const shape = broadcastShapes('torch.masked_select', self.symSizes, mask.symSizes)
    const places = expand(mask, shape)
    return indexSelect(reshape(expand(self, shape), -1), 0, places.isFake ? reshape(nonzeroRows(reshape(places, -1)), -1) : flatIndex(places))
  },
})

/**
 * A copy of `self` in which the elements where a mask holds are those of `source`, in order. PyTorch's `torch.masked_scatter`.
 *
 * Shapes: `mask` broadcasts to `self`; `source` has at least as many elements as the mask holds places.
 *
 * @throws ShapeError if `source` has too few elements.
 * @throws DTypeError unless `mask` holds booleans.
 * @example torch.maskedScatter(torch.zeros([3]), torch.tensor([true, false, true]), torch.tensor([5, 6])).toArray() // [5, 0, 6]
 */
export const maskedScatter: Op['maskedScatter'] = defineOp({
  schema: 'masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor',
  method: true,
  inPlace: 'method',
  decompose: (self, mask, source) => {
    checkMask('torch.masked_scatter', mask)
    const shape = broadcastShapes('torch.masked_scatter', self.symSizes, mask.symSizes)
    const positions = flatPositions(expand(mask, shape))
    if (source.numel < positions.length)
      throw new ShapeError(`torch.masked_scatter: the mask holds ${positions.length} places, but source has only ${source.symNumel} elements.`)
    const index = tensorFromValues(positions, [positions.length], 'int64')
    return reshape(scatterValues(reshape(expand(self, shape), -1), 0, index, narrow(reshape(source, -1), 0, 0, positions.length), 'set'), shape)
  },
})

/**
 * Flat positions in a tensor of shape `shape` as positions along each of its dimensions, a tensor for each. PyTorch's `torch.unravel_index`.
 *
 * Shapes: each result has the shape of `indices`. They are int64.
 *
 * @throws DTypeError unless `indices` holds integers, ShapeError if a size is negative.
 * @example torch.unravelIndex(torch.tensor([5, 2]).long(), [2, 3]).map((t) => t.toArray()) // [[1, 0], [2, 2]]
 */
export const unravelIndex: Op['unravelIndex'] = defineOp({
  schema: 'unravel_index(Tensor indices, int[] shape) -> Tensor[]',
  decompose: (indices, shape) => {
    if (indices.isFloatingPoint() || indices.dtype === 'bool')
      throw new DTypeError(`torch.unravel_index: indices must be integers, got ${indices.dtype}. Convert them: x.long().`)
    if (shape.some((size) => size < 0)) throw new ShapeError(`torch.unravel_index: sizes must be at least 0, got ${formatShape(shape)}.`)
    const flat = to(indices, 'int64')
    return shape.map((size, d) => remainder(floorDivide(flat, numelOf(shape.slice(d + 1))), size))
  },
})
