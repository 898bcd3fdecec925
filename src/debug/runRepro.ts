// The function that a repro script calls: it rebuilds the graph and its inputs, and runs, minifies or analyzes it. PyTorch's torch._dynamo.repro.*.run_repro.
import { lookupBackend, runnable } from '../dynamo/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { symbolicTrace } from '../fx/index.ts'
import type { GraphModule } from '../fx/index.ts'
import type { Module } from '../module/index.ts'
import { checkOptions, hostProcess } from '../protocol/index.ts'
import { AccuracyError } from './accuracyError.ts'
import { analyze } from './analyze.ts'
import { importBackend, isModuleBackend } from './backendModule.ts'
import { USAGE, parseCommandLine } from './commandLine.ts'
import type { CommandLine } from './commandLine.ts'
import { InputReader } from './contentStore.ts'
import { HANG, isDeath } from './death.ts'
import { debugDirectory, fileStore } from './fileStore.ts'
import { minifyBackendFailure } from './hunt.ts'
import type { FailureSpec } from './judge.ts'
import { log } from './log.ts'
import { nodeModule } from './node.ts'
import { readRecord } from './record.ts'
import { cloneInput, compareTwoModels, runFwdMaybeBwd } from './twoModels.ts'

export interface RunReproOptions {
  readonly after: 'dynamo' | 'aot'
  readonly command: 'run' | 'minify' | 'analyze'
  /** A registered name, or `./file.mjs#export`; null asks for `--backend`. */
  readonly backend: string | null
  readonly accuracy: FailureSpec['accuracy']
  readonly checkStr: string | null
  readonly signature: string | null
  readonly onlyFwd: boolean
  readonly imports: readonly string[]
  /** Folder of the inputs' storages; null loads random data. */
  readonly saveDir: URL | string | null
  /** The failure ends the process; see {@link FailureSpec}. Default null. */
  readonly death?: string | null
  /** `run` runs the graph until it fails, at most so often. Default 1. */
  readonly runs?: number
  /** The file that says what the run that wrote the script came to. If that did not end, `minify` looks for candidates that do not end either. */
  readonly record?: URL | string
}

export interface LoadArgs {
  (reader: InputReader): void
  version?: number
}

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
    death: true,
    runs: true,
    record: true,
  })
  const line: CommandLine = {
    ...{ command: options.command, backend: options.backend, accuracy: options.accuracy, checkStr: options.checkStr, signature: options.signature },
    ...{ onlyFwd: options.onlyFwd, death: options.death ?? null, runs: options.runs ?? 1 },
    ...{ saveDir: pathOf(options.saveDir), isolate: true, maxGranularity: null, timeoutMs: 30_000 },
  }
  if (!parseCommandLine(hostProcess()?.argv?.slice(2) ?? [], line)) {
    console.log(USAGE)
    return
  }
  if ((loadArgs.version ?? 0) > 0)
    throw new ArgumentError(`this repro was made by a newer tensorfx (loadArgs.version ${loadArgs.version}); update tensorfx.`)
  const backend = await backendOf(line.backend)
  const reader = new InputReader(line.saveDir === null ? null : fileStore(), line.saveDir)
  const gm = symbolicTrace(new Root(reader))
  loadArgs(reader)
  const inputs: readonly unknown[] = reader.args
  if (line.command === 'analyze') console.log(analyze(gm, inputs, backend))
  else if (line.command === 'minify') await minify(gm, inputs, backend, line, options)
  else runOnce(gm, inputs, backend, line)
}

/** The registered name of a backend, whose module is imported if it is named by that. */
async function backendOf(backend: string | null): Promise<string> {
  if (backend === null)
    throw new ArgumentError(
      'the backend that failed is a function of the program that wrote this script, and cannot be found from here. Name it: --backend ./file.mjs#export, for a module that exports it, or registers it under that name.',
    )
  return isModuleBackend(backend) ? (await importBackend(backend)).name : backend
}

async function minify(gm: GraphModule, inputs: readonly unknown[], backend: string, line: CommandLine, options: RunReproOptions): Promise<void> {
  const { accuracy, checkStr, signature, onlyFwd, isolate, maxGranularity, timeoutMs } = line
  const result = await minifyBackendFailure(gm, inputs, {
    ...{ backend, accuracy, checkStr, signature, onlyFwd, isolate, timeoutMs },
    death: line.death ?? deathFromRecord(line, options),
    after: options.after,
    runDir: debugDirectory(null),
    ...(maxGranularity === null ? {} : { maxGranularity }),
  })
  console.error(`Wrote minimal repro out to ${result.path ?? '(nowhere)'}`)
}

/** What a launcher of level 3, which knows of no error, looks for: if the run that wrote it never ended, the end of the process. */
function deathFromRecord(line: CommandLine, { record }: RunReproOptions): string | null {
  if (record === undefined || line.accuracy !== 'none' || line.checkStr !== null || line.signature !== null) return null
  const last = readRecord(fileStore(), pathOf(record) ?? '')
  if (last === null || last.state === 'failed') return null
  const doing = last.phase === 'compile' ? 'compiled' : 'ran'
  if (last.state === 'ended') {
    log.info(`The run that wrote this script ended without a failure (process ${last.pid} ${doing} the graph). Looking for errors all the same.`)
    return null
  }
  log.info(
    `The run that wrote this script did not end: process ${last.pid} died or hung while it ${doing} the graph. Looking for candidates that do the same.`,
  )
  return 'any'
}

function pathOf(dir: URL | string | null): string | null {
  if (dir === null || typeof dir === 'string') return dir
  return nodeModule('node:url')?.fileURLToPath(dir) ?? dir.href
}

/** Fails as the original did. */
function runOnce(gm: GraphModule, inputs: readonly unknown[], backend: string, line: CommandLine): void {
  if (isDeath(line.death))
    log.info(
      line.death === HANG
        ? 'The failure is a hang: if it is still there, this script does not end by itself.'
        : `If the failure is still there, it ends this process (${line.death}).`,
    )
  const strict = line.accuracy === 'strict_accuracy'
  for (let run = 0; run < line.runs; run++) {
    const compiled = runnable(lookupBackend(backend)(gm.deepCopy({ shareTensors: true }), inputs.map(cloneInput)))
    if (line.accuracy === 'none') {
      runFwdMaybeBwd(compiled, inputs, { onlyFwd: line.onlyFwd })
      continue
    }
    const { same, reasons, error } = compareTwoModels(gm, compiled, inputs, { onlyFwd: line.onlyFwd, requireFp64: !strict, ignoreNonFp: !strict })
    if (error !== null) throw error
    if (!same) throw new AccuracyError('Bad accuracy detected', { cause: reasons.join('\n') })
  }
  const times = line.runs === 1 ? '' : ` (${line.runs} times)`
  console.log(line.accuracy === 'none' ? `The repro ran without an error${times}.` : `The repro ran, and its numbers are right${times}.`)
}
