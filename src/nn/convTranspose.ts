// Transposed convolutions as layers.
import type { DType } from '../kernels/index.ts'
import { Module } from '../module/index.ts'
import { empty } from '../ops/index.ts'
import type { Pair } from '../ops/index.ts'
import { getDefaultDtype } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { convTranspose1d, convTranspose2d } from './functional.ts'
import { checkChannels, resetByFanIn } from './convParts.ts'
import { markLeaf } from './leaf.ts'
import { perDimension, readOptions } from './options.ts'
import type { Trailing } from './options.ts'
import { Parameter } from './parameter.ts'
import { py } from './repr.ts'

/** Options of {@link ConvTranspose1d} and {@link ConvTranspose2d}; numbers hold for every spatial dimension. */
export interface ConvTransposeLayerOptions {
  readonly stride?: Pair
  /** How much is cut off at both sides. */
  readonly padding?: Pair
  /** How much is added at the far side, of the sizes that the stride makes possible. */
  readonly outputPadding?: Pair
  readonly groups?: number
  readonly bias?: boolean
  readonly dilation?: Pair
  readonly dtype?: DType
}

type Arguments = Trailing<
  [stride: Pair, padding: Pair, outputPadding: Pair, groups: number, bias: boolean, dilation: Pair],
  ConvTransposeLayerOptions
>

abstract class ConvTransposeLayer extends Module {
  readonly inChannels: number
  readonly outChannels: number
  readonly kernelSize: readonly number[]
  readonly stride: readonly number[]
  readonly padding: readonly number[]
  readonly outputPadding: readonly number[]
  readonly groups: number
  readonly dilation: readonly number[]
  /** [inChannels, outChannels / groups, ...kernelSize] */
  weight: Parameter
  /** [outChannels] */
  bias: Parameter | null

  constructor(where: string, spatial: number, inChannels: number, outChannels: number, kernelSize: Pair, given: readonly unknown[]) {
    super()
    const defaults: Required<ConvTransposeLayerOptions> = {
      stride: 1,
      padding: 0,
      outputPadding: 0,
      groups: 1,
      bias: true,
      dilation: 1,
      dtype: getDefaultDtype(),
    }
    const { stride, padding, outputPadding, groups, bias, dilation, dtype } = readOptions(where, defaults, given)
    checkChannels(where, inChannels, outChannels, groups)
    this.inChannels = inChannels
    this.outChannels = outChannels
    this.kernelSize = perDimension(where, 'kernelSize', kernelSize, spatial, 1)
    this.stride = perDimension(where, 'stride', stride, spatial, 1)
    this.padding = perDimension(where, 'padding', padding, spatial, 0)
    this.outputPadding = perDimension(where, 'outputPadding', outputPadding, spatial, 0)
    this.groups = groups
    this.dilation = perDimension(where, 'dilation', dilation, spatial, 1)
    this.weight = new Parameter(empty([inChannels, outChannels / groups, ...this.kernelSize], { dtype }))
    this.bias = bias ? new Parameter(empty([outChannels], { dtype })) : null
    this.resetParameters()
  }

  /** New random values, uniform within 1 / sqrt(fan in). */
  resetParameters(): void {
    resetByFanIn(this.weight, this.bias)
  }

  override extraRepr(): string {
    const { padding, outputPadding, dilation, groups } = this
    const parts = [`${this.inChannels}`, `${this.outChannels}`, `kernel_size=${py(this.kernelSize)}`, `stride=${py(this.stride)}`]
    if (padding.some((p) => p !== 0)) parts.push(`padding=${py(padding)}`)
    if (dilation.some((d) => d !== 1)) parts.push(`dilation=${py(dilation)}`)
    if (outputPadding.some((p) => p !== 0)) parts.push(`output_padding=${py(outputPadding)}`)
    if (groups !== 1) parts.push(`groups=${groups}`)
    if (this.bias === null) parts.push('bias=False')
    return parts.join(', ')
  }
}

/** Transposed convolution over [N, inChannels, length]. PyTorch's `nn.ConvTranspose1d`. */
export class ConvTranspose1d extends ConvTransposeLayer {
  constructor(inChannels: number, outChannels: number, kernelSize: Pair, ...options: Arguments) {
    super('nn.ConvTranspose1d', 1, inChannels, outChannels, kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    return convTranspose1d(input, this.weight, this.bias, this.stride, this.padding, this.outputPadding, this.groups, this.dilation)
  }
}

/** Transposed convolution over [N, inChannels, height, width]. PyTorch's `nn.ConvTranspose2d`. */
export class ConvTranspose2d extends ConvTransposeLayer {
  constructor(inChannels: number, outChannels: number, kernelSize: Pair, ...options: Arguments) {
    super('nn.ConvTranspose2d', 2, inChannels, outChannels, kernelSize, options)
  }

  override forward(input: Tensor): Tensor {
    return convTranspose2d(input, this.weight, this.bias, this.stride, this.padding, this.outputPadding, this.groups, this.dilation)
  }
}

markLeaf(ConvTranspose1d, ConvTranspose2d)
