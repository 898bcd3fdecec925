// More learning-rate schedules in closed form: each says the rate of a group after a number of steps.
import { ArgumentError } from '../errors/index.ts'
import { checkArgument, checkArray, checkCount, checkOptions, isFunction } from '../protocol/index.ts'
import { LRScheduler, checkPositive } from './lrScheduler.ts'
import type { ScheduledOptimizer } from './lrScheduler.ts'

/** Multiplies the rate by `gamma` (0.1) at each of the `milestones`, which may repeat. PyTorch's `MultiStepLR`. */
export class MultiStepLR extends LRScheduler {
  readonly milestones: readonly number[]
  readonly gamma: number

  constructor(optimizer: ScheduledOptimizer, milestones: readonly number[], options: { readonly gamma?: number } = {}) {
    checkCount('optim.MultiStepLR', arguments, 3)
    super(optimizer)
    checkArray('optim.MultiStepLR', 'milestones', milestones)
    checkOptions('optim.MultiStepLR', options, { gamma: 'number' })
    this.milestones = milestones
    this.gamma = options.gamma ?? 0.1
    this.apply()
  }

  protected override rate(baseLr: number, epoch: number): number {
    return baseLr * this.gamma ** this.milestones.filter((at) => at <= epoch).length
  }
}

/** Multiplies the rate by `factor` (1/3) for the first `totalIters` (5) steps. PyTorch's `ConstantLR`. */
export class ConstantLR extends LRScheduler {
  readonly factor: number
  readonly totalIters: number

  constructor(optimizer: ScheduledOptimizer, options: { readonly factor?: number; readonly totalIters?: number } = {}) {
    checkCount('optim.ConstantLR', arguments, 2)
    super(optimizer)
    checkOptions('optim.ConstantLR', options, { factor: 'number', totalIters: 'number' })
    this.factor = options.factor ?? 1 / 3
    this.totalIters = options.totalIters ?? 5
    this.apply()
  }

  protected override rate(baseLr: number, epoch: number): number {
    return epoch < this.totalIters ? baseLr * this.factor : baseLr
  }
}

/** Multiplies the rate by a factor that goes from `startFactor` (1/3) to `endFactor` (1) in `totalIters` (5) equal steps. PyTorch's `LinearLR`. */
export class LinearLR extends LRScheduler {
  readonly startFactor: number
  readonly endFactor: number
  readonly totalIters: number

  constructor(
    optimizer: ScheduledOptimizer,
    options: { readonly startFactor?: number; readonly endFactor?: number; readonly totalIters?: number } = {},
  ) {
    checkCount('optim.LinearLR', arguments, 2)
    super(optimizer)
    checkOptions('optim.LinearLR', options, { startFactor: 'number', endFactor: 'number', totalIters: 'number' })
    this.startFactor = options.startFactor ?? 1 / 3
    this.endFactor = options.endFactor ?? 1
    this.totalIters = options.totalIters ?? 5
    checkPositive('optim.LinearLR', 'totalIters', this.totalIters)
    this.apply()
  }

  protected override rate(baseLr: number, epoch: number): number {
    const done = Math.min(epoch, this.totalIters) / this.totalIters
    return baseLr * (this.startFactor + (this.endFactor - this.startFactor) * done)
  }
}

/** Multiplies the rate by `gamma` at every step. PyTorch's `ExponentialLR`. */
export class ExponentialLR extends LRScheduler {
  readonly gamma: number

  constructor(optimizer: ScheduledOptimizer, gamma: number) {
    checkCount('optim.ExponentialLR', arguments, 2)
    super(optimizer)
    checkArgument(typeof gamma === 'number', 'optim.ExponentialLR', 'gamma', 'a number', gamma)
    this.gamma = gamma
    this.apply()
  }

  protected override rate(baseLr: number, epoch: number): number {
    return baseLr * this.gamma ** epoch
  }
}

/** From the first rate down to 0 in `totalIters` (5) steps, as a polynomial of degree `power` (1). PyTorch's `PolynomialLR`. */
export class PolynomialLR extends LRScheduler {
  readonly totalIters: number
  readonly power: number

  constructor(optimizer: ScheduledOptimizer, options: { readonly totalIters?: number; readonly power?: number } = {}) {
    checkCount('optim.PolynomialLR', arguments, 2)
    super(optimizer)
    checkOptions('optim.PolynomialLR', options, { totalIters: 'number', power: 'number' })
    this.totalIters = options.totalIters ?? 5
    this.power = options.power ?? 1
    checkPositive('optim.PolynomialLR', 'totalIters', this.totalIters)
    this.apply()
  }

