// Compiles kernels to functions. Each distinct kernel is emitted once and instantiated on the heap's memory.
import { InternalError } from '../errors/index.ts'
import { kernelBytes, kernelsByText } from './boundedCache.ts'
import type { CompiledKernel } from './boundedCache.ts'
import { heapMemory } from './heap.ts'
import type { Kernel } from './loopIr.ts'
import { printKernel } from './print.ts'
import { verifyKernel } from './verify.ts'
import { emitKernel } from './wasm/emit.ts'
import { hostFunctions } from './wasm/operations.ts'

let compiled = 0

/** Instantiates a module that exports `run`, with the heap as its memory. */
export function instantiate(wasm: Uint8Array<ArrayBuffer>): CompiledKernel['run'] {
  compiled++
  const instance = new WebAssembly.Instance(new WebAssembly.Module(wasm), { env: { memory: heapMemory() }, math: hostFunctions })
  const { run } = instance.exports
  if (typeof run !== 'function') throw new InternalError('the module of a kernel must export a function `run`')
  return run as CompiledKernel['run']
}

/** Compiles a kernel, or returns the cached one with the same text. Throws KernelError when the kernel violates the specification of the loop IR. */
export function compileKernel(kernel: Kernel): CompiledKernel {
  const key = printKernel(kernel)
  let known = kernelsByText.get(key)
  if (known === undefined) {
    verifyKernel(kernel)
    const wasm = emitKernel(kernel)
    known = { kernel: { name: kernel.name, params: kernel.params }, run: instantiate(wasm), wasm }
    kernelsByText.set(key, known, kernelBytes(known))
  }
  return known
}

/** How many modules have been compiled, and how many kernels the cache holds. */
export const kernelCacheStats = (): { readonly compiled: number; readonly cached: number } => ({ compiled, cached: kernelsByText.size.entries })
