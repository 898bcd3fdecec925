// PReLU, the activation with a parameter.
import type { DType } from '../../kernels/index.ts'
import { Module } from '../../module/index.ts'
import { full } from '../../ops/index.ts'
import { prelu } from '../functional.ts'
import { checkCount } from '../../protocol/index.ts'
import { getDefaultDtype } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { constant_ } from '../init.ts'
import { checkInteger, readOptions } from '../options.ts'
import type { Trailing } from '../options.ts'
import { Parameter } from '../parameter.ts'
import type { LayerFacts } from '../layerFacts.ts'

/** Options of {@link PReLU}. */
export interface PReLUOptions {
  /** One slope for all channels (1, the default), or one for each. */
  readonly numParameters?: number
  /** The first slope; default 0.25. */
  readonly init?: number
  readonly dtype?: DType
}

/** x where positive, else x times a learned slope. PyTorch's `nn.PReLU`. */
export class PReLU extends Module {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.PReLU' }

  readonly numParameters: number
  readonly init: number
  /** [numParameters] */
  weight: Parameter

  constructor(...options: Trailing<[numParameters: number, init: number], PReLUOptions>) {
    super()
    const defaults: Required<PReLUOptions> = { numParameters: 1, init: 0.25, dtype: getDefaultDtype() }
    const { numParameters, init, dtype } = readOptions('nn.PReLU', defaults, options)
    checkInteger('nn.PReLU', 'numParameters', numParameters)
    this.numParameters = numParameters
    this.init = init
    this.weight = new Parameter(full([numParameters], init, { dtype }))
  }

  /** All slopes as at the start. */
  resetParameters(): void {
    constant_(this.weight, this.init)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return prelu(input, this.weight)
  }

  override extraRepr(): string {
    return `num_parameters=${this.numParameters}`
  }
}
