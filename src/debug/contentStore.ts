// Inputs of a repro on disk, addressed by content: one file per storage, named by the SHA-1 of its bytes, written once.
// A repro script rebuilds its inputs with `reader.storage(hash, nbytes)` and `reader.tensor(buf, shape, …)`.
import { ArgumentError } from '../errors/index.ts'
import { dtypeInfo, isDType } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { randn } from '../ops/index.ts'
import { checkArgument, checkOptions, checkString, isObject, lineComment, quote, scalarLiteral, valueText } from '../protocol/index.ts'
import { contiguousStrides, isContiguous, tensorFromBytes, windowNumel } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import type { FileStore } from './fileStore.ts'
import { checkStore, joinPath } from './fileStore.ts'
import { log } from './log.ts'
import { nodeModule } from './node.ts'
import { checkLayout, checkSizes, toPlain } from './values.ts'

/** SHA-1 of the bytes in hex (Node), or a 64-bit FNV hash if there is no crypto module. */
function contentHash(bytes: Uint8Array): string {
  const crypto = nodeModule('node:crypto')
  if (crypto !== null) return crypto.createHash('sha1').update(bytes).digest('hex')
  let low = 0x811c9dc5
  let high = 0xcbf29ce4
  for (const byte of bytes) {
    low = Math.imul(low ^ byte, 0x01000193)
    high = Math.imul(high ^ byte ^ (low >>> 13), 0x01000193)
  }
  return (high >>> 0).toString(16).padStart(8, '0') + (low >>> 0).toString(16).padStart(8, '0')
}

/** Writes the inputs of a graph and the source lines that load them again. PyTorch's InputWriter. */
export class InputWriter {
  readonly #store: FileStore
  readonly #dir: string
  readonly #lines: string[] = []
  readonly #storages = new Map<string, string>()
  readonly #created: string[] = []

  /** Storages go to `dir`/storages/. */
  constructor(store: FileStore, dir: string) {
    checkStore('InputWriter', store)
    checkString('InputWriter', 'dir', dir)
    this.#store = store
    this.#dir = dir
  }

  /** Adds one input. Throws ArgumentError, when the repro is written, for a value that is neither a tensor nor a number. */
  add(name: string, value: unknown): void {
    this.#lines.push(`${this.expression(name, value)} // ${lineComment(name)}`)
  }

  /** The call that loads a value, e.g. `reader.tensor(buf0, [20, 20])`; the storage's line is added before it. */
  expression(name: string, value: unknown): string {
    checkString('InputWriter', 'name', name)
    const plain = toPlain(value, name)
    if (plain.kind === 'number') return `reader.number(${scalarLiteral(plain.value)})`
    const hash = contentHash(plain.bytes)
    let variable = this.#storages.get(hash)
    if (variable === undefined) {
      variable = `buf${this.#storages.size}`
      this.#storages.set(hash, variable)
      this.#save(this.#pathOf(hash), plain.bytes)
      const hint = plain.dtype === 'float32' ? '' : `, { dtypeHint: ${quote(plain.dtype)} }`
      this.#lines.push(`const ${variable} = reader.storage(${quote(hash)}, ${plain.bytes.length}${hint})`)
    }
    const options: string[] = []
    if (!isContiguous(plain.shape, plain.strides)) options.push(`strides: [${plain.strides.join(', ')}]`)
    if (plain.dtype !== 'float32') options.push(`dtype: ${quote(plain.dtype)}`)
    if (plain.requiresGrad) options.push('requiresGrad: true')
    return `reader.tensor(${variable}, [${plain.shape.join(', ')}]${options.length === 0 ? '' : `, { ${options.join(', ')} }`})`
  }

  readonly #pathOf = (hash: string): string => joinPath(this.#dir, 'storages', hash)

