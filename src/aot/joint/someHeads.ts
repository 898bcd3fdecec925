// The backward of some heads of a joint graph, from that of all. Derivatives are linear in the gradients that come in: what only the others lead to is left out, as a node of the tape is that no
// gradient reaches. Zeros in their place would not do: 0 · ∞ is NaN.
import { InternalError, present } from '../../errors/index.ts'
import { recordValue } from '../../fx/graph/nodeValue.ts'
import { Node } from '../../fx/index.ts'
import { add, zeros } from '../../ops/index.ts'
import { sameShape } from '../../tensor/index.ts'
import { backwardClosure } from './jointGraph.ts'
import type { JointGraph } from './jointGraph.ts'
import { tensorSpec } from '../meta/valueSpec.ts'

/** The backward that starts from the heads at these positions only. Its further nodes go to the end of the joint graph. */
export function backwardOfSome(joint: JointGraph, heads: readonly number[]): Pick<JointGraph, 'tangents' | 'grads'> {
  const { graph, grads } = joint
  const tangents = heads.map((i) => present(joint.tangents[i], 'a head'))
  // What stands for each node that gradients lead to; null: none of these heads' gradients does.
  const values = new Map<Node, Node | null>(joint.tangents.map((tangent) => [tangent, tangents.includes(tangent) ? tangent : null]))
  const live = backwardClosure(joint, () => false)
  for (const node of [...graph.nodes]) {
    if (!live.has(node) || values.has(node)) continue
    const gradients = node.allInputNodes.filter((input) => values.has(input))
    if (gradients.length === 0) continue
    const reached = gradients.filter((input) => (values.get(input) ?? null) !== null)
    const [only = null] = reached
    if (only === null) values.set(node, null)
    else if (gradients.every((input) => values.get(input) === input)) values.set(node, node)
    else if (reached.length < gradients.length && isSumLike(node, only)) values.set(node, values.get(only) ?? null)
    else {
      const stands = (input: Node): Node => (values.has(input) ? (values.get(input) ?? zerosLike(input)) : input)
      values.set(node, graph.nodeCopy(node, stands))
    }
  }
  return { tangents, grads: grads.map((node) => (node !== null && values.has(node) ? (values.get(node) ?? null) : node)) }
}

/** Whether the node adds two tensors, and the sum looks like this one of them. */
function isSumLike(node: Node, summand: Node): boolean {
  const [sum, of] = [tensorSpec(node), tensorSpec(summand)]
  if (node.target !== add || node.args.length !== 2 || !node.args.every((arg) => arg instanceof Node) || Object.keys(node.kwargs).length > 0)
    return false
  return sum !== null && of !== null && sum.dtype === of.dtype && sameShape(sum.shape, of.shape)
}

/** Zeros for a gradient that does not come, where an operator takes it together with others. */
function zerosLike(node: Node): Node {
  const spec = tensorSpec(node)
  if (spec === null) throw new InternalError(`${node.name}: the shape of a gradient is not known`)
  const made = node.graph.callFunction(zeros, [spec.shape], { dtype: spec.dtype })
  recordValue(made, { shape: spec.shape, dtype: spec.dtype })
  return made
}
