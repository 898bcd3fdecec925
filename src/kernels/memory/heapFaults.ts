// Injected failures, for tests: the n-th request for memory fails, so that every path that an OutOfMemoryError can take is taken.
import { setHeapGuard } from './heap.ts'
import type { HeapGuard } from './heap.ts'
import type { Param, Stmt } from '../ir/loopIr.ts'
import { OutOfMemoryError } from './outOfMemory.ts'

/** What {@link withFailingAllocation} saw. */
export interface InjectedFailure<T> {
  /** How many requests were made, the failing one included. */
  readonly requests: number
  /** Whether the n-th request was made, and so failed. */
  readonly failed: boolean
  /** What the function threw, or returned. */
  readonly outcome: { readonly threw: unknown } | { readonly returned: T }
}

class FailingHeap implements HeapGuard {
  #left: number
  readonly #inner: () => HeapGuard | null
  requests = 0

  constructor(nth: number, inner: () => HeapGuard | null) {
    this.#left = nth
    this.#inner = inner
  }

  get failed(): boolean {
    return this.#left <= 0
  }

  get inUse(): number | null {
    return this.#inner()?.inUse ?? null
  }

  #request(bytes: number): void {
    if (this.failed) return
    this.requests++
    if (--this.#left === 0) throw new OutOfMemoryError(bytes, 'a request that a test lets fail')
  }

  allocate(bytes: number, take: (bytes: number) => number): number {
    this.#request(bytes)
    const inner = this.#inner()
    return inner === null ? take(bytes) : inner.allocate(bytes, take)
  }

  free(address: number, bytes: number, give: (address: number, bytes: number) => void): void {
    const inner = this.#inner()
    if (inner === null) give(address, bytes)
    else inner.free(address, bytes, give)
  }

  spill(bytes: number): void {
    this.#request(bytes)
    this.#inner()?.spill(bytes)
  }

  kernel(name: string, params: readonly Param[], body: readonly Stmt[], run: (...args: number[]) => void): (...args: number[]) => void {
    return this.#inner()?.kernel(name, params, body, run) ?? run
  }
}

/** Runs `fn`, in which the n-th request for memory (from 1) fails with an OutOfMemoryError, and all later ones succeed. */
export function withFailingAllocation<T>(nth: number, fn: () => T): InjectedFailure<T> {
  let inner: HeapGuard | null = null
  const heap = new FailingHeap(nth, () => inner)
  inner = setHeapGuard(heap)
  let outcome: InjectedFailure<T>['outcome']
  try {
    outcome = { returned: fn() }
  } catch (error) {
    outcome = { threw: error }
  } finally {
    setHeapGuard(inner)
  }
  return { requests: heap.requests, failed: heap.failed, outcome }
}

/** How many requests for memory `fn` makes. */
export const countAllocations = (fn: () => unknown): number => withFailingAllocation(Infinity, fn).requests
