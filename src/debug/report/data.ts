// What a report shows, as plain data: it is written into the page, and `tensorfx report --json` prints it. Places and texts that many parts share are in lists, and named by number.

/** In the place of a number of a list: a place, row, graph or stage that there is not, or that is not known. */
export const NONE = -1

/** A line of the user's program. */
export interface Place {
  readonly file: string
  readonly line: number
  readonly fn: string
  /** The source line; null if the trace has none. */
  readonly code: string | null
}

/** What a row of the timeline or a finding is about; its colour follows from it. */
export type Kind =
  | 'failure'
  | 'drift'
  | 'break'
  | 'recompile'
  | 'limit'
  | 'fallback'
  | 'slow kernel'
  | 'memory peak'
  | 'refused fusion'
  | 'cache miss'
  | 'repro'
  | 'call'
  | 'hits'
  | 'compile'
  | 'minify'

/** Parts of a graph's details. */
export type Tab = 'stages' | 'fusion' | 'memory' | 'kernels'

/** Something that the reader of a report should know, most important first. */
export interface Finding {
  readonly kind: Kind
  readonly text: string
  /** The line; {@link NONE} if it is not known. */
  readonly place: number
  /** How often it was found. */
  readonly count: number
  /** The row of the timeline that shows it, and the part of its graph's details. */
  readonly row: number
  readonly tab: Tab | null
}

/** A line of the timeline. */
export interface Row {
  readonly kind: Kind
  /** 0 for calls and what happened outside of one, 1 for what happened in a call. */
  readonly depth: 0 | 1
  /** In milliseconds since the trace began. */
  readonly time: number
  readonly title: string
  /** More lines, for those who look at the row. */
  readonly details: readonly (readonly [name: string, text: string])[]
  readonly place: number
  /** Where the program was, innermost last, as places. */
  readonly stack: readonly number[]
  readonly milliseconds: number | null
  /** How many calls it stands for. */
  readonly count: number
  /** The graph that was compiled, or {@link NONE}. */
  readonly graph: number
}

/** A line of a stage, with the line of the program that it comes from, or {@link NONE}. */
export type StageLine = readonly [text: number, place: number]

/** What a graph looked like at a point of its compilation. */
export interface Stage {
  readonly title: string
  /** What a reader wants to know of it: how many nodes, how long it took. */
  readonly note: string
  readonly lines: readonly StageLine[]
  /** The stage that it is compared with, by its place among those of the graph; {@link NONE} if nothing comes before it. */
  readonly before: number
}

/** Nodes that became one kernel. */
export interface FusedGroup {
  readonly kind: string
  readonly members: readonly string[]
}

export interface Refusal {
  readonly first: string
  readonly second: string
  readonly reason: string
  readonly places: readonly [first: number, second: number]
}

/** What a compiled program keeps while it runs, and when. */
export interface MemoryPlan {
  readonly program: string
  readonly arenaBytes: number
  readonly steps: number
  readonly lifetimes: readonly {
    readonly buffer: string
    readonly place: number
    readonly bytes: number
    readonly offset: number
    readonly first: number
    readonly last: number
  }[]
  /** The step with the most bytes in use, and how many these are. */
  readonly peakStep: number
  readonly peakBytes: number
}

export interface KernelFacts {
  readonly name: string
  readonly type: string
  /** The instructions that it was compiled to: `wasm` or `wasm-relaxed`. */
  readonly engine: string
  readonly places: readonly number[]
  /** Its loops, as a text. */
  readonly text: number
  readonly isCached: boolean
  readonly compileMilliseconds: number
  /** How often it has run, in all and at best in milliseconds. */
  readonly runs: number
  readonly milliseconds: number
  readonly least: number
  readonly flops: number | null
  readonly bytes: number
}

/** A graph that was compiled: a captured one with its halves. */
export interface GraphFacts {
  readonly name: string
  readonly fn: string
  readonly backend: string | null
  /** Why it ended. */
  readonly reason: string
  readonly milliseconds: number | null
  readonly operators: number
  readonly stages: readonly Stage[]
  readonly groups: readonly FusedGroup[]
  readonly refused: readonly Refusal[]
  readonly fallbacks: readonly { readonly operator: string; readonly reason: string; readonly place: number }[]
  readonly memory: readonly MemoryPlan[]
  readonly kernels: readonly KernelFacts[]
  /** What the forward saves for the backward; null without one. */
  readonly saved: readonly { readonly name: string; readonly spec: string | null; readonly bytes: number }[] | null
}

/** The speeds that the machine reaches, with which kernels are compared. */
export interface Peak {
  readonly gflops: number
  readonly gigabytesPerSecond: number
}

/** Sums over a run. */
export interface Totals {
  readonly calls: number
  readonly hits: number
  readonly graphs: number
  readonly breaks: number
  readonly recompiles: number
  readonly failures: number
  readonly kernels: number
  readonly cachedKernels: number
  /** In backends, in calls, and in kernels that were timed; in milliseconds. */
  readonly compileMilliseconds: number
  readonly callMilliseconds: number
  readonly kernelMilliseconds: number
  readonly arenaBytes: number
}

/** The report of one process. */
export interface Report {
  readonly title: string
  /** Facts about the run: program, versions, machine. */
  readonly about: readonly (readonly [name: string, text: string])[]
  /** Whether the trace has an end: a process that was killed, or still runs, has not written one. */
  readonly isComplete: boolean
  readonly peak: Peak | null
  readonly totals: Totals
  readonly places: readonly Place[]
  readonly texts: readonly string[]
  readonly findings: readonly Finding[]
  readonly rows: readonly Row[]
  readonly graphs: readonly GraphFacts[]
}
