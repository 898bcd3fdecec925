// Stochastic gradient descent.
import { checkCount } from '../protocol/index.ts'
import { withChangingNumbers } from '../dispatch/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { add, add_, mul_ } from '../ops/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { Optimizer, descent, stateZeros } from './optimizer.ts'
import type { BaseOptions, ParamGroup, Params } from './optimizer.ts'
import type { ParamState } from './stateDict.ts'

/** Options of {@link SGD}. */
export interface SGDOptions extends BaseOptions {
  /** Default 1e-3. */
  readonly lr?: number
  readonly momentum?: number
  readonly dampening?: number
  readonly weightDecay?: number
  /** Nesterov's momentum; needs momentum and no dampening. */
  readonly nesterov?: boolean
  /** Maximize instead of minimize. */
  readonly maximize?: boolean
}

/** Gradient descent, with momentum if wanted. PyTorch's `torch.optim.SGD`. */
export class SGD extends Optimizer<SGDOptions> {
  protected override readonly temporaries: number = 1

  constructor(params: Params<SGDOptions>, options?: SGDOptions) {
    checkCount('optim.SGD', arguments, 2)
    super('SGD', params, { lr: 1e-3, momentum: 0, dampening: 0, weightDecay: 0, nesterov: false, maximize: false }, options)
  }

  protected override checkGroup({ lr, momentum, dampening, weightDecay, nesterov }: Required<SGDOptions>): void {
    this.checkAtLeast0({ lr, momentum, weightDecay })
    if (nesterov && (momentum <= 0 || dampening !== 0))
      throw new ArgumentError(
        `optim.SGD: option 'nesterov' needs a momentum above 0 and no dampening, got momentum ${momentum} and dampening ${dampening}.`,
      )
  }

  protected override update(parameter: Tensor, grad: Tensor, group: ParamGroup<SGDOptions>): void {
    const { lr, momentum, dampening, nesterov } = group
    let direction = descent(parameter, grad, group)
    if (momentum !== 0) {
      const state = this.stateOf<ParamState & { momentumBuffer?: Tensor }>(parameter, group)
      const first = state.momentumBuffer === undefined
      const momentumBuffer = (state.momentumBuffer ??= stateZeros(parameter))
      // OneCycleLR and CyclicLR change the momentum.
      withChangingNumbers(() => mul_(momentumBuffer, momentum))
      // The first gradient is not dampened.
      add_(momentumBuffer, direction, { alpha: first ? 1 : 1 - dampening })
      if (nesterov) direction = withChangingNumbers(() => add(direction, momentumBuffer, { alpha: momentum }))
      else direction = momentumBuffer
    }
    withChangingNumbers(() => add_(parameter, direction, { alpha: -lr }))
  }
}
