// What maximum pools took away, put back in place.
import { checkCount } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { maxUnpool1d, maxUnpool2d, maxUnpool3d } from '../functional.ts'
import { readOutputSize, readRequired } from '../options.ts'
import type { Named, OutputSize, Trailing } from '../options.ts'
import { WindowLayer } from './pool.ts'
import type { WindowSizes } from './pool.ts'
import type { FunctionFacts } from '../layerFacts.ts'

/** Options of the unpooling layers. */
export interface MaxUnpoolOptions {
  /** The kernel size by default. */
  readonly stride?: WindowSizes | null
  readonly padding?: WindowSizes
}

type UnpoolArguments = Trailing<[stride: WindowSizes | null, padding: WindowSizes], MaxUnpoolOptions>

abstract class MaxUnpoolLayer extends WindowLayer {
  /** @internal */
  declare static readonly layer: FunctionFacts<typeof maxUnpool1d>
  /** @internal */
  declare readonly ['constructor']: typeof MaxUnpoolLayer

  constructor(kernelSize: WindowSizes, ...options: UnpoolArguments)
  constructor(...args: Named<[['kernelSize', WindowSizes]], UnpoolArguments>)
  constructor(...args: readonly unknown[]) {
    const [kernelSize, ...options] = readRequired<[kernelSize: WindowSizes]>(new.target.layer.name, ['kernelSize'], args)
    super(kernelSize, { stride: null, padding: 0 }, options)
  }

  override forward(input: Tensor, indices: Tensor, outputSize: OutputSize = null): Tensor {
    checkCount(this, arguments, 3)
    const { name, fn } = this.constructor.layer
    const { kernelSize, stride, padding } = this
    return fn(input, indices, kernelSize, { stride, padding, outputSize: readOutputSize(name, outputSize) })
  }
}

/** Puts values back to the positions that a maximum pool gave; zeros elsewhere. `outputSize` is that of the pool's input. PyTorch's `nn.MaxUnpool1d`. */
export class MaxUnpool1d extends MaxUnpoolLayer {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof maxUnpool1d> = { name: 'nn.MaxUnpool1d', spatial: 1, fn: maxUnpool1d }
}

/** Puts values back to the positions that a maximum pool gave; zeros elsewhere. `outputSize` is that of the pool's input. PyTorch's `nn.MaxUnpool2d`. */
export class MaxUnpool2d extends MaxUnpoolLayer {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof maxUnpool1d> = { name: 'nn.MaxUnpool2d', spatial: 2, fn: maxUnpool2d }
}

/** Puts values back to the positions that a maximum pool gave; zeros elsewhere. `outputSize` is that of the pool's input. PyTorch's `nn.MaxUnpool3d`. */
export class MaxUnpool3d extends MaxUnpoolLayer {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof maxUnpool1d> = { name: 'nn.MaxUnpool3d', spatial: 3, fn: maxUnpool3d }
}
