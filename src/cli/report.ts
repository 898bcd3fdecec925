// `tensorfx report`: a traced run as a page, and what was found in it as text.
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { chromeTraceOf, measurePeak, reportHtml, reportOf } from '../debug/report/index.ts'
import type { Finding, Peak, Report } from '../debug/report/index.ts'
import { readTraces } from '../debug/trace/index.ts'
import type { ReadTrace } from '../debug/trace/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { installCompile } from '../install/compile.ts'
import type { Line, Output, Result } from './line.ts'
import { writePage, writeText } from './pages.ts'
import { PLAIN, aligned, paint } from './terminal.ts'
import type { Terminal } from './terminal.ts'

/** The trace of a process; by default of the one that started last. */
function chosen(traces: readonly ReadTrace[], process: string | undefined): ReadTrace {
  const found = process === undefined ? traces.at(-1) : traces.findLast(({ header }) => String(header.pid) === process)
  if (found !== undefined) return found
  throw new ArgumentError(`there is no trace of process ${process ?? ''}. Traced were ${traces.map(({ header }) => header.pid).join(', ')}.`)
}

/** The peak of this machine, if a trace comes from it. */
function peakFor({ header: { machine } }: ReadTrace): Peak | null {
  if (machine?.host !== hostname()) return null
  installCompile()
  return measurePeak()
}

/** A finding with its place in words. */
const finding = (
  { kind, text, place, count }: Finding,
  { places }: Report,
): { kind: string; text: string; count: number; file: string | null; line: number | null } => {
  const at = places[place]
  return { kind, text, count, file: at?.file ?? null, line: at?.line ?? null }
}

const COLOURS: Readonly<Record<string, 'red' | 'yellow'>> = { failure: 'red', drift: 'red', break: 'red', recompile: 'yellow', limit: 'yellow' }

function summaryOf(report: Report, terminal: Terminal): readonly string[] {
  const { calls, hits, graphs, breaks, recompiles, failures, compileMilliseconds } = report.totals
  const rows = report.findings.map((found) => {
    const { kind, text, count, file, line } = finding(found, report)
    const colour = COLOURS[kind]
    return [
      `  ${colour === undefined ? kind : paint(terminal, colour, kind)}`,
      file === null ? '-' : `${file}:${line}`,
      `${text}${count > 1 ? ` (${count} times)` : ''}`,
    ]
  })
  return [
    `${report.title}: ${calls} calls, ${hits} of them hits; ${graphs} graphs compiled in ${compileMilliseconds.toFixed(0)} ms; ${breaks} breaks, ${recompiles} recompiles, ${failures} failures`,
    ...aligned(rows, terminal),
  ]
}

/** Runs `tensorfx report`. */
export async function reportRun({ operands, options }: Line, { note, terminal = PLAIN }: Output): Promise<Result> {
  const [dir, second] = operands
  if (dir === undefined || second !== undefined) throw new ArgumentError(`expected one folder of a trace, got ${operands.length}.`)
  const traces = readTraces(dir)
  const first = chosen(traces, options.get('--process'))
  const otherDir = options.get('--diff')
  const later = otherDir === undefined ? null : chosen(readTraces(otherDir), undefined)
  const peak = peakFor(later ?? first)
  const report = reportOf(first.records, peak)
  const other = later === null ? null : reportOf(later.records, peak)
  const out = options.get('--out') ?? join(dir, 'report.html')
  await writePage(out, reportHtml(other === null ? [report] : [report, other]), options.has('--open') ? note : null)
  const shown = other ?? report
  const chrome = options.has('--chrome') ? join(dirname(out), 'trace.json') : null
  if (chrome !== null) writeText(chrome, JSON.stringify(chromeTraceOf((later ?? first).records)))
  const text = [
    ...summaryOf(shown, terminal),
    '',
    ...(traces.length === 1
      ? []
      : [`The folder has traces of ${traces.length} processes: ${traces.map(({ header }) => header.pid).join(', ')}; this is ${first.header.pid}.`]),
    `Wrote ${out}${chrome === null ? '' : ` and ${chrome}`}`,
  ].join('\n')
  const runs = [report, ...(other === null ? [] : [other])].map((of) => ({
    ...{ title: of.title, about: Object.fromEntries(of.about), isComplete: of.isComplete, totals: of.totals },
    findings: of.findings.map((found) => finding(found, of)),
  }))
  return { text, code: 0, data: { dir, page: out, chrome, processes: traces.map(({ header }) => header.pid), runs } }
}
