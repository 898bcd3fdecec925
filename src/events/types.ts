// What compile reports while it works, as data: each kind of event and its fields. Events hold names, specs and text, never a tensor or a value of one.
import type { Frame } from '../provenance/index.ts'

/** Where an event happened. Each number is unique in the process. */
export interface Scope {
  /** The compiled function. */
  readonly fn: number | null
  /** The call of it; null outside of a call, as for a backward that runs later. */
  readonly call: number | null
  /** The graph that was being compiled or run. */
  readonly graph: number | null
}

/** What all events have. */
export interface EventHeader extends Scope {
  /** Events are numbered in the order in which they happened. */
  readonly id: number
  /** Names the run of the process: events of several runs can be kept in one file. */
  readonly run: string
  /** When it happened, in milliseconds since the process (or page) started. */
  readonly time: number
}

/** A call of a compiled function begins. */
export interface CallStart {
  readonly kind: 'call'
  readonly phase: 'start'
  /** The name of the function or of the module's class. */
  readonly name: string
  /** The leaves of the arguments: `float32[2, 3]`, `number`, … */
  readonly args: readonly string[]
  /** The call during which this one happens (a backend that calls a compiled function, …). */
  readonly outer: number | null
  /** Where the program made the call. */
  readonly user: Frame | null
}

/**
 * How a call was answered: a new path was recorded; a known one was replayed; the function was not run at all (`skipReplay`); it ran, in whole or in part, without compiled graphs
 * (`config.recompileLimit`, under another mode); or it threw.
 */
export type CallOutcome = 'recorded' | 'replayed' | 'shortcut' | 'eager' | 'failed'

/** A call of a compiled function is over. */
export interface CallEnd {
  readonly kind: 'call'
  readonly phase: 'end'
  readonly name: string
  readonly outcome: CallOutcome
  /** Which way the call took in the trace tree: the number of the tree, then that of the branch at each point where recorded paths part, with `/` at graph breaks. Null if none was taken. */
  readonly path: string | null
  readonly milliseconds: number
  /** The class of what the call threw. */
  readonly error: string | null
}

/** An operator was recorded. */
export interface RecordEvent {
  readonly kind: 'record'
  /** Its name in PyTorch: `torch.ops.aten.mul`, … */
  readonly operator: string
  readonly args: readonly string[]
  readonly results: readonly string[]
  /** Where the program called it, innermost last. */
  readonly stack: readonly Frame[]
}

/** A call does not agree with what was recorded: with no trace tree (`arguments`), or with none of the steps that may follow (`step`). */
export interface GuardEvent {
  readonly kind: 'guard'
  readonly what: 'arguments' | 'step' | 'state'
  readonly expected: string
  readonly actual: string
  readonly user: Frame | null
}

/** A path is recorded after the first. */
export interface RecompileEvent {
  readonly kind: 'recompile'
  /** The name of the function or of the module's class. */
  readonly name: string
  /** What differs; `recompileReasons` of the compiled function lists the same texts. */
  readonly reason: string
  readonly expected: string
  readonly actual: string
  readonly user: Frame | null
}

/** A limit was reached, and code runs eagerly: `config.recompileLimit`; `config.compileBudget`; a backend that failed under `config.suppressErrors`; an async function after its first await; kept launches that gave other results than the operators (`verifySizes`); a graph of one operator, whose kernel computes the same bits in less time when the program calls it (`oneOperator`). */
export interface LimitEvent {
  readonly kind: 'limit'
  readonly what: 'recompileLimit' | 'compileBudget' | 'suppressErrors' | 'async' | 'verifySizes' | 'oneOperator'
  readonly name: string
  readonly reason: string
}

/** A graph ended before the function did. */
export interface BreakEvent {
  readonly kind: 'break'
  /** Which of the causes it was: `read`, `disabled`, `graphBreak`, … */
  readonly code: string
  readonly reason: string
  /** Where the program was, innermost last. */
  readonly stack: readonly Frame[]
}

/** Capture enters or leaves a module, or a function of the program. Functions are seen when one of their operators is recorded. */
export interface InlineEvent {
  readonly kind: 'inline'
  readonly phase: 'enter' | 'exit'
  readonly what: 'module' | 'function'
  /** The path of the module from the compiled one (its class, if it has none), or the function's name. */
  readonly name: string
  /** The class of the module; null for functions. */
  readonly type: string | null
  /** 1 for what the compiled function itself calls. */
  readonly depth: number
  readonly user: Frame | null
}

