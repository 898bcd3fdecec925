// FxGraphDrawer: a graph as a picture, in Graphviz' DOT language, as PyTorch's drawer writes it.
import { LEAF_MODULE, isParameter, targetInfo } from '../../protocol/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import { formatArg, pyRepr, nodeTargetText } from '../format.ts'
import { GraphModule } from '../graphModule.ts'
import { snakeCase } from '../namespace.ts'
import type { Argument, Node } from '../node.ts'
import { originCode, originOf } from '../origin.ts'
import { tuple } from '../tuple.ts'
import { DotGraph } from './dot.ts'
import { md5Prefix } from './md5.ts'

const COLORS: Readonly<Record<string, string>> = {
  placeholder: '"AliceBlue"',
  call_module: 'LemonChiffon1',
  get_attr: 'LightGrey',
  output: 'PowderBlue',
}
const PALETTE = [
  'CadetBlue1',
  'Coral',
  'DarkOliveGreen1',
  'DarkSeaGreen1',
  'GhostWhite',
  'Khaki1',
  'LavenderBlush1',
  'LightSkyBlue',
  'MistyRose1',
  'MistyRose2',
  'PaleTurquoise2',
  'PeachPuff1',
  'Salmon',
  'Thistle1',
  'Thistle3',
  'Wheat1',
] as const
/** Longer lists of arguments are cut. */
const MAX_LIST = 8

export interface GraphDrawerOptions {
  /** Leave out get_attr nodes. Default false. */
  readonly ignoreGetattr?: boolean
  /** Leave out the parameters and buffers of called modules. Default false. */
  readonly ignoreParametersAndBuffers?: boolean
  /** Leave out arguments that are nodes, which the edges show. Default true. */
  readonly skipNodeNamesInArgs?: boolean
  /** Write the user's file, line and code into each node. Default false. */
  readonly parseStackTrace?: boolean
  /** Graphviz' shape of nodes. Default 'record'. */
  readonly dotGraphShape?: string
  /** Fill colour of a node, a name of Graphviz. Default: by what the node does, as PyTorch has it. */
  readonly colorOf?: (node: Node) => string
}

/**
 * Draws a GraphModule and the GraphModules that it calls; PyTorch's torch.fx.passes.graph_drawer.FxGraphDrawer.
 * `renderSvg` (tensorfx/fx/viewer) makes a picture of the text; any Graphviz does.
 */
export class FxGraphDrawer {
  readonly #options: Required<GraphDrawerOptions>
  readonly #name: string
  readonly #graphs = new Map<string, string>()

  constructor(gm: GraphModule, name: string, options: GraphDrawerOptions = {}) {
    this.#name = name
    this.#options = {
      ignoreGetattr: false,
      ignoreParametersAndBuffers: false,
      skipNodeNamesInArgs: true,
      parseStackTrace: false,
      dotGraphShape: 'record',
      colorOf: usualColor,
      ...options,
    }
    this.#graphs.set(name, this.#draw(gm, name))
    for (const node of gm.graph.nodes) {
      if (node.op !== 'call_module') continue
      const child = gm.attribute(node.target as string)
      if (child instanceof GraphModule) this.#graphs.set(`${name}_${node.target as string}`, this.#draw(child, `${name}_${node.target as string}`))
    }
  }

  /** DOT text of the module, or of one of its children by its path. */
  getDotGraph(submodule: string | null = null): string {
    return submodule === null ? this.getMainDotGraph() : this.getSubmodDotGraph(submodule)
  }

  getMainDotGraph(): string {
    return this.#graphs.get(this.#name) as string
  }

  /** DOT text of the GraphModule at that path. Throws ArgumentError when there is none. */
  getSubmodDotGraph(submodule: string): string {
    const graph = this.#graphs.get(`${this.#name}_${submodule}`)
    if (graph === undefined)
      throw new ArgumentError(
        `FxGraphDrawer: '${submodule}' is not a GraphModule that the graph calls; drawn are ${[...this.#graphs.keys()].join(', ')}.`,
      )
    return graph
  }

  /** All drawn graphs by name: the module's own, and `name_path` for the GraphModules that it calls. */
  getAllDotGraphs(): ReadonlyMap<string, string> {
    return this.#graphs
  }

  #draw(gm: GraphModule, name: string): string {
    const { ignoreGetattr, ignoreParametersAndBuffers, dotGraphShape, colorOf } = this.#options
    const dot = new DotGraph(name)
    const nodes = [...gm.graph.nodes].filter((node) => !(ignoreGetattr && node.op === 'get_attr'))
    const drawn = new Set(nodes)
    for (const node of nodes) {
      dot.node(node.name, [
        ['label', quoted(this.#label(gm, node))],
        ['shape', dotGraphShape],
        ['fillcolor', colorOf(node)],
        ['style', '"filled,rounded"'],
        ['fontcolor', '"#000000"'],
      ])
      if (node.op !== 'call_module' || ignoreParametersAndBuffers) continue
      const module = gm.attribute(node.target as string)
      if (module instanceof Module && !(module instanceof GraphModule)) drawState(dot, node, module)
    }
    for (const node of nodes) for (const user of node.users) if (drawn.has(user)) dot.edge(node.name, user.name)
    return String(dot)
  }

  #label(gm: GraphModule, node: Node): string {
    let label = `{name=%${node.name}|op_code=${node.op}\\n`
    if (node.op === 'call_module') {
      const module = gm.attribute(node.target as string) as Module
      label += `\\n${typeName(module)}\\n|${constantsOf(module).join('\\n')}\\n`
    } else {
      label += `|target=${escapeBraces(nodeTargetText(node).replace(/^builtins\./, ''))}\\n`
      label += this.#arguments('args=(', ')', node.args.map(formatShort))
      label += this.#arguments(
        'kwargs={',
        '}',
        Object.entries(node.kwargs).map(([key, value]) => `${snakeCase(key)}: ${formatShort(value)}`),
      )
      label += `|num_users=${node.users.size}\\n`
    }
    label += metaLabel(node.meta['tensor_meta'])
    const origin = this.#options.parseStackTrace ? originOf(node) : null
    if (origin !== null) label += `|file=${origin.file.split(/[/\\]/).slice(-2).join('/')}:${origin.line} ${escapeRecord(originCode(node))}\\n`
    return `${label}}`
  }

  #arguments(open: string, close: string, texts: readonly string[]): string {
    const shown = this.#options.skipNodeNamesInArgs ? texts.filter((text) => !text.includes('%')) : texts
    if (shown.length === 0) return ''
    const [lines, end] = shown.length === 1 ? ['', ''] : ['\\l', '\\n']
    return `|${escapeBraces(open)}${lines}${escapeBraces(shown.join(`,${end}`))},${end}${escapeBraces(close)}${lines}`
  }
}

