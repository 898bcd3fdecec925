// Loads what inputWriter.ts wrote. PyTorch's InputReader, but for data that is not there: that is an error, and random numbers come only where they were asked for.
import type { SizedInput } from '../../aot/run/symbolicSizes.ts'
import { anySize } from '../../dynamo/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { dtypeInfo, isDType } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { randn } from '../../ops/index.ts'
import { checkArgument, checkArray, checkCount, checkMethod, checkOptions, checkString, isObject, valueText } from '../../protocol/index.ts'
import { Storage, Tensor, contiguousStrides, isContiguous, windowNumel } from '../../tensor/index.ts'
import { ContentStore } from './contentStore.ts'
import { checkStore } from './fileStore.ts'
import type { FileStore } from './fileStore.ts'
import { bytesOf, bytesOfBase64 } from './storageText.ts'
import type { ElementLiteral } from './storageText.ts'
import { checkLayout, checkSizes } from './plainValues.ts'

/** The data of one or more tensors. `bytes` is null where random numbers were asked for. */
export interface LoadedStorage {
  readonly bytes: Uint8Array | null
  readonly nbytes: number
}

/** A dimension whose size may differ from call to call, as `markDynamic` says: any size of at least 2, or those of a range. */
export type DynamicDim = number | { readonly dim: number; readonly min: number; readonly max: number }

/** What a tensor of a script is beyond its storage and shape. */
export interface TensorOptions {
  readonly strides?: readonly number[]
  /** The position of the first element in the storage, in elements. Default 0. */
  readonly offset?: number
  readonly dtype?: DType
  readonly requiresGrad?: boolean
  /** The tensor is a parameter of a module. */
  readonly parameter?: boolean
  /** The dimensions whose sizes may differ from call to call, of an input; with a range, if the program has marked one. Default: all sizes are constants of the graph. */
  readonly dynamic?: readonly DynamicDim[]
}

/** Options of {@link InputReader}. */
export interface InputReaderOptions {
  /** Storages that are in files become random numbers. Default false. */
  readonly random?: boolean
}

/** Collects the arguments of a graph: a script calls its methods. */
export class InputReader {
  /** The arguments of the last call, which is the one that fails. */
  readonly args: unknown[] = []
  /** Those of the calls before it, oldest first. */
  readonly earlier: (readonly unknown[])[] = []
  /** Which positions of the arguments are sizes. */
  readonly sized: SizedInput[] = []
  /** Whether any storage is random numbers. */
  isRandom = false
  readonly #files: ContentStore | null
  readonly #random: boolean
  /** The memory of a storage, which its tensors share. */
  readonly #memory = new WeakMap<LoadedStorage, Storage>()

  /** Files are in `dir`/storages/. */
  constructor(store: FileStore | null, dir: string | null, options: InputReaderOptions = {}) {
    checkCount('InputReader', arguments, 3)
    if (store !== null) checkStore('InputReader', store)
    if (dir !== null) checkString('InputReader', 'dir', dir)
    checkOptions('InputReader', options, { random: 'boolean' })
    this.#files = store === null || dir === null ? null : new ContentStore(store, dir)
    this.#random = options.random === true
  }

