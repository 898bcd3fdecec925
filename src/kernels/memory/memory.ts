// `torch.memory`: how much memory is in use, its limit, and what uses it. PyTorch has these functions in `torch.cuda.memory`.
import { checkArgument, checkCount } from '../../protocol/index.ts'
import { budget, memoryLimit, peakBytes, reclaimables, resetPeaks, scratchBytes, scratchUses } from './budget.ts'
import { heapStats, releaseChunks } from './heap.ts'
import { memoryOwners, ownerText, recordLines, recordedOnHeap } from './owners.ts'
import { sizeText } from '../../protocol/sizeText.ts'
import type { MemoryOwner } from './owners.ts'
import { collectBlocks } from './storageBlock.ts'

/** Bytes, now and at most since the start or the last `resetPeakMemoryStats()`. */
export interface MemoryFigure {
  readonly allocated: number
  readonly peak: number
}

/** What {@link stats} returns; sizes are in bytes. */
export interface MemoryStats {
  /** In use by tensors and scratch memory; tensors that died count until the collector has found them. PyTorch's `allocated_bytes.all.current`. */
  readonly allocated: number
  /** What was taken from the host: the heap with its free parts, and tensors outside it. PyTorch's `reserved_bytes.all.current`. */
  readonly reserved: number
  /** The most that was allocated. PyTorch's `allocated_bytes.all.peak`. */
  readonly peak: number
  /** The most that was reserved. */
  readonly reservedPeak: number
  /** `config.memoryLimit`: what may be allocated. */
  readonly limit: number
  /** The WebAssembly memory in which tensors live, with the scratch memory. */
  readonly heap: MemoryFigure & { readonly reserved: number }
  /** Tensors outside the heap. */
  readonly spill: MemoryFigure & { readonly tensors: number }
  /** The part of the heap that kernels and compiled programs keep for themselves, by use. */
  readonly scratch: MemoryFigure & { readonly uses: Readonly<Record<string, number>> }
  /** Pieces of the heap. */
  readonly counts: {
    /** In use now. PyTorch's `allocation.all.current`. */
    readonly current: number
    readonly allocated: number
    readonly freed: number
    /** Requests that found no room at first, so that dead tensors were looked for. PyTorch's `num_alloc_retries`. */
    readonly retries: number
    /** OutOfMemoryErrors for tensors. PyTorch's `num_ooms`. */
    readonly outOfMemory: number
  }
}

/** What is in use, reserved and allowed. It takes no time, and looks for no dead tensors: `emptyCache()` does. PyTorch's `memory_stats`. */
export function stats(): MemoryStats {
  checkCount('torch.memory.stats', arguments, 0)
  const { inUse, capacity } = heapStats()
  const peaks = peakBytes()
  const { allocations, frees, retries, failures, spilled } = budget
  return {
    allocated: inUse + spilled,
    reserved: capacity + spilled,
    peak: peaks.total,
    reservedPeak: peaks.reserved,
    limit: memoryLimit(),
    heap: { allocated: inUse, reserved: capacity, peak: peaks.heap },
    spill: { allocated: spilled, peak: peaks.spilled, tensors: spillCount() },
    scratch: { allocated: scratchBytes(), peak: peaks.scratch, uses: Object.fromEntries(scratchUses()) },
    counts: { current: allocations - frees, allocated: allocations, freed: frees, retries, outOfMemory: failures },
  }
}

const spillCount = (): number => memoryOwners().reduce((sum, { place, count }) => sum + (place === 'spill' ? count : 0), 0)

/** Bytes in use; see {@link MemoryStats}. PyTorch's `memory_allocated`. */
export const memoryAllocated = (): number => heapStats().inUse + budget.spilled

/** The most bytes that were in use since the start or {@link resetPeakMemoryStats}. PyTorch's `max_memory_allocated`. */
export const maxMemoryAllocated = (): number => peakBytes().total

/** Bytes taken from the host. PyTorch's `memory_reserved`. */
export const memoryReserved = (): number => heapStats().capacity + budget.spilled

