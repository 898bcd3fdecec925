// Sums of a profile's events, and their table. PyTorch's `key_averages()`.
import { ArgumentError } from '../../errors/index.ts'
import type { EngineName } from '../../kernels/index.ts'
import { sizeText } from '../../protocol/sizeText.ts'
import { checkCount, checkOptions, valueText } from '../../protocol/index.ts'
import { formatShape } from '../../tensor/index.ts'
import { table } from '../common/table.ts'
import { isProfileColumn, profileColumns } from './columns.ts'
import type { ProfileColumn, ProfileGroup } from './columns.ts'
import type { ProfileEngine, ProfileEvent, ProfileKind } from './event.ts'
import { countText } from './units.ts'

/** The events of one name (and, if asked for, of the same input shapes), summed over all runs. Times are in milliseconds. */
export interface ProfileRow {
  readonly kind: ProfileKind
  /** A node's name follows the path of its graph: `Net.conv1`. */
  readonly name: string
  /** The shapes of the tensors that the operator got, if rows are grouped by them; otherwise null. */
  readonly shapes: readonly (readonly number[])[] | null
  /** What computed it; null for modules and nodes. */
  readonly engine: ProfileEngine | null
  /** The instructions that it was compiled to; null for what consists of other events. */
  readonly instructions: EngineName | null
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

/** Options of {@link KeyAverages.table}. */
export interface ProfileTableOptions {
  /** The column to sort by, largest first. Default 'selfTime'. */
  readonly sortBy?: ProfileColumn
  /** How many rows are shown at most. Default: all. */
  readonly rowLimit?: number
  /** The most characters in a line: columns that matter less are left out, and long names end in '…'. Default: any number. */
  readonly width?: number
}

/** A time as PyTorch's tables write it. */
function timeText(milliseconds: number): string {
  if (milliseconds >= 1000) return `${(milliseconds / 1000).toFixed(3)}s`
  return milliseconds >= 1 ? `${milliseconds.toFixed(3)}ms` : `${(milliseconds * 1000).toFixed(3)}us`
}

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
    checkOptions('KeyAverages.table', options, { sortBy: true, rowLimit: 'number', width: 'number' })
    const { sortBy = 'selfTime', rowLimit = Infinity, width = Infinity } = options
    if (!isProfileColumn(sortBy))
      throw new ArgumentError(`KeyAverages.table: option 'sortBy' must be one of ${profileColumns.join(', ')}, got ${valueText(sortBy)}.`)
    if (!(rowLimit >= 1)) throw new ArgumentError(`KeyAverages.table: option 'rowLimit' must be at least 1, got ${valueText(rowLimit)}.`)
    const sorted = this.rows.toSorted((a, b) => b[sortBy] - a[sortBy]).slice(0, rowLimit)
    return [
      textOf(columnsOf(sorted, this.totalTime), sorted, width),
      `CPU time total: ${timeText(this.totalTime)}, outside of operators and kernels: ${timeText(this.outsideTime)}`,
    ].join('\n')
  }

  toString(): string {
    return this.table()
  }
}

/** A column of the table. Those with the highest rank are left out first where there is no room. */
interface Column {
  readonly title: string
  readonly of: (row: ProfileRow) => string
  readonly rank: number
}

function columnsOf(rows: readonly ProfileRow[], totalTime: number): readonly Column[] {
  const share = (time: number): string => `${((100 * time) / Math.max(totalTime, Number.MIN_VALUE)).toFixed(2)}%`
  const columnOf = (title: string, rank: number, of: Column['of']): Column => ({ title, of, rank })
  return [
    columnOf('Name', 0, ({ name }) => name),
    columnOf('Self CPU %', 1, ({ selfTime }) => share(selfTime)),
    columnOf('Self CPU', 0, ({ selfTime }) => timeText(selfTime)),
    columnOf('CPU total %', 7, ({ totalTime: time }) => share(time)),
    columnOf('CPU total', 3, ({ totalTime: time }) => timeText(time)),
    columnOf('CPU time avg', 4, ({ totalTime: time, calls }) => timeText(time / calls)),
    columnOf('# of Calls', 2, ({ calls }) => String(calls)),
    columnOf('FLOPs', 5, ({ flops }) => (flops === 0 ? '--' : countText(Math.round(flops)))),
    columnOf('Bytes', 9, ({ bytes }) => sizeText(bytes)),
    columnOf('Allocations', 12, ({ allocations }) => String(allocations)),
    columnOf('CPU Mem', 11, ({ memory }) => (memory < 0 ? `-${sizeText(-memory)}` : sizeText(memory))),
    columnOf('Peak Mem', 10, ({ peak }) => sizeText(peak)),
    ...(rows.some(({ engine }) => engine !== null)
      ? [columnOf('Engine', 8, ({ engine, instructions }) => [engine, instructions].filter((name) => name !== null).join(', '))]
      : []),
    ...(rows.some(({ shapes }) => shapes !== null)
      ? [columnOf('Input Shapes', 6, ({ shapes }) => `[${shapes?.map(formatShape).join(', ') ?? ''}]`)]
      : []),
  ]
}

/** The columns that are texts, and so begin at the left. */
const TEXTS: ReadonlySet<string> = new Set(['Name', 'Engine', 'Input Shapes'])
/** No name is cut to less than this, if there are other columns to leave out. */
const NARROWEST = 16

/** The table, with as many columns as there is room for. */
function textOf(all: readonly Column[], rows: readonly ProfileRow[], width: number): string {
  const widthOf = ({ title, of }: Column): number => Math.max(title.length, ...rows.map((row) => of(row).length))
  let columns = all
  const excess = (name: number): number => columns.reduce((sum, column) => sum + 2 + (column.title === 'Name' ? name : widthOf(column)), -2) - width
  const longest = Math.max(4, ...rows.map(({ name }) => name.length))
  for (let rank = Math.max(...all.map((column) => column.rank)); rank > 0 && excess(Math.min(longest, NARROWEST)) > 0; rank--)
    columns = columns.filter((column) => column.rank !== rank)
  const room = Math.max(1, longest - Math.max(0, excess(longest)))
  const cut = (text: string): string => (text.length <= room ? text : `${text.slice(0, room - 1)}…`)
  return table(
    columns.map(({ title }) => title),
    rows.map((row) => columns.map(({ title, of }) => (title === 'Name' ? cut(of(row)) : of(row)))),
    { right: columns.flatMap(({ title }, i) => (TEXTS.has(title) ? [] : [i])) },
  )
}

const KINDS: Readonly<Record<ProfileGroup, ReadonlySet<ProfileKind>>> = {
  operator: new Set<ProfileKind>(['operator', 'kernel']),
  inputShape: new Set<ProfileKind>(['operator', 'kernel']),
  kernel: new Set<ProfileKind>(['kernel']),
  module: new Set<ProfileKind>(['module']),
  node: new Set<ProfileKind>(['node']),
}

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

function emptyRow({ kind, name, graph, shapes, engine, instructions }: ProfileEvent, group: ProfileGroup): Sums {
  return {
    kind,
    name: kind === 'node' ? `${graph ?? ''}.${name}` : name,
    shapes: group === 'inputShape' ? shapes : null,
    engine,
    instructions,
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
