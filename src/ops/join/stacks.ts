// Joins and splits that are composed of cat and slice: hstack, vstack, dstack, tensorSplit, meshgrid, blockDiag and more.
import type { Size } from '../../protocol/index.ts'
import { withoutModes } from '../../dispatch/index.ts'
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import {
  Tensor,
  broadcastShapes,
  formatShape,
  windowOf,
  sizeAdd,
  sizeEq,
  sizeFloorDiv,
  sizeMin,
  sizeMod,
  sizeMul,
  sizeNumber,
  sizeSub,
} from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { cat, constantPadNd, stack } from './join.ts'
import { dimAndSize, partCount, sizeAt } from '../shared/shapes.ts'
import { indexSelect } from '../view/indexing.ts'
import { reshape, unsqueeze } from '../view/reshape.ts'
import { slice } from '../view/slicing.ts'
import { expand } from '../view/windows.ts'

/** A tensor with at least `n` dimensions, as NumPy adds them. */
function atLeast(self: Tensor, n: 1 | 2 | 3): Tensor {
  if (self.ndim >= n) return self
  if (self.ndim === 0)
    return reshape(
      self,
      Array.from({ length: n }, () => 1),
    )
  if (n === 2) return unsqueeze(self, 0)
  return self.ndim === 1 ? unsqueeze(unsqueeze(self, 0), 2) : unsqueeze(self, 2)
}

type AtLeast = {
  (self: Tensor): Tensor
  (self: readonly Tensor[]): readonly Tensor[]
}

function eachAtLeast(self: unknown, n: 1 | 2 | 3): Tensor | readonly Tensor[] {
  const one = (t: unknown): Tensor => {
    if (t instanceof Tensor) return atLeast(t, n)
    throw new ArgumentError(`torch.atleast_${n}d: argument 'self' must be a Tensor or an array of Tensors, got ${valueText(t)}.`)
  }
  return Array.isArray(self) ? self.map(one) : one(self)
}

const isPositions = (value: unknown): value is readonly number[] => Array.isArray(value) && value.every((p) => Number.isInteger(p))

function partsOf(op: string, self: Tensor, wanted: unknown, dim: number): readonly Tensor[] {
  const given: unknown = wanted instanceof Tensor && wanted.ndim <= 1 && !wanted.isFloatingPoint() ? wanted.toArray() : wanted
  const [at, size] = dimAndSize(op, self, dim)
  if (isPositions(given)) return [...given, size].map((end, i) => slice(self, at, i === 0 ? 0 : (given[i - 1] ?? 0), end))
  if (typeof given !== 'number' || !Number.isInteger(given) || given < 1)
    throw new ArgumentError(`${op}: indices_or_sections must be a positive number of parts or a list of positions, got ${valueText(given)}.`)
  const [least, larger] = [sizeFloorDiv(size, given), sizeMod(size, given)]
  return Array.from({ length: partCount(op, given) }, (_, i) => {
    const [start, end] = [i, i + 1].map((n) => sizeAdd(sizeMul(n, least), sizeMin(n, larger)))
    return slice(self, at, start ?? 0, end ?? size)
  })
}

function equalParts(op: string, self: Tensor, given: unknown, dim: number, least: number): readonly Tensor[] {
  if (self.ndim < least) throw new ShapeError(`${op}: self must have at least ${least} dimensions, got shape ${formatShape(self.symSizes)}.`)
  if (typeof given === 'number' && !sizeEq(sizeMod(sizeAt(self.symSizes, dim), given), 0))
    throw new ShapeError(`${op}: dimension ${dim} of size ${sizeAt(self.symSizes, dim)} cannot be cut into ${given} equal parts.`)
  return partsOf(op, self, given, dim)
}

/**
 * `self`, with dimensions of size 1 added until it has 1; of a list each tensor. PyTorch's `torch.atleast_1d`.
 *
 * Shape: that of `self`, with sizes of 1 added.
 *
 * @throws ArgumentError if `self` is neither a Tensor nor a list of them.
 * @example torch.atleast1d(torch.tensor(1)).shape // [1]
 */
export const atleast1d: OpFunction<AtLeast> = defineOp({
  schema: 'atleast_1d(any self) -> any',
  decompose: (self) => eachAtLeast(self, 1),
})

/**
 * `self`, with dimensions of size 1 added until it has 2; of a list each tensor. PyTorch's `torch.atleast_2d`.
 *
 * Shape: that of `self`, with sizes of 1 added.
 *
 * @throws ArgumentError if `self` is neither a Tensor nor a list of them.
 * @example torch.atleast2d(torch.tensor(1)).shape // [1, 1]
 */
