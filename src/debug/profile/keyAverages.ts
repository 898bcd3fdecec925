// Sums of a profile's events, and their table. PyTorch's `key_averages()`.
import { ArgumentError } from '../../errors/index.ts'
import { sizeText } from '../../protocol/sizeText.ts'
import { checkCount, checkOptions, valueText } from '../../protocol/index.ts'
import { formatShape } from '../../tensor/index.ts'
import { table } from '../table.ts'
import type { ProfileEngine, ProfileEvent, ProfileKind } from './event.ts'
import { countText } from './units.ts'

/** What the rows of {@link KeyAverages} stand for. */
export type ProfileGroup = 'operator' | 'inputShape' | 'module' | 'node' | 'kernel'

/** The events of one name (and, if asked for, of the same input shapes), summed over all runs. Times are in milliseconds. */
export interface ProfileRow {
  readonly kind: ProfileKind
  /** A node's name follows the path of its graph: `Net.conv1`. */
  readonly name: string
  /** The shapes of the tensors that the operator got, if rows are grouped by them; otherwise null. */
  readonly shapes: readonly (readonly number[])[] | null
  /** What computed it; null for modules and nodes. */
  readonly engine: ProfileEngine | null
  readonly calls: number
  /** The time without that of operators and kernels inside (of a module: of modules inside; of a node: of nodes inside), and with it. */
  readonly selfTime: number
  readonly totalTime: number
  /** Floating-point operations of the operators and kernels themselves; of a module or node, of all that belong to it. */
  readonly flops: number
  /** Bytes of the tensors that the operators got and returned, and of what kernels read and stored. */
  readonly bytes: number
  /** Blocks of memory that were allocated meanwhile, bytes in use more than before, and the most bytes in use during a call. */
  readonly allocations: number
  readonly memory: number
  readonly peak: number
}

const columns = {
  selfTime: 'Self CPU',
  totalTime: 'CPU total',
  calls: '# of Calls',
  flops: 'FLOPs',
  bytes: 'Bytes',
  allocations: 'Allocations',
  memory: 'CPU Mem',
  peak: 'Peak Mem',
} satisfies Partial<Record<keyof ProfileRow, string>>

/** A column by which a table can be sorted. */
export type ProfileColumn = keyof typeof columns

/** Options of {@link KeyAverages.table}. */
export interface ProfileTableOptions {
  /** The column to sort by, largest first. Default 'selfTime'. */
  readonly sortBy?: ProfileColumn
  /** How many rows are shown at most. Default: all. */
  readonly rowLimit?: number
}

/** The columns by which tables can be sorted. */
export const sortColumns: readonly string[] = Object.keys(columns)

const isColumn = (name: unknown): name is ProfileColumn => typeof name === 'string' && Object.hasOwn(columns, name)

const timeText = (milliseconds: number): string => (milliseconds < 1 ? `${(milliseconds * 1000).toFixed(3)}us` : `${milliseconds.toFixed(3)}ms`)

/** Rows of a profile, one for each operator, kernel, node or module. */
export class KeyAverages {
  /** In the order in which they first ran. */
  readonly rows: readonly ProfileRow[]
  /** The time of all runs in milliseconds, and the part of it outside of operators and kernels: the program's own JavaScript, and the library's before it computes. */
  readonly totalTime: number
  readonly outsideTime: number

  constructor(rows: readonly ProfileRow[], totalTime: number, outsideTime: number) {
    this.rows = rows
    this.totalTime = totalTime
    this.outsideTime = outsideTime
  }

  /** The rows as PyTorch prints them. Throws ArgumentError for an unknown column, or a limit below 1. */
  table(options: ProfileTableOptions = {}): string {
    checkCount('KeyAverages.table', arguments, 1)
    checkOptions('KeyAverages.table', options, { sortBy: true, rowLimit: 'number' })
    const { sortBy = 'selfTime', rowLimit = Infinity } = options
    if (!isColumn(sortBy))
      throw new ArgumentError(`KeyAverages.table: option 'sortBy' must be one of ${sortColumns.join(', ')}, got ${valueText(sortBy)}.`)
    if (!(rowLimit >= 1)) throw new ArgumentError(`KeyAverages.table: option 'rowLimit' must be at least 1, got ${valueText(rowLimit)}.`)
    const sorted = this.rows.toSorted((a, b) => b[sortBy] - a[sortBy]).slice(0, rowLimit)
    const { header, body, right } = tableOf(sorted, this.totalTime)
    return [
      table(header, body, { right }),
      `CPU time total: ${timeText(this.totalTime)}, outside of operators and kernels: ${timeText(this.outsideTime)}`,
    ].join('\n')
  }

  toString(): string {
    return this.table()
  }
}

