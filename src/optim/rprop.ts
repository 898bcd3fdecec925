// Rprop and ASGD: steps of a size of their own for each element, and steps whose mean is what one wants.
import { withChangingNumbers } from '../dispatch/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { add_, addcmul_, clamp, copy_, fullLike, gt, lerp_, lt, maskedFill, mul, mul_, neg, sign, where } from '../ops/index.ts'
import { checkCount, valueText } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { Optimizer, descent, stateZeros } from './optimizer.ts'
import type { BaseOptions, DecayOptions, ParamGroup, Params } from './optimizer.ts'
import type { ParamState } from './stateDict.ts'

/** Options of {@link Rprop}. */
export interface RpropOptions extends BaseOptions {
  /** By how much a step shrinks when the gradient changes its sign, and grows when it does not; default [0.5, 1.2]. */
  readonly etas?: readonly [number, number]
  /** The smallest and the greatest step; default [1e-6, 50]. */
  readonly stepSizes?: readonly [number, number]
  readonly maximize?: boolean
}

interface RpropState extends ParamState {
  step: number
  prev: Tensor
  stepSize: Tensor
}

/** Steps by the signs of the gradient alone, for batches of all data. PyTorch's `torch.optim.Rprop`. */
export class Rprop extends Optimizer<RpropOptions> {
  constructor(params: Params<RpropOptions>, options?: RpropOptions) {
    checkCount('optim.Rprop', arguments, 2)
    super('Rprop', params, { lr: 1e-2, etas: [0.5, 1.2], stepSizes: [1e-6, 50], maximize: false }, options)
  }

  protected override checkGroup({ lr, etas, stepSizes }: Required<RpropOptions>): void {
    this.checkAtLeast0({ lr })
    const [less, more] = etas
    if (!(less > 0 && less < 1 && more > 1))
      throw new ArgumentError(`optim.Rprop: option 'etas' must be a number between 0 and 1 and one above 1, got ${valueText(etas)}.`)
    if (stepSizes.length !== 2 || !(stepSizes[0] <= stepSizes[1]))
      throw new ArgumentError(`optim.Rprop: option 'stepSizes' must be the smallest and the greatest step, got ${valueText(stepSizes)}.`)
  }

  protected override newState(parameter: Tensor, { lr }: ParamGroup<RpropOptions>): RpropState {
    return { step: 0, prev: stateZeros(parameter), stepSize: fullLike(parameter, lr) }
  }

  protected override update(parameter: Tensor, grad: Tensor, group: ParamGroup<RpropOptions>): void {
    const [less, more] = group.etas
    const [smallest, greatest] = group.stepSizes
    const g = group.maximize ? neg(grad) : grad
    const state = this.stateOf<RpropState>(parameter, group)
    state.step++
    const same = mul(g, state.prev)
    const changed = lt(same, 0)
    const factor = where(changed, less, where(gt(same, 0), more, 1))
    copy_(state.stepSize, clamp(mul(state.stepSize, factor), smallest, greatest))
    // Where the sign has changed, the last step went too far: this one is left out.
    const next = maskedFill(g, changed, 0)
    addcmul_(parameter, sign(next), state.stepSize, { value: -1 })
    copy_(state.prev, next)
  }
}

/** Options of {@link ASGD}. */
export interface ASGDOptions extends DecayOptions {
  /** How much the parameters shrink at each step; default 1e-4. */
  readonly lambd?: number
  /** The power with which the rate falls; default 0.75. */
  readonly alpha?: number
  /** The step at which averaging starts; default 1e6. */
  readonly t0?: number
}

interface ASGDState extends ParamState {
  step: number
  eta: number
  mu: number
  ax: Tensor
}

/** Gradient descent that also keeps the mean of the parameters, in the state `ax`. PyTorch's `torch.optim.ASGD`. */
export class ASGD extends Optimizer<ASGDOptions> {
  constructor(params: Params<ASGDOptions>, options?: ASGDOptions) {
    checkCount('optim.ASGD', arguments, 2)
    const defaults = { lr: 1e-2, lambd: 1e-4, alpha: 0.75, t0: 1e6, weightDecay: 0, maximize: false }
    super('ASGD', params, defaults, options)
  }

  protected override checkGroup({ lr, weightDecay }: Required<ASGDOptions>): void {
    this.checkAtLeast0({ lr, weightDecay })
  }

  protected override newState(parameter: Tensor, { lr }: ParamGroup<ASGDOptions>): ASGDState {
    return { step: 0, eta: lr, mu: 1, ax: stateZeros(parameter) }
  }

  protected override update(parameter: Tensor, grad: Tensor, group: ParamGroup<ASGDOptions>): void {
    const { lr, lambd, alpha, t0 } = group
    const g = descent(parameter, grad, group)
    const state = this.stateOf<ASGDState>(parameter, group)
    const { eta, mu, ax } = state
    const step = ++state.step
    withChangingNumbers(() => {
      mul_(parameter, 1 - lambd * eta)
      add_(parameter, g, { alpha: -eta })
      lerp_(ax, parameter, mu)
    })
    state.eta = lr / (1 + lambd * lr * step) ** alpha
    state.mu = 1 / Math.max(1, step - t0)
  }
}
