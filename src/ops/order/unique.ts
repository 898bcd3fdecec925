// Different elements, or different slices, of a tensor.
import { Tensor, tensorFromValues } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { ascendingPositions } from '../eager/order.ts'
import { constantIndices } from '../view/indices.ts'
import { dimAndSize, sizeAt } from '../shared/shapes.ts'
import { indexSelect } from '../view/indexing.ts'
import { transpose } from '../view/permute.ts'
import { reshape } from '../view/reshape.ts'

export interface UniqueOptions {
  /** For PyTorch's programs: the elements are in order in any case. */
  readonly sorted?: boolean
  /** Whether the place of each element of the input in the result is returned too. */
  readonly returnInverse?: boolean
  /** Whether it is returned how often each occurs. */
  readonly returnCounts?: boolean
  /** Compare the slices along this dimension. Default: the elements. */
  readonly dim?: number | null
}

/** Groups of equal rows: for each group the place of one of them, for each row its group, and how many each has. */
interface Groups {
  readonly first: readonly number[]
  readonly inverse: readonly number[]
  readonly counts: readonly number[]
}

/** Rows in order, element by element; NaN differs from everything. */
function compare(data: ArrayLike<number>, width: number, a: number, b: number): number {
  for (let k = 0; k < width; k++) {
    const [x = NaN, y = NaN] = [data[a * width + k], data[b * width + k]]
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) && Number.isNaN(y) ? a - b : Number.isNaN(x) ? 1 : -1
    if (x !== y) return x - y
  }
  return 0
}

/** The rows in order, equal ones as they stand. */
function orderOf(elements: Tensor, data: ArrayLike<number>, rows: number, width: number): ArrayLike<number> {
  if (width === 1) return ascendingPositions(elements)
  return Array.from({ length: rows }, (_, i) => i).sort((a, b) => compare(data, width, a, b) || a - b)
}

/** The groups of the rows in `order`, or as they stand. */
function groupsOf(data: ArrayLike<number>, rows: number, width: number, order: ArrayLike<number> | null): Groups {
  const first: number[] = []
  const counts: number[] = []
  const inverse = new Array<number>(rows).fill(0)
  for (let i = 0, before = -1; i < rows; i++) {
    const row = order?.[i] ?? i
    if (i === 0 || compare(data, width, before, row) !== 0) {
      first.push(row)
      counts.push(0)
    }
    counts[counts.length - 1] = (counts.at(-1) ?? 0) + 1
    inverse[row] = counts.length - 1
    before = row
  }
  return { first, inverse, counts }
}

function different(
  op: string,
  self: Tensor,
  sorted: boolean,
  wantsInverse: boolean,
  wantsCounts: boolean,
  dim: number | null,
): Tensor | readonly Tensor[] {
  const along = dim === null ? reshape(self, [-1]) : self
  const [at, size] = dim === null ? [0, self.numel] : [dimAndSize(op, self, dim)[0], sizeAt(self.sizes, dim)]
  const lines = dim === null ? along : transpose(along, at, 0)
  const rows = lines.detach().contiguous()
  const data = rows.toTypedArray()
  const width = size === 0 ? 0 : data.length / size
  const groups = groupsOf(data, size, width, sorted ? orderOf(rows, data, size, width) : null)
  const values = indexSelect(along.detach(), at, constantIndices(groups.first))
  if (!wantsInverse && !wantsCounts) return values
  const inverse = tensorFromValues(groups.inverse, dim === null ? self.sizes : [size], 'int64')
  return [values, ...(wantsInverse ? [inverse] : []), ...(wantsCounts ? [constantIndices(groups.counts)] : [])]
}

type Unique = {
  (self: Tensor, options: UniqueOptions & ({ readonly returnInverse: true } | { readonly returnCounts: true })): readonly Tensor[]
  (self: Tensor, options?: UniqueOptions & { readonly returnInverse?: false; readonly returnCounts?: false }): Tensor
}

/**
 * The different elements in order, or the different slices of a dimension; optionally with the place of each element in them, and how often each occurs. PyTorch's `torch.unique`.
 *
 * Shapes: [n], and for slices that of `self` with n in `dim`; the inverse has the shape of `self`, or of `dim`; the counts are [n].
 *
 * @throws ShapeError if `dim` is out of range.
 * @example
 * torch.unique(torch.tensor([3, 1, 3])).toArray() // [1, 3]
 * torch.unique(torch.tensor([3, 1, 3]), { returnInverse: true, returnCounts: true }).map((t) => t.toArray()) // [[1, 3], [1, 0, 1], [1, 2]]
 */
export const unique: OpFunction<Unique> = defineOp({
  schema: 'unique(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? dim=None) -> any',
  method: true,
  decompose: (self, _sorted, inverse, counts, dim) => different('torch.unique', self, true, inverse, counts, dim),
})

/**
 * The elements without repeats of the one before, or so the slices of a dimension; optionally with the place of each element, and the lengths of the runs.
 * PyTorch's `torch.unique_consecutive`.
 *
 * Shapes: as for {@link unique}.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example torch.uniqueConsecutive(torch.tensor([3, 3, 1, 3])).toArray() // [3, 1, 3]
 */
export const uniqueConsecutive: OpFunction<Unique> = defineOp({
  schema: 'unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> any',
  method: true,
  decompose: (self, inverse, counts, dim) => different('torch.unique_consecutive', self, false, inverse, counts, dim),
})
