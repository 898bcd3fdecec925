// `tensorfx graph`, `tensorfx view` and `tensorfx diff`: saved graphs as text, as pages, and compared.
import { existsSync, openAsBlob } from 'node:fs'
import { basename, extname } from 'node:path'
import { ArgumentError } from '../errors/index.ts'
import { GRAPH_KEY, readHeader } from '../formats/safetensors.ts'
import type { GraphModule } from '../fx/index.ts'
import { FxGraphDrawer } from '../fx/passes/dot/graphDrawer.ts'
import { graphToJson } from '../fx/text/json.ts'
import { filePage, graphPage, graphView, renderSvg } from '../fx/viewer/index.ts'
import { moduleOfGraph } from '../fx/viewer/open/graphFile.ts'
import type { GraphCosts, ViewNode } from '../fx/viewer/index.ts'
import { isPlainObject } from '../protocol/index.ts'
import { installCompile } from '../install/compile.ts'
import { withParts } from '../interop/fileSource.ts'
import type { Line, Output, Result } from './line.ts'
import { writePage } from './pages.ts'
import { formatOf, parsed } from './savedGraphs.ts'
import { TORCH_FILES } from './torchFiles.ts'
import { PLAIN, paint } from './terminal.ts'
import type { Terminal } from './terminal.ts'

/** The graph in a file, with its weights if the file has them. */
function read(path: string): GraphModule {
  installCompile()
  const { graph, root } = formatOf(path).read(path)
  return root ?? moduleOfGraph(graph)
}

/** What `graph` prints, by option. */
const FORMS: Readonly<Record<string, (gm: GraphModule, name: string) => string | Promise<string>>> = {
  '--text': (gm) => String(gm.graph),
  '--table': (gm) => gm.graph.printTabular({ print: false }),
  '--code': (gm) => gm.code,
  '--svg': (gm, name) => renderSvg(new FxGraphDrawer(gm, name).getDotGraph()),
  '--html': (gm, name) => graphPage(gm, { title: name }),
}

const one = (operands: readonly string[]): string => {
  const [path, second] = operands
  if (path === undefined || second !== undefined) throw new ArgumentError(`expected one saved graph, got ${operands.length}.`)
  return path
}

/** Runs `tensorfx graph`. */
export async function printGraph({ operands, options }: Line): Promise<Result> {
  const path = one(operands)
  const asked = Object.keys(FORMS).filter((name) => options.has(name))
  if (asked.length > 1) throw new ArgumentError(`${asked.join(' and ')} exclude each other; give one of them.`)
  const [form = '--text'] = asked
  const gm = read(path)
  const text = (await FORMS[form]?.(gm, basename(path))) ?? ''
  return { text: text.trimEnd(), code: 0, data: { file: path, form: form.slice(2), text, graph: graphToJson(gm.graph) } }
}

const isCosts = (value: unknown): value is GraphCosts =>
  isPlainObject(value) && 'nodes' in value && isPlainObject(value['nodes']) && typeof value['totalTime'] === 'number'

/** The costs in a file: of several graphs, those that name most of the graph's nodes. Throws ArgumentError if there are none. */
function costsIn(path: string, gm: GraphModule): GraphCosts {
  if (!existsSync(path)) throw new ArgumentError(`there is no file '${path}'.`)
  const read = parsed(path)
  const listed = isPlainObject(read) && Array.isArray(read['graphs']) ? read['graphs'] : [read].flat()
  const names = new Set([...gm.graph.nodes].map(({ name }) => name))
  const known = ({ nodes }: GraphCosts): number => Object.keys(nodes).filter((name) => names.has(name)).length
  const [best] = listed.filter(isCosts).toSorted((a, b) => known(b) - known(a))
  if (best === undefined || known(best) === 0)
    throw new ArgumentError(`'${path}' says nothing of this graph: expected JSON of graphCosts() of a profile, with nodes of the same names.`)
  return best
}

