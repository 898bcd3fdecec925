// fit: a training loop of plain parts.
import { autocast as withAutocast, noGrad } from '../autograd/index.ts'
import { loadCheckpoint, saveCheckpoint } from '../checkpoint/index.ts'
import type { CheckpointParts, HasState } from '../checkpoint/index.ts'
import { allGatherObject, getRank, isInitialized } from '../distributed/index.ts'
import { ShardedGradScaler } from '../distributed/fsdp/gradScaler.ts'
import { groupOr } from '../distributed/processGroup.ts'
import type { ProcessGroup } from '../distributed/processGroup.ts'
import { compile } from '../dynamo/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { onEvent } from '../events/index.ts'
import type { Module } from '../module/index.ts'
import { clipGradNorm_ } from '../nn/clipGrad.ts'
import { GradScaler, ReduceLROnPlateau } from '../optim/index.ts'
import { AveragedModel, getEmaMultiAvgFn } from '../optim/swaUtils.ts'
import { checkCount, isFunction, isObject } from '../protocol/index.ts'
import { treeLeaves } from '../pytree/index.ts'
import { Tensor } from '../tensor/index.ts'
import { FitLog } from './fitLog.ts'
import { checkFitOptions } from './fitOptions.ts'
import type { Batches, EpochReport, FitCheckpoints, FitOptions, FitResult, StepResult } from './fitOptions.ts'
import type { EarlyStoppingState } from './earlyStopping.ts'
import { gradNorms } from './gradNorms.ts'
import type { Report } from './writers.ts'
import type { Watch } from './watch.ts'

/** What a checkpoint of a training holds beside its parts. */
interface Saved {
  readonly epoch: number
  readonly step: number
  readonly history: readonly EpochReport[]
  readonly stopping: EarlyStoppingState | null
}

/** A step with the norms of its gradients, if they were asked for. */
interface TrainedStep extends StepResult {
  readonly norms?: Tensor
}

/** How far a pass over the data is. */
interface PassState {
  batches: number
  samples: number
  loss: number
  /** What metrics have counted. */
  metrics: readonly (readonly number[])[]
}

const hasState = (value: unknown): value is HasState =>
  isObject(value) && isFunction(Reflect.get(value, 'stateDict')) && isFunction(Reflect.get(value, 'loadStateDict'))

/** How many samples a batch has: the first size of its first tensor, or 1. */
function sizeOf(batch: unknown): number {
  const first = treeLeaves(batch).find((leaf) => leaf instanceof Tensor)
  return first instanceof Tensor ? (first.shape[0] ?? 1) : 1
}

/** How many batches there are; null if that is not known. */
function lengthOf(batches: object): number | null {
  try {
    const length: unknown = Reflect.get(batches, 'length')
    return typeof length === 'number' ? length : null
  } catch {
    // A stream does not know.
    return null
  }
}

/** The tensors `[input, target]` of a batch. Throws ArgumentError for another batch. */
function pairOf(batch: unknown): readonly [Tensor, Tensor] {
  const [input, target]: unknown[] = Array.isArray(batch) ? batch : []
  if (!(input instanceof Tensor) || !(target instanceof Tensor))
    throw new ArgumentError("fit: with 'loss', batches must be [input, target], two tensors; give 'step' for other ones.")
  return [input, target]
}

/** The sum of what all ranks have counted, by position. */
function overRanks(values: readonly number[]): readonly number[] {
  if (!isInitialized()) return values
  const all = allGatherObject(values).map((one) => (Array.isArray(one) ? one.map(Number) : []))
  return values.map((_, i) => all.reduce((sum, one) => sum + (one[i] ?? 0), 0))
}

/** A model that ranks divide has its own way: the norm is that of all parts. */
function clipGradients(model: Module, maxNorm: number): void {
  if ('clipGradNorm_' in model && isFunction(model.clipGradNorm_)) Reflect.apply(model.clipGradNorm_, model, [maxNorm])
  else clipGradNorm_(model.parameters(), maxNorm)
}

/** All ranks save and load together. */
const allRanks = (): { readonly group?: ProcessGroup } => (isInitialized() ? { group: groupOr(undefined) } : {})

