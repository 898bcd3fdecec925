// A graph as data for viewers: what to show for each node, the modules that nodes belong to, and, for two graphs, what changed between them.
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { checkCount, isFunction } from '../../protocol/index.ts'
import { annotation } from '../text/annotation.ts'
import { formatArg, nodeTargetText } from '../text/format.ts'
import type { GraphModule } from '../run/graphModule.ts'
import type { Node } from '../graph/node.ts'
import { originCode, originOf } from '../graph/origin.ts'

/** A module call in which a node was recorded. */
export interface ViewModule {
  /** The path of the module, `layer1.0`, followed by `@2` for its third call. */
  readonly path: string
  readonly className: string
}

/** How a node differs between two graphs; 'same' if there is only one. */
export type Change = 'same' | 'added' | 'removed' | 'changed'

/** What a viewer shows for a node. */
export interface ViewNode {
  readonly name: string
  readonly op: string
  readonly target: string
  /** The shape and dtype of its value, `f32[2, 3]`; null if no pass has recorded them. */
  readonly spec: string | null
  readonly args: readonly string[]
  readonly kwargs: Readonly<Record<string, string>>
  readonly inputs: readonly string[]
  readonly users: readonly string[]
  /** The module calls in which it was recorded, outermost first. A leaf module is a node, so it is not among them. */
  readonly modules: readonly ViewModule[]
  /** Where in the user's program it comes from; null if unknown. */
  readonly origin: { readonly file: string; readonly line: number; readonly fn: string; readonly code: string } | null
  /** The stack trace as text, innermost last; null if there is none. */
  readonly stack: string | null
  readonly change: Change
  /** For a changed node, its line in the earlier graph; otherwise null. */
  readonly was: string | null
}

/** A line of generated code. */
export interface ViewLine {
  readonly text: string
  /** The name of the node that it computes; null if there is none. */
  readonly node: string | null
  readonly change: Change
}

/** A graph, or the difference of two graphs. */
export interface GraphView {
  readonly name: string
  /** In graph order. Removed nodes are where they were in the earlier graph. */
  readonly nodes: readonly ViewNode[]
  readonly code: readonly ViewLine[]
  /** Whether this is the difference of two graphs. */
  readonly isDiff: boolean
}

/** What to show for a graph; with `before`, also what changed since then. Nodes are matched by name. */
export function graphView(gm: GraphModule, name: string, before: GraphModule | null = null): GraphView {
  checkCount('graphView', arguments, 3)
  checkGraphModule('graphView', gm)
  if (before !== null) checkGraphModule('graphView', before, 'before')
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

/** The later list, with each removed item of the earlier list inserted after the item that it followed there. */
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

/** A node's line without its number of users, which changes when other nodes change. */
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
  const modules = [...stack].flatMap(([path, value]): ViewModule[] => {
    const type: unknown = Array.isArray(value) ? value[1] : null
    return typeof path !== 'string' || path === '' ? [] : [{ path, className: isFunction(type) ? type.name : typeof type === 'string' ? type : '' }]
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
