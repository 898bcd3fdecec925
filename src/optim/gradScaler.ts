// GradScaler: multiplies the loss, so that small gradients survive half precision, divides the gradients again before the step, and skips steps with gradients that are not finite.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { all, isfinite, mul, mul_, tensor } from '../ops/index.ts'
import { decode, integer, number, object, optional } from '../protocol/decode.ts'
import { checkArgument, checkCount, checkMethod, checkOptions, isFunction, isObject, isPlainObject, valueText } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'

/** Options of {@link GradScaler}. */
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

/** What {@link GradScaler.scale} makes of its argument: tensors stay tensors, arrays arrays. */
type Scaled<T> = T extends Tensor ? Tensor : { -readonly [K in keyof T]: Scaled<T[K]> }

const STATE = object({
  scale: number,
  growthFactor: optional(number),
  backoffFactor: optional(number),
  growthInterval: optional(integer(1)),
  growthTracker: integer(0),
})

/** What has happened to the gradients of an optimizer since the last update. */
interface Progress {
  stage: 'ready' | 'unscaled' | 'stepped'
  /** Null before there were gradients to look at. */
  foundInf: boolean | null
}

/**
 * Scales losses for training in float16: `scale(loss).backward()`, `step(optimizer)`, `update()`. The scale shrinks when gradients overflow, and such a step is skipped; it grows again
 * after some steps that went well. bfloat16 needs no scaler. PyTorch's `torch.amp.GradScaler`.
 *
 * @throws ArgumentError for options out of range; methods throw it if they are called in another order than `scale`, `unscale_`, `step`, `update`.
 * @example
 * const scaler = new torch.amp.GradScaler()
 * const loss = torch.autocast({ dtype: 'float16' }, () => nn.functional.mseLoss(model(x), y))
 * scaler.scale(loss).backward()
 * scaler.unscale_(optimizer) // only if gradients are clipped
 * nn.utils.clipGradNorm_(model.parameters(), 1)
 * scaler.step(optimizer)
 * scaler.update()
 */
export class GradScaler {
  readonly #name: string
  readonly #enabled: boolean
  #scale: number
  #growthFactor: number
  #backoffFactor: number
  #growthInterval: number
  #tracker = 0
  /** Whether a loss was scaled, or a scale was loaded. */
  #isInUse = false
  #progress = new Map<ScaledOptimizer, Progress>()

  constructor(options: GradScalerOptions = {}) {
    checkCount(new.target.name, arguments, 1)
    const where = new.target.name
    this.#name = where
    checkOptions(where, options, {
      initScale: 'number',
      growthFactor: 'number',
      backoffFactor: 'number',
      growthInterval: 'number',
      enabled: 'boolean',
    })
    const { initScale = 65536, growthFactor = 2, backoffFactor = 0.5, growthInterval = 2000, enabled = true } = options
    if (!(initScale > 0)) throw new ArgumentError(`${where}: initScale must be a positive number, got ${valueText(initScale)}.`)
    checkFactors(where, { growthFactor, backoffFactor, growthInterval })
    this.#scale = Math.fround(initScale)
    this.#growthFactor = growthFactor
    this.#backoffFactor = backoffFactor
    this.#growthInterval = growthInterval
    this.#enabled = enabled
  }

  /** Whether gradients of any rank are not finite, where several ranks must agree. */
  protected agree(found: boolean): boolean {
    checkMethod(this, 'agree', arguments, 1)
    return found
  }

  /** The loss times the scale; of an array, each. */
  scale<T extends Tensor | readonly Tensor[] | readonly (readonly Tensor[])[]>(outputs: T): Scaled<T> {
    checkMethod(this, `${this.#name}.scale`, arguments, 1)
    const where = `${this.#name}.scale`
    const factor = this.#enabled ? tensor(this.#scale, { dtype: 'float32' }) : null
    const scaled = (value: unknown): unknown => {
      if (value instanceof Tensor) return factor === null ? value : mul(value, factor)
      checkArgument(Array.isArray(value), where, 'outputs', 'a Tensor or an array of Tensors', value)
      return Array.isArray(value) ? value.map(scaled) : value
    }
    const result = scaled(outputs)
    this.#isInUse = true
    // Tensors have become tensors, and arrays arrays.
    return result as Scaled<T>
  }

