// Averages of a model's weights over the steps of training: stochastic weight averaging and exponential moving averages. PyTorch's torch.optim.swa_utils.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { Module } from '../module/index.ts'
import { BatchNorm1d, BatchNorm2d, BatchNorm3d } from '../nn/batchNorm.ts'
import { add, add_, copy_, detach, div, lerp_, mul, sub, tensor } from '../ops/index.ts'
import { checkArgument, checkCount, checkModule, checkOptions } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { Tensor, formatShape } from '../tensor/index.ts'
import { LRScheduler, perGroup } from './lrScheduler.ts'
import type { LRSchedulerState, PerGroup, ScheduledOptimizer } from './lrScheduler.ts'

/** The new average of one tensor, from the average so far, the current value, and how many values were averaged (an int64 scalar). */
export type AvgFn = (averaged: Tensor, current: Tensor, numAveraged: Tensor) => Tensor
/** Writes the new averages of several tensors of one dtype into `averaged`. */
export type MultiAvgFn = (averaged: readonly Tensor[], current: readonly Tensor[], numAveraged: Tensor) => void

/** Options of {@link AveragedModel}. */
export interface AveragedModelOptions {
  /** How one tensor is averaged; default {@link getSwaAvgFn}. */
  readonly avgFn?: AvgFn | null
  /** How tensors of one dtype are averaged, instead of `avgFn`. */
  readonly multiAvgFn?: MultiAvgFn | null
  /** Average the buffers too. Default false: they are copied from the model. */
  readonly useBuffers?: boolean
}

const isFloating = (t: Tensor): boolean => dtypeInfo[t.dtype].floating

/** Moves averages towards the current values by a weight. Integers are rounded towards zero. */
function move(averaged: readonly Tensor[], current: readonly Tensor[], weight: number): void {
  noGrad(() => {
    for (const [i, average] of averaged.entries()) {
      const value = current[i] ?? average
      if (isFloating(average)) lerp_(average, value, weight)
      else copy_(average, add(average, mul(sub(value, average), weight)))
    }
  })
}

function checkDecay(where: string, decay: number): void {
  checkArgument(typeof decay === 'number' && decay >= 0 && decay <= 1, `optim.swaUtils.${where}`, 'decay', 'a number from 0 to 1', decay)
}

/** The equal average of all values so far, for `avgFn`. PyTorch's `get_swa_avg_fn`. */
export function getSwaAvgFn(): AvgFn {
  checkCount('optim.swaUtils.getSwaAvgFn', arguments, 0)
  return (averaged, current, numAveraged) => add(averaged, div(sub(current, averaged), add(numAveraged, 1)))
}

/** The equal average of all values so far, for `multiAvgFn`. PyTorch's `get_swa_multi_avg_fn`. */
export function getSwaMultiAvgFn(): MultiAvgFn {
  checkCount('optim.swaUtils.getSwaMultiAvgFn', arguments, 0)
  return (averaged, current, numAveraged) => move(averaged, current, 1 / (Number(numAveraged.item()) + 1))
}

/**
 * The exponential moving average `decay * averaged + (1 - decay) * current`, for `avgFn`. PyTorch's `get_ema_avg_fn`.
 *
 * @throws ArgumentError unless `decay` is from 0 to 1.
 */
export function getEmaAvgFn(decay = 0.999): AvgFn {
  checkCount('getEmaAvgFn', arguments, 1)
  checkDecay('getEmaAvgFn', decay)
  return (averaged, current) => add(mul(averaged, decay), mul(current, 1 - decay))
}

/**
 * The same exponential moving average as {@link getEmaAvgFn}, for `multiAvgFn`. PyTorch's `get_ema_multi_avg_fn`.
 *
 * @throws ArgumentError unless `decay` is from 0 to 1.
 */
export function getEmaMultiAvgFn(decay = 0.999): MultiAvgFn {
  checkCount('getEmaMultiAvgFn', arguments, 1)
  checkDecay('getEmaMultiAvgFn', decay)
  return (averaged, current) => move(averaged, current, 1 - decay)
}

