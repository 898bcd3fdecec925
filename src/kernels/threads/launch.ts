// A call of a kernel in parts: its parts as functions, the arguments that they and the workers take, and which of its loops are given to the pool.
import { emitParts } from '../emit/emit.ts'
import { keptModule } from '../emit/keptModules.ts'
import type { Kernel, Param, Scratch } from '../ir/loopIr.ts'
import { printKernel } from '../ir/print.ts'
import { scratchLayout } from '../ir/scratchLayout.ts'
import { sizeValue } from '../ir/sizes.ts'
import { MAX_PAGES, heapMemory } from '../memory/heap.ts'
import { OutOfMemoryError } from '../memory/outOfMemory.ts'
import { ScratchMemory } from '../memory/scratch.ts'
import { dtypeInfo } from '../numbers/dtype.ts'
import { MOST_ARGS, MOST_CHUNKS } from './control.ts'
import { divisionOf, sitesOf } from './overlap.ts'
import type { Division, LoopSites } from './overlap.ts'
import { Pool, wasmModule } from './pool.ts'
import type { PoolModule } from './pool.ts'
import type { DividedStep, RepeatedStep, Split, Step } from './split.ts'
import { tripsOf, workOf } from './work.ts'
import type { SizeOf, Work } from './work.ts'

export type Run = (...args: number[]) => void

/** Limits of the cost model in milliseconds. Tests divide everything: `learns` is false, and the others are 0. */
export const threadCosts: { awake: number; asleep: number; chunk: number; learns: boolean } = {
  /** What a loop must take on one thread to be given to workers that look for a job, and to those that sleep. */
  awake: 0.03,
  asleep: 0.15,
  /** What a chunk takes at least. */
  chunk: 0.004,
  /** Whether times are learnt; where not, every loop counts as slow. */
  learns: true,
}

/** Chunks for each thread: the last ones even out what threads differ in. */
const CHUNKS_PER_THREAD = 8
/** Iterations for each thread that are enough for all to end at about the same time. */
const EVEN = 8
/** Ranges of pointwise loops are multiples of it: whole cache lines, and whole groups of vectors. */
const POINTWISE_GRAIN = 64
const CACHE_LINE = 64

let pool: Pool | null = null
/** The scratch memories of workers. */
export const threadScratch: ScratchMemory = new ScratchMemory('scratch memory of threads')

/** The parts of a kernel as functions of this thread, and what workers load. */
export interface PartCode {
  readonly functions: readonly Run[]
  readonly module: PoolModule
}

/** What is known of a kernel in parts. */
export interface Parts extends PartCode {
  readonly split: Split
  readonly works: ReadonlyMap<DividedStep, Work>
  /** How many times as long a unit of a step's work takes as one of the whole kernel, as far as that is known: elements are copied one by one, but multiplied in vectors. */
  readonly pace: Map<DividedStep, number>
  /** The loops for which each thread must have all scratch memory for itself. */
  readonly owners: readonly { readonly step: DividedStep; readonly isChosen: boolean }[]
  /** How loops are divided for any call, or what that depends on. */
  readonly divisions: ReadonlyMap<DividedStep, Division | LoopSites>
}

/** A kernel's parts as WebAssembly; null if they call functions of JavaScript, which workers do not have. */
export function wasmParts(kernel: Kernel, { parts, params }: Split): PartCode | null {
  // How a kernel is divided follows from its text.
  const bytes = keptModule(
    () => printKernel(kernel),
    'parts',
    () => emitParts(kernel, parts, params, MAX_PAGES),
  )
  const module = new WebAssembly.Module(bytes)
  if (WebAssembly.Module.imports(module).length > 1) return null
  const { exports } = new WebAssembly.Instance(module, { env: { memory: heapMemory() } })
  return { functions: parts.map((_, i) => exports[String(i)] as Run), module: wasmModule(bytes) }
}

/** Whether the control memory has room for the arguments of the parts. */
export const canLaunch = ({ params }: Split): boolean => params.length <= MOST_ARGS

/** What a kernel's calls need to know of its parts. */
export function partsOf(split: Split, code: PartCode): Parts {
  const divided = dividedSteps(split.steps)
  return {
    ...code,
    split,
    works: new Map(divided.map((step) => [step, workOf([step.stmt])])),
    pace: new Map(),
    owners: ownersOf(split.steps),
    divisions: new Map(divided.map((step) => [step, divisionOrSites(step)])),
  }
}

/** Parallel loops say of themselves that their iterations are apart. */
function divisionOrSites({ stmt, ownScratch }: DividedStep): Division | LoopSites {
  const sites = sitesOf(stmt, ownScratch)
  return stmt.mode === 'parallel' ? { apart: true, repeatable: !sites.rereads } : sites
}

