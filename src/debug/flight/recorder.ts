// The flight recorder: keeps the last steps of a training, and says what went wrong when one does.
import { dispatchState } from '../../dispatch/index.ts'
import { backendImports, isImportable, runWatch } from '../../dynamo/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import { Optimizer } from '../../optim/index.ts'
import type { BaseOptions } from '../../optim/index.ts'
import type { OptionNames } from '../../protocol/index.ts'
import {
  checkArgument,
  checkCallable,
  checkCount,
  checkMethod,
  checkOptions,
  checkString,
  isCallable,
  isFunction,
  isModule,
  isObject,
  isPlainObject,
  valueText,
} from '../../protocol/index.ts'
import { Generator, Tensor, defaultGenerator } from '../../tensor/index.ts'
import { debugDirectory, fileStore, joinPath } from '../fileStore.ts'
import { undone } from '../isolated.ts'
import { log } from '../log.ts'
import { writeRepro } from '../reproScript.ts'
import { Analysis } from './analysis.ts'
import type { Finding, Frame } from './analysis.ts'
import { Copies } from './copies.ts'
import { recordingOf, replayed, writeReplay } from './replay.ts'
import { FlightReport, TrainingError } from './report.ts'
import { Snapshot, isStateful, stateTensors } from './state.ts'
import type { Sources, Stateful } from './state.ts'
import { Losses, badTensors, lossOf, lossValue, triggerOf } from './trouble.ts'
import type { Check, Trigger } from './trouble.ts'

/** What holds the weights: a module, or what `compile` made of one. */
export type RecordedModel = Module | { readonly module: Module }

/** Options of {@link flightRecorder}. At least one of `model`, `optimizer` and `tensors` is needed. */
export interface FlightRecorderOptions {
  /** The model or the models, whose parameters and buffers are recorded. */
  readonly model?: RecordedModel | readonly RecordedModel[] | undefined
  /** The optimizer or the optimizers: their parameters, state and options (learning rates) are recorded. */
  readonly optimizer?: Optimizer<BaseOptions> | readonly Optimizer<BaseOptions>[] | undefined
  /** Other tensors that steps change, by name. */
  readonly tensors?: Readonly<Record<string, Tensor>> | undefined
  /** Other objects that steps change and that have `stateDict` and `loadStateDict`: schedules of learning rates. */
  readonly stateful?: readonly Stateful[] | undefined
  /** Generators that steps draw from, beside the default one. */
  readonly generators?: readonly Generator[] | undefined
  /** How many steps are kept. Default 20. */
  readonly steps?: number | undefined
  /** The bytes that copies may take: beyond that, fewer steps are kept, but always the running one. Default 2^30. */
  readonly maxBytes?: number | undefined
  /** What is looked at after each step. Default all: `['loss', 'gradients', 'weights']`. */
  readonly check?: readonly Check[] | undefined
  /** A loss of more than so many times the median of the recorded ones is trouble. Null: only NaN and infinities are. Default 10. */
  readonly jump?: number | null | undefined
  /** What happens then: 'throw' throws TrainingError, 'log' writes the report to the debugger's log, a function is called with it. Default 'throw'. */
  readonly onTrouble?: 'throw' | 'log' | ((report: FlightReport) => void) | undefined
  /** The folder of the scripts that replay a step; null writes none. Default: the folder of the debugger. */
  readonly dir?: string | null | undefined
}

const OPTIONS: OptionNames<FlightRecorderOptions> = {
  model: true,
  optimizer: true,
  tensors: true,
  stateful: true,
  generators: true,
  steps: 'number',
  maxBytes: 'number',
  check: true,
  jump: true,
  onTrouble: true,
  dir: true,
}

const CHECKS: readonly Check[] = ['loss', 'gradients', 'weights']
const WHERE = 'flightRecorder'

const listOf = <T>(value: T | readonly T[] | undefined): readonly T[] => (value === undefined ? [] : Array.isArray(value) ? value : [value as T])

function moduleOf(value: unknown): Module {
  if (value instanceof Module) return value
  const inner: unknown = isCallable(value) && !isModule(value) ? Reflect.get(value, 'module') : undefined
  if (inner instanceof Module) return inner
  throw new ArgumentError(`${WHERE}: argument 'options.model' must be a Module, a compiled Module, or an array of them, got ${valueText(value)}.`)
}

