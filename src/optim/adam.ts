// Adam and AdamW. The step count is a plain number: the bias corrections that follow from it change at each call, and compile makes them inputs.
import { ArgumentError } from '../errors/index.ts'
import { maximum } from '../ops/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { Optimizer, freshZeros } from './optimizer.ts'
import type { ParamGroup, ResolvedGroup } from './optimizer.ts'

export interface AdamOptions {
  readonly lr: number
  readonly betas: readonly [number, number]
  readonly eps: number
  readonly weightDecay: number
  readonly amsgrad: boolean
}

interface State {
  step: number
  readonly expAvg: Tensor
  readonly expAvgSq: Tensor
  readonly maxExpAvgSq: Tensor | null
}

abstract class AdamBase extends Optimizer<AdamOptions, State> {
  readonly #decoupled: boolean

  constructor(name: string, params: Iterable<TensorLike> | readonly ParamGroup<AdamOptions>[], options: Partial<AdamOptions>, weightDecay: number, decoupled: boolean) {
    const known: AdamOptions = { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay, amsgrad: false }
    for (const key of Object.keys(options)) if (!(key in known)) throw new ArgumentError(`optim.${name}: unknown option '${key}'; known are ${Object.keys(known).join(', ')}.`)
    super(name, params, { ...known, ...options })
    this.#decoupled = decoupled
  }

  protected initialState(param: Tensor, group: ResolvedGroup<AdamOptions>): State {
    return { step: 0, expAvg: freshZeros(param), expAvgSq: freshZeros(param), maxExpAvgSq: group.amsgrad ? freshZeros(param) : null }
  }

  protected update(param: Tensor, gradient: Tensor, group: ResolvedGroup<AdamOptions>, state: State): void {
    const [beta1, beta2] = group.betas
    state.step++
    let grad = gradient
    if (group.weightDecay !== 0) {
      if (this.#decoupled) param.mul_(1 - group.lr * group.weightDecay)
      else grad = gradient.add(param, { alpha: group.weightDecay })
    }
    state.expAvg.lerp_(grad, 1 - beta1)
    state.expAvgSq.mul_(beta2).addcmul_(grad, grad, { value: 1 - beta2 })
    let second = state.expAvgSq
    if (state.maxExpAvgSq !== null) {
      state.maxExpAvgSq.copy_(maximum(state.maxExpAvgSq, state.expAvgSq))
      second = state.maxExpAvgSq
    }
    const stepSize = group.lr / (1 - beta1 ** state.step)
    const denominator = second.sqrt().div(Math.sqrt(1 - beta2 ** state.step)).add(group.eps)
    param.addcdiv_(state.expAvg, denominator, { value: -stepSize })
  }
}

/** Adam; weight decay is added to the gradient. PyTorch's torch.optim.Adam. */
export class Adam extends AdamBase {
  constructor(params: Iterable<TensorLike> | readonly ParamGroup<AdamOptions>[], options: Partial<AdamOptions> = {}) {
    super('Adam', params, options, 0, false)
  }
}

/** Adam with decoupled weight decay (0.01 by default). PyTorch's torch.optim.AdamW. */
export class AdamW extends AdamBase {
  constructor(params: Iterable<TensorLike> | readonly ParamGroup<AdamOptions>[], options: Partial<AdamOptions> = {}) {
    super('AdamW', params, options, 0.01, true)
  }
}
