// The inputs of a graph, and the tensors that it holds, as source lines that load them again. Small data is in the script, large data in files beside it
// (contentStore.ts). PyTorch's InputWriter.
import { present } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import {
  checkArgument,
  checkCount,
  checkMethod,
  checkOptions,
  checkString,
  isPlainObject,
  lineComment,
  propertyKey,
  quote,
  scalarLiteral,
} from '../../protocol/index.ts'
import { Tensor, isContiguous, windowNumel } from '../../tensor/index.ts'
import { ContentStore } from './contentStore.ts'
import { checkStore } from './fileStore.ts'
import type { FileStore } from './fileStore.ts'
import type { DynamicDim } from './inputReader.ts'
import { checkPlain, partsOf } from './plainValues.ts'
import { base64Literal, literalsOf, repeatedLiteral } from './storageText.ts'

/** Bytes of all storages together that a script holds itself. */
const INLINE_BYTES = 4096

/** Options of {@link InputWriter}. */
export interface InputWriterOptions {
  /** Storages are written into the script as long as they have no more bytes than this together. Default 4096. Without a folder all are. */
  readonly inlineBytes?: number
  /** Write storages from their first byte on, not only what the tensors reach: for graphs that address them (`asStrided`). Default false. */
  readonly wholeStorages?: boolean
}

/** What is known of an input beside its value: its sizes. */
export interface SizesOfInput {
  /** The dimensions whose sizes may differ from call to call; `'size'` for a number that is such a size. */
  readonly dynamic: readonly DynamicDim[] | 'size'
  /** The input with symbols for sizes, `f32[s0, 128]`; null if there are none. */
  readonly spec: string | null
}

/** What becomes a line: a value, and how its expression is used. */
interface Entry {
  readonly name: string
  readonly value: unknown
  readonly sizes?: SizesOfInput | null
  /** The line with the expression in it; null for an input, which the reader keeps. */
  readonly line: ((expression: string) => string) | null
}

const dimText = (one: DynamicDim): string => (typeof one === 'number' ? String(one) : `{ dim: ${one.dim}, min: ${one.min}, max: ${one.max} }`)

/** Memory that one or more tensors look at. */
interface Shared {
  readonly variable: string
  readonly tensors: Tensor[]
}

/** Collects values; {@link InputWriter.lines} writes the storages and returns the source. */
export class InputWriter {
  readonly #files: ContentStore | null
  readonly #inlineBytes: number
  readonly #whole: boolean
  readonly #entries: Entry[] = []
  #lines: readonly string[] | null = null
  #paths: readonly string[] = []

  /** Storages that are too large for the script go to `dir`/storages/. Without a store or a folder, everything is in the script. */
  constructor(store: FileStore | null, dir: string | null, options: InputWriterOptions = {}) {
    checkCount('InputWriter', arguments, 3)
    if (store !== null) checkStore('InputWriter', store)
    if (dir !== null) checkString('InputWriter', 'dir', dir)
    checkOptions('InputWriter', options, { inlineBytes: 'number', wholeStorages: 'boolean' })
    const { inlineBytes = INLINE_BYTES, wholeStorages = false } = options
    checkArgument(typeof inlineBytes === 'number' && inlineBytes >= 0, 'InputWriter', 'inlineBytes', 'a number of bytes', inlineBytes)
    this.#files = store === null || dir === null ? null : new ContentStore(store, dir)
    this.#inlineBytes = this.#files === null ? Infinity : inlineBytes
    this.#whole = wholeStorages
  }

  /**
   * Adds one input: a tensor, number, bigint, boolean, string, null or undefined, or arrays, plain objects, Maps and Sets of them. Throws ArgumentError, when the repro is
   * written, for any other value. `sizes`: which of its sizes may differ from call to call. Default: none.
   */
  add(name: string, value: unknown, sizes: SizesOfInput | null = null): void {
    checkMethod(this, 'add', arguments, 3)
    this.#push({ name, value, sizes, line: null })
  }

  /** What is added from here on are the inputs of the next call. */
  nextCall(): void {
    checkMethod(this, 'nextCall', arguments, 0)
    this.use('', undefined, () => 'reader.nextCall()')
  }

