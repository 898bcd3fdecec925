// FxGraphDrawer: draws a graph in Graphviz' DOT language, exactly as PyTorch's drawer does.
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import { ArgumentError } from '../../../errors/index.ts'
import { Module, constantsOf, getAttribute, isLibraryLayer } from '../../../module/index.ts'
import { checkCount, checkOptions, isFunction, isObject, isParameter, snakeCase, targetInfo } from '../../../protocol/index.ts'
import { formatArg, pyRepr, nodeTargetText } from '../../text/format.ts'
import { GraphModule } from '../../run/graphModule.ts'
import type { Argument, Node } from '../../graph/node.ts'
import { originCode, originOf } from '../../graph/origin.ts'
import { tuple } from '../../graph/pythonValues.ts'
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
/** Longer lists in arguments are abbreviated. */
const MAX_LIST = 8

/** Options of {@link FxGraphDrawer}. */
export interface GraphDrawerOptions {
  /** Leave out get_attr nodes. Default false. */
  readonly ignoreGetattr?: boolean
  /** Leave out the parameters and buffers of called modules. Default false. */
  readonly ignoreParametersAndBuffers?: boolean
  /** Leave out arguments that are nodes, because the edges show them. Default true. */
  readonly skipNodeNamesInArgs?: boolean
  /** Show the user's file, line and code in each node. Default false. */
  readonly parseStackTrace?: boolean
  /** The Graphviz shape of nodes. Default 'record'. */
  readonly dotGraphShape?: string
  /** The fill colour of a node, as Graphviz names it. Default: PyTorch's colours, which depend on the op and the target. */
  readonly colorOf?: (node: Node) => string
}

/**
 * Draws a GraphModule and the GraphModules that it calls; PyTorch's torch.fx.passes.graph_drawer.FxGraphDrawer.
 * `renderSvg` (tensorfx/fx/viewer) or Graphviz itself renders the text.
 */
export class FxGraphDrawer {
  readonly #options: Required<GraphDrawerOptions>
  readonly #name: string
  readonly #graphs = new Map<string, string>()

  constructor(gm: GraphModule, name: string, options: GraphDrawerOptions = {}) {
    checkCount('FxGraphDrawer', arguments, 3)
    checkGraphModule('FxGraphDrawer', gm)
    checkOptions('FxGraphDrawer', options, {
      ignoreGetattr: 'boolean',
      ignoreParametersAndBuffers: 'boolean',
      skipNodeNamesInArgs: 'boolean',
      parseStackTrace: 'boolean',
      dotGraphShape: true,
      colorOf: true,
    })
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
      const child = gm.attribute(node.target)
      if (child instanceof GraphModule) this.#graphs.set(`${name}_${node.target}`, this.#draw(child, `${name}_${node.target}`))
    }
  }

  /** The DOT of the module, or of the GraphModule at a path. */
  getDotGraph(submodule: string | null = null): string {
    return submodule === null ? this.getMainDotGraph() : this.getSubmodDotGraph(submodule)
  }

  /** The DOT of the module. */
  getMainDotGraph(): string {
    return this.#graphs.get(this.#name) ?? ''
  }

  /** The DOT of the GraphModule at a path. Throws ArgumentError if the graph does not call one there. */
  getSubmodDotGraph(submodule: string): string {
    const graph = this.#graphs.get(`${this.#name}_${submodule}`)
    if (graph === undefined)
      throw new ArgumentError(
        `FxGraphDrawer: '${submodule}' is not a GraphModule that the graph calls; there are drawings of ${[...this.#graphs.keys()].join(', ')}.`,
      )
    return graph
  }

  /** All drawings by name: the name of the drawer for the module, and `name_path` for the GraphModules that it calls. */
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
      const module = gm.attribute(node.target)
      if (module instanceof Module && !(module instanceof GraphModule)) drawState(dot, node, module)
    }
    for (const node of nodes) for (const user of node.users) if (drawn.has(user)) dot.edge(node.name, user.name)
    return String(dot)
  }

  #label(gm: GraphModule, node: Node): string {
    let label = `{name=%${node.name}|op_code=${node.op}\\n`
    const module = node.op === 'call_module' ? gm.attribute(node.target) : null
    if (module instanceof Module) {
      label += `\\n${typeName(module)}\\n|${constantLines(module).join('\\n')}\\n`
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

/** Draws the parameters and buffers of a module, with edges to the node that calls it. */
function drawState(dot: DotGraph, node: Node, module: Module): void {
  for (const [path, tensor] of [...module.namedParameters(), ...module.namedBuffers()]) {
    const name = `${node.name}.${path}`
    // In PyTorch the label of a buffer has no name, because of operator precedence.
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

/** The name of a module's class; for a layer of the library, its full name. */
function typeName(module: Module): string {
  const { name } = module.constructor
  return escapeBraces(isLibraryLayer(module) ? `torch.nn.${name}` : name)
}

/** `in_features: 4` for each of the attributes that the class lists in `constants`. */
function constantLines(module: Module): string[] {
  return constantsOf(module).map(([name, value]) => {
    const text = typeof value === 'string' ? value : pyRepr(Array.isArray(value) ? tuple(...value) : value)
    return `${name}: ${escapeBraces(text)}`
  })
}

function formatShort(value: Argument): string {
  if (!Array.isArray(value) || value.length <= MAX_LIST) return formatArg(value)
  const text = formatArg(value.slice(0, MAX_LIST))
  return `${text.slice(0, -1)}, ...[total_len=${value.length}]${text.slice(-1)}`
}

/** The lines for what ShapeProp has recorded, tensor by tensor. Other values have no lines. */
function metaLabel(meta: unknown): string {
  if (!isObject(meta)) return ''
  if (!('shape' in meta && 'dtype' in meta && Array.isArray(meta.shape))) return Object.values(meta).map(metaLabel).join('')
  const requiresGrad = getAttribute(meta, 'requiresGrad') ?? false
  const strides = getAttribute(meta, 'strides')
  const lines = [`dtype=torch.${String(meta.dtype)}`, `shape=${pyRepr(tuple(...meta.shape))}`, `requires_grad=${pyRepr(requiresGrad)}`]
  if (Array.isArray(strides)) lines.push(`stride=${pyRepr(tuple(...strides))}`)
  return lines.map((line) => `|${line}\\n`).join('')
}

/** PyTorch's colour. Equal targets have the same colour in every graph. */
function usualColor(node: Node): string {
  const known = COLORS[node.op]
  if (known !== undefined) return known
  const name = isFunction(node.target) ? (targetInfo(node.target)?.name ?? nodeTargetText(node)) : nodeTargetText(node)
  return PALETTE[md5Prefix(name) % PALETTE.length] ?? PALETTE[0]
}

const escapeBraces = (text: string): string => text.replace(/[{}]/g, '\\$&')
const escapeRecord = (text: string): string => text.replace(/[{}|<>]/g, '\\$&')
const quoted = (text: string): string => `"${text.replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`
