// Provenance of nodes across passes: while a pass processes a node, the nodes that it creates inherit the meta of that node, and `from_node` records the chain
// of origins. PyTorch's torch.fx.traceback.
import { checkCallable, checkCount } from '../../protocol/index.ts'
import { checkGraph, checkNode } from '../../protocol/graphChecks.ts'
import type { CapturedStack } from '../../provenance/index.ts'
import type { Graph } from './graph.ts'
import { targetText } from './node.ts'
import type { Meta, Node } from './node.ts'

/** What a pass did to a node. */
export type NodeSourceAction = 'create' | 'replace'

/** An origin of a node: a node of an earlier graph, the pass that replaced it, and its own origins. */
export class NodeSource {
  readonly passName: string
  readonly action: readonly NodeSourceAction[]
  readonly name: string
  readonly target: string
  readonly graphId: string
  readonly fromNode: readonly NodeSource[]

  constructor(node: Node | null, passName = '', action: NodeSourceAction | readonly NodeSourceAction[] = []) {
    if (node !== null) checkNode('NodeSource', node)
    this.passName = passName
    this.action = typeof action === 'string' ? [action] : action
    this.name = node?.name ?? ''
    this.target = node === null ? '' : targetText(node.target)
    this.graphId = node?.graph.label ?? ''
    // Sources are immutable, so chains can share their tails.
    this.fromNode = node === null ? [] : sourcesOf(node)
  }

  /** The chain as text, one origin per line, indented by depth; at most ten levels. PyTorch's print_readable. */
  toString(depth = 0): string {
    if (depth > 9) return ''
    const own = `${'    '.repeat(depth)}(name=${this.name}, pass_name=${this.passName}, action=${this.action.join('+')}, graph_id=${this.graphId})\n`
    return own + this.fromNode.map((source) => source.toString(depth + 1)).join('')
  }

  /** The chain as JSON data. PyTorch's to_dict. */
  toJSON(): NodeSourceJson {
    const { name, target, graphId, passName, action } = this
    return { name, target, graph_id: graphId, pass_name: passName, action: action.join('+'), from_node: this.fromNode.map((s) => s.toJSON()) }
  }
}

/** A {@link NodeSource} as JSON data. */
export interface NodeSourceJson {
  readonly name: string
  readonly target: string
  readonly graph_id: string
  readonly pass_name: string
  readonly action: string
  readonly from_node: readonly NodeSourceJson[]
}

/** The origins in a node's meta. */
function sourcesOf(node: Node): readonly NodeSource[] {
  const sources = node.meta['from_node']
  return Array.isArray(sources) ? sources.filter((source) => source instanceof NodeSource) : []
}

/** What new nodes inherit besides the stack trace. */
const INHERITED = [
  'nn_module_stack',
  'torch_fn',
  'source_fn_stack',
  'original_aten',
  'recompute',
  'ac_graph_id',
  'has_backward_hook',
  'from_node',
  'quantization_tag',
  '_numeric_debug_handle',
  'custom',
  'partitioner_tag',
] as const

let preserving = false
let current: Meta = {}

/** Runs `fn`; nodes created meanwhile inherit the current meta. PyTorch's preserve_node_meta. */
export function preserveNodeMeta<T>(fn: () => T): T {
  checkCallable('preserveNodeMeta', 'fn', fn)
  const before = [preserving, current] as const
  preserving = true
  current = { ...current }
  try {
    return fn()
  } finally {
    ;[preserving, current] = before
  }
}

/** Whether new nodes currently inherit meta. PyTorch's has_preserved_node_meta. */
export const hasPreservedNodeMeta = (): boolean => preserving

/** The meta that new nodes currently inherit. PyTorch's get_current_meta. */
export const getCurrentMeta = (): Readonly<Meta> => current

/** Runs `fn` with a node's meta as the current one, if {@link preserveNodeMeta} is active. PyTorch's set_current_meta. */
export function setCurrentMeta<T>(node: Node, passName: string, fn: () => T): T {
  checkNode('setCurrentMeta', node)
  checkCallable('setCurrentMeta', 'fn', fn)
  if (!preserving) return fn()
  const before = current
  current = { ...node.meta, from_node: [new NodeSource(node, passName, 'create')] }
  try {
    return fn()
  } finally {
    current = before
  }
}

/** Gives new nodes this stack trace, until the current meta changes. PyTorch's set_stack_trace. */
export function setStackTrace(stack: CapturedStack | string): void {
  if (preserving) current['stack_trace'] = stack
}

/** The current stack trace as an array of texts; empty if there is none. PyTorch's format_stack. */
export function formatStack(): string[] {
  const stack = current['stack_trace']
  return stack === undefined ? [] : [String(stack)]
}

/** Gives a new node the meta that it inherits. */
export function applyCurrentMeta(node: Node): void {
  if (!preserving) return
  if (current['stack_trace'] !== undefined) node.meta['stack_trace'] = current['stack_trace']
  for (const key of INHERITED) if (current[key] !== undefined) node.meta[key] = current[key]
}

/** The origins of all nodes of a graph as JSON data, by node name. PyTorch's get_graph_provenance_json. */
export function getGraphProvenanceJson(graph: Graph): Readonly<Record<string, readonly NodeSourceJson[]>> {
  checkCount('getGraphProvenanceJson', arguments, 1)
  checkGraph('getGraphProvenanceJson', graph)
  return Object.fromEntries([...graph.nodes].map((node) => [node.name, sourcesOf(node).map((s) => s.toJSON())]))
}
