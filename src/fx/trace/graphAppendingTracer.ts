// Records into an existing graph, for rewriting: operations on `makeProxy(node)` become new nodes of its graph.
import { checkCount } from '../../protocol/index.ts'
import { checkNode } from '../../protocol/graphChecks.ts'
import type { Graph } from '../graph/graph.ts'
import type { Node } from '../graph/node.ts'
import { isProxy, proxyOf } from '../values/proxy.ts'
import type { ProxyTracer, Proxied } from '../values/proxy.ts'
import { TracerBase } from './tracerBase.ts'

/** Records operations on traced values at the insert point of an existing graph. */
export class GraphAppendingTracer extends TracerBase {
  readonly graph: Graph

  constructor(graph: Graph) {
    checkCount('GraphAppendingTracer', arguments, 1)
    super()
    this.graph = graph
  }
}

/** A tracer that appends to the graph of a node. */
function tracerFor(node: Node): ProxyTracer {
  checkNode('makeProxy', node)
  return new GraphAppendingTracer(node.graph)
}

/** A traced value for a node. Operations on it are recorded by `tracer`, by default in the node's graph. PyTorch's `Proxy(node, tracer)`. */
export function makeProxy(node: Node, tracer: ProxyTracer = tracerFor(node)): Proxied {
  return proxyOf(node, tracer)
}

/** The type of `fx.Proxy`, which makes traced values. `value instanceof fx.Proxy` tells whether a value is one. */
export interface ProxyConstructor {
  new (node: Node, tracer?: ProxyTracer): Proxied
  [Symbol.hasInstance](value: unknown): value is Proxied
}

// An instance is a traced value, because that is what the constructor returns.
interface TracedValue extends Proxied {}

class TracedValue {
  constructor(node: Node, tracer?: ProxyTracer) {
    return makeProxy(node, tracer)
  }

  static [Symbol.hasInstance](value: unknown): value is Proxied {
    return isProxy(value)
  }
}

/** PyTorch's torch.fx.Proxy: `new fx.Proxy(node, tracer)` is `fx.makeProxy(node, tracer)`. */
export const Proxy: ProxyConstructor = TracedValue