function sourcesOf(options: FlightRecorderOptions): Sources {
  const models = listOf<unknown>(options.model).map(moduleOf)
  const optimizers = listOf(options.optimizer)
  for (const one of optimizers) checkArgument(one instanceof Optimizer, WHERE, 'options.optimizer', 'an Optimizer or an array of them', one)
  const { tensors = {}, stateful = [], generators = [] } = options
  checkArgument(isPlainObject(tensors), WHERE, 'options.tensors', 'an object of tensors', tensors)
  for (const [name, tensor] of Object.entries(tensors)) checkArgument(tensor instanceof Tensor, WHERE, `options.tensors.${name}`, 'a Tensor', tensor)
  checkArgument(Array.isArray(stateful), WHERE, 'options.stateful', 'an array', stateful)
  for (const one of stateful) checkArgument(isStateful(one), WHERE, 'options.stateful', 'objects with stateDict and loadStateDict', one)
  checkArgument(Array.isArray(generators), WHERE, 'options.generators', 'an array of Generators', generators)
  for (const one of generators) checkArgument(one instanceof Generator, WHERE, 'options.generators', 'Generators', one)
  if (models.length + optimizers.length + Object.keys(tensors).length === 0)
    throw new ArgumentError(
      `${WHERE}: give the model, the optimizer, or both, e.g. flightRecorder({ model, optimizer, steps: 20 }): their state is what is recorded.`,
    )
  return {
    models: models.map((model, i) => [models.length === 1 ? '' : `${i}.`, model]),
    optimizers,
    tensors: new Map(Object.entries(tensors)),
    stateful,
    generators: [...new Set([defaultGenerator, ...generators])],
  }
}

/** Records the last steps of a training; made by {@link flightRecorder}. */
export class FlightRecorder {
  readonly #sources: Sources
  readonly #steps: number
  readonly #maxBytes: number
  readonly #checks: ReadonlySet<Check>
  readonly #onTrouble: 'throw' | 'log' | ((report: FlightReport) => void)
  readonly #dir: string | null
  readonly #losses: Losses
  readonly #copies = new Copies()
  readonly #frames: Frame[] = []
  #next = 0
  #isRunning = false
  #isClosed = false
  /** Trouble that was reported is reported again only after a healthy step. */
  #isKnown = false
  #report: FlightReport | null = null

  /** @internal */
  constructor(options: FlightRecorderOptions) {
    checkCount('FlightRecorder', arguments, 1)
    checkOptions(WHERE, options, OPTIONS)
    const { steps = 20, maxBytes = 2 ** 30, check = CHECKS, jump = 10, onTrouble = 'throw', dir } = options
    checkArgument(Number.isSafeInteger(steps) && steps >= 1, WHERE, 'options.steps', 'a number of steps, at least 1', steps)
    checkArgument(typeof maxBytes === 'number' && maxBytes >= 0, WHERE, 'options.maxBytes', 'a number of bytes', maxBytes)
    checkArgument(
      Array.isArray(check) && check.every((one) => CHECKS.includes(one)),
      WHERE,
      'options.check',
      "an array with some of 'loss', 'gradients', 'weights'",
      check,
    )
    checkArgument(jump === null || (typeof jump === 'number' && jump > 1), WHERE, 'options.jump', 'a factor above 1, or null', jump)
    checkArgument(
      onTrouble === 'throw' || onTrouble === 'log' || isFunction(onTrouble),
      WHERE,
      'options.onTrouble',
      "'throw', 'log' or a function",
      onTrouble,
    )
    if (dir !== null && dir !== undefined) checkString(WHERE, 'options.dir', dir)
    this.#sources = sourcesOf(options)
    this.#steps = steps
    this.#maxBytes = maxBytes
    this.#checks = new Set(check)
    this.#onTrouble = onTrouble
    this.#dir = dir === undefined ? joinPath(debugDirectory(null), 'flight') : dir
    this.#losses = new Losses(jump, steps)
  }

  /** The bytes that the recorded steps take: copies of what was overwritten, and batches and gradients that are kept alive. */
  get bytes(): number {
    return this.#copies.size
  }

  /** The numbers of the steps that are kept, oldest first. */
  get recordedSteps(): readonly number[] {
    return this.#frames.map(({ number }) => number)
  }

  /** What was found last; null if all was well. */
  get report(): FlightReport | null {
    return this.#report
  }