export const atleast2d: OpFunction<AtLeast> = defineOp({
  schema: 'atleast_2d(any self) -> any',
  decompose: (self) => eachAtLeast(self, 2),
})

/**
 * `self`, with dimensions of size 1 added until it has 3; of a list each tensor. PyTorch's `torch.atleast_3d`.
 *
 * Shape: that of `self`, with sizes of 1 added.
 *
 * @throws ArgumentError if `self` is neither a Tensor nor a list of them.
 * @example torch.atleast3d(torch.tensor(1)).shape // [1, 1, 1]
 */
export const atleast3d: OpFunction<AtLeast> = defineOp({
  schema: 'atleast_3d(any self) -> any',
  decompose: (self) => eachAtLeast(self, 3),
})

/**
 * Tensors side by side: along dimension 1, or 0 if they have one. PyTorch's `torch.hstack`.
 *
 * Shapes: as for {@link cat}.
 *
 * @throws ShapeError if the other sizes differ.
 * @throws ArgumentError if there are no tensors.
 * @example torch.hstack([torch.tensor([1]), torch.tensor([2, 3])]).toArray() // [1, 2, 3]
 */
export const hstack: Op['hstack'] = defineOp({
  schema: 'hstack(Tensor[] tensors) -> Tensor',
  decompose: (tensors) => {
    const all = tensors.map((t) => atLeast(t, 1))
    return cat(all, all[0]?.ndim === 1 ? 0 : 1)
  },
})

/**
 * Tensors below each other: along dimension 0, vectors as rows. PyTorch's `torch.vstack`.
 *
 * Shapes: as for {@link cat}.
 *
 * @throws ShapeError if the other sizes differ.
 * @throws ArgumentError if there are no tensors.
 * @example torch.vstack([torch.tensor([1, 2]), torch.tensor([3, 4])]).toArray() // [[1, 2], [3, 4]]
 */
export const vstack: Op['vstack'] = defineOp({
  schema: 'vstack(Tensor[] tensors) -> Tensor',
  decompose: (tensors) => {
    const all = tensors.map((t) => atLeast(t, 2))
    return cat(all, 0)
  },
})

/**
 * Tensors behind each other: along dimension 2. PyTorch's `torch.dstack`.
 *
 * Shapes: as for {@link cat}.
 *
 * @throws ShapeError if the other sizes differ.
 * @throws ArgumentError if there are no tensors.
 * @example torch.dstack([torch.tensor([1, 2]), torch.tensor([3, 4])]).toArray() // [[[1, 3], [2, 4]]]
 */
export const dstack: Op['dstack'] = defineOp({
  schema: 'dstack(Tensor[] tensors) -> Tensor',
  decompose: (tensors) => {
    const all = tensors.map((t) => atLeast(t, 3))
    return cat(all, 2)
  },
})

/**
 * Tensors side by side, vectors as columns. PyTorch's `torch.column_stack`.
 *
 * Shapes: as for {@link cat} along dimension 1.
 *
 * @throws ShapeError if the other sizes differ.
 * @example torch.columnStack([torch.tensor([1, 2]), torch.tensor([3, 4])]).toArray() // [[1, 3], [2, 4]]
 */
export const columnStack: Op['columnStack'] = defineOp({
  schema: 'column_stack(Tensor[] tensors) -> Tensor',
  decompose: (tensors) =>
    cat(
      tensors.map((t) => (t.ndim < 2 ? reshape(t, [-1, 1]) : t)),
      1,
    ),
})

/**
 * Parts along a dimension: a number of them, of nearly equal size, or cut at the listed positions; views. PyTorch's `torch.tensor_split`.
 *
 * Shapes: that of `self`, with the size of the part in `dim`.
 *
 * @throws ArgumentError if there is no positive number of parts, nor a list of positions.
 * @example torch.tensorSplit(torch.arange(5), [1, 3]).map((t) => t.toArray()) // [[0], [1, 2], [3, 4]]
 */
export const tensorSplit: OpFunction<
  (self: Tensor, indicesOrSections: number | readonly number[] | Tensor, dim?: number | { readonly dim?: number }) => readonly Tensor[]
> = defineOp({
  schema: 'tensor_split(Tensor self, any indices_or_sections, int dim=0) -> Tensor[]',
  method: true,
  decompose: (self, given, dim) => partsOf('torch.tensor_split', self, given, dim),
})

/**
 * Parts along dimension 1 (of a vector: 0), as {@link tensorSplit} cuts them; views. PyTorch's `torch.hsplit`.
 *
 * Shapes: that of `self`, with the size of the part in that dimension.
 *
 * @throws ShapeError if `self` has too few dimensions, or the parts would differ in size.
 * @example torch.hsplit(torch.arange(4), 2).map((t) => t.toArray()) // [[0, 1], [2, 3]]
 */
