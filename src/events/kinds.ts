// The kinds of events, in the order in which they may first occur.
import type { EventKind } from './types.ts'

const table: { readonly [K in EventKind]: true } = {
  call: true,
  guard: true,
  recompile: true,
  limit: true,
  record: true,
  inline: true,
  break: true,
  joint: true,
  graph: true,
  partition: true,
  pass: true,
  lower: true,
  fuse: true,
  memory: true,
  kernel: true,
  program: true,
  compiled: true,
  launch: true,
  engine: true,
  failure: true,
  repro: true,
  'minify.step': true,
  'minify.end': true,
}

const isKindOf = <T extends object>(record: T, key: PropertyKey): key is keyof T => Object.hasOwn(record, key)

/** Whether there are events of that name. */
export const isEventKind = (name: unknown): name is EventKind => typeof name === 'string' && isKindOf(table, name)

/** All kinds. */
export const eventKinds: readonly EventKind[] = Object.keys(table).filter(isEventKind)

/** Kinds that occur for every operator or kernel: a listener gets them only if it names them. */
export const detailKinds: ReadonlySet<EventKind> = new Set<EventKind>(['record', 'launch'])
