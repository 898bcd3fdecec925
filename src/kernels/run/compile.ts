// Compiles kernels to functions. Each distinct kernel is emitted once and instantiated on the heap's memory.
import { InternalError, UnsupportedError } from '../../errors/index.ts'
import { kernelBytes, kernelsByText } from './boundedCache.ts'
import type { CompiledKernel } from './boundedCache.ts'
import { isStrict, withComputing } from '../engine/computing.ts'
import type { Computing, Emitter, EngineName } from '../engine/computing.ts'
import { currentEngine } from '../engine/engine.ts'
import { currentEmitter } from '../engine/machineCode.ts'
import { allowThreads } from '../engine/threads.ts'
import { MAX_PAGES, heapGuard, heapMemory, isHeapShared } from '../memory/heap.ts'
import type { Kernel, Scratch } from '../ir/loopIr.ts'
import { printKernel } from '../ir/print.ts'
import { hostFunctions } from '../scalars/scalarOps.ts'
import { emitKernel } from '../emit/emit.ts'
import { keptModule } from '../emit/keptModules.ts'
import { resultStore } from '../../protocol/index.ts'

/** What a kernel is compiled from: its loops, and the same in the tiles of machine code where those are others. */
export interface KernelSource {
  readonly kernel: Kernel
  readonly wide: Kernel | null
  /** What {@link printKernel} prints for it, if it was printed before. */
  readonly text?: string
}

/** Of the kernels that may be kept for later processes. */
const sources = new WeakMap<CompiledKernel, KernelSource>()

/** What a kernel was compiled from; undefined where it was compiled before results were kept. */
export const sourceOf = (kernel: CompiledKernel): KernelSource | undefined => sources.get(kernel)

let compiled = 0

/** The function `run` that a module exports, with the heap as its memory. */
export function instantiate(wasm: Uint8Array<ArrayBuffer>): CompiledKernel['run'] {
  const instance = new WebAssembly.Instance(moduleOf(wasm), { env: { memory: heapMemory() }, math: hostFunctions })
  const { run } = instance.exports
  if (typeof run !== 'function') throw new InternalError('the module of a kernel must export a function `run`')
  return run as CompiledKernel['run']
}

/** A kernel's function, and what has computed its last call. */
export type Running = Pick<CompiledKernel, 'run' | 'computedBy'>

/** What a second engine makes a function of. */
export interface ForSecondEngine {
  readonly kernel: Kernel
  /** The same with the same operands and results in tiles of its own. */
  readonly wide: Kernel
  /** Its function as WebAssembly, on threads where the heap is shared. */
  readonly wasm: Running
  readonly engine: EngineName
  /** Whether the second engine must compute from the first call on, where it can; otherwise where it is faster. */
  readonly isDemanded: boolean
}

/** Makes what may run in the place of a kernel's function, and computes the same bits. */
export type SecondEngine = (of: ForSecondEngine) => Running

let second: SecondEngine | null = null

/** Gives kernels that are compiled from now on another function. */
export function installSecondEngine(engine: SecondEngine): void {
  second = engine
}

type Divide = (kernel: Kernel, run: CompiledKernel['run'], engine: EngineName) => Running

let divide: Divide = () => {
  throw new InternalError('a heap is shared, but no threads are installed')
}

/** Lets threads share the work of kernels: `threaded` is the function of a kernel on a shared heap, from its function on one thread. For the composition root: small programs leave threads out. */
export function installThreads(threaded: Divide): void {
  divide = threaded
  allowThreads()
}

/** The scratch memory of a kernel and of the same in wide tiles: both get one block, which must be enough for each. */
export const scratchOfBoth = (kernel: Kernel, wide: Kernel | null): readonly Scratch[] => [...(wide?.scratch ?? []), ...(kernel.scratch ?? [])]

/** A kernel as WebAssembly, whose work threads share where they share the heap. */
function inWasm(kernel: Kernel, run: CompiledKernel['run'], engine: EngineName): Running {
  if (isHeapShared()) return divide(kernel, run, engine)
  const by = { engine, threads: 1 }
  return { run, computedBy: () => by }
}

function compiledKernel(kernel: Kernel, text: string, inWideTiles: (() => Kernel | null) | null, emitter: Emitter | null): CompiledKernel {
  const { name, params, body } = kernel
  const wide = second === null ? null : (inWideTiles?.() ?? null)
  const scratch = scratchOfBoth(kernel, wide)
  const sharedMaximum = isHeapShared() ? MAX_PAGES : undefined
  const wasm = keptModule(
    () => text,
    sharedMaximum === undefined ? 'whole' : 'whole on shared memory',
    () => {
      verify(kernel)
      compiled++
      return emitKernel(kernel, sharedMaximum)
    },
  )
  const engine = currentEngine()
  const first = inWasm(kernel, instantiate(wasm), engine)
  const of = { kernel, wide: { ...(wide ?? kernel), scratch }, wasm: first, engine, isDemanded: emitter === 'c' }
  const { run, computedBy } = second === null || emitter === 'wasm' ? first : second(of)
  const made = { kernel: { name, params, scratch }, run: heapGuard()?.kernel(name, params, body, run) ?? run, computedBy, text, wasm }
  if (resultStore() !== null) sources.set(made, { kernel, wide, text })
  return made
}

/** The smallest module: its header. */
const EMPTY = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0)

function moduleOf(wasm: Uint8Array<ArrayBuffer>): WebAssembly.Module {
  try {
    return new WebAssembly.Module(wasm)
  } catch (cause) {
    // Where not even the empty module is compiled, it is not our module that is wrong.
    if (isAllowed(EMPTY)) throw cause
    throw new UnsupportedError(
      "WebAssembly is not allowed here, and without it tensorfx computes nothing: add 'wasm-unsafe-eval' to script-src in the Content-Security-Policy of the page. See docs/guide/csp.md.",
      { cause },
    )
  }
}

function isAllowed(wasm: Uint8Array<ArrayBuffer>): boolean {
  try {
    return new WebAssembly.Module(wasm) instanceof WebAssembly.Module
  } catch {
    return false
  }
}

let verify: (kernel: Kernel) => void = () => {}

/** Lets every kernel be checked before it is emitted. For the composition root: small programs leave the check out, whose kernels are all those of the library. */
export function installVerifier(verifier: (kernel: Kernel) => void): void {
  verify = verifier
}

/** Compiles a kernel, or returns the cached one with the same text. `inWideTiles` is the same in the tiles of machine code, for where there is some; `text` is what is printed for it. Throws KernelError when the kernel violates the specification of the loop IR, if a verifier is installed. */
export function compileKernel(kernel: Kernel, inWideTiles: (() => Kernel | null) | null = null, text: string = printKernel(kernel)): CompiledKernel {
  const emitter = currentEmitter()
  const key = `${isStrict() ? 'strict' : currentEngine()} ${second === null ? '' : (emitter ?? 'either')} ${text}`
  let known = kernelsByText.get(key)
  if (known === undefined) {
    known = compiledKernel(kernel, text, inWideTiles, emitter)
    kernelsByText.set(key, known, kernelBytes(known))
  }
  return known
}

/** Compiles a kernel from its source, as code computes that is compiled with `computing`. */
export const compileSource = ({ kernel, wide, text }: KernelSource, computing: Computing): CompiledKernel =>
  withComputing(computing, () => compileKernel(kernel, () => wide, text))

/** How many modules have been compiled, and how many kernels the cache holds. */
export const kernelCacheStats = (): { readonly compiled: number; readonly cached: number } => ({ compiled, cached: kernelsByText.size.entries })