const dividedSteps = (steps: readonly Step[]): readonly DividedStep[] =>
  steps.flatMap((step) => {
    if (step.kind === 'divided') return [step]
    if (step.kind === 'either') return [step.outer, ...dividedSteps(step.inner.steps)]
    return step.kind === 'repeated' ? dividedSteps(step.steps) : []
  })

const ownersOf = (steps: readonly Step[]): Parts['owners'] =>
  steps.flatMap((step) => {
    const [divided, inner] = step.kind === 'either' ? [step.outer, step.inner] : step.kind === 'repeated' ? [null, step] : [step, null]
    const own = divided?.kind === 'divided' && divided.ownScratch ? [{ step: divided, isChosen: inner !== null }] : []
    return [...own, ...(inner === null ? [] : ownersOf(inner.steps))]
  })

/** What a call is made of. */
interface Called {
  readonly kernel: Kernel
  readonly parts: Parts
  readonly args: readonly number[]
  readonly of: SizeOf
  readonly threads: number
  /** Milliseconds of one thread for a unit of work. */
  readonly rate: number
  /** Where this thread alone runs the steps: what each takes in milliseconds is added to it. */
  readonly times: Map<DividedStep, number> | null
}

/** The arguments of the parts on the first worker, and what further workers' are apart. */
interface WorkerArgs {
  readonly args: number[]
  readonly apart: readonly number[]
}

/** A call of a kernel in parts. */
export interface Call extends Omit<Called, 'args' | 'kernel'> {
  /** The arguments of the parts on this thread but for the range. */
  readonly mine: number[]
  readonly workers: WorkerArgs
  /** The same where each thread has all scratch memory for itself. */
  readonly owners: WorkerArgs
  readonly values: ReadonlyMap<Param, number>
}

/** The address of that many bytes; null if there is no room. */
function threadBlock(bytes: number): number | null {
  try {
    return roundedUpTo(threadScratch.reserve(bytes), CACHE_LINE)
  } catch (error) {
    if (error instanceof OutOfMemoryError) return null
    throw error
  }
}

const roundedUpTo = (value: number, unit: number): number => Math.ceil(value / unit) * unit

/** The arguments of the parts: those of the kernel, and where its scratch memories lie for this thread and for workers. Null where there is no room for the latter. */
export function callOf({ kernel, parts, args, of, threads, rate, times }: Called): Call | null {
  const { params, scratch = [] } = kernel
  const { offsets } = scratchLayout(scratch)
  const start = roundedUpTo(args[params.length] ?? 0, CACHE_LINE)
  const hasOwners = parts.owners.some(({ step, isChosen }) => !isChosen || hasEnough({ parts, of, threads, rate }, step))
  const sizes = scratch.map(({ elements, dtype }) => roundedUpTo(sizeValue(elements, of) * dtypeInfo[dtype].size, CACHE_LINE))
  const each = scratch.reduce((sum, { per }, i) => sum + (per === 'thread' || hasOwners ? (sizes[i] ?? 0) : 0), 0)
  const base = each === 0 ? 0 : threadBlock(each * (threads - 1) + CACHE_LINE)
  if (base === null) return null
  const mine = args.slice(0, params.length)
  for (const part of scratch) mine.push(start + sizeValue(offsets.get(part) ?? 0, of))
  while (mine.length < parts.split.params.length - 2) mine.push(0)
  const workerArgs = (isOwn: (part: Scratch) => boolean): WorkerArgs => {
    const [own, apart] = [[...mine], new Array<number>(mine.length).fill(0)]
    let at = base
    scratch.forEach((part, i) => {
      if (!isOwn(part)) return
      own[params.length + i] = at
      apart[params.length + i] = each
      at += sizes[i] ?? 0
    })
    return { args: own, apart }
  }
  const workers = workerArgs(({ per }) => per === 'thread')
  const owners = hasOwners ? workerArgs(() => true) : workers
  return { parts, mine, workers, owners, values: new Map(params.map((param, i) => [param, args[i] ?? 0])), of, threads, rate, times }
}

/** Runs the steps of a kernel, and returns how many loops were given to the pool. */
export function runSteps(call: Call, steps: readonly Step[]): number {
  let launches = 0
  for (const step of steps) {
    if (step.kind === 'whole') call.parts.functions[step.part]?.(...call.mine, 0, 0)
    else if (step.kind === 'divided' || (step.kind === 'either' && sharesOuter(call, step.outer)))
      launches += divide(call, step.kind === 'either' ? step.outer : step) ? 1 : 0
    else launches += repeat(call, step.kind === 'either' ? step.inner : step)
  }
  return launches
}

