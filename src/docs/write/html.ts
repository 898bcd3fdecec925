// Pages as HTML. Every page can be read without its script, which adds search, the choice of colours and buttons to copy.
import { DARK, LIGHT, properties } from '../../fx/viewer/theme.ts'
import { PAGE_STYLE } from '../generated/page.ts'
import type { Block, Inline, Page } from '../pages/page.ts'
import { highlight, highlightedLines } from './highlight.ts'
import type { Piece } from './highlight.ts'
import { addressOf } from './markdown.ts'

/** Text in HTML, quotes included. */
const escaped = (text: string): string => (MARK.test(text) ? text.replaceAll(MARKS, (mark) => REFERENCES.get(mark) ?? mark) : text)

const MARK = /[&<>"']/
const MARKS = /[&<>"']/g

const REFERENCES = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
])

/** Names of the project's own begin with none of these, so that styles cannot be confused. */
const coloured = ([kind, text]: Piece): string => (kind === '' ? escaped(text) : `<span class="t-${kind}">${escaped(text)}</span>`)

function inline(piece: Inline, from: string): string {
  if (typeof piece === 'string') return escaped(piece)
  if (piece.kind === 'code') return `<code>${escaped(piece.text)}</code>`
  const inner = piece.text.map((of) => inline(of, from)).join('')
  switch (piece.kind) {
    case 'strong':
      return `<strong>${inner}</strong>`
    case 'em':
      return `<em>${inner}</em>`
    case 'soft':
      return `<span class="soft">${inner}</span>`
    case 'anchor':
      return `<span id="${escaped(piece.id)}">${inner}</span>`
    case 'link':
      return `<a href="${escaped(addressOf(from, piece.to, '.html'))}">${inner}</a>`
  }
}

const line = (pieces: readonly Inline[], from: string): string => pieces.map((piece) => inline(piece, from)).join('')

function block(of: Block, from: string): string {
  switch (of.kind) {
    case 'heading': {
      const to = of.id === null ? '' : ` <a class="here" href="#${escaped(encodeURIComponent(of.id))}" aria-label="Link to this place">#</a>`
      return `<h${of.level}${of.id === null ? '' : ` id="${escaped(of.id)}"`}>${line(of.text, from)}${to}</h${of.level}>`
    }
    case 'text':
      return `<p>${line(of.text, from)}</p>`
    case 'code':
      return `<pre><code>${/^(?:[cm]?[jt]sx?|typescript|javascript|)$/.test(of.language) ? highlight(of.text).map(coloured).join('') : escaped(of.text)}</code></pre>`
    case 'source': {
      const rows = highlightedLines(of.text).map((pieces, i) => {
        const number = of.from + i
        return `<span class="line"${of.hasAnchors ? ` id="L${number}"` : ''}><i>${number}</i>${pieces.map(coloured).join('')}\n</span>`
      })
      return `<pre class="source"><code>${rows.join('')}</code></pre>`
    }
    case 'list': {
      const tag = of.isOrdered ? 'ol' : 'ul'
      const items = of.items.map((item) => {
        const [only] = item
        return `<li>${item.length === 1 && only?.kind === 'text' ? line(only.text, from) : item.map((inner) => block(inner, from)).join('\n')}</li>`
      })
      return `<${tag}>\n${items.join('\n')}\n</${tag}>`
    }
    case 'table': {
      const rows = of.rows.map((row) => `<tr>${row.map((cell) => `<td>${line(cell, from)}</td>`).join('')}</tr>`)
      return `<div class="table"><table><thead><tr>${of.head.map((cell) => `<th>${escaped(cell)}</th>`).join('')}</tr></thead><tbody>\n${rows.join('\n')}\n</tbody></table></div>`
    }
    case 'quote':
      return `<blockquote>${of.blocks.map((inner) => block(inner, from)).join('\n')}</blockquote>`
    case 'folded':
      return `<details><summary>${line(of.summary, from)}</summary>${of.blocks.map((inner) => block(inner, from)).join('\n')}</details>`
    case 'drawing':
      return `<div class="drawing">${of.svg}</div>`
  }
}

