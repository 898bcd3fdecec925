// `tensorfx explain`: runs a script, and reports what compile made of its functions.
import { CallRecords } from './callRecords.ts'
import type { FunctionRecord } from './callRecords.ts'
import { explainText } from '../dynamo/reports/explainOutput.ts'
import type { Line, Output, Result } from './line.ts'
import { JSON_WORD } from './line.ts'
import { reportOn, scriptOf } from './script.ts'
import { paint, PLAIN } from './terminal.ts'
import type { Terminal } from './terminal.ts'

/** A function as text: calls, graphs and breaks as torch._dynamo.explain prints them, recompiles, and what else happened. */
function textOf({ name, calls, outcomes, graphs, breaks, recompiles, limits, failures, compileTimes }: FunctionRecord, terminal: Terminal): string {
  const ways = Object.entries(outcomes).map(([outcome, count]) => `${count} ${outcome}`)
  return [
    paint(terminal, breaks.length + recompiles.length + limits.length + failures.length === 0 ? 'green' : 'yellow', name),
    `Calls: ${calls}${ways.length === 0 ? '' : ` (${ways.join(', ')})`}`,
    explainText({
      ops: graphs,
      breakCount: breaks.length,
      breaks: breaks.map(({ reason, stack }) => ({ reason, stack })),
      compileTimes,
    }),
    `Recompiles: ${recompiles.length}`,
    ...recompiles.flatMap(({ reason, expected, actual, place }) => [
      `  ${reason}`,
      `    expected ${expected}, got ${actual}${place === null ? '' : `, at ${place}`}`,
    ]),
    ...limits.map((reason) => paint(terminal, 'red', `Limit: ${reason}`)),
    ...failures.map((message) => paint(terminal, 'red', `Failure: ${message}`)),
  ].join('\n')
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

/** Runs `tensorfx explain`. */
export async function explainScript({ operands, options }: Line, { terminal = PLAIN }: Output): Promise<Result> {
  const { file, words } = scriptOf(operands)
  const records = new CallRecords()
  try {
    return await reportOn(file, words, options.has(JSON_WORD), () => {
      const functions = records.functions()
      const count = (of: (record: FunctionRecord) => number): number => functions.reduce((sum, record) => sum + of(record), 0)
      const total = [
        counted(functions.length, 'compiled function'),
        counted(
          count(({ graphs }) => graphs.length),
          'graph',
        ),
        counted(
          count(({ breaks }) => breaks.length),
          'graph break',
        ),
        counted(
          count(({ recompiles }) => recompiles.length),
          'recompile',
        ),
      ].join(', ')
      const none = 'The script called no compiled function of this installation of tensorfx.'
      const text = functions.length === 0 ? none : [...functions.map((record) => `${textOf(record, terminal)}\n`), total].join('\n')
      return { text, code: 0, data: { file, functions } }
    })
  } finally {
    records.stop()
  }
}
