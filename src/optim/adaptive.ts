// Optimizers that adapt the step to the size of past gradients: RMSprop, Adagrad, Adadelta, Adamax.
import { checkCount } from '../protocol/index.ts'
import { withChangingNumbers } from '../dispatch/index.ts'
import { abs, add, add_, addcdiv_, addcmul_, copy_, div, fullLike, lerp_, maximum, mul, mul_, sqrt, square, sub } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { Optimizer, descent, stateZeros } from './optimizer.ts'
import type { DecayOptions, ParamGroup, Params } from './optimizer.ts'
import type { ParamState } from './stateDict.ts'

/** Options of {@link RMSprop}. */
export interface RMSpropOptions extends DecayOptions {
  /** How much of the mean of squares stays at each step; default 0.99. */
  readonly alpha?: number
  readonly eps?: number
  readonly momentum?: number
  /** Subtract the square of the mean gradient. */
  readonly centered?: boolean
}

interface RMSpropState extends ParamState {
  step: number
  squareAvg: Tensor
  /** With momentum. */
  momentumBuffer?: Tensor
  /** If centered. */
  gradAvg?: Tensor
}

/** Divides the gradient by the root of a running mean of its squares. PyTorch's `torch.optim.RMSprop`. */
export class RMSprop extends Optimizer<RMSpropOptions> {
  constructor(params: Params<RMSpropOptions>, options?: RMSpropOptions) {
    checkCount('optim.RMSprop', arguments, 2)
    super('RMSprop', params, { lr: 1e-2, alpha: 0.99, eps: 1e-8, weightDecay: 0, momentum: 0, centered: false, maximize: false }, options)
  }

  protected override checkGroup({ lr, alpha, eps, momentum, weightDecay }: Required<RMSpropOptions>): void {
    this.checkAtLeast0({ lr, alpha, eps, momentum, weightDecay })
  }

  protected override newState(parameter: Tensor): RMSpropState {
    return { step: 0, squareAvg: stateZeros(parameter) }
  }

  protected override update(parameter: Tensor, grad: Tensor, group: ParamGroup<RMSpropOptions>): void {
    const { lr, alpha, eps, momentum, centered } = group
    const g = descent(parameter, grad, group)
    const state = this.stateOf<RMSpropState>(parameter, group)
    const { squareAvg } = state
    state.step++
    addcmul_(mul_(squareAvg, alpha), g, g, { value: 1 - alpha })
    let mean = squareAvg
    if (centered) {
      const gradAvg = (state.gradAvg ??= stateZeros(parameter))
      lerp_(gradAvg, g, 1 - alpha)
      mean = sub(squareAvg, square(gradAvg))
    }
    const root = add(sqrt(mean), eps)
    if (momentum === 0) withChangingNumbers(() => addcdiv_(parameter, g, root, { value: -lr }))
    else {
      const momentumBuffer = (state.momentumBuffer ??= stateZeros(parameter))
      addcdiv_(mul_(momentumBuffer, momentum), g, root)
      withChangingNumbers(() => add_(parameter, momentumBuffer, { alpha: -lr }))
    }
  }
}

/** Options of {@link Adagrad}. */
export interface AdagradOptions extends DecayOptions {
  /** How the rate shrinks with the number of steps. */
  readonly lrDecay?: number
  /** What the sums of squares start from. */
  readonly initialAccumulatorValue?: number
  readonly eps?: number
}

interface AdagradState extends ParamState {
  step: number
  sum: Tensor
}

/** Divides the gradient by the root of the sum of its squares. PyTorch's `torch.optim.Adagrad`. */
export class Adagrad extends Optimizer<AdagradOptions> {
  constructor(params: Params<AdagradOptions>, options?: AdagradOptions) {
    checkCount('optim.Adagrad', arguments, 2)
    super('Adagrad', params, { lr: 1e-2, lrDecay: 0, weightDecay: 0, initialAccumulatorValue: 0, eps: 1e-10, maximize: false }, options)
  }

  protected override checkGroup({ lr, lrDecay, weightDecay, initialAccumulatorValue, eps }: Required<AdagradOptions>): void {
    this.checkAtLeast0({ lr, lrDecay, weightDecay, initialAccumulatorValue, eps })
  }

  protected override newState(parameter: Tensor, { initialAccumulatorValue }: ParamGroup<AdagradOptions>): AdagradState {
    return { step: 0, sum: fullLike(parameter, initialAccumulatorValue) }
  }

