// A forward computation and its gradient in one graph, which is split into two.
import { operator, Node } from '../../fx/index.ts'
import type { Graph } from '../../fx/index.ts'
import { opOf } from '../../ops/index.ts'
import type { Tensor } from '../../tensor/index.ts'

/** A forward computation and its gradient in one graph, without output node. */
export interface JointGraph {
  readonly graph: Graph
  /** Placeholders of the forward, in order. */
  readonly inputs: readonly Node[]
  /** Outputs of the forward. */
  readonly outputs: readonly Node[]
  /** Positions of the outputs that the backward starts from, and the placeholder of each one's gradient. */
  readonly heads: readonly number[]
  readonly tangents: readonly Node[]
  /** Positions of the inputs that get gradients, and the gradients; null where the outputs do not depend on the input. */
  readonly gradInputs: readonly number[]
  readonly grads: readonly (Node | null)[]
  /** Nodes of the forward; the others belong to the backward. */
  readonly forwardNodes: ReadonlySet<Node>
  /** From output position to the position of the input that it overwrites. */
  readonly writeBacks: ReadonlyMap<number, number>
  /** Whether the forward may write them itself; default true. */
  readonly writesInPlace?: boolean
  /**
   * Whether the program may write to inputs and outputs before the backward. Then only those that the backward itself reads are saved, as on the tape of an eager run: a write to
   * another one must not matter. Default false.
   */
  readonly mayBeOverwritten?: boolean
  /** Tensors from outside, which are inputs after those that callers give. */
  readonly constants?: readonly Tensor[]
  /** Whether the program gives inputs another shape after the call (transpose_): what is saved of them keeps its own. Default false. */
  readonly relaysInputs?: boolean
  /** Why a head has no gradients, for each head; null for one that has. A backward that starts from the head throws this, and the gradients are those of the others. Default: none. */
  readonly failures?: readonly (Error | null)[]
  /**
   * For each head, the heads, as bits, that lead to nodes of the tape to which it leads as well, itself included. A backward that starts from it frees these nodes, so that one from the others is refused.
   * Default: all.
   */
  readonly sharing?: readonly bigint[]
  /** Whether it is for any sizes: some of the inputs are the numbers that its operators take. Default false: it is for the sizes of its example inputs. */
  readonly takesSizes?: boolean
  /** Number of random draws. The last inputs, four for each, are their seeds and offsets. */
  readonly draws?: number
}

/** Nodes that the gradients depend on, themselves included, down to `stop`. */
export function backwardClosure(joint: JointGraph, stop: (node: Node) => boolean): Set<Node> {
  const seen = new Set<Node>()
  const stack = joint.grads.filter((g) => g !== null)
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (seen.has(node)) continue
    seen.add(node)
    if (!stop(node)) stack.push(...node.allInputNodes)
  }
  return seen
}

/** The node at the start of a chain of views. */
export function viewRoot(node: Node): Node {
  let root = node
  for (;;) {
    const [base] = root.args
    if (root.op !== 'call_function' || !(base instanceof Node)) return root
    // The items of a list of views are views as well.
    if (!isViewCall(root.target === operator.getitem ? base : root)) return root
    root = base
  }
}

const isViewCall = ({ op, target }: Node): boolean => op === 'call_function' && opOf(target)?.tags.has('view') === true
