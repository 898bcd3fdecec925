// The command line of repro scripts and minifier launchers.
import { ArgumentError } from '../errors/index.ts'
import { nearest } from '../protocol/index.ts'
import { isDeathKind } from './death.ts'
import type { FailureSpec } from './judge.ts'

export const USAGE = `usage: node repro.mjs [run | minify | analyze] [options]
  run              compile and run once; fails as the original did (default in repro scripts)
  minify           shrink the graph (default in minifier launchers)
  analyze          compare every intermediate value with eager and float64
  --accuracy       wrong numbers count, judged by float64     --strict-accuracy  any difference counts
  --no-accuracy    errors count                               --check-str S      only errors that contain S
  --death KIND     the failure ends the process: crash, hang, 'exit N' or any    --no-death   it does not
  --isolate        judge candidates in a child process (default)   --no-isolate  in this process
  --max-granularity N   largest step, a power of two          --timeout-ms N     per candidate
  --runs N         run until it fails, at most N times        --only-fwd         no backward
  --save-dir DIR   where the inputs are                       --no-save-dir      random inputs
  --backend NAME   another backend, or ./file.mjs#export`

export interface CommandLine {
  command: 'run' | 'minify' | 'analyze'
  backend: string | null
  accuracy: FailureSpec['accuracy']
  checkStr: string | null
  signature: string | null
  death: string | null
  onlyFwd: boolean
  saveDir: string | null
  isolate: boolean
  maxGranularity: number | null
  timeoutMs: number
  runs: number
}

const COMMANDS = ['run', 'minify', 'analyze'] as const

const ACCURACIES: ReadonlyMap<string, FailureSpec['accuracy']> = new Map([
  ['--accuracy', 'accuracy'],
  ['--strict-accuracy', 'strict_accuracy'],
  ['--no-accuracy', 'none'],
])

/** Sets the options of `line` from the arguments. Returns false if they ask for help. Throws ArgumentError for an unknown option or a value that does not fit. */
export function parseCommandLine(words: readonly string[], line: CommandLine): boolean {
  const rest = [...words]
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const option = word
    const value = (): string => {
      const next = rest.shift()
      if (next === undefined) throw new ArgumentError(`${option} needs a value.\n${USAGE}`)
      return next
    }
    const count = (): number => {
      const text = value()
      const number = Number(text)
      if (!Number.isInteger(number) || number < 1) throw new ArgumentError(`${option} needs a whole number that is at least 1, got '${text}'.`)
      return number
    }
    if (option === '--help' || option === '-h') return false
    const command = COMMANDS.find((name) => name === option)
    const accuracy = ACCURACIES.get(option)
    if (command !== undefined) line.command = command
    else if (accuracy !== undefined) line.accuracy = accuracy
    else if (option === '--check-str') line.checkStr = value()
    else if (option === '--death') line.death = deathKind(value())
    else if (option === '--no-death') line.death = null
    else if (option === '--isolate') line.isolate = true
    else if (option === '--no-isolate') line.isolate = false
    else if (option === '--max-granularity') line.maxGranularity = count()
    else if (option === '--timeout-ms') line.timeoutMs = count()
    else if (option === '--runs') line.runs = count()
    else if (option === '--save-dir') line.saveDir = value()
    else if (option === '--no-save-dir') line.saveDir = null
    else if (option === '--backend') line.backend = value()
    else if (option === '--only-fwd') line.onlyFwd = true
    else throw unknownWord(option)
  }
  return true
}

function deathKind(text: string): string {
  if (isDeathKind(text)) return text
  throw new ArgumentError(`--death is crash, hang, any or 'exit N', got '${text}'.`)
}

function unknownWord(word: string): ArgumentError {
  if (word.endsWith('.mjs'))
    return new ArgumentError(
      `unknown argument '${word}': a script takes no other script. If a pattern such as run_* stands for several scripts, name one of them.`,
    )
  const near = nearest(word, [...COMMANDS, ...USAGE.matchAll(/--[a-z-]+/g)].map(String))
  return new ArgumentError(`unknown argument '${word}'.${near === null ? '' : ` Did you mean '${near}'?`}\n${USAGE}`)
}
