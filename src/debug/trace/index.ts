// Traces: what compile does in a run, recorded as files or in memory, and read again.
export { TRACE_VERSION } from './format.ts'
export type { AgainRecord, EndRecord, FullRecord, LaunchesRecord, Machine, TraceHeader, TraceRecord } from './format.ts'
export { readTraces, recordsOf } from './read.ts'
export type { ReadTrace } from './read.ts'
export { Trace, latestTrace, trace } from './trace.ts'
export type { TraceOptions } from './trace.ts'
