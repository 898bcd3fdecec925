// Schedules of the rate and, against it, of the momentum: OneCycleLR and CyclicLR. And ReduceLROnPlateau, which watches a number.
import { ArgumentError } from '../errors/index.ts'
import { decode, integer, number, object } from '../protocol/decode.ts'
import { checkCallable, checkCount, checkMethod, checkOptions, valueText } from '../protocol/index.ts'
import { LRScheduler, checkScheduled, perGroup } from './lrScheduler.ts'
import type { PerGroup, ScheduledOptimizer } from './lrScheduler.ts'

/** Sets the momentum of a group: its `momentum`, or the first of its `betas`. */
function setMomentum(group: object, value: number): void {
  const betas: unknown = Reflect.get(group, 'betas')
  if (Array.isArray(betas)) Reflect.set(group, 'betas', [value, ...betas.slice(1)])
  else if ('momentum' in group) Reflect.set(group, 'momentum', value)
  else throw new ArgumentError('cycleMomentum: the optimizer has neither momentum nor betas; pass { cycleMomentum: false }.')
}

abstract class MomentumCycle extends LRScheduler {
  protected abstract readonly cycleMomentum: boolean
  protected abstract momentum(epoch: number): number

  protected override apply(): void {
    super.apply()
    if (this.cycleMomentum) for (const group of this.optimizer.paramGroups) setMomentum(group, this.momentum(this.lastEpoch))
  }
}

/** Options of {@link OneCycleLR}. */
export interface OneCycleOptions {
  /** The number of steps of the cycle. */
  readonly totalSteps?: number
  /** Instead of `totalSteps`: epochs, and steps of each. */
  readonly epochs?: number
  readonly stepsPerEpoch?: number
  /** The part of the steps in which the rate rises; default 0.3. */
  readonly pctStart?: number
  /** Default 'cos'. */
  readonly annealStrategy?: 'cos' | 'linear'
  readonly cycleMomentum?: boolean
  readonly baseMomentum?: number
  readonly maxMomentum?: number
  /** The first rate is the greatest one divided by this; default 25. */
  readonly divFactor?: number
  /** The last rate is the first one divided by this; default 10,000. */
  readonly finalDivFactor?: number
  /** Fall to the first rate as long as it rose, and only then to the last one. */
  readonly threePhase?: boolean
}

interface Phase {
  readonly end: number
  /** As parts of the greatest rate. */
  readonly rates: readonly [from: number, to: number]
  readonly momenta: readonly [from: number, to: number]
}

/** Up to `maxLr` (one for all groups, or one each) and down to almost nothing in one cycle. PyTorch's `OneCycleLR`. */
export class OneCycleLR extends MomentumCycle {
  readonly maxLr: PerGroup
  readonly #maxLrs: readonly number[]
  readonly totalSteps: number
  protected readonly cycleMomentum: boolean
  private readonly linear: boolean
  private readonly phases: readonly Phase[]

  constructor(optimizer: ScheduledOptimizer, maxLr: PerGroup, options: OneCycleOptions) {
    checkCount('optim.OneCycleLR', arguments, 3)
    super(optimizer)
    checkOptions('optim.OneCycleLR', options, {
      totalSteps: 'number',
      epochs: 'number',
      stepsPerEpoch: 'number',
      pctStart: 'number',
      annealStrategy: true,
      cycleMomentum: 'boolean',
      baseMomentum: 'number',
      maxMomentum: 'number',
      divFactor: 'number',
      finalDivFactor: 'number',
      threePhase: 'boolean',
    })
    const { pctStart = 0.3, annealStrategy = 'cos', baseMomentum = 0.85, maxMomentum = 0.95, divFactor = 25, finalDivFactor = 1e4 } = options
    const total = options.totalSteps ?? (options.epochs ?? NaN) * (options.stepsPerEpoch ?? NaN)
    if (!Number.isInteger(total) || total < 1)
      throw new ArgumentError('optim.OneCycleLR: give totalSteps, or epochs and stepsPerEpoch, as positive integers.')
    if (annealStrategy !== 'cos' && annealStrategy !== 'linear')
      throw new ArgumentError(`optim.OneCycleLR: annealStrategy must be 'cos' or 'linear', got ${valueText(annealStrategy)}.`)
    this.maxLr = maxLr
    this.#maxLrs = perGroup('optim.OneCycleLR', 'maxLr', optimizer, maxLr)
    this.totalSteps = total
    this.linear = annealStrategy === 'linear'
    this.cycleMomentum = options.cycleMomentum ?? true
    const first = 1 / divFactor
    const last = first / finalDivFactor
    const up: Phase = { end: pctStart * total - 1, rates: [first, 1], momenta: [maxMomentum, baseMomentum] }
    this.phases =
      options.threePhase === true
        ? [
            up,
            { end: 2 * pctStart * total - 2, rates: [1, first], momenta: [baseMomentum, maxMomentum] },
            { end: total - 1, rates: [first, last], momenta: [maxMomentum, maxMomentum] },
          ]
        : [up, { end: total - 1, rates: [1, last], momenta: [baseMomentum, maxMomentum] }]
    this.apply()
  }

