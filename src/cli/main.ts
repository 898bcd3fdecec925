#!/usr/bin/env node
// The `tensorfx` command.
import { installTensors } from '../install/tensors.ts'
import { runCommand } from './command.ts'

const words = process.argv.slice(2)
if (words[0] === 'compare') {
  // The compiler is loaded only where it is needed.
  const { runCompare } = await import('./compare.ts')
  const { text, code } = await runCompare(words.slice(1))
  console.log(text)
  process.exitCode = code
} else if (words[0] === 'minify') {
  const { runMinify } = await import('./minify/command.ts')
  const { text, code } = await runMinify(words.slice(1))
  console.log(text)
  process.exitCode = code
} else if (words[0] === 'repro') {
  const { runReproCommand } = await import('./repro/command.ts')
  process.exitCode = await runReproCommand(words.slice(1))
} else {
  installTensors()
  const { text, code } = runCommand(words)
  console.log(text)
  process.exitCode = code
}
