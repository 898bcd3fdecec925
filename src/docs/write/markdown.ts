// Pages as Markdown. Text is escaped by character references, which every Markdown has, and fences are longer than any run of backticks in the code.
import type { Block, Inline, Page, Target } from '../pages/page.ts'

const SPECIAL = /[&<>{}|`*_[\]\\#~$]/g

/** Text that Markdown, HTML and template languages leave alone. */
export const escapeMarkdown = (text: string): string =>
  text
    .replaceAll(SPECIAL, (mark) => `&#${mark.codePointAt(0)};`)
    .replaceAll(
      /^(\s*)([-+]|\d+[.)])(?=\s)/gm,
      (_, space: string, mark: string) => `${space}${mark.slice(0, -1)}&#${mark.codePointAt(mark.length - 1)};`,
    )

/** A relative address from one page to another. Parts are written as addresses. */
export function addressOf(from: string, to: Target, end: string): string {
  if ('url' in to) return to.url
  const anchor = to.anchor === undefined ? '' : `#${encodeURIComponent(to.anchor)}`
  return to.page === from && anchor !== '' ? anchor : `${pathBetween(from, to.page)}${end}${anchor}`
}

/** The paths from the page that is being written, which leads to most others more than once. */
const paths = { from: '', to: new Map<string, string>() }

function pathBetween(from: string, to: string): string {
  if (paths.from !== from) {
    paths.from = from
    paths.to.clear()
  }
  const known = paths.to.get(to)
  if (known !== undefined) return known
  const [here, there] = [from.split('/').slice(0, -1), to.split('/')]
  let same = 0
  while (same < here.length && same < there.length - 1 && here[same] === there[same]) same++
  const path = [...here.slice(same).map(() => '..'), ...there.slice(same).map(encodeURIComponent)].join('/')
  paths.to.set(to, path)
  return path
}

/** A fence that the code does not contain. */
const fenceFor = (text: string): string => '`'.repeat(Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length)) + 1)

function inline(piece: Inline, from: string): string {
  if (typeof piece === 'string') return escapeMarkdown(piece)
  if (piece.kind === 'code') {
    const text = piece.text.replaceAll(/\s+/g, ' ')
    // Code spans cannot hold references, and end tables' cells at bars.
    if (/[|{]/.test(text) || text.trim() === '') return `<code>${escapeMarkdown(text)}</code>`
    const ticks = '`'.repeat(Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length)) + 1)
    const space = /^`|`$/.test(text) ? ' ' : ''
    return `${ticks}${space}${text}${space}${ticks}`
  }
  const inner = piece.text.map((of) => inline(of, from)).join('')
  switch (piece.kind) {
    case 'strong':
      return `**${inner}**`
    case 'em':
      return `*${inner}*`
    case 'soft':
      return inner
    case 'anchor':
      return `<a id="${escapeMarkdown(piece.id)}"></a>${inner}`
    case 'link':
      // Sources have no pages in Markdown.
      return 'page' in piece.to && piece.to.page.startsWith('source/') ? inner : `[${inner}](${addressOf(from, piece.to, '.md')})`
  }
}

const line = (pieces: readonly Inline[], from: string): string =>
  pieces
    .map((piece) => inline(piece, from))
    .join('')
    .replaceAll('\n', ' ')

function block(of: Block, from: string): string {
  switch (of.kind) {
    case 'heading': {
      const anchor = of.id === null ? '' : `<a id="${escapeMarkdown(of.id)}"></a>`
      return `${'#'.repeat(of.level)} ${anchor}${line(of.text, from)}`
    }
    case 'text':
      return line(of.text, from)
    case 'code':
    case 'source': {
      const fence = fenceFor(of.text)
      return `${fence}${of.kind === 'code' ? of.language : 'ts'}\n${of.text}\n${fence}`
    }
    case 'list':
      return of.items
        .map((item, i) => {
          const mark = of.isOrdered ? `${i + 1}. ` : '- '
          return (
            mark +
            item
              .map((inner) => block(inner, from))
              .join('\n\n')
              .replaceAll(/\n(?=.)/g, `\n${' '.repeat(mark.length)}`)
          )
        })
        .join('\n')
    case 'table': {
      const rows = of.rows.map((row) => `| ${row.map((cell) => line(cell, from)).join(' | ')} |`)
      return [`| ${of.head.map(escapeMarkdown).join(' | ')} |`, `| ${of.head.map(() => '---').join(' | ')} |`, ...rows].join('\n')
    }
    case 'quote':
      return of.blocks
        .map((inner) => block(inner, from))
        .join('\n\n')
        .replaceAll(/^/gm, '> ')
    case 'folded':
      return `<details><summary>${line(of.summary, from)}</summary>\n\n${of.blocks.map((inner) => block(inner, from)).join('\n\n')}\n\n</details>`
    case 'drawing':
      return `\`\`\`mermaid\n${of.mermaid}\n\`\`\``
  }
}

/** The text of a page. */
export function markdownPage({ path, title, crumbs, blocks }: Page): string {
  const above = crumbs.map(({ text, page }) => `[${escapeMarkdown(text)}](${addressOf(path, { page }, '.md')})`)
  return `${[...(above.length > 0 ? [above.join(' / ')] : []), `# ${escapeMarkdown(title)}`, ...blocks.map((of) => block(of, path))].join('\n\n')}\n`
}