  /** Adds a value that is not an input; `line` gets the expression that loads it. */
  use(name: string, value: unknown, line: (expression: string) => string): void {
    checkMethod(this, 'use', arguments, 3)
    this.#push({ name, value, line })
  }

  #push(entry: Entry): void {
    checkString('InputWriter', 'name', entry.name)
    checkPlain(entry.value, entry.name)
    this.#entries.push(entry)
    this.#lines = null
  }

  /** The source lines. Writes the storages that the script does not hold. */
  lines(): readonly string[] {
    checkMethod(this, 'lines', arguments, 0)
    return (this.#lines ??= new Source(this.#entries, this.#files, this.#inlineBytes, this.#whole, (paths) => (this.#paths = paths)).lines())
  }

  /** The files that were written, or were there already. */
  paths(): readonly string[] {
    checkMethod(this, 'paths', arguments, 0)
    return this.#paths
  }

  /** Removes the storages that were not there before: the script that would read them cannot be written. */
  takeBack(): void {
    this.#files?.takeBack()
  }
}

/** The lines of one script. */
class Source {
  readonly #entries: readonly Entry[]
  readonly #files: ContentStore | null
  readonly #whole: boolean
  readonly #keepPaths: (paths: readonly string[]) => void
  #room: number
  /** By the block of memory: storages that moved to the same one are the same. */
  readonly #shared = new Map<unknown, Shared>()
  /** Tensors that occur more than once, with their variables once they are there. */
  readonly #repeated = new Map<Tensor, string | null>()
  readonly #lines: string[] = []
  readonly #paths = new Set<string>()
  readonly #written = new Map<Shared, { readonly from: number }>()

  constructor(entries: readonly Entry[], files: ContentStore | null, room: number, whole: boolean, keepPaths: (paths: readonly string[]) => void) {
    this.#entries = entries
    this.#files = files
    this.#room = room
    this.#whole = whole
    this.#keepPaths = keepPaths
  }

  lines(): readonly string[] {
    const seen = new Set<Tensor>()
    for (const { value } of this.#entries) this.#collect(value, seen)
    for (const entry of this.#entries) this.#write(entry)
    this.#keepPaths([...this.#paths])
    return this.#lines
  }

  #collect(value: unknown, seen: Set<Tensor>): void {
    if (!(value instanceof Tensor)) {
      for (const part of partsOf(value) ?? []) this.#collect(part, seen)
      return
    }
    if (seen.has(value)) {
      this.#repeated.set(value, null)
      return
    }
    seen.add(value)
    const { block } = value.realize()
    const known = this.#shared.get(block)
    if (known === undefined) this.#shared.set(block, { variable: `buf${this.#shared.size}`, tensors: [value] })
    else known.tensors.push(value)
  }

  #write({ name, value, sizes = null, line }: Entry): void {
    if (line !== null) {
      this.#lines.push(line(this.#expression(value)))
      return
    }
    const comment = ` // ${lineComment(sizes === null || sizes.spec === null ? name : `${name}: ${sizes.spec}`)}`
    if (value instanceof Tensor && !this.#isThere(value))
      this.#lines.push(`${this.#tensor(value, 'tensor', sizes === null || sizes.dynamic === 'size' ? null : sizes.dynamic)}${comment}`)
    else if (typeof value === 'number') this.#lines.push(`reader.${sizes === null ? 'number' : 'symint'}(${scalarLiteral(value)})${comment}`)
    else this.#lines.push(`reader.value(${this.#expression(value)})${comment}`)
  }

  #isThere(tensor: Tensor): boolean {
    return typeof this.#repeated.get(tensor) === 'string'
  }

  #expression(value: unknown): string {
    if (value instanceof Tensor) return this.#repeated.get(value) ?? this.#tensor(value, 'load')
    const scalar = scalarLiteral(value)
    if (scalar !== null) return scalar
    const list = (items: Iterable<unknown>): string => `[${Array.from(items, (item) => this.#expression(item)).join(', ')}]`
    if (Array.isArray(value)) return list(value)
    if (value instanceof Map) return `new Map(${list(value)})`
    if (value instanceof Set) return `new Set(${list(value)})`
    const entries = Object.entries(isPlainObject(value) ? value : {})
    return entries.length === 0 ? '{}' : `{ ${entries.map(([key, item]) => `${propertyKey(key)}: ${this.#expression(item)}`).join(', ')} }`
  }

