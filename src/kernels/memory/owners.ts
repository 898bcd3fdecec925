// Who owns memory: for each large block the operator that made it, its shape and dtype, and the program's lines if they are recorded. For OutOfMemoryError and `torch.memory.snapshot()`.
import { DEEP } from '../../errors/index.ts'
import { captureStack } from '../../provenance/index.ts'
import type { Frame } from '../../provenance/index.ts'

/** Blocks of at least this many bytes have a record, smaller ones only while lines are recorded. */
export const RECORDED_BYTES: number = 2 ** 18

/** What is known of a block. */
export interface BlockRecord {
  readonly bytes: number
  readonly operator: string | null
  readonly shape: readonly number[] | null
  readonly dtype: string | null
  /** The program's frames, innermost last; null if they were not recorded. */
  readonly frames: readonly Frame[] | null
}

/** The records of blocks on the heap by address, and of spilled blocks by number. */
export const heapRecords: Map<number, BlockRecord> = new Map()
export const spillRecords: Map<number, BlockRecord> = new Map()

/** What is running, for the records. The dispatcher, the engine of backward passes and compiled programs keep it up to date: a store for each call. */
export const allocating: {
  operator: { readonly qualname: string } | null
  /** What the program called, if that consists of operators: a composite, or an optimizer's step. */
  composite: string | null
  /** The node whose derivative is computed. */
  node: { readonly name: string } | null
} = { operator: null, composite: null, node: null }

let recording = false

/** Whether the program's lines are recorded at every allocation. */
export const recordsLines = (): boolean => recording

/** Records lines from now on, or no longer; what was recorded stays. */
export function recordLines(on: boolean): void {
  recording = on
}

/** Is told of blocks of tensors. For timelines of memory. */
export interface BlockListener {
  made(record: BlockRecord): void
  /** Told of blocks that were made meanwhile; of older ones only if they had a record. */
  freed(record: BlockRecord): void
}

let listener: BlockListener | null = null

/** Tells the listener of all blocks, which have records from now on; null ends it. Returns the one before. */
export function listenToBlocks(next: BlockListener | null): BlockListener | null {
  const before = listener
  listener = next
  return before
}

/** Whether every block has a record. */
export const recordsAll = (): boolean => recording || listener !== null

/** Keeps the record of a block that was made. */
export function keepRecord(records: Map<number, BlockRecord>, key: number, record: BlockRecord): void {
  records.set(key, record)
  listener?.made(record)
}

/** Forgets the record of a block that is gone, and returns it. */
export function dropRecord(records: Map<number, BlockRecord>, key: number): BlockRecord | undefined {
  const record = records.get(key)
  if (record === undefined) return undefined
  records.delete(key)
  listener?.freed(record)
  return record
}

/** The record of a block that is made now. Without a dtype, nothing is known of who makes it. */
export function newRecord(bytes: number, shape: readonly number[] | null, dtype: string | null): BlockRecord {
  // Frames at once: what the engine keeps instead refers to the functions on the stack, and to the tensors that they see.
  return { bytes, operator: dtype === null ? null : operatorNow(), shape, dtype, frames: recording ? captureStack(newRecord, DEEP).frames : null }
}

function operatorNow(): string | null {
  const { operator, composite, node } = allocating
  const name = composite ?? operator?.qualname ?? null
  return node === null ? name : name === null ? `backward (${node.name})` : `${name} in backward (${node.name})`
}

/** Blocks of one operator, shape, dtype and line. */
export interface MemoryOwner {
  /** What made them: the operator that the program called; null if it is unknown. */
  readonly operator: string | null
  /** The shape of each. */
  readonly shape: readonly number[] | null
  readonly dtype: string | null
  /** How many there are. */
  readonly count: number
  /** What they have together, in bytes. */
  readonly bytes: number
  /** Where they are: on the heap, or outside it. */
  readonly place: 'heap' | 'spill'
  /** The program's lines that made them, innermost last; null if lines were not recorded. */
  readonly frames: readonly Frame[] | null
}

/** The owners of all blocks that have a record, largest first. */
export function memoryOwners(): readonly MemoryOwner[] {
  const groups = new Map<string, MemoryOwner>()
  const add = (place: MemoryOwner['place'], { bytes, operator, shape, dtype, frames }: BlockRecord): void => {
    const lines = frames?.map(({ file, line, column }) => `${file}:${line}:${column}`).join()
    const key = `${place} ${operator} ${dtype} ${shape?.join()} ${shape === null ? bytes : ''} ${lines}`
    const known = groups.get(key)
    groups.set(key, { operator, shape, dtype, frames, place, count: (known?.count ?? 0) + 1, bytes: (known?.bytes ?? 0) + bytes })
  }
  for (const record of heapRecords.values()) if (record.bytes > 0) add('heap', record)
  for (const record of spillRecords.values()) add('spill', record)
  return [...groups.values()].toSorted((a, b) => b.bytes - a.bytes)
}

/** How many blocks on the heap have a record, and their bytes. */
export function recordedOnHeap(): { readonly count: number; readonly bytes: number } {
  let bytes = 0
  for (const record of heapRecords.values()) bytes += record.bytes
  return { count: heapRecords.size, bytes }
}

/** `3 x float32 [2, 3] by torch.add, train.ts:12 in step` */
export function ownerText({ operator, shape, dtype, count, frames }: MemoryOwner): string {
  const frame = frames?.at(-1)
  const what = dtype === null ? 'memory' : `${dtype} [${shape?.join(', ') ?? ''}]`
  const where = frame === undefined ? '' : `, ${frame.file}:${frame.line} in ${frame.fn}`
  return `${count === 1 ? '' : `${count} x `}${what}${operator === null ? '' : ` by ${operator}`}${where}`
}
