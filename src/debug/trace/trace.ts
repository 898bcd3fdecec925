// trace: records what compile does in this process, until it is ended.
/// <reference lib="esnext.disposable" preserve="true" />
import { ArgumentError } from '../../errors/index.ts'
import { runName } from '../../events/index.ts'
import { checkArgument, checkCount, checkOptions, valueText } from '../../protocol/index.ts'
import { pathOf } from '../common/node.ts'
import { TraceFiles } from './files.ts'
import { recordsOf } from './read.ts'
import type { TraceRecord } from './format.ts'
import type { Recorder, TraceSink } from './recorder.ts'
import { atExit, defaultOptions, startRecorder } from './start.ts'

/** Options of {@link trace}. */
export interface TraceOptions {
  /** The folder that the trace is written to; it is made if it is missing. Without it the trace stays in memory, for {@link Trace.records} and `downloadReport`. */
  readonly dir?: string | URL
  /** Whether source lines of the program are written. Default: true in Node unless NODE_ENV is 'production', false in pages. */
  readonly sources?: boolean
  /** Whether kernels are timed, for which compiled functions call them one by one. Default true. */
  readonly launches?: boolean
  /** When the trace has this many characters, further calls are only counted. Default 64 MiB. */
  readonly maxBytes?: number
}

/** Records in memory. */
class TraceMemory implements TraceSink {
  readonly lines: string[] = []

  /** The text of each record is kept: a count goes on changing after it was recorded. */
  record(record: object): number {
    const line = JSON.stringify(record)
    this.lines.push(line)
    return line.length
  }

  text(_name: string, text: string): string {
    return text
  }
}

let latest: Trace | null = null

/** The trace that was started last; null if there was none. */
export const latestTrace = (): Trace | null => latest

/** A trace that is being recorded. `using` ends it at the end of a block. */
export class Trace implements Disposable {
  /** The file that it is written to; null in memory. */
  readonly file: string | null
  readonly #sink: TraceFiles | TraceMemory
  readonly #recorder: Recorder
  #isOver = false

  /** @internal */
  constructor(sink: TraceFiles | TraceMemory, recorder: Recorder) {
    this.#sink = sink
    this.#recorder = recorder
    this.file = sink instanceof TraceFiles ? sink.file : null
  }

  /** What `compile` calls with the number of each function that has this trace as its option. */
  readonly follow = (fn: number): void => this.#recorder.follow(fn)

  /** What was recorded up to now, in memory. Throws ArgumentError for a trace that is written to a folder: `readTraces` reads it. */
  records(): readonly TraceRecord[] {
    checkCount('Trace.records', arguments, 0)
    if (this.#sink instanceof TraceFiles)
      throw new ArgumentError(`Trace.records: this trace is in ${this.#sink.file}. Read it with readTraces, or leave 'dir' out.`)
    if (!this.#isOver) this.#recorder.flush()
    return recordsOf(this.#sink.lines, 'Trace.records')
  }

  /** Stops recording. Later calls do nothing. */
  end(): void {
    checkCount('Trace.end', arguments, 0)
    if (this.#isOver) return
    this.#isOver = true
    this.#recorder.end()
    if (this.#sink instanceof TraceFiles) this.#sink.close()
  }

  [Symbol.dispose](): void {
    this.end()
  }
}

/**
 * Records what compile does from now on: calls, graph breaks, recompiles, graphs with their stages, kernels with their times, memory plans, failures. `tensorfx report dir` shows it as a
 * page, and so does `reportPage`. A trace that is given to `compile` as its option `trace` records only the functions that got it. Values of tensors are never written. Calls
 * that go as earlier ones did are counted. The environment variable TENSORFX_TRACE=dir does the same for a whole program. What tlparse is to PyTorch's TORCH_TRACE.
 *
 * @throws ArgumentError if an option is wrong, or the folder cannot be written to; UnsupportedError for `dir` in a page.
 * @example
 * using t = trace({ dir: 'trace' })
 * const step = compile(trainStep, { trace: t })
 */
export function trace(options: TraceOptions = {}): Trace {
  checkCount('trace', arguments, 1)
  checkOptions('trace', options, { dir: true, sources: 'boolean', launches: 'boolean', maxBytes: 'number' })
  const { dir = null, ...given } = options
  checkArgument(dir === null || typeof dir === 'string' || dir instanceof URL, 'trace', 'options.dir', 'a path or a file URL', dir)
  const { maxBytes } = options
  if (maxBytes !== undefined && !(maxBytes >= 1)) throw new ArgumentError(`trace: option 'maxBytes' must be at least 1, got ${valueText(maxBytes)}.`)
  const path = pathOf('trace', 'options.dir', dir)
  const sink = path === null ? new TraceMemory() : new TraceFiles('trace', path, runName)
  const settings = { ...defaultOptions(), ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) }
  latest = new Trace(sink, startRecorder(sink, settings))
  const started = latest
  if (path !== null) atExit(() => started.end())
  return started
}
