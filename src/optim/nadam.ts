// NAdam and RAdam: Adam with Nesterov's momentum, and Adam that waits until it knows the variance of the gradients.
import { checkCount } from '../protocol/index.ts'
import { withChangingNumbers } from '../dispatch/index.ts'
import { add, addcdiv_, addcmul_, add_, div, lerp_, mul_, sqrt } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { Optimizer, descent, stateZeros } from './optimizer.ts'
import type { DecayOptions, ParamGroup, Params } from './optimizer.ts'
import type { ParamState } from './stateDict.ts'

/** Options of {@link RAdam}. */
export interface RAdamOptions extends DecayOptions {
  /** Decay of the averages of the gradient and of its square; default [0.9, 0.999]. */
  readonly betas?: readonly [number, number]
  /** Added to the denominator; default 1e-8. */
  readonly eps?: number
  /** Shrink the parameter itself instead of adding the decay to the gradient. */
  readonly decoupledWeightDecay?: boolean
}

/** Options of {@link NAdam}. */
export interface NAdamOptions extends RAdamOptions {
  /** How fast the momentum approaches its full value; default 0.004. */
  readonly momentumDecay?: number
}

interface Averages extends ParamState {
  step: number
  expAvg: Tensor
  expAvgSq: Tensor
}

interface NAdamState extends Averages {
  muProduct: number
}

const averages = (parameter: Tensor): Averages => ({ step: 0, expAvg: stateZeros(parameter), expAvgSq: stateZeros(parameter) })

function follow({ expAvg, expAvgSq }: Averages, g: Tensor, [beta1, beta2]: readonly [number, number]): void {
  lerp_(expAvg, g, 1 - beta1)
  addcmul_(mul_(expAvgSq, beta2), g, g, { value: 1 - beta2 })
}

/** Adam with Nesterov's momentum. PyTorch's `torch.optim.NAdam`. */
export class NAdam extends Optimizer<NAdamOptions> {
  constructor(params: Params<NAdamOptions>, options?: NAdamOptions) {
    checkCount('optim.NAdam', arguments, 2)
    const defaults = { lr: 2e-3, eps: 1e-8, weightDecay: 0, momentumDecay: 4e-3, decoupledWeightDecay: false, maximize: false }
    super('NAdam', params, { ...defaults, betas: [0.9, 0.999] }, options)
  }

  protected override checkGroup({ lr, betas, eps, weightDecay, momentumDecay }: Required<NAdamOptions>): void {
    this.checkAtLeast0({ lr, eps, weightDecay, momentumDecay })
    this.checkBetas(betas)
  }

  protected override newState(parameter: Tensor): NAdamState {
    return { ...averages(parameter), muProduct: 1 }
  }

  protected override update(parameter: Tensor, grad: Tensor, group: ParamGroup<NAdamOptions>): void {
    const { lr, betas, eps, momentumDecay } = group
    const [beta1, beta2] = betas
    const g = descent(parameter, grad, group)
    const state = this.stateOf<NAdamState>(parameter, group)
    const step = ++state.step
    const momentumAt = (t: number): number => beta1 * (1 - 0.5 * 0.96 ** (t * momentumDecay))
    const [mu, next] = [momentumAt(step), momentumAt(step + 1)]
    const product = (state.muProduct *= mu)
    follow(state, g, betas)
    const mean = withChangingNumbers(() => div(state.expAvgSq, 1 - beta2 ** step))
    const root = add(sqrt(mean), eps)
    withChangingNumbers(() => {
      addcdiv_(parameter, g, root, { value: (-lr * (1 - mu)) / (1 - product) })
      addcdiv_(parameter, state.expAvg, root, { value: (-lr * next) / (1 - product * next) })
    })
  }
}

/** Adam whose first steps are plain momentum, until the variance of the gradients is known. PyTorch's `torch.optim.RAdam`. */
export class RAdam extends Optimizer<RAdamOptions> {
  constructor(params: Params<RAdamOptions>, options?: RAdamOptions) {
    checkCount('optim.RAdam', arguments, 2)
    const defaults = { lr: 1e-3, eps: 1e-8, weightDecay: 0, decoupledWeightDecay: false, maximize: false }
    super('RAdam', params, { ...defaults, betas: [0.9, 0.999] }, options)
  }

  protected override checkGroup({ lr, betas, eps, weightDecay }: Required<RAdamOptions>): void {
    this.checkAtLeast0({ lr, eps, weightDecay })
    this.checkBetas(betas)
  }

  protected override newState(parameter: Tensor): Averages {
    return averages(parameter)
  }

  protected override update(parameter: Tensor, grad: Tensor, group: ParamGroup<RAdamOptions>): void {
    const { lr, betas, eps } = group
    const [beta1, beta2] = betas
    const g = descent(parameter, grad, group)
    const state = this.stateOf<Averages>(parameter, group)
    const step = ++state.step
    follow(state, g, betas)
    const rate = lr / (1 - beta1 ** step)
    const correction = 1 - beta2 ** step
    // The length of the average of squares, and what it becomes in the long run.
    const longest = 2 / (1 - beta2) - 1
    const length = longest - (2 * step * beta2 ** step) / correction
    if (length <= 5) {
      withChangingNumbers(() => add_(parameter, state.expAvg, { alpha: -rate }))
      return
    }
    const rectified = Math.sqrt(((length - 4) * (length - 2) * longest) / ((longest - 4) * (longest - 2) * length))
    const root = add(sqrt(state.expAvgSq), eps)
    withChangingNumbers(() => addcdiv_(parameter, state.expAvg, root, { value: -rate * Math.sqrt(correction) * rectified }))
  }
}
