// Copy on write: what storages held at a moment, copied only when they are next written to.
import { ArgumentError } from '../../errors/index.ts'
import type { Storage, Tensor } from '../../tensor/index.ts'

/** What a storage held at one moment. Steps between which it was not written to share one. */
export class Copy {
  readonly storage: Storage
  readonly version: number
  /** The content, from the first write on. */
  bytes: Uint8Array | null = null
  /** How many snapshots need it. */
  holders = 0
  /** Kept alive only by the recorder; freed when the record is dropped. */
  readonly isKeptAlive: boolean

  constructor(storage: Storage, isKeptAlive: boolean) {
    this.storage = storage
    this.version = storage.version
    this.isKeptAlive = isKeptAlive
  }

  /** The bytes that it takes. */
  get size(): number {
    if (this.bytes !== null) return this.bytes.length
    return this.isKeptAlive ? this.storage.nbytes : 0
  }

  /** Whether the storage was written to without an announcement, so that the old content is lost. */
  get isLost(): boolean {
    return this.bytes === null && this.storage.version !== this.version
  }

  /** What the storage held. */
  content(): Uint8Array {
    return this.bytes ?? this.storage.readBytes()
  }

  /** Makes the storage hold this again. Others who keep its present content are told before. */
  restore(): void {
    const { bytes, storage } = this
    if (bytes === null) return
    storage.announceWrite()
    storage.writeBytes(bytes)
  }
}

/** The copies of all storages that are watched. */
export class Copies {
  /** The copies of storages that have not been written to since. */
  readonly #current = new WeakMap<Storage, Copy>()
  /** Bytes of all copies that are held. */
  size = 0

  /** What the tensor's memory holds now. `isKeptAlive`: the recorder keeps the memory alive, since the program may drop it. Throws ArgumentError for a fake tensor. */
  hold(tensor: Tensor, isKeptAlive: boolean): Copy {
    const { storage } = tensor
    if (storage === null) throw new ArgumentError('flightRecorder: a fake tensor has no data to record; record a run on real tensors.')
    const known = this.#current.get(storage)
    if (known !== undefined && !known.isLost && known.bytes === null) {
      this.#retain(known)
      return known
    }
    const copy = new Copy(storage, isKeptAlive)
    this.#current.set(storage, copy)
    storage.beforeWrite(() => this.#keep(copy))
    this.#retain(copy)
    return copy
  }

  #retain(copy: Copy): void {
    if (copy.holders++ === 0) this.size += copy.size
  }

  /** A snapshot that needed the copy is dropped. */
  release(copy: Copy): void {
    if (--copy.holders === 0) this.size -= copy.size
  }

  #keep(copy: Copy): void {
    if (copy.holders === 0) {
      if (this.#current.get(copy.storage) === copy) this.#current.delete(copy.storage)
      return
    }
    this.size -= copy.size
    copy.bytes = copy.storage.readBytes()
    this.size += copy.size
  }
}
