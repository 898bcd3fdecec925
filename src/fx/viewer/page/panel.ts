// What is known of the selected node, with links to the nodes that it reads and that read it.
import { categoryOf, operation } from '../layout/boxes.ts'
import type { PageGraph, PageNode } from '../pageData.ts'
import { element } from './elements/dom.ts'
import { sizeText } from '../../../protocol/sizeText.ts'
import { timeText } from '../../../protocol/timeText.ts'
import { staticCost } from './cost.ts'
import type { Heat } from './cost.ts'
import { tensorView } from './histogram.ts'

/** More links than these are counted. */
const MOST_LINKS = 60
const MOST_TENSORS = 24

export interface PanelContext {
  readonly graph: PageGraph
  /** Times from a profile; null without one. */
  readonly heat: Heat | null
  /** Selects a node and shows it. */
  readonly go: (index: number) => void
}

/** The elements that describe a node. */
export function describe(node: PageNode, { graph, heat, go }: PanelContext): HTMLElement[] {
  const link = (index: number): HTMLElement => {
    const other = graph.nodes[index]
    const a = element('button', { class: `link ${other?.change ?? ''}`, type: 'button', 'data-link': other?.name ?? '' }, other?.name ?? '?')
    a.addEventListener('click', () => go(index))
    return a
  }
  const places = new Map(node.inputs.map((index) => [graph.nodes[index]?.name ?? '', index]))
  /** The text with the names of inputs as links. */
  const linked = (text: string): (HTMLElement | string)[] =>
    text.split(/(%[\w.]+)/).map((part) => {
      const place = part.startsWith('%') ? places.get(part.slice(1)) : undefined
      return place === undefined ? part : link(place)
    })
  const links = (list: readonly number[]): (HTMLElement | string)[] => [
    ...list.slice(0, MOST_LINKS).map(link),
    ...(list.length > MOST_LINKS ? [`and ${list.length - MOST_LINKS} more`] : []),
  ]
  const rows = (...entries: (readonly [string, readonly (HTMLElement | string)[]])[]): HTMLElement | null => {
    const filled = entries.filter(([, content]) => content.length > 0)
    return filled.length === 0
      ? null
      : element(
          'dl',
          {},
          filled.flatMap(([name, content]) => [element('dt', {}, name), element('dd', {}, content)]),
        )
  }
  const section = (title: string, ...content: (HTMLElement | null)[]): HTMLElement | null =>
    content.every((part) => part === null) ? null : element('section', {}, element('h3', {}, title), content)
  const inputShapes = node.inputs.map((index): readonly [HTMLElement, string] => [link(index), graph.nodes[index]?.spec ?? ''])
  const code = graph.code.filter((line) => line.node === node.index).map((line) => line.text.trim())
  const category = categoryOf(node)
  const parts = [
    element(
      'header',
      {},
      element('h2', {}, element('i', { style: `background: var(--category-${category})` }), operation(node)),
      element(
        'p',
        { class: 'sub' },
        element('code', {}, node.name),
        ` ${node.op}`,
        node.change === 'same' ? null : element('span', { class: `badge ${node.change}` }, node.change),
      ),
    ),
    node.was === null ? null : section('Before', element('pre', {}, node.was)),
    section('Configuration', rows(...Object.entries(node.config).map(([name, value]) => [name, [element('code', {}, value)]] as const))),
    section(
      'Call',
      rows(
        ['target', node.target === operation(node) ? [] : [element('code', {}, node.target)]],
        ...node.args.map((text, i) => [`args[${i}]`, [element('code', {}, linked(text))]] as const),
        ...node.kwargs.map(([name, text]) => [name, [element('code', {}, linked(text))]] as const),
      ),
    ),
    section(
      'Shapes',
      rows(
        [
          'in',
          inputShapes
            .filter(([, spec]) => spec !== '')
            .slice(0, MOST_LINKS)
            .map(([name, spec]) => element('div', { class: 'shape' }, name, element('code', {}, spec))),
        ],
        ['out', node.spec === null ? [] : [element('code', {}, node.spec)]],
      ),
    ),
    section('Cost', rows(...costRows(node, graph, heat).map(([name, text]) => [name, [element('code', {}, text)]] as const))),
    section(
      node.tensors.length === 1 ? 'Tensor' : 'Parameters and buffers',
      ...node.tensors.slice(0, MOST_TENSORS).map(tensorView),
      node.tensors.length > MOST_TENSORS ? element('p', { class: 'label' }, `and ${node.tensors.length - MOST_TENSORS} more`) : null,
    ),
    section('Users', node.users.length === 0 ? null : element('div', { class: 'links' }, links(node.users))),
    section('Module', node.modules.length === 0 ? null : element('p', {}, node.modules.map((m) => `${m.path} (${m.className})`).join(' › '))),
    section('Generated code', code.length === 0 ? null : element('pre', { id: 'line' }, code.join('\n'))),
    node.origin === null
      ? null
      : section(
          'Source',
          element('p', { class: 'place' }, `${node.origin.file}:${node.origin.line} in ${node.origin.fn}`),
          node.origin.code === '' ? null : element('pre', { id: 'origin' }, node.origin.code),
        ),
    node.stack === null ? null : element('details', {}, element('summary', {}, 'Stack'), element('pre', {}, node.stack)),
  ]
  return parts.filter((part) => part !== null)
}

/** What a node costs: by a profile, where there is one, and otherwise by its shapes. */
function costRows(node: PageNode, graph: PageGraph, heat: Heat | null): readonly (readonly [string, string])[] {
  const timed = heat?.of(node) ?? null
  const { flops, bytes } = timed ?? staticCost(node, graph)
  return [
    ...(timed === null || heat === null
      ? []
      : [
          ['time', `${timeText(timed.time)}, ${Math.round(100 * heat.share(timed))}%`] as const,
          ['calls', String(timed.calls)] as const,
          ...(timed.kernel === null ? [] : [['kernel', timed.kernel] as const]),
        ]),
    ...(flops === null ? [] : [['FLOPs', flops.toLocaleString('en-US')] as const]),
    ...(bytes === null ? [] : [['bytes', sizeText(bytes)] as const]),
  ]
}
