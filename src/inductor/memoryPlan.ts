// The memory plan. The temporaries of a compiled program live in one arena, and those whose lifetimes do not overlap can share its bytes.
import { InternalError } from '../errors/index.ts'
import { SPAN_ALIGN, dtypeInfo, placeSpans } from '../kernels/index.ts'
import { nodesOf } from './groups.ts'
import type { Group } from './groups.ts'
import { outputsOf, returnedBuffers } from './ir.ts'
import type { Buffer, ExternNode, IrGraph } from './ir.ts'
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
 * not temporaries. `isPlaced` says of operators without a lowering which of them write to memory that the plan gives them, as no eager kernel does.
 */
export function lifetimesOf(
  graph: IrGraph,
  groups: readonly Group[],
  { stored, inPlace }: Placement,
  isPlaced: (node: ExternNode) => boolean = () => false,
): Lifetime[] {
  const returned = new Set(returnedBuffers(graph))
  const first = new Map<Buffer, number>()
  const last = new Map<Buffer, number>()
  groups.forEach((group, step) => {
    for (const node of nodesOf(group)) {
      const isKept = node.kind === 'extern' ? () => isPlaced(node) : (out: Buffer) => stored.has(out)
      for (const out of outputsOf(node)) {
        if (!isKept(out) || returned.has(out) || inPlace.has(out)) continue
        first.set(out, step)
        last.set(out, step)
      }
      for (const { buffer } of node.reads) last.set(buffer, step)
    }
  })
  return [...first].map(([buffer, start]) => ({ buffer, first: start, last: last.get(buffer) ?? start }))
}

const bytesOf = (buffer: Buffer): number => buffer.numel * dtypeInfo[buffer.dtype].size

/** Places every temporary. */
export function planMemory(lifetimes: readonly Lifetime[]): MemoryPlan {
  const { offsets, bytes } = placeSpans(lifetimes.map(({ buffer, first, last }) => ({ bytes: bytesOf(buffer), first, last })))
  return { offsets: new Map(lifetimes.map(({ buffer }, i) => [buffer, offsets[i] ?? 0])), bytes }
}

/** Checks that temporaries with overlapping lifetimes share no bytes. Throws an InternalError that names them. */
export function verifyPlan(lifetimes: readonly Lifetime[], plan: MemoryPlan): void {
  const placed = lifetimes.map(({ buffer, first, last }) => {
    const start = plan.offsets.get(buffer)
    if (start === undefined) throw new InternalError(`inductor: the temporary ${buffer.name} has no place in the arena`)
    if (start % SPAN_ALIGN !== 0 || start + bytesOf(buffer) > plan.bytes)
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
