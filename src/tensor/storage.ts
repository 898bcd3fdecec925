// The data behind tensors: one block of memory, shared by a tensor and its views, with a version that in-place operators raise.
import { newBlock, readBlock, writeBlock } from '../kernels/index.ts'
import type { Block } from '../kernels/index.ts'

export class Storage {
  /** The memory. @internal */
  readonly block: Block
  readonly nbytes: number
  /** Raised by every write after construction; autograd and compile compare it. PyTorch's version counter. @internal */
  version = 0
  /** The number of storages made so far. @internal */
  static made = 0
  /** Storages are numbered as they are made. @internal */
  readonly serial: number = Storage.made++

  /** @internal */
  constructor(block: Block, nbytes: number) {
    this.block = block
    this.nbytes = nbytes
  }

  /** A new storage of `nbytes` bytes. Its contents are undefined. @internal */
  static allocate(nbytes: number): Storage {
    return new Storage(newBlock(nbytes), nbytes)
  }

  /** The bytes from `start` to `end`, copied. */
  readBytes(start = 0, end: number = this.nbytes): Uint8Array {
    return readBlock(this.block, start, end)
  }

  /** Writes bytes from `start` on. It does not raise the version. */
  writeBytes(bytes: Uint8Array, start = 0): void {
    writeBlock(this.block, start, bytes)
  }
}
