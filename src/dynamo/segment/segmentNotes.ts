// What a segment notes of views and writes. Most segments have none, and a call of a small function is mostly what it allocates, so the maps are made when they are needed.
import type { Storage, Tensor } from '../../tensor/index.ts'
import type { Step } from '../tree/traceTree.ts'

/** A recorded write to memory that is older than the segment. */
export interface Write {
  /** The tensor through which it is written. */
  readonly tensor: Tensor
  /** The slot of its new value. */
  slot: number
  /** Its slot as an input. */
  readonly input: number
  /** The storage's version before the first write. */
  readonly before: number
}

const NO_VIEWS: ReadonlyMap<number, Step> = new Map()
const NO_STORAGES: ReadonlySet<Storage> = new Set()
const NO_WRITES: ReadonlyMap<Storage, Write> = new Map()

export class SegmentNotes {
  #views: Map<number, Step> | null = null
  #aliased: Set<Storage> | null = null
  #writes: Map<Storage, Write> | null = null

  /** The steps of the lazy tensors that are views, by slot. */
  get views(): ReadonlyMap<number, Step> {
    return this.#views ?? NO_VIEWS
  }

  /** Memory on which several tensors from outside lie. */
  get aliased(): ReadonlySet<Storage> {
    return this.#aliased ?? NO_STORAGES
  }

  /** Writes to memory from outside. */
  get writes(): ReadonlyMap<Storage, Write> {
    return this.#writes ?? NO_WRITES
  }

  protected noteView(slot: number, step: Step): void {
    this.#views ??= new Map()
    this.#views.set(slot, step)
  }

  protected dropView(slot: number): void {
    this.#views?.delete(slot)
  }

  protected noteAliased(storage: Storage): void {
    this.#aliased ??= new Set()
    this.#aliased.add(storage)
  }

  protected noteWrite(storage: Storage, write: Write): void {
    this.#writes ??= new Map()
    this.#writes.set(storage, write)
  }
}
