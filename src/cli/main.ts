#!/usr/bin/env node
// The `tensorfx` command.
import { runTensorfx } from './commands.ts'

const { text, code } = await runTensorfx(process.argv.slice(2), { print: (line) => console.log(line), note: (line) => console.error(line) })
if (text !== '') console.log(text)
process.exitCode = code
