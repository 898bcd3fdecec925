// Markdown of doc comments and headers as blocks: paragraphs, lists, tables, quotes, headings, fenced and indented code, code spans, emphasis, links, and `{@link name}`. What is no
// Markdown stays text; HTML is text, too.
import type { Block, Inline, Target } from './page.ts'

/** Where a name in a code span, a tag such as `{@link name}` or a Markdown link leads; null where it is not known. */
export type Resolve = (name: string, of: 'code' | 'tag' | 'link') => Target | null

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w.+-]*).*$/
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?: +|$)(.*)$/
const RULE = /^ {0,3}(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})$/
const DIVIDER = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/

/** The blocks of a text. */
export function parseMarkdown(source: string, resolve: Resolve): readonly Block[] {
  const lines = source.replaceAll('\t', '    ').split('\n')
  const blocks: Block[] = []
  let paragraph: string[] = []
  const flush = (): void => {
    if (paragraph.length > 0) blocks.push({ kind: 'text', text: parseInline(paragraph.map((line) => line.trim()).join(' '), resolve) })
    paragraph = []
  }
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? ''
    const fence = FENCE.exec(line)
    const item = ITEM.exec(line)
    const title = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/.exec(line)
    if (fence !== null) {
      flush()
      const mark = fence[1] ?? ''
      const inside: string[] = []
      while (++i < lines.length && !new RegExp(`^ {0,3}${mark[0] === '~' ? '~' : '`'}{${mark.length},}\\s*$`).test(lines[i] ?? ''))
        inside.push(lines[i] ?? '')
      blocks.push({ kind: 'code', language: fence[2] ?? '', text: inside.join('\n') })
    } else if (/^ {4}/.test(line) && paragraph.length === 0 && line.trim() !== '') {
      const inside: string[] = []
      while (i < lines.length && (/^ {4}/.test(lines[i] ?? '') || (lines[i] ?? '').trim() === '')) inside.push((lines[i++] ?? '').slice(4))
      i--
      while (inside.at(-1)?.trim() === '') inside.pop()
      blocks.push({ kind: 'code', language: 'ts', text: inside.join('\n') })
    } else if (title !== null) {
      flush()
      blocks.push({ kind: 'text', text: [{ kind: 'strong', text: parseInline(title[2] ?? '', resolve) }] })
    } else if (RULE.test(line)) flush()
    else if (item !== null && (paragraph.length === 0 || item[3] !== '')) {
      flush()
      i = list(lines, i, resolve, blocks)
    } else if (/^ {0,3}>/.test(line)) {
      flush()
      const inside: string[] = []
      while (i < lines.length && /^ {0,3}>/.test(lines[i] ?? '')) inside.push((lines[i++] ?? '').replace(/^ {0,3}> ?/, ''))
      i--
      blocks.push({ kind: 'quote', blocks: parseMarkdown(inside.join('\n'), resolve) })
    } else if (line.includes('|') && paragraph.length === 0 && DIVIDER.test(lines[i + 1] ?? '')) i = table(lines, i, resolve, blocks)
    else if (line.trim() === '') flush()
    else paragraph.push(line)
  }
  flush()
  return blocks
}

/** A list from a line on; returns its last line. */
function list(lines: readonly string[], from: number, resolve: Resolve, into: Block[]): number {
  const items: string[][] = []
  const isOrdered = /^\s*\d/.test(lines[from] ?? '')
  let [i, indent] = [from, 0]
  for (; i < lines.length; i++) {
    const line = lines[i] ?? ''
    const item = ITEM.exec(line)
    const depth = line.length - line.trimStart().length
    if (item !== null && (items.length === 0 || depth < indent) && /\d/.test(item[2] ?? '') === isOrdered) {
      indent = (item[1] ?? '').length + (item[2] ?? '').length + 1
      items.push([item[3] ?? ''])
    } else if (line.trim() === '') {
      const next = lines[i + 1] ?? ''
      if (next.trim() === '' || (next.length - next.trimStart().length < indent && ITEM.exec(next) === null)) break
      items.at(-1)?.push('')
    } else if (item !== null && depth < indent) break
    else items.at(-1)?.push(line.slice(Math.min(indent, depth)))
  }
  into.push({ kind: 'list', isOrdered, items: items.map((item) => parseMarkdown(item.join('\n'), resolve)) })
  return i - 1
}

/** A table from a line on; returns its last line. Tables of more than three columns become lists. */
function table(lines: readonly string[], from: number, resolve: Resolve, into: Block[]): number {
  const cells = (line: string): readonly string[] =>
    line
      .trim()
      .replace(/^\|/, '')
      .replace(/(?<!\\)\|$/, '')
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll(String.raw`\|`, '|'))
  const head = cells(lines[from] ?? '')
  const rows: (readonly Inline[])[][] = []
  let i = from + 2
  for (; i < lines.length && (lines[i] ?? '').includes('|'); i++) {
    const row = cells(lines[i] ?? '')
    rows.push(head.map((_, k) => parseInline(row[k] ?? '', resolve)))
  }
  if (head.length <= 3) into.push({ kind: 'table', head, rows })
  else
    into.push({
      kind: 'list',
      isOrdered: false,
      items: rows.map((row) => [{ kind: 'text', text: row.flatMap((cell, k) => [...(k === 0 ? [] : ['; ']), `${head[k] ?? ''}: `, ...cell]) }]),
    })
  return i - 1
}

