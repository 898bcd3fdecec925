#!/usr/bin/env node
// The `tensorfx` command: what the operator table holds.
import '../index.ts'
import { allOps } from '../ops/index.ts'
import { VERSION } from '../version.ts'

const USAGE = `tensorfx ${VERSION}
usage: tensorfx ops [text]   the operator table; only names that contain the text
       tensorfx --version`

/** One line per operator: name, what it is made of, whether it has a gradient. */
function printOps(text: string): void {
  const ops = allOps().filter((op) => op.qualname.includes(text))
  const rows = ops.map((op) => {
    const how =
      op.functional !== null
        ? 'in place'
        : op.pointwise !== null
          ? 'pointwise'
          : op.reduction !== null
            ? 'reduction'
            : op.tags.has('view')
              ? 'view'
              : op.kernel !== null
                ? 'kernel'
                : 'composite'
    const gradient =
      op.derivative !== null
        ? 'yes'
        : op.functional?.derivative !== undefined && op.functional.derivative !== null
          ? 'yes'
          : how === 'composite'
            ? 'through its parts'
            : 'no'
    return [op.qualname, how, gradient, op.schema.text]
  })
  const widths = [0, 1, 2].map((c) => Math.max(...rows.map((r) => (r[c] as string).length), 9))
  const line = (cells: readonly string[]): string => cells.map((cell, i) => (i < 3 ? cell.padEnd(widths[i] as number) : cell)).join('  ')
  console.log(line(['operator', 'how', 'gradient', 'schema']))
  for (const row of rows) console.log(line(row))
  console.log(`${rows.length} operators`)
}

const [command, argument] = process.argv.slice(2)
if (command === 'ops') printOps(argument ?? '')
else if (command === '--version') console.log(VERSION)
else {
  console.log(USAGE)
  process.exitCode = command === undefined || command === '--help' ? 0 : 1
}
