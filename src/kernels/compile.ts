// From a kernel to a callable: emitted once per content, instantiated on the heap's memory.
import type { CompiledKernel } from './contracts.ts'
import { heapMemory } from './heap.ts'
import type { Kernel } from './loopIr.ts'
import { printKernel } from './print.ts'
import { emitKernel } from './wasm/emitKernel.ts'

const cache = new Map<string, CompiledKernel>()
let compiled = 0

/** The error function in float64, to about 1e-15 (series below 3, continued fraction above). */
function erf(x: number): number {
  const a = Math.abs(x)
  if (Number.isNaN(x)) return x
  if (a > 6) return Math.sign(x)
  if (a < 3) {
    let term = a
    let sum = a
    for (let n = 1; n < 200; n++) {
      term *= (-a * a) / n
      const next = sum + term / (2 * n + 1)
      if (next === sum) break
      sum = next
    }
    return (Math.sign(x) * 2 * sum) / Math.sqrt(Math.PI)
  }
  let fraction = 0
  for (let k = 60; k >= 1; k--) fraction = (k / 2) / (a + fraction)
  return Math.sign(x) * (1 - Math.exp(-a * a) / (Math.sqrt(Math.PI) * (a + fraction)))
}

const math = { exp: Math.exp, expm1: Math.expm1, log: Math.log, log1p: Math.log1p, sin: Math.sin, cos: Math.cos, tanh: Math.tanh, pow: Math.pow, erf }

/** Instantiates a module that exports `run` on the heap. */
export function instantiate(wasm: Uint8Array): (...args: number[]) => void {
  compiled++
  const instance = new WebAssembly.Instance(new WebAssembly.Module(wasm as BufferSource), { env: { memory: heapMemory() }, math })
  return instance.exports['run'] as (...args: number[]) => void
}

/** Compiles a kernel for the heap, or returns the one compiled before from the same text. */
export function compileKernel(kernel: Kernel): CompiledKernel {
  const key = printKernel(kernel)
  let known = cache.get(key)
  if (known === undefined) {
    const wasm = emitKernel(kernel)
    known = { kernel: { name: kernel.name, params: kernel.params }, run: instantiate(wasm), wasm }
    cache.set(key, known)
  }
  return known
}

/** How many modules were compiled, and how many kernels the cache holds. */
export const kernelCacheStats = (): { readonly compiled: number; readonly cached: number } => ({ compiled, cached: cache.size })
