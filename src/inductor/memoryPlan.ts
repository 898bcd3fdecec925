// The memory plan. The temporaries of a compiled program live in one arena, and those whose lifetimes do not overlap can share its bytes.
import { InternalError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { nodesOf } from './groups.ts'
import type { Group } from './groups.ts'
import { returnedBuffers } from './ir.ts'
import type { Buffer, IrGraph } from './ir.ts'
import type { Placement } from './placement.ts'

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

/**
 * The lifetime of each temporary, in steps; a step is a group. Inputs, returned buffers, results of eager kernels and buffers in the memory of inputs are
 * not temporaries.
 */
export function lifetimesOf(graph: IrGraph, groups: readonly Group[], { stored, inPlace }: Placement): Lifetime[] {
  const returned = new Set(returnedBuffers(graph))
  const first = new Map<Buffer, number>()
  const last = new Map<Buffer, number>()
  groups.forEach((group, step) => {
    for (const node of nodesOf(group)) {
      if (node.kind !== 'extern' && stored.has(node.out) && !returned.has(node.out) && !inPlace.has(node.out)) {
        first.set(node.out, step)
        last.set(node.out, step)
      }
      for (const { buffer } of node.reads) last.set(buffer, step)
    }
  })
  return [...first].map(([buffer, start]) => ({ buffer, first: start, last: last.get(buffer) ?? start }))
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

/** Checks that temporaries with overlapping lifetimes share no bytes. Throws an InternalError that names them. */
export function verifyPlan(lifetimes: readonly Lifetime[], plan: MemoryPlan): void {
  const placed = lifetimes.map(({ buffer, first, last }) => {
    const start = plan.offsets.get(buffer)
    if (start === undefined) throw new InternalError(`inductor: the temporary ${buffer.name} has no place in the arena`)
    if (start % ALIGN !== 0 || start + bytesOf(buffer) > plan.bytes)
      throw new InternalError(
        `inductor: the temporary ${buffer.name} at byte ${start} is not aligned, or reaches past the arena of ${plan.bytes} bytes`,
      )
    return { name: buffer.name, start, end: start + bytesOf(buffer), first, last }
  })
  placed.forEach((a, i) => {
    for (const b of placed.slice(i + 1)) {
      if (a.first <= b.last && b.first <= a.last && a.start < b.end && b.start < a.end)
        throw new InternalError(`inductor: the temporaries ${a.name} and ${b.name} share memory while both are alive`)
    }
  })
}
