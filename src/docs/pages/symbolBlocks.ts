// A symbol on the page of its module: signatures, doc, errors, tests, who calls it.
import { baseOf, byText } from '../model.ts'
import type { Doc, ProgramSymbol, TestUse } from '../model.ts'
import { groupBy } from './lookup.ts'
import type { Lookup } from './lookup.ts'
import { parseInline, parseMarkdown } from './markdownText.ts'
import type { Resolve } from './markdownText.ts'
import { code, heading, joined, link, list, soft, text } from './page.ts'
import type { Block, Inline } from './page.ts'

/** Signatures wider than this are written with a parameter on each line. */
const WIDTH = 96
/** Longer lists of tests and callers are cut; the model has all. */
const MOST = 5

/** A signature with a parameter on each line, if it is wide. */
export function wrapped(signature: string): string {
  if (signature.length <= WIDTH || signature.includes('\n')) return signature
  const open = signature.indexOf('(')
  if (open < 0) return signature
  const parts: string[] = []
  let [depth, start, end] = [0, open + 1, -1]
  for (let i = open; i < signature.length && end < 0; i++) {
    const letter = signature[i] ?? ''
    if ('([{<'.includes(letter)) depth++
    else if (')]}'.includes(letter) || (letter === '>' && signature[i - 1] !== '=')) {
      if (--depth === 0) end = i
    } else if (letter === ',' && depth === 1) {
      parts.push(signature.slice(start, i).trim())
      start = i + 1
    }
  }
  if (end < 0 || parts.length === 0) return signature
  parts.push(signature.slice(start, end).trim())
  return `${signature.slice(0, open + 1)}\n${parts.map((part) => `  ${part},\n`).join('')}${signature.slice(end)}`
}

const TITLES: Readonly<Record<string, string>> = {
  returns: 'Returns',
  return: 'Returns',
  deprecated: 'Deprecated',
  see: 'See',
  since: 'Since',
  remarks: 'Remarks',
  default: 'Default',
  defaultValue: 'Default',
}

/** A doc comment: its text, parameters and other tags. */
export function docBlocks({ text: main, tags }: Doc, resolve: Resolve): readonly Block[] {
  const blocks: Block[] = [...parseMarkdown(main, resolve)]
  const parameters = tags.filter(({ name }) => /^(?:param|arg|argument|property|prop|typeParam|template)$/.test(name))
  if (parameters.length > 0)
    blocks.push(
      list(
        parameters.map(({ text: of }) => {
          const [, type = '', name = '', rest = ''] = /^(\{(?:[^{}]|\{[^}]*\})*\})?\s*(\[[^\]]*\]|\S*)\s*-?\s*([^]*)$/.exec(of) ?? []
          const kind = type.slice(1, -1)
          return [
            code(name),
            ...(kind === '' ? [] : [' ', code(kind)]),
            ...(rest === '' ? [] : [': ', ...parseInline(rest.replaceAll(/\s+/g, ' '), resolve)]),
          ]
        }),
      ),
    )
  for (const { name, text: of } of tags) {
    if (/^(?:throws|exception)$/.test(name)) {
      const [, type = '', rest = ''] = /^(?:\{([^}]*)\})?\s*([^]*)$/.exec(of) ?? []
      blocks.push(
        text(
          { kind: 'strong', text: ['Throws'] },
          ' ',
          ...(type === '' ? [] : [code(type), ' ']),
          ...parseInline(rest.replaceAll(/\s+/g, ' '), resolve),
        ),
      )
    } else if (name === 'example') blocks.push(text({ kind: 'strong', text: ['Example'] }), ...exampleOf(of, resolve))
    else if (TITLES[name] !== undefined) {
      const [, type = '', rest = ''] = /^(?:\{((?:[^{}]|\{[^}]*\})*)\})?\s*([^]*)$/.exec(of) ?? []
      blocks.push(
        text(
          { kind: 'strong', text: [TITLES[name] ?? ''] },
          ' ',
          ...(type === '' ? [] : [code(type), ' ']),
          ...parseInline(rest.replaceAll(/\s+/g, ' '), resolve),
        ),
      )
    }
  }
  return blocks
}

