// The data behind tensors: one block of memory, shared by a tensor and its views, with a version that in-place operators raise.
//
// The data may be late: while compile captures, a storage waits for its writer, which is asked to bring the memory up to date by whoever looks at it first. Since every read and
// write goes through `block`, all tensors on the storage agree, whichever of them was written to.
import { InternalError } from '../errors/index.ts'
import { newBlock, readBlock, writeBlock } from '../kernels/index.ts'
import type { Block, CopiesOf } from '../kernels/index.ts'

/** Computes what a storage is to hold (compile's capture). Afterwards the storage has its memory and no writer. */
export interface Writer {
  settle(storage: Storage): void
}

/** Where tensors can be: in the program's memory, or on the graphics card (tensorfx/webgpu). */
export type Device = 'cpu' | 'webgpu'

/** Data that stays on a device: the program's memory never holds it, but copies of it. */
export interface DeviceData {
  readonly device: Exclude<Device, 'cpu'>
  /** The bytes from `start` to `end` as they are now, as they would lie in the program's memory. Throws what the program must do where it cannot wait for them, and what went wrong on the device. */
  read(start?: number, end?: number): Uint8Array<ArrayBuffer>
  /** All of them, once they are here. */
  readLater(): Promise<Uint8Array<ArrayBuffer>>
  /** Gives the memory on the device back. */
  free(): void
}

/** Data that comes from elsewhere, such as a graphics card, and may not be here yet. */
export interface LateData {
  /** Set if the data stays where it is; then {@link take} throws. */
  readonly onDevice?: DeviceData
  /** Whether {@link take} returns the memory. */
  readonly isHere: boolean
  /** The memory, the same at each call. Throws what the program must do if the data is not here yet, and what kept it from coming. */
  take(): Block
  /** Resolves when {@link take} returns the memory; rejects with what kept the data from coming. */
  arrive(): Promise<void>
}

export class Storage {
  #block: Block | null
  /** Where the memory comes from, until it is asked for; of the `home` only. */
  #late: LateData | null = null
  #nbytes: number
  /** Where data that a writer computes will be; of the `home` only, until it is there. */
  #awaitedOn: Device = 'cpu'
  #version = 0
  #writes = 0
  /** The storage whose block and version are meant: itself, or the one that it moved to. */
  #home: Storage = this
  /** The number of storages made so far. @internal */
  static made = 0
  /** Called before every write to any storage, with the version before it; set by code that undoes writes later. @internal */
  static beforeAnyWrite: ((storage: Storage, version: number) => void) | null = null
  /** Storages are numbered as they are made. @internal */
  readonly serial: number = Storage.made++
  /** Who computes the data, or has a write to perform, before the memory may be looked at; null if the memory is up to date. @internal */
  writer: Writer | null = null
  #watchers: ((version: number) => void)[] | null = null
  /** Copies of the data in the form in which kernels read it; of the `home` only. Null before the first is thought of. @internal */
  copies: CopiesOf | null = null
  /** Which part of a capture knows this storage, by which slot, and whether by several tensors. @internal */
  captureStamp = 0
  /** @internal */
  captureSlot = -1
  /** @internal */
  captureShared = false

  /** @internal */
  constructor(block: Block | null, nbytes: number) {
    this.#block = block
    this.#nbytes = nbytes
  }

  /**
   * A new storage of `nbytes` bytes, whose contents are undefined, for a tensor of that shape and dtype, which messages name. A kernel may write `room` bytes, of which those after
   * `nbytes` belong to no tensor. @internal
   */
  static allocate(nbytes: number, shape: readonly number[] | null = null, dtype: string | null = null, room = nbytes): Storage {
    return new Storage(newBlock(room, shape, dtype), nbytes)
  }

  /** A storage whose data `writer` will compute, on that device. @internal */
  static deferred(nbytes: number, writer: Writer, device: Device = 'cpu'): Storage {
    const storage = new Storage(null, nbytes)
    storage.writer = writer
    storage.#awaitedOn = device
    return storage
  }

  /** A storage whose memory comes from elsewhere: whoever looks at it before it is here gets an error. @internal */
  static late(nbytes: number, late: LateData): Storage {
    const storage = new Storage(null, nbytes)
    storage.#late = late
    return storage
  }

  get nbytes(): number {
    return this.#home.#nbytes
  }

