// Scaling of losses, so that small gradients survive half precision; all ranks agree on whether a step is skipped.
import { noGrad } from '../../autograd/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { isfinite } from '../../ops/index.ts'
import { decode, integer, number, object } from '../../protocol/decode.ts'
import { checkArgument, checkCount, checkMethod, checkOptions, isObject, valueText } from '../../protocol/index.ts'
import { Tensor, checkTensor } from '../../tensor/index.ts'
import { allReduce } from '../inPlace.ts'
import type { ProcessGroup } from '../processGroup.ts'

/** Options of {@link ShardedGradScaler}. */
export interface GradScalerOptions {
  /** Default 65536. */
  readonly initScale?: number
  /** By what the scale is multiplied after `growthInterval` steps without infinities. Default 2. */
  readonly growthFactor?: number
  /** By what it is multiplied after a step with one. Default 0.5. */
  readonly backoffFactor?: number
  /** Default 2000. */
  readonly growthInterval?: number
  /** Whether it does anything. Default true. */
  readonly enabled?: boolean
  /** The ranks that agree. Default: all. */
  readonly processGroup?: ProcessGroup
}

/** What a scaler needs of an optimizer. */
export interface ScaledOptimizer {
  readonly paramGroups: readonly { readonly params: readonly Tensor[] }[]
  step(): void
}

/** What a scaler continues from. */
export interface GradScalerState {
  readonly scale: number
  readonly growthFactor: number
  readonly backoffFactor: number
  readonly growthInterval: number
  readonly growthTracker: number
}

const STATE = object({ scale: number, growthTracker: integer(0) })

interface Stage {
  isUnscaled: boolean
  foundInf: boolean
}

/**
 * Multiplies the loss by a scale, divides gradients by it before the step, and skips the step on all ranks if any rank's gradients are not finite; then the scale
 * shrinks. PyTorch's `ShardedGradScaler`.
 *
 * @example
 * const scaler = new ShardedGradScaler()
 * scaler.scale(loss).backward()
 * scaler.step(optimizer)
 * scaler.update()
 */
export class ShardedGradScaler {
  #scale: number
  readonly #options: Required<Omit<GradScalerOptions, 'processGroup' | 'initScale'>>
  readonly #group: ProcessGroup | undefined
  #tracker = 0
  #stages = new Map<ScaledOptimizer, Stage>()

  constructor(options: GradScalerOptions = {}) {
    checkCount('ShardedGradScaler', arguments, 1)
    const where = 'ShardedGradScaler'
    checkOptions(where, options, {
      initScale: 'number',
      growthFactor: 'number',
      backoffFactor: 'number',
      growthInterval: 'number',
      enabled: 'boolean',
      processGroup: true,
    })
    const { initScale = 65536, growthFactor = 2, backoffFactor = 0.5, growthInterval = 2000, enabled = true } = options
    if (!(initScale > 0)) throw new ArgumentError(`${where}: initScale must be a positive number, got ${valueText(initScale)}.`)
    if (!(growthFactor > 1)) throw new ArgumentError(`${where}: growthFactor must be above 1, got ${valueText(growthFactor)}.`)
    if (!(backoffFactor > 0 && backoffFactor < 1))
      throw new ArgumentError(`${where}: backoffFactor must be between 0 and 1, got ${valueText(backoffFactor)}.`)
    if (!(growthInterval >= 1)) throw new ArgumentError(`${where}: growthInterval must be at least 1, got ${valueText(growthInterval)}.`)
    this.#scale = initScale
    this.#options = { growthFactor, backoffFactor, growthInterval, enabled }
    this.#group = options.processGroup
  }

  /** The loss times the scale. */
  scale(loss: Tensor): Tensor {
    checkMethod(this, 'ShardedGradScaler.scale', arguments, 1)
    checkTensor('ShardedGradScaler.scale', 'loss', loss)
    return this.#options.enabled ? loss.mul(this.#scale) : loss
  }

  /** The scale. PyTorch's `get_scale`. */
  getScale(): number {
    checkMethod(this, 'getScale', arguments, 0)
    return this.#options.enabled ? this.#scale : 1
  }

  #stage(where: string, optimizer: ScaledOptimizer): Stage {
    checkArgument(isObject(optimizer) && Array.isArray(optimizer.paramGroups), `ShardedGradScaler.${where}`, 'optimizer', 'an Optimizer', optimizer)
    let stage = this.#stages.get(optimizer)
    if (stage === undefined) {
      stage = { isUnscaled: false, foundInf: false }
      this.#stages.set(optimizer, stage)
    }
    return stage
  }

  /** Divides the gradients by the scale: before clipping them, for example. Throws ArgumentError if that was done since the last update. */
  unscale_(optimizer: ScaledOptimizer): void {
    checkMethod(this, 'unscale_', arguments, 1)
    if (!this.#options.enabled) return
    const stage = this.#stage('unscale_', optimizer)
    if (stage.isUnscaled) throw new ArgumentError('unscale_() has already been called on this optimizer since the last update().')
    stage.isUnscaled = true
    const found = noGrad(() => {
      let some = false
      for (const { params } of optimizer.paramGroups)
        for (const { grad } of params) {
          if (grad === null || grad.numel === 0) continue
          grad.mul_(1 / this.#scale)
          some ||= Number(isfinite(grad).all().item()) === 0
        }
      return Tensor.empty([1], 'int32').fill_(some ? 1 : 0)
    })
    allReduce(found, { op: 'max', ...(this.#group === undefined ? {} : { group: this.#group }) })
    stage.foundInf = found.item() !== 0
  }

  /** Takes the step, unless a gradient of some rank is infinite or NaN. Returns whether it did. */
  step(optimizer: ScaledOptimizer): boolean {
    checkMethod(this, 'step', arguments, 1)
    if (this.#options.enabled) {
      const stage = this.#stage('step', optimizer)
      if (!stage.isUnscaled) this.unscale_(optimizer)
      if (stage.foundInf) return false
    }
    optimizer.step()
    return true
  }

  /** Adapts the scale, after the step. */
  update(): void {
    checkMethod(this, 'update', arguments, 0)
    if (!this.#options.enabled) return
    const { growthFactor, backoffFactor, growthInterval } = this.#options
    if ([...this.#stages.values()].some(({ foundInf }) => foundInf)) {
      this.#scale *= backoffFactor
      this.#tracker = 0
    } else if (++this.#tracker === growthInterval) {
      this.#scale *= growthFactor
      this.#tracker = 0
    }
    this.#stages = new Map()
  }

  stateDict(): GradScalerState {
    checkMethod(this, 'stateDict', arguments, 0)
    const { growthFactor, backoffFactor, growthInterval } = this.#options
    return { scale: this.#scale, growthFactor, backoffFactor, growthInterval, growthTracker: this.#tracker }
  }

  /** Continues where another scaler was. The factors stay as they were given. */
  loadStateDict(state: GradScalerState): void {
    checkMethod(this, 'loadStateDict', arguments, 1)
    const where = 'ShardedGradScaler.loadStateDict'
    const { scale, growthTracker } = decode(where, STATE, state, 'the state')
    if (!(scale > 0 && Number.isFinite(scale))) throw new ArgumentError(`${where}: scale must be a positive number, got ${scale}.`)
    this.#scale = scale
    this.#tracker = growthTracker
  }
}