  /** A storage in a file. Throws ArgumentError if it is not there, or not what it was. */
  storage(hash: string, nbytes: number, _options: { readonly dtypeHint?: DType } = {}): LoadedStorage {
    checkString('InputReader.storage', 'hash', hash)
    checkArgument(Number.isSafeInteger(nbytes) && nbytes >= 0, 'InputReader.storage', 'nbytes', 'a number of bytes', nbytes)
    if (this.#random) {
      this.isRandom = true
      return { bytes: null, nbytes }
    }
    if (this.#files === null)
      throw new ArgumentError(
        `the script needs the storage ${hash} (${nbytes} bytes), but it was told of no folder. Name the one that holds 'storages' with --save-dir DIR. --no-save-dir runs on random numbers instead.`,
      )
    return { bytes: this.#files.read(hash, nbytes), nbytes }
  }

  /** A storage of a few elements. */
  values(elements: readonly ElementLiteral[], dtype: DType = 'float32'): LoadedStorage {
    checkArray('reader.values', 'elements', elements)
    for (const value of elements) checkArgument(isElement(value), 'reader.values', 'elements', 'a list of numbers, bigints or booleans', value)
    const bytes = bytesOf(elements, checkDType('reader.values', dtype))
    return { bytes, nbytes: bytes.length }
  }

  /** A storage of `count` times the same element. */
  fill(count: number, element: ElementLiteral, dtype: DType = 'float32'): LoadedStorage {
    checkMethod(this, 'reader.fill', arguments, 3)
    checkArgument(Number.isSafeInteger(count) && count >= 0 && count <= MOST_ELEMENTS, 'reader.fill', 'count', 'a number of elements', count)
    checkArgument(isElement(element), 'reader.fill', 'element', 'a number, bigint or boolean', element)
    const one = bytesOf([element], checkDType('reader.fill', dtype))
    const bytes = new Uint8Array(count * one.length)
    for (let i = 0; i < bytes.length; i++) bytes[i] = one[i % one.length] ?? 0
    return { bytes, nbytes: bytes.length }
  }

  /** A storage in base64. */
  bytes(text: string): LoadedStorage {
    checkString('reader.bytes', 'text', text)
    const bytes = bytesOfBase64(text)
    return { bytes, nbytes: bytes.length }
  }

  /** A tensor over a storage; it becomes the next argument. Tensors over the same storage share its memory. */
  tensor(storage: LoadedStorage, shape: readonly number[], options: TensorOptions = {}): Tensor {
    const value = this.load(storage, shape, options)
    const { dynamic } = options
    if (dynamic === undefined) {
      this.#add(value)
      return value
    }
    const isDim = (one: DynamicDim): boolean => {
      if (typeof one === 'number') return Number.isInteger(one) && one >= 0 && one < shape.length
      return isObject(one) && typeof one.dim === 'number' && isDim(one.dim) && typeof one.min === 'number' && typeof one.max === 'number'
    }
    const wanted = `a list of dimensions below ${shape.length}, or of { dim, min, max }`
    checkArgument(Array.isArray(dynamic) && dynamic.every(isDim), 'reader.tensor', 'dynamic', wanted, dynamic)
    const ranges = new Map(dynamic.map((one) => (typeof one === 'number' ? [one, anySize] : [one.dim, { min: one.min, max: one.max }])))
    this.#add(value, { dims: shape.map((_, dim) => ranges.get(dim) ?? null) })
    return value
  }

  #add(value: unknown, sized: SizedInput = null): void {
    this.args.push(value)
    this.sized.push(sized)
  }

  /**
   * A tensor that is not an argument: it belongs to the module, or is part of an argument. Throws ArgumentError if it does not fit into the storage, or has a dtype without
   * gradients and is a parameter.
   */
  load(storage: LoadedStorage, shape: readonly number[], options: TensorOptions = {}): Tensor {
    const where = 'InputReader.tensor'
    checkArgument(isObject(storage) && 'bytes' in storage, where, 'storage', 'what storage() returns', storage)
    checkOptions(where, options, { dtype: true, strides: true, offset: 'number', requiresGrad: 'boolean', parameter: 'boolean', dynamic: true })
    const dtype = checkDType('reader.tensor', options.dtype ?? 'float32')
    const { floating, size } = dtypeInfo[dtype]
    const strides = options.strides ?? contiguousStrides(checkSizes('reader.tensor', 'shape', shape))
    checkLayout('reader.tensor', shape, strides)
    const { offset = 0, requiresGrad = false, parameter = false } = options
    checkArgument(Number.isSafeInteger(offset) && offset >= 0, where, 'offset', 'a number of elements', offset)
    checkArgument(typeof requiresGrad === 'boolean', where, 'requiresGrad', 'true or false', requiresGrad)
    checkArgument(typeof parameter === 'boolean', where, 'parameter', 'true or false', parameter)
    if (requiresGrad && !floating) throw new ArgumentError(`reader.tensor: a tensor of ${dtype} cannot require gradients.`)
    const end = shape.includes(0) ? 0 : (offset + windowNumel(shape, strides)) * size
    if (!(end <= storage.nbytes))
      throw new ArgumentError(
        `reader.tensor: a ${dtype} tensor of shape [${shape.join(', ')}] at ${offset} needs ${end} bytes, but its storage has ${storage.nbytes}.`,
      )
    const layout = isContiguous(shape, strides) ? undefined : [...strides]
    const value = new Tensor([...shape], dtype, this.#memoryOf(storage, dtype), layout, offset)
    if (requiresGrad) value.requiresGrad = true
    if (parameter) value.isParameter = true
    return value
  }

  /** What follows are the arguments of the next call. */
  nextCall(): void {
    checkMethod(this, 'nextCall', arguments, 0)
    this.earlier.push(this.args.splice(0))
    this.sized.length = 0
  }

  /** A number argument. */
  number(value: number): number {
    this.#add(value)
    return value
  }

  /** A size that is an argument, and may differ from call to call. PyTorch's symint. */
  symint(value: number): number {
    checkArgument(Number.isSafeInteger(value), 'reader.symint', 'value', 'an integer', value)
    this.#add(value, 'size')
    return value
  }

  /** Any other argument. */
  value<T>(value: T): T {
    this.#add(value)
    return value
  }

  #memoryOf(loaded: LoadedStorage, dtype: DType): Storage {
    const known = this.#memory.get(loaded)
    if (known !== undefined) return known
    const bytes = loaded.bytes ?? randomBytes(loaded.nbytes, dtype)
    const memory = Storage.allocate(bytes.length)
    memory.writeBytes(bytes)
    this.#memory.set(loaded, memory)
    return memory
  }
}

const isElement = (value: unknown): boolean => typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean'

/** As many elements as the largest tensor has. */
const MOST_ELEMENTS = 2 ** 31

function checkDType(where: string, dtype: unknown): DType {
  if (typeof dtype === 'string' && isDType(dtype)) return dtype
  throw new ArgumentError(`${where}: unknown dtype ${valueText(dtype)}.`)
}

/** Normally distributed numbers; zeros for integers and booleans, which may be positions. */
function randomBytes(nbytes: number, dtype: DType): Uint8Array {
  const { floating, size } = dtypeInfo[dtype]
  const numel = Math.floor(nbytes / size)
  if (!floating || numel === 0) return new Uint8Array(nbytes)
  const bytes = new Uint8Array(nbytes)
  bytes.set(
    randn([numel], { dtype })
      .realize()
      .readBytes(0, numel * size),
  )
  return bytes
}