/** A node of a graph, as text. */
export interface GraphNode {
  readonly name: string
  readonly op: string
  /** `%mul : … = call_function[target=torch.ops.aten.mul](args = (%x, 2), kwargs = {})`. */
  readonly text: string
  /** `float32[2, 3]`, if known. */
  readonly spec: string | null
  /** The position in `stacks` of where it comes from; null if that is unknown. */
  readonly stack: number | null
}

/** A graph that is about to be compiled: a captured one, or the forward or backward half of its joint graph. */
export interface GraphEvent {
  readonly kind: 'graph'
  readonly name: string
  readonly role: 'captured' | 'forward' | 'backward'
  /** The graph of which it is a half. */
  readonly parent: number | null
  /** Why it ended: `return`, or the reason of the graph break. */
  readonly reason: string
  /** Where the program was at the graph break, innermost last; empty without one. */
  readonly stack: readonly Frame[]
  /** Whether it is compiled as a forward and a backward graph. */
  readonly isJoint: boolean
  /** How many operators it calls. */
  readonly operators: number
  readonly nodes: readonly GraphNode[]
  readonly stacks: readonly (readonly Frame[])[]
  /** The code of its forward. */
  readonly code: string
}

/** A backend has compiled a graph. */
export interface CompileEnd {
  readonly kind: 'compiled'
  readonly name: string
  readonly backend: string
  readonly milliseconds: number
}

/** Whether a graph got a joint graph of its forward and its gradient, so that a backward can be compiled. */
export interface JointEvent {
  readonly kind: 'joint'
  readonly ok: boolean
  /** Why there is none; the tape of autograd is kept then. */
  readonly why: string | null
  /** The nodes of the joint graph, as text; empty if there is none. */
  readonly nodes: readonly string[]
}

/** How a joint graph was split. */
export interface PartitionEvent {
  readonly kind: 'partition'
  readonly name: string
  /** What the forward keeps for the backward. */
  readonly saved: readonly { readonly name: string; readonly spec: string | null; readonly bytes: number }[]
  readonly bytes: number
  /** Nodes of the forward that the backward computes again. */
  readonly recomputed: readonly string[]
  /** The name of the partition function: `minCutPartition`, … */
  readonly cut: string
}

/** A pass has run, or failed. */
export interface PassEvent {
  readonly kind: 'pass'
  readonly name: string
  readonly changed: boolean
  readonly milliseconds: number
  /** Numbers of nodes; null if the value that passes work on has none. */
  readonly before: number | null
  readonly after: number | null
  readonly created: readonly string[]
  readonly erased: readonly string[]
  /** The value after a pass that changed it, as text: the code of a graph, or the latest result of a compilation. Null if nothing changed, or the pass failed. */
  readonly text: string | null
  /** What a pass that failed has thrown. */
  readonly error: string | null
}

/** A graph was lowered to loops. */
export interface LowerEvent {
  readonly kind: 'lower'
  readonly program: string
  /** The IR, a line for each node. */
  readonly nodes: readonly string[]
  /** What is left to eager kernels. */
  readonly externs: readonly { readonly node: string; readonly operator: string; readonly reason: string }[]
  /** Rewrites that were applied, by name. */
  readonly rewrites: readonly string[]
}

/** Nodes were grouped into kernels. */
export interface FuseEvent {
  readonly kind: 'fuse'
  readonly program: string
  readonly groups: readonly { readonly kind: string; readonly members: readonly string[] }[]
  /** Pairs of nodes that share data and stay in different kernels. `origins`: the graph nodes that they come from. */
  readonly refused: readonly {
    readonly first: string
    readonly second: string
    readonly reason: string
    readonly origins: readonly [first: string, second: string]
  }[]
}

