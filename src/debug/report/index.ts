// The report of a run: a trace as data, as a page, and for the viewer of Chrome.
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import { checkCount, checkOptions, checkString, isObject, valueText } from '../../protocol/index.ts'
import { Trace, latestTrace } from '../trace/index.ts'
import type { ReadTrace, TraceRecord } from '../trace/index.ts'
import type { Peak, Report } from './data.ts'
import { reportHtml } from './page.ts'
import { measurePeak } from './peak.ts'
import { reportOf } from './report.ts'

export { chromeTraceOf } from './chrome.ts'
export { measurePeak } from './peak.ts'
export { reportHtml } from './page.ts'
export { reportOf } from './report.ts'
export type { Finding, Peak, Place, Report, Totals } from './data.ts'

/** A trace of this process in memory, or one that was read. */
export type Traced = Trace | ReadTrace

/** Options of {@link reportPage}. */
export interface ReportPageOptions {
  /** An earlier run: the page then compares the two. */
  readonly before?: Traced
  /** The speeds that kernels are compared with: billions of floating-point operations and of bytes in a second. Default: those that this machine reaches. Null: none, for a trace of another machine. */
  readonly peak?: Peak | null
}

/** Options of {@link downloadReport}. */
export interface DownloadReportOptions extends ReportPageOptions {
  /** Default: the trace that was started last. */
  readonly trace?: Traced
  /** The name of the file. Default: report.html. */
  readonly name?: string
}

function recordsIn(where: string, traced: unknown): readonly TraceRecord[] {
  if (traced instanceof Trace) return traced.records()
  if (isObject(traced) && 'records' in traced && Array.isArray(traced.records)) return traced.records
  throw new ArgumentError(`${where}: expected a trace, as trace() or readTraces() returns it, got ${valueText(traced)}.`)
}

/**
 * The text of an HTML page that shows a run: what failed, broke graphs or was compiled again, with lines of the program; calls in time order; and for each compiled graph its stages, fusion,
 * memory and kernels. It needs no network and no other file. `tensorfx report dir` writes the same page.
 *
 * @throws ArgumentError unless `traced` is a trace.
 * @example
 * using t = trace()
 * train()
 * writeFileSync('report.html', reportPage(t))
 */
export function reportPage(traced: Traced, options: ReportPageOptions = {}): string {
  checkCount('reportPage', arguments, 2)
  checkOptions('reportPage', options, { before: true, peak: true })
  return htmlOf('reportPage', traced, options)
}

function htmlOf(where: string, traced: Traced, { before, peak = measurePeak() }: ReportPageOptions): string {
  const after: Report = reportOf(recordsIn(where, traced), peak)
  return reportHtml(before === undefined ? [after] : [reportOf(recordsIn(`${where}: option 'before'`, before), peak), after])
}

/**
 * In a page: makes the browser save the report of a run. The trace goes on.
 *
 * @throws ArgumentError if no trace was started; UnsupportedError outside of a page.
 * @example
 * const t = trace()
 * button.onclick = () => downloadReport()
 */
export function downloadReport(options: DownloadReportOptions = {}): void {
  checkCount('downloadReport', arguments, 1)
  checkOptions('downloadReport', options, { before: true, peak: true, trace: true, name: true })
  const { trace = latestTrace(), name = 'report.html', ...rest } = options
  checkString('downloadReport', 'options.name', name)
  if (trace === null) throw new ArgumentError('downloadReport: no trace was started. Call trace() before what you want to see.')
  if (globalThis.document === undefined)
    throw new UnsupportedError('downloadReport: there is no page here. Write the text of reportPage(trace) to a file.')
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([htmlOf('downloadReport', trace, rest)], { type: 'text/html' }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