class Fit<B, M extends Module> {
  readonly #options: FitOptions<B, M>
  readonly #averaged: AveragedModel<M> | null
  readonly #scaler: GradScaler | null
  readonly #checkpoints: FitCheckpoints | null
  readonly #log: FitLog
  readonly #history: EpochReport[] = []
  readonly #train: (batch: B, updates: boolean, watched: boolean) => TrainedStep
  readonly #isMain: boolean
  #epoch = 0
  #step = 0
  #resumed: PassState | null = null
  #watch: Watch | null = null
  /** Samples of this process since it began. */
  #seen = 0

  constructor(options: FitOptions<B, M>) {
    const { model, ema, scaler, autocast, checkpoint, compile: compiles = true } = options
    this.#options = options
    this.#averaged = ema === undefined ? null : new AveragedModel(model, { multiAvgFn: getEmaMultiAvgFn(ema) })
    // A part of a gradient may be infinite on one rank alone; all must skip the step.
    this.#scaler = scaler ?? (autocast !== 'float16' ? null : isInitialized() ? new ShardedGradScaler() : new GradScaler())
    this.#checkpoints = checkpoint === undefined ? null : typeof checkpoint === 'string' ? { folder: checkpoint } : checkpoint
    this.#isMain = !isInitialized() || getRank() === 0
    this.#log = new FitLog(this.#isMain ? (options.log ?? true) : false, options.epochs)
    const train = (batch: B, updates: boolean, watched: boolean): TrainedStep => this.#trainStep(batch, updates, watched)
    this.#train = compiles ? compile(train) : train
  }