/** An example is code, unless it has a fence that says where its code is. */
function exampleOf(of: string, resolve: Resolve): readonly Block[] {
  if (/^\s*(?:```|~~~)/m.test(of)) return parseMarkdown(of, resolve)
  const caption = /^<caption>(.*?)<\/caption>\s*/.exec(of)
  return [
    ...(caption === null ? [] : [text(caption[1] ?? '')]),
    { kind: 'code', language: 'ts', text: caption === null ? of : of.slice(caption[0].length) },
  ]
}

/** A link to the line of a test or another file that has no page. */
const testLine = (lookup: Lookup, { file, line }: TestUse): Inline => {
  const at = code(`${file}:${line}`)
  return lookup.sourceUrl === null ? at : link(lookup.lineTarget(file, line), at)
}

/** Tests of a symbol. */
function testBlocks(lookup: Lookup, tests: readonly TestUse[]): readonly Block[] {
  if (tests.length === 0) return []
  const items = list(tests.slice(0, MOST).map((test) => [test.title, ' ', testLine(lookup, test)]))
  const files = new Set(tests.map(({ file }) => file)).size
  const count = `${tests.length} ${tests.length === 1 ? 'test' : 'tests'}${files > 1 ? ` in ${files} files` : ''}`
  return [
    {
      kind: 'folded',
      summary: [`Named by ${count}`],
      blocks: [items, ...(tests.length > MOST ? [text(soft(`… and ${tests.length - MOST} more`))] : [])],
    },
  ]
}

/** The functions that call a symbol, and those that it calls. */
function callBlocks(lookup: Lookup, { id, module }: ProgramSymbol): readonly Block[] {
  const name = (to: string): readonly Inline[] => {
    const symbol = lookup.symbols.get(to)
    const target = lookup.targetOf(to)
    if (symbol === undefined || target === null) return [code(to.endsWith('#') ? baseOf(to.slice(0, -1)) : to.slice(to.indexOf('#') + 1))]
    return [link(target, code(symbol.name)), ...(symbol.module === module ? [] : [' ', soft(baseOf(symbol.module))])]
  }
  const ids = (of: readonly string[]): readonly string[] => [...new Set(of)].toSorted(byText)
  const constructor = lookup.symbols.has(`${id}.constructor`) ? (lookup.callers.get(`${id}.constructor`) ?? []) : []
  const callers = ids([...(lookup.callers.get(id) ?? []), ...constructor].map(({ from }) => from)).filter((from) => from !== id)
  const callees = ids((lookup.calls.get(id) ?? []).filter(({ kind }) => kind !== 'dynamic').map(({ to }) => to)).filter((to) => to !== id)
  const row = (title: string, of: readonly string[]): readonly Block[] =>
    of.length === 0
      ? []
      : [
          text(
            soft(`${title} `),
            ...joined(of.slice(0, 3 * MOST).map(name), ', '),
            ...(of.length > 3 * MOST ? [soft(` and ${of.length - 3 * MOST} more`)] : []),
          ),
        ]
  return [...row('Called by', callers), ...row('Calls', callees)]
}

/** The error classes that may come from what a function calls, with the callee nearest to them. */
export function thrownBelow(lookup: Lookup, id: string, depth = 3): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  const seen = new Set([id])
  let level = [{ at: id, first: '' }]
  for (let i = 0; i < depth; i++) {
    const next: { at: string; first: string }[] = []
    for (const { at, first } of level)
      for (const { to, kind } of lookup.calls.get(at) ?? []) {
        if (kind === 'dynamic' || kind === 'value' || seen.has(to)) continue
        seen.add(to)
        const via = first === '' ? to : first
        for (const { error } of lookup.symbols.get(to)?.throws ?? []) if (error !== null && !found.has(error)) found.set(error, via)
        next.push({ at: to, first: via })
      }
    level = next
  }
  return found
}

/** The errors of a function. */
function errorBlocks(lookup: Lookup, symbol: ProgramSymbol): readonly Block[] {
  const { id, module, throws, visibility } = symbol
  const rows = [...groupBy(throws, ({ error, message }) => `${error ?? ''} ${message ?? ''}`).values()].map((same): readonly Inline[] => {
    const [first] = same
    const target = first?.symbol === null || first === undefined ? null : lookup.targetOf(first.symbol)
    const name = first?.error === null || first === undefined ? 'what it caught, or a value' : code(first.error)
    const lines = joined(
      same.map(({ line }) => [link(lookup.lineTarget(module, line), `line ${line}`)]),
      ', ',
    )
    return [
      target === null ? name : link(target, name),
      ...(first?.code === null || first === undefined ? [] : [' ', soft(first.code)]),
      ...(first?.message === null || first === undefined ? [] : [': ', first.message]),
      ' ',
      soft(...lines),
    ]
  })
  const direct = new Set(throws.map(({ error }) => error))
  const below = visibility === 'private' ? [] : [...thrownBelow(lookup, id)].filter(([error]) => !direct.has(error)).slice(0, 8)
  const more = below.map(([error, via]): readonly Inline[] => {
    const [to, at] = [lookup.targetOf(via), code(lookup.symbols.get(via)?.name ?? via)]
    return [code(error), ' from ', to === null ? at : link(to, at)]
  })
  return [
    ...(rows.length === 0 ? [] : [text({ kind: 'strong', text: ['Throws'] }), list(rows)]),
    ...(more.length === 0 ? [] : [text(soft('May throw, from what it calls: '), ...joined(more, '; '))]),
  ]
}

/** What is said about a symbol, below its name. */
export function symbolBlocks(lookup: Lookup, symbol: ProgramSymbol, level: number): readonly Block[] {
  const { id, module, name, kind, visibility, entries, signatures, doc, line, heritage, tests } = symbol
  const names = lookup.namesIn(symbol)
  const resolve: Resolve = (word, of) => (word === name ? null : names(word, of))
  const exported = visibility === 'public' ? entries : []
  const about = [
    kind,
    ...(visibility === 'public' ? exported.slice(0, 3).map((entry) => entry.replace('#', ' · ')) : [visibility]),
    ...(exported.length > 3 ? [`and ${exported.length - 3} more entries`] : []),
  ]
  const others = (title: string, ids: readonly string[]): readonly Block[] => {
    const links = ids.flatMap((one): readonly (readonly Inline[])[] => {
      const target = lookup.targetOf(one)
      return target === null ? [] : [[link(target, code(lookup.symbols.get(one)?.name ?? one))]]
    })
    return links.length === 0 ? [] : [text(soft(`${title} `), ...joined(links, ', '))]
  }
  return [
    heading(level, lookup.anchorOf(id), code(name), ' ', soft(`${about.join(', ')} · `, link(lookup.lineTarget(module, line), `line ${line}`))),
    ...(signatures.length === 0 ? [] : [{ kind: 'code', language: 'ts', text: signatures.map(wrapped).join('\n') } as const]),
    ...(doc === null ? [] : docBlocks(doc, resolve)),
    ...others('From', heritage),
    ...others('Extended or implemented by', lookup.heirs.get(id) ?? []),
    ...errorBlocks(lookup, symbol),
    ...callBlocks(lookup, symbol),
    ...testBlocks(lookup, tests),
  ]
}
