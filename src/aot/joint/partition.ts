// Splitting a joint graph: which values of the forward are saved for the backward, and which the backward recomputes.
import { checkGraph } from '../../protocol/graphChecks.ts'
import { checkArgument } from '../../protocol/index.ts'
import { opOf } from '../../ops/index.ts'
import { hasSeveralValues } from '../../fx/graph/nodeValue.ts'
import { Node } from '../../fx/index.ts'
import { dtypeInfo, isCostly } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import { numelOf } from '../../tensor/index.ts'
import { present } from '../../errors/index.ts'
import { exposureOf } from './exposure.ts'
import { backwardClosure, viewRoot } from './jointGraph.ts'
import type { JointGraph } from './jointGraph.ts'
import { FlowNetwork } from './maxFlow.ts'
import { tensorSpec } from '../meta/valueSpec.ts'

/** Chooses the nodes to save. */
export type Partition = (joint: JointGraph) => readonly Node[]

/** Saves every value of the forward that the backward reads; nothing is recomputed. PyTorch's default_partition. */
export const defaultPartition: Partition = (joint) => {
  checkGraph('defaultPartition', Reflect.get(Object(joint), 'graph'), 'joint.graph')
  checkArgument(joint.forwardNodes instanceof Set, 'defaultPartition', 'joint.forwardNodes', 'a Set of Nodes', joint.forwardNodes)
  const saved = backwardClosure(joint, (node) => joint.forwardNodes.has(node))
  return [...saved].filter((node) => joint.forwardNodes.has(node))
}

/**
 * Saves the fewest bytes from which the backward can be computed without recomputing anything expensive: a minimum cut between what is never recomputed
 * (inputs, results of matrix products, reductions, random numbers, exponentials, …) and what the backward reads. PyTorch's min_cut_rematerialization_partition.
 */
export const minCutPartition: Partition = (joint) => {
  checkGraph('minCutPartition', Reflect.get(Object(joint), 'graph'), 'joint.graph')
  const wanted = defaultPartition(joint)
  if (wanted.length === 0) return []
  // All nodes of the forward on which those depend take part.
  const nodes = new Set<Node>(wanted)
  const stack = [...wanted]
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    for (const input of node.allInputNodes) {
      if (nodes.has(input)) continue
      nodes.add(input)
      stack.push(input)
    }
  }
  // Each node is two pairs of vertices, an entrance and an exit: the first for users that may read it where it was saved, the second for those that may not (see `exposureOf`).
  const ids = new Map([...nodes].map((node, i) => [node, 2 + 4 * i]))
  const network = new FlowNetwork(2 + 4 * nodes.size)
  const exposure = exposureOf(joint)
  const [source, sink] = [0, 1]
  for (const [node, id] of ids) {
    const [saved, unsaved] = [id, id + 2]
    network.addEdge(saved, saved + 1, costOf(node))
    network.addEdge(unsaved, unsaved + 1, Infinity)
    const isFixed = !isCheap(node) || isLookedFor(node)
    if (isFixed) network.addEdge(source, saved, Infinity)
    if (isFixed || exposure.isRead(node)) network.addEdge(source, unsaved, Infinity)
    for (const user of node.users.keys()) {
      const to = ids.get(user)
      if (to === undefined) continue
      // A view is saved where its memory is.
      const isView = viewRoot(user) === viewRoot(node)
      const mayRead = exposure.mayRead(user, node)
      network.addEdge((isView || mayRead ? saved : unsaved) + 1, to, Infinity)
      network.addEdge((isView || !mayRead ? unsaved : saved) + 1, to + 2, Infinity)
    }
  }
  for (const node of wanted) network.addEdge(present(ids.get(node), `the number of ${node.name}`) + 1, sink, Infinity)
  const reachable = network.minCut(source, sink)
  if (reachable === null) return wanted
  return [...ids].filter(([, into]) => reachable.has(into) && !reachable.has(into + 1)).map(([node]) => node)
}

/** The memory that the derivatives read, as nodes at the start of views: an eager backward would refuse to run after a write to it. */
export const memoryRead = (joint: JointGraph): ReadonlySet<Node> => new Set(defaultPartition(joint).map(viewRoot))

/** Bytes of a value. Keeping an input costs nothing, but it counts half, so that the smaller of two sets wins. */
function costOf(node: Node): number {
  if (hasSeveralValues(node)) return Infinity
  const spec = tensorSpec(node)
  if (spec === null) return 1
  const { shape, dtype } = spec
  const bytes = Math.max(1, numelOf(shape) * dtypeInfo[dtype].size)
  return node.op === 'placeholder' ? bytes / 2 : bytes
}

/** Whether the node costs about as little to recompute as to read. */
function isCheap(node: Node): boolean {
  if (node.op !== 'call_function') return false
  const op = opOf(node.target)
  if (op === undefined || op.tags.has('random') || op.tags.has('mutates')) return false
  if (op.tags.has('view') || op.tags.has('creation')) return !hasSeveralValues(node)
  return op.pointwise !== null && !isExpensive(op.pointwise)
}

/**
 * Whether a node looks for this very value among others: the gradient of a maximum goes to the elements that equal it. A kernel of the backward may round a recomputed
 * value otherwise than the forward did, and then no element would be found.
 */
function isLookedFor(node: Node): boolean {
  for (const user of node.users.keys()) {
    const op = user.op === 'call_function' ? opOf(user.target) : undefined
    if (op?.qualname === 'torch.eq' && user.args.filter((arg) => arg instanceof Node && isFloating(arg)).length === 2) return true
    if (op?.tags.has('view') === true && isLookedFor(user)) return true
  }
  return false
}

function isFloating(node: Node): boolean {
  const spec = tensorSpec(node)
  return spec !== null && dtypeInfo[spec.dtype].differentiable
}

const known = new WeakMap<object, boolean>()

function isExpensive(rule: { readonly compute: (...args: never[]) => Expr }): boolean {
  let answer = known.get(rule)
  if (answer === undefined) {
    const operand: Expr = { kind: 'const', dtype: 'float32', value: 0 }
    try {
      answer = isCostly(rule.compute(...(Array.from({ length: Math.max(rule.compute.length, 4) }, () => operand) as never[])))
    } catch {
      // The rule looks at the value of an argument.
      answer = true
    }
    known.set(rule, answer)
  }
  return answer
}
