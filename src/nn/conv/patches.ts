// The patches of images as columns, and images as sums of patches: Unfold and Fold.
import { checkCount, ownCopy, py } from '../../protocol/index.ts'
import type { Pair } from '../../ops/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { fold, unfold } from '../functional.ts'
import { OptionLayer } from '../optionLayer.ts'
import { perDimension, readRequired } from '../options.ts'
import type { Named, Trailing } from '../options.ts'
import type { LayerFacts } from '../layerFacts.ts'

/** Options of {@link Unfold} and {@link Fold}; numbers hold for both dimensions. */
export interface PatchLayerOptions {
  readonly dilation?: Pair
  readonly padding?: Pair
  readonly stride?: Pair
}

type PatchArguments = Trailing<[dilation: Pair, padding: Pair, stride: Pair], PatchLayerOptions>

/** What Unfold and Fold share. */
abstract class PatchLayer extends OptionLayer {
  readonly kernelSize: Pair
  declare readonly dilation: Pair
  declare readonly padding: Pair
  declare readonly stride: Pair

  constructor(kernelSize: Pair, given: readonly unknown[]) {
    const where = new.target.layer.name
    super({ dilation: 1, padding: 0, stride: 1 }, given, ['dilation', 'padding', 'stride'])
    this.kernelSize = ownCopy(kernelSize)
    perDimension(where, 'kernelSize', kernelSize, 2, 1)
    perDimension(where, 'dilation', this.dilation, 2, 1)
    perDimension(where, 'padding', this.padding, 2, 0)
    perDimension(where, 'stride', this.stride, 2, 1)
  }

  override extraRepr(): string {
    return `kernel_size=${py(this.kernelSize)}, dilation=${py(this.dilation)}, padding=${py(this.padding)}, stride=${py(this.stride)}`
  }
}

/** The patches of images [N, C, H, W] or [C, H, W] as columns [N, C kh kw, L]. PyTorch's `nn.Unfold`. */
export class Unfold extends PatchLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.Unfold' }

  constructor(kernelSize: Pair, ...options: PatchArguments)
  constructor(...args: Named<[['kernelSize', Pair]], PatchArguments>)
  constructor(...args: readonly unknown[]) {
    const [kernelSize, ...options] = readRequired<[kernelSize: Pair]>('nn.Unfold', ['kernelSize'], args)
    super(kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return unfold(input, this.kernelSize, this.dilation, this.padding, this.stride)
  }
}

/** Images of size `outputSize` as the sums of their patches, which are columns [N, C kh kw, L]: the gradient of {@link Unfold}. PyTorch's `nn.Fold`. */
export class Fold extends PatchLayer {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.Fold' }

  readonly outputSize: Pair

  constructor(outputSize: Pair, kernelSize: Pair, ...options: PatchArguments)
  constructor(...args: Named<[['outputSize', Pair], ['kernelSize', Pair]], PatchArguments>)
  constructor(...args: readonly unknown[]) {
    const [outputSize, kernelSize, ...options] = readRequired<[outputSize: Pair, kernelSize: Pair]>('nn.Fold', ['outputSize', 'kernelSize'], args)
    super(kernelSize, options)
    perDimension('nn.Fold', 'outputSize', outputSize, 2, 1)
    this.outputSize = ownCopy(outputSize)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return fold(input, this.outputSize, this.kernelSize, this.dilation, this.padding, this.stride)
  }

  override extraRepr(): string {
    return `output_size=${py(this.outputSize)}, ${super.extraRepr()}`
  }
}