  /** A storage is written once; one of another length is what a crash left. */
  #save(path: string, bytes: Uint8Array): void {
    const known = this.#store.read(path)
    if (known?.length === bytes.length) return
    this.#store.write(path, bytes)
    if (known === null) this.#created.push(path)
  }

  /** Removes the storages that were not there before: the script that would read them cannot be written. */
  takeBack(): void {
    for (const path of this.#created.splice(0)) this.#store.remove?.(path)
  }

  /** The files of the storages. */
  paths(): readonly string[] {
    return [...this.#storages.keys()].map((hash) => this.#pathOf(hash))
  }

  /** Source lines so far. */
  lines(): readonly string[] {
    return this.#lines
  }
}

/** A storage that was loaded; `bytes` is null, and the data random, if its file is missing. */
export interface LoadedStorage {
  readonly bytes: Uint8Array | null
  readonly nbytes: number
}

export interface TensorOptions {
  readonly strides?: readonly number[]
  readonly dtype?: DType
  readonly requiresGrad?: boolean
}

/** Loads what {@link InputWriter} wrote; missing files become random data, with a warning. PyTorch's InputReader. */
export class InputReader {
  readonly args: (Tensor | number)[] = []
  readonly #store: FileStore | null
  readonly #dir: string | null

  constructor(store: FileStore | null, dir: string | null) {
    if (store !== null) checkStore('InputReader', store)
    if (dir !== null) checkString('InputReader', 'dir', dir)
    this.#store = store
    this.#dir = dir
    if (store === null || dir === null) log.warning('no saveDir specified, will generate random data')
  }

  storage(hash: string, nbytes: number, _options: { readonly dtypeHint?: DType } = {}): LoadedStorage {
    checkString('InputReader.storage', 'hash', hash)
    checkArgument(Number.isSafeInteger(nbytes) && nbytes >= 0, 'InputReader.storage', 'nbytes', 'a number of bytes', nbytes)
    const bytes = this.#store !== null && this.#dir !== null ? this.#store.read(joinPath(this.#dir, 'storages', hash)) : null
    if (bytes === null && this.#dir !== null) log.warning(`could not load ${hash}, generating random data instead`)
    if (bytes !== null && bytes.length !== nbytes)
      throw new ArgumentError(`reader.storage: ${hash} has ${bytes.length} bytes but the script expects ${nbytes}; the file is damaged.`)
    return { bytes, nbytes }
  }

  /** A tensor over a storage; it becomes the next argument. */
  tensor(storage: LoadedStorage, shape: readonly number[], options: TensorOptions = {}): Tensor {
    const value = this.load(storage, shape, options)
    this.args.push(value)
    return value
  }

  /** A tensor that is not an argument (a constant of the module). */
  load(storage: LoadedStorage, shape: readonly number[], options: TensorOptions = {}): Tensor {
    checkArgument(isObject(storage) && 'bytes' in storage, 'InputReader.tensor', 'storage', 'what storage() returns', storage)
    checkOptions('InputReader.tensor', options, { dtype: true, strides: true, requiresGrad: true })
    const dtype = options.dtype ?? 'float32'
    if (!isDType(dtype)) throw new ArgumentError(`reader.tensor: unknown dtype ${valueText(dtype)}.`)
    const strides = options.strides ?? contiguousStrides(checkSizes('reader.tensor', 'shape', shape))
    checkLayout('reader.tensor', shape, strides)
    const bytes = storage.bytes ?? randomBytes(windowNumel(shape, strides), dtype)
    const value = tensorFromBytes(bytes, shape, dtype, strides)
    if (options.requiresGrad === true) value.requiresGrad = true
    return value
  }

  /** A number argument. */
  number(value: number): number {
    this.args.push(value)
    return value
  }
}

function randomBytes(numel: number, dtype: DType): Uint8Array {
  const nbytes = numel * dtypeInfo[dtype].size
  if (!dtypeInfo[dtype].floating) return new Uint8Array(nbytes)
  return randn([Math.max(1, numel)], { dtype })
    .realize()
    .readBytes(0, nbytes)
}
