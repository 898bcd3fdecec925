// What fit takes, and what it returns.
import { ArgumentError } from '../errors/index.ts'
import type { AutocastDtype } from '../autograd/index.ts'
import { Module } from '../module/index.ts'
import { GradScaler } from '../optim/index.ts'
import { Optimizer } from '../optim/optimizer.ts'
import { checkCallable, checkModule, checkOptions, isFunction, isObject, isPlainObject, valueText } from '../protocol/index.ts'
import type { OptionNames } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { EarlyStopping } from './earlyStopping.ts'
import { Metric } from './metrics.ts'
import type { Report, Writer } from './writers.ts'

/** What a step computes: the loss, and what metrics compare. */
export interface StepResult {
  /** A tensor of one element. */
  readonly loss: Tensor
  readonly prediction?: Tensor
  readonly target?: Tensor
}

/** Batches, which are read anew in each epoch: a DataLoader, an array, or another iterable. */
export type Batches<B> = AsyncIterable<B> | Iterable<B>

/** A schedule of learning rates. That of `ReduceLROnPlateau` gets the score of the epoch. */
export interface Schedule {
  step(score?: never): void
  stateDict(): unknown
  loadStateDict(state: never): unknown
}

/** Where {@link fit} serves its live page. */
export interface FitPage {
  /** Default: any that is free. */
  readonly port?: number
  /** Gets the address of the page. */
  readonly onOpen?: (url: string) => void
}

/** Where and when {@link fit} saves a training. */
export interface FitCheckpoints {
  /** The folder, as of `saveCheckpoint`. */
  readonly folder: string
  /** Saves also within epochs, after this many steps. Default: at the end of each epoch only. */
  readonly everySteps?: number
  /** How many of the newest checkpoints stay; default 3. The best one stays too. */
  readonly keep?: number
  /** Goes on from the newest checkpoint in the folder, if there is one. Default true. */
  readonly resume?: boolean
}

/** Options of {@link fit}. */
export interface FitOptions<B, M extends Module = Module> {
  readonly model: M
  readonly optimizer: Optimizer
  /** The batches of an epoch. */
  readonly data: Batches<B>
  /** How many passes over the data there are, those before a resumed checkpoint included. */
  readonly epochs: number
  /** The loss of a batch `[input, target]`, such as `nn.functional.crossEntropy`. Give this or `step`. */
  readonly loss?: (prediction: Tensor, target: Tensor) => Tensor
  /** What a step computes from a batch, where that is not `loss(model(input), target)`. */
  readonly step?: (model: M, batch: B) => StepResult
  /** Batches that are evaluated after each epoch, in evaluation mode and without gradients. */
  readonly validation?: Batches<B>
  /** Metrics by name, computed for both. */
  readonly metrics?: Readonly<Record<string, Metric>>
  /** Schedules that step once an epoch. */
  readonly schedulers?: readonly Schedule[]
  /** Schedules that step with the optimizer. */
  readonly stepSchedulers?: readonly Schedule[]
  /** The largest norm of all gradients together. */
  readonly clipGradNorm?: number
  /** How many batches a step of the optimizer takes in. Default 1. */
  readonly accumulate?: number
  /** The decay of an exponential moving average of the parameters, such as 0.999. Validation then uses the average. */
  readonly ema?: number
  /** Mixed precision: what matrix products compute in. With `'float16'` the loss is scaled. */
  readonly autocast?: AutocastDtype
  /** Scales the loss; default with `'float16'`: `new GradScaler()`, on several ranks `new ShardedGradScaler()`. */
  readonly scaler?: GradScaler
  readonly earlyStopping?: EarlyStopping
  /** A folder, or where and when. */
  readonly checkpoint?: string | FitCheckpoints
  /** Get the loss of each step, and the report of each epoch. They are closed at the end. */
  readonly writers?: readonly Writer[]
  /** Shows progress on standard error: a bar on a terminal, a line a minute elsewhere, and a line for each epoch. Or a function, which gets the lines of epochs. Default true. */
  readonly log?: boolean | ((line: string) => void)
  /**
   * Serves a live page on this machine as long as the training runs: curves of the loss and of metrics, norms of gradients, histograms of parameters, samples per second, memory. The log
   * says its address. Node only. Default false.
   */
  readonly page?: boolean | FitPage
  /** Whether steps are compiled. Default true; the log says why if one takes several graphs. */
  readonly compile?: boolean
  /** Called after each step of the optimizer. */
  readonly onStep?: (step: number, report: Report) => void
  /** Called after each epoch. */
  readonly onEpoch?: (report: EpochReport) => void
}

/** What an epoch came to. */
export interface EpochReport {
  /** From 1 on. */
  readonly epoch: number
  /** Steps of the optimizer so far. */
  readonly step: number
  /** `loss`, metrics by name, both with `validation/` before them, `seconds`, `samplesPerSecond`, and `dataWait`: which part of the time was spent on waiting for batches. */
  readonly values: Report
}

