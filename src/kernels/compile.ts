// Compiles kernels to functions. Each distinct kernel is emitted once and instantiated on the heap's memory.
import { InternalError } from '../errors/index.ts'
import { heapGuard, heapMemory } from './heap.ts'
import type { Kernel, Param, Stmt } from './loopIr.ts'
import { printKernel } from './print.ts'
import { verifyKernel } from './verify.ts'
import { emitKernel } from './wasm/emit.ts'
import { hostFunctions } from './wasm/operations.ts'

/** A compiled kernel: call `run` with one number per parameter, in order (byte addresses for buffers). */
export interface CompiledKernel {
  readonly kernel: { readonly name: string; readonly params: readonly Param[] }
  readonly run: (...args: number[]) => void
  /** Bytes of the module, for dumps and tests. */
  readonly wasm: Uint8Array<ArrayBuffer>
}

const cache = new Map<string, CompiledKernel>()
let compiled = 0

/** Instantiates a module that exports `run`, with the heap as its memory. */
function instantiate(wasm: Uint8Array<ArrayBuffer>): CompiledKernel['run'] {
  compiled++
  const instance = new WebAssembly.Instance(new WebAssembly.Module(wasm), { env: { memory: heapMemory() }, math: hostFunctions })
  const { run } = instance.exports
  if (typeof run !== 'function') throw new InternalError('the module of a kernel must export a function `run`')
  return run as CompiledKernel['run']
}

/** The kernel of a module. `body` is null for a template. */
export function compiledKernel(name: string, params: readonly Param[], body: readonly Stmt[] | null, wasm: Uint8Array<ArrayBuffer>): CompiledKernel {
  const run = instantiate(wasm)
  return { kernel: { name, params }, run: heapGuard()?.kernel(name, params, body, run) ?? run, wasm }
}

/** Compiles a kernel, or returns the cached one with the same text. Throws KernelError when the kernel violates the specification of the loop IR. */
export function compileKernel(kernel: Kernel): CompiledKernel {
  const key = printKernel(kernel)
  let known = cache.get(key)
  if (known === undefined) {
    verifyKernel(kernel)
    const wasm = emitKernel(kernel)
    known = compiledKernel(kernel.name, kernel.params, kernel.body, wasm)
    cache.set(key, known)
  }
  return known
}

/** How many modules have been compiled, and how many kernels the cache holds. */
export const kernelCacheStats = (): { readonly compiled: number; readonly cached: number } => ({ compiled, cached: cache.size })
