// The flight recorder: keeps the last steps of a training, and says what went wrong when one does.
/// <reference lib="esnext.disposable" preserve="true" />
import { dispatchState } from '../../dispatch/index.ts'
import { runWatch } from '../../dynamo/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { checkArgument, checkCallable, checkCount, checkMethod, isObject } from '../../protocol/index.ts'
import { undone } from '../runs/isolated.ts'
import { log } from '../common/log.ts'
import { Analysis, NO_EVIDENCE } from './analysis.ts'
import type { Finding, Frame } from './analysis.ts'
import { Copies } from './copies.ts'
import { writeScript } from './findingScript.ts'
import { settingsOf } from './recorderOptions.ts'
import type { FlightRecorderOptions } from './recorderOptions.ts'
import { FlightReport, TrainingError } from './report.ts'
import { Snapshot, stateTensors } from './state.ts'
import type { Sources } from './state.ts'
import { Losses, badTensors, lossOf, lossValue, triggerOf } from './trouble.ts'
import type { Check, Trigger } from './trouble.ts'

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
    const { sources, steps, maxBytes, checks, jump, onTrouble, dir } = settingsOf(options)
    this.#sources = sources
    this.#steps = steps
    this.#maxBytes = maxBytes
    this.#checks = checks
    this.#onTrouble = onTrouble
    this.#dir = dir
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
    const finding = frame.snapshot.lost.length === 0 ? analysis.find(frame, trigger) : lostFinding(frame)
    return this.#reportOf(frame, trigger, finding)
  }

  #reportOf(noticedIn: Frame, trigger: Trigger, finding: Finding): FlightReport {
    const { origin, frame } = finding
    const fields = {
      step: frame.number,
      noticed: noticedIn.number,
      trigger,
      origin,
      losses: this.#frames.map(({ loss }) => loss),
      compiled: compiledPart(finding),
    }
    const withoutScript = new FlightReport({ ...fields, file: null, script: null, notes: [] })
    if (this.#dir === null) return withoutScript
    return new FlightReport({ ...fields, ...writeScript(this.#dir, finding.evidence, withoutScript) })
  }

  #tell(report: FlightReport): void {
    this.#report = report
    const onTrouble = this.#onTrouble
    if (onTrouble === 'throw') throw new TrainingError(String(report), report)
    if (onTrouble === 'log') log.error(String(report))
    else onTrouble(report)
  }
}

/** What is said of a step that cannot run again. */
function lostFinding(frame: Frame): Finding {
  const why = `what the step overwrote was not announced, so that it cannot run again: ${frame.snapshot.lost.join(', ')}.`
  return { frame, origin: { kind: 'unknown', why }, evidence: NO_EVIDENCE }
}

/** Which code gives the bad result, for a step that runs compiled graphs. */
function compiledPart({ frame, origin }: Finding): FlightReport['compiled'] {
  if (origin.kind === 'compiled code') return 'only the compiled code'
  return frame.compiledRuns > 0 && origin.kind === 'operator' ? 'eager has it too' : null
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
  checkArgument(isObject(options), 'flightRecorder', 'options', 'an object such as { model, optimizer, steps: 20 }', options)
  return new FlightRecorder(options)
}
