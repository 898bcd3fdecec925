// Kernels as C, compiled in the background by the machine's own compiler. WebAssembly computes until a library is there, and what has no C code for good; results are the same bits.
import { ArgumentError, UnsupportedError, present } from '../errors/index.ts'
import { checkCount, setResultStore, valueText } from '../protocol/index.ts'
import { emitSource, whyKernelIsNotInC } from '../kernels/c/emitC.ts'
import type { CFunction } from '../kernels/c/emitC.ts'
import { setMachineEngine } from '../kernels/engine/machineCode.ts'
import { refused } from '../kernels/engine/refusals.ts'
import { computingKey, currentComputing, withComputing } from '../kernels/engine/computing.ts'
import type { Computing } from '../kernels/engine/computing.ts'
import { printKernel } from '../kernels/ir/print.ts'
import { isHeapShared } from '../kernels/memory/heap.ts'
import { installSecondEngine } from '../kernels/run/compile.ts'
import type { ForSecondEngine, Running } from '../kernels/run/compile.ts'
import type { Kernel } from '../kernels/index.ts'
import { threaded } from '../kernels/threads/threaded.ts'
import { Workshop, findCompiler } from './compiler.ts'
import type { LibrarySource, MadeLibrary } from './compiler.ts'
import { defaultFolder } from './folder.ts'
import { keptIn } from './keptFiles.ts'
import type { KeptCounts } from './keptFiles.ts'
import { Library, loadKoffi } from './library.ts'
import { NativeKernel } from './nativeKernel.ts'

/** What {@link init} takes. */
export interface NativeOptions {
  /** The command of a C compiler, GCC or Clang. By default CC, or the first of cc, gcc and clang that answers. */
  readonly compiler?: string
  /** The folder in which libraries are kept for later processes; false keeps none. By default TENSORFX_CACHE_DIR, or `tensorfx` in the user's folder of caches. */
  readonly cache?: string | false
  /** Whether each kernel runs both ways at every call, on the same memory, and a difference in a bit is a KernelError that names the kernel. It is slow: for finding faults of compilers. */
  readonly check?: boolean
}

/** A kernel that was compiled to C, or why it was not. */
export interface NativeKernelReport {
  readonly name: string
  /** Why WebAssembly computes it; null if the library does, or will. */
  readonly why: string | null
  /** How many times faster the library is than WebAssembly, measured on the first calls; null before that. */
  readonly gain: number | null
}

/** What {@link stats} returns. */
export interface NativeStats {
  /** The compiler; null before {@link init}. */
  readonly compiler: { readonly command: string; readonly version: string } | null
  /** Libraries that were compiled in this process, and those that an earlier one had left. */
  readonly compiled: number
  readonly found: number
  /** WebAssembly modules that were made in this process, and those that an earlier one had left. Without a folder none are counted. */
  readonly modules: { readonly made: number; readonly found: number }
  /** Graphs that `compile` lowered, fused and planned in this process, and those that an earlier one had left, counted likewise. */
  readonly graphs: { readonly made: number; readonly found: number }
  /** Kernels that wait for the compiler. */
  readonly pending: number
  /** The last 1,024 kernels. */
  readonly kernels: readonly NativeKernelReport[]
}

/** The most functions of a library: the compiler takes 50 to 200 ms for each. */
const MOST_PER_LIBRARY = 16
/** How many kernels are reported: the last ones, so that a program that compiles for ever does not grow. */
const MOST_REPORTS = 1024
/** Milliseconds after the first kernel, in which others join it. */
const GATHERING = 5

let workshop: Workshop | null = null
let checks = false
const counts = { compiled: 0, found: 0 }
const keptCounts: KeptCounts = { module: { made: 0, found: 0 }, library: { made: 0, found: 0 }, graph: { made: 0, found: 0 } }
const reports: { readonly kernel: NativeKernel | null; readonly name: string; why: string | null }[] = []
/** Functions that wait for the compiler. */
interface Waiting {
  readonly functions: readonly Omit<CFunction, 'name'>[]
  /** How their kernel was to compute, which decides the order of sums. */
  readonly computing: Computing
  /** Whether a multiplication and an addition may be rounded once. */
  readonly fuses: boolean
  /** Takes them, by their names in a library. */
  readonly take: (library: Library, names: readonly string[]) => void
  /** Goes on without them. */
  readonly miss: (why: string) => void
}