/** The parameters and buffers of a called module, with edges to its node. */
function drawState(dot: DotGraph, node: Node, module: Module): void {
  for (const [path, tensor] of [...module.namedParameters(), ...module.namedBuffers()]) {
    const name = `${node.name}.${path}`
    // PyTorch's operator precedence: a buffer's label has no name.
    const head = isParameter(tensor) ? `${name}|op_code=get_parameter` : 'buffer\\l'
    dot.node(name, [
      ['label', quoted(`{${head}torch.${tensor.dtype}[${tensor.shape.join(', ')}]\\n}`)],
      ['fillcolor', 'Salmon'],
      ['style', '"filled,rounded"'],
      ['fontcolor', '"#000000"'],
      ['shape', 'record'],
    ])
    dot.edge(name, node.name)
  }
}

/** The class as its user writes it: layers of the library by their full name. */
function typeName(module: Module): string {
  const { name } = module.constructor
  return escapeBraces((module as { [LEAF_MODULE]?: true })[LEAF_MODULE] === true ? `torch.nn.${name}` : name)
}

/** `in_features: 4` for each name in the class' list of constants; PyTorch's `__constants__`. */
function constantsOf(module: Module): string[] {
  const { constants } = module.constructor as { constants?: readonly string[] }
  return (constants ?? []).flatMap((name) => {
    const value = (module as unknown as Record<string, Argument>)[name.replace(/_(\w)/g, (_, c: string) => c.toUpperCase())]
    if (value === undefined) return []
    const text = typeof value === 'string' ? value : pyRepr(Array.isArray(value) ? tuple(...(value as Argument[])) : value)
    return [`${name}: ${escapeBraces(text)}`]
  })
}

function formatShort(value: Argument): string {
  if (!Array.isArray(value) || value.length <= MAX_LIST) return formatArg(value)
  const text = formatArg((value as Argument[]).slice(0, MAX_LIST))
  return `${text.slice(0, -1)}, ...[total_len=${value.length}]${text.slice(-1)}`
}

/** What shapeProp has recorded, tensor by tensor; values that are no tensors have no line. */
function metaLabel(meta: unknown): string {
  if (typeof meta !== 'object' || meta === null) return ''
  const { shape, dtype, strides, requiresGrad } = meta as { shape?: number[]; dtype?: string; strides?: number[]; requiresGrad?: boolean }
  if (shape === undefined || dtype === undefined) return Object.values(meta).map(metaLabel).join('')
  const lines = [`dtype=torch.${dtype}`, `shape=${pyRepr(tuple(...shape))}`, `requires_grad=${pyRepr(requiresGrad ?? false)}`]
  if (strides !== undefined) lines.push(`stride=${pyRepr(tuple(...strides))}`)
  return lines.map((line) => `|${line}\\n`).join('')
}

/** The same colour for the same target, in every graph and in PyTorch. */
function usualColor(node: Node): string {
  const known = COLORS[node.op]
  if (known !== undefined) return known
  const name = typeof node.target === 'function' ? (targetInfo(node.target)?.name ?? nodeTargetText(node)) : nodeTargetText(node)
  return PALETTE[md5Prefix(name) % PALETTE.length] as string
}

const escapeBraces = (text: string): string => text.replace(/[{}]/g, '\\$&')
const escapeRecord = (text: string): string => text.replace(/[{}|<>]/g, '\\$&')
const quoted = (text: string): string => `"${text.replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`
