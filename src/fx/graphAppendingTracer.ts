// Recording into a graph that exists already, for rewriting: operations on `makeProxy(node)` become nodes behind it.
import type { Graph } from './graph.ts'
import type { Node } from './node.ts'
import { isProxy, proxyOf } from './proxy.ts'
import type { ProxyTracer, Proxied } from './proxy.ts'
import { TracerBase } from './tracerBase.ts'

/** Records what is done with proxies at the insert point of an existing graph. */
export class GraphAppendingTracer extends TracerBase {
  readonly graph: Graph

  constructor(graph: Graph) {
    super()
    this.graph = graph
  }
}

/** A traced value for a node; operations on it append to the node's graph, or are recorded by `tracer`. PyTorch's `Proxy(node, tracer)`. */
export function makeProxy(node: Node, tracer: ProxyTracer = new GraphAppendingTracer(node.graph)): Proxied {
  return proxyOf(node, tracer)
}

/** What `fx.Proxy` is: it makes traced values, and `value instanceof fx.Proxy` says whether something is one. */
export interface ProxyConstructor {
  new (node: Node, tracer?: ProxyTracer): Proxied
  [Symbol.hasInstance](value: unknown): value is Proxied
}

class TracedValue {
  constructor(node: Node, tracer?: ProxyTracer) {
    return makeProxy(node, tracer) as unknown as TracedValue
  }

  static [Symbol.hasInstance](value: unknown): boolean {
    return isProxy(value)
  }
}

/** PyTorch's torch.fx.Proxy: `new fx.Proxy(node, tracer)` is `fx.makeProxy(node, tracer)`. */
export const Proxy: ProxyConstructor = TracedValue as unknown as ProxyConstructor
