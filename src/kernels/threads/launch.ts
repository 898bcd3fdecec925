// A call of a kernel in parts: its parts as functions, the arguments that they and the workers take, and which of its loops are given to the pool.
import { emitParts } from '../emit/emit.ts'
import { keptModule } from '../emit/keptModules.ts'
import type { ForStmt, Kernel, Param } from '../ir/loopIr.ts'
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
import type { DividedStep, Split, Step } from './split.ts'
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
    divisions: new Map(divided.map((step) => [step, divisionOrSites(step.stmt)])),
  }
}

/** Parallel loops say of themselves that their iterations are apart. */
function divisionOrSites(stmt: ForStmt): Division | LoopSites {
  const sites = sitesOf(stmt)
  return stmt.mode === 'parallel' ? { apart: true, repeatable: !sites.rereads } : sites
}

const dividedSteps = (steps: readonly Step[]): readonly DividedStep[] =>
  steps.flatMap((step) => (step.kind === 'divided' ? [step] : step.kind === 'repeated' ? dividedSteps(step.steps) : []))

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

/** A call of a kernel in parts. */
export interface Call extends Omit<Called, 'args' | 'kernel'> {
  /** The arguments of the parts on this thread but for the range, those of the first worker, and what further workers' are apart. */
  readonly mine: number[]
  readonly workers: number[]
  readonly apart: readonly number[]
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
  const sizes = scratch.map(({ per, elements, dtype }) =>
    per === 'thread' ? roundedUpTo(sizeValue(elements, of) * dtypeInfo[dtype].size, CACHE_LINE) : 0,
  )
  const each = sizes.reduce((sum, bytes) => sum + bytes, 0)
  const base = each === 0 ? 0 : threadBlock(each * (threads - 1) + CACHE_LINE)
  if (base === null) return null
  const mine = args.slice(0, params.length)
  const workers = [...mine]
  const apart = new Array<number>(parts.split.params.length - 2).fill(0)
  let own = base
  scratch.forEach((part, i) => {
    const at = start + sizeValue(offsets.get(part) ?? 0, of)
    mine.push(at)
    workers.push(part.per === 'call' ? at : own)
    own += sizes[i] ?? 0
    if (part.per === 'thread') apart[params.length + i] = each
  })
  for (const list of [mine, workers]) while (list.length < apart.length) list.push(0)
  return { parts, mine, workers, apart, values: new Map(params.map((param, i) => [param, args[i] ?? 0])), of, threads, rate, times }
}

/** Runs the steps of a kernel, and returns how many loops were given to the pool. */
export function runSteps(call: Call, steps: readonly Step[]): number {
  const { parts, mine, workers, of } = call
  let launches = 0
  for (const step of steps) {
    if (step.kind === 'whole') parts.functions[step.part]?.(...mine, 0, 0)
    else if (step.kind === 'divided') launches += divide(call, step) ? 1 : 0
    else {
      const { extent, step: distance } = step.stmt.loop
      const end = sizeValue(extent, of)
      for (let value = 0; value < end; value += distance) {
        mine[step.param] = value
        workers[step.param] = value
        launches += runSteps(call, step.steps)
      }
    }
  }
  return launches
}

/** Learns from the times of a call's steps what each takes for its work. `rate`: what the call took for a unit of all work. */
export function learnPace({ parts: { split, works, pace }, times, of }: Call, rate: number): void {
  const runsOf = (steps: readonly Step[], repeats: number): void => {
    for (const step of steps) {
      if (step.kind === 'repeated') runsOf(step.steps, repeats * tripsOf(step.stmt.loop.extent, step.stmt.loop.step, of))
      else if (step.kind === 'divided') {
        const work = repeats * (works.get(step)?.(of) ?? 0)
        if (work > 0) pace.set(step, (times?.get(step) ?? 0) / work / rate)
      }
    }
  }
  runsOf(split.steps, 1)
}

/** Runs a loop that can be divided; returns whether the pool did. */
function divide(call: Call, step: DividedStep): boolean {
  const { parts, mine, workers, apart, of, threads, rate, times, values } = call
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
  const expected = rate * (parts.pace.get(step) ?? 1) * (parts.works.get(step)?.(of) ?? 0)
  if (trips >= 2 && expected >= threadCosts.awake && workersFor(threads - 1, expected)) {
    const most = Math.min(
      trips,
      threads * CHUNKS_PER_THREAD,
      MOST_CHUNKS,
      threadCosts.chunk > 0 ? Math.max(1, Math.floor(expected / threadCosts.chunk)) : trips,
    )
    const grain = Math.ceil(trips / most)
    const chunk = loop.step * (mode === 'simd' ? roundedUpTo(grain, threadCosts.learns ? POINTWISE_GRAIN : 1) : grain)
    const division = parts.divisions.get(step)
    const { apart: isApart = false, repeatable = false } =
      division === undefined || 'apart' in division ? (division ?? {}) : divisionOf(division, values)
    if (isApart && chunk < extent) {
      const job = { module: parts.module, part: step.part, args: workers, apart, extent, chunk, repeatable }
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
