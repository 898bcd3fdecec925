// Reads traces: the records of each process in a folder, with the texts that are files of their own put back. A last line that is cut is left out: its process was killed.
import { ArgumentError } from '../../errors/index.ts'
import { checkArgument, checkCount, isObject } from '../../protocol/index.ts'
import { nodeModule, pathOf } from '../common/node.ts'
import { TRACE_VERSION, isTextFile } from './format.ts'
import type { TraceHeader, TraceRecord } from './format.ts'

/** The trace of one process. */
export interface ReadTrace {
  /** The path of its file. */
  readonly file: string
  readonly header: TraceHeader
  readonly records: readonly TraceRecord[]
}

/** The text in a file beside the trace; null if it is not there. */
type TextOf = (file: string) => string | null

const isRecord = (value: unknown): value is TraceRecord => isObject(value) && 'kind' in value && typeof value.kind === 'string'

/** The value of a line; undefined if the line is cut. */
function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function withTexts(value: unknown, textOf: TextOf): unknown {
  if (Array.isArray(value)) return value.map((item) => withTexts(item, textOf))
  if (!isObject(value)) return value
  if (isTextFile(value)) return textOf(value.file) ?? `(the file ${value.file} is missing)`
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, withTexts(item, textOf)]))
}

/** The records of lines. `where` begins errors. Throws ArgumentError if they are no trace, or one of a later version. */
export function recordsOf(lines: readonly string[], where: string, textOf: TextOf = () => null): readonly TraceRecord[] {
  const records = lines.map((line) => withTexts(parsed(line), textOf)).filter(isRecord)
  const [header] = records
  if (header?.kind !== 'trace') throw new ArgumentError(`${where}: this is no trace: the first line must be the header that tensorfx writes.`)
  if (header.version > TRACE_VERSION)
    throw new ArgumentError(
      `${where}: this trace is of version ${header.version}, written by tensorfx ${header.tensorfx}; this tensorfx reads version ${TRACE_VERSION}. Use that tensorfx, or a later one.`,
    )
  return records
}

/** The records of a file that a process wrote. */
function readTrace(fs: typeof import('node:fs'), path: typeof import('node:path'), file: string): ReadTrace {
  const folder = path.dirname(file)
  const textOf = (name: string): string | null => {
    // The trace may come from anywhere: it reads its own artifacts, and no other files.
    if (!/^artifacts\/[\w.-]+$/.test(name)) return null
    const at = path.join(folder, name)
    return fs.existsSync(at) ? fs.readFileSync(at, 'utf8') : null
  }
  const lines = fs.readFileSync(file, 'utf8').split('\n')
  const records = recordsOf(lines, `readTraces: ${file}`, textOf)
  const [header] = records
  if (header?.kind !== 'trace') throw new ArgumentError(`readTraces: ${file} has no header.`)
  return { file, header, records }
}

/**
 * The traces in a folder, one for each process that was traced, oldest first. Also reads those of processes that were killed, or that still run. Node only.
 *
 * @throws ArgumentError if there is no trace, or one that this version cannot read.
 */
export function readTraces(dir: string | URL): readonly ReadTrace[] {
  checkCount('readTraces', arguments, 1)
  checkArgument(typeof dir === 'string' || dir instanceof URL, 'readTraces', 'dir', 'the path of a folder', dir)
  const [fs, path, folder] = [nodeModule('node:fs'), nodeModule('node:path'), pathOf('readTraces', 'dir', dir)]
  if (fs === null || path === null || folder === null)
    throw new ArgumentError('readTraces: there is no file system here; use the records of trace().')
  if (!fs.existsSync(folder) || !fs.statSync(folder).isDirectory()) throw new ArgumentError(`readTraces: there is no folder '${folder}'.`)
  const names = fs.readdirSync(folder).filter((name) => name.endsWith('.jsonl'))
  if (names.length === 0)
    throw new ArgumentError(`readTraces: the folder '${folder}' has no trace. Run a program with TENSORFX_TRACE=${folder} to write one.`)
  const traces = names.map((name) => readTrace(fs, path, path.join(folder, name)))
  return traces.sort((a, b) => a.header.started.localeCompare(b.header.started))
}
