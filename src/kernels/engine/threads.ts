// How many threads compute. The heap can only be worked on by several if its memory is shared, which is decided when it is made; see kernels/threads/ for the threads themselves.
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import { checkCount, environmentVariable, valueText } from '../../protocol/index.ts'

const VARIABLE = 'TENSORFX_NUM_THREADS'
/** More threads than that are a mistake. */
const MOST_THREADS = 256

function checkedThreads(where: string, value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MOST_THREADS) return value
  throw new ArgumentError(`${where} must be an integer from 1 to ${MOST_THREADS}, got ${valueText(value)}.`)
}

/** The number of threads that a text of the environment asks for. Throws ArgumentError for another text. */
export const threadsOf = (text: string): number => (text.trim() === '' ? 1 : checkedThreads(VARIABLE, /^\d+$/.test(text) ? Number(text) : text))

let wanted: number | null = null
/** Whether the memory of the heap is shared; null before there is one. */
let isShared: boolean | null = null
/** Why one thread computes though more are wanted; null if nothing has gone wrong. */
let refusal: string | null = null

/** Whether kernels can be divided here. */
let canDivide = false

/** Lets more than one thread be had, since kernels can be divided. */
export function allowThreads(): void {
  canDivide = true
}

const threadsWanted = (): number => (wanted ??= threadsOf(environmentVariable(VARIABLE) ?? ''))

/** Computes on one thread from now on, and says once why. */
export function refuseThreads(why: string): void {
  if (refusal === null) console.warn(`tensorfx: ${threadsWanted()} threads were asked for, but one computes: ${why}. The results are the same.`)
  refusal ??= why
}

/** Makes the memory of the heap, shared if more than one thread is wanted now and the host can share memory. */
export function decideSharing<T>(make: (shared: boolean) => T): T {
  if (threadsWanted() > 1) {
    try {
      if (!canDivide) refuseThreads("tensorfx/core has no threads; write import 'tensorfx' before the first tensor")
      else if (typeof SharedArrayBuffer === 'undefined') refuseThreads('there is no SharedArrayBuffer here (a page must be cross-origin isolated)')
      else {
        const memory = make(true)
        isShared = true
        return memory
      }
    } catch (error) {
      refuseThreads(`no memory can be shared here (${String(error)})`)
    }
  }
  isShared = false
  return make(false)
}

/** The number of threads that compute. */
export const computingThreads = (): number => (refusal === null && isShared !== false ? threadsWanted() : 1)

/**
 * Sets how many threads compute: the one that calls, and workers that start when a kernel first takes long enough. Results are the same bits for any number. More than one needs memory
 * that is shared, which is decided with the first tensor: call it at the start of the program, or set TENSORFX_NUM_THREADS in the environment. Later calls may set any number, and
 * move no data. Where threads cannot be had, a message says so once, and one thread computes. PyTorch's `torch.set_num_threads`.
 *
 * @throws ArgumentError unless `threads` is an integer from 1 to 256, and for more than one if tensors were made before while one was set.
 * @example
 * torch.setNumThreads(4)
 */
export function setNumThreads(threads: number): void {
  checkCount('torch.setNumThreads', arguments, 1)
  const checked = checkedThreads('torch.setNumThreads: threads', threads)
  if (checked > 1 && isShared === false && refusal === null)
    throw new ArgumentError(
      `torch.setNumThreads: ${checked} threads need shared memory, but tensors were made before in memory of one thread: call it at the start of the program, or set ${VARIABLE} in the environment.`,
    )
  wanted = checked
}

/** Runs `fn` with that many threads. Throws UnsupportedError, which begins with `what`, where the heap is that of one thread. */
export function withThreads<T>(threads: number, what: string, fn: () => T): T {
  if (isShared === false)
    throw new UnsupportedError(
      `${what}: the tensors of this process are in memory of one thread: start it with ${VARIABLE}=${threads} in the environment.`,
    )
  const before = wanted
  wanted = threads
  try {
    return fn()
  } finally {
    wanted = before
  }
}

/** How many threads compute; 1 where more were asked for but cannot be had. The default is 1. PyTorch's `torch.get_num_threads`. */
export function getNumThreads(): number {
  checkCount('torch.getNumThreads', arguments, 0)
  return computingThreads()
}
