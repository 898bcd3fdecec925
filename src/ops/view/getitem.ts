// Indexing as Python writes it, `x[1, :, None]`: what `operator.getitem` in graphs calls. It is not an operator of its own, but select, slice, unsqueeze and
// indexSelect.
import { withoutModes } from '../../dispatch/index.ts'
import { ArgumentError, UnknownNameError } from '../../errors/index.ts'
import { Tensor, formatShape, tensorFromValues } from '../../tensor/index.ts'
import { unbind } from '../join/join.ts'
import { lateOperator } from '../define/late.ts'
import type { index as Index } from './advanced.ts'
import { permute } from './permute.ts'
import { unsqueeze } from './reshape.ts'
import { select, slice } from './slicing.ts'

/** `start:stop:step`; a `Slice` of fx is one. */
export interface SliceLike {
  readonly start: number | null
  readonly stop: number | null
  readonly step: number | null
}

/** One index: a position, a range, null for a new dimension, '...' for all dimensions that are not named, or a list of positions (numbers, or a tensor of integers or bools). */
export type IndexItem = number | SliceLike | null | '...' | readonly number[] | Tensor

const isSlice = (item: object): item is SliceLike => 'start' in item && 'stop' in item
const isList = (index: unknown): index is readonly IndexItem[] => Array.isArray(index)
const isPositions = (item: unknown): item is readonly number[] => Array.isArray(item)

/**
 * The part of `self` that `index` names; an array is Python's tuple, one item per dimension.
 * Throws ArgumentError for anything that is not an index, or for more indices than dimensions.
 */
export function getitem(self: Tensor, index: IndexItem | readonly IndexItem[]): Tensor {
  const items = isList(index) ? index : [index]
  const named = items.reduce<number>((n, item) => n + dimensionsOf(item), 0)
  if (named > self.ndim)
    throw new ArgumentError(`getitem: ${named} indices for a tensor of ${self.ndim} dimensions (shape ${formatShape(self.symSizes)}).`)
  let out = self
  let dim = 0
  // Positions by dimension of `out`; they are looked up at the end, together.
  const positions: (Tensor | null)[] = []
  for (const item of items) {
    if (item === null) out = unsqueeze(out, dim++)
    else if (item === '...') dim += self.ndim - named
    else if (typeof item === 'number') out = select(out, dim, item)
    else if (item instanceof Tensor || isPositions(item)) {
      const at = item instanceof Tensor ? item : asTensor(item)
      while (positions.length < dim - maskedDims(positions)) positions.push(null)
      positions.push(at)
      dim += dimensionsOf(at)
    } else if (typeof item === 'object' && isSlice(item)) {
      out = slice(out, dim, item.start, item.stop, item.step ?? 1)
      dim++
    } else throw new ArgumentError(`getitem: an index must be an integer, a slice, null, '...', or a list of integers, got ${typeof item}.`)
  }
  return positions.length === 0 ? out : lateOperator<typeof Index>('torch.index')(out, positions)
}

/** How many dimensions an index names: a mask, as many as it has. */
const dimensionsOf = (item: IndexItem): number =>
  item === null || item === '...' ? 0 : item instanceof Tensor && item.dtype === 'bool' ? item.ndim : 1

/** The dimensions beyond the first that masks in a list cover. */
const maskedDims = (positions: readonly (Tensor | null)[]): number => positions.reduce((n, p) => n + (p === null ? 0 : dimensionsOf(p) - 1), 0)

const asTensor = (list: readonly number[]): Tensor => withoutModes(() => tensorFromValues(list, [list.length], 'int64'))

const INDEX = /^-?\d+$/

/** `x[key]` for a key that is not a name: `x[0]`, `x[-1]`. Throws UnknownNameError for keys that Python has and JavaScript has not. */
export function elementByKey(self: unknown, key: string): Tensor | undefined {
  if (!(self instanceof Tensor)) return undefined
  if (INDEX.test(key)) {
    if (self.ndim === 0) throw new ArgumentError(`x[${key}]: a tensor without dimensions has no elements to index; x.item() is its number.`)
    return getitem(self, Number(key))
  }
  if (/^(?:Fake)?[tT]ensor\(/.test(key)) throw new UnknownNameError(`x[y] does not work with a tensor of several elements: write x.getitem(y).`)
  if (key.includes(':'))
    throw new UnknownNameError(`x['${key}'] does not work here: write x.slice(dim, start, end), or x.narrow(dim, start, length).`)
  if (/^-?\d+(,|\.)/.test(key))
    throw new UnknownNameError(`x[${key}] does not work here: an index must be an integer; for several dimensions write x.getitem([i, j]).`)
  return undefined
}

/** `x[key] = value` for such a key. Throws UnknownNameError, as tensors cannot see what is assigned. */
export function setElementByKey(key: string): void {
  if (/\d|:|^[tT]ensor\(/.test(key))
    throw new UnknownNameError(
      `x[${key}] = … does not write to a tensor: write x.select(0, i).copy_(y), x.select(0, i).fill_(2), or torch.where(mask, y, x).`,
    )
}

function* rows(this: Tensor): Generator<Tensor> {
  yield* unbind(this, 0)
}

/** The methods of Tensor that index. */
export const indexMethods: object = {
  getitem(this: Tensor, index: IndexItem | readonly IndexItem[]): Tensor {
    return getitem(this, index)
  },

  // A tensor without dimensions is not iterable: test frameworks ask that before they compare what they iterate over.
  get [Symbol.iterator](): typeof rows | undefined {
    return this instanceof Tensor && this.ndim === 0 ? undefined : rows
  },

  get T(): Tensor {
    return reversed(this)
  },
}

function reversed(self: unknown): Tensor {
  if (!(self instanceof Tensor)) throw new ArgumentError('T: the receiver must be a Tensor.')
  return permute(
    self,
    self.symSizes.map((_, i) => self.ndim - 1 - i),
  )
}

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    /** Python's `x[index]`: `x.getitem([1, null])`. See {@link getitem}. */
    getitem(index: IndexItem | readonly IndexItem[]): Tensor
    /** `x[i]`, also negative: the part of `x` at that position of the first dimension, a view; `x.select(0, i)` says the same. Throws if it is out of range. */
    readonly [index: number]: Tensor
    /** The parts of the first dimension, as views: `for (const row of x)`, `const [a, b] = x`. A tensor without dimensions is not iterable. */
    [Symbol.iterator](): Generator<Tensor>
    /** All dimensions in reverse order. PyTorch's `Tensor.T`. */
    readonly T: Tensor
  }
}
