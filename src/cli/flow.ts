// `tensorfx flow`: what happens in a call of a function, as a page.
import { join } from 'node:path'
import { acceptProse, checkFlows, writeFlow } from '../docs/flow/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { formatsOf } from './docs.ts'
import { numberOf } from './line.ts'
import type { Line, Output, Result } from './line.ts'
import { PLAIN, paint } from './terminal.ts'

/** Runs `tensorfx flow`. */
export async function walkFunction(line: Line, { terminal = PLAIN }: Output): Promise<Result> {
  const { operands, options } = line
  const [target, second] = operands
  const folder = options.get('--project') ?? '.'
  const out = options.get('--out') ?? join(folder, 'docs/flows')
  const [include, exclude, tests] = ['--include', '--exclude', '--tests'].map((name) => options.get(name))
  const project = {
    ...(include === undefined ? {} : { include }),
    ...(exclude === undefined ? {} : { exclude }),
    ...(tests === undefined ? {} : { tests }),
  }
  if (second !== undefined) throw new ArgumentError(`expected one function, got ${operands.length}.`)
  if (options.has('--accept')) {
    const accepted = acceptProse(folder, { out, ...project })
    return { text: `Accepted the text of ${accepted} cards.`, code: 0, data: { accepted } }
  }
  if (options.has('--check')) {
    const { flows, cards, stale } = checkFlows(folder, { out, ...project })
    const colours = { '-': 'red', '+': 'green' } as const
    const rows = stale.flatMap(({ flow, id, kind, lines }) => [
      `${flow}: ${id} ${kind === 'renamed' ? `is now ${lines[0] ?? ''}` : kind === 'gone' ? 'is gone' : kind === 'prose' ? 'has changed since its text was written' : 'has changed'}`,
      ...(kind === 'changed' ? lines.map((text) => `  ${paint(terminal, text.startsWith('-') ? colours['-'] : colours['+'], text)}`) : []),
    ])
    return {
      text: [...rows, `${flows} walks, ${cards} cards: ${stale.length} of them stale.`].join('\n'),
      code: stale.length > 0 ? 1 : 0,
      data: { flows, cards, stale },
    }
  }
  if (target === undefined) throw new ArgumentError('expected a function, src/file.ts#name, or --check.')
  const words = (name: string): readonly string[] =>
    (options.get(name) ?? '')
      .split(',')
      .map((word) => word.trim())
      .filter((word) => word !== '')
  const { walk, files } = writeFlow(folder, target, {
    ...project,
    ...{
      out,
      formats: formatsOf(options.get('--format')),
      sourceUrl: options.get('--source-url') ?? null,
      command: options.get('--observe') ?? null,
    },
    ...{
      depth: numberOf(line, '--depth') ?? 12,
      nodes: numberOf(line, '--nodes') ?? 22,
      stop: words('--stop'),
      skip: words('--skip'),
      pin: words('--pin'),
    },
  })
  const name = (id: string): string => id.slice(id.indexOf('#') + 1)
  return {
    text: `${walk.main.map(name).join(' → ')}\n${walk.cards.length} functions, ${walk.edges.length} calls between those that were reached. Wrote ${files.length} files to ${out}.`,
    code: 0,
    data: { out, files, root: walk.root, main: walk.main, cards: walk.cards },
  }
}
