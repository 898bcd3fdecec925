// `tensorfx docs`: pages about a program, from its sources.
import { join } from 'node:path'
import { documentProject } from '../docs/index.ts'
import type { Finding, Format } from '../docs/index.ts'
import { ArgumentError } from '../errors/index.ts'
import type { Line, Output, Result } from './line.ts'
import { PLAIN, aligned, paint } from './terminal.ts'

const FORMATS: readonly Format[] = ['html', 'md', 'json']

/** The formats of --format. Throws ArgumentError for an unknown one. */
export function formatsOf(text: string | undefined): readonly Format[] {
  if (text === undefined) return ['html', 'json']
  return text.split(',').map((name) => {
    const format = FORMATS.find((one) => one === name)
    if (format === undefined) throw new ArgumentError(`--format is some of ${FORMATS.join(', ')}, got '${name}'.`)
    return format
  })
}

/** How many findings of each rule are shown. */
const SHOWN = 10

/** The first findings of each rule, and how many there are. */
function shown(findings: readonly Finding[]): readonly Finding[] {
  const counts = new Map<string, number>()
  return findings.filter(({ rule }) => {
    const count = (counts.get(rule) ?? 0) + 1
    counts.set(rule, count)
    return count <= SHOWN
  })
}

/** Runs `tensorfx docs`. */
export async function documentSources({ operands, options }: Line, { terminal = PLAIN }: Output): Promise<Result> {
  const [folder = '.', second] = operands
  if (second !== undefined) throw new ArgumentError(`expected one folder, got ${operands.length}.`)
  const isCheck = options.has('--check')
  const out = options.get('--out') ?? join(folder, 'docs/site')
  const given = (name: string): string | undefined => options.get(`--${name}`)
  const [include, exclude, tests, from] = [given('include'), given('exclude'), given('tests'), given('from')]
  const result = await documentProject(folder, {
    ...{ out, isCheck, isPublic: options.has('--public'), formats: formatsOf(given('format')), sourceUrl: given('source-url') ?? null },
    ...(from === undefined ? {} : { from }),
    ...(include === undefined ? {} : { include }),
    ...(exclude === undefined ? {} : { exclude }),
    ...(tests === undefined ? {} : { tests }),
  })
  const { model, pages, read, changed, findings } = result
  const errors = findings.filter(({ level }) => level === 'error').length
  const rows = shown(findings).map(({ rule, level, file, line, text }) => [
    paint(terminal, level === 'error' ? 'red' : 'yellow', rule),
    line === 0 ? file : `${file}:${line}`,
    text,
  ])
  const rest = findings.length - rows.length
  const summary =
    model === null
      ? `Nothing has changed since ${out} was written.`
      : `${model.modules.length} modules${from === undefined && read < model.modules.length ? ` (${read} read again)` : ''}, ${model.symbols.length} names, ${pages} pages; ${errors} errors and ${findings.length - errors} warnings. ${
          isCheck ? `${changed.length} files of ${out} are out of date.` : `Wrote ${changed.length} files to ${out}.`
        }`
  const text = [
    ...aligned(rows, terminal),
    ...(rest === 0 ? [] : [`… and ${rest} more findings: --json lists all`]),
    ...(isCheck ? changed.slice(0, SHOWN).map((name) => `out of date: ${name}`) : []),
    summary,
  ].join('\n')
  const counts = model === null ? null : { modules: model.modules.length, symbols: model.symbols.length, calls: model.calls.length, pages }
  return { text, code: isCheck && (errors > 0 || changed.length > 0) ? 1 : 0, data: { out, counts, read, changed, findings } }
}
