// The specification of a well-formed graph, checked.
import { Module } from '../module/index.ts'
import { GraphError } from './errors.ts'
import type { Graph } from './graph.ts'
import { OPCODES } from './node.ts'

/** Throws GraphError on the first rule that does not hold. */
export function lintGraph(graph: Graph): void {
  const names = new Set<string>()
  const nodes = graph.numberNodes()
  for (const node of nodes) {
    if (!OPCODES.has(node.op)) throw new GraphError(`Node ${node.name} had unknown opcode ${node.op}!`)
    if (node.graph !== graph) throw new GraphError(`Node '${node.name}' does not belong to this Graph!`)
    if (!graph.isListed(node)) throw new GraphError(`Node '${node.name}' is not added to the side table`)
    for (const input of node.allInputNodes) {
      if (input.graph !== graph) {
        throw new GraphError(
          `Argument '${input.name}' of Node '${node.name}' does not belong to this Graph, but was used as an argument! If you are copying nodes from another graph, make sure to use \`\`argTransform\`\` on nodeCopy() to remap values\n${String(graph)}`,
        )
      }
      if (input.position >= node.position || nodes[input.position] !== input) {
        throw new GraphError(
          `Argument '${input.name}' of Node '${node.name}' was used before it has been defined! Please check that Nodes in the graph are topologically ordered\n${String(graph)}`,
        )
      }
    }
    const expected = node.op === 'call_function' ? 'function' : 'string'
    if (typeof node.target !== expected) {
      throw new GraphError(`Node ${node.name} target ${String(node.target)} has type ${typeof node.target} but a ${expected} is expected`)
    }
    if (names.has(node.name)) throw new GraphError(`Node redefined name ${node.name}!`)
    names.add(node.name)
  }
  if (graph.owningModule !== null) lintTargets(graph)
}

function lintTargets(graph: Graph): void {
  for (const node of graph.nodes) {
    if (node.op !== 'get_attr' && node.op !== 'call_module') continue
    const path = node.target as string
    const parts = path.split('.')
    for (let i = 1; i <= parts.length; i++) {
      const prefix = parts.slice(0, i).join('.')
      const value = graph.owningModule?.attribute(prefix)
      if (value === undefined)
        throw new GraphError(
          `Node ${node.name} target ${path} references nonexistent attribute ${parts[i - 1] as string} of ${parts.slice(0, i - 1).join('.')}`,
        )
      if (node.op === 'call_module' && !(value instanceof Module))
        throw new GraphError(
          `Node ${node.name} target ${path} ${parts[i - 1] as string} of ${parts.slice(0, i - 1).join('.')} does not reference an nn.Module`,
        )
    }
  }
}
