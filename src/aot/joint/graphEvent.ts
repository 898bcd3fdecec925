// Graphs as events: their nodes as text, with the lines of the program that they come from; the joint graph, and how it is split.
import { announce, count, emit, wants } from '../../events/index.ts'
import type { GraphEvent, GraphNode } from '../../events/index.ts'
import type { GraphModule, Node } from '../../fx/index.ts'
import { CapturedStack } from '../../provenance/index.ts'
import type { Frame } from '../../provenance/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { numelOf } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { backwardClosure } from './jointGraph.ts'
import type { JointGraph } from './jointGraph.ts'
import { tensorSpec, tensorSpecs } from '../meta/valueSpec.ts'

/** Symbols are asked for their texts: joining would read their numbers. */
const textOf = ({ dtype, shape }: TensorSpec): string => `${dtype}[${shape.map((size) => size.toString()).join(', ')}]`

/** The spec of a node's value as text, null if it is unknown. */
export function specOfNode(node: Node): string | null {
  const spec = tensorSpec(node)
  if (spec !== null) return textOf(spec)
  const several = tensorSpecs(node)
  return several.length === 0 ? null : `(${several.map(textOf).join(', ')})`
}

/** Where the program made the call of a node, innermost last; null if that is unknown. */
export function framesOf(node: Node): readonly Frame[] | null {
  const stack = node.meta['stack_trace']
  return stack instanceof CapturedStack && stack.frames.length > 0 ? stack.frames : null
}

/** Counts a graph that is about to be compiled, and tells those who listen. `about`: as in the event. */
export function announceGraph(
  gm: GraphModule,
  about: Pick<GraphEvent, 'role' | 'parent' | 'reason' | 'isJoint'>,
  stack: CapturedStack | null = null,
): void {
  const { role } = about
  let operators = 0
  for (const { op } of gm.graph.nodes) if (op === 'call_function') operators++
  count({ kind: 'graph', role, operators })
  if (!wants('graph')) return
  const stacks: (readonly Frame[])[] = []
  const known = new Map<string, number>()
  const stackOf = (node: Node): number | null => {
    const frames = framesOf(node)
    if (frames === null) return null
    const key = frames.map(({ file, line, column }) => `${file}:${line}:${column}`).join('\n')
    const at = known.get(key) ?? stacks.push(frames) - 1
    known.set(key, at)
    return at
  }
  const nodes = [...gm.graph.nodes].map((node): GraphNode => ({
    name: node.name,
    op: node.op,
    text: node.formatNode(),
    spec: specOfNode(node),
    stack: stackOf(node),
  }))
  emit({ kind: 'graph', name: gm.className, ...about, stack: stack?.frames ?? [], operators, nodes, stacks, code: gm.code })
}

/** Tells whether a graph has a joint graph with its gradient. */
export function announceJoint({ graph, failures = [] }: JointGraph): void {
  const failure = failures.find((error) => error !== null) ?? null
  announce({ kind: 'joint', ok: failure === null }, () => ({
    kind: 'joint',
    ok: failure === null,
    why: failure?.message ?? null,
    nodes: [...graph.nodes].map((node) => node.formatNode()),
  }))
}

const bytesOf = (node: Node): number => tensorSpecs(node).reduce((sum, { shape, dtype }) => sum + numelOf(shape) * dtypeInfo[dtype].size, 0)

/** Tells what the forward saves for the backward, and what the backward computes again. */
export function announcePartition(joint: JointGraph, saved: readonly Node[], name: string, cut: string): void {
  if (!wants('partition')) return
  const kept = new Set(saved)
  const again = [...backwardClosure(joint, (node) => kept.has(node))].filter(
    (node) => joint.forwardNodes.has(node) && !kept.has(node) && node.op !== 'placeholder',
  )
  const list = saved.map((node) => ({ name: node.name, spec: specOfNode(node), bytes: bytesOf(node) }))
  const recomputed = [...joint.graph.nodes].filter((node) => again.includes(node)).map((node) => node.name)
  emit({ kind: 'partition', name, saved: list, bytes: list.reduce((sum, { bytes }) => sum + bytes, 0), recomputed, cut })
}
