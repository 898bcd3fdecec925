// What maximum pools took away, put back in place.
import { checkCount } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { maxUnpool1d, maxUnpool2d, maxUnpool3d } from '../functional.ts'
import { readOutputSize, readRequired } from '../options.ts'
import type { Named, OutputSize, Trailing } from '../options.ts'
import { WindowLayer } from './pool.ts'
import type { WindowSizes } from './pool.ts'

/** Options of the unpooling layers. */
export interface MaxUnpoolOptions {
  /** The kernel size by default. */
  readonly stride?: WindowSizes | null
  readonly padding?: WindowSizes
}

type UnpoolArguments = Trailing<[stride: WindowSizes | null, padding: WindowSizes], MaxUnpoolOptions>

abstract class MaxUnpoolLayer extends WindowLayer {
  constructor(where: string, spatial: number, kernelSize: WindowSizes, given: readonly unknown[]) {
    super(where, spatial, kernelSize, { stride: null, padding: 0 }, given)
  }

  protected unpool(fn: typeof maxUnpool1d, input: Tensor, indices: Tensor, given: OutputSize): Tensor {
    const outputSize = readOutputSize(`nn.${this.getName()}`, given)
    return fn(input, indices, this.kernelSize, { stride: this.stride, padding: this.padding, outputSize })
  }
}

/** Puts values back to the positions that a maximum pool gave; zeros elsewhere. `outputSize` is that of the pool's input. PyTorch's `nn.MaxUnpool1d`. */
export class MaxUnpool1d extends MaxUnpoolLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(kernelSize: WindowSizes, ...options: UnpoolArguments)
  constructor(...args: Named<[['kernelSize', WindowSizes]], UnpoolArguments>)
  constructor(...args: readonly unknown[]) {
    const [kernelSize, ...options] = readRequired<[kernelSize: WindowSizes]>('nn.MaxUnpool1d', ['kernelSize'], args)
    super('nn.MaxUnpool1d', 1, kernelSize, options)
  }

  override forward(input: Tensor, indices: Tensor, outputSize: OutputSize = null): Tensor {
    checkCount(this, arguments, 3)
    return this.unpool(maxUnpool1d, input, indices, outputSize)
  }
}

/** Puts values back to the positions that a maximum pool gave; zeros elsewhere. `outputSize` is that of the pool's input. PyTorch's `nn.MaxUnpool2d`. */
export class MaxUnpool2d extends MaxUnpoolLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(kernelSize: WindowSizes, ...options: UnpoolArguments)
  constructor(...args: Named<[['kernelSize', WindowSizes]], UnpoolArguments>)
  constructor(...args: readonly unknown[]) {
    const [kernelSize, ...options] = readRequired<[kernelSize: WindowSizes]>('nn.MaxUnpool2d', ['kernelSize'], args)
    super('nn.MaxUnpool2d', 2, kernelSize, options)
  }

  override forward(input: Tensor, indices: Tensor, outputSize: OutputSize = null): Tensor {
    checkCount(this, arguments, 3)
    return this.unpool(maxUnpool2d, input, indices, outputSize)
  }
}

/** Puts values back to the positions that a maximum pool gave; zeros elsewhere. `outputSize` is that of the pool's input. PyTorch's `nn.MaxUnpool3d`. */
export class MaxUnpool3d extends MaxUnpoolLayer {
  /** @internal */
  static readonly isLibraryLayer: boolean = true

  constructor(kernelSize: WindowSizes, ...options: UnpoolArguments)
  constructor(...args: Named<[['kernelSize', WindowSizes]], UnpoolArguments>)
  constructor(...args: readonly unknown[]) {
    const [kernelSize, ...options] = readRequired<[kernelSize: WindowSizes]>('nn.MaxUnpool3d', ['kernelSize'], args)
    super('nn.MaxUnpool3d', 3, kernelSize, options)
  }

  override forward(input: Tensor, indices: Tensor, outputSize: OutputSize = null): Tensor {
    checkCount(this, arguments, 3)
    return this.unpool(maxUnpool3d, input, indices, outputSize)
  }
}