/** What waits for the background, and for its first call. */
const [waiting, demanded]: readonly [Waiting[], Waiting[]] = [[], []]
let working: Promise<void> | null = null

/**
 * Lets kernels be compiled by the C compiler of this machine, in the background: each runs as WebAssembly until its library is there. Results are the same bits (but the sine and the cosine of
 * angles beyond 1e5, which may differ in the last bit). Call it at the start of a program: kernels that were compiled before stay as they are. Node only.
 *
 * @throws UnsupportedError without a C compiler, without the package koffi, or outside of Node.
 * @example
 * import * as native from 'tensorfx/native'
 * await native.init()
 */
export async function init(options: NativeOptions = {}): Promise<void> {
  checkCount('native.init', arguments, 1)
  const { compiler, cache = defaultFolderHere(), check = false } = checkedOptions(options)
  if (globalThis.process?.getBuiltinModule === undefined)
    throw new UnsupportedError('native.init needs Node, whose processes can load compiled code: elsewhere WebAssembly computes.')
  await loadKoffi()
  if (workshop === null) {
    workshop = new Workshop(findCompiler(compiler), cache === false ? null : cache)
    if (!workshop.folder.isTemporary) setResultStore(keptIn(workshop.folder, keptCounts))
  }
  checks = check
  setMachineEngine(`native${workshop.compiler.lanes}`)
  installSecondEngine(second)
}

const defaultFolderHere = (): string | false => (globalThis.process?.getBuiltinModule === undefined ? false : defaultFolder())

function checkedOptions(options: NativeOptions): NativeOptions {
  if (typeof options !== 'object' || options === null) throw new ArgumentError(`native.init: options must be an object, got ${valueText(options)}.`)
  const { compiler, cache, check } = options
  if (check !== undefined && typeof check !== 'boolean') throw new ArgumentError(`native.init: check must be true or false, got ${valueText(check)}.`)
  if (compiler !== undefined && (typeof compiler !== 'string' || compiler === ''))
    throw new ArgumentError(`native.init: compiler must be a command, such as 'gcc', got ${valueText(compiler)}.`)
  if (cache !== undefined && cache !== false && typeof cache !== 'string')
    throw new ArgumentError(`native.init: cache must be a folder or false, got ${valueText(cache)}.`)
  return options
}

/** Waits until no kernel waits for the compiler. */
export async function ready(): Promise<void> {
  checkCount('native.ready', arguments, 0)
  // The compiler keeps no program alive, but one that waits for it goes on.
  const alive = setInterval(() => {}, 1000)
  try {
    for (let left = working; left !== null; left = working) await left
  } finally {
    clearInterval(alive)
  }
}

/** What was compiled. */
export function stats(): NativeStats {
  checkCount('native.stats', arguments, 0)
  const compiler = workshop === null ? null : { command: workshop.compiler.command, version: workshop.compiler.version }
  return {
    compiler,
    ...counts,
    modules: { ...keptCounts.module },
    graphs: { ...keptCounts.graph },
    pending: waiting.length + demanded.length,
    kernels: reports.map(({ kernel, name, why }) => ({ name, why, gain: kernel?.gain ?? null })),
  }
}

function told(report: (typeof reports)[number]): void {
  reports.push(report)
  if (reports.length > MOST_REPORTS) reports.shift()
}

/** What runs in the place of a kernel's function. */
function second(of: ForSecondEngine): Running {
  const { wide, wasm, kernel, engine, isDemanded } = of
  const why = whyKernelIsNotInC(wide)
  if (why !== null) {
    told({ kernel: null, name: kernel.name, why })
    return wasm
  }
  const native = new NativeKernel(of, { checks, demand: isDemanded ? makeDemanded : null })
  const report: (typeof reports)[number] = { kernel: native, name: kernel.name, why: null }
  told(report)
  const as = { computing: currentComputing(), fuses: engine === 'wasm-relaxed' }
  const one: Waiting = {
    functions: [{ kernel: wide }],
    ...as,
    take: (library, [name = '']) => (native.native = onThreads(wide, library.kernel(name, wide), as)),
    miss: (missing) => (report.why = missing),
  }
  if (isDemanded) demanded.push(one)
  else inBackground(one)
  return { run: (...args) => native.call(args), computedBy: () => native.computedBy }
}

