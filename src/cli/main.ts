#!/usr/bin/env node
// The `tensorfx` command.
import { runTensorfx } from './commands.ts'
import { terminalOf } from './terminal.ts'

const { text, code } = await runTensorfx(process.argv.slice(2), {
  print: (line) => console.log(line),
  note: (line) => console.error(line),
  terminal: terminalOf(process.stdout, process.env),
})
if (text !== '') console.log(text)
process.exitCode = code