  protected override update(parameter: Tensor, grad: Tensor, group: ParamGroup<AdagradOptions>): void {
    const { lr, lrDecay, eps } = group
    const g = descent(parameter, grad, group)
    const state = this.stateOf<AdagradState>(parameter, group)
    const rate = lr / (1 + state.step++ * lrDecay)
    addcmul_(state.sum, g, g)
    const root = add(sqrt(state.sum), eps)
    withChangingNumbers(() => addcdiv_(parameter, g, root, { value: -rate }))
  }
}

/** Options of {@link Adadelta}. */
export interface AdadeltaOptions extends DecayOptions {
  /** How much of the running means stays at each step; default 0.9. */
  readonly rho?: number
  readonly eps?: number
}

interface AdadeltaState extends ParamState {
  step: number
  squareAvg: Tensor
  accDelta: Tensor
}

/** Steps in the units of past steps. PyTorch's `torch.optim.Adadelta`. */
export class Adadelta extends Optimizer<AdadeltaOptions> {
  constructor(params: Params<AdadeltaOptions>, options?: AdadeltaOptions) {
    checkCount('optim.Adadelta', arguments, 2)
    super('Adadelta', params, { lr: 1, rho: 0.9, eps: 1e-6, weightDecay: 0, maximize: false }, options)
  }

  protected override checkGroup({ lr, rho, eps, weightDecay }: Required<AdadeltaOptions>): void {
    this.checkAtLeast0({ lr, eps, weightDecay })
    this.checkOption('rho', rho, 'between 0 and 1', rho >= 0 && rho <= 1)
  }

  protected override newState(parameter: Tensor): AdadeltaState {
    return { step: 0, squareAvg: stateZeros(parameter), accDelta: stateZeros(parameter) }
  }

  protected override update(parameter: Tensor, grad: Tensor, group: ParamGroup<AdadeltaOptions>): void {
    const { lr, rho, eps } = group
    const g = descent(parameter, grad, group)
    const state = this.stateOf<AdadeltaState>(parameter, group)
    const { squareAvg, accDelta } = state
    state.step++
    addcmul_(mul_(squareAvg, rho), g, g, { value: 1 - rho })
    const delta = mul(div(sqrt(add(accDelta, eps)), sqrt(add(squareAvg, eps))), g)
    addcmul_(mul_(accDelta, rho), delta, delta, { value: 1 - rho })
    withChangingNumbers(() => add_(parameter, delta, { alpha: -lr }))
  }
}

/** Options of {@link Adamax}. */
export interface AdamaxOptions extends DecayOptions {
  /** How much of the means of gradients and of the greatest sizes stays at each step; default [0.9, 0.999]. */
  readonly betas?: readonly [number, number]
  readonly eps?: number
}

interface AdamaxState extends ParamState {
  step: number
  expAvg: Tensor
  expInf: Tensor
}

/** Adam with the greatest size of past gradients in place of the root of their mean square. PyTorch's `torch.optim.Adamax`. */
export class Adamax extends Optimizer<AdamaxOptions> {
  constructor(params: Params<AdamaxOptions>, options?: AdamaxOptions) {
    checkCount('optim.Adamax', arguments, 2)
    super('Adamax', params, { lr: 2e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0, maximize: false }, options)
  }

  protected override checkGroup({ lr, betas, eps, weightDecay }: Required<AdamaxOptions>): void {
    this.checkAtLeast0({ lr, eps, weightDecay })
    this.checkBetas(betas)
  }

  protected override newState(parameter: Tensor): AdamaxState {
    return { step: 0, expAvg: stateZeros(parameter), expInf: stateZeros(parameter) }
  }

  protected override update(parameter: Tensor, grad: Tensor, group: ParamGroup<AdamaxOptions>): void {
    const { lr, betas, eps } = group
    const [beta1, beta2] = betas
    const g = descent(parameter, grad, group)
    const state = this.stateOf<AdamaxState>(parameter, group)
    const step = ++state.step
    lerp_(state.expAvg, g, 1 - beta1)
    copy_(state.expInf, maximum(mul(state.expInf, beta2), add(abs(g), eps)))
    withChangingNumbers(() => addcdiv_(parameter, state.expAvg, state.expInf, { value: -lr / (1 - beta1 ** step) }))
  }
}
