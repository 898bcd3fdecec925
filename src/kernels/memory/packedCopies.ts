// Copies of data in the form in which a kernel reads it: packed weights, transformed ones. A copy is made when the data was read several times and has not changed; whoever reads it
// compares a count of the data's changes. Copies can be made again, so they are given back first when memory is short.
import { reclaimables } from './budget.ts'
import type { Reclaimable } from './budget.ts'
import { OutOfMemoryError } from './outOfMemory.ts'
import { allocating } from './owners.ts'
import { disposeBlock, newBlock } from './storageBlock.ts'
import type { Block } from './storageBlock.ts'

/** The call at which data that has not changed since the first one is copied. */
const COPIED_AT = 3

/** Calls that read data of which there are copies, or could be. */
let calls = 0

/** Copies that share a limit. */
export class PackedCopies implements Reclaimable {
  readonly holdsCopies = true
  readonly #use: { readonly qualname: string }
  readonly #mostBytes: number
  readonly #isIdle: () => boolean
  /** The copies that have memory, with their bytes. Those that are gone have nothing to give back. */
  readonly #all = new Map<WeakRef<PackedCopy>, number>()

  /**
   * `use` is what the memory belongs to, in the text of OutOfMemoryError and in `torch.memory.snapshot()`; `mostBytes` is what all of them may take; `isIdle` says whether no kernel that
   * reads them is running.
   */
  constructor(use: string, mostBytes: number, isIdle: () => boolean) {
    this.#use = { qualname: use }
    this.#mostBytes = mostBytes
    this.#isIdle = isIdle
  }

  reclaim(): void {
    if (this.#isIdle()) for (const copy of this.#all.keys()) copy.deref()?.release()
  }

  /** Memory on the heap for a copy; null if there is none. Copies that no call has read since `since` make room. @internal */
  take(copy: WeakRef<PackedCopy>, bytes: number, since: number): Block | null {
    if (!reclaimables.includes(this)) reclaimables.push(this)
    let left = this.#mostBytes - bytes
    for (const [other, size] of this.#all) {
      if (other.deref() === undefined) this.#all.delete(other)
      else left -= size
    }
    for (const other of left < 0 ? this.#all.keys() : []) left += other.deref()?.releaseUnread(since) ?? 0
    const block = left < 0 ? null : this.#room(bytes)
    if (block !== null) this.#all.set(copy, bytes)
    return block
  }

  /** Forgets a copy that has given its memory back. @internal */
  drop(copy: WeakRef<PackedCopy>): void {
    this.#all.delete(copy)
  }

  #room(bytes: number): Block | null {
    const { operator, composite } = allocating
    // The memory does not belong to the call that happens to make the copy.
    allocating.operator = this.#use
    allocating.composite = null
    try {
      const block = newBlock(bytes, [bytes / 4], 'float32')
      if (block.ptr !== 0) return block
      disposeBlock(block)
      return null
    } catch (error) {
      if (error instanceof OutOfMemoryError) return null
      throw error
    } finally {
      allocating.operator = operator
      allocating.composite = composite
    }
  }
}

/** One copy. Its memory lives as long as it does. */
export class PackedCopy {
  readonly #copies: PackedCopies
  /** Made with the first memory: the host keeps what it refers to until the task ends. */
  #self: WeakRef<PackedCopy> | null = null
  #block: Block | null = null
  /** The count of the data's changes at the last call, how often in a row it was that, and at which of these calls a copy is made. */
  #writes = -1
  #reads = 0
  #due = COPIED_AT
  /** The last call, and the one before. */
  #last = 0
  #before = 0

  constructor(copies: PackedCopies) {
    this.#copies = copies
  }

  /** Where it lies; 0 if there is none. */
  get address(): number {
    return this.#block === null ? 0 : this.#block.ptr
  }

  /** Counts a call that reads the data, which has changed so often. Returns whether the copy is to be made in this call. A copy of what the data was is given back. */
  isDue(writes: number): boolean {
    this.#before = this.#last
    this.#last = ++calls
    if (writes !== this.#writes) {
      this.#writes = writes
      this.release()
      this.#reads = 0
      this.#due = COPIED_AT
    }
    return this.#block === null && ++this.#reads === this.#due
  }

  /** Gets memory of `bytes` bytes, and returns its address; 0 if there is no room, which is asked for again after twice as many calls. */
  make(bytes: number): number {
    this.#block = this.#copies.take((this.#self ??= new WeakRef(this)), bytes, this.#before)
    if (this.#block === null) this.#due *= 2
    return this.address
  }

  /** From now on, it is a copy of other data. */
  forget(): void {
    this.release()
    this.#writes = -1
  }

  /** Gives the memory back. */
  release(): void {
    if (this.#block === null) return
    disposeBlock(this.#block)
    this.#block = null
    this.#reads = 0
    this.#due = COPIED_AT
    if (this.#self !== null) this.#copies.drop(this.#self)
  }

  /** Gives the memory back if no call has read it since that one, and returns its bytes. @internal */
  releaseUnread(since: number): number {
    const bytes = this.#block?.nbytes ?? 0
    if (bytes === 0 || this.#last >= since) return 0
    this.release()
    return bytes
  }
}

/** Copies of one memory in different forms are at most that many. */
const MOST_FORMS = 64

/** A copy in one form: for which kernels it is, and the numbers that say which part of the data it is and how that lies. */
interface Form {
  readonly reader: object
  readonly numbers: readonly number[]
  readonly copy: PackedCopy
}

/** The copies of one memory, by form. */
export class CopiesOf {
  readonly #forms: Form[] = []
  #next = 0

  /** The copy in a form, which may have no memory yet; null where there are too many. */
  of(reader: object, numbers: readonly number[], copies: PackedCopies): PackedCopy | null {
    for (const form of this.#forms) if (form.reader === reader && form.numbers.every((number, i) => number === numbers[i])) return form.copy
    const form = { reader, numbers, copy: new PackedCopy(copies) }
    if (this.#forms.length < MOST_FORMS) this.#forms.push(form)
    else {
      this.#next = (this.#next + 1) % MOST_FORMS
      if ((this.#forms[this.#next]?.copy.address ?? 0) !== 0) return null
      this.#forms[this.#next] = form
    }
    return form.copy
  }
}
