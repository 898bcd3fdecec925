// Adam and AdamW.
import { checkCount } from '../protocol/index.ts'
import { withChangingNumbers } from '../dispatch/index.ts'
import { add, addcdiv_, addcmul_, copy_, div, lerp_, maximum, mul_, sqrt } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { Optimizer, descent, stateZeros } from './optimizer.ts'
import type { BaseOptions, ParamGroup, Params } from './optimizer.ts'
import type { ParamState } from './stateDict.ts'

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
  /** Shrink the parameter itself instead of adding the decay to the gradient; default false for Adam, true for AdamW. */
  readonly decoupledWeightDecay?: boolean
  /** Maximize instead of minimize. */
  readonly maximize?: boolean
}

type AdamDecay = Required<Pick<AdamOptions, 'weightDecay' | 'decoupledWeightDecay'>>

interface AdamState extends ParamState {
  step: number
  expAvg: Tensor
  expAvgSq: Tensor
  /** With amsgrad, from the first step on. */
  maxExpAvgSq?: Tensor
}

/** What Adam and AdamW share: they differ in where the weight decay goes, by default. */
abstract class AdamBase extends Optimizer<AdamOptions> {
  constructor(className: string, decay: AdamDecay, params: Params<AdamOptions>, options: AdamOptions | undefined) {
    super(className, params, { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8, ...decay, amsgrad: false, maximize: false }, options)
  }

  protected override checkGroup({ lr, betas, eps, weightDecay }: Required<AdamOptions>): void {
    this.checkAtLeast0({ lr, eps, weightDecay })
    this.checkBetas(betas)
  }

  protected override newState(parameter: Tensor): AdamState {
    return { step: 0, expAvg: stateZeros(parameter), expAvgSq: stateZeros(parameter) }
  }

  protected override update(parameter: Tensor, grad: Tensor, group: ParamGroup<AdamOptions>): void {
    const { lr, betas, eps, amsgrad } = group
    const [beta1, beta2] = betas
    const state = this.stateOf<AdamState>(parameter, group)
    const step = ++state.step
    const direction = descent(parameter, grad, group)
    const { expAvg, expAvgSq } = state
    // OneCycleLR and CyclicLR change the first of the betas too.
    withChangingNumbers(() => lerp_(expAvg, direction, 1 - beta1))
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
  constructor(params: Params<AdamOptions>, options?: AdamOptions) {
    checkCount('optim.Adam', arguments, 2)
    super('Adam', { weightDecay: 0, decoupledWeightDecay: false }, params, options)
  }
}

/** Adam with decoupled weight decay. PyTorch's `torch.optim.AdamW`. */
export class AdamW extends AdamBase {
  constructor(params: Params<AdamOptions>, options?: AdamOptions) {
    checkCount('optim.AdamW', arguments, 2)
    super('AdamW', { weightDecay: 0.01, decoupledWeightDecay: true }, params, options)
  }
}