/**
 * A copy of a model that averages its parameters over the calls of `updateParameters`: equally, or as `avgFn` or `multiAvgFn` says. Calling it calls the copy. The
 * state dict has the copy's under `module.`, and the buffer `nAveraged`. PyTorch's `torch.optim.swa_utils.AveragedModel`.
 *
 * @throws ArgumentError if both `avgFn` and `multiAvgFn` are given.
 * @example
 * const ema = new optim.swaUtils.AveragedModel(model, { multiAvgFn: optim.swaUtils.getEmaMultiAvgFn(0.999) })
 * // After each step of the optimizer:
 * ema.updateParameters(model)
 */
export class AveragedModel<M extends Module = Module> extends Module {
  readonly module: M
  readonly avgFn: AvgFn | null
  readonly multiAvgFn: MultiAvgFn | null
  readonly useBuffers: boolean
  /** How many times the parameters were averaged (an int64 scalar). */
  declare nAveraged: Tensor

  constructor(model: M, options: AveragedModelOptions = {}) {
    checkCount('optim.swaUtils.AveragedModel', arguments, 2)
    super()
    const where = 'optim.swaUtils.AveragedModel'
    checkModule(where, 'model', model)
    checkOptions(where, options, { avgFn: true, multiAvgFn: true, useBuffers: 'boolean' })
    const { avgFn = null, multiAvgFn = null, useBuffers = false } = options
    if (avgFn !== null && multiAvgFn !== null) throw new ArgumentError(`${where}: give avgFn or multiAvgFn, not both.`)
    this.registerBuffer('nAveraged', tensor(0, { dtype: 'int64' }))
    this.module = model.deepCopy()
    this.avgFn = avgFn
    this.multiAvgFn = multiAvgFn
    this.useBuffers = useBuffers
  }

  override forward(...args: Parameters<M['forward']>): ReturnType<M['forward']> {
    return this.module.call(...args)
  }

  /**
   * Takes the current parameters of `model` into the averages; the first call copies them. Buffers are copied, or averaged with `useBuffers`.
   *
   * @throws ArgumentError, before it changes anything, if the parameters or buffers of `model` are not as many, or have other shapes.
   */
  updateParameters(model: Module): void {
    const parameters = pairs(this.module.parameters(), model.parameters())
    const buffers = pairs(this.module.buffers(), model.buffers())
    const averaged = this.useBuffers ? [...parameters, ...buffers] : parameters
    const copied = this.useBuffers ? [] : buffers
    noGrad(() => {
      const isFirst = Number(this.nAveraged.item()) === 0
      for (const [to, from] of isFirst ? [...averaged, ...copied] : copied) copy_(to, from)
      if (!isFirst) average(this, averaged)
      add_(this.nAveraged, 1)
    })
  }
}

type Pair = readonly [averaged: Tensor, current: Tensor]

function average({ avgFn, multiAvgFn, nAveraged }: AveragedModel, averaged: readonly Pair[]): void {
  if (multiAvgFn === null) {
    const next = avgFn ?? getSwaAvgFn()
    for (const [to, from] of averaged) copy_(to, next(to, from, nAveraged))
    return
  }
  for (const dtype of new Set(averaged.map(([to]) => to.dtype))) {
    const group = averaged.filter(([to]) => to.dtype === dtype)
    multiAvgFn(
      group.map(([to]) => to),
      group.map(([, from]) => from),
      nAveraged,
    )
  }
}

/** Tensors of the averaged copy with those of the model, without their history. */
function pairs(averaged: Iterable<TensorLike>, current: Iterable<TensorLike>): readonly Pair[] {
  const [own, given] = [averaged, current].map((list) => [...list].map((t) => (t instanceof Tensor ? detach(t) : null)))
  const shapes = [own, given].map((list) => (list ?? []).map((t) => formatShape(t?.shape ?? [])).join(', '))
  if (shapes[0] !== shapes[1])
    throw new ArgumentError(
      `optim.swaUtils.AveragedModel.updateParameters: the model must have parameters and buffers of the same shapes as the averaged one, ${shapes[0] ?? ''}; it has ${shapes[1] ?? ''}.`,
    )
  return (own ?? []).flatMap((to, i): (readonly [Tensor, Tensor])[] => {
    const from = given?.[i] ?? null
    return to === null || from === null ? [] : [[to, from]]
  })
}

