// Pools that take the p-norm of each window.
import type { Tensor } from '../../tensor/index.ts'
import { checkCount, py } from '../../protocol/index.ts'
import { lpPool1d, lpPool2d, lpPool3d } from '../functional.ts'
import type { Named, Trailing } from '../options.ts'
import { WindowLayer } from './pool.ts'
import type { WindowSizes } from './pool.ts'
import { readRequired } from '../options.ts'
import type { FunctionFacts } from '../layerFacts.ts'

/** Options of the power-average pools. */
export interface LPPoolOptions {
  /** The kernel size by default. */
  readonly stride?: WindowSizes | null
  readonly ceilMode?: boolean
}

type LPPoolArguments = Trailing<[stride: WindowSizes | null, ceilMode: boolean], LPPoolOptions>

abstract class LPPoolLayer extends WindowLayer {
  /** @internal */
  declare static readonly layer: FunctionFacts<typeof lpPool1d>
  /** @internal */
  declare readonly ['constructor']: typeof LPPoolLayer

  readonly normType: number
  declare readonly ceilMode: boolean

  constructor(normType: number, kernelSize: WindowSizes, ...options: LPPoolArguments)
  constructor(...args: Named<[['normType', number], ['kernelSize', WindowSizes]], LPPoolArguments>)
  constructor(...args: readonly unknown[]) {
    const names = ['normType', 'kernelSize']
    const [normType, kernelSize, ...options] = readRequired<[normType: number, kernelSize: WindowSizes]>(new.target.layer.name, names, args)
    super(kernelSize, { stride: null, ceilMode: false }, options)
    this.normType = normType
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return this.constructor.layer.fn(input, this.normType, this.kernelSize, this.stride, this.ceilMode)
  }

  override extraRepr(): string {
    return `norm_type=${this.normType}, kernel_size=${py(this.kernelSize)}, stride=${py(this.stride)}, ceil_mode=${py(this.ceilMode)}`
  }
}

/** The p-norm of windows of [N, C, L], p being `normType`. PyTorch's `nn.LPPool1d`. */
export class LPPool1d extends LPPoolLayer {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof lpPool1d> = { name: 'nn.LPPool1d', spatial: 1, fn: lpPool1d }
}

/** The p-norm of windows of [N, C, H, W], p being `normType`. PyTorch's `nn.LPPool2d`. */
export class LPPool2d extends LPPoolLayer {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof lpPool1d> = { name: 'nn.LPPool2d', spatial: 2, fn: lpPool2d }
}

/** The p-norm of windows of [N, C, D, H, W], p being `normType`. PyTorch's `nn.LPPool3d`. */
export class LPPool3d extends LPPoolLayer {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof lpPool1d> = { name: 'nn.LPPool3d', spatial: 3, fn: lpPool3d }
}