  /**
   * Runs one step of the training, `fn(...inputs)`, and returns what it returns. Its loss is a tensor of one element or a number: the result, the first item of a list, or the property
   * `loss`; a step that returns none is watched by its gradients and weights. After trouble, steps that are recorded may run again, on the recorded state, and everything is put back afterwards; but
   * what a step does beside tensors (printing, counting in variables) it then does again.
   *
   * @throws TrainingError if the step went wrong, unless `onTrouble` says otherwise.
   * @throws ArgumentError if `fn` is not a function or is async, inside of a compiled function, and after the recorder was disposed of.
   */
  step<A extends readonly unknown[], R>(fn: (...inputs: A) => R, ...inputs: A): R {
    checkCallable('FlightRecorder.step', 'fn', fn)
    if (this.#isClosed) throw new ArgumentError('FlightRecorder.step: the recorder was disposed of; make another one.')
    if (dispatchState.mode !== null || this.#isRunning)
      throw new ArgumentError(
        'FlightRecorder.step: a step cannot be recorded inside of a compiled function or of another step; call recorder.step around it.',
      )
    const frame = this.#begin((...given) => Reflect.apply(fn, undefined, given), inputs)
    let result: R
    try {
      result = this.#run(frame, () => fn(...inputs))
      if (result instanceof Promise)
        throw new ArgumentError(
          'FlightRecorder.step: the step is async, so that its end is not known; await the data first, and record what follows.',
        )
    } catch (error) {
      this.#frames.pop()
      frame.snapshot.release()
      throw error
    }
    frame.loss = lossValue(lossOf(result))
    const trigger = this.#trouble(frame)
    this.#shrink()
    if (trigger === null) this.#isKnown = false
    else if (!this.#isKnown) {
      this.#isKnown = true
      this.#tell(this.#explain(frame, trigger))
    }
    return result
  }

  /** Returns a function that runs `fn` as a recorded step; see {@link step}. */
  watch<A extends readonly unknown[], R>(fn: (...inputs: A) => R): (...inputs: A) => R {
    checkMethod(this, 'FlightRecorder.watch', arguments, 1)
    checkCallable('FlightRecorder.watch', 'fn', fn)
    return (...inputs) => this.step(fn, ...inputs)
  }

  /** Forgets the recorded steps; the recorder cannot be used afterwards. */
  dispose(): void {
    this.#isClosed = true
    for (const { snapshot } of this.#frames.splice(0)) snapshot.release()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  #begin(run: Frame['run'], inputs: readonly unknown[]): Frame {
    const frame: Frame = {
      number: this.#next++,
      run,
      inputs,
      snapshot: new Snapshot(this.#copies, this.#sources, inputs),
      loss: null,
      compiledRuns: 0,
    }
    this.#frames.push(frame)
    if (this.#frames.length > this.#steps) this.#drop()
    return frame
  }

  #drop(): void {
    this.#frames.shift()?.snapshot.release()
  }

  #shrink(): void {
    while (this.#copies.size > this.#maxBytes && this.#frames.length > 1) this.#drop()
  }

  #run<R>(frame: Frame, fn: () => R): R {
    const outer = runWatch.current
    runWatch.current = (run) => {
      frame.compiledRuns++
      return outer === null ? run.code(...run.inputs) : outer(run)
    }
    this.#isRunning = true
    try {
      return fn()
    } finally {
      this.#isRunning = false
      runWatch.current = outer
    }
  }

  #trouble(frame: Frame): Trigger | null {
    const { loss } = frame
    const jumped = loss !== null && this.#losses.isJump(loss)
    if (this.#checks.has('loss') && loss !== null && !Number.isFinite(loss)) return { kind: 'loss', name: null, value: loss, index: [] }
    const [first] = badTensors(stateTensors(this.#sources, frame.inputs), frame.snapshot, this.#checks)
    if (first !== undefined) return triggerOf(first)
    return jumped && this.#checks.has('loss') ? { kind: 'jump', name: null, value: loss, index: [] } : null
  }

  #explain(frame: Frame, trigger: Trigger): FlightReport {
    const analysis = new Analysis(this.#frames, this.#sources, this.#copies)
    this.#isRunning = true
    try {
      return undone(() => this.#search(analysis, frame, trigger))
    } finally {
      this.#isRunning = false
      analysis.end()
    }
  }

  #search(analysis: Analysis, frame: Frame, trigger: Trigger): FlightReport {
    const lost = frame.snapshot.lost
    const finding: Finding =
      lost.length === 0
        ? analysis.find(frame, trigger)
        : {
            ...{ frame, watch: null, place: null, target: null, compiler: null },
            origin: { kind: 'unknown', why: `what the step overwrote was not announced, so that it cannot run again: ${lost.join(', ')}.` },
          }
    return this.#reportOf(frame, trigger, finding)
  }

  #reportOf(frame: Frame, trigger: Trigger, finding: Finding): FlightReport {
    const { origin } = finding
    const step = finding.frame.number
    const isCompiled = finding.frame.compiledRuns > 0
    const fields = {
      ...{ step, noticed: frame.number, trigger, origin, losses: this.#frames.map(({ loss }) => loss) },
      compiled: origin.kind === 'compiled code' ? 'only the compiled code' : isCompiled && origin.kind === 'operator' ? 'eager has it too' : null,
    } as const
    const written = this.#write(finding, new FlightReport({ ...fields, file: null, script: null, notes: [] }))
    return new FlightReport({ ...fields, ...written })
  }

  /** Writes the script that replays the step. */
  #write(finding: Finding, report: FlightReport): Pick<FlightReport, 'file' | 'script' | 'notes'> {
    const { watch, place, target, compiler } = finding
    const nothing = (note: string): Pick<FlightReport, 'file' | 'script' | 'notes'> => ({ file: null, script: null, notes: [note] })
    if (this.#dir === null) return { file: null, script: null, notes: [] }
    const folder = joinPath(this.#dir, `step_${report.step}`)
    const file = joinPath(folder, 'replay.mjs')
    try {
      if (compiler !== null) {
        const { gm, inputs, label } = compiler.run
        const spec = { backend: label, accuracy: 'accuracy', checkStr: null, signature: null, onlyFwd: true } as const
        const backendProblem = isImportable(label) ? null : `'${label}' is a function of the program that wrote this script`
        const options = {
          after: 'aot',
          command: 'run',
          spec,
          imports: backendImports(label),
          notes: String(report).split('\n'),
          backendProblem,
        } as const
        return { file, script: writeRepro(fileStore(), file, folder, gm, inputs, options), notes: [] }
      }
      const node = place?.kind === 'operator' ? place.node : target === null ? undefined : watch?.known(target)
      if (watch === null || node === undefined) return nothing('No script was written: there is no recorded operator to replay.')
      const recording = recordingOf(watch, node, node)
      const isJump = report.origin.kind === 'jump'
      const gradFn = report.origin.kind === 'operator' ? report.origin.gradFn : null
      const script = writeReplay(fileStore(), file, folder, recording, String(report), { gradFn, loss: isJump ? report.trigger.value : null })
      const shown = replayed(
        recording.gm,
        recording.inputs.map(({ value }) => value),
        new Set(recording.inputs.flatMap((one) => (one.isIntended ? [one.node.name] : []))),
        gradFn !== null,
      )
      const notes = shown === null && !isJump ? ['The script does not show the bad element: it depends on memory that several tensors share.'] : []
      return { file, script, notes }
    } catch (error) {
      return nothing(`No script was written: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  #tell(report: FlightReport): void {
    this.#report = report
    const onTrouble = this.#onTrouble
    if (onTrouble === 'throw') throw new TrainingError(String(report), report)
    if (onTrouble === 'log') log.error(String(report))
    else onTrouble(report)
  }
}

/**
 * Records the last steps of a training: weights (copied only when they are written to), buffers, optimizer state, generator states and batches. When a loss, a gradient or a weight becomes NaN or
 * infinite, or the loss jumps, it rewinds, runs the step again operator by operator, and says which step, which operator and which element came first, in the forward, the backward or the
 * optimizer, and where the program called it, for compiled functions too. It also writes a script that replays the step. The program computes bit for bit what it computes without.
 *
 *     using recorder = flightRecorder({ model, optimizer, steps: 20 })
 *     for (const [x, y] of batches) recorder.step(trainStep, x, y)
 *
 * @throws ArgumentError for a bad option, or if there is nothing to record.
 */
export function flightRecorder(options: FlightRecorderOptions): FlightRecorder {
  checkCount('flightRecorder', arguments, 1)
  checkArgument(isObject(options), WHERE, 'options', 'an object such as { model, optimizer, steps: 20 }', options)
  return new FlightRecorder(options)
}
