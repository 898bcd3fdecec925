// A joint graph with sizes, compared with the joint graph that the tape of a walk gives for the sizes of this walk alone: both must call the same operators with the same numbers. For `config.verifySizes`: it takes as
// long as to trace a backward.
import type { JointGraph } from '../../aot/index.ts'
import { opOf } from '../../ops/index.ts'
import { Node } from '../../fx/index.ts'
import type { SegmentJoint } from './sizedJoint.ts'

/** How the graphs differ; null if they do not. `sized`: the joint graph with sizes; `numbers`: by placeholder, the numbers of this walk; `own`: that for these sizes. */
export function jointDifference(
  sized: { readonly joint: JointGraph; readonly nodeOf: (slot: number) => Node | undefined },
  numbers: ReadonlyMap<Node, number>,
  own: Pick<SegmentJoint, 'joint' | 'nodes'>,
): string | null {
  const same = new Map<Node, Node>()
  for (const [slot, node] of own.nodes) {
    const other = sized.nodeOf(slot)
    if (other !== undefined) same.set(node, other)
  }
  own.joint.tangents.forEach((node, i) => {
    const other = sized.joint.tangents[i]
    if (other !== undefined) same.set(node, other)
  })
  const isSame = (a: unknown, b: unknown): boolean => {
    if (b instanceof Node && numbers.has(b)) return isSame(a, numbers.get(b))
    if (a instanceof Node) return same.get(a) === b
    if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => isSame(item, b[i]))
    if (typeof a !== 'object' || a === null) return Object.is(a, b)
    return typeof b === 'object' && b !== null && Object.keys(a).every((key) => isSame(Reflect.get(a, key), Reflect.get(b, key)))
  }
  const [ownCalls, sizedCalls] = [backwardCalls(own.joint), backwardCalls(sized.joint)]
  for (const [i, node] of ownCalls.entries()) {
    const other = sizedCalls[i]
    if (other?.target !== node.target || !isSame(node.args, other.args) || !isSame(node.kwargs, other.kwargs))
      return `${textOf(node)} is ${textOf(other)}`
    same.set(node, other)
  }
  if (sizedCalls.length > ownCalls.length) return `${textOf(sizedCalls[ownCalls.length])} is too much`
  return own.joint.grads.every((node, i) => isSame(node, sized.joint.grads[i])) ? null : 'its gradients are other nodes'
}

const backwardCalls = ({ graph, forwardNodes }: JointGraph): readonly Node[] =>
  [...graph.nodes].filter((node) => node.op === 'call_function' && !forwardNodes.has(node))

function textOf(node: Node | undefined): string {
  if (node === undefined) return 'missing'
  const numbers = [...node.args, ...Object.values(node.kwargs)].filter((arg) => !(arg instanceof Node))
  return `${opOf(node.target)?.qualname ?? node.name}(${numbers.map((arg) => JSON.stringify(arg, (_, value: unknown) => (value instanceof Node ? value.name : value))).join(', ')})`
}