/** Memory was planned. */
export interface MemoryEvent {
  readonly kind: 'memory'
  readonly program: string
  /** The size of the arena that temporaries share. */
  readonly arenaBytes: number
  /** Temporaries: the graph node that they come from, their place in the arena, and the first and last step that touch them. */
  readonly lifetimes: readonly {
    readonly buffer: string
    readonly origin: string | null
    readonly bytes: number
    readonly offset: number
    readonly first: number
    readonly last: number
  }[]
  /** Positions of outputs that are computed in the memory of the input that they overwrite, and of those that are copied there. */
  readonly inPlace: readonly number[]
  readonly copied: readonly number[]
}

/** A kernel was made. */
export interface KernelEvent {
  readonly kind: 'kernel'
  readonly name: string
  /** `loops`, `template`, or `extern` for an eager kernel. */
  readonly type: string
  /** The instructions that it was compiled to: `wasm`, or `wasm-relaxed` with fused multiply-add. */
  readonly engine: string
  /** How many threads share its loops where that pays; see `torch.setNumThreads`. */
  readonly threads: number
  /** Graph nodes that it computes. */
  readonly origins: readonly string[]
  /** The user's lines from which these nodes come. */
  readonly lines: readonly Frame[]
  /** Its loops. */
  readonly text: string
  /** Floating-point operations of one run: 2 for each multiplication with its addition in products and convolutions. Null for an eager kernel. */
  readonly flops: number | null
  /** Bytes of what one run reads and stores. */
  readonly bytes: number
  readonly wasmBytes: number
  readonly milliseconds: number
  /** Whether a kernel with the same text was known. */
  readonly cached: boolean
}

/** The code that calls the kernels of a graph was made. */
export interface ProgramEvent {
  readonly kind: 'program'
  readonly name: string
  readonly source: string
}

/** A kernel has run. */
export interface LaunchEvent {
  readonly kind: 'launch'
  /** The compiled graph that it belongs to. */
  readonly program: string
  readonly kernel: string
  /** `loops`, `template`, or `extern` for an eager kernel. */
  readonly type: string
  /** What computed it: `wasm`, `wasm-relaxed`, `c` (machine code), or `eager` for an eager kernel. */
  readonly engine: string
  /** How many threads took part. */
  readonly threads: number
  /** Graph nodes that it computes. */
  readonly origins: readonly string[]
  /** As of {@link KernelEvent}. */
  readonly flops: number | null
  readonly bytes: number
  readonly milliseconds: number
}

/** An engine cannot be had, or was given up: another one computes the same. */
export interface EngineEvent {
  readonly kind: 'engine'
  readonly engine: 'threads' | 'machine code' | 'machine code on threads'
  readonly why: string
}

/** A backend or what it compiled has failed. */
export interface FailureEvent {
  readonly kind: 'failure'
  readonly stage: 'compile' | 'run' | 'accuracy'
  /** The code of a TensorfxError, or the name of the error. */
  readonly code: string
  readonly message: string
  readonly backend: string | null
}

/** The debugger has written a script. */
export interface ReproEvent {
  readonly kind: 'repro'
  readonly file: string
  /** What the script does when it is run. */
  readonly command: string
}

/** The minifier has judged a candidate. */
export interface MinifyStepEvent {
  readonly kind: 'minify.step'
  readonly strategy: string
  readonly nodes: number
  readonly verdict: 'fails' | 'passes' | 'other'
  /** Why a candidate was not accepted. */
  readonly why: string | null
}

/** The minifier is done. */
export interface MinifyEndEvent {
  readonly kind: 'minify.end'
  readonly nodes: number
  readonly queries: number
  readonly failureRate: number | null
}

/** What happened, without where and when. */
export type EventBody =
  | CallStart
  | CallEnd
  | RecordEvent
  | GuardEvent
  | RecompileEvent
  | LimitEvent
  | BreakEvent
  | InlineEvent
  | GraphEvent
  | CompileEnd
  | JointEvent
  | PartitionEvent
  | PassEvent
  | LowerEvent
  | FuseEvent
  | MemoryEvent
  | KernelEvent
  | ProgramEvent
  | LaunchEvent
  | EngineEvent
  | FailureEvent
  | ReproEvent
  | MinifyStepEvent
  | MinifyEndEvent

/** The kind of an event. */
export type EventKind = EventBody['kind']

/** An event of one of the kinds `K`; by default, of any. */
export type CompileEvent<K extends EventKind = EventKind> = EventHeader & Extract<EventBody, { readonly kind: K }>
