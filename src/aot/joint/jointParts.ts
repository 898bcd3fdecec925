// The two halves of a joint graph: the forward, which also returns what the backward needs, and the backward.
import { UnsupportedError, present } from '../../errors/index.ts'
import { copyValue } from '../../fx/graph/nodeValue.ts'
import { Graph, GraphModule } from '../../fx/index.ts'
import type { Node } from '../../fx/index.ts'
import { clone } from '../../ops/index.ts'
import { backwardClosure, viewRoot } from './jointGraph.ts'
import type { JointGraph } from './jointGraph.ts'

/** Nodes of the joint graph and what stands for them in another graph. */
class Copies {
  readonly #graph: Graph
  readonly #nodes = new Map<Node, Node>()

  constructor(graph: Graph) {
    this.#graph = graph
  }

  has(node: Node): boolean {
    return this.#nodes.has(node)
  }

  set(node: Node, copy: Node): void {
    this.#nodes.set(node, copy)
  }

  add(node: Node): void {
    this.set(
      node,
      this.#graph.nodeCopy(node, (input) => this.of(input)),
    )
  }

  of(node: Node): Node {
    return present(this.#nodes.get(node), `the copy of ${node.name}`)
  }
}

/** The joint graph as a module of its own: it returns the outputs, and then the gradients that there are. The joint graph stays as it is. */
export function jointModule(joint: JointGraph, name: string): GraphModule {
  const graph = new Graph()
  const copies = new Copies(graph)
  for (const node of joint.graph.nodes) copies.add(node)
  graph.output([...joint.outputs, ...joint.grads.filter((node) => node !== null)].map((node) => copies.of(node)))
  graph.eliminateDeadCode((node) => node.op === 'placeholder' || node.op === 'output')
  return new GraphModule({}, graph, name)
}

export function forwardModule(joint: JointGraph, saved: readonly Node[], name: string): GraphModule {
  const graph = new Graph()
  const copies = new Copies(graph)
  for (const node of joint.graph.nodes) if (joint.forwardNodes.has(node)) copies.add(node)
  const overwritten = new Set([...joint.writeBacks.values()].map((i) => joint.inputs[i]))
  const kept = saved.map((node) => {
    const copy = copies.of(node)
    if (!overwritten.has(viewRoot(node))) return copy
    // The backward needs an input as it was before the function overwrote it.
    const was = graph.callFunction(clone, [copy])
    copyValue(was, node)
    return was
  })
  graph.output([...joint.outputs.map((n) => copies.of(n)), ...kept])
  graph.eliminateDeadCode((n) => n.op === 'placeholder' || n.op === 'output')
  const gm = new GraphModule({}, graph, name)
  gm.meta['half'] = 'forward'
  if (joint.writesInPlace !== false) gm.meta['writeBacks'] = joint.writeBacks
  return gm
}

export function backwardModule(joint: JointGraph, saved: readonly Node[], name: string): GraphModule {
  const graph = new Graph()
  const copies = new Copies(graph)
  const isSaved = new Set(saved)
  for (const node of [...saved, ...joint.tangents]) {
    const placeholder = graph.placeholder(node.name)
    copyValue(placeholder, node)
    copies.set(node, placeholder)
  }
  const live = backwardClosure(joint, (node) => isSaved.has(node))
  for (const node of joint.graph.nodes) {
    if (!live.has(node) || copies.has(node)) continue
    if (node.op === 'placeholder') throw new UnsupportedError('the backward of some outputs needs an input that is not saved for that of all.')
    copies.add(node)
  }
  graph.output(joint.grads.map((g) => (g === null ? null : copies.of(g))))
  const gm = new GraphModule({}, graph, name)
  gm.meta['half'] = 'backward'
  return gm
}
