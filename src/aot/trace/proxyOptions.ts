// What a ProxyTensorMode can be told.
import type { Graph, Node } from '../../fx/index.ts'
import type { OptionNames, TargetFunction } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { SizeNodes } from './sizeNodes.ts'

/** Settings of ProxyTensorMode. */
export interface ProxyTensorModeOptions {
  /** Decompose operators that have a decomposition and neither a template nor a rule that fuses. Default false. */
  readonly decompose?: boolean
  /** Record at the end of this graph. Default: a new one. */
  readonly graph?: Graph
  /**
   * Random operators take the seed and the offset of each draw from further placeholders, four for each draw, after those of the tensors. Default false: the
   * graph calls operators that draw (`torch.rand`).
   */
  readonly drawsAsInputs?: boolean
  /** Tensors from outside become placeholders, after those of the inputs, instead of attributes; `constants` says what they stand for. Default false. */
  readonly constantsAsInputs?: boolean
  /** Finds the node of a tensor that the mode did not make. If given, a real tensor without a node is an UnsupportedError, not a constant. */
  readonly resolve?: (tensor: Tensor) => Node | undefined
  /** Functions to run in place of operators: their operators are recorded. */
  readonly decompositions?: ReadonlyMap<TargetFunction, Decomposition>
  /** Also compute the values, of what `placeholder` got. For operators whose shapes depend on data. Default false. */
  readonly real?: boolean
  /** Makes what keeps the nodes of symbolic sizes: the trace is symbolic. */
  readonly sizes?: (graph: Graph) => SizeNodes
  /** Called with each node of an operator, and of a tensor from outside. */
  readonly onNode?: (node: Node) => void
}

/** Computes an operator with other operators. It gets the arguments as a program would write them, keyword arguments as an object. */
export type Decomposition = (...args: never[]) => Tensor | readonly Tensor[]

/** The options by name, for their check. */
export const proxyOptions: OptionNames<ProxyTensorModeOptions> = {
  decompose: 'boolean',
  graph: true,
  resolve: true,
  drawsAsInputs: 'boolean',
  constantsAsInputs: 'boolean',
  decompositions: true,
  real: 'boolean',
  sizes: true,
  onNode: true,
}
