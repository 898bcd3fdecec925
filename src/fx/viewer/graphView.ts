// A graph as data for pictures: what a viewer shows of each node, the modules that nodes belong to, and, for two graphs, what changed from one to the other.
import { annotation } from '../annotation.ts'
import { formatArg, nodeTargetText } from '../format.ts'
import type { GraphModule } from '../graphModule.ts'
import type { Node } from '../node.ts'
import { originCode, originOf } from '../origin.ts'

/** A module call that a node was recorded in. */
export interface ViewModule {
  /** Path of the module, `layer1.0`; with `@2` behind it for its third call. */
  readonly path: string
  readonly className: string
}

/** How a node differs between two graphs; 'same' when there is only one. */
export type Change = 'same' | 'added' | 'removed' | 'changed'

/** What a viewer shows of a node. */
export interface ViewNode {
  readonly name: string
  readonly op: string
  readonly target: string
  /** `f32[2, 3]`, or null when no pass has recorded it. */
  readonly spec: string | null
  readonly args: readonly string[]
  readonly kwargs: Readonly<Record<string, string>>
  readonly inputs: readonly string[]
  readonly users: readonly string[]
  /** The modules that were being called, outermost first; a leaf module is a node, not one of them. */
  readonly modules: readonly ViewModule[]
  /** Where the user's program says it. */
  readonly origin: { readonly file: string; readonly line: number; readonly fn: string; readonly code: string } | null
  /** The recorded stack as text, innermost last. */
  readonly stack: string | null
  readonly change: Change
  /** A changed node's line in the earlier graph. */
  readonly was: string | null
}

/** A line of generated code. */
export interface ViewLine {
  readonly text: string
  /** The node that it computes, or null. */
  readonly node: string | null
  readonly change: Change
}

/** A graph, or two graphs laid over each other. */
export interface GraphView {
  readonly name: string
  /** In the graph's order; nodes that the later graph lacks stand where they were. */
  readonly nodes: readonly ViewNode[]
  readonly code: readonly ViewLine[]
  /** Whether this is the difference of two graphs. */
  readonly isDiff: boolean
}

/** What to show of a graph; with `before`, what has changed since then. Nodes are matched by their names. */
export function graphView(gm: GraphModule, name: string, before: GraphModule | null = null): GraphView {
  if (before === null) return { name, nodes: [...gm.graph.nodes].map((n) => viewNode(n, 'same', null)), code: codeOf(gm, new Map()), isDiff: false }
  const old = new Map([...before.graph.nodes].map((n) => [n.name, n]))
  const now = new Set([...gm.graph.nodes].map((n) => n.name))
  const views = [...gm.graph.nodes].map((n) => {
    const was = old.get(n.name)
    if (was === undefined) return viewNode(n, 'added', null)
    const [then, since] = [lineOf(was), lineOf(n)]
    return then === since ? viewNode(n, 'same', null) : viewNode(n, 'changed', then)
  })
  const changes = new Map(views.map((v) => [v.name, v.change]))
  const gone = [...before.graph.nodes].map((n) => ({ name: n.name, removed: now.has(n.name) ? null : viewNode(n, 'removed', null) }))
  const nodes = withRemoved(views, (v) => v.name, gone)
  const oldCode = codeOf(before, new Map()).map((line) => ({
    name: line.node ?? '',
    removed: line.node === null || now.has(line.node) ? null : { ...line, change: 'removed' as const },
  }))
  return { name, nodes, code: withRemoved(codeOf(gm, changes), (l) => l.node ?? '', oldCode), isDiff: true }
}

/** The later list; what only the earlier one has stands behind what it stood behind there. */
function withRemoved<T>(
  after: readonly T[],
  nameOf: (item: T) => string,
  before: readonly { readonly name: string; readonly removed: T | null }[],
): T[] {
  const behind = new Map<string, T[]>()
  let anchor = ''
  for (const { name, removed } of before) {
    if (removed === null) anchor = name === '' ? anchor : name
    else behind.set(anchor, [...(behind.get(anchor) ?? []), removed])
  }
  const first = after.findIndex((item) => nameOf(item) !== '')
  return after.flatMap((item, i) => {
    const name = nameOf(item)
    const start = i === first ? (behind.get('') ?? []) : []
    return [...start, item, ...(name === '' ? [] : (behind.get(name) ?? []))]
  })
}

/** A node's line without its number of users, which others change. */
const lineOf = (node: Node): string =>
  `${node.op}[${nodeTargetText(node)}](${[...node.args.map((a) => formatArg(a)), ...Object.entries(node.kwargs).map(([k, v]) => `${k}: ${formatArg(v)}`)].join(', ')})`

function viewNode(node: Node, change: Change, was: string | null): ViewNode {
  const origin = originOf(node)
  const trace = node.stackTrace
  return {
    name: node.name,
    op: node.op,
    target: nodeTargetText(node),
    spec: annotation(node),
    args: node.args.map((a) => formatArg(a)),
    kwargs: Object.fromEntries(Object.entries(node.kwargs).map(([k, v]) => [k, formatArg(v)])),
    inputs: node.allInputNodes.map((n) => n.name),
    users: [...node.users].map((n) => n.name),
    modules: modulesOf(node),
    origin: origin === null ? null : { file: origin.file, line: origin.line, fn: origin.fn, code: originCode(node) },
    stack: trace === null || trace === undefined ? null : String(trace),
    change,
    was,
  }
}

function modulesOf(node: Node): ViewModule[] {
  const stack = node.meta['nn_module_stack']
  if (!(stack instanceof Map)) return []
  const modules = [...(stack as Map<string, unknown>)].flatMap(([path, value]): ViewModule[] => {
    const type: unknown = Array.isArray(value) ? value[1] : null
    return path === '' ? [] : [{ path, className: typeof type === 'function' ? type.name : String(type ?? '') }]
  })
  if (node.op === 'call_module' && modules.at(-1)?.path.split('@')[0] === node.target) modules.pop()
  return modules
}

function codeOf(gm: GraphModule, changes: ReadonlyMap<string, Change>): ViewLine[] {
  const nodes = gm.lineMap
  return gm.code.split('\n').map((text, i) => {
    const node = nodes.get(i + 1)?.name ?? null
    return { text, node, change: (node === null ? undefined : changes.get(node)) ?? 'same' }
  })
}
