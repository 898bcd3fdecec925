// The function that a repro script calls: it rebuilds the graph and its inputs, and runs, minifies or analyzes it. PyTorch's torch._dynamo.repro.*.run_repro.
import { FakeTensorProp } from '../../aot/index.ts'
import { withConfig } from '../../config.ts'
import { ArgumentError } from '../../errors/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import type { Module } from '../../module/index.ts'
import { checkCallable, checkOptions, hostProcess, valueText } from '../../protocol/index.ts'
import { AccuracyError } from '../closeness/accuracyError.ts'
import { analyze } from './analyze.ts'
import type { AnalyzeOptions } from './analyze.ts'
import { importBackend, isModuleBackend } from '../script/backendModule.ts'
import { parseCommandLine } from '../script/commandLine.ts'
import type { Command, CommandLine, TracingMode } from '../script/commandLine.ts'
import { HANG, isDeath } from '../judge/death.ts'
import { describe, signatureOf } from '../common/describeError.ts'
import { recordSizes, resizedInputs, sizesText } from '../script/graphSizes.ts'
import { differenceFrom } from '../script/environment.ts'
import type { Written } from '../script/environment.ts'
import { debugDirectory, fileStore } from '../files/fileStore.ts'
import type { Calls } from '../runs/history.ts'
import { minifyBackendFailure } from '../minify/minifyFailure.ts'
import { InputReader } from '../files/inputReader.ts'
import { Isolator } from '../isolate/isolator.ts'
import { nodeHelper } from '../isolate/nodeHelper.ts'
import { whyNotShippable } from '../isolate/protocol.ts'
import { judge, judgeSettled, runBackend } from '../judge/judge.ts'
import type { FailureSpec, Outcome } from '../judge/judge.ts'
import { settled } from '../judge/lateErrors.ts'
import { log } from '../common/log.ts'
import { pathOf } from '../common/node.ts'
import { whyNotImportable } from '../script/operatorImports.ts'
import { failureOfLastRun } from '../minify/record.ts'
import { tracedScript } from '../script/tracedScript.ts'

/** What a repro script says of itself: the graph’s backend, the failure, and where its inputs are. */
export interface RunReproOptions {
  readonly after: 'dynamo' | 'aot'
  readonly command: Command
  /** A registered name, or `./file.mjs#export`; null asks for `--backend`. */
  readonly backend: string | null
  readonly accuracy: FailureSpec['accuracy']
  readonly checkStr: string | null
  readonly signature: string | null
  readonly onlyFwd: boolean
  /** Wrong numbers are judged call by call, and what a backend promises with them; see {@link FailureSpec}. Default false. */
  readonly contract?: boolean
  readonly imports: readonly string[]
  /** Folder of the storages that are not in the script; null if all are. */
  readonly saveDir: URL | string | null
  /** The failure ends the process; see {@link FailureSpec}. Default null. */
  readonly death?: string | null
  /** `run` runs the graph until it fails, at most so often. Default 1. */
  readonly runs?: number
  /** 'fake': the graph runs on fake tensors first, which gives its nodes shapes, 'symbolic': such with symbols for sizes. Default 'real': it is used as it is. */
  readonly tracingMode?: TracingMode
  /** The file that says what the run that wrote the script came to. If that did not end, `run` and `minify` look for what does not end either. */
  readonly record?: URL | string
  /** Where the script was written: said if it passes elsewhere. */
  readonly written?: Written
}

/** Reads the inputs of a repro script, in order. `version` is that of the format. */
export interface LoadArgs {
  (reader: InputReader): void
  version?: number
}

/** What the command `get_args` returns. */
export interface ReproArgs {
  readonly gm: GraphModule
  readonly args: readonly unknown[]
  /** The arguments of the calls before, oldest first. */
  readonly earlier: Calls
}

/**
 * Runs a repro script's module as its command line says. `run` says what the graph does with its backend and what with eager, and throws what the failure throws. In Node,
 * the exit code is 1 while the failure is there, 0 if the graph passes, and 2 if it fails with eager too, or if the command line is wrong. Returns the graph and its inputs
 * for the command `get_args`, otherwise null. Throws ArgumentError if a storage is missing or damaged.
 */
