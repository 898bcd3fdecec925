// tensorfx/debug/trace: what compile does in a run, recorded and shown as a page. Loaded by those who ask for it; what TENSORFX_TRACE needs is part of compile.
import { installCompile } from '../../install/compile.ts'
export { downloadReport, reportPage } from '../../debug/report/index.ts'
export type { DownloadReportOptions, Peak, ReportPageOptions, Traced } from '../../debug/report/index.ts'
export { Trace, readTraces, trace } from '../../debug/trace/index.ts'
export type {
  AgainRecord,
  EndRecord,
  FullRecord,
  LaunchesRecord,
  Machine,
  ReadTrace,
  TraceHeader,
  TraceOptions,
  TraceRecord,
} from '../../debug/trace/index.ts'

installCompile()
