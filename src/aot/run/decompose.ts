// Decomposition of a captured graph: operators that have one are replaced by the operators that they are made of.
import { withMode } from '../../dispatch/index.ts'
import { present } from '../../errors/index.ts'
import { GraphModule, mapArg, Node, operator } from '../../fx/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { opOf } from '../../ops/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { isPlainObject } from '../../protocol/index.ts'
import { ProxyTensorMode } from '../trace/proxyMode.ts'
import { tensorSpec } from '../meta/valueSpec.ts'

/**
 * The same graph in primitive operators. Calls stay as they are if they take a number that is an input of the graph, since a decomposition may look at its
 * value, and if they are not calls of operators. Nodes must have `meta.val`, as in captured graphs.
 */
export function decomposeGraph(gm: GraphModule): GraphModule {
  checkGraphModule('decomposeGraph', gm)
  const mode = new ProxyTensorMode({ decompose: true })
  const { graph } = mode
  // Tensors as fakes (several results as an array); numbers as the new node.
  const values = new Map<Node, unknown>()
  const copies = new Map<Node, Node>()
  const copy = (node: Node): void => {
    const twin = graph.nodeCopy(node, (n) => newNode(n))
    copies.set(node, twin)
    values.set(node, fakeFor(mode, twin))
  }
  const newNode = (node: Node): Node => {
    const value = values.get(node)
    return value instanceof Tensor ? mode.nodeOf(value) : present(copies.get(node), `the copy of ${node.name}`)
  }
  for (const node of gm.graph.nodes) {
    if (node.op === 'output') {
      mode.writeBack()
      graph.output(mapArg(node.args[0], newNode))
      continue
    }
    const inputs = node.allInputNodes.map((n) => values.get(n))
    const [list, index] = [inputs[0], node.args[1]]
    if (node.target === operator.getitem && Array.isArray(list) && typeof index === 'number') {
      values.set(node, list[index])
      continue
    }
    if (node.op !== 'call_function' || opOf(node.target) === undefined || inputs.some((v) => !(v instanceof Tensor))) {
      copy(node)
      continue
    }
    const { target, kwargs } = node
    const given = [...node.args, ...(Object.keys(kwargs).length === 0 ? [] : [kwargs])].map((arg) => mapToValues(arg, values))
    values.set(
      node,
      withMode(mode, () => target(...given)),
    )
  }
  const result = new GraphModule(gm, graph, gm.className)
  Object.assign(result.meta, gm.meta)
  return result
}

/** A fake for the value of a copied node; undefined unless it is one tensor. */
function fakeFor(mode: ProxyTensorMode, node: Node): unknown {
  const spec = tensorSpec(node)
  if (spec === null) return undefined
  const fake = Tensor.fake(spec)
  mode.track(fake, node)
  return fake
}

function mapToValues(arg: unknown, values: ReadonlyMap<Node, unknown>): unknown {
  if (arg instanceof Node) return values.get(arg)
  if (Array.isArray(arg)) return arg.map((a) => mapToValues(a, values))
  if (isPlainObject(arg)) return Object.fromEntries(Object.entries(arg).map(([k, v]) => [k, mapToValues(v, values)]))
  return arg
}