export async function runRepro(Root: new (reader: InputReader) => Module, loadArgs: LoadArgs, options: RunReproOptions): Promise<ReproArgs | null> {
  checkCallable('runRepro', 'Root', Root)
  checkCallable('runRepro', 'loadArgs', loadArgs)
  checkOptions('runRepro', options, {
    after: true,
    command: true,
    backend: true,
    accuracy: true,
    checkStr: true,
    signature: true,
    onlyFwd: 'boolean',
    contract: 'boolean',
    imports: true,
    saveDir: true,
    death: true,
    runs: 'number',
    tracingMode: true,
    record: true,
    written: true,
  })
  const line = lineOf(options)
  let help: string | null
  try {
    help = parseCommandLine(hostProcess()?.argv?.slice(2) ?? [], line)
  } catch (error) {
    if (!(error instanceof ArgumentError) || !setExitCode(2)) throw error
    console.error(error.message)
    return null
  }
  if (help !== null) {
    console.log(help)
    return null
  }
  if ((loadArgs.version ?? 0) > 0)
    throw new ArgumentError(`this repro was made by a newer tensorfx (loadArgs.version ${loadArgs.version}); update tensorfx.`)
  const reader = new InputReader(line.saveDir === null ? null : fileStore(), line.saveDir, { random: line.random })
  const gm = tracedScript(new Root(reader))
  loadArgs(reader)
  if (reader.isRandom) log.warning('THE INPUTS ARE RANDOM NUMBERS, not those that failed: you asked for that with --no-save-dir.')
  const inputs = tracedOn(gm, reader, line)
  const repro: Repro = { gm, inputs, earlier: reader.earlier, isRandom: reader.isRandom }
  if (line.command === 'get_args') {
    for (const [i, arg] of inputs.entries()) console.log(`${gm.graph.findNodes({ op: 'placeholder' })[i]?.name ?? i}: ${valueText(arg)}`)
    return { gm, args: inputs, earlier: reader.earlier }
  }
  const backend = await backendOf(line.backend)
  if (line.command === 'analyze') console.log(analyze(gm, repro.inputs, backend, analyzeOptions(line)))
  else if (line.command === 'minify') await minify(repro, backend, line, options)
  else if (line.command === 'minifier-query') await query(repro, backend, line)
  else await run(repro, backend, line, options)
  return null
}

/** Runs the graph on the tensors of the tracing mode. Returns the inputs, of the sizes that the command line names. */
function tracedOn(gm: GraphModule, { args, sized }: InputReader, { tracingMode, sizes }: CommandLine): readonly unknown[] {
  if (tracingMode === 'fake') new FakeTensorProp(gm).propagate(...args)
  if (tracingMode !== 'symbolic') return args
  const env = recordSizes(gm, args, sized)
  log.info(sizesText(env))
  return sizes.size === 0 ? args : resizedInputs(gm, args, env, sizes)
}

/** Throws ArgumentError where there is no folder for values. */
function checkFolder(flag: string, saveDir: string | null): void {
  if (saveDir === null) throw new ArgumentError(`${flag} is about values in files, and no folder was named for them. Name one: --save-dir DIR.`)
}

/** Values are saved where the command line names a folder for them. */
function analyzeOptions({ skipCheckDeterministic, onlyFwd, valuesDir, savedCompiled, savedFloat64 }: CommandLine): AnalyzeOptions {
  if (savedCompiled || savedFloat64) checkFolder('--skip-saving-…', valuesDir)
  return {
    ...{ checkDeterministic: !skipCheckDeterministic, onlyFwd, saveDir: valuesDir },
    ...{ skipSavingCompiled: savedCompiled, skipSavingFloat64: savedFloat64 },
  }
}

/** A graph and its inputs. */
interface Repro {
  readonly gm: GraphModule
  readonly inputs: readonly unknown[]
  /** The inputs of the calls before. */
  readonly earlier: Calls
  /** Inputs are random numbers. */
  readonly isRandom: boolean
}