/** Rows as texts: names and shapes on the left, numbers on the right. */
export function tableOf(
  rows: readonly ProfileRow[],
  totalTime: number,
): { readonly header: string[]; readonly body: string[][]; readonly right: number[] } {
  const share = (time: number): string => `${((100 * time) / Math.max(totalTime, Number.MIN_VALUE)).toFixed(2)}%`
  const cells: readonly (readonly [title: string, of: (row: ProfileRow) => string])[] = [
    ['Name', ({ name }) => name],
    ['Self CPU %', ({ selfTime }) => share(selfTime)],
    ['Self CPU', ({ selfTime }) => timeText(selfTime)],
    ['CPU total %', ({ totalTime: time }) => share(time)],
    ['CPU total', ({ totalTime: time }) => timeText(time)],
    ['CPU time avg', ({ totalTime: time, calls }) => timeText(time / calls)],
    ['# of Calls', ({ calls }) => String(calls)],
    ['FLOPs', ({ flops }) => (flops === 0 ? '--' : countText(Math.round(flops)))],
    ['Bytes', ({ bytes }) => sizeText(bytes)],
    ['Allocations', ({ allocations }) => String(allocations)],
    ['CPU Mem', ({ memory }) => (memory < 0 ? `-${sizeText(-memory)}` : sizeText(memory))],
    ['Peak Mem', ({ peak }) => sizeText(peak)],
  ]
  const texts: readonly (typeof cells)[number][] = [
    ...(rows.some(({ engine }) => engine !== null) ? [['Engine', ({ engine }: ProfileRow) => engine ?? ''] as const] : []),
    ...(rows.some(({ shapes }) => shapes !== null)
      ? [['Input Shapes', ({ shapes }: ProfileRow) => `[${shapes?.map(formatShape).join(', ') ?? ''}]`] as const]
      : []),
  ]
  const all = [...cells, ...texts]
  return {
    header: all.map(([title]) => title),
    body: rows.map((row) => all.map(([, of]) => of(row))),
    right: cells.map((_, i) => i).slice(1),
  }
}

const KINDS: Readonly<Record<ProfileGroup, ReadonlySet<ProfileKind>>> = {
  operator: new Set<ProfileKind>(['operator', 'kernel']),
  inputShape: new Set<ProfileKind>(['operator', 'kernel']),
  kernel: new Set<ProfileKind>(['kernel']),
  module: new Set<ProfileKind>(['module']),
  node: new Set<ProfileKind>(['node']),
}

/** The names of the groups. */
export const profileGroups: readonly string[] = Object.keys(KINDS)

/** Whether rows can stand for that. */
export const isProfileGroup = (name: unknown): name is ProfileGroup => typeof name === 'string' && Object.hasOwn(KINDS, name)

type Sums = { -readonly [K in keyof ProfileRow]: ProfileRow[K] }

/** The sums of a group. */
export function averages(events: readonly ProfileEvent[], group: ProfileGroup): readonly ProfileRow[] {
  const kinds = KINDS[group]
  const rows = new Map<string, Sums>()
  const keyOf = ({ kind, graph, name, shapes }: ProfileEvent): string =>
    `${kind} ${kind === 'node' ? (graph ?? '') : ''} ${name}${group === 'inputShape' ? ` ${shapes.map(formatShape).join()}` : ''}`
  for (const event of events) {
    if (!kinds.has(event.kind)) continue
    const key = keyOf(event)
    let row = rows.get(key)
    if (row === undefined) rows.set(key, (row = emptyRow(event, group)))
    row.calls++
    row.selfTime += event.self
    row.peak = Math.max(row.peak, event.peak)
    if (event.kind === 'operator' || event.kind === 'kernel') {
      row.flops += event.flops
      row.bytes += event.bytes
    }
    // What runs inside of one of the same name is counted with that.
    if (isWithinItself(events, event)) continue
    row.totalTime += event.end - event.start
    row.allocations += event.allocations
    row.memory += event.memory
  }
  if (group === 'module' || group === 'node')
    for (const event of events)
      if (event.kind === 'operator' || event.kind === 'kernel')
        for (const key of group === 'module' ? modulesAround(events, event) : nodesAround(events, event, keyOf)) {
          const row = rows.get(key)
          if (row === undefined) continue
          row.flops += event.flops
          row.bytes += event.bytes
        }
  return [...rows.values()]
}

function emptyRow({ kind, name, graph, shapes, engine }: ProfileEvent, group: ProfileGroup): Sums {
  return {
    kind,
    name: kind === 'node' ? `${graph ?? ''}.${name}` : name,
    shapes: group === 'inputShape' ? shapes : null,
    engine,
    ...{ calls: 0, selfTime: 0, totalTime: 0, flops: 0, bytes: 0, allocations: 0, memory: 0, peak: 0 },
  }
}

/** The events around one, innermost first. */
function* around(events: readonly ProfileEvent[], { parent }: ProfileEvent): Generator<ProfileEvent> {
  for (let at = parent; at !== null;) {
    const outer = events[at]
    if (outer === undefined) return
    yield outer
    at = outer.parent
  }
}

/** The rows of the modules that an event belongs to, each once. */
function modulesAround(events: readonly ProfileEvent[], event: ProfileEvent): ReadonlySet<string> {
  const paths = new Set(event.module === null ? [] : [event.module])
  for (const { kind, name } of around(events, event)) if (kind === 'module') paths.add(name)
  return new Set([...paths].map((path) => `module  ${path}`))
}

/** The rows of the nodes that an event runs in, each once. */
function nodesAround(events: readonly ProfileEvent[], event: ProfileEvent, keyOf: (event: ProfileEvent) => string): ReadonlySet<string> {
  return new Set([...around(events, event)].filter(({ kind }) => kind === 'node').map(keyOf))
}

function isWithinItself(events: readonly ProfileEvent[], event: ProfileEvent): boolean {
  for (const { kind, name, graph } of around(events, event)) if (kind === event.kind && name === event.name && graph === event.graph) return true
  return false
}
