// From a kernel to a callable: emitted once per content, instantiated on the heap's memory.
import type { CompiledKernel } from './contracts.ts'
import { heapMemory } from './heap.ts'
import type { Kernel } from './loopIr.ts'
import { printKernel } from './print.ts'
import { verifyKernel } from './verify.ts'
import { emitKernel } from './wasm/emit.ts'
import { float64Functions } from './wasm/mathLibrary.ts'

const cache = new Map<string, CompiledKernel>()
let compiled = 0

/** Instantiates a module that exports `run` on the heap. */
export function instantiate(wasm: Uint8Array): (...args: number[]) => void {
  compiled++
  const math = float64Functions as Record<string, (a: number, b: number) => number>
  const instance = new WebAssembly.Instance(new WebAssembly.Module(wasm as BufferSource), { env: { memory: heapMemory() }, math })
  return instance.exports['run'] as (...args: number[]) => void
}

/** Compiles a kernel for the heap, or returns the one compiled before from the same text. Throws KernelError when it breaks the specification of the loop IR. */
export function compileKernel(kernel: Kernel): CompiledKernel {
  const key = printKernel(kernel)
  let known = cache.get(key)
  if (known === undefined) {
    verifyKernel(kernel)
    const wasm = emitKernel(kernel)
    known = { kernel: { name: kernel.name, params: kernel.params }, run: instantiate(wasm), wasm }
    cache.set(key, known)
  }
  return known
}

/** How many modules were compiled, and how many kernels the cache holds. */
export const kernelCacheStats = (): { readonly compiled: number; readonly cached: number } => ({ compiled, cached: cache.size })