/**
 * Computes the running statistics of all BatchNorm layers anew, as plain averages over the batches: an averaged model needs it before it is evaluated. `loader` gives the
 * batches; of a batch that is an array, the first item is the input. PyTorch's `torch.optim.swa_utils.update_bn`.
 *
 * @example
 * optim.swaUtils.updateBn(batches, averaged)
 */
export function updateBn(loader: Iterable<unknown>, model: Module): void {
  checkCount('optim.swaUtils.updateBn', arguments, 2)
  checkModule('optim.swaUtils.updateBn', 'model', model)
  const layers = [...model.modules()].flatMap((module) =>
    module instanceof BatchNorm1d || module instanceof BatchNorm2d || module instanceof BatchNorm3d ? [[module, module.momentum] as const] : [],
  )
  if (layers.length === 0) return
  const wasTraining = model.training
  model.train()
  for (const [layer] of layers) {
    layer.resetRunningStats()
    layer.momentum = null
  }
  try {
    noGrad(() => {
      for (const batch of loader) Reflect.apply(model, undefined, [Array.isArray(batch) ? batch[0] : batch])
    })
  } finally {
    for (const [layer, momentum] of layers) layer.momentum = momentum
    model.train(wasTraining)
  }
}

/** Options of {@link SWALR}. */
export interface SWALROptions {
  /** Steps until the rate is `swaLr`; default 10. */
  readonly annealEpochs?: number
  /** Along half a cosine (default) or a line. */
  readonly annealStrategy?: 'cos' | 'linear'
}

/**
 * From the current rate of each group to a constant one, `swaLr` (one for all groups, or one each), in `annealEpochs` steps. It may begin where another schedule stops:
 * its steps continue from the rate that the optimizer has. The group's option `swaLr` holds the constant rate. A state dict of the schedule has no rates: they are in
 * the optimizer's. PyTorch's `torch.optim.swa_utils.SWALR`.
 *
 * @throws ArgumentError for a list of another length than the groups, and for options out of range.
 */
export class SWALR extends LRScheduler {
  readonly annealEpochs: number
  readonly #linear: boolean
  readonly #swaLrs: readonly number[]

  constructor(optimizer: ScheduledOptimizer, swaLr: PerGroup, options: SWALROptions = {}) {
    checkCount('optim.swaUtils.SWALR', arguments, 3)
    super(optimizer)
    const where = 'optim.swaUtils.SWALR'
    checkOptions(where, options, { annealEpochs: 'number', annealStrategy: true })
    const { annealEpochs = 10, annealStrategy = 'cos' } = options
    checkArgument(Number.isInteger(annealEpochs) && annealEpochs >= 0, where, 'annealEpochs', 'an integer of at least 0', annealEpochs)
    checkArgument(annealStrategy === 'cos' || annealStrategy === 'linear', where, 'annealStrategy', "'cos' or 'linear'", annealStrategy)
    this.annealEpochs = annealEpochs
    this.#linear = annealStrategy === 'linear'
    this.#swaLrs = perGroup(where, 'swaLr', optimizer, swaLr)
    for (const [g, group] of optimizer.paramGroups.entries()) Reflect.set(group, 'swaLr', this.#swaLrs[g])
    this.apply()
  }

  /** How much of the way is done at a step, from 0 to 1. */
  #done(step: number): number {
    const t = Math.max(0, Math.min(1, step / Math.max(1, this.annealEpochs)))
    return this.#linear ? t : (1 - Math.cos(Math.PI * t)) / 2
  }

  protected override rate(baseLr: number, epoch: number, group: number): number {
    const swaLr = this.#swaLrs[group] ?? baseLr
    const step = this.annealEpochs === 0 ? Math.max(1, epoch) : epoch
    const before = this.#done(step - 1)
    const now = this.#done(step)
    const current = this.optimizer.paramGroups[group]?.lr ?? baseLr
    const start = before === 1 ? swaLr : (current - before * swaLr) / (1 - before)
    return swaLr * now + start * (1 - now)
  }

  /** Loads the number of steps. The rates stay as they are. */
  override loadStateDict(given: LRSchedulerState): void {
    const rates = this.getLastLr()
    super.loadStateDict(given)
    for (const [g, group] of this.optimizer.paramGroups.entries()) group.lr = rates[g] ?? group.lr
  }
}