  protected override rate(baseLr: number, epoch: number): number {
    return baseLr * (1 - Math.min(epoch, this.totalIters) / this.totalIters) ** this.power
  }
}

/** Half a cosine from the first rate to `etaMin` (0) in `t0` steps, then from the start, each time `tMult` (1) times as long. PyTorch's `CosineAnnealingWarmRestarts`. */
export class CosineAnnealingWarmRestarts extends LRScheduler {
  readonly t0: number
  readonly tMult: number
  readonly etaMin: number

  constructor(optimizer: ScheduledOptimizer, t0: number, options: { readonly tMult?: number; readonly etaMin?: number } = {}) {
    checkCount('optim.CosineAnnealingWarmRestarts', arguments, 3)
    super(optimizer)
    checkOptions('optim.CosineAnnealingWarmRestarts', options, { tMult: 'number', etaMin: 'number' })
    this.t0 = t0
    this.tMult = options.tMult ?? 1
    this.etaMin = options.etaMin ?? 0
    checkPositive('optim.CosineAnnealingWarmRestarts', 't0', t0)
    checkPositive('optim.CosineAnnealingWarmRestarts', 'tMult', this.tMult)
    this.apply()
  }

  protected override rate(baseLr: number, epoch: number): number {
    let [at, period] = [epoch, this.t0]
    while (at >= period) {
      at -= period
      period *= this.tMult
    }
    return this.etaMin + ((baseLr - this.etaMin) * (1 + Math.cos((Math.PI * at) / period))) / 2
  }
}

/** Multiplies the rate by a function of the number of steps, at every step. PyTorch's `MultiplicativeLR`. */
export class MultiplicativeLR extends LRScheduler {
  readonly lrLambda: (epoch: number) => number

  constructor(optimizer: ScheduledOptimizer, lrLambda: (epoch: number) => number) {
    checkCount('optim.MultiplicativeLR', arguments, 2)
    super(optimizer)
    // For callers in JavaScript.
    if (!isFunction(lrLambda)) throw new ArgumentError('optim.MultiplicativeLR: the second argument must be a function of the number of steps.')
    this.lrLambda = lrLambda
    this.apply()
  }

  protected override rate(baseLr: number, epoch: number): number {
    let rate = baseLr
    for (let step = 1; step <= epoch; step++) rate *= this.lrLambda(step)
    return rate
  }
}

/** One schedule after the other: the next one starts at each of the `milestones`, with its own count of steps. PyTorch's `SequentialLR`. */
export class SequentialLR extends LRScheduler {
  readonly schedulers: readonly LRScheduler[]
  readonly milestones: readonly number[]

  constructor(optimizer: ScheduledOptimizer, schedulers: readonly LRScheduler[], milestones: readonly number[]) {
    checkCount('optim.SequentialLR', arguments, 3)
    super(optimizer)
    if (schedulers.length === 0 || milestones.length !== schedulers.length - 1)
      throw new ArgumentError(
        `optim.SequentialLR: ${schedulers.length} schedules need ${Math.max(0, schedulers.length - 1)} milestones between them, got ${milestones.length}.`,
      )
    this.schedulers = schedulers
    this.milestones = milestones
    this.apply()
  }

  protected override rate(baseLr: number, epoch: number, group: number): number {
    const current = this.milestones.filter((at) => at <= epoch).length
    const start = current === 0 ? 0 : (this.milestones[current - 1] ?? 0)
    return this.schedulers[current]?.rateAfter(baseLr, epoch - start, group) ?? baseLr
  }
}

/** Several schedules at once: the rate is multiplied by what each of them does to it. PyTorch's `ChainedScheduler`. */
export class ChainedScheduler extends LRScheduler {
  readonly schedulers: readonly LRScheduler[]

  constructor(schedulers: readonly LRScheduler[]) {
    checkCount('optim.ChainedScheduler', arguments, 1)
    checkArray('optim.ChainedScheduler', 'schedulers', schedulers)
    const [first] = schedulers
    if (first === undefined) throw new ArgumentError('optim.ChainedScheduler: give at least one schedule.')
    for (const [i, item] of schedulers.entries())
      checkArgument(item instanceof LRScheduler, 'optim.ChainedScheduler', `schedulers[${i}]`, 'a schedule', item)
    super(first.optimizer)
    this.schedulers = schedulers
    this.apply()
  }

  protected override rate(baseLr: number, epoch: number, group: number): number {
    return this.schedulers.reduce((rate, scheduler) => (rate * scheduler.rateAfter(baseLr, epoch, group)) / baseLr, baseLr)
  }
}