function lineOf(options: RunReproOptions): CommandLine {
  const { command, backend, accuracy, checkStr, signature, onlyFwd, contract = false, death = null, runs = 1, tracingMode = 'real' } = options
  return {
    ...{ command, backend, accuracy, checkStr, signature, onlyFwd, contract, death, runs, tracingMode },
    ...{ saveDir: pathOf('runRepro', 'options.saveDir', options.saveDir), random: false, isolate: true, maxGranularity: null, timeoutMs: 30_000 },
    ...{ sizes: new Map<string, number>(), skipSanity: false, skipCheckDeterministic: false, offloadToDisk: false, valuesDir: null },
    ...{ savedEager: false, savedCompiled: false, savedFloat64: false },
  }
}

/** Returns false where there are no exit codes. */
function setExitCode(code: number): boolean {
  const host = hostProcess()
  return host?.argv !== undefined && Reflect.set(host, 'exitCode', code)
}

/** The registered name of a backend, whose module is imported if it is named by that. */
async function backendOf(backend: string | null): Promise<string> {
  if (backend === null)
    throw new ArgumentError(
      'the backend that failed is a function of the program that wrote this script, and cannot be found from here. Name it: --backend ./file.mjs#export, for a module that exports it, or registers it under that name.',
    )
  return isModuleBackend(backend) ? (await importBackend(backend)).name : backend
}

async function minify({ gm, inputs, earlier }: Repro, backend: string, line: CommandLine, options: RunReproOptions): Promise<void> {
  const { accuracy, checkStr, signature, onlyFwd, contract, isolate, maxGranularity, timeoutMs, skipSanity } = line
  const { offloadToDisk, saveDir, savedEager: skipOffload } = line
  if (offloadToDisk) checkFolder('--offload-to-disk', saveDir)
  const result = await minifyBackendFailure(gm, inputs, {
    ...{ backend, accuracy, checkStr, signature, onlyFwd, contract, earlier, isolate, timeoutMs, skipSanity },
    ...{ offloadToDisk, saveDir, skipOffload },
    death: line.death,
    ...fromRecord(line, options),
    after: options.after,
    runDir: debugDirectory(null),
    ...(maxGranularity === null ? {} : { maxGranularity }),
  })
  console.error(`Wrote minimal repro out to ${result.path ?? '(nowhere)'}`)
}

/** What counts as the failure. */
function specOf(backend: string, { accuracy, checkStr, signature, onlyFwd, contract, death }: CommandLine): FailureSpec {
  return { backend, accuracy, checkStr, signature, onlyFwd, contract, death }
}

/** Judges the graph as the minifier does, and says so by the exit code. */
async function query({ gm, inputs, earlier }: Repro, backend: string, line: CommandLine): Promise<void> {
  const { status, message } = await judgeSettled(gm, inputs, specOf(backend, line), undefined, earlier)
  console.log(`${status}: ${message}`)
  setExitCode(status === 'fails' ? 1 : 0)
}

/** What a script that knows of no failure looks for, by the record of the run that wrote it. */
function fromRecord(line: CommandLine, { record }: RunReproOptions): ReturnType<typeof failureOfLastRun> {
  if (record === undefined || isDeath(line.death) || line.accuracy !== 'none' || line.checkStr !== null || line.signature !== null) return {}
  return failureOfLastRun(fileStore(), pathOf('runRepro', 'options.record', record) ?? '')
}

/** Runs the graph with its backend and with eager, and says what both do. Fails as the original did. */
async function run(repro: Repro, backend: string, line: CommandLine, options: RunReproOptions): Promise<void> {
  const control = backend === 'eager' ? null : controlOf(repro, line)
  const death = line.death ?? fromRecord(line, options).death ?? null
  // If the process ends in what follows, this has been said.
  if (isDeath(death) && control !== null) log.info(`with eager: ${wordsOf(control)}`)
  const suspect = isDeath(death) ? await runAside(repro, backend, line, death, options) : await runHere(repro, backend, line)
  const both = [`with ${backend}: ${suspect.words}`, ...(control === null ? [] : [`with eager: ${wordsOf(control)}`])].join('; ')
  console.log(both)
  if (control !== null && control.status !== 'passes') {
    log.error(`The graph fails with eager too, so that this is no failure of ${backend}.`)
    if (!setExitCode(2) && suspect.error !== null) throw suspect.error.thrown
    return
  }
  if (!suspect.fails) {
    console.log(passedText(repro, line))
    const difference = options.written === undefined ? null : differenceFrom(options.written)
    if (difference !== null && backend !== 'eager') log.info(`Note that ${difference}.`)
    return
  }
  setExitCode(1)
  if (suspect.error !== null) throw suspect.error.thrown
}

