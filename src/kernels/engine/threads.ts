// How many threads compute. The heap can only be worked on by several if its memory is shared, which is decided when it is made; see kernels/threads/ for the threads themselves.
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import { checkCount, environmentVariable, hostProcess, valueText } from '../../protocol/index.ts'
import { refused } from './refusals.ts'

const VARIABLE = 'TENSORFX_NUM_THREADS'
/** More threads than that are a mistake. */
const MOST_THREADS = 256
/** The most threads that compute where the program has asked for no number. */
const MOST_UNASKED = 4
/** What launchers of several processes on one machine set for each: those share its cores. */
const RANKS = ['OMPI_COMM_WORLD_SIZE', 'PMI_SIZE', 'MPI_LOCALNRANKS', 'SLURM_STEP_NUM_TASKS'] as const

function checkedThreads(where: string, value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MOST_THREADS) return value
  throw new ArgumentError(`${where} must be an integer from 1 to ${MOST_THREADS}, got ${valueText(value)}.`)
}

/** The number of threads that a text of the environment asks for; null for none. Throws ArgumentError for another text. */
export const threadsOf = (text: string): number | null =>
  text.trim() === '' ? null : checkedThreads(VARIABLE, /^\d+$/.test(text) ? Number(text) : text)

/** How many cores there are for this thread: 1 where it is one of several that compute, such as a rank, a worker thread of a Node program, or a page that cannot share memory. */
function coresHere(): number {
  const navigator: { readonly hardwareConcurrency?: number } | undefined = Reflect.get(globalThis, 'navigator')
  const { process } = globalThis
  if (hostProcess() === undefined) return Reflect.get(globalThis, 'crossOriginIsolated') === true ? (navigator?.hardwareConcurrency ?? 1) : 1
  const isNode = !['Bun', 'Deno'].some((name) => Reflect.has(globalThis, name))
  const isRank = RANKS.some((name) => Number(environmentVariable(name) ?? 1) > 1)
  if (!isNode || isRank || process.getBuiltinModule?.('node:worker_threads')?.isMainThread !== true) return 1
  return process.getBuiltinModule('node:os').availableParallelism()
}

let wanted: number | null = null
/** Whether the program, or the environment, has said how many threads are wanted. */
let isAsked = false
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

function threadsWanted(): number {
  if (wanted !== null) return wanted
  const asked = threadsOf(environmentVariable(VARIABLE) ?? '')
  isAsked = asked !== null
  return (wanted = asked ?? Math.min(MOST_UNASKED, coresHere()))
}

let isTold = false

/** Says once why one thread computes, if the program has asked for more. */
function tellRefusal(): void {
  if (refusal === null || isTold || !isAsked) return
  isTold = true
  console.warn(`tensorfx: ${threadsWanted()} threads were asked for, but one computes: ${refusal}. The results are the same.`)
}

/** Computes on one thread from now on. */
export function refuseThreads(why: string): void {
  if (refusal !== null) return
  refusal = why
  refused('threads', why)
  tellRefusal()
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
 * Sets how many threads compute: the one that calls, and workers that start when a kernel first takes long enough. Results are the same bits for any number. The default is the number of
 * cores, 4 at most; it is 1 in a page that is not cross-origin isolated, in a worker thread of a Node program, and in a rank of several. More than one needs memory that is shared, which is
 * decided with the first tensor; where the default is 1, call this at the start of the program, or set TENSORFX_NUM_THREADS in the environment. Later calls may set any number, and move no data. Where
 * threads cannot be had, a message says so once, and one thread computes. PyTorch's `torch.set_num_threads`.
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
  isAsked = true
  if (checked > 1) tellRefusal()
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

/** How many threads compute; 1 where more were asked for but cannot be had. PyTorch's `torch.get_num_threads`. */
export function getNumThreads(): number {
  checkCount('torch.getNumThreads', arguments, 0)
  return computingThreads()
}
