// Learning-rate schedules. Each sets the rate of every group from its rate at the start and the number of steps; call `step()` after the optimizer's.
import { ArgumentError, InternalError } from '../errors/index.ts'
import { decode, integer, list, number, object } from '../protocol/decode.ts'
import { checkArgument, checkCount, checkMethod, checkOptions, isFunction, uncalledHint, valueText } from '../protocol/index.ts'

/** What a schedule needs to continue. */
export interface LRSchedulerState {
  readonly baseLrs: readonly number[]
  readonly lastEpoch: number
}

const STATE = object({ baseLrs: list(number), lastEpoch: integer(-1) })

/** What a schedule needs of an optimizer: its groups with their rates. Every Optimizer has that. */
export interface ScheduledOptimizer {
  readonly paramGroups: readonly { lr: number; initialLr?: number }[]
}

/** One value for all parameter groups, or one for each. */
export type PerGroup = number | readonly number[]

/** A value for each group. Throws ArgumentError unless it is a number or a list of as many numbers as there are groups. */
export function perGroup(where: string, name: string, { paramGroups }: ScheduledOptimizer, value: PerGroup): readonly number[] {
  const values = Array.isArray(value) ? value : paramGroups.map(() => value)
  const expected = `a number, or ${paramGroups.length} of them, one for each parameter group`
  checkArgument(values.length === paramGroups.length && values.every((one) => typeof one === 'number'), where, name, expected, value)
  return values
}

/** Throws ArgumentError unless a schedule is given an optimizer: callers in JavaScript may give anything. */
export function checkScheduled(name: string, optimizer: ScheduledOptimizer): void {
  checkArgument(Array.isArray(optimizer?.paramGroups), `optim.${name}`, 'optimizer', 'an optimizer', optimizer)
}

/** Base class of schedules; PyTorch's `torch.optim.lr_scheduler.LRScheduler`. */
export abstract class LRScheduler {
  readonly optimizer: ScheduledOptimizer
  /** The rate of each group before the schedule. */
  readonly baseLrs: number[]
  /** Number of steps taken. */
  lastEpoch = 0

  constructor(optimizer: ScheduledOptimizer) {
    checkCount('optim.LRScheduler', arguments, 1)
    checkScheduled(new.target.name, optimizer)
    this.optimizer = optimizer
    this.baseLrs = optimizer.paramGroups.map((group) => (group.initialLr ??= group.lr))
  }

  /** The rate of a group after `epoch` steps; `baseLr` is its rate before the schedule. */
  protected abstract rate(baseLr: number, epoch: number, group: number): number

  /** What the schedule says of a group after `epoch` steps, for schedules that are made of others. @internal */
  rateAfter(baseLr: number, epoch: number, group: number): number {
    return this.rate(baseLr, epoch, group)
  }

  /** Sets the rates for the current step; the constructors of schedules call it once. */
  protected apply(): void {
    for (const [g, group] of this.optimizer.paramGroups.entries()) group.lr = this.rate(this.baseLrs[g] ?? group.lr, this.lastEpoch, g)
  }

  /** Advances by one step. */
  step(): void {
    checkMethod(this, 'step', arguments, 0)
    this.lastEpoch++
    this.apply()
  }

  /** The current rates. PyTorch's `get_last_lr`. */
  getLastLr(): readonly number[] {
    checkMethod(this, 'getLastLr', arguments, 0)
    return this.optimizer.paramGroups.map((group) => group.lr)
  }

  stateDict(): LRSchedulerState {
    checkMethod(this, 'stateDict', arguments, 0)
    return { baseLrs: [...this.baseLrs], lastEpoch: this.lastEpoch }
  }

  /** Loads a state dict. Throws ArgumentError if the number of groups differs. */
  loadStateDict(given: LRSchedulerState): void {
    checkMethod(this, 'loadStateDict', arguments, 1)
    const state = decode('LRScheduler.loadStateDict', STATE, given, 'the state')
    if (state.baseLrs.length !== this.baseLrs.length)
      throw new ArgumentError(`LRScheduler.loadStateDict: the state has ${state.baseLrs.length} groups, the optimizer ${this.baseLrs.length}.`)
    this.baseLrs.splice(0, this.baseLrs.length, ...state.baseLrs)
    this.lastEpoch = state.lastEpoch
    this.apply()
  }
}

/** Throws ArgumentError unless `value` is an integer of at least 1. */
export function checkPositive(where: string, name: string, value: number): void {
  if (!Number.isInteger(value) || value < 1)
    throw new ArgumentError(`${where}: ${name} must be a positive integer, got ${valueText(value)}.${uncalledHint(value)}`)
}

/** Multiplies the rate by `gamma` (0.1) every `stepSize` steps. PyTorch's `StepLR`. */
export class StepLR extends LRScheduler {
  readonly stepSize: number
  readonly gamma: number

  constructor(optimizer: ScheduledOptimizer, stepSize: number, options: { readonly gamma?: number } = {}) {
    checkCount('optim.StepLR', arguments, 3)
    super(optimizer)
    checkPositive('optim.StepLR', 'stepSize', stepSize)
    checkOptions('optim.StepLR', options, { gamma: 'number' })
    this.stepSize = stepSize
    this.gamma = options.gamma ?? 0.1
    this.apply()
  }

  protected override rate(baseLr: number, epoch: number): number {
    return baseLr * this.gamma ** Math.floor(epoch / this.stepSize)
  }
}

/** Half a cosine from the first rate down to `etaMin` (0) in `tMax` steps, then up again. PyTorch's `CosineAnnealingLR`. */
export class CosineAnnealingLR extends LRScheduler {
  readonly tMax: number
  readonly etaMin: number

  constructor(optimizer: ScheduledOptimizer, tMax: number, options: { readonly etaMin?: number } = {}) {
    checkCount('optim.CosineAnnealingLR', arguments, 3)
    super(optimizer)
    checkPositive('optim.CosineAnnealingLR', 'tMax', tMax)
    checkOptions('optim.CosineAnnealingLR', options, { etaMin: 'number' })
    this.tMax = tMax
    this.etaMin = options.etaMin ?? 0
    this.apply()
  }

  protected override rate(baseLr: number, epoch: number): number {
    return this.etaMin + ((baseLr - this.etaMin) * (1 + Math.cos((Math.PI * epoch) / this.tMax))) / 2
  }
}

/** Multiplies the first rate by a function of the number of steps (one for all groups, or one each). PyTorch's `LambdaLR`. */
export class LambdaLR extends LRScheduler {
  readonly lambdas: readonly ((epoch: number) => number)[]

  constructor(optimizer: ScheduledOptimizer, lrLambda: ((epoch: number) => number) | readonly ((epoch: number) => number)[]) {
    checkCount('optim.LambdaLR', arguments, 2)
    super(optimizer)
    const count = this.baseLrs.length
    checkArgument(
      isFunction(lrLambda) || (Array.isArray(lrLambda) && lrLambda.every(isFunction)),
      'optim.LambdaLR',
      'lrLambda',
      'a function, or an array of functions',
      lrLambda,
    )
    this.lambdas = isFunction(lrLambda) ? Array.from({ length: count }, () => lrLambda) : lrLambda
    if (this.lambdas.length !== count)
      throw new ArgumentError(`optim.LambdaLR: expected ${count} functions, one for each parameter group, got ${this.lambdas.length}.`)
    this.apply()
  }

  protected override rate(baseLr: number, epoch: number, group: number): number {
    const lambda = this.lambdas[group]
    if (lambda === undefined) throw new InternalError(`optim.LambdaLR: there is no function for group ${group}`)
    return baseLr * lambda(epoch)
  }
}