  async run(): Promise<FitResult<M>> {
    const { epochs, earlyStopping, writers = [], model } = this.#options
    let stoppedEarly = false
    let ended = 'failed'
    await this.#openPage()
    const breaks = onEvent(({ reason }) => this.#log.graphBreak(String(reason)), { kinds: ['break'] })
    try {
      await this.#resume()
      this.#showPage()
      stoppedEarly = earlyStopping !== undefined && earlyStopping.waited >= earlyStopping.patience
      while (this.#epoch < epochs && !stoppedEarly) stoppedEarly = await this.#runEpoch()
      ended = 'done'
    } finally {
      breaks()
      this.#log.end()
      model.train(false)
      for (const writer of writers) writer.close()
      await this.#watch?.end(ended)
    }
    return { history: this.#history, step: this.#step, stoppedEarly, averaged: this.#averaged?.module ?? null }
  }

  /** Serves the live page, if there is to be one; the first rank does. What it needs is loaded then. */
  async #openPage(): Promise<void> {
    const { page = false, model, optimizer, epochs } = this.#options
    if (page === false || !this.#isMain) return
    const { Watch } = await import('./watch.ts')
    this.#watch = await Watch.open(model, optimizer, epochs, page === true ? 0 : (page.port ?? 0))
  }

  /** Says where the page is, and shows there what a resumed checkpoint reports. */
  #showPage(): void {
    const { page } = this.#options
    const watch = this.#watch
    if (watch === null) return
    this.#log.page(watch.url)
    if (typeof page === 'object') page.onOpen?.(watch.url)
    for (const report of this.#history) watch.epoch(report)
  }

  /** One pass over the data and what follows it. Returns whether to stop. */
  async #runEpoch(): Promise<boolean> {
    const { validation, schedulers = [], earlyStopping, onEpoch, writers = [] } = this.#options
    const values: Record<string, number> = await this.#pass()
    this.#epoch++
    if (validation !== undefined) for (const [name, value] of Object.entries(await this.#validate(validation))) values[`validation/${name}`] = value
    const score = values[validation === undefined ? 'loss' : 'validation/loss'] ?? NaN
    for (const schedule of schedulers) {
      if (schedule instanceof ReduceLROnPlateau) schedule.step(score)
      else schedule.step()
    }
    const report: EpochReport = { epoch: this.#epoch, step: this.#step, values }
    this.#history.push(report)
    this.#log.epoch(report)
    this.#watch?.epoch(report)
    if (this.#isMain) for (const writer of writers) writer.write(this.#step, values)
    onEpoch?.(report)
    const stops = earlyStopping?.update(this.#monitored(values, score)) ?? false
    await this.#save(score, null)
    return stops
  }

  #monitored(values: Report, score: number): number {
    const name = this.#options.earlyStopping?.monitor ?? null
    if (name === null) return score
    const value = values[name]
    if (value === undefined) throw new ArgumentError(`fit: earlyStopping monitors '${name}', but an epoch reports ${Object.keys(values).join(', ')}.`)
    return value
  }

  /** Trains on all batches, or those that are left of them. */
  async #pass(): Promise<Record<string, number>> {
    const { model, data, metrics = {}, accumulate = 1, onStep, writers = [], stepSchedulers = [] } = this.#options
    const list = Object.values(metrics)
    for (const metric of list) metric.reset()
    const pass: PassState = this.#resumed ?? { batches: 0, samples: 0, loss: 0, metrics: [] }
    for (const [i, counted] of pass.metrics.entries()) list[i]?.merge(counted)
    // A DataLoader goes on where it was; other data are read from the beginning.
    let skipped = hasState(data) ? 0 : pass.batches
    this.#resumed = null
    model.train()
    const total = lengthOf(data)
    const began = performance.now()
    let [waited, asked, seen] = [0, began, 0]
    for await (const batch of data) {
      if (skipped-- > 0) continue
      waited += performance.now() - asked
      pass.batches++
      // The last batches of an epoch make a step too, if their number is known.
      const updates = pass.batches % accumulate === 0 || pass.batches === total
      const watched = updates && (this.#watch?.isDue ?? false)
      const { loss, prediction, target, norms = null } = this.#train(batch, updates, watched)
      const value = Number(loss.item())
      const size = sizeOf(batch)
      seen += size
      this.#seen += size
      pass.samples += size
      pass.loss += value * size
      if (prediction !== undefined && target !== undefined) for (const metric of list) metric.update(prediction, target)
      if (updates) {
        this.#step++
        this.#averaged?.updateParameters(model)
        for (const schedule of stepSchedulers) schedule.step()
        const report = { loss: value }
        if (this.#isMain) for (const writer of writers) writer.write(this.#step, report)
        onStep?.(this.#step, report)
        const { everySteps } = this.#checkpoints ?? {}
        if (everySteps !== undefined && this.#step % everySteps === 0 && pass.batches !== total)
          await this.#save(null, { ...pass, metrics: list.map((metric) => metric.counted()) })
      }
      const done = total === null ? null : pass.batches / total
      await this.#watch?.step({ step: this.#step, epoch: this.#epoch + 1, done, loss: value, seen: this.#seen, norms })
      this.#log.batch(this.#epoch + 1, pass.batches, total, value, seen)
      asked = performance.now()
    }
    if (pass.samples === 0)
      throw new ArgumentError(
        "fit: 'data' gave no batches; an iterator that was read before is empty, give what makes it anew, such as an array or a DataLoader.",
      )
    const seconds = (performance.now() - began) / 1000
    return { ...this.#values(pass.loss, pass.samples), seconds, samplesPerSecond: seen / seconds, dataWait: waited / 1000 / seconds }
  }

  /** The loss and the metrics of a pass, over all ranks. */
  #values(loss: number, samples: number): Record<string, number> {
    const [sum = NaN, count = 1] = overRanks([loss, samples])
    const values: Record<string, number> = { loss: sum / count }
    for (const [name, metric] of Object.entries(this.#options.metrics ?? {})) {
      if (isInitialized()) {
        const all = allGatherObject(metric.counted())
        metric.reset()
        for (const one of all) if (Array.isArray(one)) metric.merge(one.map(Number))
      }
      values[name] = metric.compute()
    }
    return values
  }

  async #validate(batches: Batches<B>): Promise<Record<string, number>> {
    const { model, metrics = {} } = this.#options
    const evaluated: M = this.#averaged?.module ?? model
    const list = Object.values(metrics)
    for (const metric of list) metric.reset()
    let [sum, samples] = [0, 0]
    evaluated.train(false)
    try {
      for await (const batch of batches) {
        const { loss, prediction, target } = noGrad(() => this.#compute(evaluated, batch))
        const size = sizeOf(batch)
        sum += Number(loss.item()) * size
        samples += size
        if (prediction !== undefined && target !== undefined) for (const metric of list) metric.update(prediction, target)
      }
    } finally {
      evaluated.train()
    }
    return this.#values(sum, samples)
  }

  /** The loss of a batch. */
  #compute(model: M, batch: B): StepResult {
    const { loss, step, autocast } = this.#options
    const compute = (): StepResult => {
      if (step !== undefined) return step(model, batch)
      const [input, target] = pairOf(batch)
      const prediction: unknown = Reflect.apply(model, undefined, [input])
      if (!(prediction instanceof Tensor)) throw new ArgumentError("fit: with 'loss', the model must return a tensor; give 'step' for other ones.")
      return { loss: loss?.(prediction, target) ?? prediction, prediction, target }
    }
    return autocast === undefined ? compute() : withAutocast({ dtype: autocast }, compute)
  }

  /** Forward, backward, and with `updates` the step of the optimizer; with `watched` the norms of gradients. What is compiled. */
  #trainStep(batch: B, updates: boolean, watched: boolean): TrainedStep {
    const { model, optimizer, clipGradNorm, accumulate = 1 } = this.#options
    const scaler = this.#scaler
    const { loss, prediction, target } = this.#compute(model, batch)
    const part = accumulate === 1 ? loss : loss.div(accumulate)
    ;(scaler === null ? part : scaler.scale(part)).backward()
    let norms: Tensor | null = null
    if (updates) {
      if (clipGradNorm !== undefined || watched) scaler?.unscale_(optimizer)
      if (watched) norms = gradNorms(model)
      if (clipGradNorm !== undefined) clipGradients(model, clipGradNorm)
      if (scaler === null) optimizer.step()
      else {
        scaler.step(optimizer)
        scaler.update()
      }
      optimizer.zeroGrad()
    }
    return {
      loss: loss.detach(),
      ...(prediction === undefined ? {} : { prediction: prediction.detach() }),
      ...(target === undefined ? {} : { target }),
      ...(norms === null ? {} : { norms }),
    }
  }

  /** The parts of the training, as a checkpoint has them. `pass`: how far this rank is in an epoch; where another one was is set by loading. */
  #parts(pass: PassState | null): CheckpointParts {
    const { model, optimizer, data, schedulers = [], stepSchedulers = [] } = this.#options
    const averaged = this.#averaged
    // A checkpoint has it as it has the data: of each rank.
    const progress = { stateDict: () => ({ pass }), loadStateDict: (state: { readonly pass: PassState | null }) => void (this.#resumed = state.pass) }
    return {
      model: averaged === null ? { model } : { model, averaged },
      optimizer,
      ...(schedulers.length + stepSchedulers.length === 0 ? {} : { schedulers: [...schedulers, ...stepSchedulers] }),
      ...(this.#scaler === null ? {} : { scaler: this.#scaler }),
      data: hasState(data) ? { data, progress } : { progress },
    }
  }

  async #resume(): Promise<void> {
    if (this.#checkpoints === null || this.#checkpoints.resume === false) return
    const loaded = await loadCheckpoint<Saved>(this.#checkpoints.folder, this.#parts(null), allRanks())
    if (loaded === null) return
    const { epoch, step, history, stopping } = loaded.extra
    this.#epoch = epoch
    this.#step = step
    this.#history.push(...history)
    if (stopping !== null) this.#options.earlyStopping?.loadStateDict(stopping)
    this.#log.resumed(loaded.path ?? '', epoch, step)
  }

  /** Saves the training. `pass`: how far the epoch is, null at its end. */
  async #save(score: number | null, pass: PassState | null): Promise<void> {
    if (this.#checkpoints === null) return
    const { folder, keep } = this.#checkpoints
    const stopping = this.#options.earlyStopping?.stateDict() ?? null
    const extra: Saved = { epoch: this.#epoch, step: this.#step, history: this.#history, stopping }
    await saveCheckpoint(
      folder,
      { ...this.#parts(pass), extra },
      { ...allRanks(), number: this.#step, ...(keep === undefined ? {} : { keep }), ...(score === null ? {} : { score }) },
    )
  }
}

/**
 * Trains a model: for each epoch it takes steps on all batches, evaluates, reports and saves. Each part can be used alone: metrics, {@link EarlyStopping}, writers, and everything of
 * `tensorfx/optim`, `tensorfx/data` and `tensorfx/checkpoint`.
 *
 * Steps are compiled. With `checkpoint`, a training that was interrupted goes on with the same numbers, also in the middle of an epoch. On several ranks losses and metrics are those of all
 * ranks, the first one reports, and all save together; the model must be a DistributedDataParallel, or one of FSDP.
 *
 * @throws ArgumentError for options that it cannot work with, before anything is computed.
 * @example
 * const { history } = await fit({ model, optimizer, data: loader, epochs: 3, loss: nn.functional.crossEntropy, metrics: { accuracy: new Accuracy() } })
 */
export async function fit<B, M extends Module>(options: FitOptions<B, M>): Promise<FitResult<M>> {
  checkCount('fit', arguments, 1)
  checkFitOptions(options)
  return new Fit(options).run()
}
