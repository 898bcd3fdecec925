// What is missing or wrong in the documentation of a program.
import { moduleOf } from './model.ts'
import type { ProgramSymbol } from './model.ts'
import type { Lookup } from './pages/lookup.ts'
import { parseMarkdown } from './pages/markdownText.ts'
import type { Resolve } from './pages/markdownText.ts'
import { purposeOf } from './pages/modulePage.ts'
import type { LinkFinding } from './pages/site.ts'
import { docBlocks } from './pages/symbolBlocks.ts'

export type Level = 'error' | 'warning'

/** One finding. */
export interface Finding {
  readonly rule: string
  readonly level: Level
  readonly file: string
  /** 0 where it is about the whole file. */
  readonly line: number
  readonly text: string
}

/** The rules and their levels. */
const LEVELS = {
  'public-undocumented': 'error',
  'dead-link': 'error',
  'duplicate-anchor': 'error',
  purpose: 'warning',
  'throws-undocumented': 'warning',
} as const satisfies Record<string, Level>

/** Whether a doc names an error: `@throws`, or the name of its class. */
function namesError({ doc }: ProgramSymbol, error: string): boolean {
  if (doc === null) return false
  const all = [doc.text, ...doc.tags.map(({ name, text }) => `@${name} ${text}`)].join('\n')
  return doc.tags.some(({ name }) => name === 'throws') || new RegExp(`\\b${error.replaceAll('$', String.raw`\$`)}\\b`).test(all)
}

/** What tags such as `{@link name}` in a text name that has no place on a page. The text is read as pages read it, so that a tag in code is none. */
function deadTags(names: Resolve, read: (resolve: Resolve) => unknown): readonly string[] {
  const dead = new Set<string>()
  read((name, of) => {
    const target = names(name, of)
    if (of === 'tag' && target === null) dead.add(name)
    return target
  })
  return [...dead]
}

function tagFindings(lookup: Lookup): readonly Finding[] {
  const finding = (file: string, line: number, name: string): Finding => ({
    ...{ rule: 'dead-link', level: LEVELS['dead-link'], file, line },
    text: `links ${name}, which has no place in the documentation`,
  })
  const { modules, symbols } = lookup.model
  return [
    ...modules.flatMap(({ path, header }) =>
      header === null
        ? []
        : deadTags(
            (name) => lookup.resolve(path, name),
            (resolve) => parseMarkdown(header, resolve),
          ).map((name) => finding(path, 1, name)),
    ),
    ...symbols.flatMap((symbol) => {
      const { module, line, doc } = symbol
      return doc === null ? [] : deadTags(lookup.namesIn(symbol), (resolve) => docBlocks(doc, resolve)).map((name) => finding(module, line, name))
    }),
  ]
}

/** Checks a model, and adds what was found about links. */
export function lint(lookup: Lookup, links: readonly LinkFinding[]): readonly Finding[] {
  const { model } = lookup
  const found: Finding[] = links.map(({ rule, page, target }) => ({
    rule,
    level: LEVELS[rule],
    file: page,
    line: 0,
    text: rule === 'dead-link' ? `leads to ${target}, which is not there` : `has the place ${target} twice`,
  }))
  found.push(...tagFindings(lookup))
  for (const module of model.modules)
    if (module.lines > 0 && purposeOf(lookup, module) === null)
      found.push({
        rule: 'purpose',
        level: LEVELS.purpose,
        file: module.path,
        line: 0,
        text: 'has no comment at its head, and no doc of an only export, that says what it is for',
      })
  for (const symbol of model.symbols) {
    const { id, name, visibility, line, throws } = symbol
    if (visibility !== 'public') continue
    const isTop = symbol.entries.length > 0
    if (isTop && symbol.doc === null)
      found.push({
        rule: 'public-undocumented',
        level: LEVELS['public-undocumented'],
        file: moduleOf(id),
        line,
        text: `${name} is public and has no doc comment`,
      })
    // What the body of a class throws outside of its members comes from functions that it hands to others.
    for (const error of new Set(symbol.kind === 'class' ? [] : throws.map((one) => one.error)))
      if (error !== null && symbol.doc !== null && !namesError(symbol, error))
        found.push({
          rule: 'throws-undocumented',
          level: LEVELS['throws-undocumented'],
          file: moduleOf(id),
          line,
          text: `${name} throws ${error}, which its doc does not say`,
        })
  }
  return found
}
