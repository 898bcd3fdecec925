// What a profile says of the nodes of graphs: those of GraphModules, which ran node by node, and those of compiled functions, by the kernels that computed them.
import type { GraphCosts, NodeCost } from '../../fx/viewer/index.ts'
import type { ProfileEvent } from './event.ts'

type Costs = { -readonly [K in keyof NodeCost]: NodeCost[K] }

/** The costs of the nodes of each graph, in the order in which the graphs first ran. */
export function graphCosts(events: readonly ProfileEvent[]): readonly GraphCosts[] {
  const graphs = new Map<string, Map<string, Costs>>()
  const add = (graph: string, node: string, kernel: string | null, cost: Omit<NodeCost, 'calls' | 'kernel'>): void => {
    let nodes = graphs.get(graph)
    if (nodes === undefined) graphs.set(graph, (nodes = new Map<string, Costs>()))
    const known = nodes.get(node)
    if (known === undefined) return void nodes.set(node, { calls: 1, ...cost, kernel })
    known.calls++
    known.time += cost.time
    known.flops = (known.flops ?? 0) + (cost.flops ?? 0)
    known.bytes = (known.bytes ?? 0) + (cost.bytes ?? 0)
  }
  const insides = insidesOf(events)
  for (const [position, { kind, name, graph, nodes, engine, start, end, self }] of events.entries()) {
    const { flops = 0, bytes = 0 } = insides.get(position) ?? {}
    if (graph === null) continue
    if (kind === 'node') add(graph, name, null, { time: self, flops, bytes })
    else
      for (const [i, node] of nodes.entries()) {
        // A template's first node is the product or convolution; the others are fused into its end.
        const share = engine === 'template' ? Number(i === 0) : 1 / nodes.length
        const whole = i === 0 ? { flops, bytes } : { flops: 0, bytes: 0 }
        add(graph, node, nodes.length > 1 ? name : null, { time: share * (end - start), ...whole })
      }
  }
  return [...graphs].map(([graph, nodes]) => ({
    graph,
    totalTime: [...nodes.values()].reduce((sum, { time }) => sum + time, 0),
    nodes: Object.fromEntries(nodes),
  }))
}

/** FLOPs and bytes of the operators inside of each node and kernel, with its own. */
function insidesOf(events: readonly ProfileEvent[]): ReadonlyMap<number, { readonly flops: number; readonly bytes: number }> {
  const insides = new Map<number, { flops: number; bytes: number }>()
  for (const [position, event] of events.entries()) {
    let at: number | null = position
    while (at !== null) {
      const around: ProfileEvent | undefined = events[at]
      if (around === undefined) break
      if (around.kind === 'node' || around.kind === 'kernel') {
        const inside = insides.get(at) ?? { flops: 0, bytes: 0 }
        insides.set(at, { flops: inside.flops + event.flops, bytes: inside.bytes + event.bytes })
        break
      }
      at = around.parent
    }
  }
  return insides
}
