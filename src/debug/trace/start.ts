// Starts traces: the header, the recorder, and the folder that TENSORFX_TRACE names. Every program that compiles loads this file, so that nothing has to be awaited before its first call;
// what reads traces and shows them is loaded by those who ask.
import { runName } from '../../events/index.ts'
import { environmentVariable, hostProcess } from '../../protocol/index.ts'
import { VERSION } from '../../version.ts'
import { nodeModule } from '../common/node.ts'
import { TraceFiles } from './files.ts'
import { TRACE_VERSION } from './format.ts'
import type { Machine, TraceHeader } from './format.ts'
import { Recorder } from './recorder.ts'
import type { RecorderOptions, TraceSink } from './recorder.ts'

/** A file of 64 MiB has some ten thousand compiled graphs. */
const MOST_BYTES = 64 * 2 ** 20

/** Whether source lines are written unless the program says so: they belong to whoever runs a program in Node, but a page may be anyone's. */
const sourcesByDefault = (): boolean => hostProcess() !== undefined && environmentVariable('NODE_ENV') !== 'production'

/** What is recorded, where the program does not say. */
export const defaultOptions = (): RecorderOptions => ({ sources: sourcesByDefault(), launches: true, maxBytes: MOST_BYTES })

function machine(): Machine | null {
  const os = nodeModule('node:os')
  return os === null ? null : { host: os.hostname(), cpu: os.cpus()[0]?.model.trim() ?? 'unknown', cores: os.availableParallelism() }
}

function header(sources: boolean): TraceHeader {
  const host = hostProcess()
  return {
    kind: 'trace',
    version: TRACE_VERSION,
    tensorfx: VERSION,
    run: runName,
    pid: host?.pid ?? null,
    started: new Date().toISOString(),
    time: performance.now(),
    program: host?.argv?.[1] ?? globalThis.location?.href ?? 'unknown',
    runtime: host?.version === undefined ? (globalThis.navigator?.userAgent ?? 'unknown') : `Node ${host.version.replace(/^v/, '')}`,
    machine: machine(),
    sources,
  }
}

/** Writes the header, and records from now on. */
export function startRecorder(sink: TraceSink, options: RecorderOptions): Recorder {
  sink.record(header(options.sources))
  return new Recorder(sink, options)
}

/** Calls `end` when the process ends by itself. */
export function atExit(end: () => void): void {
  hostProcess()?.on?.('exit', end)
}

/** Traces this process if TENSORFX_TRACE names a folder. The composition root calls it. Throws ArgumentError if the folder cannot be written to. */
export function installTrace(): void {
  const folder = environmentVariable('TENSORFX_TRACE')
  if (folder === undefined || folder === '') return
  const recorder = startRecorder(new TraceFiles(`TENSORFX_TRACE=${folder}`, folder, runName), defaultOptions())
  atExit(() => recorder.end())
}
