// What a reader of a report should know first: what failed, what broke graphs, what was compiled again, what is slow or large, each with a line of the program.
import { sizeText } from '../../protocol/sizeText.ts'
import { NONE } from './data.ts'
import type { Finding, GraphFacts, Kind, Row } from './data.ts'
import { timeText } from '../../protocol/timeText.ts'

/** The kinds, most important first. */
const ORDER: readonly Kind[] = [
  'failure',
  'drift',
  'break',
  'recompile',
  'limit',
  'fallback',
  'slow kernel',
  'memory peak',
  'refused fusion',
  'cache miss',
]
/** How many of the slowest kernels, and of the programs that keep most memory, are named. */
const LARGEST = 5
/** At most this many findings of a kind; the rest can be seen in the timeline. */
const MOST_OF_A_KIND = 40

/** Draws findings from rows and graphs. */
export function findingsOf(rows: readonly Row[], graphs: readonly GraphFacts[]): readonly Finding[] {
  const rowOf = (graph: number): number => rows.findIndex((row) => row.kind === 'compile' && row.graph === graph)
  const known = new Map<string, Finding>()
  /** Findings of a kind that say the same of a line are one. */
  const add = (finding: Finding, what: string = finding.text): void => {
    const key = JSON.stringify([finding.kind, what, finding.place])
    const same = known.get(key)
    known.set(key, same === undefined ? finding : { ...same, count: same.count + finding.count })
  }
  for (const [row, { kind, title, place }] of rows.entries())
    if (kind === 'failure' || kind === 'drift' || kind === 'break' || kind === 'recompile' || kind === 'limit' || kind === 'fallback')
      add({ kind, text: title, place, count: 1, row, tab: null })
  for (const [at, { fallbacks, refused, kernels }] of graphs.entries()) {
    const row = rowOf(at)
    for (const { operator, reason, place } of fallbacks)
      add({ kind: 'fallback', text: `${operator} runs as an eager kernel: ${reason}`, place, count: 1, row, tab: 'fusion' })
    for (const { first, second, reason, places } of refused) {
      const place = places[1] === NONE ? places[0] : places[1]
      add(
        { kind: 'refused fusion', text: `${operatorIn(first)} and ${operatorIn(second)} stay apart: ${reason}`, place, count: 1, row, tab: 'fusion' },
        reason,
      )
    }
    const missed = kernels.filter(({ isCached, type }) => !isCached && type !== 'extern')
    const [costliest] = missed.toSorted((a, b) => b.compileMilliseconds - a.compileMilliseconds)
    const spent = missed.reduce((sum, kernel) => sum + kernel.compileMilliseconds, 0)
    if (costliest !== undefined)
      add({
        kind: 'cache miss',
        count: 1,
        row,
        tab: 'kernels',
        place: costliest.places.at(-1) ?? NONE,
        text: `${missed.length} of ${kernels.length} ${kernels.length === 1 ? 'kernel' : 'kernels'} compiled anew, ${timeText(spent)}`,
      })
  }
  for (const finding of slowKernels(graphs, rowOf)) add(finding)
  for (const finding of memoryPeaks(graphs, rowOf)) add(finding)
  const found = [...known.values()]
  return ORDER.flatMap((kind) => found.filter((finding) => finding.kind === kind).slice(0, MOST_OF_A_KIND))
}

/** `relu` of `buf1 (relu)`: buffers of other graphs have the same names. */
const operatorIn = (label: string): string => /\((.*)\)$/.exec(label)?.[1] ?? label

/** The kernels that take most of the time. */
function slowKernels(graphs: readonly GraphFacts[], rowOf: (graph: number) => number): readonly Finding[] {
  const all = graphs.flatMap(({ kernels }, at) => kernels.map((kernel) => ({ kernel, at }))).filter(({ kernel }) => kernel.runs > 0)
  const total = all.reduce((sum, { kernel }) => sum + kernel.milliseconds, 0)
  return all
    .toSorted((a, b) => b.kernel.milliseconds - a.kernel.milliseconds)
    .slice(0, LARGEST)
    .map(({ kernel: { name, runs, milliseconds, places }, at }): Finding => ({
      kind: 'slow kernel',
      count: 1,
      row: rowOf(at),
      tab: 'kernels',
      place: places[0] ?? NONE,
      text: `${name} takes ${Math.round((100 * milliseconds) / total)}% of the time of kernels: ${timeText(milliseconds)} in ${runs} ${runs === 1 ? 'run' : 'runs'}`,
    }))
}

/** The compiled programs that keep most memory for temporaries: where the largest of them at the peak comes from. */
function memoryPeaks(graphs: readonly GraphFacts[], rowOf: (graph: number) => number): readonly Finding[] {
  return graphs
    .flatMap(({ memory }, at) => memory.map((plan) => ({ plan, at })))
    .filter(({ plan }) => plan.peakBytes > 0)
    .toSorted((a, b) => b.plan.peakBytes - a.plan.peakBytes)
    .slice(0, LARGEST)
    .map(({ plan: { program, peakBytes, peakStep, lifetimes }, at }): Finding => {
      const [largest] = lifetimes.filter(({ first, last }) => first <= peakStep && peakStep <= last).toSorted((a, b) => b.bytes - a.bytes)
      return {
        kind: 'memory peak',
        count: 1,
        row: rowOf(at),
        tab: 'memory',
        place: largest?.place ?? NONE,
        text: `${program} keeps ${sizeText(peakBytes)} of temporaries at step ${peakStep}; the largest is ${largest?.buffer ?? 'unknown'}`,
      }
    })
}
