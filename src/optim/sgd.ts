// Stochastic gradient descent.
import { ArgumentError } from '../errors/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { Optimizer, freshZeros } from './optimizer.ts'
import type { ParamGroup, ResolvedGroup } from './optimizer.ts'

export interface SGDOptions {
  readonly lr: number
  readonly momentum: number
  readonly dampening: number
  readonly weightDecay: number
  readonly nesterov: boolean
}

interface State {
  momentumBuffer: Tensor | null
}

/** PyTorch's torch.optim.SGD. */
export class SGD extends Optimizer<SGDOptions, State> {
  constructor(params: Iterable<TensorLike> | readonly ParamGroup<SGDOptions>[], options: Partial<SGDOptions> = {}) {
    const known: SGDOptions = { lr: 1e-3, momentum: 0, dampening: 0, weightDecay: 0, nesterov: false }
    for (const key of Object.keys(options)) if (!(key in known)) throw new ArgumentError(`optim.SGD: unknown option '${key}'; known are ${Object.keys(known).join(', ')}.`)
    const defaults = { ...known, ...options }
    if (defaults.nesterov && (defaults.momentum <= 0 || defaults.dampening !== 0)) throw new ArgumentError('optim.SGD: nesterov needs a momentum and zero dampening.')
    super('SGD', params, defaults)
  }

  protected initialState(): State {
    return { momentumBuffer: null }
  }

  protected update(param: Tensor, gradient: Tensor, group: ResolvedGroup<SGDOptions>, state: State): void {
    let grad = group.weightDecay === 0 ? gradient : gradient.add(param, { alpha: group.weightDecay })
    if (group.momentum !== 0) {
      if (state.momentumBuffer === null) {
        state.momentumBuffer = freshZeros(param)
        state.momentumBuffer.copy_(grad)
      } else state.momentumBuffer.mul_(group.momentum).add_(grad, { alpha: 1 - group.dampening })
      grad = group.nesterov ? grad.add(state.momentumBuffer, { alpha: group.momentum }) : state.momentumBuffer
    }
    param.add_(grad, { alpha: -group.lr })
  }
}

