// Transposed convolutions as layers.
import { ArgumentError } from '../../errors/index.ts'
import type { DType } from '../../kernels/index.ts'
import type { Pair } from '../../ops/index.ts'
import { checkCount, py, valueText } from '../../protocol/index.ts'
import { formatShape, getDefaultDtype } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { CONV_POSITIONS, ConvNd } from './convParts.ts'
import type { ConvPositions } from './convParts.ts'
import { convTranspose1d, convTranspose2d, convTranspose3d } from '../functional.ts'
import { perDimension, readOptions, readOutputSize, readRequired } from '../options.ts'
import type { Named, OutputSize, Trailing } from '../options.ts'
import type { FunctionFacts } from '../layerFacts.ts'

/** Options of {@link ConvTranspose1d}, {@link ConvTranspose2d} and {@link ConvTranspose3d}; numbers hold for every spatial dimension. */
export interface ConvTransposeLayerOptions {
  readonly stride?: Pair
  /** How much is cut off at both sides. */
  readonly padding?: Pair
  /** How much is added at the far side, of the sizes that the stride makes possible. */
  readonly outputPadding?: Pair
  readonly groups?: number
  readonly bias?: boolean
  readonly dilation?: Pair
  /** Only zeros, as in PyTorch. */
  readonly paddingMode?: 'zeros'
  readonly dtype?: DType
}

export type ConvTransposeArguments = Trailing<
  [stride: Pair, padding: Pair, outputPadding: Pair, groups: number, bias: boolean, dilation: Pair, paddingMode: 'zeros'],
  ConvTransposeLayerOptions
>

/** What the transposed convolutions share. */
abstract class ConvTransposeLayer extends ConvNd {
  /** @internal */
  declare static readonly layer: FunctionFacts<typeof convTranspose1d>
  /** @internal */
  declare readonly ['constructor']: typeof ConvTransposeLayer

  declare readonly padding: readonly number[]
  readonly outputPadding: readonly number[]

  constructor(inChannels: number, outChannels: number, kernelSize: Pair, ...options: ConvTransposeArguments)
  constructor(...args: Named<[['inChannels', number], ['outChannels', number], ['kernelSize', Pair]], ConvTransposeArguments>)
  constructor(...args: readonly unknown[]) {
    const { name: where, spatial } = new.target.layer
    const [inChannels, outChannels, kernelSize, ...given] = readRequired<ConvPositions>(where, CONV_POSITIONS, args)
    const defaults: Required<ConvTransposeLayerOptions> = {
      stride: 1,
      padding: 0,
      outputPadding: 0,
      groups: 1,
      bias: true,
      dilation: 1,
      paddingMode: 'zeros',
      dtype: getDefaultDtype(),
    }
    const options = readOptions(where, defaults, given)
    perDimension(where, 'padding', options.padding, spatial, 0)
    const { paddingMode }: { readonly paddingMode: unknown } = options
    if (paddingMode !== 'zeros') throw new ArgumentError(`${where}: paddingMode must be 'zeros', got ${valueText(paddingMode)}.`)
    super(true, inChannels, outChannels, kernelSize, options)
    this.outputPadding = perDimension(where, 'outputPadding', options.outputPadding, spatial, 0)
  }

  override forward(input: Tensor, outputSize: OutputSize = null): Tensor {
    checkCount(this, arguments, 2)
    const { name: where, fn } = this.constructor.layer
    const { weight, bias, stride, padding, outputPadding, groups, dilation } = this
    const wanted = readOutputSize(where, outputSize)
    const more = wanted === null ? outputPadding : this.outputPaddingFor(where, input, wanted)
    return fn(input, weight, bias, stride, padding, more, groups, dilation)
  }

  /** What to add at the far sides for a result of size `wanted`, which may begin with the batch and the channels. */
  private outputPaddingFor(where: string, input: Tensor, wanted: readonly number[]): readonly number[] {
    const { kernelSize, stride, padding, dilation } = this
    const lead = input.ndim - kernelSize.length
    const sizes = wanted.length === input.ndim ? wanted.slice(lead) : wanted
    const least = kernelSize.map(
      (k, d) => ((input.shape[d + lead] ?? 0) - 1) * (stride[d] ?? 1) - 2 * (padding[d] ?? 0) + (dilation[d] ?? 1) * (k - 1) + 1,
    )
    const more = least.map((size, d) => (sizes[d] ?? NaN) - size)
    if (sizes.length !== least.length || more.some((n, d) => !(n >= 0 && n < (stride[d] ?? 1)))) {
      const most = least.map((size, d) => size + (stride[d] ?? 1) - 1)
      throw new ArgumentError(
        `${where}: outputSize must be between ${formatShape(least)} and ${formatShape(most)} for an input of shape ${formatShape(input.shape)}, got ${valueText(wanted)}.`,
      )
    }
    return more
  }

  protected override moreRepr(): readonly string[] {
    return this.outputPadding.some((p) => p !== 0) ? [`output_padding=${py(this.outputPadding)}`] : []
  }
}

/** Transposed convolution over [N, inChannels, length]; `outputSize` chooses among the sizes that the stride makes possible. PyTorch's `nn.ConvTranspose1d`. */
export class ConvTranspose1d extends ConvTransposeLayer {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof convTranspose1d> = { name: 'nn.ConvTranspose1d', spatial: 1, fn: convTranspose1d }
}

/**
 * Transposed convolution over [N, inChannels, height, width]; `outputSize` chooses among the sizes that the stride makes possible. PyTorch's `nn.ConvTranspose2d`.
 *
 * @example new nn.ConvTranspose2d(3, 3, 2, { stride: 2 })(torch.ones([1, 3, 4, 4]), [9, 8]).shape // [1, 3, 9, 8]
 */
export class ConvTranspose2d extends ConvTransposeLayer {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof convTranspose1d> = { name: 'nn.ConvTranspose2d', spatial: 2, fn: convTranspose2d }
}

/** Transposed convolution over [N, inChannels, depth, height, width]; `outputSize` chooses among the sizes that the stride makes possible. PyTorch's `nn.ConvTranspose3d`. */
export class ConvTranspose3d extends ConvTransposeLayer {
  /** @internal */
  static override readonly layer: FunctionFacts<typeof convTranspose1d> = { name: 'nn.ConvTranspose3d', spatial: 3, fn: convTranspose3d }
}
