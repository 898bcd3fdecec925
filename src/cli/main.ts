#!/usr/bin/env node
// The `tensorfx` command.
import { installTensors } from '../install/tensors.ts'
import { runCommand } from './command.ts'

installTensors()
const { text, code } = runCommand(process.argv.slice(2))
console.log(text)
process.exitCode = code
