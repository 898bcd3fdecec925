// Libraries of compiled kernels in this process. Kernels take addresses in the heap, so each library is told where the heap is, again whenever it has grown. Other threads load the same file:
// the system gives them the same library, which knows the heap already.
import { UnsupportedError } from '../errors/index.ts'
import { cSignature } from '../kernels/c/emitC.ts'
import type { Kernel } from '../kernels/index.ts'
import { heapMemory } from '../kernels/memory/heap.ts'
import type { PartCode } from '../kernels/threads/launch.ts'
import { libraryModule } from '../kernels/threads/pool.ts'

type Run = (...args: number[]) => void

/** What is used of koffi. */
interface Koffi {
  load(file: string): { func(name: string, result: string, parameters: readonly string[]): (...args: unknown[]) => unknown }
}

let koffi: Koffi | null = null

/** The script of koffi, for threads: they have no modules to resolve from. Empty if it is not found so; they then say that they cannot load it. */
function koffiScript(): string {
  try {
    return process
      .getBuiltinModule('node:module')
      .createRequire(import.meta.url)
      .resolve('koffi')
  } catch {
    return ''
  }
}

/** Loads koffi, through which libraries are called. Throws UnsupportedError if it is not there. */
export async function loadKoffi(): Promise<void> {
  if (koffi !== null) return
  try {
    // Not a literal: bundlers must not follow it.
    const name = 'koffi'
    const module: { readonly default: Koffi } = await import(/* @vite-ignore */ name)
    koffi = module.default
  } catch (cause) {
    throw new UnsupportedError(
      'native.init: compiled code is called through the package koffi: npm install koffi. WebAssembly computes the same without.',
      { cause },
    )
  }
}

/** A library, and where it takes the heap to be. */
export class Library {
  readonly #library: ReturnType<Koffi['load']>
  readonly #setHeap: (heap: Uint8Array) => unknown
  readonly #file: string
  #heap: ArrayBufferLike | null = null

  constructor(file: string) {
    if (koffi === null) throw new UnsupportedError('koffi is not loaded: await native.init() first.')
    this.#library = koffi.load(file)
    this.#setHeap = this.#library.func('tfx_setHeap', 'void', ['void *'])
    this.#file = file
  }

  /** The function of a kernel. */
  kernel(name: string, kernel: Pick<Kernel, 'params' | 'scratch'>): Run {
    const run = this.#library.func(name, 'void', cSignature(kernel))
    const memory = heapMemory()
    return (...args) => {
      if (this.#heap !== memory.buffer) this.#locate()
      run(...args)
    }
  }

  /** The parts of a kernel, which have the same parameters, for this thread and others. */
  parts(names: readonly string[], part: Pick<Kernel, 'params'>): PartCode {
    const types = cSignature(part)
    const module = libraryModule({ koffi: koffiScript(), file: this.#file, names: names.map((name) => [name, types]) }, () => this.#locate())
    return { functions: names.map((name) => this.kernel(name, part)), module }
  }

  /** Tells the library where the heap is. */
  #locate(): void {
    const { buffer } = heapMemory()
    if (this.#heap === buffer) return
    this.#setHeap(new Uint8Array(buffer))
    this.#heap = buffer
  }
}
