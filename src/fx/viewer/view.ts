// What viewers show of a graph, as data: its nodes, the modules that they belong to, its code, and what changed since an earlier graph.

/** A module call in which a node was recorded. */
export interface ViewModule {
  /** The path of the module, `layer1.0`, followed by `@2` for its third call. */
  readonly path: string
  readonly className: string
}

/** How a node differs between two graphs; 'same' if there is only one. */
export type Change = 'same' | 'added' | 'removed' | 'changed'

/** How the values of a tensor are distributed. NaN and infinities are counted in `special`, and left out of everything else. */
export interface ViewStatistics {
  readonly min: number
  readonly max: number
  readonly mean: number
  /** The standard deviation of the values themselves, so n and not n - 1. */
  readonly std: number
  readonly zeros: number
  readonly special: number
  /** How many values lie in each of 24 ranges of equal width from min to max. Values that are all the same are in the middle one. */
  readonly histogram: readonly number[]
}

/** A parameter or a buffer. */
export interface ViewTensor {
  readonly name: string
  readonly kind: 'parameter' | 'buffer'
  readonly shape: readonly number[]
  readonly dtype: string
  /** null if the values were not read: the tensor is fake or empty, or statistics were not asked for. */
  readonly statistics: ViewStatistics | null
}

/** The parts of a {@link ViewNode} that come from what it calls or reads. */
export interface TargetFacts {
  /** The class of the module that it calls; 'Parameter' or 'Buffer' if it reads one; null for other nodes. */
  readonly type: string | null
  /** What the layer is configured with, such as `kernelSize`, as text. */
  readonly config: Readonly<Record<string, string>>
  /** The parameters and buffers of the layer, or the tensor that it reads. */
  readonly tensors: readonly ViewTensor[]
}

/** What a viewer shows for a node. */
export interface ViewNode extends TargetFacts {
  readonly name: string
  readonly op: string
  readonly target: string
  /** The shape and dtype of its value, `f32[2, 3]`; null if no pass has recorded them. */
  readonly spec: string | null
  readonly args: readonly string[]
  readonly kwargs: Readonly<Record<string, string>>
  readonly inputs: readonly string[]
  readonly users: readonly string[]
  /** The module calls in which it was recorded, outermost first. A leaf module is a node, so it is not among them. */
  readonly modules: readonly ViewModule[]
  /** Where in the user's program it comes from; null if unknown. */
  readonly origin: { readonly file: string; readonly line: number; readonly fn: string; readonly code: string } | null
  /** The stack trace as text, innermost last; null if there is none. */
  readonly stack: string | null
  readonly change: Change
  /** For a changed node, its line in the earlier graph; otherwise null. */
  readonly was: string | null
}

/** A line of generated code. */
export interface ViewLine {
  readonly text: string
  /** The name of the node that it computes; null if there is none. */
  readonly node: string | null
  readonly change: Change
}

/** A graph, or the difference of two graphs. */
export interface GraphView {
  readonly name: string
  /** In graph order. Removed nodes are where they were in the earlier graph. */
  readonly nodes: readonly ViewNode[]
  readonly code: readonly ViewLine[]
  /** Whether this is the difference of two graphs. */
  readonly isDiff: boolean
}
