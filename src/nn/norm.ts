// Normalization within one sample: layer norm, group norm and RMS norm.
import { checkArgument, checkCount, py, pyFloat } from '../protocol/index.ts'
import { ArgumentError, ShapeError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { Module } from '../module/index.ts'
import { add, mean, mul, ones, rsqrt, square, zeros } from '../ops/index.ts'
import { Tensor, finfo, formatShape, getDefaultDtype } from '../tensor/index.ts'
import { groupNorm, layerNorm } from './functional.ts'
import { ones_, zeros_ } from './init.ts'
import { checkInteger, readOptions, readRequired } from './options.ts'
import type { Named, Trailing } from './options.ts'
import { Parameter } from './parameter.ts'
import type { LayerFacts } from './layerFacts.ts'

/** The shape of the last dimensions, of which one number means the last. */
function shapeOf(where: string, normalizedShape: number | readonly number[]): readonly number[] {
  const shape = typeof normalizedShape === 'number' ? [normalizedShape] : normalizedShape
  checkArgument(Array.isArray(shape), where, 'normalizedShape', 'an integer or an array of integers', shape)
  for (const size of shape) checkInteger(where, 'normalizedShape', size)
  return [...shape]
}

/** A norm with a scale, and with a shift of that shape. */
abstract class AffineNorm extends Module {
  abstract weight: Parameter | null
  abstract bias: Parameter | null

  /** Scale 1, shift 0. */
  resetParameters(): void {
    if (this.weight !== null) ones_(this.weight)
    if (this.bias !== null) zeros_(this.bias)
  }
}

/** Options of {@link LayerNorm}. */
export interface LayerNormLayerOptions {
  readonly eps?: number
  /** Learn a scale (and a shift) per element. */
  readonly elementwiseAffine?: boolean
  /** Learn a shift too. */
  readonly bias?: boolean
  readonly dtype?: DType
}

/** Normalizes over the last dimensions, which must have the shape `normalizedShape` (one number: the last dimension). PyTorch's `nn.LayerNorm`. */
export class LayerNorm extends AffineNorm {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.LayerNorm' }

  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['normalized_shape', 'eps', 'elementwise_affine']
  readonly normalizedShape: readonly number[]
  readonly eps: number
  readonly elementwiseAffine: boolean
  weight: Parameter | null
  bias: Parameter | null

  constructor(
    normalizedShape: number | readonly number[],
    ...options: Trailing<[eps: number, elementwiseAffine: boolean, bias: boolean], LayerNormLayerOptions>
  )
  constructor(
    ...args: Named<
      [['normalizedShape', number | readonly number[]]],
      Trailing<[eps: number, elementwiseAffine: boolean, bias: boolean], LayerNormLayerOptions>
    >
  )
  constructor(...args: readonly unknown[]) {
    const [normalizedShape, ...options] = readRequired<[normalizedShape: number | readonly number[]]>('nn.LayerNorm', ['normalizedShape'], args)
    super()
    const defaults: Required<LayerNormLayerOptions> = { eps: 1e-5, elementwiseAffine: true, bias: true, dtype: getDefaultDtype() }
    const { eps, elementwiseAffine, bias, dtype } = readOptions('nn.LayerNorm', defaults, options)
    const shape = shapeOf('nn.LayerNorm', normalizedShape)
    this.normalizedShape = shape
    this.eps = eps
    this.elementwiseAffine = elementwiseAffine
    this.weight = elementwiseAffine ? new Parameter(ones(shape, { dtype })) : null
    this.bias = elementwiseAffine && bias ? new Parameter(zeros(shape, { dtype })) : null
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    const { weight, bias, eps } = this
    return layerNorm(input, this.normalizedShape, { weight, bias, eps })
  }

  override extraRepr(): string {
    const bias = py(!this.elementwiseAffine || this.bias !== null)
    return `${py(this.normalizedShape)}, eps=${pyFloat(this.eps)}, elementwise_affine=${py(this.elementwiseAffine)}, bias=${bias}`
  }
}

/** Options of {@link GroupNorm}. */
export interface GroupNormLayerOptions {
  readonly eps?: number
  /** Learn a scale and a shift per channel. */
  readonly affine?: boolean
  /** Whether there is a shift at all. Default true. */
  readonly bias?: boolean
  readonly dtype?: DType
}

/** Normalizes groups of channels of [N, C, ..]. PyTorch's `nn.GroupNorm`. */
export class GroupNorm extends AffineNorm {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.GroupNorm' }

  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['num_groups', 'num_channels', 'eps', 'affine']
  readonly numGroups: number
  readonly numChannels: number
  readonly eps: number
  readonly affine: boolean
  weight: Parameter | null
  bias: Parameter | null

  constructor(numGroups: number, numChannels: number, ...options: Trailing<[eps: number, affine: boolean, bias: boolean], GroupNormLayerOptions>)
  constructor(
    ...args: Named<[['numGroups', number], ['numChannels', number]], Trailing<[eps: number, affine: boolean, bias: boolean], GroupNormLayerOptions>>
  )
  constructor(...args: readonly unknown[]) {
    const [numGroups, numChannels, ...options] = readRequired<[numGroups: number, numChannels: number]>(
      'nn.GroupNorm',
      ['numGroups', 'numChannels'],
      args,
    )
    super()
    const defaults: Required<GroupNormLayerOptions> = { eps: 1e-5, affine: true, bias: true, dtype: getDefaultDtype() }
    const { eps, affine, bias, dtype } = readOptions('nn.GroupNorm', defaults, options)
    checkInteger('nn.GroupNorm', 'numGroups', numGroups)
    checkInteger('nn.GroupNorm', 'numChannels', numChannels)
    if (numChannels % numGroups !== 0)
      throw new ArgumentError(`nn.GroupNorm: numChannels must be divisible by numGroups, got ${numChannels} and ${numGroups}.`)
    this.numGroups = numGroups
    this.numChannels = numChannels
    this.eps = eps
    this.affine = affine
    this.weight = affine ? new Parameter(ones([numChannels], { dtype })) : null
    this.bias = affine && bias ? new Parameter(zeros([numChannels], { dtype })) : null
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    const { weight, bias, eps } = this
    return groupNorm(input, this.numGroups, { weight, bias, eps })
  }

  override extraRepr(): string {
    return `${this.numGroups}, ${this.numChannels}, eps=${pyFloat(this.eps)}, affine=${py(this.affine)}`
  }
}

/** Options of {@link RMSNorm}. */
export interface RMSNormLayerOptions {
  /** Added to the mean of squares; null (default) for the dtype's eps. */
  readonly eps?: number | null
  /** Learn a scale per element. */
  readonly elementwiseAffine?: boolean
  readonly dtype?: DType
}

/** Divides by the root mean square over the last dimensions, which must have the shape `normalizedShape`. PyTorch's `nn.RMSNorm`. */
export class RMSNorm extends Module {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.RMSNorm' }

  readonly normalizedShape: readonly number[]
  readonly eps: number | null
  readonly elementwiseAffine: boolean
  weight: Parameter | null

  constructor(
    normalizedShape: number | readonly number[],
    ...options: Trailing<[eps: number | null, elementwiseAffine: boolean], RMSNormLayerOptions>
  )
  constructor(
    ...args: Named<[['normalizedShape', number | readonly number[]]], Trailing<[eps: number | null, elementwiseAffine: boolean], RMSNormLayerOptions>>
  )
  constructor(...args: readonly unknown[]) {
    const [normalizedShape, ...options] = readRequired<[normalizedShape: number | readonly number[]]>('nn.RMSNorm', ['normalizedShape'], args)
    super()
    const defaults: Required<RMSNormLayerOptions> = { eps: null, elementwiseAffine: true, dtype: getDefaultDtype() }
    const { eps, elementwiseAffine, dtype } = readOptions('nn.RMSNorm', defaults, options)
    this.normalizedShape = shapeOf('nn.RMSNorm', normalizedShape)
    this.eps = eps
    this.elementwiseAffine = elementwiseAffine
    this.weight = elementwiseAffine ? new Parameter(ones(this.normalizedShape, { dtype })) : null
  }

  /** Scale 1. */
  resetParameters(): void {
    if (this.weight !== null) ones_(this.weight)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    const { normalizedShape, weight } = this
    const dims = normalizedShape.map((_, i) => i - normalizedShape.length)
    // A traced value has no shape to look at.
    if (input instanceof Tensor && input.shape.slice(-dims.length).join() !== normalizedShape.join())
      throw new ShapeError(`nn.RMSNorm: the input must end in shape ${py(normalizedShape)}, got shape ${formatShape(input.shape)}.`)
    const eps = this.eps ?? finfo(input.dtype).eps
    const normal = mul(input, rsqrt(add(mean(square(input), dims, true), eps)))
    return weight === null ? normal : mul(normal, weight)
  }

  override extraRepr(): string {
    return `${py(this.normalizedShape)}, eps=${this.eps === null ? 'None' : pyFloat(this.eps)}, elementwise_affine=${py(this.elementwiseAffine)}`
  }
}