/** What all pages of a site share. */
export interface SiteFrame {
  readonly name: string
  /** The pages that every page leads to. */
  readonly menu: readonly { readonly text: string; readonly page: string }[]
  readonly generator: string
}

/** The places within a page, for its side. */
function outline(blocks: readonly Block[]): string {
  const places = blocks.flatMap((of) =>
    of.kind === 'heading' && of.id !== null && of.level <= 3 ? [{ level: of.level, id: of.id, text: plain(of.text) }] : [],
  )
  if (places.length < 3) return ''
  const items = places.map(({ level, id, text }) => `<a class="level-${level}" href="#${escaped(encodeURIComponent(id))}">${escaped(text)}</a>`)
  return `<nav class="outline" aria-label="On this page">${items.join('\n')}</nav>`
}

/** The text of some pieces. */
const plain = (pieces: readonly Inline[]): string =>
  pieces
    .map((piece) => (typeof piece === 'string' ? piece : piece.kind === 'code' ? piece.text : piece.kind === 'soft' ? '' : plain(piece.text)))
    .join('')
    .trim()

/** What a page has inside the frame of its site. */
export interface Framed {
  /** Its path, without `.html`. */
  readonly path: string
  readonly title: string
  /** HTML: the page without its frame. */
  readonly body: string
  /** HTML that is added to the head. */
  readonly head?: string
}

/** The frame of a page: head, menu, search and scripts. */
export function framedPage({ path, title, body, head = '' }: Framed, { name, menu }: SiteFrame): string {
  const to = (target: string): string => escaped(addressOf(path, { page: target }, '.html'))
  const file = (target: string): string => escaped(addressOf(path, { page: target }, ''))
  const up = path
    .split('/')
    .slice(1)
    .map(() => '../')
    .join('')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)} · ${escaped(name)}</title>
<link rel="stylesheet" href="${file('site.css')}">
${head}</head>
<body data-root="${escaped(up)}">
<header class="top"><a class="name" href="${to('index')}">${escaped(name)}</a>
<nav aria-label="Site">${menu.map(({ text, page: target }) => `<a href="${to(target)}"${target === path ? ' aria-current="page"' : ''}>${escaped(text)}</a>`).join('\n')}</nav>
<span class="find"><input id="search" type="search" placeholder="Search  /" aria-label="Search" autocomplete="off" spellcheck="false" hidden><span id="results" hidden></span></span>
<button type="button" id="colours" aria-label="Light or dark" hidden>◐</button></header>
${body}
<script src="${file('search.js')}" defer></script>
<script src="${file('site.js')}" defer></script>
</body>
</html>
`
}

/** The text of a page. */
export function htmlPage(page: Page, frame: SiteFrame): string {
  const { path, title, crumbs, blocks } = page
  const to = (target: string): string => escaped(addressOf(path, { page: target }, '.html'))
  const above = crumbs.map(({ text, page: target }) => `<a href="${to(target)}">${escaped(text)}</a>`).join(' <span class="soft">/</span> ')
  const side = outline(blocks)
  const body = `<div class="page${side === '' ? '' : ' with-side'}">
<main>
${above === '' ? '' : `<p class="crumbs">${above}</p>\n`}<h1>${escaped(title)}</h1>
${blocks.map((of) => block(of, path)).join('\n')}
<footer>${escaped(frame.generator)}</footer>
</main>
${side}
</div>`
  return framedPage({ path, title, body }, frame)
}

/** The style sheet of a site. The colours can be chosen, and otherwise follow the system. */
export const siteStyle = (): string =>
  `:root { color-scheme: light dark; ${properties(LIGHT)} }
@media (prefers-color-scheme: dark) { :root:not([data-colours='light']) { ${properties(DARK)} } }
:root[data-colours='light'] { color-scheme: light; }
:root[data-colours='dark'] { color-scheme: dark; ${properties(DARK)} }
${PAGE_STYLE}
`
