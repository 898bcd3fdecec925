// What convolutions and transposed convolutions share: their properties, the initial values, and what they print. PyTorch's _ConvNd.
import { ArgumentError } from '../../errors/index.ts'
import type { DType } from '../../kernels/index.ts'
import { Module } from '../../module/index.ts'
import { empty } from '../../ops/index.ts'
import type { Pair } from '../../ops/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { py } from '../../protocol/index.ts'
import { calculateFanInAndFanOut, kaimingUniform_, uniform_ } from '../init.ts'
import { checkInteger, perDimension } from '../options.ts'
import { Parameter } from '../parameter.ts'
import type { SpatialFacts } from '../layerFacts.ts'

/** Throws ArgumentError unless the channels can be divided into groups. */
function checkChannels(where: string, inChannels: number, outChannels: number, groups: number): void {
  checkInteger(where, 'inChannels', inChannels)
  checkInteger(where, 'outChannels', outChannels)
  checkInteger(where, 'groups', groups)
  if (inChannels % groups !== 0 || outChannels % groups !== 0)
    throw new ArgumentError(`${where}: inChannels and outChannels must be divisible by groups, got ${inChannels}, ${outChannels} and ${groups}.`)
}

/** Gives a weight and a bias new random values, uniform within 1 / sqrt(fan in). */
function resetByFanIn(weight: Tensor, bias: Tensor | null): void {
  kaimingUniform_(weight, { a: Math.sqrt(5) })
  if (bias === null) return
  const [fanIn] = calculateFanInAndFanOut(weight)
  const bound = fanIn > 0 ? 1 / Math.sqrt(fanIn) : 0
  uniform_(bias, -bound, bound)
}

/** The options of every convolution; numbers hold for every spatial dimension. */
interface ConvNdOptions {
  readonly stride: Pair
  readonly padding: Pair | 'same' | 'valid'
  readonly dilation: Pair
  readonly groups: number
  readonly bias: boolean
  readonly dtype: DType
}

/** The required arguments of convolutions. */
export type ConvPositions = [inChannels: number, outChannels: number, kernelSize: Pair]
export const CONV_POSITIONS: readonly string[] = ['inChannels', 'outChannels', 'kernelSize']

/** A convolution over `spatial` dimensions, transposed or not. */
export abstract class ConvNd extends Module {
  /** @internal */
  declare static readonly layer: SpatialFacts

  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['stride', 'padding', 'dilation', 'groups', 'in_channels', 'out_channels', 'kernel_size']
  readonly inChannels: number
  readonly outChannels: number
  readonly kernelSize: readonly number[]
  readonly stride: readonly number[]
  readonly padding: readonly number[] | 'same' | 'valid'
  readonly dilation: readonly number[]
  readonly groups: number
  /** [outChannels, inChannels / groups, ...kernelSize], or [inChannels, outChannels / groups, ...kernelSize] of a transposed convolution */
  weight: Parameter
  /** [outChannels] */
  bias: Parameter | null

  constructor(transposed: boolean, inChannels: number, outChannels: number, kernelSize: Pair, options: ConvNdOptions) {
    const { name: where, spatial } = new.target.layer
    const { stride, padding, dilation, groups, bias, dtype } = options
    super()
    checkChannels(where, inChannels, outChannels, groups)
    this.inChannels = inChannels
    this.outChannels = outChannels
    this.kernelSize = perDimension(where, 'kernelSize', kernelSize, spatial, 1)
    this.stride = perDimension(where, 'stride', stride, spatial, 1)
    this.padding = typeof padding === 'string' ? padding : perDimension(where, 'padding', padding, spatial, 0)
    this.dilation = perDimension(where, 'dilation', dilation, spatial, 1)
    this.groups = groups
    const channels = transposed ? [inChannels, outChannels / groups] : [outChannels, inChannels / groups]
    this.weight = new Parameter(empty([...channels, ...this.kernelSize], { dtype }))
    this.bias = bias ? new Parameter(empty([outChannels], { dtype })) : null
    this.resetParameters()
  }

  /** New random values, uniform within 1 / sqrt(fan in). */
  resetParameters(): void {
    resetByFanIn(this.weight, this.bias)
  }

  override extraRepr(): string {
    const { padding, dilation, groups } = this
    const parts = [`${this.inChannels}`, `${this.outChannels}`, `kernel_size=${py(this.kernelSize)}`, `stride=${py(this.stride)}`]
    if (typeof padding === 'string') parts.push(`padding=${padding}`)
    else if (padding.some((p) => p !== 0)) parts.push(`padding=${py(padding)}`)
    if (dilation.some((d) => d !== 1)) parts.push(`dilation=${py(dilation)}`)
    parts.push(...this.moreRepr())
    if (groups !== 1) parts.push(`groups=${groups}`)
    if (this.bias === null) parts.push('bias=False')
    return parts.join(', ')
  }

  /** What is printed after the dilation. */
  protected moreRepr(): readonly string[] {
    return []
  }
}