function passedText({ isRandom }: Repro, { runs, accuracy }: CommandLine): string {
  const times = runs === 1 ? '' : ` (${runs} times)`
  if (isRandom) return `The repro ran${times}, but on random inputs instead of those that failed: that says little about the failure.`
  return accuracy === 'none' ? `The repro ran without an error${times}.` : `The repro ran, and its numbers are right${times}.`
}

/** What the graph does without a backend: nothing but passing makes the backend the culprit. */
function controlOf({ gm, inputs, earlier }: Repro, { accuracy, onlyFwd, contract }: CommandLine): Outcome {
  const spec = { backend: 'eager', accuracy, onlyFwd, contract, checkStr: null, signature: null, death: null }
  return judge(gm, inputs, spec, undefined, earlier)
}

const wordsOf = ({ status, message }: Outcome): string => (status === 'passes' ? 'passes' : `fails too: ${firstLine(message)}`)

const firstLine = (text: string): string => text.split('\n')[0] ?? ''

/** What the backend did. */
interface Suspect {
  readonly fails: boolean
  readonly words: string
  /** What it threw; null if the failure is none of this process. */
  readonly error: { readonly thrown: unknown } | null
}

const PASSES: Suspect = { fails: false, words: 'passes', error: null }

/** Runs the backend in a child process, which the failure ends. Without one it runs here, and ends this process. */
async function runAside(repro: Repro, backend: string, line: CommandLine, death: string, options: RunReproOptions): Promise<Suspect> {
  const { gm, inputs, earlier } = repro
  const start = nodeHelper()
  const whyNot = line.isolate ? (whyNotShippable(gm, [...earlier, inputs].flat()) ?? whyNotImportable(gm)) : 'of --no-isolate'
  if (start === null || whyNot !== null) {
    const why = whyNot ?? 'there are no child processes here'
    const what = death === HANG ? 'this script does not end by itself' : `it ends this process (${death})`
    log.info(`The graph runs in this process, since ${why}: if the failure is still there, ${what}.`)
    return runHere(repro, backend, line)
  }
  const isolator = new Isolator(start, { imports: options.imports })
  try {
    for (let runs = 0; runs < line.runs; runs++) {
      const { status, message } = await isolator.query(gm, inputs, { ...specOf(backend, line), death }, line.timeoutMs, earlier)
      if (status !== 'passes') return { fails: true, words: status === 'fails' ? message : `fails in another way: ${message}`, error: null }
    }
    return PASSES
  } finally {
    isolator.close()
  }
}

/** Runs the backend in this process. */
async function runHere({ gm, inputs, earlier }: Repro, backend: string, line: CommandLine): Promise<Suspect> {
  const failed = (thrown: unknown, when: string): Suspect => ({
    fails: true,
    words: `${firstLine(describe(thrown))}${when}${isRecorded(thrown, line) ? '' : ' (not the failure that was recorded)'}`,
    error: { thrown },
  })
  try {
    const { late } = await settled(() =>
      withConfig({ reproAfter: null }, () => {
        for (let runs = 0; runs < line.runs; runs++) runBackend(gm, inputs, line, backend, earlier)
      }),
    )
    return late === null ? PASSES : failed(late.thrown, ', after the call')
  } catch (thrown) {
    return failed(thrown, '')
  }
}

/** Whether an error is the one that the script was written for. */
function isRecorded(error: unknown, { accuracy, checkStr, signature }: CommandLine): boolean {
  if (accuracy !== 'none') return error instanceof AccuracyError && error.message === BAD
  if (checkStr !== null) return describe(error).includes(checkStr)
  return signature === null || signatureOf(error) === signature
}

/** The message of the error for wrong numbers. */
const BAD = 'Bad accuracy detected'
