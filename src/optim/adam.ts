// Adam and AdamW.
import { withChangingNumbers } from '../dispatch/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { valueText } from '../protocol/index.ts'
import { add, addcdiv_, addcmul_, copy_, div, lerp_, maximum, mul_, neg, sqrt } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { Optimizer, stateZeros } from './optimizer.ts'
import type { BaseOptions, ParamGroup, ParamState, Params } from './optimizer.ts'

/** Options of {@link Adam} and {@link AdamW}. */
export interface AdamOptions extends BaseOptions {
  /** Default 1e-3. */
  readonly lr?: number
  /** Decay of the averages of the gradient and of its square; default [0.9, 0.999]. */
  readonly betas?: readonly [number, number]
  /** Added to the denominator; default 1e-8. */
  readonly eps?: number
  /** Default 0 for Adam, 0.01 for AdamW. */
  readonly weightDecay?: number
  /** Use the maximum of all averages of the square so far. */
  readonly amsgrad?: boolean
  /** Maximize instead of minimize. */
  readonly maximize?: boolean
}

interface AdamState extends ParamState {
  step: number
  expAvg: Tensor
  expAvgSq: Tensor
  /** With amsgrad, from the first step on. */
  maxExpAvgSq?: Tensor
}

/** What Adam and AdamW share: they differ in where the weight decay goes. */
abstract class AdamBase extends Optimizer<AdamOptions> {
  /** Shrink the parameter itself (AdamW) instead of adding to the gradient. */
  protected abstract readonly decoupled: boolean

  constructor(className: string, weightDecay: number, params: Params<AdamOptions>, options: AdamOptions | undefined) {
    super(className, params, { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay, amsgrad: false, maximize: false }, options)
  }

  protected override checkGroup({ lr, betas, eps, weightDecay }: Required<AdamOptions>): void {
    this.checkOption('lr', lr, 'at least 0', lr >= 0)
    this.checkOption('eps', eps, 'at least 0', eps >= 0)
    this.checkOption('weightDecay', weightDecay, 'at least 0', weightDecay >= 0)
    if (betas.length !== 2 || betas.some((beta) => !(typeof beta === 'number' && beta >= 0 && beta < 1)))
      throw new ArgumentError(`${this.className}: option 'betas' must be two numbers of at least 0 and below 1, got ${valueText(betas)}.`)
  }

  protected override update(parameter: Tensor, grad: Tensor, group: ParamGroup<AdamOptions>): void {
    const { lr, betas, eps, weightDecay, amsgrad, maximize } = group
    const [beta1, beta2] = betas
    const state = this.stateOf<AdamState>(parameter, () => ({ step: 0, expAvg: stateZeros(parameter), expAvgSq: stateZeros(parameter) }))
    const step = ++state.step
    let direction = maximize ? neg(grad) : grad
    if (weightDecay !== 0) {
      if (this.decoupled) withChangingNumbers(() => mul_(parameter, 1 - lr * weightDecay))
      else direction = add(direction, parameter, { alpha: weightDecay })
    }
    const { expAvg, expAvgSq } = state
    lerp_(expAvg, direction, 1 - beta1)
    addcmul_(mul_(expAvgSq, beta2), direction, direction, { value: 1 - beta2 })
    let square = expAvgSq
    if (amsgrad) {
      square = state.maxExpAvgSq ??= stateZeros(parameter)
      copy_(square, maximum(square, expAvgSq))
    }
    const root = sqrt(square)
    const denominator = add(
      withChangingNumbers(() => div(root, Math.sqrt(1 - beta2 ** step))),
      eps,
    )
    withChangingNumbers(() => addcdiv_(parameter, expAvg, denominator, { value: -lr / (1 - beta1 ** step) }))
  }
}

/** Adam; weight decay is added to the gradient. PyTorch's `torch.optim.Adam`. */
export class Adam extends AdamBase {
  protected override readonly decoupled: boolean = false

  constructor(params: Params<AdamOptions>, options?: AdamOptions) {
    super('Adam', 0, params, options)
  }
}

/** Adam with decoupled weight decay. PyTorch's `torch.optim.AdamW`. */
export class AdamW extends AdamBase {
  protected override readonly decoupled: boolean = true

  constructor(params: Params<AdamOptions>, options?: AdamOptions) {
    super('AdamW', 0.01, params, options)
  }
}
