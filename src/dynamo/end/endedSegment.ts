// A segment that has been run. It computes on demand the values that were not known to be needed: from its inputs or, where these have been overwritten since, from their old data.
import { noGrad } from '../../autograd/index.ts'
import { withoutModes } from '../../dispatch/index.ts'
import { present } from '../../errors/index.ts'
import { clone } from '../../ops/index.ts'
import { Tensor, asTensor } from '../../tensor/index.ts'
import type { Storage, Writer } from '../../tensor/index.ts'
import { EscapedTensorError } from '../reports/errors.ts'
import { evaluate } from '../run/evaluate.ts'
import { Segment } from '../segment/segment.ts'
import type { CompiledSegment, Step } from '../tree/traceTree.ts'
import { adopt } from './adoptResults.ts'
import { WeakRefs } from './weakRefs.ts'

/** For this many calls of a path, values that compile did not compute can be computed whatever is written in between, if that takes copies of no more bytes. */
const WATCHED_CALLS = 16
const WATCHED_BYTES = 2 ** 20

/** A copy of an input. What is not here yet cannot be written to in place: its data stays as it is. */
function copyOf(value: Tensor): Tensor {
  const late = value.storage?.lateCopy() ?? null
  if (late !== null) return new Tensor(value.sizes, value.dtype, late, value.steps, value.offset, value)
  return withoutModes(() => noGrad(() => clone(value)))
}

export class EndedSegment {
  readonly segment: Segment
  readonly end: Step
  /** What was run; null if nothing was needed. */
  compiled: CompiledSegment | null = null
  /** Part of this path was recorded or compiled for the first time: what is needed later is not known yet. */
  fresh: boolean
  /** Whether inputs that are written to are copied first: which values the program still needs is learned when it reads them, perhaps several calls later. */
  readonly #isYoung: boolean
  /** Whether its writes are being performed, or were. */
  isOver = false
  /** Inputs as they were, by slot, if they were overwritten since. */
  #kept: Map<number, Tensor> | null = null

  constructor(segment: Segment, learns: boolean) {
    this.segment = segment
    this.end = segment.cursor
    this.fresh = segment.fresh
    this.#isYoung = learns && this.end.calls++ < WATCHED_CALLS && bytesOf(segment.bound) <= WATCHED_BYTES
  }

  /** Whether it is not known yet which values are needed later. */
  get learns(): boolean {
    return this.fresh || this.#isYoung
  }

  /** Whether old data was kept. */
  get kept(): boolean {
    return this.#kept !== null
  }

  /** The inputs on `storage` (null: any) whose memory still has the data that the segment read, with their slots; `version` is that of the memory. */
  #unchanged(storage: Storage | null, version: number | null): readonly (readonly [number, Tensor])[] {
    return this.segment.bound.flatMap((value, slot) => {
      if (!(value instanceof Tensor) || this.#kept?.has(slot) === true || value.storage === null) return []
      if (storage !== null && value.storage !== storage) return []
      return (version ?? value.storage.version) === this.segment.versions[slot] ? [[slot, value] as const] : []
    })
  }

  #keep(slot: number, value: Tensor): void {
    this.#kept ??= new Map()
    this.#kept.set(slot, value)
  }

  /** Whether values that were not computed may need the data of `storage` before a write; `version` is that before the write. */
  needs(storage: Storage, version: number): boolean {
    return this.#unchanged(storage, version).length > 0
  }

  /** Copies the inputs on `storage` (null: all inputs) before they are overwritten. `version`: that of the memory, if writes were recorded already. */
  keepInputs(storage: Storage | null, version: number | null = null): void {
    for (const [slot, value] of this.#unchanged(storage, version)) this.#keep(slot, copyOf(value))
  }

  /** Keeps the data of the inputs when they are overwritten, as long as tensors that were not computed are in use. */
  watchInputs(): void {
    if (!this.segment.lazies.some((lazy) => lazy?.storage?.writer === this.segment)) return
    for (const [, { storage }] of this.#unchanged(null, null)) if (storage !== null) watch(storage, this)
  }

  /** `old` has the data that `storage` had, with that version, until now. */
  keepOld(storage: Storage, version: number, old: Storage): void {
    for (const [slot, value] of this.#unchanged(storage, version))
      this.#keep(slot, new Tensor(value.sizes, value.dtype, old, undefined, undefined, value))
  }

  /** Computes a tensor that left the segment unnoticed. Throws EscapedTensorError if the inputs have been modified. */
  recompute(storage: Storage): void {
    const slot = storage.captureSlot
    const tensor = this.segment.lazyAt(slot)
    this.end.learned.add(slot)
    const waiting = new Map<Storage, Writer>()
    try {
      const values = evaluate(this.end, [slot], (input) => this.#input(input, tensor, waiting))
      withoutModes(() => adopt(tensor, asTensor(values.get(slot), 'a recomputed value')))
    } finally {
      for (const [input, writer] of waiting) input.writer = writer
    }
  }

  /** The value of an input. Where a later segment has only recorded a write, the memory still has the old data: it is read before its writer, which `waiting` notes. */
  #input(slot: number, tensor: Tensor, waiting: Map<Storage, Writer>): unknown {
    const kept = this.#kept?.get(slot)
    if (kept !== undefined) return kept
    const value = this.segment.bound[slot]
    if (!(value instanceof Tensor)) return value
    const storage = present(value.storage, 'the storage of an input')
    const { writer } = storage
    if (
      writer instanceof Segment &&
      (writer !== this.segment || !this.isOver) &&
      writer.writes.get(storage)?.before === this.segment.versions[slot]
    ) {
      waiting.set(storage, writer)
      storage.writer = null
    } else if (!waiting.has(storage) && storage.version !== this.segment.versions[slot]) throw new EscapedTensorError(tensor.shape)
    return value
  }
}

/** Who keeps the data of a storage before the next write to it: none is kept alive by a storage that is never written to. */
const watching = new WeakMap<Storage, WeakRefs<EndedSegment>>()

function watch(storage: Storage, ended: EndedSegment): void {
  const known = watching.get(storage) ?? new WeakRefs<EndedSegment>()
  if (!watching.has(storage)) {
    watching.set(storage, known)
    storage.beforeWrite((version) => keepAll(storage, version))
  }
  known.add(ended)
}

function keepAll(storage: Storage, version: number): void {
  const known = watching.get(storage)
  watching.delete(storage)
  for (const ended of known ?? []) ended.keepInputs(storage, version)
}

const bytesOf = (values: readonly unknown[]): number =>
  values.reduce<number>((sum, value) => sum + (value instanceof Tensor ? (value.storage?.nbytes ?? 0) : 0), 0)
