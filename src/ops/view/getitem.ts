// Indexing as Python writes it, `x[1, :, None]`: what `operator.getitem` in graphs calls. It is no operator itself but select, slice, unsqueeze and indexSelect.
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import { Tensor, formatShape, tensorFromValues } from '../../tensor/index.ts'
import { withoutModes } from '../../dispatch/index.ts'
import { indexSelect } from './indexing.ts'
import { reshape, unsqueeze } from './reshape.ts'
import { permute } from './permute.ts'
import { select, slice } from './slicing.ts'

/** `start:stop:step`; a `Slice` of fx is one. */
export interface SliceLike {
  readonly start: number | null
  readonly stop: number | null
  readonly step: number | null
}

/** One index: a position, a range, null for a new dimension, '...' for all dimensions that are not named, or a list of positions (numbers or int32). */
export type IndexItem = number | SliceLike | null | '...' | readonly number[] | Tensor

const isSlice = (item: unknown): item is SliceLike => typeof item === 'object' && item !== null && 'start' in item && 'stop' in item

/** The part of `self` that `index` names; an array is Python's tuple, one item per dimension. Throws ArgumentError for what is no index. */
export function getitem(self: Tensor, index: IndexItem | readonly IndexItem[]): Tensor {
  const items: readonly IndexItem[] = Array.isArray(index) ? (index as readonly IndexItem[]) : [index as IndexItem]
  const named = items.filter((item) => item !== null && item !== '...').length
  if (named > self.ndim)
    throw new ArgumentError(`getitem: ${named} indices for a tensor of ${self.ndim} dimensions (shape ${formatShape(self.shape)}).`)
  let out = self
  let dim = 0
  let lists = 0
  for (const item of items) {
    if (item === null) out = unsqueeze(out, dim++)
    else if (item === '...') dim += self.ndim - named
    else if (typeof item === 'number') out = select(out, dim, item)
    else if (isSlice(item)) {
      out = slice(out, dim, item.start, item.stop, item.step ?? 1)
      dim++
    } else if (Array.isArray(item) || item instanceof Tensor) {
      if (lists++ > 0)
        throw new UnsupportedError('getitem: more than one list of positions is not supported; use gather, or index one dimension after the other.')
      const [result, rank] = byList(out, dim, item as readonly number[] | Tensor)
      out = result
      dim += rank
    } else throw new ArgumentError(`getitem: an index must be an integer, a slice, null, '...', or a list of integers, got ${typeof item}.`)
  }
  return out
}

/** Positions from a list or tensor; returns how many dimensions they take. */
function byList(self: Tensor, dim: number, list: readonly number[] | Tensor): [Tensor, number] {
  if (list instanceof Tensor) {
    if (list.dtype === 'bool')
      throw new UnsupportedError('getitem: a bool mask gives a shape that depends on the data, which is not supported; use where or maskedFill.')
    const flat = indexSelect(self, dim, reshape(list, -1))
    return [reshape(flat, [...self.shape.slice(0, dim), ...list.shape, ...self.shape.slice(dim + 1)]), list.ndim]
  }
  const size = self.shape[dim] as number
  const positions = list.map((p) => (p < 0 ? p + size : p))
  return [
    indexSelect(
      self,
      dim,
      withoutModes(() => tensorFromValues(positions, [positions.length], 'int32')),
    ),
    1,
  ]
}

Tensor.prototype.getitem = function (this: Tensor, index: IndexItem | readonly IndexItem[]): Tensor {
  return getitem(this, index)
}

Object.defineProperty(Tensor.prototype, 'T', {
  configurable: true,
  get(this: Tensor): Tensor {
    return permute(
      this,
      this.shape.map((_, i) => this.ndim - 1 - i),
    )
  },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    /** Python's `x[index]`: `x.getitem([1, null])`. See {@link getitem}. */
    getitem(index: IndexItem | readonly IndexItem[]): Tensor
    /** All dimensions in reverse order. PyTorch's `Tensor.T`. */
    readonly T: Tensor
  }
}
