// What the page of a file of weights shows, as data: its tensors, and what else is in it.
import { packStatistics, unpackStatistics } from './pageData.ts'
import type { ViewStatistics } from './view.ts'

/** A tensor in a file. */
export interface StoredTensor {
  /** The keys that lead to it: of dicts in each other, and the parts of its name between dots. */
  readonly path: readonly string[]
  readonly dtype: string
  readonly shape: readonly number[]
  readonly bytes: number
  /** null if the values were not read, or none of them is finite. */
  readonly statistics: ViewStatistics | null
}

/** Something else in a file: a number, a text. */
export interface StoredValue {
  readonly path: readonly string[]
  readonly text: string
}

/** A file of weights. */
export interface WeightsView {
  readonly name: string
  /** In the order of the file. */
  readonly items: readonly (StoredTensor | StoredValue)[]
  /** Texts that the file has beside its tensors. */
  readonly metadata: readonly (readonly [key: string, text: string])[]
}

/** Whether an item is a tensor. */
export const isTensorItem = (item: StoredTensor | StoredValue): item is StoredTensor => 'shape' in item

type PackedItem = readonly [path: readonly string[], text: string] | readonly [...PackedTensorItem]
type PackedTensorItem = [path: readonly string[], dtype: string, shape: readonly number[], bytes: number, statistics: readonly number[]]

/** The data of the page. */
export interface PackedWeights {
  readonly name: string
  readonly items: readonly PackedItem[]
  readonly metadata: WeightsView['metadata']
}

const isPackedTensor = (item: PackedItem): item is PackedTensorItem => item.length > 2

export const packWeights = ({ name, items, metadata }: WeightsView): PackedWeights => ({
  name,
  items: items.map((item) =>
    isTensorItem(item)
      ? [item.path, item.dtype, item.shape, item.bytes, item.statistics === null ? [] : packStatistics(item.statistics)]
      : [item.path, item.text],
  ),
  metadata,
})

export const unpackWeights = ({ name, items, metadata }: PackedWeights): WeightsView => ({
  name,
  items: items.map((item) => {
    if (!isPackedTensor(item)) return { path: item[0], text: item[1] }
    const [path, dtype, shape, bytes, statistics] = item
    return { path, dtype, shape, bytes, statistics: unpackStatistics(statistics) }
  }),
  metadata,
})