export const hsplit: OpFunction<(self: Tensor, indicesOrSections: number | readonly number[]) => readonly Tensor[]> = defineOp({
  schema: 'hsplit(Tensor self, any indices_or_sections) -> Tensor[]',
  method: true,
  decompose: (self, given) => equalParts('torch.hsplit', self, given, self.ndim === 1 ? 0 : 1, 1),
})

/**
 * Parts along dimension 0, as {@link tensorSplit} cuts them; views. PyTorch's `torch.vsplit`.
 *
 * Shapes: that of `self`, with the size of the part in that dimension.
 *
 * @throws ShapeError if `self` has too few dimensions, or the parts would differ in size.
 * @example torch.vsplit(torch.zeros([4, 1]), 2).map((t) => t.shape) // [[2, 1], [2, 1]]
 */
export const vsplit: OpFunction<(self: Tensor, indicesOrSections: number | readonly number[]) => readonly Tensor[]> = defineOp({
  schema: 'vsplit(Tensor self, any indices_or_sections) -> Tensor[]',
  method: true,
  decompose: (self, given) => equalParts('torch.vsplit', self, given, 0, 2),
})

/**
 * Parts along dimension 2, as {@link tensorSplit} cuts them; views. PyTorch's `torch.dsplit`.
 *
 * Shapes: that of `self`, with the size of the part in that dimension.
 *
 * @throws ShapeError if `self` has too few dimensions, or the parts would differ in size.
 * @example torch.dsplit(torch.zeros([1, 1, 4]), [1]).map((t) => t.shape) // [[1, 1, 1], [1, 1, 3]]
 */
export const dsplit: OpFunction<(self: Tensor, indicesOrSections: number | readonly number[]) => readonly Tensor[]> = defineOp({
  schema: 'dsplit(Tensor self, any indices_or_sections) -> Tensor[]',
  method: true,
  decompose: (self, given) => equalParts('torch.dsplit', self, given, 2, 3),
})

/**
 * The coordinates of a grid: tensor k has the values of vector k along dimension k; `indexing: 'xy'` swaps the first two dimensions. Views. PyTorch's `torch.meshgrid`.
 *
 * Shapes: vectors of sizes n, m, … give tensors [n, m, …].
 *
 * @throws ShapeError unless all tensors have at most 1 dimension.
 * @throws ArgumentError unless `indexing` is 'ij' or 'xy'.
 * @example torch.meshgrid([torch.tensor([1, 2]), torch.tensor([3])]).map((t) => t.toArray()) // [[[1], [2]], [[3], [3]]]
 */
export const meshgrid: OpFunction<{
  (tensors: readonly Tensor[], indexing?: 'ij' | 'xy' | { readonly indexing?: 'ij' | 'xy' }): readonly Tensor[]
  (...tensors: readonly (Tensor | { readonly indexing?: 'ij' | 'xy' })[]): readonly Tensor[]
}> = defineOp({
  schema: "meshgrid(Tensor[] tensors, *, str indexing='ij') -> Tensor[]",
  decompose: (tensors, indexing) => {
    if (indexing !== 'ij' && indexing !== 'xy') throw new ArgumentError(`torch.meshgrid: indexing must be 'ij' or 'xy', got '${indexing}'.`)
    const wide = tensors.find((t) => t.ndim > 1)
    if (wide !== undefined) throw new ShapeError(`torch.meshgrid: expected vectors, got shape ${formatShape(wide.symSizes)}.`)
    const sizes = tensors.map((t) => t.symNumel)
    const grids = tensors.map((t, k) =>
      expand(
        reshape(
          t,
          sizes.map((n, d) => (d === k ? n : 1)),
        ),
        sizes,
      ),
    )
    if (indexing === 'ij' || tensors.length < 2) return grids
    const swapped = [sizes[1] ?? 1, sizes[0] ?? 1, ...sizes.slice(2)]
    return tensors.map((t, k) => {
      const own = k === 0 ? 1 : k === 1 ? 0 : k
      return expand(
        reshape(
          t,
          swapped.map((n, d) => (d === own ? n : 1)),
        ),
        swapped,
      )
    })
  },
})

/**
 * All combinations of one element of each vector, as rows. PyTorch's `torch.cartesian_prod`.
 *
 * Shapes: k vectors give [n, k]; one vector gives itself.
 *
 * @throws ShapeError unless all tensors are vectors.
 * @example torch.cartesianProd([torch.tensor([1, 2]), torch.tensor([3, 4])]).toArray() // [[1, 3], [1, 4], [2, 3], [2, 4]]
 */
