// A graph as a Mermaid flowchart, for Markdown.
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { checkCount, checkOptions } from '../../protocol/index.ts'
import type { GraphModule } from '../run/graphModule.ts'
import { graphView } from './graphView.ts'
import type { GraphView, ViewNode } from './view.ts'

/** Options of {@link mermaid}. */
export interface MermaidOptions {
  /** Top to bottom or left to right. Default 'TB'. */
  readonly direction?: 'TB' | 'LR'
  /** Draw boxes around the nodes of each module call. Default true. */
  readonly modules?: boolean
}

const SHAPES: Readonly<Record<string, readonly [string, string]>> = {
  placeholder: ['([', '])'],
  output: ['([', '])'],
  get_attr: ['[(', ')]'],
  call_module: ['[[', ']]'],
}

/** The text of a Mermaid flowchart of the graph. */
export function mermaid(gm: GraphModule, options: MermaidOptions = {}): string {
  checkCount('mermaid', arguments, 2)
  checkGraphModule('mermaid', gm)
  checkOptions('mermaid', options, { direction: true, modules: 'boolean' })
  const view = graphView(gm, gm.className, null, { statistics: false })
  const ids = new Map(view.nodes.map((node, i) => [node.name, `n${i}`]))
  return [`flowchart ${options.direction ?? 'TB'}`, ...nodeLines(view, ids, options.modules ?? true), ...edgeLines(view, ids)].join('\n')
}

/** The nodes in order. Consecutive nodes of one module call are in a subgraph. */
function nodeLines(view: GraphView, ids: ReadonlyMap<string, string>, modules: boolean): string[] {
  const lines: string[] = []
  const open: string[] = []
  let boxes = 0
  const close = (depth: number): void => {
    while (open.length > depth) {
      open.pop()
      lines.push(`${'  '.repeat(open.length + 1)}end`)
    }
  }
  for (const node of view.nodes) {
    const path = modules ? node.modules : []
    let depth = 0
    while (depth < path.length && open[depth] === path[depth]?.path) depth++
    close(depth)
    for (const module of path.slice(depth)) {
      lines.push(`${'  '.repeat(open.length + 1)}subgraph m${boxes++}["${text(`${module.path} ${module.className}`)}"]`)
      open.push(module.path)
    }
    lines.push(`${'  '.repeat(open.length + 1)}${box(node, ids.get(node.name) ?? '')}`)
  }
  close(0)
  return lines
}

function box(node: ViewNode, id: string): string {
  const [left, right] = SHAPES[node.op] ?? ['[', ']']
  const parts = [
    `%${node.name}`,
    ...(node.op === 'placeholder' || node.op === 'output' ? [] : [node.target]),
    ...(node.spec === null ? [] : [node.spec]),
  ]
  return `${id}${left}"${parts.map(text).join('<br/>')}"${right}`
}

const edgeLines = (view: GraphView, ids: ReadonlyMap<string, string>): string[] =>
  view.nodes.flatMap((node) => node.inputs.map((input) => `  ${ids.get(input)} --> ${ids.get(node.name)}`))

/** Escapes quotes and angle brackets as entities of Mermaid. */
const text = (value: string): string => value.replaceAll('&', '#amp;').replaceAll('"', '#quot;').replaceAll('<', '#lt;').replaceAll('>', '#gt;')
