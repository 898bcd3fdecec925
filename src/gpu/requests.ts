// What is asked of the GPU, as data: the same requests are carried out on this thread, or posted to one that has the GPU.
import type { KernelTime } from './clock.ts'
import type { DeviceStats, InitOptions, MemoryLimits } from './device.ts'

/** A kernel to run. */
export interface Dispatch {
  /** The kernel's name in reports, and the graph nodes that it computes. */
  readonly name: string
  readonly nodes: readonly string[]
  /** The lines of the program that these nodes come from, `model.ts:12`; none if they are not known. */
  readonly lines: readonly string[]
  /** The text of its shader. */
  readonly code: string
  /** How many slabs it has. */
  readonly slabs: number
  /** How many iterations it has, each of which is computed by a thread, or by a team of threads. */
  readonly threads: number
  /** How many threads share an iteration, see kernels/wgsl/team.ts: 1, or all of a workgroup. */
  readonly team: number
  /** What its uniforms hold; numbers of the call are written over theirs. */
  readonly words: Uint32Array<ArrayBuffer>
}

/** Words of memory: the slab that they are in, the first, and how many. */
export interface WordRange {
  readonly slab: number
  readonly start: number
  readonly length: number
}

/** Words to copy to a program's memory, from `start` on. */
export interface Upload {
  readonly slab: number
  readonly start: number
  readonly words: Uint32Array<ArrayBuffer>
}

/** A word of a dispatch's uniforms to set. */
export interface NumberWord {
  readonly dispatch: number
  readonly at: number
  readonly bits: number
}

/**
 * The slabs that each dispatch binds, in the order of its bindings: their numbers with commas between them, and semicolons between dispatches. Empty if all dispatches bind slab 0 alone. A text, because what was made
 * for it is found by it.
 */
export type Bindings = string

/** Words that are copied to another slab before a dispatch and back after it, since it cannot bind that many slabs. */
export interface SlabCopy {
  readonly dispatch: number
  readonly from: WordRange
  /** Where the dispatch finds them. */
  readonly slab: number
  readonly start: number
}

/** Asks for the GPU, if it was not or was lost. */
export interface OpenRequest {
  readonly kind: 'open'
  readonly options: InitOptions
}

/** Takes memory for a program, by its number, and compiles its shaders. */
export interface CreateRequest {
  readonly kind: 'create'
  readonly program: number
  readonly dispatches: readonly Dispatch[]
  /** The words of each of its slabs, and which of them the dispatches bind. */
  readonly slabs: readonly number[]
  readonly bindings: Bindings
  readonly copies: readonly SlabCopy[]
  /** What they hold from the beginning. */
  readonly uploads: readonly Upload[]
  /** Set for a program that computes in the memory of tensors and has none of its own. */
  readonly onHeap: HeapMemory | null
}

/** Copies words there, runs the dispatches `from` up to `to`, and answers with the words of `reads`. */
export interface RunRequest {
  readonly kind: 'run'
  readonly program: number
  readonly uploads: readonly Upload[]
  readonly numbers: readonly NumberWord[]
  readonly from: number
  readonly to: number
  readonly reads: readonly WordRange[]
}

/** The memory of tensors that stay on the GPU: its number, which a memory after a lost GPU does not share, and its slabs. Those that are not among them any more are given back. */
export interface HeapMemory {
  readonly number: number
  readonly slabs: readonly HeapSlab[]
}

/** A slab of the memory of tensors: its number, and how many words it must have. One that `grows` may have more, and get longer later. */
export interface HeapSlab {
  readonly slab: number
  readonly words: number
  readonly grows: boolean
}

/** Copies words to the memory of tensors. */
export interface WriteRequest extends Upload {
  readonly kind: 'write'
  readonly heap: HeapMemory
}

/** Runs a program on the memory of tensors. */
export interface CallRequest {
  readonly kind: 'call'
  readonly heap: HeapMemory
  readonly program: number
  /** What the uniforms of all its dispatches hold, one after the other. */
  readonly uniforms: Uint32Array<ArrayBuffer>
  readonly bindings: Bindings
  readonly copies: readonly SlabCopy[]
}

/** Answers with words of the memory of tensors. */
export interface ReadRequest {
  readonly kind: 'read'
  /** Null to wait only for what was asked before. */
  readonly heap: HeapMemory | null
  readonly reads: readonly WordRange[]
}

/** Frees the memory of a program. */
export interface ReleaseRequest {
  readonly kind: 'release'
  readonly program: number
}

/** Gives the GPU back, as if it were lost: at once, or in the middle of the next run. */
export interface LoseRequest {
  readonly kind: 'lose'
  readonly when: 'now' | 'next run'
}

/** Begins to time kernels, or ends it: then the answer has their times. */
export interface ProfileRequest {
  readonly kind: 'profile'
  readonly isOn: boolean
}

/** Gives the GPU back for good, and ends the thread that has it. */
export interface CloseRequest {
  readonly kind: 'close'
}

export type DeviceRequest =
  | OpenRequest
  | CreateRequest
  | RunRequest
  | WriteRequest
  | CallRequest
  | ReadRequest
  | ReleaseRequest
  | LoseRequest
  | ProfileRequest
  | CloseRequest

export interface DeviceAnswer {
  /** What a run has read. */
  readonly words: readonly Uint32Array<ArrayBuffer>[]
  readonly stats: DeviceStats
  /** What the GPU has; null before it is there. */
  readonly limits: MemoryLimits | null
  /** What the driver says of the GPU. */
  readonly description: string
  /** The times of kernels, for the request that ends their measurement. */
  readonly times: readonly KernelTime[]
}
