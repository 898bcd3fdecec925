// Pools that take the p-norm of each window.
import type { Tensor } from '../../tensor/index.ts'
import { checkCount, py } from '../../protocol/index.ts'
import { lpPool1d, lpPool2d, lpPool3d } from '../functional.ts'
import type { Named, Trailing } from '../options.ts'
import { WindowLayer } from './pool.ts'
import type { WindowSizes } from './pool.ts'
import { readRequired } from '../options.ts'

/** Options of the power-average pools. */
export interface LPPoolOptions {
  /** The kernel size by default. */
  readonly stride?: WindowSizes | null
  readonly ceilMode?: boolean
}

type LPPoolArguments = Trailing<[stride: WindowSizes | null, ceilMode: boolean], LPPoolOptions>

abstract class LPPoolLayer extends WindowLayer {
  readonly normType: number
  declare readonly ceilMode: boolean

  constructor(where: string, spatial: number, normType: number, kernelSize: WindowSizes, given: readonly unknown[]) {
    super(where, spatial, kernelSize, { stride: null, ceilMode: false }, given)
    this.normType = normType
  }

  protected pool(input: Tensor, fn: typeof lpPool1d): Tensor {
    return fn(input, this.normType, this.kernelSize, this.stride, this.ceilMode)
  }

  override extraRepr(): string {
    return `norm_type=${this.normType}, kernel_size=${py(this.kernelSize)}, stride=${py(this.stride)}, ceil_mode=${py(this.ceilMode)}`
  }
}

/** The p-norm of windows of [N, C, L], p being `normType`. PyTorch's `nn.LPPool1d`. */
export class LPPool1d extends LPPoolLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(normType: number, kernelSize: WindowSizes, ...options: LPPoolArguments)
  constructor(...args: Named<[['normType', number], ['kernelSize', WindowSizes]], LPPoolArguments>)
  constructor(...args: readonly unknown[]) {
    const [normType, kernelSize, ...options] = readRequired<[normType: number, kernelSize: WindowSizes]>(
      'nn.LPPool1d',
      ['normType', 'kernelSize'],
      args,
    )
    super('nn.LPPool1d', 1, normType, kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return this.pool(input, lpPool1d)
  }
}

/** The p-norm of windows of [N, C, H, W], p being `normType`. PyTorch's `nn.LPPool2d`. */
export class LPPool2d extends LPPoolLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(normType: number, kernelSize: WindowSizes, ...options: LPPoolArguments)
  constructor(...args: Named<[['normType', number], ['kernelSize', WindowSizes]], LPPoolArguments>)
  constructor(...args: readonly unknown[]) {
    const [normType, kernelSize, ...options] = readRequired<[normType: number, kernelSize: WindowSizes]>(
      'nn.LPPool2d',
      ['normType', 'kernelSize'],
      args,
    )
    super('nn.LPPool2d', 2, normType, kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return this.pool(input, lpPool2d)
  }
}

/** The p-norm of windows of [N, C, D, H, W], p being `normType`. PyTorch's `nn.LPPool3d`. */
export class LPPool3d extends LPPoolLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(normType: number, kernelSize: WindowSizes, ...options: LPPoolArguments)
  constructor(...args: Named<[['normType', number], ['kernelSize', WindowSizes]], LPPoolArguments>)
  constructor(...args: readonly unknown[]) {
    const [normType, kernelSize, ...options] = readRequired<[normType: number, kernelSize: WindowSizes]>(
      'nn.LPPool3d',
      ['normType', 'kernelSize'],
      args,
    )
    super('nn.LPPool3d', 3, normType, kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return this.pool(input, lpPool3d)
  }
}
