// What torch.save writes of tensors: storages, which the archive has as entries, and views of them.
import { ArgumentError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { asStrided } from '../../ops/index.ts'
import { Tensor, tensorFromBytes } from '../../tensor/index.ts'
import { valueText } from '../../protocol/index.ts'
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
}

/** PyTorch's own limit. */
const MAX_RANK = 64

type Value = Pickled<Tensor>

const isNumbers = (value: Value | undefined): value is number[] => Array.isArray(value) && value.every((item) => Number.isSafeInteger(item))

/** The pickle and the storages of an archive. */
class TorchFile {
  readonly #where: string
  readonly #entries: ReadonlyMap<string, Uint8Array>
  readonly #root: string
  readonly #storages = new Map<string, Tensor>()
  readonly #size: number

  constructor(where: string, bytes: Uint8Array) {
    this.#where = where
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

  value(): Value {
    const globals = new Map<string, Global<Tensor>>()
    const allow = (name: string, call: Global<Tensor>['call']): void => void globals.set(name, new Global(name, call))
    for (const name of Object.keys(STORAGES)) allow(`torch.${name}`, null)
    allow('collections.OrderedDict', () => new Map())
    allow('torch._utils._rebuild_tensor_v2', ([storage, offset, size, stride]) => this.#view(storage, offset, size, stride))
    allow('torch._utils._rebuild_parameter', ([data]) => data ?? null)
    allow('torch.Size', ([sizes]) => sizes ?? null)
    const pickle = this.#entries.get(`${this.#root}data.pkl`) ?? new Uint8Array()
    return new Unpickler<Tensor>(this.#where, pickle, this.#size, { globals, persistent: (id) => this.#storage(id) }).load()
  }

  #damaged(what: string): ArgumentError {
    return new ArgumentError(`${this.#where}: the file is damaged: ${what}. Save or copy it again.`)
  }

  /** The storage behind ('storage', class, key, device, number of elements), as a tensor of one dimension. */
  #storage(id: Value): Tensor {
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
    const storage = tensorFromBytes(bytes.slice(), [count], dtype)
    this.#storages.set(key, storage)
    return storage
  }

  #view(storage: Value | undefined, offset: Value | undefined, size: Value | undefined, stride: Value | undefined): Tensor {
    if (!(storage instanceof Tensor) || typeof offset !== 'number' || !isNumbers(size) || !isNumbers(stride) || size.length !== stride.length)
      throw this.#damaged('a tensor lacks its storage, size or strides')
    const last = size.reduce((at, n, d) => at + (n - 1) * (stride[d] ?? 0), offset)
    const fits = size.length <= MAX_RANK && offset >= 0 && size.every((n) => n >= 0) && stride.every((s) => s >= 0)
    if (!fits || (!size.includes(0) && last >= storage.numel))
      throw this.#damaged(`a tensor of shape [${size.join(', ')}] does not fit into its storage of ${storage.numel} elements`)
    return asStrided(storage, size, stride, offset)
  }
}

const isTensors = (value: Value): value is Map<string, Tensor> =>
  value instanceof Map && value.size > 0 && [...value].every(([key, item]) => typeof key === 'string' && item instanceof Tensor)

/** What else a file holds. */
function contents(value: Value): string {
  if (value instanceof Map) return `a dict with the keys ${[...value.keys()].slice(0, 10).map(valueText).join(', ')}`
  return value instanceof Tensor ? 'one tensor' : valueText(value)
}

/** The state dict in the bytes of a file, or under `key` in a dict of several things. */
export function readStateDict(where: string, bytes: Uint8Array, key: string | null): Map<string, Tensor> {
  const value = new TorchFile(where, bytes).value()
  const found = key === null ? value : value instanceof Map ? value.get(key) : undefined
  if (found === undefined) throw new ArgumentError(`${where}: option 'key': there is no '${String(key)}' in the file; it holds ${contents(value)}.`)
  if (isTensors(found)) return found
  throw new ArgumentError(
    `${where}: expected a state dict, a dict of tensors by name, but the file holds ${contents(found)}.${found instanceof Map ? " If one of them is the state dict, name it: { key: 'model' }." : ''}`,
  )
}
