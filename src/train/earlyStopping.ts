// EarlyStopping: whether a training still gets better.
import { ArgumentError } from '../errors/index.ts'
import { checkCount, checkMethod, checkOptions, isPlainObject, valueText } from '../protocol/index.ts'

/** Options of {@link EarlyStopping}. */
export interface EarlyStoppingOptions {
  /** How many epochs in a row may bring nothing. Default 3. */
  readonly patience?: number
  /** By how much a score must be better than the best one to count. Default 0. */
  readonly minDelta?: number
  /** Whether lower scores are better (`'min'`, as of a loss) or higher ones. Default `'min'`. */
  readonly mode?: 'min' | 'max'
  /** The name of the score in the report of an epoch. Default: `'validation/loss'` if there is validation, else `'loss'`. */
  readonly monitor?: string
}

/** What {@link EarlyStopping} has counted, for checkpoints. */
export interface EarlyStoppingState {
  readonly best: number | null
  readonly waited: number
}

/**
 * Says when scores have not become better for a while.
 *
 * @throws ArgumentError for a patience that is not a positive integer.
 * @example
 * const stopping = new EarlyStopping({ patience: 2 })
 * for (const loss of [3, 2, 2, 2]) if (stopping.update(loss)) break
 */
export class EarlyStopping {
  readonly patience: number
  readonly minDelta: number
  readonly mode: 'min' | 'max'
  readonly monitor: string | null
  /** The best score so far. */
  best: number | null = null
  /** How many scores in a row were not better. */
  waited = 0

  constructor(options: EarlyStoppingOptions = {}) {
    checkCount('EarlyStopping', arguments, 1)
    checkOptions('EarlyStopping', options, { patience: 'number', minDelta: 'number', mode: true, monitor: true })
    const { patience = 3, minDelta = 0, mode = 'min', monitor = null } = options
    if (!Number.isSafeInteger(patience) || patience < 1)
      throw new ArgumentError(`EarlyStopping: option 'patience' must be an integer from 1 on, got ${valueText(patience)}.`)
    if (!(minDelta >= 0)) throw new ArgumentError(`EarlyStopping: option 'minDelta' must be a number from 0 on, got ${valueText(minDelta)}.`)
    if (mode !== 'min' && mode !== 'max') throw new ArgumentError(`EarlyStopping: option 'mode' must be 'min' or 'max', got ${valueText(mode)}.`)
    if (monitor !== null && typeof monitor !== 'string')
      throw new ArgumentError(`EarlyStopping: option 'monitor' must be the name of a score, got ${valueText(monitor)}.`)
    this.patience = patience
    this.minDelta = minDelta
    this.mode = mode
    this.monitor = monitor
  }

  /** Takes a score; NaN is never better. Returns whether to stop. Throws ArgumentError if it is not a number. */
  update(score: number): boolean {
    checkMethod(this, 'update', arguments, 1)
    if (typeof score !== 'number') throw new ArgumentError(`EarlyStopping.update: argument 'score' must be a number, got ${valueText(score)}.`)
    const gain = this.mode === 'min' ? (this.best ?? Infinity) - score : score - (this.best ?? -Infinity)
    if (gain > this.minDelta || (this.best === null && !Number.isNaN(score))) {
      this.best = score
      this.waited = 0
    } else this.waited++
    return this.waited >= this.patience
  }

  stateDict(): EarlyStoppingState {
    checkMethod(this, 'stateDict', arguments, 0)
    return { best: this.best, waited: this.waited }
  }

  /** @throws ArgumentError for anything but what {@link stateDict} gives. */
  loadStateDict(state: EarlyStoppingState): void {
    checkMethod(this, 'loadStateDict', arguments, 1)
    if (!isPlainObject(state) || !(state['best'] === null || typeof state['best'] === 'number') || !Number.isSafeInteger(state['waited']))
      throw new ArgumentError(`EarlyStopping.loadStateDict: argument 'state' must be what stateDict gives, got ${valueText(state)}.`)
    this.best = state['best']
    this.waited = Number(state['waited'])
  }
}
