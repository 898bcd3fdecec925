// A graph as data for viewers, and, for two graphs, what changed between them.
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { checkCount, checkOptions } from '../../protocol/index.ts'
import type { Node } from '../graph/node.ts'
import type { GraphModule } from '../run/graphModule.ts'
import { formatArg, nodeTargetText } from '../text/format.ts'
import { TargetReader, viewNode } from './nodeFacts.ts'
import type { Change, GraphView, TargetFacts, ViewLine } from './view.ts'

/** Options of {@link graphView}. */
export interface GraphViewOptions {
  /** Read the values of parameters and buffers, for their statistics. Default true. */
  readonly statistics?: boolean
}

/**
 * What to show for a graph; with `before`, also what changed since then. Nodes are matched by name. A node that reads other values only because the ones that it read
 * were removed is not changed.
 */
export function graphView(gm: GraphModule, name: string, before: GraphModule | null = null, options: GraphViewOptions = {}): GraphView {
  checkCount('graphView', arguments, 4)
  checkGraphModule('graphView', gm)
  if (before !== null) checkGraphModule('graphView', before, 'before')
  checkOptions('graphView', options, { statistics: 'boolean' })
  const readValues = options.statistics ?? true
  const facts = new TargetReader(gm, readValues)
  if (before === null) return plainView(gm, name, (node) => facts.of(node))
  const oldFacts = new TargetReader(before, readValues)
  const old = new Map([...before.graph.nodes].map((n) => [n.name, n]))
  const now = new Set([...gm.graph.nodes].map((n) => n.name))
  const views = [...gm.graph.nodes].map((n) => {
    const was = old.get(n.name)
    if (was === undefined) return viewNode(n, facts.of(n), 'added', null)
    const isSame = isSameCall(was, n, now) && isSameTarget(oldFacts.of(was), facts.of(n))
    return isSame ? viewNode(n, facts.of(n), 'same', null) : viewNode(n, facts.of(n), 'changed', lineOf(was, oldFacts.of(was)))
  })
  const changes = new Map(views.map((v) => [v.name, v.change]))
  const gone = [...before.graph.nodes].map((n) => ({
    name: n.name,
    removed: now.has(n.name) ? null : viewNode(n, oldFacts.of(n), 'removed', null),
  }))
  const nodes = withRemoved(views, (v) => v.name, gone)
  const oldCode = codeOf(before, new Map()).map((line) => ({
    name: line.node ?? '',
    removed: line.node === null || now.has(line.node) ? null : { ...line, change: 'removed' as const },
  }))
  return { name, nodes, code: withRemoved(codeOf(gm, changes), (l) => l.node ?? '', oldCode), isDiff: true }
}

/** What to show for a graph, with what is known of the targets of its nodes. */
export const plainView = (gm: GraphModule, name: string, factsOf: (node: Node) => TargetFacts): GraphView => ({
  name,
  nodes: [...gm.graph.nodes].map((node) => viewNode(node, factsOf(node), 'same', null)),
  code: codeOf(gm, new Map()),
  isDiff: false,
})

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

/** A node's line as it is printed, without its number of users; for a layer also its configuration. */
function lineOf(node: Node, facts: TargetFacts): string {
  const line = callText(node, (n) => `%${n.name}`)
  const config = Object.entries(facts.config).map(([key, value]) => `${key}: ${value}`)
  return config.length === 0 ? line : `${line}\n${facts.type}(${config.join(', ')})`
}

const callText = (node: Node, nameOf: (input: Node) => string): string =>
  `${node.op}[${nodeTargetText(node)}](${[
    ...node.args.map((a) => formatArg(a, nameOf)),
    ...Object.entries(node.kwargs).map(([k, v]) => `${k}: ${formatArg(v, nameOf)}`),
  ].join(', ')})`

/** Whether a node is the same call as before: what it calls, and its arguments, but that a node which was removed may be replaced by any. */
function isSameCall(was: Node, node: Node, now: ReadonlySet<string>): boolean {
  const [inputsThen, inputs]: [string[], string[]] = [[], []]
  const collect = (list: string[]) => (input: Node) => {
    list.push(input.name)
    return '%'
  }
  if (callText(was, collect(inputsThen)) !== callText(node, collect(inputs))) return false
  return inputsThen.every((name, i) => name === inputs[i] || !now.has(name))
}

/** Whether what a node calls is configured alike and has tensors of the same shapes and dtypes. Values are not compared: training changes all of them. */
function isSameTarget(was: TargetFacts, now: TargetFacts): boolean {
  const text = ({ type, config, tensors }: TargetFacts): string =>
    JSON.stringify([type, config, tensors.map(({ name, kind, shape, dtype }) => [name, kind, shape, dtype])])
  return was === now || text(was) === text(now)
}

function codeOf(gm: GraphModule, changes: ReadonlyMap<string, Change>): ViewLine[] {
  const nodes = gm.lineMap
  return gm.code.split('\n').map((text, i) => {
    const node = nodes.get(i + 1)?.name ?? null
    return { text, node, change: (node === null ? undefined : changes.get(node)) ?? 'same' }
  })
}