/** Whether a file has weights and no graph. */
async function isWeights(path: string): Promise<boolean> {
  if (TORCH_FILES.includes(extname(path))) return true
  if (extname(path) !== '.safetensors' || !existsSync(path)) return false
  const { metadata } = await withParts('view', path, readHeader)
  return !Object.hasOwn(metadata, GRAPH_KEY)
}

/** Where the page of a file is written, unless the line says it. */
function pageFor(path: string, { options }: Line): string {
  const bare = path.replace(/[\\/]+$/, '')
  return options.get('--out') ?? `${bare.slice(0, bare.length - extname(bare).length)}.html`
}

/** Writes the page of a file of weights. */
async function viewWeights(path: string, line: Line, { note }: Output): Promise<Result> {
  if (!existsSync(path)) throw new ArgumentError(`there is no file '${path}'.`)
  for (const option of ['--before', '--profile'])
    if (line.options.has(option)) throw new ArgumentError(`${option} is for graphs; '${path}' has weights only.`)
  const page = await filePage(basename(path), await openAsBlob(path))
  const out = pageFor(path, line)
  await writePage(out, page, line.options.has('--open') ? note : null)
  const [, count = ''] = /<span class="count">([^<]*)</.exec(page) ?? []
  return { text: `Wrote ${out}: ${count}`, code: 0, data: { file: path, page: out, weights: count } }
}

/** Runs `tensorfx view`. */
export async function viewGraph(line: Line, output: Output): Promise<Result> {
  const { operands, options } = line
  const path = one(operands)
  if (await isWeights(path)) return viewWeights(path, line, output)
  const before = options.get('--before')
  const gm = read(path)
  const profiled = options.get('--profile')
  const costs = profiled === undefined ? {} : { costs: costsIn(profiled, gm) }
  const page = graphPage(gm, { title: basename(path), ...costs, ...(before === undefined ? {} : { before: read(before) }) })
  const out = pageFor(path, line)
  await writePage(out, page, options.has('--open') ? output.note : null)
  return { text: `Wrote ${out}: ${gm.graph.nodes.length} nodes`, code: 0, data: { file: path, page: out, nodes: gm.graph.nodes.length } }
}

/** A node as the `was` of a changed one has it: its call, and the configuration of its layer. */
function lineOf({ op, target, args, kwargs, type, config }: ViewNode): string {
  const call = `${op}[${target}](${[...args, ...Object.entries(kwargs).map(([key, value]) => `${key}: ${value}`)].join(', ')})`
  const settings = Object.entries(config).map(([key, value]) => `${key}: ${value}`)
  return settings.length === 0 ? call : `${call} ${type}(${settings.join(', ')})`
}

/** Runs `tensorfx diff`. The exit code is 1 if the graphs differ. */
export async function diffGraphs({ operands }: Line, terminal: Terminal = PLAIN): Promise<Result> {
  const [a, b, third] = operands
  if (a === undefined || b === undefined || third !== undefined) throw new ArgumentError(`expected two saved graphs, got ${operands.length}.`)
  const [before, after] = [read(a), read(b)]
  const { nodes } = graphView(after, basename(b), before, { statistics: false })
  const changes = nodes
    .filter(({ change }) => change !== 'same')
    .map((node) => ({
      name: node.name,
      change: node.change,
      before: node.change === 'removed' ? lineOf(node) : (node.was?.replace('\n', ' ') ?? null),
      after: node.change === 'removed' ? null : lineOf(node),
    }))
  const count = (kind: string): string => `${changes.filter(({ change }) => change === kind).length} ${kind}`
  const text = [
    ...changes.flatMap(({ name, before: was, after: is }) => [
      ...(was === null ? [] : [paint(terminal, 'red', `- %${name} = ${was}`)]),
      ...(is === null ? [] : [paint(terminal, 'green', `+ %${name} = ${is}`)]),
    ]),
    changes.length === 0 ? 'The graphs are the same.' : ['added', 'removed', 'changed'].map(count).join(', '),
  ].join('\n')
  return { text, code: changes.length === 0 ? 0 : 1, data: { before: a, after: b, changes } }
}
