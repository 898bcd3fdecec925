// Makes the report of a trace.
import { ArgumentError } from '../../errors/index.ts'
import type { TraceHeader, TraceRecord } from '../trace/index.ts'
import type { Peak, Report, Totals } from './data.ts'
import { findingsOf } from './findings.ts'
import { Lists } from './graphs.ts'
import { TimelineReader } from './timeline.ts'
import type { Timeline } from './timeline.ts'

/** What a trace shows, as data. `peak`: the speeds of the machine that the program ran on; null if they are not known. Throws ArgumentError unless the records begin with a header. */
export function reportOf(records: readonly TraceRecord[], peak: Peak | null): Report {
  const [header] = records
  if (header?.kind !== 'trace') throw new ArgumentError('the records must be those of a trace, the header first.')
  const lists = new Lists()
  const timeline = new TimelineReader(lists, header.time).read(records)
  const graphs = timeline.reader.finish(timeline.launches)
  const program = header.program.split(/[\\/]/).at(-1) ?? header.program
  return {
    title: program,
    about: about(header),
    isComplete: records.at(-1)?.kind === 'end',
    peak: peak === null ? null : reached(peak, graphs),
    totals: totals(timeline, graphs),
    findings: findingsOf(timeline.rows, graphs),
    rows: timeline.rows,
    graphs,
    places: lists.places.list,
    texts: lists.texts.list,
  }
}

/** A kernel that was faster than the measured peak sets another one: the machine was busy when it was measured. */
function reached({ gflops, gigabytesPerSecond }: Peak, graphs: Report['graphs']): Peak {
  const timed = graphs.flatMap(({ kernels }) => kernels).filter(({ least }) => least > 0)
  const most = (of: (kernel: (typeof timed)[number]) => number): number => Math.max(0, ...timed.map((kernel) => of(kernel) / (kernel.least * 1e6)))
  return {
    gflops: Math.max(
      gflops,
      most(({ flops }) => flops ?? 0),
    ),
    gigabytesPerSecond: Math.max(
      gigabytesPerSecond,
      most(({ bytes }) => bytes),
    ),
  }
}

function about({ program, started, tensorfx, runtime, machine, pid }: TraceHeader): Report['about'] {
  return [
    ['program', program],
    ['started', started],
    ['tensorfx', tensorfx],
    ['runtime', runtime],
    ...(machine === null ? [] : [['machine', `${machine.cpu}, ${machine.cores} ${machine.cores === 1 ? 'core' : 'cores'}`] as const]),
    ...(pid === null ? [] : [['process', String(pid)] as const]),
  ]
}

function totals({ counts }: Timeline, graphs: Report['graphs']): Totals {
  const kernels = graphs.flatMap((graph) => graph.kernels)
  const sum = (numbers: readonly (number | null)[]): number => numbers.reduce((all: number, n) => all + (n ?? 0), 0)
  return {
    ...counts,
    graphs: graphs.length,
    kernels: kernels.length,
    cachedKernels: kernels.filter(({ isCached }) => isCached).length,
    compileMilliseconds: sum(graphs.map(({ milliseconds }) => milliseconds)),
    kernelMilliseconds: sum(kernels.map(({ milliseconds }) => milliseconds)),
    arenaBytes: Math.max(0, ...graphs.flatMap(({ memory }) => memory.map(({ arenaBytes }) => arenaBytes))),
  }
}