function repeat(call: Call, { stmt, param, steps }: RepeatedStep): number {
  const { extent, step: distance } = stmt.loop
  const end = sizeValue(extent, call.of)
  let launches = 0
  for (let value = 0; value < end; value += distance) {
    for (const args of [call.mine, call.workers.args, call.owners.args]) args[param] = value
    launches += runSteps(call, steps)
  }
  return launches
}

/** Whether threads share a loop rather than what is inside. */
const sharesOuter = (call: Call, step: DividedStep): boolean => hasEnough(call, step) && divisionFor(call, step).apart

/** Whether a loop has enough iterations to be shared itself: many, or some that are too little work for launches of their own. */
function hasEnough({ parts, of, threads, rate }: Pick<Call, 'parts' | 'of' | 'threads' | 'rate'>, step: DividedStep): boolean {
  const trips = tripsOf(step.stmt.loop.extent, step.stmt.loop.step, of)
  return trips >= EVEN * threads || (trips > 1 && expectedFor(parts, step, rate, of) < trips * threadCosts.asleep)
}

function divisionFor({ parts, values }: Call, step: DividedStep): Division {
  const division = parts.divisions.get(step)
  if (division === undefined) return { apart: false, repeatable: false }
  return 'apart' in division ? division : divisionOf(division, values)
}

/** Milliseconds that a step takes on one thread. */
const expectedFor = ({ pace, works }: Parts, step: DividedStep, rate: number, of: SizeOf): number =>
  rate * (pace.get(step) ?? 1) * (works.get(step)?.(of) ?? 0)

/** Learns from the times of a call's steps what each takes for its work. `rate`: what the call took for a unit of all work. */
export function learnPace({ parts: { split, works, pace }, times, of }: Call, rate: number): void {
  const runsOf = (steps: readonly Step[], repeats: number): void => {
    for (const step of steps) {
      if (step.kind === 'repeated') runsOf(step.steps, repeats * tripsOf(step.stmt.loop.extent, step.stmt.loop.step, of))
      else if (step.kind === 'either') runsOf([step.outer, step.inner], repeats)
      else if (step.kind === 'divided') {
        const [time, work] = [times?.get(step), repeats * (works.get(step)?.(of) ?? 0)]
        if (time !== undefined && work > 0) pace.set(step, time / work / rate)
      }
    }
  }
  runsOf(split.steps, 1)
}

/** Runs a loop that can be divided; returns whether the pool did. */
function divide(call: Call, step: DividedStep): boolean {
  const { parts, mine, of, threads, rate, times } = call
  const run = parts.functions[step.part]
  if (run === undefined) return false
  const { loop, mode } = step.stmt
  const extent = sizeValue(loop.extent, of)
  const trips = tripsOf(loop.extent, loop.step, of)
  if (trips === 0) return false
  if (times !== null) {
    const start = performance.now()
    run(...mine, 0, extent)
    times.set(step, (times.get(step) ?? 0) + performance.now() - start)
    return false
  }
  const expected = expectedFor(parts, step, rate, of)
  if (trips >= 2 && expected >= threadCosts.awake && workersFor(threads - 1, expected)) {
    const most = Math.min(
      trips,
      threads * CHUNKS_PER_THREAD,
      MOST_CHUNKS,
      threadCosts.chunk > 0 ? Math.max(1, Math.floor(expected / threadCosts.chunk)) : trips,
    )
    const grain = Math.ceil(trips / most)
    const chunk = loop.step * (mode === 'simd' ? roundedUpTo(grain, threadCosts.learns ? POINTWISE_GRAIN : 1) : grain)
    const { apart: isApart, repeatable } = divisionFor(call, step)
    if (isApart && chunk < extent) {
      const { args, apart } = step.ownScratch ? call.owners : call.workers
      const job = { module: parts.module, part: step.part, args, apart, extent, chunk, repeatable }
      if (pool?.launch({ ...job, run: (first, count) => run(...mine, first, count) }) === true) return true
    }
  }
  run(...mine, 0, extent)
  return false
}

/** What must take that long on one thread to be given to workers now, in milliseconds: less while they look for a job. */
export const leastForLaunch = (): number => (pool?.isAwake === true ? threadCosts.awake : threadCosts.asleep)

/** Whether workers can take part in what takes that long on one thread. Starts them. */
function workersFor(count: number, expected: number): boolean {
  pool ??= new Pool()
  return pool.workers(count) > 0 && (expected >= threadCosts.asleep || pool.isAwake)
}