const onOneThread = { engine: 'c', threads: 1 } as const

/** The function of a library, whose work threads share where they share the heap: its parts are compiled once a call is worth it, and until then one thread computes. */
function onThreads(kernel: Kernel, run: (...args: number[]) => void, as: Pick<Waiting, 'computing' | 'fuses'>): Running {
  if (!isHeapShared()) return { run, computedBy: () => onOneThread }
  return threaded(kernel, run, 'c', (_, { parts, params }, made) =>
    inBackground({
      functions: parts.map((body) => ({ kernel: { name: kernel.name, params, body }, whole: kernel })),
      ...as,
      take: (library, names) => made(library.parts(names, { params })),
      miss: () => made(null),
    }),
  )
}

function inBackground(one: Waiting): void {
  waiting.push(one)
  working ??= work().finally(() => (working = null))
}

/** Compiles what waits, one library after the other. */
async function work(): Promise<void> {
  await new Promise((done) => setTimeout(done, GATHERING))
  for (let batch = firstOf(waiting); batch.length > 0; batch = firstOf(waiting)) {
    try {
      load(batch, await present(workshop, 'a compiler').library(sourceOf(batch)))
    } catch (error) {
      failed(batch, error)
    }
    drop(batch, waiting)
  }
}

/** Compiles what must be machine code from its first call on: all kernels of a graph, when the first of them is called. */
function makeDemanded(): void {
  for (let batch = firstOf(demanded); batch.length > 0; batch = firstOf(demanded)) {
    try {
      load(batch, present(workshop, 'a compiler').libraryNow(sourceOf(batch)))
    } catch (error) {
      failed(batch, error)
    }
    drop(batch, demanded)
  }
}

/** What is in the next library. */
function firstOf(list: readonly Waiting[]): readonly Waiting[] {
  const [first] = list
  const batch: Waiting[] = []
  let count = 0
  for (const one of list) {
    if (one.fuses !== first?.fuses || one.computing !== first.computing) continue
    count += one.functions.length
    if (batch.length > 0 && count > MOST_PER_LIBRARY) break
    batch.push(one)
  }
  return batch
}

const nameOf = (position: number, i: number): string => `k${position}_${i}`

function sourceOf(batch: readonly Waiting[]): LibrarySource {
  const { computing, fuses } = present(batch[0], 'a function')
  const functions = batch.flatMap((one, position) => one.functions.map((of, i) => ({ ...of, name: nameOf(position, i) })))
  const textOf = ({ name, kernel, whole }: CFunction): string => `${name} ${whole === undefined ? '' : printKernel(whole)} ${printKernel(kernel)}`
  return {
    from: () => [computingKey(computing), fuses, ...functions.map(textOf)].join('\n'),
    text: () => withComputing(computing, () => emitSource(functions, fuses)),
  }
}

function load(batch: readonly Waiting[], { file, isNew }: MadeLibrary): void {
  const library = new Library(file)
  for (const [position, { functions, take }] of batch.entries())
    take(
      library,
      functions.map((_, i) => nameOf(position, i)),
    )
  counts[isNew ? 'compiled' : 'found']++
}

/** Leaves kernels to WebAssembly. The first time it is said. */
function failed(batch: readonly Waiting[], error: unknown): void {
  const why = `no library: ${String(error)}`
  if (!reports.some((report) => report.why?.startsWith('no library') === true))
    console.warn(`tensorfx: some kernels stay with WebAssembly, which computes the same. ${why}`)
  refused('machine code', why)
  for (const { miss } of batch) miss(why)
}

function drop(batch: readonly Waiting[], list: Waiting[]): void {
  for (const one of batch) list.splice(list.indexOf(one), 1)
}
