// Values of a graph's nodes on disk, by name: `tensors/NAME.json` holds a value as plain data (plainValues.ts), in which the bytes of tensors are storages that are named by their
// content (contentStore.ts). PyTorch's ContentStoreWriter.write_tensor and ContentStoreReader.read_tensor.
import { ArgumentError, messageOf } from '../../errors/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { isPlainObject } from '../../protocol/index.ts'
import { ContentStore } from './contentStore.ts'
import { joinPath } from './fileStore.ts'
import type { FileStore } from './fileStore.ts'
import { sha1 } from './sha1.ts'
import { fromPlain, toPlain } from './plainValues.ts'
import type { PlainValue } from './plainValues.ts'

/** A folder for the values of a graph's nodes: those of another graph are in another one. */
export const folderOf = (kind: string, { graph }: GraphModule): string => `${kind}-${sha1(new TextEncoder().encode(String(graph))).slice(0, 12)}`

export class TensorFiles {
  readonly #store: FileStore
  readonly #dir: string
  readonly #storages: ContentStore

  /** Values are in `dir`/tensors/, the bytes of tensors in `dir`/storages/. */
  constructor(store: FileStore, dir: string) {
    this.#store = store
    this.#dir = dir
    this.#storages = new ContentStore(store, dir)
  }

  /** Writes what {@link toPlain} takes, over what had the name before. Throws ArgumentError for any other value. */
  write(name: string, value: unknown): void {
    const text = JSON.stringify(toPlain(value, name), (_, part: unknown) => this.#encoded(part))
    this.#store.write(this.#pathOf(name), text)
  }

  /** What has that name. Throws ArgumentError, with the file's path, if it is not there or damaged. */
  read(name: string): unknown {
    const path = this.#pathOf(name)
    const bytes = this.#store.read(path)
    if (bytes === null)
      throw new ArgumentError(`there is no file ${path}: no earlier run saved the value of ${name}. Leave out the option --skip-saving-… once.`)
    let data: PlainValue
    try {
      data = JSON.parse(new TextDecoder().decode(bytes), (_, part: unknown) => this.#decoded(part))
      return fromPlain(data)
    } catch (error) {
      throw new ArgumentError(`the file ${path} cannot be read: ${messageOf(error)}`, { cause: error })
    }
  }

  #pathOf(name: string): string {
    return joinPath(this.#dir, 'tensors', `${name}.json`)
  }

  /** What JSON cannot hold. Objects of plain data have no keys of users, so that these are told from others. */
  #encoded(part: unknown): unknown {
    if (part instanceof Uint8Array) return { storage: this.#storages.write(part), nbytes: part.length }
    if (typeof part === 'bigint') return { bigint: String(part) }
    if (typeof part === 'number' && (!Number.isFinite(part) || Object.is(part, -0))) return { number: Object.is(part, -0) ? '-0' : String(part) }
    return part
  }

  #decoded(part: unknown): unknown {
    if (!isPlainObject(part)) return part
    const { storage, nbytes, bigint, number } = part
    if (typeof storage === 'string' && typeof nbytes === 'number') return this.#storages.read(storage, nbytes)
    if (typeof bigint === 'string') return BigInt(bigint)
    return typeof number === 'string' ? Number(number) : part
  }
}
