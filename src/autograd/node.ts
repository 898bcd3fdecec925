// The tape: one node per recorded operator call. A node knows where the gradients of its inputs go (its edges) and how to compute them. The engine walks the
// nodes.
import { InternalError } from '../errors/index.ts'
import { historyOfViews, Tensor } from '../tensor/index.ts'
import type { GradFn } from '../tensor/index.ts'

/** A function that sees a gradient; a tensor that it returns replaces the gradient. */
// eslint-disable-next-line typescript/no-invalid-void-type -- a hook may return nothing
export type GradHook = (grad: Tensor) => Tensor | null | undefined | void

/** Where a gradient goes: to the node that produced the tensor, to a leaf tensor, or nowhere. */
export type Edge = GradNode | Tensor | null

/** Whether an edge leads to a node. It is asked for tensors, because `instanceof GradNode` would follow their prototypes as far as the Proxy that explains unknown names, which takes long. */
export const isNode = (edge: Edge): edge is GradNode => edge !== null && !(edge instanceof Tensor)

let nextSeq = 0

/** The number that the next node will get. */
export const upcomingSeq = (): number => nextSeq

/** The edges of a node under construction: one per tensor among the inputs, in order, with lists flattened. */
export interface EdgeList {
  readonly targets: Edge[]
  /** Which output of its node each input was; null if all were output 0, as they usually are (that saves an allocation per operator). */
  outputNrs: number[] | null
}

/** Appends the edge of one tensor input. */
export function pushEdge(list: EdgeList, tensor: Tensor): void {
  const { targets } = list
  const node = tensor.requiresGrad ? producerOf(tensor) : null
  if (node === null) targets.push(tensor.requiresGrad ? tensor : null)
  else {
    if (tensor.outputNr !== 0) {
      list.outputNrs ??= targets.map(() => 0)
      while (list.outputNrs.length < targets.length) list.outputNrs.push(0)
      list.outputNrs.push(tensor.outputNr)
    }
    targets.push(node)
  }
}

/** The node that produced a tensor; null for a leaf. */
export function producerOf(tensor: Tensor): GradNode | null {
  const { gradFn } = tensor
  if (gradFn === null) return null
  if (!(gradFn instanceof GradNode)) throw new InternalError(`gradFn '${gradFn.name}' is not a node of the tape`)
  return tensor.viewBase === null ? gradFn : producerOfView(tensor, tensor.viewBase, gradFn)
}

/**
 * The producer of a view. If its base was modified in place after the view was made, the view has the base's new data, so it gets a new history as well: the same view operators
 * on what the base is now.
 */
function producerOfView(view: Tensor, base: Tensor, gradFn: GradNode): GradNode {
  const { gradFn: latest } = base
  if (latest === gradFn || !(latest instanceof GradNode) || base.storage !== view.storage) return gradFn
  const chain: GradNode[] = []
  let node: Edge = gradFn
  while (isNode(node) && node !== latest && node.isView && !node.released) {
    chain.unshift(node)
    node = node.targets[0] ?? null
  }
  const [first] = chain
  if (first === undefined || node === latest || !isNode(node)) return gradFn
  const way = wayTo(latest, node, first.outputNrs?.[0] ?? 0)
  if (way === null) return gradFn
  if (way === 'relaid') {
    // The view operators were called on another shape than the base has now.
    historyOfViews.join?.(view)
    return view.gradFn instanceof GradNode ? view.gradFn : gradFn
  }
  let fresh = latest
  for (const old of chain) fresh = old.onTopOf({ targets: [fresh], outputNrs: old === first ? [base.outputNr] : [...(old.outputNrs ?? [])] })
  setGradFn(view, fresh, view.outputNr)
  return fresh
}

/**
 * How in-place operators lead from `latest`, the producer of a tensor, back to its earlier producer, output `outputNr` of `earlier`: by writes only, or also by operators that gave the tensor another
 * shape (transpose_); null if they do not.
 */
function wayTo(latest: GradNode, earlier: GradNode, outputNr: number): 'written' | 'relaid' | null {
  let node: Edge = latest
  let nr = 0
  let way: 'written' | 'relaid' = 'written'
  while (isNode(node) && node.seq > earlier.seq) {
    if (node.isView) way = 'relaid'
    nr = node.outputNrs?.[0] ?? 0
    node = node.targets[0] ?? null
  }
  return node === earlier && nr === outputNr ? way : null
}

/** A node of the tape; PyTorch's `torch.autograd.graph.Node`. */
export abstract class GradNode implements GradFn {
  abstract readonly name: string
  readonly targets: readonly Edge[]
  /** Which output of its target each edge means; missing entries are 0. */
  readonly outputNrs: readonly number[] | null
  readonly numOutputs: number
  /** The order of creation. A node is newer than the nodes that it points to, so walking from the newest is a topological order. */
  readonly seq: number
  /** Hooks on the gradient of each output; null if there are none. */
  hooks: GradHook[][] | null = null
  /** The number of the latest walk that has come past. @internal */
  visitedBy = 0

  constructor(edges: EdgeList, numOutputs: number) {
    this.targets = edges.targets
    this.outputNrs = edges.outputNrs
    this.numOutputs = numOutputs
    this.seq = nextSeq++
  }

  /** The nodes and leaves that this node sends gradients to, and which output of each. PyTorch's `next_functions`. */
  get nextFunctions(): readonly (readonly [Edge, number])[] {
    return this.targets.map((target, i) => [target, this.outputNrs?.[i] ?? 0] as const)
  }

  /** The gradients for the edges, from those of the outputs. `needs[i]` tells whether edge i wants one. */
  abstract apply(grads: readonly (Tensor | null)[], needs: readonly boolean[]): readonly (Tensor | null)[]

  /** Drops what was saved for the backward pass. A function that it returns is called when the pass is over. */
  abstract release(): (() => void) | null

  abstract readonly released: boolean

  /** Whether this is the call of a view operator. */
  get isView(): boolean {
    return false
  }

  /** The call of this view operator on a tensor with another history, which `edges` lead to. Throws InternalError for an operator that makes no view. */
  onTopOf(_edges: EdgeList): GradNode {
    throw new InternalError(`${this.name} is no view`)
  }

  /** Whether leaves hear of their gradients from the last edge to the first. */
  get lastGradientFirst(): boolean {
    return false
  }
}

/** Called when a tensor gets a producer, so that a kept gradient is that of the tensor as it is now. Null until the first tensor keeps its gradient. */
export const retention: { moved: ((tensor: Tensor, node: GradNode) => void) | null } = { moved: null }

/** Makes `node` the producer of a tensor. */
export function setGradFn(tensor: Tensor, node: GradNode, outputNr: number): void {
  tensor.requiresGrad = true
  tensor.gradFn = node
  tensor.outputNr = outputNr
  if (retention.moved !== null) retention.moved(tensor, node)
}
