// What a profile records: spans of time that nest.
import type { EngineName } from '../../kernels/index.ts'

/** What a span is: the call of a module, the node of a GraphModule, an operator, or a kernel of a compiled function. */
export type ProfileKind = 'module' | 'node' | 'operator' | 'kernel'

/**
 * What computes: `eager`, the eager kernel of an operator; `composite`, the operators that one is composed of; `loops` or `template`, a kernel that compile made of fused loops or
 * from a template (a product, a convolution).
 */
export type ProfileEngine = 'eager' | 'composite' | 'loops' | 'template'

/** Something that ran. Times are in milliseconds, as `performance.now()` counts them. */
export interface ProfileEvent {
  readonly kind: ProfileKind
  /** The operator's qualified name, the kernel's or the node's name, or the path of the module: `torch.mm`, `Net.fc1`. */
  readonly name: string
  readonly start: number
  readonly end: number
  /** The time without that of the events inside. In a module only modules count as inside, and in a node only nodes, so their operators are their own time. */
  readonly self: number
  /** The position among the events of the one that it ran in; null for none. */
  readonly parent: number | null
  /** The module that it belongs to: in a backward, the one whose forward called the operator. Null outside of modules. */
  readonly module: string | null
  /** Of a node: the path of its GraphModule. Of a kernel: the name of the compiled graph. Null for others. */
  readonly graph: string | null
  /** The names of the graph's nodes that a kernel computes; empty for others. */
  readonly nodes: readonly string[]
  /** What computed it; null for modules and nodes. */
  readonly engine: ProfileEngine | null
  /** The instructions that it was compiled to: `wasm`, or `wasm-relaxed` with fused multiply-add. Null for what consists of other events. */
  readonly instructions: EngineName | null
  /** The shapes of the tensors that the operator got; empty for others. */
  readonly shapes: readonly (readonly number[])[]
  /** The operator whose gradient is computed, by the name of its node on the tape; null outside of backward. */
  readonly backward: string | null
  /** The number of the tape's node that the operator made, or whose gradient it computes. */
  readonly sequence: number | null
  /** Floating-point operations of the operator or kernel itself, without those of what runs inside. */
  readonly flops: number
  /** Bytes of the tensors that the operator got and returned, or of what the kernel read and stored; without those of what runs inside. A view moves none. */
  readonly bytes: number
  /** Blocks of memory that were allocated while it ran. */
  readonly allocations: number
  /** Bytes in use at its end minus those at its start. */
  readonly memory: number
  /** The most bytes that were in use while it ran. */
  readonly peak: number
  /** Bytes in use at its end. */
  readonly inUse: number
}