/** What {@link fit} returns. */
export interface FitResult<M extends Module = Module> {
  /** The reports of all epochs, those before a resumed checkpoint included. */
  readonly history: readonly EpochReport[]
  /** Steps of the optimizer. */
  readonly step: number
  /** Whether early stopping ended it. */
  readonly stoppedEarly: boolean
  /** The model with averaged parameters; null without `ema`. */
  readonly averaged: M | null
}

const positive = (value: unknown): boolean => typeof value === 'number' && value > 0
const wholePositive = (value: unknown): boolean => Number.isSafeInteger(value) && positive(value)

function check(fits: boolean, name: string, expected: string, value: unknown): void {
  if (!fits) throw new ArgumentError(`fit: option '${name}' must be ${expected}, got ${valueText(value)}.`)
}

const isIterable = (value: unknown): boolean =>
  isObject(value) && (isFunction(Reflect.get(value, Symbol.iterator)) || isFunction(Reflect.get(value, Symbol.asyncIterator)))

const OPTIONS: OptionNames<FitOptions<unknown>> = {
  model: true,
  optimizer: true,
  data: true,
  epochs: 'number',
  loss: true,
  step: true,
  validation: true,
  metrics: true,
  schedulers: true,
  stepSchedulers: true,
  clipGradNorm: 'number',
  accumulate: 'number',
  ema: 'number',
  autocast: true,
  scaler: true,
  earlyStopping: true,
  checkpoint: true,
  writers: true,
  log: true,
  page: true,
  compile: 'boolean',
  onStep: true,
  onEpoch: true,
}

/** Throws ArgumentError, which names the option, for options that fit cannot work with. */
export function checkFitOptions<B, M extends Module>(options: FitOptions<B, M>): void {
  checkOptions<object>('fit', options, OPTIONS)
  const {
    model,
    optimizer,
    data,
    epochs,
    loss,
    step,
    validation,
    metrics = {},
    clipGradNorm,
    accumulate,
    ema,
    autocast,
    scaler,
    earlyStopping,
    checkpoint,
    page,
  } = options
  checkModule('fit', 'model', model)
  check(optimizer instanceof Optimizer, 'optimizer', 'an optimizer, such as new optim.AdamW(model.parameters())', optimizer)
  check(isIterable(data), 'data', 'batches: a DataLoader, an array or another iterable', data)
  check(wholePositive(epochs), 'epochs', 'an integer from 1 on', epochs)
  if ((loss === undefined) === (step === undefined))
    throw new ArgumentError(`fit: give either 'loss' or 'step', got ${loss === undefined ? 'none' : 'both'}.`)
  if (loss !== undefined) checkCallable('fit', 'loss', loss)
  if (step !== undefined) checkCallable('fit', 'step', step)
  if (validation !== undefined) check(isIterable(validation), 'validation', 'batches: a DataLoader, an array or another iterable', validation)
  check(isPlainObject(metrics), 'metrics', 'an object of metrics by name', metrics)
  for (const [name, metric] of Object.entries(metrics)) check(metric instanceof Metric, `metrics.${name}`, 'a Metric, such as new Accuracy()', metric)
  if (clipGradNorm !== undefined) check(positive(clipGradNorm), 'clipGradNorm', 'a positive number', clipGradNorm)
  if (accumulate !== undefined) check(wholePositive(accumulate), 'accumulate', 'an integer from 1 on', accumulate)
  if (ema !== undefined) check(ema >= 0 && ema < 1, 'ema', 'a number from 0 to below 1', ema)
  if (autocast !== undefined) check(autocast === 'bfloat16' || autocast === 'float16', 'autocast', "'bfloat16' or 'float16'", autocast)
  if (scaler !== undefined) check(scaler instanceof GradScaler, 'scaler', 'a GradScaler', scaler)
  if (earlyStopping !== undefined) check(earlyStopping instanceof EarlyStopping, 'earlyStopping', 'an EarlyStopping', earlyStopping)
  if (page !== undefined && typeof page !== 'boolean') {
    checkOptions<FitPage>('fit: page', page, { port: 'number', onOpen: true })
    const { port = 0, onOpen } = page
    check(Number.isSafeInteger(port) && port >= 0 && port < 65536, 'page.port', 'an integer from 0 to 65535', port)
    if (onOpen !== undefined) checkCallable('fit', 'page.onOpen', onOpen)
  }
  if (checkpoint !== undefined && typeof checkpoint !== 'string') {
    checkOptions<FitCheckpoints>('fit: checkpoint', checkpoint, { folder: true, everySteps: 'number', keep: 'number', resume: 'boolean' })
    check(typeof checkpoint.folder === 'string', 'checkpoint.folder', 'the path of a folder', checkpoint.folder)
    if (checkpoint.everySteps !== undefined)
      check(wholePositive(checkpoint.everySteps), 'checkpoint.everySteps', 'an integer from 1 on', checkpoint.everySteps)
  }
}