  /** The call that loads a tensor, and before it the line of its storage. One that is needed again gets a variable. */
  #tensor(tensor: Tensor, method: 'tensor' | 'load', dynamic: readonly DynamicDim[] | null = null): string {
    const { shape, strides, dtype, requiresGrad, isParameter, offset } = tensor
    const { variable, from } = this.#storage(tensor)
    const options: string[] = []
    if (!isContiguous(shape, strides)) options.push(`strides: [${strides.join(', ')}]`)
    const start = tensor.numel === 0 ? 0 : offset - from / dtypeInfo[dtype].size
    if (start !== 0) options.push(`offset: ${start}`)
    if (dtype !== 'float32') options.push(`dtype: ${quote(dtype)}`)
    if (requiresGrad) options.push('requiresGrad: true')
    if (isParameter) options.push('parameter: true')
    if (dynamic !== null) options.push(`dynamic: [${dynamic.map(dimText).join(', ')}]`)
    const call = `reader.${method}(${variable}, [${shape.join(', ')}]${options.length === 0 ? '' : `, { ${options.join(', ')} }`})`
    if (this.#repeated.get(tensor) !== null) return call
    const name = `t${[...this.#repeated.values()].filter((known) => known !== null).length}`
    this.#repeated.set(tensor, name)
    if (method === 'tensor') return `const ${name} = ${call}`
    this.#lines.push(`const ${name} = ${call}`)
    return name
  }

  #storage(tensor: Tensor): { readonly variable: string; readonly from: number } {
    const storage = tensor.realize()
    const shared = present(this.#shared.get(storage.block), 'the memory of a tensor')
    const known = this.#written.get(shared)
    if (known !== undefined) return { variable: shared.variable, from: known.from }
    const { from, to } = this.#whole ? { from: 0, to: storage.nbytes } : windowOf(shared.tensors)
    this.#written.set(shared, { from })
    this.#lines.push(`const ${shared.variable} = ${this.#data(storage.readBytes(from, to), dtypesOf(shared))}`)
    return { variable: shared.variable, from }
  }

  /** The expression for the bytes of a storage: in the script as long as there is room, otherwise the name of a file. */
  #data(bytes: Uint8Array, dtypes: readonly DType[]): string {
    const [dtype = 'uint8'] = dtypes
    const inDType = dtype === 'float32' ? '' : `, ${quote(dtype)}`
    const repeated = dtypes.length === 1 ? repeatedLiteral(bytes, dtype) : null
    if (repeated !== null) return `reader.fill(${repeated.count}, ${repeated.literal}${inDType})`
    if (this.#files !== null && bytes.length > this.#room) {
      const hash = this.#files.write(bytes)
      this.#paths.add(this.#files.pathOf(hash))
      return `reader.storage(${quote(hash)}, ${bytes.length}${dtype === 'float32' ? '' : `, { dtypeHint: ${quote(dtype)} }`})`
    }
    this.#room -= bytes.length
    const literals = dtypes.length === 1 ? literalsOf(bytes, dtype) : null
    if (literals === null) return `reader.bytes(${base64Literal(bytes)})`
    return `reader.values(${literals}${inDType})`
  }
}

const dtypesOf = ({ tensors }: Shared): readonly DType[] => [...new Set(tensors.map((tensor) => tensor.dtype))]

/** The bytes that tensors on one storage reach, from a position that is one of an element for each of them. */
function windowOf(tensors: readonly Tensor[]): { readonly from: number; readonly to: number } {
  let [from, to] = [Infinity, 0]
  const step = Math.max(...tensors.map(({ dtype }) => dtypeInfo[dtype].size))
  for (const { shape, strides, offset, dtype, numel } of tensors) {
    if (numel === 0) continue
    const { size } = dtypeInfo[dtype]
    from = Math.min(from, Math.floor((offset * size) / step) * step)
    to = Math.max(to, (offset + windowNumel(shape, strides)) * size)
  }
  return from > to ? { from: 0, to: 0 } : { from, to }
}
