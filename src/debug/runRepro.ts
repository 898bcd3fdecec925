// The function that a repro script calls: it rebuilds the graph and its inputs, and runs, minifies or analyzes it. PyTorch's torch._dynamo.repro.*.run_repro.
import { ArgumentError, TensorfxError } from '../errors/index.ts'
import { symbolicTrace } from '../fx/index.ts'
import type { GraphModule } from '../fx/index.ts'
import type { Module } from '../module/index.ts'
import { lookupBackend, runnable } from '../dynamo/index.ts'
import { checkOptions, hostProcess } from '../protocol/index.ts'
import { analyze } from './analyze.ts'
import { InputReader } from './contentStore.ts'
import { debugDirectory, fileStore } from './fileStore.ts'
import { minifyBackendFailure } from './hunt.ts'
import type { FailureSpec } from './judge.ts'
import { cloneInput, runFwdMaybeBwd, sameTwoModels } from './twoModels.ts'
import { nodeModule } from './node.ts'

/**
 * The compiled model does not compute what the graph computes.
 *
 * Fix: run the minifier's script (`minifierPath`) for the smallest graph that differs; if the difference is only rounding, raise `config.reproTolerance`.
 */
export class AccuracyError extends TensorfxError {
  /** The path of the minifier's script, if one was written. */
  minifierPath: string | null = null

  constructor(message: string) {
    super('TFX_ACCURACY', message)
  }
}

export interface RunReproOptions {
  readonly after: 'dynamo' | 'aot'
  readonly command: 'run' | 'minify' | 'analyze'
  readonly backend: string
  readonly accuracy: FailureSpec['accuracy']
  readonly checkStr: string | null
  readonly signature: string | null
  readonly onlyFwd: boolean
  readonly imports: readonly string[]
  /** Folder of the inputs' storages; null loads random data. */
  readonly saveDir: URL | string | null
}

export interface LoadArgs {
  (reader: InputReader): void
  version?: number
}

const USAGE = `usage: node repro.mjs [run | minify | analyze] [options]
  run              compile and run once; fails as the original did (default in repro scripts)
  minify           shrink the graph (default in minifier launchers)
  analyze          compare every intermediate value with eager and float64
  --accuracy       wrong numbers count, judged by float64     --strict-accuracy  any difference counts
  --no-accuracy    errors count                               --check-str S      only errors that contain S
  --isolate        judge candidates in a child process (default)   --no-isolate  in this process
  --max-granularity N   largest step, a power of two          --timeout-ms N     per candidate
  --save-dir DIR   where the inputs are                       --no-save-dir      random inputs
  --backend NAME   another backend                            --only-fwd         no backward`

/** Runs a repro script's module as its command line says. Throws what the failure throws. */
export async function runRepro(Root: new (reader: InputReader) => Module, loadArgs: LoadArgs, options: RunReproOptions): Promise<void> {
  checkOptions('runRepro', options, {
    after: true,
    command: true,
    backend: true,
    accuracy: true,
    checkStr: true,
    signature: true,
    onlyFwd: true,
    imports: true,
    saveDir: true,
  })
  const argv = hostProcess()?.argv?.slice(2) ?? []
  const chosen = parseCommandLine(argv, options)
  if (chosen === null) {
    console.log(USAGE)
    return
  }
  if ((loadArgs.version ?? 0) > 0)
    throw new ArgumentError(`this repro was made by a newer tensorfx (loadArgs.version ${loadArgs.version}); update tensorfx.`)
  const reader = new InputReader(chosen.saveDir === null ? null : fileStore(), chosen.saveDir)
  const gm = symbolicTrace(new Root(reader))
  loadArgs(reader)
  const inputs: readonly unknown[] = reader.args
  if (chosen.command === 'analyze') {
    console.log(analyze(gm, inputs, chosen.backend))
    return
  }
  if (chosen.command === 'minify') {
    const result = await minifyBackendFailure(gm, inputs, {
      ...{
        backend: chosen.backend,
        accuracy: chosen.accuracy,
        checkStr: chosen.checkStr,
        signature: chosen.signature,
        onlyFwd: chosen.onlyFwd,
        isolate: chosen.isolate,
      },
      after: options.after,
      runDir: debugDirectory(null),
      timeoutMs: chosen.timeoutMs,
      ...(chosen.maxGranularity === null ? {} : { maxGranularity: chosen.maxGranularity }),
    })
    console.error(`Wrote minimal repro out to ${result.path ?? '(nowhere)'}`)
    return
  }
  runOnce(gm, inputs, chosen)
}

interface CommandLine {
  command: RunReproOptions['command']
  backend: string
  accuracy: FailureSpec['accuracy']
  checkStr: string | null
  signature: string | null
  onlyFwd: boolean
  saveDir: string | null
  isolate: boolean
  maxGranularity: number | null
  timeoutMs: number
}

function parseCommandLine(argv: readonly string[], options: RunReproOptions): CommandLine | null {
  const line: CommandLine = { ...options, saveDir: pathOf(options.saveDir), isolate: true, maxGranularity: null, timeoutMs: 30_000 }
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] ?? ''
    const value = (): string => {
      const next = argv[++i]
      if (next === undefined) throw new ArgumentError(`${word} needs a value.\n${USAGE}`)
      return next
    }
    if (word === '--help' || word === '-h') return null
    if (word === 'run' || word === 'minify' || word === 'analyze') line.command = word
    else if (word === '--accuracy') line.accuracy = 'accuracy'
    else if (word === '--strict-accuracy') line.accuracy = 'strict_accuracy'
    else if (word === '--no-accuracy') line.accuracy = 'none'
    else if (word === '--check-str') line.checkStr = value()
    else if (word === '--isolate') line.isolate = true
    else if (word === '--no-isolate') line.isolate = false
    else if (word === '--max-granularity') line.maxGranularity = Number(value())
    else if (word === '--timeout-ms') line.timeoutMs = Number(value())
    else if (word === '--save-dir') line.saveDir = value()
    else if (word === '--no-save-dir') line.saveDir = null
    else if (word === '--backend') line.backend = value()
    else if (word === '--only-fwd') line.onlyFwd = true
    else throw new ArgumentError(`unknown argument '${word}'.\n${USAGE}`)
  }
  return line
}

function pathOf(dir: URL | string | null): string | null {
  if (dir === null || typeof dir === 'string') return dir
  return nodeModule('node:url')?.fileURLToPath(dir) ?? dir.href
}

function runOnce(gm: GraphModule, inputs: readonly unknown[], line: CommandLine): void {
  const compiled = runnable(lookupBackend(line.backend)(gm.deepCopy({ shareTensors: true }), inputs.map(cloneInput)))
  if (line.accuracy === 'none') {
    runFwdMaybeBwd(compiled, inputs, { onlyFwd: line.onlyFwd })
    console.log('The repro ran without an error.')
    return
  }
  const strict = line.accuracy === 'strict_accuracy'
  if (!sameTwoModels(gm, compiled, inputs, { onlyFwd: line.onlyFwd, requireFp64: !strict, ignoreNonFp: !strict }))
    throw new AccuracyError('Bad accuracy detected')
  console.log('The repro ran, and its numbers are right.')
}
