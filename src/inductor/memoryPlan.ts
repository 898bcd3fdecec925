// The memory plan: temporaries of a compiled program live in one arena; two whose lifetimes do not overlap share its bytes.
import { dtypeInfo } from '../kernels/index.ts'
import type { Buffer } from './ir.ts'

/** A temporary and the first and last step (inclusive) that touch it. */
export interface Lifetime {
  readonly buffer: Buffer
  readonly first: number
  readonly last: number
}

export interface MemoryPlan {
  /** Byte offset in the arena of each temporary. */
  readonly offsets: ReadonlyMap<Buffer, number>
  readonly bytes: number
}

/** Cache-line alignment: vector loads of one temporary never share a line with another's stores. */
const ALIGN = 64

const bytesOf = (buffer: Buffer): number => Math.ceil((buffer.numel * dtypeInfo[buffer.dtype].size) / ALIGN) * ALIGN

/** Places every temporary: largest first, each at the lowest offset that no overlapping lifetime uses. */
export function planMemory(lifetimes: readonly Lifetime[]): MemoryPlan {
  const placed: { start: number; end: number; first: number; last: number }[] = []
  const offsets = new Map<Buffer, number>()
  let bytes = 0
  for (const { buffer, first, last } of [...lifetimes].sort((a, b) => bytesOf(b.buffer) - bytesOf(a.buffer))) {
    const size = bytesOf(buffer)
    let start = 0
    for (const other of placed.filter((p) => p.first <= last && first <= p.last).sort((a, b) => a.start - b.start)) {
      if (start + size <= other.start) break
      start = Math.max(start, other.end)
    }
    placed.push({ start, end: start + size, first, last })
    offsets.set(buffer, start)
    bytes = Math.max(bytes, start + size)
  }
  return { offsets, bytes }
}