/** The most bytes that were taken from the host since the start or {@link resetPeakMemoryStats}. PyTorch's `max_memory_reserved`. */
export const maxMemoryReserved = (): number => peakBytes().reserved

/** Lets the peaks count from what is in use now. PyTorch's `reset_peak_memory_stats`. */
export const resetPeakMemoryStats = (): void => resetPeaks(heapStats().capacity)

/**
 * Frees what dead tensors and idle kernels hold. Nothing has to call it: an allocation that finds no room does the same before it fails. Browsers cannot find dead tensors within a
 * task; there it frees what the collector has found so far. PyTorch's `empty_cache`.
 */
export function emptyCache(): void {
  checkCount('torch.memory.emptyCache', arguments, 0)
  collectBlocks()
  for (const memory of reclaimables) memory.reclaim()
  releaseChunks()
}

/**
 * Records from now on which lines of the program make tensors, for OutOfMemoryError and {@link snapshot}; off by default, since it takes some microseconds for each tensor. The same
 * as `config.memoryHistory`. PyTorch's `_record_memory_history`.
 */
export function recordMemoryHistory(enabled: boolean = true): void {
  checkCount('torch.memory.recordMemoryHistory', arguments, 1)
  checkArgument(typeof enabled === 'boolean', 'torch.memory.recordMemoryHistory', 'enabled', 'true or false', enabled)
  recordLines(enabled)
}

/** What {@link snapshot} returns. */
export interface MemorySnapshot {
  readonly stats: MemoryStats
  /** The owners of memory, largest first: tensors of one operator, shape, dtype and line together. */
  readonly owners: readonly MemoryOwner[]
  /** Tensors below 256 KiB that were made while lines were not recorded. */
  readonly small: { readonly count: number; readonly bytes: number }
}

/**
 * What uses memory now; docs/guide/memory.md shows how to find a leak with it. In Node, unreferenced tensors are freed first. PyTorch's `memory_snapshot`.
 *
 *     torch.memory.recordMemoryHistory()
 *     …
 *     for (const { bytes, operator, frames } of torch.memory.snapshot().owners) console.log(bytes, operator, frames?.at(-1))
 */
export function snapshot(): MemorySnapshot {
  checkCount('torch.memory.snapshot', arguments, 0)
  collectBlocks()
  const now = stats()
  const recorded = recordedOnHeap()
  const uses = scratchUses()
  return {
    stats: now,
    owners: memoryOwners(),
    small: {
      count: Math.max(0, now.counts.current - recorded.count - uses.length),
      bytes: Math.max(0, now.heap.allocated - now.scratch.allocated - recorded.bytes),
    },
  }
}

/** {@link snapshot} as a text. PyTorch's `memory_summary`. */
export function memorySummary(): string {
  checkCount('torch.memory.memorySummary', arguments, 0)
  const { stats: now, owners, small } = snapshot()
  const row = (name: string, allocated: number, peak: number): string =>
    `${name.padEnd(10)}${sizeText(allocated).padStart(12)}${sizeText(peak).padStart(12)}`
  const line = (bytes: number, text: string): string => `${sizeText(bytes).padStart(12)}  ${text}`
  return [
    `limit ${Number.isFinite(now.limit) ? sizeText(now.limit) : 'none'}, ${now.counts.retries} retries, ${now.counts.outOfMemory} out of memory`,
    `${''.padEnd(10)}${'allocated'.padStart(12)}${'peak'.padStart(12)}`,
    row('all', now.allocated, now.peak),
    row('heap', now.heap.allocated, now.heap.peak),
    row('spill', now.spill.allocated, now.spill.peak),
    row('scratch', now.scratch.allocated, now.scratch.peak),
    row('reserved', now.reserved, now.reservedPeak),
    'owners',
    ...owners.slice(0, 20).map((owner) => line(owner.bytes, ownerText(owner))),
    ...Object.entries(now.scratch.uses).map(([use, bytes]) => line(bytes, use)),
    ...(small.count > 0 ? [line(small.bytes, `${small.count} small tensors`)] : []),
  ].join('\n')
}