const ESCAPED = /^\\([!-/:-@[-`{-~])/
const TAG = /^\{@(?:link|linkcode|linkplain|see)\s+([^}|\s]+)\s*\|?\s*([^}]*)\}/
const LINK = /^!?\[((?:[^[\]\\]|\\.|\[[^\]]*\])*)\]\(\s*<?([^()\s>]*(?:\([^()\s]*\)[^()\s>]*)*)>?(?:\s+["'(][^"')]*["')])?\s*\)/
const ADDRESS = /^<((?:https?|mailto):[^\s<>]+)>|^(https?:\/\/[^\s<>()]*[^\s<>().,;:!?'"\]])/
const STRONG = /^(\*\*|__)(?=\S)([^]*?\S)\1(?!\w)/
/** What may begin anything but plain text. */
const MARK = /[\\`{![<*_]|https?:/g
const EM = /^([*_])(?=[^\s*_])([^]*?[^\s*_])\1(?![\w*])/

/** Addresses that links may have. Others, such as `javascript:`, stay text. */
const isAddress = (url: string): boolean => /^(?:https?|mailto):/i.test(url)

/** The pieces of one paragraph. */
export function parseInline(source: string, resolve: Resolve): readonly Inline[] {
  const pieces: Inline[] = []
  let plain = ''
  const push = (piece: Inline): void => {
    if (plain !== '') pieces.push(plain)
    plain = ''
    pieces.push(piece)
  }
  for (let i = 0; i < source.length;) {
    MARK.lastIndex = i
    const next = MARK.exec(source)?.index ?? source.length
    plain += source.slice(i, next)
    i = next
    if (i === source.length) break
    const rest = source.slice(i)
    const escaped = ESCAPED.exec(rest)
    const ticks = /^`+/.exec(rest)?.[0]
    if (escaped !== null) {
      plain += escaped[1] ?? ''
      i += 2
      continue
    }
    if (ticks !== undefined) {
      const end = new RegExp(`(?<!\`)${ticks}(?!\`)`).exec(rest.slice(ticks.length))
      if (end !== null) {
        const text = rest.slice(ticks.length, ticks.length + end.index).replace(/^ (.*) $/, '$1')
        const to = resolve(text, 'code')
        push(to === null ? { kind: 'code', text } : { kind: 'link', text: [{ kind: 'code', text }], to })
        i += 2 * ticks.length + end.index
      } else {
        plain += ticks
        i += ticks.length
      }
      continue
    }
    const found = special(rest, source[i - 1] ?? ' ', resolve)
    if (found === null) {
      plain += source[i] ?? ''
      i++
    } else {
      push(found.piece)
      i += found.length
    }
  }
  if (plain !== '') pieces.push(plain)
  return pieces
}

/** A tag, link or emphasis at the beginning of a text; null without one. */
function special(rest: string, before: string, resolve: Resolve): { readonly piece: Inline; readonly length: number } | null {
  const tag = TAG.exec(rest)
  if (tag !== null) {
    const [whole, name = '', label = ''] = tag
    const to = isAddress(name) ? { url: name } : resolve(name, 'tag')
    const shown: Inline = label.trim() === '' ? { kind: 'code', text: name } : label.trim()
    return { piece: to === null ? shown : { kind: 'link', text: [shown], to }, length: whole.length }
  }
  const link = LINK.exec(rest)
  if (link !== null) {
    const [whole, label = '', url = ''] = link
    const inner = parseInline(label, () => null)
    const to: Target | null = isAddress(url) ? { url } : resolve(url, 'link')
    return { piece: to === null ? { kind: 'soft', text: inner } : { kind: 'link', text: inner, to }, length: whole.length }
  }
  const address = /\w/.test(before) ? null : ADDRESS.exec(rest)
  if (address !== null) {
    const url = address[1] ?? address[2] ?? ''
    return { piece: { kind: 'link', text: [url], to: { url } }, length: address[0].length }
  }
  if (/\w/.test(before)) return null
  const strong = STRONG.exec(rest)
  if (strong !== null) return { piece: { kind: 'strong', text: parseInline(strong[2] ?? '', resolve) }, length: strong[0].length }
  const em = EM.exec(rest)
  return em === null ? null : { piece: { kind: 'em', text: parseInline(em[2] ?? '', resolve) }, length: em[0].length }
}

/** The first sentence of a text, without Markdown around words. */
export function firstSentence(source: string): string {
  const paragraph =
    source
      .split(/\n\s*\n/)[0]
      ?.replaceAll(/\s+/g, ' ')
      .trim() ?? ''
  const end = /^(?:[^.!?`]|`[^`]*`|[.!?](?=\S))*[.!?:]?(?=\s|$)/.exec(paragraph)?.[0] ?? paragraph
  return end.replace(/:$/, '.')
}
