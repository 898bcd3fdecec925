// Linear, and the layers that compute nothing: Identity, Flatten.
import type { DType } from '../kernels/index.ts'
import { Module } from '../module/index.ts'
import { add, einsum, empty } from '../ops/index.ts'
import { getDefaultDtype } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { checkCount, py } from '../protocol/index.ts'
import { linear } from './functional.ts'
import { kaimingUniform_, uniform_ } from './init.ts'
import { checkInteger, checkNumber, readOptions, readRequired } from './options.ts'
import type { Named, Trailing } from './options.ts'
import { Parameter } from './parameter.ts'
import type { LayerFacts } from './layerFacts.ts'

/** Options of {@link Linear}. */
export interface LinearOptions {
  /** Add a learned bias; default true. */
  readonly bias?: boolean
  readonly dtype?: DType
}

/** x @ weight^T + bias on the last dimension: [.., inFeatures] to [.., outFeatures]. PyTorch's `nn.Linear`. */
export class Linear extends Module {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.Linear' }

  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['in_features', 'out_features']
  readonly inFeatures: number
  readonly outFeatures: number
  /** [outFeatures, inFeatures] */
  weight: Parameter
  /** [outFeatures] */
  bias: Parameter | null

  constructor(inFeatures: number, outFeatures: number, ...options: Trailing<[bias: boolean], LinearOptions>)
  constructor(...args: Named<[['inFeatures', number], ['outFeatures', number]], Trailing<[bias: boolean], LinearOptions>>)
  constructor(...args: readonly unknown[]) {
    const [inFeatures, outFeatures, ...options] = readRequired<[inFeatures: number, outFeatures: number]>(
      'nn.Linear',
      ['inFeatures', 'outFeatures'],
      args,
    )
    super()
    checkInteger('nn.Linear', 'inFeatures', inFeatures, 0)
    checkInteger('nn.Linear', 'outFeatures', outFeatures, 0)
    const { bias, dtype } = readOptions<Required<LinearOptions>>('nn.Linear', { bias: true, dtype: getDefaultDtype() }, options)
    this.inFeatures = inFeatures
    this.outFeatures = outFeatures
    this.weight = new Parameter(empty([outFeatures, inFeatures], { dtype }))
    this.bias = bias ? new Parameter(empty([outFeatures], { dtype })) : null
    this.resetParameters()
  }

  /** New random values, uniform within 1 / sqrt(inFeatures). */
  resetParameters(): void {
    kaimingUniform_(this.weight, { a: Math.sqrt(5) })
    if (this.bias === null) return
    const bound = this.inFeatures > 0 ? 1 / Math.sqrt(this.inFeatures) : 0
    uniform_(this.bias, -bound, bound)
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return linear(input, this.weight, this.bias)
  }

  override extraRepr(): string {
    return `in_features=${this.inFeatures}, out_features=${this.outFeatures}, bias=${py(this.bias !== null)}`
  }
}

/** a^T W b + bias of two inputs: [.., in1Features] and [.., in2Features] to [.., outFeatures]. PyTorch's `nn.Bilinear`. */
export class Bilinear extends Module {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.Bilinear' }

  readonly in1Features: number
  readonly in2Features: number
  readonly outFeatures: number
  /** [outFeatures, in1Features, in2Features] */
  weight: Parameter
  /** [outFeatures] */
  bias: Parameter | null

  constructor(in1Features: number, in2Features: number, outFeatures: number, ...options: Trailing<[bias: boolean], LinearOptions>)
  constructor(...args: Named<[['in1Features', number], ['in2Features', number], ['outFeatures', number]], Trailing<[bias: boolean], LinearOptions>>)
  constructor(...args: readonly unknown[]) {
    const [in1Features, in2Features, outFeatures, ...options] = readRequired<[in1Features: number, in2Features: number, outFeatures: number]>(
      'nn.Bilinear',
      ['in1Features', 'in2Features', 'outFeatures'],
      args,
    )
    super()
    const { bias, dtype } = readOptions<Required<LinearOptions>>('nn.Bilinear', { bias: true, dtype: getDefaultDtype() }, options)
    checkInteger('nn.Bilinear', 'in1Features', in1Features)
    checkInteger('nn.Bilinear', 'in2Features', in2Features)
    checkInteger('nn.Bilinear', 'outFeatures', outFeatures)
    this.in1Features = in1Features
    this.in2Features = in2Features
    this.outFeatures = outFeatures
    this.weight = new Parameter(empty([outFeatures, in1Features, in2Features], { dtype }))
    this.bias = bias ? new Parameter(empty([outFeatures], { dtype })) : null
    this.resetParameters()
  }

  /** New random values, uniform within 1 / sqrt(in1Features). */
  resetParameters(): void {
    const bound = 1 / Math.sqrt(this.in1Features)
    uniform_(this.weight, -bound, bound)
    if (this.bias !== null) uniform_(this.bias, -bound, bound)
  }

  override forward(input1: Tensor, input2: Tensor): Tensor {
    checkCount(this, arguments, 2)
    const product = einsum('...i,oij,...j->...o', [input1, this.weight, input2])
    return this.bias === null ? product : add(product, this.bias)
  }

  override extraRepr(): string {
    return `in1_features=${this.in1Features}, in2_features=${this.in2Features}, out_features=${this.outFeatures}, bias=${py(this.bias !== null)}`
  }
}

/** Returns its input; arguments are accepted and ignored. PyTorch's `nn.Identity`. */
export class Identity extends Module {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.Identity' }

  // eslint-disable-next-line typescript/no-useless-constructor -- it takes the arguments of the layer that it stands in for
  constructor(..._ignored: readonly unknown[]) {
    super()
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return input
  }
}

/** Options of {@link Flatten}. */
export interface FlattenOptions {
  readonly startDim?: number
  readonly endDim?: number
}

/** Joins the dimensions from `startDim` (1) to `endDim` (-1) into one. PyTorch's `nn.Flatten`. */
export class Flatten extends Module {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.Flatten' }

  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['start_dim', 'end_dim']
  readonly startDim: number
  readonly endDim: number

  constructor(...options: Trailing<[startDim: number, endDim: number], FlattenOptions>) {
    super()
    const { startDim, endDim } = readOptions('nn.Flatten', { startDim: 1, endDim: -1 }, options)
    for (const [name, dim] of Object.entries({ startDim, endDim })) checkNumber('nn.Flatten', name, dim, 'an integer', Number.isInteger)
    this.startDim = startDim
    this.endDim = endDim
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return input.flatten(this.startDim, this.endDim)
  }

  override extraRepr(): string {
    return `start_dim=${this.startDim}, end_dim=${this.endDim}`
  }
}
