// Muon: momentum whose matrix is made orthogonal.
import { withChangingNumbers } from '../dispatch/index.ts'
import { ArgumentError, ShapeError } from '../errors/index.ts'
import { add_, addmm, clamp, div, lerp, lerp_, mm, mul_, norm, t, to } from '../ops/index.ts'
import { checkCount, valueText } from '../protocol/index.ts'
import { formatShape } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { Optimizer, stateZeros } from './optimizer.ts'
import type { BaseOptions, ParamGroup, Params } from './optimizer.ts'
import type { ParamState } from './stateDict.ts'

/** Options of {@link Muon}. */
export interface MuonOptions extends BaseOptions {
  /** Default 1e-3. */
  readonly lr?: number
  /** Decoupled; default 0.1. */
  readonly weightDecay?: number
  /** Default 0.95. */
  readonly momentum?: number
  /** Nesterov's momentum; default true. */
  readonly nesterov?: boolean
  /** Coefficients of the polynomial of Newton and Schulz; default [3.4445, -4.775, 2.0315]. */
  readonly nsCoefficients?: readonly number[]
  /** Added where a norm divides; default 1e-7. */
  readonly eps?: number
  /** Steps of Newton and Schulz; default 5, fewer than 100. */
  readonly nsSteps?: number
  /** How the rate follows the shape: by the rows for each column ('original', as null), or so that the size of the updates is AdamW's. */
  readonly adjustLrFn?: 'original' | 'match_rms_adamw' | null
}

interface MuonState extends ParamState {
  momentumBuffer: Tensor
}

/** The values in bfloat16, in which PyTorch computes the iteration. */
const rounded = (x: Tensor): Tensor => to(to(x, 'bfloat16'), 'float32')

/** A matrix with the singular vectors of `update`, whose singular values are near 1: the iteration of Newton and Schulz. */
function orthogonal(update: Tensor, { nsCoefficients, nsSteps, eps }: Required<MuonOptions>): Tensor {
  const [a = 0, b = 0, c = 0] = nsCoefficients
  const [rows = 0, columns = 0] = update.shape
  const turned = (x: Tensor): Tensor => (rows > columns ? t(x) : x)
  let x = turned(rounded(update))
  x = rounded(div(x, clamp(rounded(norm(x)), eps)))
  for (let step = 0; step < nsSteps; step++) {
    const gram = rounded(mm(x, t(x)))
    x = rounded(addmm(x, rounded(addmm(gram, gram, gram, { beta: b, alpha: c })), x, { beta: a }))
  }
  return turned(x)
}

/** Momentum for weight matrices, made orthogonal before each step; other parameters need another optimizer. PyTorch's `torch.optim.Muon`. */
export class Muon extends Optimizer<MuonOptions> {
  constructor(params: Params<MuonOptions>, options?: MuonOptions) {
    checkCount('optim.Muon', arguments, 2)
    const defaults = { lr: 1e-3, weightDecay: 0.1, momentum: 0.95, nesterov: true, nsCoefficients: [3.4445, -4.775, 2.0315] }
    super('Muon', params, { ...defaults, eps: 1e-7, nsSteps: 5, adjustLrFn: null }, options)
    for (const group of this.paramGroups) for (const parameter of group.params) this.newState(parameter)
  }

  protected override checkGroup({ lr, momentum, weightDecay, nsCoefficients, nsSteps, adjustLrFn }: Required<MuonOptions>): void {
    this.checkAtLeast0({ lr, momentum, weightDecay })
    this.checkOption('nsSteps', nsSteps, 'an integer from 0 to 99', Number.isInteger(nsSteps) && nsSteps >= 0 && nsSteps < 100)
    if (nsCoefficients.length !== 3)
      throw new ArgumentError(`optim.Muon: option 'nsCoefficients' must be three numbers, got ${valueText(nsCoefficients)}.`)
    if (adjustLrFn !== null && adjustLrFn !== 'original' && adjustLrFn !== 'match_rms_adamw')
      throw new ArgumentError(`optim.Muon: option 'adjustLrFn' must be 'original', 'match_rms_adamw' or null, got ${valueText(adjustLrFn)}.`)
  }

  protected override newState(parameter: Tensor): MuonState {
    if (parameter.ndim !== 2)
      throw new ShapeError(
        `optim.Muon: all parameters must be matrices (2 dimensions), got shape ${formatShape(parameter.shape)}. Give the others to another optimizer, such as AdamW.`,
      )
    return { momentumBuffer: stateZeros(parameter) }
  }

  protected override update(parameter: Tensor, grad: Tensor, group: ParamGroup<MuonOptions>): void {
    const { lr, momentum, nesterov, weightDecay, adjustLrFn } = group
    const { momentumBuffer } = this.stateOf<MuonState>(parameter, group)
    lerp_(momentumBuffer, grad, 1 - momentum)
    const direction = orthogonal(nesterov ? lerp(grad, momentumBuffer, momentum) : momentumBuffer, group)
    const [rows = 0, columns = 0] = parameter.shape
    const scale = adjustLrFn === 'match_rms_adamw' ? 0.2 * Math.sqrt(Math.max(rows, columns)) : Math.sqrt(Math.max(1, rows / columns))
    withChangingNumbers(() => {
      mul_(parameter, 1 - lr * weightDecay)
      add_(parameter, direction, { alpha: -lr * scale })
    })
  }
}
