// Caches of compiled kernels, bounded by bytes: a program that compiles functions and drops them must not grow for ever.
import type { ComputedBy } from '../engine/computing.ts'
import type { DType } from '../numbers/dtype.ts'
import type { Param, Scratch } from '../ir/loopIr.ts'

/** A compiled kernel: call `run` with one number per parameter, in order (byte addresses for buffers), and the address of its scratch memory, if it has some. */
export interface CompiledKernel {
  readonly kernel: { readonly name: string; readonly params: readonly Param[]; readonly scratch?: readonly Scratch[] }
  readonly run: (...args: number[]) => void
  /** What has computed the last call. */
  readonly computedBy: () => ComputedBy
  /** The loops, as printKernel prints them. */
  readonly text: string
  /** Bytes of the module, for dumps and tests. */
  readonly wasm: Uint8Array<ArrayBuffer>
}

/** The size of a cache; see {@link cacheSizes}. */
export interface CacheSize {
  readonly name: string
  readonly entries: number
  /** An estimate of the memory that the entries take. */
  readonly bytes: number
  /** Above this, entries that were not used for the longest time are dropped. */
  readonly limit: number
}

interface Entry<V> {
  readonly value: V
  readonly bytes: number
}

/**
 * A cache by text. What is used stays: entries live in two generations, a hit in the older one moves to the younger, and when the younger one is half of the limit,
 * the older one is dropped. So a hit costs one lookup, which an exact order of use would double.
 */
export class BoundedCache<V> {
  readonly name: string
  #limit: number
  #young = new Map<string, Entry<V>>()
  #old = new Map<string, Entry<V>>()
  #youngBytes = 0
  #oldBytes = 0

  /** `limit` is in bytes. */
  constructor(name: string, limit: number) {
    this.name = name
    this.#limit = limit
  }

  get(key: string): V | undefined {
    const entry = this.#young.get(key)
    if (entry !== undefined) return entry.value
    const old = this.#old.get(key)
    if (old === undefined) return undefined
    this.#old.delete(key)
    this.#oldBytes -= old.bytes
    this.set(key, old.value, old.bytes)
    return old.value
  }

  /** Adds a value that the cache does not have. */
  set(key: string, value: V, bytes: number): void {
    if (this.#youngBytes + bytes > this.#limit / 2) {
      this.#old = this.#young
      this.#oldBytes = this.#youngBytes
      this.#young = new Map()
      this.#youngBytes = 0
    }
    this.#young.set(key, { value, bytes })
    this.#youngBytes += bytes
  }

  get size(): CacheSize {
    return { name: this.name, entries: this.#young.size + this.#old.size, bytes: this.#youngBytes + this.#oldBytes, limit: this.#limit }
  }

  /** Sets the limit, and returns the previous one. Entries are dropped as others are added. */
  setLimit(bytes: number): number {
    const before = this.#limit
    this.#limit = bytes
    return before
  }
}

/** An estimate of the memory of a compiled kernel, from measurements in Node: the instance and its functions, and the machine code of the module. */
export const kernelBytes = ({ wasm }: Pick<CompiledKernel, 'wasm'>): number => 20_000 + 8 * wasm.length

const MIB = 2 ** 20

/** Compiled kernels, by their text. */
export const kernelsByText: BoundedCache<CompiledKernel> = new BoundedCache('kernels', 64 * MIB)

// The caches of eager calls hold kernels of the cache above, by what of a call's arguments is part of the kernel. What it no longer holds stays as long as it is here.

/** Kernels of eager calls, but for the next ones. */
export const kernelsByCall: BoundedCache<CompiledKernel> = new BoundedCache('eager calls', 32 * MIB)
/** Kernels of pointwise calls with numbers or texts that are part of the kernel. `result` is the dtype of the result. */
export const kernelsByLiterals: BoundedCache<CompiledKernel & { readonly result: DType }> = new BoundedCache('eager calls with literals', 16 * MIB)

/** The sizes of the caches of compiled kernels. Kernels of compiled functions live as long as those, whether a cache still has them or not. */
export const cacheSizes = (): readonly CacheSize[] => [kernelsByText, kernelsByCall, kernelsByLiterals].map((cache) => cache.size)