  private at(epoch: number, which: 'rates' | 'momenta'): number {
    if (epoch > this.totalSteps) throw new ArgumentError(`optim.OneCycleLR: step ${epoch} exceeds totalSteps ${this.totalSteps}.`)
    let start = 0
    for (const [i, phase] of this.phases.entries()) {
      if (epoch <= phase.end || i === this.phases.length - 1) {
        const done = (epoch - start) / (phase.end - start)
        const [from, to] = phase[which]
        return this.linear ? from + (to - from) * done : to + ((from - to) / 2) * (1 + Math.cos(Math.PI * done))
      }
      start = phase.end
    }
    return NaN
  }

  protected override rate(_baseLr: number, epoch: number, group: number): number {
    return (this.#maxLrs[group] ?? NaN) * this.at(epoch, 'rates')
  }

  protected override momentum(epoch: number): number {
    return this.at(epoch, 'momenta')
  }
}

/** Options of {@link CyclicLR}. */
export interface CyclicOptions {
  /** Steps in which the rate rises; default 2000. */
  readonly stepSizeUp?: number
  /** Steps in which it falls; default as many. */
  readonly stepSizeDown?: number | null
  /** The same height always (default), half of it each time, or `gamma` to the power of the number of steps. */
  readonly mode?: 'triangular' | 'triangular2' | 'exp_range'
  readonly gamma?: number
  /** The height of a cycle, instead of `mode`: a function of its number, counted from 1, or with `scaleMode: 'iterations'` of the number of steps. */
  readonly scaleFn?: ((x: number) => number) | null
  /** What `scaleFn` gets; default 'cycle'. */
  readonly scaleMode?: 'cycle' | 'iterations'
  readonly cycleMomentum?: boolean
  readonly baseMomentum?: number
  readonly maxMomentum?: number
}

/** Up from `baseLr` to `maxLr` (one for all groups, or one each) and down again, over and over. PyTorch's `CyclicLR`. */
export class CyclicLR extends MomentumCycle {
  readonly baseLr: PerGroup
  readonly maxLr: PerGroup
  readonly #ranges: readonly (readonly number[])[]
  protected readonly cycleMomentum: boolean
  private readonly given: Required<CyclicOptions>

  constructor(optimizer: ScheduledOptimizer, baseLr: PerGroup, maxLr: PerGroup, options: CyclicOptions = {}) {
    checkCount('optim.CyclicLR', arguments, 4)
    super(optimizer)
    checkOptions('optim.CyclicLR', options, {
      stepSizeUp: 'number',
      stepSizeDown: true,
      mode: true,
      gamma: 'number',
      scaleFn: true,
      scaleMode: true,
      cycleMomentum: 'boolean',
      baseMomentum: 'number',
      maxMomentum: 'number',
    })
    this.given = {
      stepSizeUp: 2000,
      stepSizeDown: null,
      mode: 'triangular',
      gamma: 1,
      scaleFn: null,
      scaleMode: 'cycle',
      cycleMomentum: true,
      baseMomentum: 0.8,
      maxMomentum: 0.9,
      ...options,
    }
    if (!['triangular', 'triangular2', 'exp_range'].includes(this.given.mode))
      throw new ArgumentError(`optim.CyclicLR: mode must be 'triangular', 'triangular2' or 'exp_range', got ${valueText(this.given.mode)}.`)
    if (this.given.scaleFn !== null) checkCallable('optim.CyclicLR', 'scaleFn', this.given.scaleFn)
    if (!['cycle', 'iterations'].includes(this.given.scaleMode))
      throw new ArgumentError(`optim.CyclicLR: scaleMode must be 'cycle' or 'iterations', got ${valueText(this.given.scaleMode)}.`)
    this.baseLr = baseLr
    this.maxLr = maxLr
    this.#ranges = [perGroup('optim.CyclicLR', 'baseLr', optimizer, baseLr), perGroup('optim.CyclicLR', 'maxLr', optimizer, maxLr)]
    this.cycleMomentum = this.given.cycleMomentum
    this.apply()
  }

  /** How far up the cycle is, from 0 to 1. */
  private height(epoch: number): number {
    const { stepSizeUp, stepSizeDown, mode, gamma, scaleFn, scaleMode } = this.given
    const total = stepSizeUp + (stepSizeDown ?? stepSizeUp)
    const cycle = Math.floor(1 + epoch / total)
    const x = 1 + epoch / total - cycle
    const ratio = stepSizeUp / total
    const scale = x <= ratio ? x / ratio : (x - 1) / (ratio - 1)
    if (scaleFn !== null) return scale * scaleFn(scaleMode === 'cycle' ? cycle : epoch)
    return scale * (mode === 'triangular' ? 1 : mode === 'triangular2' ? 1 / 2 ** (cycle - 1) : gamma ** epoch)
  }

  protected override rate(_baseLr: number, epoch: number, group: number): number {
    const [base = NaN, max = NaN] = this.#ranges.map((of) => of[group])
    return base + (max - base) * this.height(epoch)
  }

