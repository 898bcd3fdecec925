#!/usr/bin/env node
// The `tensorfx` command.
import { runTensorfx } from './commands.ts'
import { progressOf } from '../protocol/progressDisplay.ts'
import { terminalOf } from './terminal.ts'

const progress = progressOf(process.stderr, process.env)
const { text, code } = await runTensorfx(process.argv.slice(2), {
  print: (line) => console.log(line),
  note: (line) => progress.note(line),
  progress: progress.report,
  terminal: terminalOf(process.stdout, process.env),
})
progress.end()
if (text !== '') console.log(text)
process.exitCode = code
