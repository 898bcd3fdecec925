// The budget of memory: how many bytes may be in use, how many are, and how many have been at most. The allocator and the blocks keep the numbers up to date.
import { defaultLimit } from './hostMemory.ts'

/** What a request may take up beyond its size: the steps of the size classes of small blocks. */
const ROUNDING = 16384

/** The numbers that every allocation reads or changes. One object, because the hot path reads fields faster than module bindings. */
export const budget: {
  /** Bytes in use on the heap, scratch memory included. */
  heap: number
  /** Bytes in use outside the heap: spilled blocks. */
  spilled: number
  /** Up to this many bytes on the heap, an allocation needs no other look at the budget. */
  quick: number
  /** Above this many bytes on the heap there is a new peak. */
  mark: number
  /** Pieces of the heap that were given out and taken back. */
  allocations: number
  frees: number
  /** Requests that failed at first, so that dead tensors were looked for, and those that failed in the end. */
  retries: number
  failures: number
  /** While it is above 0, the limit does not hold: see {@link beyondLimit}. */
  overdrafts: number
} = { heap: 0, spilled: 0, quick: -1, mark: 0, allocations: 0, frees: 0, retries: 0, failures: 0, overdrafts: 0 }

const peaks = { total: 0, heap: 0, spilled: 0, scratch: 0, reserved: 0 }
let softLimit = 512 * 2 ** 20
/** Null until it is needed: importing the library asks the host for nothing. */
let limit: number | null = null

/** What may be in use, in bytes. */
export const memoryLimit = (): number => (limit ??= defaultLimit())

/** Sets the limit in bytes; null: what the host allows. What is in use stays in use. */
export function setMemoryLimit(bytes: number | null): void {
  limit = bytes
  budget.quick = -1
}

/** The bytes on the heap beyond which new blocks spill. */
export const spillsAbove = (): number => softLimit

/** Sets the soft limit in bytes. The default is 512 MiB. */
export function setSoftLimit(bytes: number): void {
  softLimit = bytes
  budget.quick = -1
}

/** Computes anew what the hot path compares with. */
export function refreshBudget(): void {
  budget.quick = Math.min(softLimit, memoryLimit() - budget.spilled - ROUNDING)
  budget.mark = Math.min(peaks.heap, peaks.total - budget.spilled)
}

/** Whether `bytes` more would stay within the soft limit. */
export const withinSoftLimit = (bytes: number): boolean => budget.heap + bytes <= softLimit

/** Whether `bytes` more may be in use, with `onHeap` bytes on the heap now. */
export function isAffordable(bytes: number, onHeap: number): boolean {
  return Math.min(onHeap + budget.spilled, settled) + bytes <= memoryLimit()
}

/** The size to which the heap may grow, which is never below what it has. */
export function heapMayHave(capacity: number): number {
  return budget.overdrafts > 0 ? Infinity : Math.max(capacity, memoryLimit() - budget.spilled)
}

/**
 * Runs `fn`, whose allocations may exceed the limit where dead tensors leave no other room: the second half of something that must not end half done. It fails only if the host has no
 * memory. How much it takes should have been asked for before, see `ensureRoom`.
 */
export function beyondLimit<T>(fn: () => T): T {
  budget.overdrafts++
  try {
    return fn()
  } finally {
    budget.overdrafts--
  }
}

/** Whether {@link beyondLimit} is running. */
export const isBeyondLimit = (): boolean => budget.overdrafts > 0

// Hosts that cannot run finalizers within a task (browsers) learn only afterwards what died in it.

/** Bytes that were in use when the last task ended, where dead tensors cannot be told from others before; otherwise Infinity. */
let settled = Infinity
let turns = false

/** Counts from now on only what was in use when the last task ended: what was made since may be dead. */
export function countAfterTasks(): void {
  if (turns) return
  turns = true
  if (settled === Infinity) settled = 0
  const timer: unknown = setTimeout(() => {
    turns = false
    if (settled !== Infinity) settled = budget.heap + budget.spilled
  })
  // Node and Deno would wait for it.
  if (typeof timer === 'object' && timer !== null && 'unref' in timer && typeof timer.unref === 'function') timer.unref()
}

/** Counts everything, since the host can say what is dead. */
export function countAtOnce(): void {
  settled = Infinity
}

/** Notes what is in use, if that is more than ever before. */
export function notePeak(): void {
  peaks.heap = Math.max(peaks.heap, budget.heap)
  peaks.total = Math.max(peaks.total, budget.heap + budget.spilled)
  budget.mark = Math.min(peaks.heap, peaks.total - budget.spilled)
}

/** Notes what is reserved: the heap with its free parts, and what is outside of it. */
export function noteReserved(capacity: number): void {
  peaks.reserved = Math.max(peaks.reserved, capacity + budget.spilled)
}

/** Counts bytes outside the heap, or fewer. */
export function countSpilled(bytes: number, capacity: number): void {
  budget.spilled += bytes
  if (bytes > 0) {
    peaks.spilled = Math.max(peaks.spilled, budget.spilled)
    notePeak()
    noteReserved(capacity)
  }
  budget.quick = -1
}

/** Bytes in use on the heap by anything but tensors, by what uses them. */
const otherUses = new Map<string, number>()

/** Counts `bytes` more (or fewer) in use by something that is not a tensor. */
export function countUse(use: string, bytes: number): void {
  otherUses.set(use, (otherUses.get(use) ?? 0) + bytes)
  peaks.scratch = Math.max(peaks.scratch, scratchBytes())
}

/** What is not a tensor and has memory, with its bytes. */
export const scratchUses = (): readonly (readonly [use: string, bytes: number])[] => [...otherUses].filter(([, bytes]) => bytes > 0)

/** The bytes of all that is not a tensor and has memory. */
export const scratchBytes = (): number => scratchUses().reduce((sum, [, bytes]) => sum + bytes, 0)

/** Measures the peak anew, until {@link peakSince} gets what this returns. Such spans may nest. */
export function watchPeak(): number {
  const before = peaks.total
  peaks.total = budget.heap + budget.spilled
  budget.mark = Math.min(peaks.heap, budget.heap)
  return before
}

/** The most bytes that were in use since {@link watchPeak} returned `before`. The peak is as if there had been no such span. */
export function peakSince(before: number): number {
  const during = peaks.total
  peaks.total = Math.max(before, during)
  budget.mark = Math.min(peaks.heap, peaks.total - budget.spilled)
  return during
}

export const peakBytes = (): Readonly<typeof peaks> => ({ ...peaks })

/** Peaks count from what is in use now. */
export function resetPeaks(capacity: number): void {
  const total = budget.heap + budget.spilled
  Object.assign(peaks, { total, heap: budget.heap, spilled: budget.spilled, scratch: scratchBytes(), reserved: capacity + budget.spilled })
  budget.mark = budget.heap
}

/** Memory that can be given back whenever it is not in use. */
export interface Reclaimable {
  /** It is given back also where scratch memory is asked for: what it holds can be made again, and is not read in the same call. */
  readonly holdsCopies?: boolean
  /** Gives back what is not in use. */
  reclaim(): void
}

/** All of them; they live as long as the program. */
export const reclaimables: Reclaimable[] = []
