// Decomposition of a captured graph: operators that have one are replaced by the operators that they are made of.
import { withMode } from '../dispatch/index.ts'
import { GraphModule, Node, mapArg, operator } from '../fx/index.ts'
import type { Argument } from '../fx/index.ts'
import { opOf } from '../ops/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { TensorSpec } from '../tensor/index.ts'
import { ProxyTensorMode } from './proxyMode.ts'

/**
 * The same graph in primitive operators. Calls with a number that is an input of the graph stay as they are, since a decomposition may look at its
 * value; so do functions that are no operators. Nodes must carry `meta.val`, as captured graphs do.
 */
export function decomposeGraph(gm: GraphModule): GraphModule {
  const mode = new ProxyTensorMode({ decompose: true })
  const { graph } = mode
  // Tensors as fakes (several results as an array); numbers as the new node.
  const values = new Map<Node, unknown>()
  const copies = new Map<Node, Node>()
  const copy = (node: Node): void => {
    const twin = graph.nodeCopy(node, (n) => newNode(n))
    copies.set(node, twin)
    values.set(node, fakesFor(mode, twin))
  }
  const newNode = (node: Node): Node => {
    const value = values.get(node)
    return value instanceof Tensor ? mode.nodeOf(value) : (copies.get(node) as Node)
  }
  for (const node of gm.graph.nodes) {
    if (node.op === 'output') {
      mode.writeBack()
      graph.output(mapArg(node.args[0] as Argument, newNode))
      continue
    }
    const inputs = node.allInputNodes.map((n) => values.get(n))
    if (node.target === operator.getitem && Array.isArray(inputs[0])) {
      values.set(node, (inputs[0] as readonly unknown[])[node.args[1] as number])
      continue
    }
    if (node.op !== 'call_function' || opOf(node.target) === undefined || inputs.some((v) => !(v instanceof Tensor))) {
      copy(node)
      continue
    }
    const args = node.args.map((a) => mapToValues(a, values))
    const kwargs = Object.keys(node.kwargs).length === 0 ? [] : [mapToValues(node.kwargs as Argument, values)]
    values.set(
      node,
      withMode(mode, () => (node.target as (...a: readonly unknown[]) => unknown)(...args, ...kwargs)),
    )
  }
  const result = new GraphModule(gm, graph, gm.className)
  Object.assign(result.meta, gm.meta)
  return result
}

function fakesFor(mode: ProxyTensorMode, node: Node): unknown {
  const spec = node.meta['val'] as (TensorSpec & { readonly requiresGrad?: boolean }) | readonly TensorSpec[] | undefined
  if (spec === undefined || Array.isArray(spec)) return undefined
  const fake = Tensor.fake(spec as TensorSpec)
  mode.track(fake, node)
  return fake
}

function mapToValues(arg: Argument, values: ReadonlyMap<Node, unknown>): unknown {
  if (arg instanceof Node) return values.get(arg)
  if (Array.isArray(arg)) return arg.map((a) => mapToValues(a as Argument, values))
  if (typeof arg === 'object' && arg !== null && Object.getPrototypeOf(arg) === Object.prototype)
    return Object.fromEntries(Object.entries(arg).map(([k, v]) => [k, mapToValues(v as Argument, values)]))
  return arg
}