export const cartesianProd: Op['cartesianProd'] = defineOp({
  schema: 'cartesian_prod(Tensor[] tensors) -> Tensor',
  decompose: (tensors) => {
    const [only] = tensors
    if (tensors.length === 1 && only !== undefined) return only
    return stack(
      meshgrid(tensors).map((t) => reshape(t, -1)),
      1,
    )
  },
})

/** How many choices of `r` among `n` there are; a number beyond 2^53 if they are too many to count. */
function choices(n: number, r: number): number {
  if (r > n) return r === 0 ? 1 : 0
  let count = 1
  for (let k = 1; k <= Math.min(r, n - r) && count < 2 ** 53; k++) count = (count * (n - k + 1)) / k
  return count
}

/**
 * All choices of `r` elements of a vector, in order, as rows; with `withReplacement`, an element may be chosen again. PyTorch's `torch.combinations`.
 *
 * Shape: [n, r].
 *
 * @throws ShapeError unless `self` is a vector, ArgumentError if `r` is negative.
 * @example torch.combinations(torch.tensor([1, 2, 3])).toArray() // [[1, 2], [1, 3], [2, 3]]
 */
export const combinations: Op['combinations'] = defineOp({
  schema: 'combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor',
  decompose: (self, r, withReplacement) => {
    if (self.ndim !== 1) throw new ShapeError(`torch.combinations: self must be a vector, got shape ${formatShape(self.symSizes)}.`)
    if (r < 0) throw new ArgumentError(`torch.combinations: r must be at least 0, got ${r}.`)
    const n = sizeNumber(self.symNumel)
    const rows = choices(withReplacement ? n + r - 1 : n, r)
    // An int32 tensor says whether there is memory for this many.
    const positions = withoutModes(() => {
      const out = Tensor.empty([rows * r], 'int32')
      const { data, base } = windowOf(out)
      const row = Array.from({ length: rows === 0 ? 0 : r }, (_, i) => (withReplacement ? 0 : i))
      for (let at = 0; at < rows * r; at += r) {
        for (let i = 0; i < r; i++) data[base + at + i] = row[i] ?? 0
        // The last position that can move on, and those after it right behind.
        let i = r - 1
        while (i > 0 && row[i] === (withReplacement ? n - 1 : n - r + i)) i--
        const start = (row[i] ?? 0) + 1
        for (let k = i; k < r; k++) row[k] = withReplacement ? start : start + k - i
      }
      return out
    })
    return reshape(indexSelect(self, 0, positions), [rows, r])
  },
})

/**
 * Matrices along the diagonal of a larger one, with zeros elsewhere; vectors are rows. PyTorch's `torch.block_diag`.
 *
 * Shapes: matrices of sizes [n, m] give the sums of n and of m.
 *
 * @throws ShapeError if a tensor has more than 2 dimensions.
 * @example torch.blockDiag([torch.tensor([[1]]), torch.tensor([[2, 3]])]).toArray() // [[1, 0, 0], [0, 2, 3]]
 */
export const blockDiag: Op['blockDiag'] = defineOp({
  schema: 'block_diag(Tensor[] tensors) -> Tensor',
  decompose: (tensors) => {
    const blocks = tensors.map((t) => atLeast(t, 2))
    const deep = blocks.find((t) => t.ndim > 2)
    if (deep !== undefined) throw new ShapeError(`torch.block_diag: expected matrices, got shape ${formatShape(deep.symSizes)}.`)
    const width = blocks.reduce<Size>((n, t) => sizeAdd(n, sizeAt(t.symSizes, 1)), 0)
    let left: Size = 0
    return cat(
      blocks.map((t) => {
        const own = sizeAt(t.symSizes, 1)
        const before = left
        left = sizeAdd(left, own)
        return constantPadNd(t, [before, sizeSub(width, left)])
      }),
    )
  },
})

/**
 * Tensors expanded to their common shape; views. PyTorch's `torch.broadcast_tensors`.
 *
 * Shapes: the tensors broadcast; each result has that shape.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example torch.broadcastTensors([torch.zeros([2, 1]), torch.zeros([3])]).map((t) => t.shape) // [[2, 3], [2, 3]]
 */
export const broadcastTensors: Op['broadcastTensors'] = defineOp({
  schema: 'broadcast_tensors(Tensor[] tensors) -> Tensor[]',
  decompose: (tensors) => {
    const shape = tensors.reduce<readonly Size[]>((known, t) => broadcastShapes('torch.broadcast_tensors', known, t.symSizes), [])
    return tensors.map((t) => expand(t, shape))
  },
})
