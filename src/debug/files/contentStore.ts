// The data of a repro on disk, addressed by content: one file per storage, storages/<SHA-1 of its bytes>, written once and checked when it is read. PyTorch's
// torch.utils._content_store.
import { ArgumentError } from '../../errors/index.ts'
import { checkArgument, checkString, valueText } from '../../protocol/index.ts'
import type { FileStore } from './fileStore.ts'
import { checkStore, joinPath } from './fileStore.ts'
import { sha1 } from './sha1.ts'

const isHash = (text: string): boolean => /^[0-9a-f]{40}$/.test(text)

/** Storages in a folder. */
export class ContentStore {
  readonly #store: FileStore
  readonly #dir: string
  readonly #created: string[] = []

  /** Storages are in `dir`/storages/. */
  constructor(store: FileStore, dir: string) {
    checkStore('ContentStore', store)
    checkString('ContentStore', 'dir', dir)
    this.#store = store
    this.#dir = dir
  }

  pathOf(hash: string): string {
    return joinPath(this.#dir, 'storages', hash)
  }

  /** Writes the bytes unless they are there. Returns their hash. A file of another length is what a crash left, and is replaced. */
  write(bytes: Uint8Array): string {
    const hash = sha1(bytes)
    const path = this.pathOf(hash)
    const known = this.#store.read(path)
    if (known?.length === bytes.length) return hash
    this.#store.write(path, bytes)
    if (known === null) this.#created.push(path)
    return hash
  }

  /** The bytes with that hash. Throws ArgumentError, with the file's path, if they are not there or damaged. */
  read(hash: string, nbytes: number): Uint8Array {
    checkString('ContentStore.read', 'hash', hash)
    if (!isHash(hash)) throw new ArgumentError(`a storage is named by the SHA-1 of its bytes, 40 hexadecimal digits; got ${valueText(hash)}.`)
    checkArgument(Number.isSafeInteger(nbytes) && nbytes >= 0, 'ContentStore.read', 'nbytes', 'a number of bytes', nbytes)
    const path = this.pathOf(hash)
    const bytes = this.#store.read(path)
    if (bytes === null)
      throw new ArgumentError(
        `the script needs the storage ${hash} (${nbytes} bytes), but there is no file ${path}. Copy the folder 'storages' to where the script looks for it, name the folder that holds it with --save-dir DIR, or ask for the repro as one file (npx tensorfx repro pack). --no-save-dir runs on random numbers instead.`,
      )
    if (bytes.length !== nbytes)
      throw new ArgumentError(`the storage ${path} has ${bytes.length} bytes, but the script expects ${nbytes}; the file is damaged.`)
    if (sha1(bytes) !== hash) throw new ArgumentError(`the storage ${path} does not hold the bytes that its name stands for; the file is damaged.`)
    return bytes
  }

  /** Removes the storages that were not there before. */
  takeBack(): void {
    for (const path of this.#created.splice(0)) this.#store.remove?.(path)
  }
}
