// The specification of a well-formed graph, checked.
import { Module } from '../module/index.ts'
import { GraphError } from './errors.ts'
import type { Graph, OwningModule } from './graph.ts'
import { OPCODES } from './node.ts'
import { isState } from './references.ts'

/** Throws GraphError on the first rule that does not hold. Warns of reads of attributes that are no state of the module. */
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
  if (graph.owningModule !== null) lintTargets(graph, graph.owningModule)
}

/** Warnings of one lint about attributes of unusual kinds, before they are only counted. */
const MAX_WARNINGS = 5

function lintTargets(graph: Graph, module: OwningModule): void {
  let warnings = 0
  for (const node of graph.nodes) {
    if (node.op !== 'get_attr' && node.op !== 'call_module') continue
    const path = node.target as string
    const parts = path.split('.')
    let owner: unknown = module
    for (const [i, part] of parts.entries()) {
      const place = `Node ${node.name} target ${path}`
      const seen = parts.slice(0, i).join('.')
      const value = (owner as Readonly<Record<string, unknown>> | null)?.[part]
      if (value === undefined) throw new GraphError(`${place} references nonexistent attribute ${part} of ${seen}`)
      if (node.op === 'call_module' && !(value instanceof Module)) throw new GraphError(`${place} ${part} of ${seen} does not reference an nn.Module`)
      if (node.op === 'get_attr' && !isState(owner, part, value) && ++warnings <= MAX_WARNINGS)
        console.warn(
          `${place} ${part} of ${seen} does not reference an nn.Module, nn.Parameter, or buffer, which is what 'get_attr' Nodes typically target`,
        )
      owner = value
    }
  }
  if (warnings > MAX_WARNINGS) console.warn(`Additional ${warnings - MAX_WARNINGS} warnings suppressed about get_attr references`)
}
