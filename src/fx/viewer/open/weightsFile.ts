// Files of weights as what the page shows: names, dtypes, shapes and statistics. No tensor is made, and a large safetensors file is read tensor by tensor.
import { readHeader } from '../../../formats/safetensors.ts'
import type { Header, PartReader } from '../../../formats/safetensors.ts'
import { readTorchFile } from '../../../formats/torchFile.ts'
import type { StoredView, TorchValue } from '../../../formats/torchFile.ts'
import { dtypeInfo } from '../../../kernels/index.ts'
import type { DType } from '../../../kernels/index.ts'
import { valueText } from '../../../protocol/index.ts'
import { statisticsOf } from '../tensorFacts.ts'
import type { ViewStatistics } from '../view.ts'
import type { StoredTensor, StoredValue, WeightsView } from '../weights.ts'
import { elementsIn, elementsOf, otherElementsIn } from './elements.ts'

/** At most this many elements of a file are read for statistics, which takes some seconds. */
const MOST_ELEMENTS = 250_000_000
/** Values that are nested deeper, and those beyond this number, are left out. */
const DEEPEST = 32
const MOST_ITEMS = 200_000
const LONGEST_TEXT = 200
const LONGEST_NAME = 1000

const countOf = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1)

/** What is left of the elements that may be read. */
class Allowance {
  #left = MOST_ELEMENTS

  /** The statistics of values, if their number is allowed. */
  statistics(count: number, read: () => ArrayLike<number> | null): ViewStatistics | null {
    if (count === 0 || count > this.#left) return null
    this.#left -= count
    const values = read()
    return values === null ? null : statisticsOf(values)
  }
}

/** What the header of a safetensors file describes, with the statistics of its tensors. `read` returns the bytes of the file between two places of its data. */
export async function safetensorsView(name: string, { entries, metadata }: Header, read: PartReader['next']): Promise<WeightsView> {
  const allowance = new Allowance()
  const items = new Map<string, StoredTensor>()
  for (const { name: key, dtype, storedAs, other, shape, from, to } of entries.toSorted((a, b) => a.from - b.from || a.to - b.to)) {
    const bytes = await read(to - from)
    const statistics = allowance.statistics(countOf(shape), () => (other === null ? elementsIn(bytes, dtype) : otherElementsIn(bytes, storedAs)))
    items.set(key, { path: partsOf(key), dtype: other === null ? dtype : storedAs, shape, bytes: to - from, statistics })
  }
  return { name, items: entries.flatMap(({ name: key }) => items.get(key) ?? []), metadata: Object.entries(metadata) }
}

/** Reads the header of a safetensors file, and what {@link safetensorsView} makes of it. */
export const readSafetensorsView = async (name: string, file: PartReader): Promise<WeightsView> =>
  safetensorsView(name, await readHeader(file), (count) => file.next(count))

/** A storage of a file of torch.save. Its elements are read when a tensor asks for them. */
class StorageInFile {
  readonly bytes: Uint8Array
  readonly dtype: DType
  #elements: ArrayLike<number> | null = null

  constructor(bytes: Uint8Array, dtype: DType) {
    this.bytes = bytes
    this.dtype = dtype
  }

  get elements(): ArrayLike<number> {
    return (this.#elements ??= elementsIn(this.bytes, this.dtype))
  }
}

/** A tensor of a file of torch.save. */
class TensorInFile {
  readonly storage: StorageInFile
  readonly view: StoredView

  constructor(storage: StorageInFile, view: StoredView) {
    this.storage = storage
    this.view = view
  }

  describe(path: readonly string[], allowance: Allowance): StoredTensor {
    const { bytes: stored, dtype } = this.storage
    const { size: shape } = this.view
    const [count, { size }] = [countOf(shape), dtypeInfo[dtype]]
    // A tensor that repeats elements of its storage can have more of them than any file holds.
    const statistics = count * size > stored.length ? null : allowance.statistics(count, () => elementsOf(this.storage.elements, this.view))
    return { path, dtype, shape, bytes: count * size, statistics }
  }
}

/** What a file of torch.save holds, as items of the page. Throws ArgumentError for a damaged file, and for one that asks for anything but tensors and plain values. */
export function torchFileView(name: string, bytes: Uint8Array): WeightsView {
  const value = readTorchFile('open', bytes, {
    storage: (part, _count, dtype) => new StorageInFile(part, dtype),
    view: (storage, view) => new TensorInFile(storage, view),
  })
  const items: (StoredTensor | StoredValue)[] = []
  const allowance = new Allowance()
  const add = (at: TorchValue<object>, path: readonly string[]): void => {
    if (items.length >= MOST_ITEMS) return
    if (at instanceof TensorInFile) return void items.push(at.describe(path.length === 0 ? ['tensor'] : path, allowance))
    const isHolder = at instanceof Map || Array.isArray(at)
    if (!isHolder || path.length >= DEEPEST) return void items.push({ path: path.length === 0 ? ['value'] : path, text: textOf(at) })
    const entries = at instanceof Map ? [...at] : [...at.entries()]
    if (entries.length === 0) return void items.push({ path, text: at instanceof Map ? '{}' : '[]' })
    for (const [key, inner] of entries) add(inner, [...path, ...(typeof key === 'string' ? partsOf(key) : [textOf(key)])])
  }
  add(value, [])
  return { name, items, metadata: [] }
}

/** The parts of a name between dots. */
const partsOf = (name: string): readonly string[] => (name.length <= LONGEST_NAME ? name.split('.') : [`${name.slice(0, LONGEST_TEXT)}…`])

const textOf = (value: unknown): string => (typeof value === 'string' ? value : valueText(value)).slice(0, LONGEST_TEXT)
