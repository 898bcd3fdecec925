// Values of a graph's nodes on disk, by name: `tensors/NAME.json` says which storage a tensor looks at, and how; storages are named by their content. PyTorch's
// ContentStoreWriter.write_tensor and ContentStoreReader.read_tensor.
import { ArgumentError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { isPlainObject, valueText } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { ContentStore } from './contentStore.ts'
import { joinPath } from './fileStore.ts'
import type { FileStore } from './fileStore.ts'
import { InputReader } from './inputReader.ts'
import { windowOf } from './inputWriter.ts'

export class TensorFiles {
  readonly #store: FileStore
  readonly #dir: string
  readonly #storages: ContentStore

  /** Tensors are in `dir`/tensors/, their data in `dir`/storages/. */
  constructor(store: FileStore, dir: string) {
    this.#store = store
    this.#dir = dir
    this.#storages = new ContentStore(store, dir)
  }

  /** Writes a tensor, number, bigint, boolean, string or null, or a list of them, over what had the name before. Throws ArgumentError for any other value. */
  write(name: string, value: unknown): void {
    this.#store.write(this.#pathOf(name), JSON.stringify(this.#encoded(name, value)))
  }

  /** What has that name. Throws ArgumentError, with the file's path, if it is not there or damaged. */
  read(name: string): unknown {
    const path = this.#pathOf(name)
    const bytes = this.#store.read(path)
    if (bytes === null)
      throw new ArgumentError(`there is no file ${path}: no earlier run saved the value of ${name}. Leave out the option --skip-saving-… once.`)
    let content: unknown
    try {
      content = JSON.parse(new TextDecoder().decode(bytes))
    } catch (error) {
      throw new ArgumentError(`the file ${path} is damaged.`, { cause: error })
    }
    return this.#decoded(path, content)
  }

  #pathOf(name: string): string {
    return joinPath(this.#dir, 'tensors', `${name}.json`)
  }

  #encoded(name: string, value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#encoded(name, item))
    if (value === null || typeof value === 'boolean' || typeof value === 'string') return value
    if (typeof value === 'number') return { number: Object.is(value, -0) ? '-0' : String(value) }
    if (typeof value === 'bigint') return { bigint: String(value) }
    if (!(value instanceof Tensor)) throw new ArgumentError(`the value of ${name} cannot be saved: ${valueText(value)}.`)
    const { dtype, shape, strides, offset, requiresGrad, isParameter } = value
    const { from, to } = windowOf([value])
    const storage = this.#storages.write(value.realize().readBytes(from, to))
    const start = value.numel === 0 ? 0 : offset - from / dtypeInfo[dtype].size
    return { tensor: { storage, nbytes: to - from, shape, options: { dtype, strides, offset: start, requiresGrad, parameter: isParameter } } }
  }

  #decoded(path: string, content: unknown): unknown {
    if (Array.isArray(content)) return content.map((item) => this.#decoded(path, item))
    if (!isPlainObject(content)) return content
    const { number, bigint, tensor } = content
    if (typeof number === 'string') return Number(number)
    if (typeof bigint === 'string') return BigInt(bigint)
    if (!isPlainObject(tensor)) throw new ArgumentError(`the file ${path} is damaged.`)
    const { storage, nbytes, shape, options } = tensor
    const reader = new InputReader(this.#store, this.#dir)
    // The reader checks what it is given.
    return reader.load(reader.storage(storage as string, nbytes as number), shape as readonly number[], options as object)
  }
}
