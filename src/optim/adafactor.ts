// Adafactor: the averages of squares of a matrix are kept by row and by column only.
import { withChangingNumbers, withoutModes } from '../dispatch/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { clamp, div, lerp_, matmul, mean, mul, mul_, neg, norm, rsqrt, square, sub_, zeros } from '../ops/index.ts'
import { checkCount, valueText } from '../protocol/index.ts'
import { finfo } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { Optimizer } from './optimizer.ts'
import type { BaseOptions, ParamGroup, Params } from './optimizer.ts'
import type { ParamState } from './stateDict.ts'

/** Options of {@link Adafactor}. */
export interface AdafactorOptions extends BaseOptions {
  /** The power of the step with which the weight of a new square falls; default -0.8. */
  readonly beta2Decay?: number
  /** The least mean of squares (null: the dtype's eps), and the least size of the parameters that steps are measured by; default [null, 1e-3]. */
  readonly eps?: readonly [number | null, number]
  /** The greatest root mean square of an update; default 1. */
  readonly d?: number
  /** How much the parameters shrink at each step, as a part of the rate. */
  readonly weightDecay?: number
  readonly maximize?: boolean
}

/** The shapes of the state: of a matrix, or a stack of them, one number for each row and each column. */
function shapesOf({ shape }: Tensor): ReadonlyMap<string, readonly number[]> {
  if (shape.length <= 1) return new Map([['variance', shape]])
  return new Map([
    ['rowVar', [...shape.slice(0, -1), 1]],
    ['colVar', [...shape.slice(0, -2), 1, ...shape.slice(-1)]],
  ])
}

/** Steps in proportion to the size of the parameters, with little memory. PyTorch's `torch.optim.Adafactor`. */
export class Adafactor extends Optimizer<AdafactorOptions> {
  constructor(params: Params<AdafactorOptions>, options?: AdafactorOptions) {
    checkCount('optim.Adafactor', arguments, 2)
    super('Adafactor', params, { lr: 1e-2, beta2Decay: -0.8, eps: [null, 1e-3], d: 1, weightDecay: 0, maximize: false }, options)
  }

  protected override checkGroup({ lr, beta2Decay, eps, d, weightDecay }: Required<AdafactorOptions>): void {
    this.checkAtLeast0({ lr, weightDecay })
    this.checkOption('beta2Decay', beta2Decay, 'at most 0', beta2Decay <= 0)
    this.checkOption('d', d, 'at least 1', d >= 1)
    if (eps.length !== 2 || (eps[0] !== null && !(eps[0] >= 0)) || !(eps[1] >= 0))
      throw new ArgumentError(
        `optim.Adafactor: option 'eps' must be two numbers of at least 0, of which the first may be null, got ${valueText(eps)}.`,
      )
  }

  protected override shapeOfState(name: string, parameter: Tensor): readonly number[] {
    return shapesOf(parameter).get(name) ?? []
  }

  protected override newState(parameter: Tensor): ParamState {
    return {
      step: 0,
      ...Object.fromEntries(
        [...shapesOf(parameter)].map(([name, shape]) => [
          name,
          withoutModes(() => zeros(shape, { dtype: parameter.dtype, device: parameter.device })),
        ]),
      ),
    }
  }

  protected override update(parameter: Tensor, grad: Tensor, group: ParamGroup<AdafactorOptions>): void {
    const { lr, beta2Decay, d, weightDecay } = group
    const [eps1, eps2] = [group.eps[0] ?? finfo(parameter.dtype).eps, group.eps[1]]
    const g = group.maximize ? neg(grad) : grad
    const state = this.stateOf<ParamState & { step?: number }>(parameter, group)
    const step = (state.step ?? 0) + 1
    state.step = step
    const weight = step ** beta2Decay
    const size = (t: Tensor): Tensor => div(norm(t), Math.sqrt(t.numel))
    const scale = clamp(size(parameter), eps2)
    const rate = withChangingNumbers(() => mul(scale, Math.min(lr, 1 / Math.sqrt(step))))
    if (weightDecay !== 0) withChangingNumbers(() => mul_(parameter, 1 - lr * weightDecay))
    const follow = (name: string, value: Tensor): Tensor => {
      const average = state[name]
      return typeof average === 'object' && 'shape' in average ? withChangingNumbers(() => lerp_(average, value, weight)) : value
    }
    let squares: Tensor
    if (parameter.ndim > 1) {
      const rows = follow('rowVar', mean(square(g), -1, true))
      const columns = follow('colVar', mean(square(g), -2, true))
      squares = div(matmul(rows, columns), clamp(mean(rows, -2, true), eps1))
    } else squares = follow('variance', square(g))
    const step1 = mul(rsqrt(clamp(squares, eps1 * eps1)), g)
    sub_(parameter, mul(step1, div(rate, clamp(div(size(step1), d), 1))))
  }
}