  /** Raised by every write after construction, when it is recorded; autograd and compile compare it. PyTorch's version counter. @internal */
  get version(): number {
    return this.#home.#version
  }

  set version(version: number) {
    this.#home.#version = version
    this.noteWrite()
  }

  /**
   * Another number after every change of the data: also after those that leave the version as it was, or raise it before they take place. For copies of the data in another form. @internal
   */
  get writes(): number {
    return this.#home.#writes
  }

  /** Counts a change of the data. @internal */
  noteWrite(): void {
    this.#home.#writes++
  }

  /** The memory, up to date. @internal */
  get block(): Block {
    if (this.writer !== null) this.writer.settle(this)
    const home = this.#home
    const block = home.#block ?? home.#takeLate()
    if (block === null) throw new InternalError('a storage was settled but has no memory')
    return block
  }

  #takeLate(): Block | null {
    if (this.#late === null) return null
    this.#block = this.#late.take()
    this.#late = null
    return this.#block
  }

  /** What the memory comes from, if nothing has taken it yet. @internal */
  get lateData(): LateData | null {
    return this.#home.#late
  }

  /** The data that stays on a device; null for data in the program's memory. @internal */
  get onDevice(): DeviceData | null {
    return this.#home.#late?.onDevice ?? null
  }

  /** Where the data is, or will be when its writer has computed it. @internal */
  get device(): Device {
    const home = this.#home
    return home.#late === null ? home.#awaitedOn : (home.#late.onDevice?.device ?? 'cpu')
  }

  /** Gives the storage other data, which comes from elsewhere. @internal */
  replaceLate(late: LateData): void {
    this.#home.#late = late
  }

  /** The data that is not here yet, in a storage of its own: what is written to this one later does not change it. Null if the data is here. @internal */
  lateCopy(): Storage | null {
    const { lateData } = this
    return lateData === null || lateData.isHere || lateData.onDevice !== undefined ? null : Storage.late(this.nbytes, lateData)
  }

  /** Whether it has no memory yet, and none that comes from elsewhere. @internal */
  get isDeferred(): boolean {
    return this.#home.#block === null && this.#home.#late === null
  }

  /** The same object for all storages on one memory. @internal */
  get home(): Storage {
    return this.#home
  }

  /** A copy of the memory as it is now: a writer that has a write to perform is not asked. Null if there is no memory yet. @internal */
  peekBytes(): Uint8Array | null {
    const block = this.#home.#block
    return block === null ? null : readBlock(block, 0, this.nbytes)
  }

  /** Moves to the memory of `other`, which must be new: both see its writes from now on. The version stays. Returns a storage that keeps the old memory. @internal */
  moveTo(other: Storage): Storage {
    const home = this.#home
    this.#home = other.#home
    this.#home.#version = home.#version
    const old = new Storage(home.#block, home.#nbytes)
    old.#late = home.#late
    return old
  }

  /** Makes the memory longer: all tensors on it see the same elements as before, and more after them, which are 0. @internal */
  growTo(nbytes: number): void {
    // The block first: it refuses what there is no room for.
    const block = newBlock(nbytes)
    const bytes = new Uint8Array(nbytes)
    bytes.set(this.readBytes())
    writeBlock(block, 0, bytes)
    const home = this.#home
    home.#block = block
    home.#nbytes = nbytes
    this.noteWrite()
  }

  /** Calls `watcher` before the next write, with the version before it. @internal */
  beforeWrite(watcher: (version: number) => void): void {
    this.#watchers ??= []
    this.#watchers.push(watcher)
  }

  /** To be called before the data changes; with the version before the write if that was recorded earlier. @internal */
  announceWrite(version: number = this.version): void {
    this.noteWrite()
    Storage.beforeAnyWrite?.(this, version)
    if (this.#watchers === null) return
    const watchers = this.#watchers
    this.#watchers = null
    for (const watcher of watchers) watcher(version)
  }

  /** The bytes from `start` to `end`, copied. */
  readBytes(start = 0, end: number = this.nbytes): Uint8Array {
    if (this.writer !== null) this.writer.settle(this)
    const { onDevice } = this
    if (onDevice !== null) return onDevice.read(start, end)
    return readBlock(this.block, start, end)
  }

  /** Writes bytes from `start` on. It does not raise the version. */
  writeBytes(bytes: Uint8Array, start = 0): void {
    writeBlock(this.block, start, bytes)
    this.noteWrite()
  }
}
