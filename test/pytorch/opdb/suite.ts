// The cases of test/goldens/opdb as one list, what is expected of each, and the table of how they went.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { judgeModule, judgeOperator, judgeRefused } from './judge.ts'
import type { Kind, Verdict } from './judge.ts'
import { reasonOf } from './reasons.ts'
import { readDatabase } from './stored.ts'
import type { Entry } from './stored.ts'

export const DATABASES = ['ops', 'mods', 'errs'] as const
export type DatabaseName = (typeof DATABASES)[number]

export interface Case {
  readonly database: DatabaseName
  /** PyTorch's name of the operator or module, and its variant. */
  readonly name: string
  /** `softmax.with_dtype#3` */
  readonly key: string
  readonly judge: (compiled: boolean) => Verdict
}

function casesOf<C>(
  database: DatabaseName,
  judge: (read: ReturnType<typeof readDatabase<C>>, entry: Entry<C>, one: C, compiled: boolean) => Verdict,
): readonly Case[] {
  const read = readDatabase<C>(database)
  return read.entries.flatMap((entry) => {
    const name = (entry.variant ?? '') === '' ? entry.name : `${entry.name}.${entry.variant}`
    return entry.cases.map((one, i) => ({ database, name, key: `${name}#${i}`, judge: (compiled: boolean) => judge(read, entry, one, compiled) }))
  })
}

export const allCases = (): readonly Case[] => [...casesOf('ops', judgeOperator), ...casesOf('mods', judgeModule), ...casesOf('errs', judgeRefused)]

/** The cases that fail: by database and kind, `softmax#0,3`; of missing names only the name. */
type Known = Record<DatabaseName, Partial<Record<Kind, readonly string[]>>>

const path = fileURLToPath(new URL('known.json', import.meta.url))

/** How each case is known to fail. What is not in it agrees. */
export function readKnown(): ReadonlyMap<string, Kind> {
  const known = JSON.parse(readFileSync(path, 'utf8')) as Known
  return new Map(
    DATABASES.flatMap((database) =>
      (Object.entries(known[database]) as [Kind, readonly string[]][]).flatMap(([kind, texts]) =>
        texts.flatMap((text) => {
          const [name = '', indices] = text.split('#')
          return (indices?.split(',') ?? ['']).map((index) => [`${database} ${index === '' ? name : `${name}#${index}`}`, kind] as const)
        }),
      ),
    ),
  )
}

/** What is expected of a case. */
export const expected = (known: ReadonlyMap<string, Kind>, { database, key, name }: Case): Kind =>
  reasonOf.get(`${database} ${key}`)?.kind ?? known.get(`${database} ${key}`) ?? known.get(`${database} ${name}`) ?? 'agree'

export interface Judged {
  readonly one: Case
  readonly verdict: Verdict
}

/** Writes the cases that fail. */
export function writeKnown(judged: readonly Judged[]): void {
  const known: Record<string, Record<string, Map<string, string[]>>> = { ops: {}, mods: {}, errs: {} }
  for (const { one, verdict } of judged) {
    if (verdict.kind === 'agree' || reasonOf.has(`${one.database} ${one.key}`)) continue
    const kinds = (known[one.database] ??= {})
    const names = (kinds[verdict.kind] ??= new Map<string, string[]>())
    const indices = names.get(one.name) ?? []
    names.set(one.name, indices)
    if (verdict.kind !== 'missing') indices.push(one.key.slice(one.name.length + 1))
  }
  const listed = Object.fromEntries(
    Object.entries(known).map(([database, kinds]) => [
      database,
      Object.fromEntries(
        Object.entries(kinds)
          .toSorted()
          .map(([kind, names]) => [kind, [...names].map(([name, indices]) => (indices.length === 0 ? name : `${name}#${indices.join(',')}`))]),
      ),
    ]),
  )
  writeFileSync(path, `${JSON.stringify(listed, null, 2)}\n`)
}

const KINDS: readonly Kind[] = ['agree', 'wrong', 'refuted', 'dtype', 'refused', 'unknown', 'raw', 'accepted', 'missing', 'absent']

/** The figures, and every case that fails. */
export function report(judged: readonly Judged[], how: string): string {
  const lines = DATABASES.flatMap((database) => {
    const own = judged.filter(({ one }) => one.database === database)
    const count = (kind: Kind): number => own.filter(({ verdict }) => verdict.kind === kind).length
    const names = new Set(own.map(({ one }) => one.name))
    const missing = new Set(own.filter(({ verdict }) => verdict.kind === 'missing').map(({ one }) => one.name))
    const present = own.length - count('missing') - count('absent')
    return [
      `${database} ${how}: ${KINDS.map((kind) => `${count(kind)} ${kind}`).join(', ')}`,
      `  ${((100 * count('agree')) / present).toFixed(2)}% of the cases of present names agree; ${names.size - missing.size} of ${names.size} names are present; ${own.filter(({ one }) => reasonOf.has(`${database} ${one.key}`)).length} cases differ for a reason (reasons.ts)`,
      ...own
        .filter(({ one, verdict }) => verdict.kind !== 'agree' && verdict.kind !== 'missing' && !reasonOf.has(`${database} ${one.key}`))
        .map(({ one, verdict }) => `  ${verdict.kind} ${one.key}: ${verdict.why.replaceAll('\n', ' ')}`),
      ...(missing.size === 0 ? [] : [`  missing: ${[...missing].join(' ')}`]),
    ]
  })
  return lines.join('\n')
}