  protected override momentum(epoch: number): number {
    const { baseMomentum, maxMomentum } = this.given
    return maxMomentum - (maxMomentum - baseMomentum) * this.height(epoch)
  }
}

/** Options of {@link ReduceLROnPlateau}. */
export interface PlateauOptions {
  /** Whether less is better (default) or more. */
  readonly mode?: 'min' | 'max'
  readonly factor?: number
  /** How many steps without an improvement are accepted; default 10. */
  readonly patience?: number
  /** What counts as an improvement: by this part ('rel'), or by this much ('abs'). Default 1e-4. */
  readonly threshold?: number
  readonly thresholdMode?: 'rel' | 'abs'
  /** Steps after a reduction that do not count. */
  readonly cooldown?: number
  /** The least rate, one for all groups or one each; default 0. */
  readonly minLr?: PerGroup
  /** Smaller changes of the rate are not made. */
  readonly eps?: number
}

/** What {@link ReduceLROnPlateau} needs to continue. */
export interface PlateauState {
  readonly best: number
  readonly cooldownCounter: number
  readonly lastEpoch: number
  readonly numBadEpochs: number
}

const PLATEAU_STATE = object({ best: number, cooldownCounter: integer(), lastEpoch: integer(), numBadEpochs: integer() })

/** Multiplies the rate by `factor` (0.1) when a number stops improving: call `step(number)`. PyTorch's `ReduceLROnPlateau`. */
export class ReduceLROnPlateau {
  readonly optimizer: ScheduledOptimizer
  /** The best number so far. */
  best: number
  /** Steps since then. */
  numBadEpochs = 0
  /** Steps left that do not count. */
  cooldownCounter = 0
  /** Number of steps taken. */
  lastEpoch = 0
  private readonly given: Required<PlateauOptions>
  readonly #minLrs: readonly number[]

  constructor(optimizer: ScheduledOptimizer, options: PlateauOptions = {}) {
    checkCount('optim.ReduceLROnPlateau', arguments, 2)
    checkOptions('optim.ReduceLROnPlateau', options, {
      mode: true,
      factor: 'number',
      patience: 'number',
      threshold: 'number',
      thresholdMode: true,
      cooldown: 'number',
      minLr: true,
      eps: 'number',
    })
    checkScheduled('ReduceLROnPlateau', optimizer)
    this.optimizer = optimizer
    this.given = { mode: 'min', factor: 0.1, patience: 10, threshold: 1e-4, thresholdMode: 'rel', cooldown: 0, minLr: 0, eps: 1e-8, ...options }
    if (!(this.given.factor < 1)) throw new ArgumentError(`optim.ReduceLROnPlateau: factor must be less than 1, got ${this.given.factor}.`)
    this.#minLrs = perGroup('optim.ReduceLROnPlateau', 'minLr', optimizer, this.given.minLr)
    this.best = this.given.mode === 'min' ? Infinity : -Infinity
  }

  private improves(metric: number): boolean {
    const { mode, threshold, thresholdMode } = this.given
    const margin = thresholdMode === 'abs' ? threshold : Math.abs(this.best) === Infinity ? 0 : this.best * threshold
    return mode === 'min' ? metric < this.best - margin : metric > this.best + margin
  }

  /** Looks at the number, and reduces the rates if it has not improved for too long. Throws ArgumentError if it is not a number. */
  step(metric: number): void {
    checkMethod(this, 'step', arguments, 1)
    // For callers in JavaScript.
    if (typeof metric !== 'number')
      throw new ArgumentError(`optim.ReduceLROnPlateau: step takes the number that it watches, got ${valueText(metric)}.`)
    const { patience, cooldown, factor, eps } = this.given
    this.lastEpoch++
    if (this.improves(metric)) {
      this.best = metric
      this.numBadEpochs = 0
    } else this.numBadEpochs++
    if (this.cooldownCounter > 0) {
      this.cooldownCounter--
      this.numBadEpochs = 0
    }
    if (this.numBadEpochs <= patience) return
    for (const [g, group] of this.optimizer.paramGroups.entries()) {
      const next = Math.max(group.lr * factor, this.#minLrs[g] ?? 0)
      if (group.lr - next > eps) group.lr = next
    }
    this.cooldownCounter = cooldown
    this.numBadEpochs = 0
  }

  /** The current rates. PyTorch's `get_last_lr`. */
  getLastLr(): readonly number[] {
    checkMethod(this, 'getLastLr', arguments, 0)
    return this.optimizer.paramGroups.map((group) => group.lr)
  }

  stateDict(): PlateauState {
    checkMethod(this, 'stateDict', arguments, 0)
    const { best, cooldownCounter, lastEpoch, numBadEpochs } = this
    return { best, cooldownCounter, lastEpoch, numBadEpochs }
  }

  /** Loads a state dict. The rates are in the optimizer's. Throws ArgumentError for anything else. */
  loadStateDict(given: PlateauState): void {
    checkMethod(this, 'loadStateDict', arguments, 1)
    Object.assign(this, decode('ReduceLROnPlateau.loadStateDict', PLATEAU_STATE, given, 'the state'))
  }
}
