// FxGraphDrawer: a graph as a picture, in Graphviz' DOT language.
import { isParameter } from '../../protocol/index.ts'
import { nodeSpec, specText } from '../annotation.ts'
import { formatArg, nodeTargetText } from '../format.ts'
import type { GraphModule } from '../graphModule.ts'
import type { Node } from '../node.ts'

const COLORS: Readonly<Record<string, string>> = {
  placeholder: 'AliceBlue',
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
]

export interface GraphDrawerOptions {
  /** Leave out get_attr nodes. Default false. */
  readonly ignoreGetattr?: boolean
}

/** Draws a GraphModule; PyTorch's torch.fx.passes.graph_drawer.FxGraphDrawer. */
export class FxGraphDrawer {
  readonly #gm: GraphModule
  readonly #name: string
  readonly #options: GraphDrawerOptions

  constructor(gm: GraphModule, name: string, options: GraphDrawerOptions = {}) {
    this.#gm = gm
    this.#name = name
    this.#options = options
  }

  /** The picture as DOT text. */
  getDotGraph(): string {
    const nodes = [...this.#gm.graph.nodes].filter((n) => !(this.#options.ignoreGetattr === true && n.op === 'get_attr'))
    const lines = [
      `digraph ${quote(this.#name)} {`,
      '  rankdir=TB;',
      '  node [shape=record, style="filled,rounded", fontname="Helvetica", fontsize=11];',
    ]
    for (const node of nodes) lines.push(`  ${quote(node.name)} [label=${quote(this.#label(node))}, fillcolor=${colorOf(node)}];`)
    for (const node of nodes)
      for (const input of node.allInputNodes) if (nodes.includes(input)) lines.push(`  ${quote(input.name)} -> ${quote(node.name)};`)
    return [...lines, '}'].join('\n')
  }

  #label(node: Node): string {
    const fields = [`name=%${node.name}`, `op_code=${node.op}`]
    if (node.op === 'call_module') {
      const module = this.#gm.attribute(node.target as string)
      fields.push(`target=${node.target as string}`, String(module).split('\n')[0] ?? '')
    } else if (node.op === 'get_attr')
      fields.push(`target=${node.target as string}`, isParameter(this.#gm.attribute(node.target as string)) ? 'parameter' : 'buffer')
    else if (node.op !== 'placeholder' && node.op !== 'output') {
      fields.push(`target=${nodeTargetText(node)}`)
      const literals = node.args.filter((a) => !(typeof a === 'object' && a !== null && 'op' in a))
      if (literals.length > 0) fields.push(`args=${literals.map((a) => formatArg(a)).join(', ')}`)
    }
    if (node.op !== 'output') fields.push(`num_users=${node.users.size}`)
    const spec = specText(nodeSpec(node))
    if (spec !== null) fields.push(spec)
    return `{${fields.map(escapeRecord).join('|')}}`
  }
}

const escapeRecord = (text: string): string => text.replace(/[{}|<>]/g, (c) => `\\${c}`)
const quote = (text: string): string => `"${text.replaceAll('"', '\\"')}"`

/** A stable color per target. */
function colorOf(node: Node): string {
  const known = COLORS[node.op]
  if (known !== undefined) return known
  let hash = 0
  for (const c of nodeTargetText(node)) hash = (Math.imul(hash, 31) + (c.codePointAt(0) as number)) >>> 0
  return PALETTE[hash % PALETTE.length] as string
}
