// Copies of bytes inside the heap. WebAssembly makes them: where the heap is shared, JavaScript copies at a third of the speed.
import { MAX_PAGES, isHeapShared } from '../memory/heap.ts'
import { ModuleBuilder } from '../wasm/assembler.ts'
import type { CompiledKernel } from './boundedCache.ts'
import { instantiate } from './compile.ts'

let copy: CompiledKernel['run'] | null = null

function made(): CompiledKernel['run'] {
  const module = new ModuleBuilder()
  module.importMemory(isHeapShared() ? MAX_PAGES : undefined)
  const f = module.function(['i32', 'i32', 'i32'], [], 'run')
  for (const param of [0, 1, 2]) f.get(param)
  f.memoryCopy()
  return instantiate(module.finish())
}

/** Copies bytes from one address of the heap to another; both ranges may overlap. */
export function copyBytes(target: number, source: number, bytes: number): void {
  copy ??= made()
  copy(target, source, bytes)
}
