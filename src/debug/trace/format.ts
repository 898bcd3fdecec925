// The files of a trace. A folder holds a file `<run>.jsonl` for each traced process, and `artifacts/` with the longer texts (generated code, kernels, results of passes). Each line is one
// record as JSON; the first one is the header. Lines are appended as things happen, so that a process that is killed leaves all but its last moments, at worst with a last line that is cut.
import type { CompileEvent } from '../../events/index.ts'

/** Is raised when a reader of the version before would misunderstand the files. */
export const TRACE_VERSION = 1

/** The machine that a program ran on: speeds are compared with peaks of the same one. */
export interface Machine {
  readonly host: string
  readonly cpu: string
  readonly cores: number
}

/** The first line of a file. */
export interface TraceHeader {
  readonly kind: 'trace'
  readonly version: number
  readonly tensorfx: string
  /** Names the run: that of its events. */
  readonly run: string
  /** The number of the process; null in a browser. */
  readonly pid: number | null
  /** When the trace began, as an ISO date, and in the milliseconds of its events. */
  readonly started: string
  readonly time: number
  /** The script that Node runs, or the address of the page. */
  readonly program: string
  /** `Node 20.20.0`, or what the browser says of itself. */
  readonly runtime: string
  readonly machine: Machine | null
  /** Whether frames have their source lines. */
  readonly sources: boolean
}

/** Calls that went like one that is in the file, counted. */
export interface AgainRecord {
  readonly kind: 'again'
  /** The id of the event that began the call which they are like; only its function, if `isLike` is false. */
  readonly of: number
  /** Whether they had the same arguments, line and outcome. Past some hundred ways of calling a function, further ones are not told apart. */
  readonly isLike: boolean
  readonly count: number
  /** When the first one began and the last one ended. */
  readonly from: number
  readonly to: number
  /** The time of all, of the fastest and of the slowest one. */
  readonly milliseconds: number
  readonly least: number
  readonly most: number
}

/** How often kernels have run since the last such record: runs, the time of all and of the fastest one, in milliseconds. */
export interface LaunchesRecord {
  readonly kind: 'launches'
  readonly time: number
  readonly kernels: Readonly<Record<string, readonly [runs: number, milliseconds: number, least: number]>>
}

/** The file is as long as it may be: from here on only calls and kernels are counted. */
export interface FullRecord {
  readonly kind: 'full'
  readonly time: number
}

/** The trace was ended. A program that was killed has no such line. */
export interface EndRecord {
  readonly kind: 'end'
  readonly time: number
}

/** An event whose longer texts may be files: `{ file: 'artifacts/…' }`. `record`, `inline` and `launch` are never among them. */
export type TraceRecord = TraceHeader | CompileEvent | AgainRecord | LaunchesRecord | FullRecord | EndRecord

/** Where a longer text is. */
export interface TextFile {
  readonly file: string
}

/** Whether a value of a record is a text in a file. */
export const isTextFile = (value: unknown): value is TextFile =>
  typeof value === 'object' && value !== null && 'file' in value && typeof value.file === 'string' && Object.keys(value).length === 1
