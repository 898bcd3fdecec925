// Checks that a graph is well formed, and that the module that owns it has what its nodes refer to.
import { Module, ownAttribute, splitPath } from '../../module/index.ts'
import { isParameter } from '../../protocol/index.ts'
import { GraphError } from './errors.ts'
import { OPCODES } from './node.ts'
import type { CallModuleNode, GetAttrNode, NodeGraph, OwningModule } from './node.ts'

/** Throws GraphError for the first rule that is broken. Warns about get_attr nodes that read anything but a module, parameter or buffer. */
export function lintGraph(graph: NodeGraph): void {
  const names = new Set<string>()
  const nodes = graph.numberNodes()
  for (const node of nodes) {
    if (!OPCODES.has(node.op)) throw new GraphError(`Node ${node.name} had unknown opcode ${node.op}!`)
    const quoted = (): string => `Node '${node.name}'`
    if (node.graph !== graph) throw new GraphError(`${quoted()} does not belong to this Graph!`)
    if (!graph.isListed(node)) throw new GraphError(`${quoted()} is not added to the side table`)
    for (const input of node.allInputNodes) {
      const wrong =
        input.graph !== graph
          ? 'does not belong to this Graph, but was used as an argument! If you are copying nodes from another graph, make sure to use ``argTransform`` on nodeCopy() to remap values'
          : input.position >= node.position || nodes[input.position] !== input
            ? 'was used before it has been defined! Please check that Nodes in the graph are topologically ordered'
            : null
      if (wrong !== null) throw new GraphError(`Argument '${input.name}' of ${quoted()} ${wrong}\n${String(graph)}`)
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

/** The number of such warnings that one lint prints; the rest are only counted. */
const MAX_WARNINGS = 5

function lintTargets(graph: NodeGraph, module: OwningModule): void {
  let warnings = 0
  for (const node of referringNodes(graph)) {
    const path = node.target
    const parts = path.split('.')
    let owner: unknown = module
    for (const [i, part] of parts.entries()) {
      const place = `Node ${node.name} target ${path}`
      const seen = parts.slice(0, i).join('.')
      const value = ownAttribute(owner, part)
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

/** The nodes that refer to an attribute of the owning module, in order. Their `target` is its path. */
export function* referringNodes(graph: NodeGraph): Generator<GetAttrNode | CallModuleNode> {
  for (const node of graph.nodes) if (node.op === 'get_attr' || node.op === 'call_module') yield node
}

/** Whether an attribute is part of its owner's state: a module, a parameter or a registered buffer. Null counts, because it may become any of these. */
function isState(owner: unknown, name: string, value: unknown): boolean {
  if (value === null || value instanceof Module || isParameter(value)) return true
  return owner instanceof Module && owner.hasBuffer(name)
}

/** Warns if the module lacks what a new node refers to. That is allowed, because it may be added later. */
export function warnMissing(module: OwningModule, op: 'get_attr' | 'call_module', path: string): void {
  const [ownerPath, name] = splitPath(path)
  const owner = ownerPath === '' ? module : module.attribute(ownerPath)
  const value = module.attribute(path)
  if (op === 'call_module' ? value instanceof Module : value !== undefined && isState(owner, name, value)) return
  if (op === 'get_attr' && !(owner instanceof Module)) console.warn(`Failed to fetch module ${ownerPath}!`)
  const others = op === 'call_module' ? '' : ', registerParameter to add the necessary Parameter, or registerBuffer to add the necessary buffer'
  console.warn(
    `Attempted to insert a ${op} Node with no underlying reference in the owning GraphModule! Call GraphModule.addSubmodule to add the necessary submodule${others} ('${path}').`,
  )
}
