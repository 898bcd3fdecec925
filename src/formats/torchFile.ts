// What torch.save writes of tensors: storages, which the archive has as entries, and views of them. What becomes of them is up to the caller: tensors, or what a page shows.
import { ArgumentError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { Global, Unpickler } from './pickle.ts'
import type { Pickled } from './pickle.ts'
import { isZip, readStoredZip } from './zip.ts'

/** Classes of storages, and the dtypes of their elements. */
const STORAGES: Readonly<Record<string, DType>> = {
  BoolStorage: 'bool',
  ByteStorage: 'uint8',
  CharStorage: 'int8',
  ShortStorage: 'int16',
  IntStorage: 'int32',
  LongStorage: 'int64',
  HalfStorage: 'float16',
  BFloat16Storage: 'bfloat16',
  FloatStorage: 'float32',
  DoubleStorage: 'float64',
  ComplexFloatStorage: 'complex64',
  ComplexDoubleStorage: 'complex128',
}

/** PyTorch's own limit. */
const MAX_RANK = 64

/** Where a tensor lies in its storage, all counted in elements. */
export interface StoredView {
  readonly size: readonly number[]
  readonly stride: readonly number[]
  readonly offset: number
}

/** What storages and tensors become. */
export interface TensorMaking<S extends object, T extends object> {
  /** Makes a storage. The bytes belong to the file. */
  storage(bytes: Uint8Array, count: number, dtype: DType): S
  /** Makes a tensor, which lies within its storage. */
  view(storage: S, view: StoredView): T
}

/** What the pickle of a file holds. */
export type TorchValue<T> = Pickled<T>

/** A storage that was made. */
class Storage<S> {
  readonly made: S
  readonly dtype: DType
  readonly count: number

  constructor(made: S, dtype: DType, count: number) {
    this.made = made
    this.dtype = dtype
    this.count = count
  }
}

const isNumbers = (value: unknown): value is number[] => Array.isArray(value) && value.every((item) => Number.isSafeInteger(item))

/** The pickle and the storages of an archive. */
class TorchFile<S extends object, T extends object> {
  readonly #where: string
  readonly #entries: ReadonlyMap<string, Uint8Array>
  readonly #root: string
  readonly #storages = new Map<string, Storage<S>>()
  readonly #size: number
  readonly #making: TensorMaking<S, T>

  constructor(where: string, bytes: Uint8Array, making: TensorMaking<S, T>) {
    this.#where = where
    this.#making = making
    this.#size = bytes.length
    if (!isZip(bytes))
      throw new ArgumentError(
        `${where}: this is not a file of torch.save since PyTorch 1.6, which is a zip archive; load it in PyTorch and save model.state_dict() again.`,
      )
    this.#entries = readStoredZip(where, bytes)
    const pickle = [...this.#entries.keys()].find((name) => name.endsWith('data.pkl'))
    if (pickle === undefined) throw new ArgumentError(`${where}: the zip archive has no data.pkl, so torch.save did not write it.`)
    this.#root = pickle.slice(0, -'data.pkl'.length)
    const order = this.#entries.get(`${this.#root}byteorder`)
    if (order !== undefined && new TextDecoder().decode(order) !== 'little')
      throw new ArgumentError(`${where}: the file was written on a big-endian machine, which is not supported; save it again on another one.`)
  }

  value(): Pickled<T | Storage<S>> {
    const globals = new Map<string, Global<T | Storage<S>>>()
    const allow = (name: string, call: Global<T | Storage<S>>['call']): void => void globals.set(name, new Global(name, call))
    for (const name of Object.keys(STORAGES)) allow(`torch.${name}`, null)
    allow('collections.OrderedDict', () => new Map())
    allow('torch._utils._rebuild_tensor_v2', ([storage, offset, size, stride]) => this.#view(storage, offset, size, stride))
    allow('torch._utils._rebuild_parameter', ([data]) => data ?? null)
    allow('torch.Size', ([sizes]) => sizes ?? null)
    const pickle = this.#entries.get(`${this.#root}data.pkl`) ?? new Uint8Array()
    return new Unpickler<T | Storage<S>>(this.#where, pickle, this.#size, { globals, persistent: (id) => this.#storage(id) }).load()
  }

  #damaged(what: string): ArgumentError {
    return new ArgumentError(`${this.#where}: the file is damaged: ${what}. Save or copy it again.`)
  }

  /** The storage behind ('storage', class, key, device, number of elements). */
  #storage(id: Pickled<T | Storage<S>>): Storage<S> {
    if (!Array.isArray(id)) throw this.#damaged('a storage has no name')
    const [kind, type, key, , count] = id
    if (kind !== 'storage' || !(type instanceof Global) || typeof key !== 'string' || typeof count !== 'number')
      throw this.#damaged('a storage lacks its type or its key')
    const dtype = STORAGES[type.name.slice('torch.'.length)]
    if (dtype === undefined) throw this.#damaged(`'${type.name}' is not a storage`)
    const known = this.#storages.get(key)
    if (known !== undefined) {
      if (known.dtype !== dtype) throw this.#damaged(`storage '${key}' has two types, ${known.dtype} and ${dtype}`)
      return known
    }
    const bytes = this.#entries.get(`${this.#root}data/${key}`)
    if (bytes === undefined || bytes.length !== count * dtypeInfo[dtype].size)
      throw this.#damaged(
        `storage '${key}' should have ${count} elements of ${dtype}, but ${bytes === undefined ? 'is missing' : `has ${bytes.length} bytes`}`,
      )
    const storage = new Storage(this.#making.storage(bytes, count, dtype), dtype, count)
    this.#storages.set(key, storage)
    return storage
  }

  #view(storage: unknown, offset: unknown, size: unknown, stride: unknown): T {
    if (!(storage instanceof Storage) || typeof offset !== 'number' || !isNumbers(size) || !isNumbers(stride) || size.length !== stride.length)
      throw this.#damaged('a tensor lacks its storage, size or strides')
    const last = size.reduce((at, n, d) => at + (n - 1) * (stride[d] ?? 0), offset)
    const fits = size.length <= MAX_RANK && offset >= 0 && size.every((n) => n >= 0) && stride.every((s) => s >= 0)
    if (!fits || (!size.includes(0) && last >= storage.count))
      throw this.#damaged(`a tensor of shape [${size.join(', ')}] does not fit into its storage of ${storage.count} elements`)
    return this.#making.view(storage.made, { size, stride, offset })
  }
}

/**
 * What a file of torch.save holds: dicts, lists, numbers, texts, and what `making` makes of tensors. Throws ArgumentError, which starts with `where`, for a file in another format, a
 * damaged one, and one that asks for anything else; no code of it runs.
 */
export function readTorchFile<S extends object, T extends object>(
  where: string,
  bytes: Uint8Array,
  making: TensorMaking<S, T>,
): TorchValue<T | object> {
  return new TorchFile(where, bytes, making).value()
}
