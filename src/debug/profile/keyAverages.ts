// Sums of a profile's events by name, and their table. PyTorch's `key_averages()`.
import { ArgumentError } from '../../errors/index.ts'
import { sizeText } from '../../kernels/sizeText.ts'
import { checkCount, checkOptions, valueText } from '../../protocol/index.ts'
import { table } from '../table.ts'
import type { ProfileEvent, ProfileKind } from './recorder.ts'
import { countText } from './units.ts'

/** The events of one name, summed over all runs. Times are in milliseconds. */
export interface ProfileRow {
  readonly kind: ProfileKind
  readonly name: string
  readonly calls: number
  /** The time without that of operators and kernels inside (of a module: without that of modules inside), and with it. */
  readonly selfTime: number
  readonly totalTime: number
  /** Floating-point operations of the operators themselves; of a module, of all operators that belong to it or to one below it. Null if they are not known. */
  readonly flops: number | null
  /** Bytes of the tensors that the operators got and returned; null if they are not known. */
  readonly bytes: number | null
  /** Blocks of memory that were allocated meanwhile, bytes in use more than before, and the most bytes in use at the end of a call. */
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

const isColumn = (name: unknown): name is ProfileColumn => typeof name === 'string' && Object.hasOwn(columns, name)

const timeText = (milliseconds: number): string => (milliseconds < 1 ? `${(milliseconds * 1000).toFixed(3)}us` : `${milliseconds.toFixed(3)}ms`)

/** Rows of a profile, one for each operator, kernel or module. */
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
      throw new ArgumentError(`KeyAverages.table: option 'sortBy' must be one of ${Object.keys(columns).join(', ')}, got ${valueText(sortBy)}.`)
    if (!(rowLimit >= 1)) throw new ArgumentError(`KeyAverages.table: option 'rowLimit' must be at least 1, got ${valueText(rowLimit)}.`)
    const sorted = this.rows.toSorted((a, b) => (b[sortBy] ?? 0) - (a[sortBy] ?? 0)).slice(0, rowLimit)
    const share = (time: number): string => `${((100 * time) / Math.max(this.totalTime, Number.MIN_VALUE)).toFixed(2)}%`
    const header = [
      'Name',
      'Self CPU %',
      'Self CPU',
      'CPU total %',
      'CPU total',
      'CPU time avg',
      '# of Calls',
      'FLOPs',
      'Bytes',
      'Allocations',
      'CPU Mem',
      'Peak Mem',
    ]
    const body = sorted.map((row) => [
      row.name,
      share(row.selfTime),
      timeText(row.selfTime),
      share(row.totalTime),
      timeText(row.totalTime),
      timeText(row.totalTime / row.calls),
      String(row.calls),
      row.flops === null || row.flops === 0 ? '--' : countText(row.flops),
      row.bytes === null ? '--' : sizeText(row.bytes),
      String(row.allocations),
      row.memory < 0 ? `-${sizeText(-row.memory)}` : sizeText(row.memory),
      sizeText(row.peak),
    ])
    return [
      table(header, body, { right: header.map((_, i) => i).slice(1) }),
      `CPU time total: ${timeText(this.totalTime)}, outside of operators and kernels: ${timeText(this.outsideTime)}`,
    ].join('\n')
  }

  toString(): string {
    return this.table()
  }
}

/** The paths of modules that a module's path lies in, itself included, as they were called. */
function around(events: readonly ProfileEvent[], event: ProfileEvent): ReadonlySet<string> {
  const paths = new Set(event.module === null ? [] : [event.module])
  for (let at = event.parent; at !== null; at = events[at]?.parent ?? null) {
    const outer = events[at]
    if (outer?.kind === 'module') paths.add(outer.name)
  }
  return paths
}

/** The sums by name: of operators and kernels, or of modules. */
export function averages(events: readonly ProfileEvent[], kinds: ReadonlySet<ProfileKind>): readonly ProfileRow[] {
  const rows = new Map<string, { -readonly [K in keyof ProfileRow]: ProfileRow[K] }>()
  for (const event of events) {
    if (!kinds.has(event.kind)) continue
    const { kind, name } = event
    const key = `${kind} ${name}`
    let row = rows.get(key)
    if (row === undefined) {
      row = { kind, name, calls: 0, selfTime: 0, totalTime: 0, flops: event.flops, bytes: event.bytes, allocations: 0, memory: 0, peak: 0 }
      rows.set(key, row)
    } else {
      if (row.flops !== null) row.flops += event.flops ?? 0
      if (row.bytes !== null) row.bytes += event.bytes ?? 0
    }
    row.calls++
    row.selfTime += event.self
    row.peak = Math.max(row.peak, event.inUse)
    // What runs inside of one of the same name is counted with that.
    if (isWithinItself(events, event)) continue
    row.totalTime += event.end - event.start
    row.allocations += event.allocations
    row.memory += event.memory
  }
  if (kinds.has('module'))
    for (const event of events)
      if (event.kind === 'operator')
        for (const path of around(events, event)) {
          const row = rows.get(`module ${path}`)
          if (row === undefined) continue
          row.flops = (row.flops ?? 0) + (event.flops ?? 0)
          row.bytes = (row.bytes ?? 0) + (event.bytes ?? 0)
        }
  return [...rows.values()]
}

function isWithinItself(events: readonly ProfileEvent[], { kind, name, parent }: ProfileEvent): boolean {
  for (let at = parent; at !== null;) {
    const outer = events[at]
    if (outer?.kind === kind && outer.name === name) return true
    at = outer?.parent ?? null
  }
  return false
}
