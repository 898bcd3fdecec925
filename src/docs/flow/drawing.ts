// Diagrams of a walk: SVG with a link for each function, and Mermaid for Markdown.
import { escapeHtml } from '../../fx/viewer/document.ts'
import { Layouts } from '../../fx/viewer/layout/layered.ts'
import { baseOf, moduleOf, nameOf } from '../model.ts'
import { groupBy } from '../pages/lookup.ts'
import type { Block } from '../pages/page.ts'
import type { Diagram } from './diagram.ts'

const [LETTER, HEIGHT] = [7.4, 42]

/** A diagram. `page` and `anchorOf` say where the card of a function is; functions of the main path are coloured. */
export function drawing({ ids, edges }: Diagram, main: readonly string[], page: string, anchorOf: (id: string) => string): Block {
  const place = new Map(ids.map((id, i) => [id, i]))
  const sizes = ids.map((id) => [Math.round(Math.max(nameOf(id).length, baseOf(moduleOf(id)).length) * LETTER) + 22, HEIGHT] as const)
  const layout = new Layouts().of({ sizes, edges: edges.map(({ from, to }) => [place.get(from) ?? 0, place.get(to) ?? 0] as const) })
  const at = (id: string): { readonly x: number; readonly y: number; readonly w: number } => {
    const i = place.get(id) ?? 0
    return { x: layout.x[i] ?? 0, y: layout.y[i] ?? 0, w: sizes[i]?.[0] ?? 0 }
  }
  const isMain = (id: string): boolean => main.includes(id)
  const boxes = ids.map((id) => {
    const { x, y, w } = at(id)
    const label = (dy: number, kind: string, text: string): string =>
      `<text x="${x + w / 2}" y="${y + dy}" text-anchor="middle"${kind}>${escapeHtml(text)}</text>`
    return `<a href="#${escapeHtml(encodeURIComponent(anchorOf(id)))}"><rect class="box${isMain(id) ? ' main' : ''}" x="${x}" y="${y}" width="${w}" height="${HEIGHT}" rx="6"/>${label(18, '', nameOf(id))}${label(33, ' class="group-name"', baseOf(moduleOf(id)))}</a>`
  })
  const lines = edges.map(({ from, to, isDirect }, i) => {
    const [a, b] = [at(from), at(to)]
    const isDown = b.y > a.y
    const start = [a.x + a.w / 2, isDown ? a.y + HEIGHT : a.y] as const
    const end = [b.x + b.w / 2, isDown ? b.y - 4 : b.y + HEIGHT + 4] as const
    const passes = layout.passes[i] ?? []
    const points = isDown ? passes.map((x, k) => [x, a.y + ((b.y - a.y) * (k + 1)) / (passes.length + 1) + HEIGHT / 2] as const) : []
    const path = [start, ...points, end].map(([x, y], k) => `${k === 0 ? 'M' : 'L'}${Math.round(x)} ${Math.round(y)}`).join(' ')
    const on = isMain(from) && main[main.indexOf(from) + 1] === to
    return `<path class="${[isDirect ? '' : 'dashed', on ? 'on-main' : ''].join(' ').trim()}" d="${path}" marker-end="url(#arrow)"/>`
  })
  const [w, h] = [layout.w + 8, layout.h + 8]
  const svg = `<svg width="${w}" height="${h}" viewBox="-4 -4 ${w} ${h}" role="img" aria-label="Calls from ${escapeHtml(nameOf(ids[0] ?? ''))}"><defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>${lines.join('')}${boxes.join('')}</svg>`
  return { kind: 'drawing', svg, mermaid: mermaidOf({ ids, edges }, isMain), targets: ids.map((id) => ({ page, anchor: anchorOf(id) })) }
}

function mermaidOf({ ids, edges }: Diagram, isMain: (id: string) => boolean): string {
  const key = new Map(ids.map((id, i) => [id, `n${i}`]))
  const text = (of: string): string =>
    of.replaceAll('#', '#35;').replaceAll('&', '#amp;').replaceAll('"', '#quot;').replaceAll('<', '#lt;').replaceAll('>', '#gt;')
  const groups = [...groupBy(ids, moduleOf)].map(([file, of], i) =>
    [
      `  subgraph f${i}["${text(file)}"]`,
      ...of.map((id) => `    ${key.get(id) ?? ''}["${text(nameOf(id))}"]${isMain(id) ? ':::main' : ''}`),
      '  end',
    ].join('\n'),
  )
  return [
    'graph TD',
    ...groups,
    ...edges.map(({ from, to, isDirect }) => `  ${key.get(from) ?? ''} ${isDirect ? '-->' : '-.->'} ${key.get(to) ?? ''}`),
    '  classDef main stroke-width:3px',
  ].join('\n')
}