  /** Throws ArgumentError if `optimizer` is not an optimizer, and if no loss has been scaled yet. */
  #progressOf(method: string, optimizer: ScaledOptimizer): Progress {
    const where = `${this.#name}.${method}`
    checkArgument(isObject(optimizer) && Array.isArray(optimizer.paramGroups), where, 'optimizer', 'an Optimizer', optimizer)
    this.#checkInUse(method)
    let progress = this.#progress.get(optimizer)
    if (progress === undefined) {
      progress = { stage: 'ready', foundInf: null }
      this.#progress.set(optimizer, progress)
    }
    return progress
  }

  #checkInUse(method: string): void {
    if (!this.#isInUse)
      throw new ArgumentError(`${this.#name}.${method}: no loss was scaled yet; call scaler.scale(loss).backward() earlier in the iteration.`)
  }

  /** Divides the gradients by the scale: before they are clipped, for example. Throws ArgumentError if that was done since the last update, and for gradients of float16. */
  unscale_(optimizer: ScaledOptimizer): void {
    checkMethod(this, 'unscale_', arguments, 1)
    if (!this.#enabled) return
    const where = `${this.#name}.unscale_`
    const progress = this.#progressOf('unscale_', optimizer)
    if (progress.stage === 'unscaled')
      throw new ArgumentError(`${where}: unscale_() has already been called on this optimizer since the last update().`)
    if (progress.stage === 'stepped') throw new ArgumentError(`${where}: unscale_() is being called after step(); call it before.`)
    const grads = optimizer.paramGroups.flatMap(({ params }) => params.flatMap(({ grad }) => (grad === null ? [] : [grad])))
    if (grads.some(({ dtype }) => dtype === 'float16'))
      throw new ArgumentError(
        `${where}: Attempting to unscale FP16 gradients. Keep the parameters in float32, and compute in float16 by torch.autocast.`,
      )
    const found = noGrad(() => {
      let some = false
      for (const grad of grads) {
        some ||= grad.numel > 0 && Number(all(isfinite(grad)).item()) === 0
        mul_(grad, Math.fround(1 / this.#scale))
      }
      return some
    })
    progress.foundInf = grads.length === 0 ? null : found
    const agreed = this.agree(found)
    if (agreed || grads.length > 0) progress.foundInf = agreed
    progress.stage = 'unscaled'
  }

  /** Takes the step, unless a gradient is infinite or NaN. Returns whether it did. Throws ArgumentError if the optimizer has no gradients, or was stepped since the last update. */
  step(optimizer: ScaledOptimizer): boolean {
    checkMethod(this, 'step', [optimizer], 1)
    const where = `${this.#name}.step`
    if (arguments.length > 1 && isFunction(arguments[1])) throw new ArgumentError(`${where}: Closure use is not supported; compute the loss before.`)
    checkCount(where, arguments, 1)
    if (this.#enabled) {
      const progress = this.#progressOf('step', optimizer)
      if (progress.stage === 'stepped') throw new ArgumentError(`${where}: step() has already been called since the last update().`)
      if (progress.stage === 'ready') this.unscale_(optimizer)
      if (progress.foundInf === null)
        throw new ArgumentError(
          `${where}: No inf checks were recorded for this optimizer: none of its parameters has a gradient. Call backward() first.`,
        )
      progress.stage = 'stepped'
      if (progress.foundInf) return false
    }
    optimizer.step()
    return true
  }

  /** Adapts the scale, after the steps, or sets it. Throws ArgumentError if no gradients were looked at. */
  update(newScale?: number): void {
    checkMethod(this, 'update', arguments, 1)
    if (!this.#enabled) return
    this.#checkInUse('update')
    if (newScale !== undefined) {
      if (!(newScale > 0)) throw new ArgumentError(`${this.#name}.update: newScale must be a positive number, got ${valueText(newScale)}.`)
      this.#scale = Math.fround(newScale)
    } else this.#adapt([...this.#progress.values()].flatMap(({ foundInf }) => (foundInf === null ? [] : [foundInf])))
    this.#progress = new Map()
  }

  #adapt(found: readonly boolean[]): void {
    if (found.length === 0) throw new ArgumentError(`${this.#name}.update: No inf checks were recorded prior to update; call step(optimizer) first.`)
    if (found.includes(true)) {
      this.#scale = Math.fround(this.#scale * this.#backoffFactor)
      this.#tracker = 0
    } else if (++this.#tracker === this.#growthInterval) {
      const grown = Math.fround(this.#scale * this.#growthFactor)
      if (Number.isFinite(grown)) this.#scale = grown
      this.#tracker = 0
    }
  }

  /** The scale; 1 if it is not enabled. PyTorch's `get_scale`. */
  getScale(): number {
    checkMethod(this, 'getScale', arguments, 0)
    return this.#enabled ? this.#scale : 1
  }

  /** PyTorch's `is_enabled`. */
  isEnabled(): boolean {
    checkMethod(this, 'isEnabled', arguments, 0)
    return this.#enabled
  }

  /** PyTorch's `get_growth_factor`. */
  getGrowthFactor(): number {
    checkMethod(this, 'getGrowthFactor', arguments, 0)
    return this.#growthFactor
  }

  /** PyTorch's `set_growth_factor`. */
  setGrowthFactor(growthFactor: number): void {
    checkMethod(this, 'setGrowthFactor', arguments, 1)
    checkFactors(`${this.#name}.setGrowthFactor`, { growthFactor })
    this.#growthFactor = growthFactor
  }

  /** PyTorch's `get_backoff_factor`. */
  getBackoffFactor(): number {
    checkMethod(this, 'getBackoffFactor', arguments, 0)
    return this.#backoffFactor
  }

  /** PyTorch's `set_backoff_factor`. */
  setBackoffFactor(backoffFactor: number): void {
    checkMethod(this, 'setBackoffFactor', arguments, 1)
    checkFactors(`${this.#name}.setBackoffFactor`, { backoffFactor })
    this.#backoffFactor = backoffFactor
  }

  /** PyTorch's `get_growth_interval`. */
  getGrowthInterval(): number {
    checkMethod(this, 'getGrowthInterval', arguments, 0)
    return this.#growthInterval
  }

  /** PyTorch's `set_growth_interval`. */
  setGrowthInterval(growthInterval: number): void {
    checkMethod(this, 'setGrowthInterval', arguments, 1)
    checkFactors(`${this.#name}.setGrowthInterval`, { growthInterval })
    this.#growthInterval = growthInterval
  }

  /** What it continues from; empty if it is not enabled. */
  stateDict(): GradScalerState | Record<string, never> {
    checkMethod(this, 'stateDict', arguments, 0)
    if (!this.#enabled) return {}
    return {
      scale: this.#scale,
      growthFactor: this.#growthFactor,
      backoffFactor: this.#backoffFactor,
      growthInterval: this.#growthInterval,
      growthTracker: this.#tracker,
    }
  }

  /** Continues where another scaler was; does nothing if it is not enabled. Throws ArgumentError for the state of one that was not. */
  loadStateDict(state: GradScalerState | Record<string, never>): void {
    checkMethod(this, 'loadStateDict', arguments, 1)
    if (!this.#enabled) return
    const where = `${this.#name}.loadStateDict`
    if (isPlainObject(state) && Object.keys(state).length === 0)
      throw new ArgumentError(`${where}: the source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.`)
    const read = decode(where, STATE, state, 'the state')
    const { scale, growthTracker } = read
    if (!(scale > 0 && Number.isFinite(scale))) throw new ArgumentError(`${where}: scale must be a positive number, got ${scale}.`)
    const { growthFactor = this.#growthFactor, backoffFactor = this.#backoffFactor, growthInterval = this.#growthInterval } = read
    checkFactors(where, { growthFactor, backoffFactor, growthInterval })
    this.#scale = scale
    this.#tracker = growthTracker
    this.#growthFactor = growthFactor
    this.#backoffFactor = backoffFactor
    this.#growthInterval = growthInterval
    this.#isInUse = true
  }
}

/** Throws ArgumentError for factors out of range. */
function checkFactors(
  where: string,
  given: { readonly growthFactor?: number; readonly backoffFactor?: number; readonly growthInterval?: number },
): void {
  const { growthFactor = 2, backoffFactor = 0.5, growthInterval = 1 } = given
  if (!(growthFactor > 1)) throw new ArgumentError(`${where}: growthFactor must be above 1, got ${valueText(growthFactor)}.`)
  if (!(backoffFactor > 0 && backoffFactor < 1))
    throw new ArgumentError(`${where}: backoffFactor must be between 0 and 1, got ${valueText(backoffFactor)}.`)
  if (!(growthInterval >= 1)) throw new ArgumentError(`${where}: growthInterval must be at least 1, got ${valueText(growthInterval)}.`)
}
