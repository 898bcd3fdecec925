// The tape: a node per recorded operator call. A node knows where its inputs' gradients go (edges) and how to compute them; the engine walks nodes.
import { Tensor } from '../tensor/index.ts'
import type { GradFn } from '../tensor/index.ts'

/** A function on a gradient; returning a tensor replaces the gradient. */
// eslint-disable-next-line typescript/no-invalid-void-type -- a hook may return nothing
export type GradHook = (grad: Tensor) => Tensor | null | undefined | void

/** Where a gradient flows to: the node that produced the tensor, a leaf tensor, or nowhere. */
export type Edge = GradNode | Tensor | null

let nextSeq = 0

/** Edges of a node under construction: one per tensor among the inputs, in order; lists are flattened. */
export interface EdgeList {
  readonly targets: Edge[]
  /** Which output of the target node the input was; null = output 0 everywhere (nearly always, and an allocation less per operator). */
  outputNrs: number[] | null
}

/** Appends the edge of one tensor input. */
export function pushEdge(list: EdgeList, tensor: Tensor): void {
  const { targets } = list
  if (!tensor.requiresGrad) targets.push(null)
  else if (tensor.gradFn === null) targets.push(tensor)
  else {
    if (tensor.outputNr !== 0) {
      list.outputNrs ??= targets.map(() => 0)
      while (list.outputNrs.length < targets.length) list.outputNrs.push(0)
      list.outputNrs.push(tensor.outputNr)
    }
    targets.push(tensor.gradFn as GradNode)
  }
}

/** A node of the tape; PyTorch's `torch.autograd.graph.Node`. */
export abstract class GradNode implements GradFn {
  abstract readonly name: string
  readonly targets: readonly Edge[]
  /** Which output of each target; missing entries are 0. */
  readonly outputNrs: readonly number[] | null
  readonly numOutputs: number
  /** Order of creation. A node is always newer than the nodes it points to, so walking from the newest is a topological order. */
  readonly seq: number
  /** Hooks on the gradient of each output, or null. */
  hooks: GradHook[][] | null = null

  constructor(edges: EdgeList, numOutputs: number) {
    this.targets = edges.targets
    this.outputNrs = edges.outputNrs
    this.numOutputs = numOutputs
    this.seq = nextSeq++
  }

  /** PyTorch's `next_functions`: the nodes and leaves that this node sends gradients to. */
  get nextFunctions(): readonly (readonly [Edge, number])[] {
    return this.targets.map((target, i) => [target, this.outputNrs?.[i] ?? 0] as const)
  }

  /** Gradients for each edge, from those of the outputs. `needs[i]` says whether edge i wants one. */
  abstract apply(grads: readonly (Tensor | null)[], needs: readonly boolean[]): readonly (Tensor | null)[]

  /** Drops what was saved for the backward pass. */
  abstract release(): void

  abstract readonly released: boolean
}

/** Hangs `node` on a tensor as the producer of its gradient. */
export function setGradFn(tensor: Tensor, node: GradNode, outputNr: number): void {
  tensor.requiresGrad = true
  tensor.gradFn = node
  tensor.outputNr = outputNr
}
