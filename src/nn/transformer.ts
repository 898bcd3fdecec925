// The transformer of "Attention is all you need" and its layers.
import { ArgumentError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { Module } from '../module/index.ts'
import { add, full, triu } from '../ops/index.ts'
import { checkCount, checkModule, isFunction, valueText } from '../protocol/index.ts'
import { Tensor, getDefaultDtype } from '../tensor/index.ts'
import { MultiheadAttention } from './attention.ts'
import { ModuleList } from './containers.ts'
import { Dropout } from './dropout.ts'
import { gelu, relu } from './functional.ts'
import { xavierUniform_ } from './init.ts'
import { Linear } from './linear.ts'
import { LayerNorm } from './norm.ts'
import { checkInteger, readOptions, readRequired } from './options.ts'
import type { Named, Trailing } from './options.ts'

type Activation = 'relu' | 'gelu' | ((x: Tensor) => Tensor)

/** Options of the layers, and of {@link Transformer}. */
export interface TransformerOptions {
  /** The width between the two linear layers; default 2048. */
  readonly dimFeedforward?: number
  /** Default 0.1. */
  readonly dropout?: number
  /** Default 'relu'. */
  readonly activation?: Activation
  readonly layerNormEps?: number
  /** Inputs are [batch, length, features] instead of [length, batch, features]. */
  readonly batchFirst?: boolean
  /** Normalize before attention and feed-forward, and not after them. */
  readonly normFirst?: boolean
  readonly bias?: boolean
  readonly dtype?: DType
}

const defaults = (): Required<TransformerOptions> => ({
  dimFeedforward: 2048,
  dropout: 0.1,
  activation: 'relu',
  layerNormEps: 1e-5,
  batchFirst: false,
  normFirst: false,
  bias: true,
  dtype: getDefaultDtype(),
})

type LayerPositions = [dimFeedforward: number, dropout: number, activation: Activation]

function activationOf(where: string, activation: Activation): (x: Tensor) => Tensor {
  if (activation === 'relu') return (x) => relu(x)
  if (activation === 'gelu') return (x) => gelu(x)
  if (isFunction(activation)) return activation
  throw new ArgumentError(`${where}: activation must be 'relu', 'gelu' or a function, got ${valueText(activation)}.`)
}

/** What both kinds of layers have: self-attention, two linear layers, and norms. */
abstract class TransformerLayer extends Module {
  readonly selfAttn: MultiheadAttention
  readonly linear1: Linear
  readonly dropout: Dropout
  readonly linear2: Linear
  readonly normFirst: boolean
  readonly activation: Activation

  constructor(where: string, dModel: number, nhead: number, given: Required<TransformerOptions>) {
    super()
    checkInteger(where, 'dModel', dModel)
    checkInteger(where, 'nhead', nhead)
    activationOf(where, given.activation)
    checkInteger(where, 'dimFeedforward', given.dimFeedforward)
    const { bias, dtype } = given
    this.selfAttn = new MultiheadAttention(dModel, nhead, { dropout: given.dropout, bias, batchFirst: given.batchFirst, dtype })
    this.linear1 = new Linear(dModel, given.dimFeedforward, { bias, dtype })
    this.dropout = new Dropout(given.dropout)
    this.linear2 = new Linear(given.dimFeedforward, dModel, { bias, dtype })
    this.normFirst = given.normFirst
    this.activation = given.activation
  }

  /** The part of the layer that looks at each position by itself, without its last dropout. */
  protected feedForward(x: Tensor): Tensor {
    const activation = activationOf(this.constructor.name, this.activation)
    return this.linear2.call(this.dropout.call(activation(this.linear1.call(x))))
  }
}

/** Masks of {@link TransformerEncoderLayer.forward}. Boolean masks are true where attention is not allowed. */
export interface EncoderLayerMasks {
  readonly srcMask?: Tensor | null
  readonly srcKeyPaddingMask?: Tensor | null
}

/** Self-attention and a feed-forward network, each with a residual and a norm. PyTorch's `nn.TransformerEncoderLayer`. */
export class TransformerEncoderLayer extends TransformerLayer {
  readonly norm1: LayerNorm
  readonly norm2: LayerNorm
  readonly dropout1: Dropout
  readonly dropout2: Dropout

  constructor(dModel: number, nhead: number, ...options: Trailing<LayerPositions, TransformerOptions>)
  constructor(...args: Named<[['dModel', number], ['nhead', number]], Trailing<LayerPositions, TransformerOptions>>)
  constructor(...args: readonly unknown[]) {
    const [dModel, nhead, ...options] = readRequired<[dModel: number, nhead: number]>('nn.TransformerEncoderLayer', ['dModel', 'nhead'], args)
    const given = readOptions('nn.TransformerEncoderLayer', defaults(), options)
    super('nn.TransformerEncoderLayer', dModel, nhead, given)
    const { layerNormEps: eps, bias, dtype } = given
    this.norm1 = new LayerNorm(dModel, { eps, bias, dtype })
    this.norm2 = new LayerNorm(dModel, { eps, bias, dtype })
    this.dropout1 = new Dropout(given.dropout)
    this.dropout2 = new Dropout(given.dropout)
  }

  override forward(src: Tensor, masks: EncoderLayerMasks = {}): Tensor {
    checkCount(this, arguments, 2)
    const { srcMask, srcKeyPaddingMask } = readOptions<Required<EncoderLayerMasks>>(
      'nn.TransformerEncoderLayer.forward',
      { srcMask: null, srcKeyPaddingMask: null },
      [masks],
    )
    const attend = (x: Tensor): Tensor =>
      this.dropout1.call(this.selfAttn.call(x, x, x, { attnMask: srcMask, keyPaddingMask: srcKeyPaddingMask, needWeights: false })[0])
    const feed = (x: Tensor): Tensor => this.dropout2.call(this.feedForward(x))
    if (this.normFirst) {
      const x = add(src, attend(this.norm1.call(src)))
      return add(x, feed(this.norm2.call(x)))
    }
    const x = this.norm1.call(add(src, attend(src)))
    return this.norm2.call(add(x, feed(x)))
  }
}

/** Masks of {@link TransformerDecoderLayer.forward}. Boolean masks are true where attention is not allowed. */
export interface DecoderLayerMasks {
  readonly tgtMask?: Tensor | null
  readonly memoryMask?: Tensor | null
  readonly tgtKeyPaddingMask?: Tensor | null
  readonly memoryKeyPaddingMask?: Tensor | null
}

const decoderMasks = (): Required<DecoderLayerMasks> => ({ tgtMask: null, memoryMask: null, tgtKeyPaddingMask: null, memoryKeyPaddingMask: null })

/** Self-attention, attention to what an encoder says, and a feed-forward network. PyTorch's `nn.TransformerDecoderLayer`. */
export class TransformerDecoderLayer extends TransformerLayer {
  readonly multiheadAttn: MultiheadAttention
  readonly norm1: LayerNorm
  readonly norm2: LayerNorm
  readonly norm3: LayerNorm
  readonly dropout1: Dropout
  readonly dropout2: Dropout
  readonly dropout3: Dropout

  constructor(dModel: number, nhead: number, ...options: Trailing<LayerPositions, TransformerOptions>)
  constructor(...args: Named<[['dModel', number], ['nhead', number]], Trailing<LayerPositions, TransformerOptions>>)
  constructor(...args: readonly unknown[]) {
    const [dModel, nhead, ...options] = readRequired<[dModel: number, nhead: number]>('nn.TransformerDecoderLayer', ['dModel', 'nhead'], args)
    const given = readOptions('nn.TransformerDecoderLayer', defaults(), options)
    super('nn.TransformerDecoderLayer', dModel, nhead, given)
    const { layerNormEps: eps, bias, dtype, dropout } = given
    this.multiheadAttn = new MultiheadAttention(dModel, nhead, { dropout, bias, batchFirst: given.batchFirst, dtype })
    this.norm1 = new LayerNorm(dModel, { eps, bias, dtype })
    this.norm2 = new LayerNorm(dModel, { eps, bias, dtype })
    this.norm3 = new LayerNorm(dModel, { eps, bias, dtype })
    this.dropout1 = new Dropout(dropout)
    this.dropout2 = new Dropout(dropout)
    this.dropout3 = new Dropout(dropout)
  }

  override forward(tgt: Tensor, memory: Tensor, masks: DecoderLayerMasks = {}): Tensor {
    checkCount(this, arguments, 3)
    const given = readOptions('nn.TransformerDecoderLayer.forward', decoderMasks(), [masks])
    const self = (x: Tensor): Tensor =>
      this.dropout1.call(this.selfAttn.call(x, x, x, { attnMask: given.tgtMask, keyPaddingMask: given.tgtKeyPaddingMask, needWeights: false })[0])
    const cross = (x: Tensor): Tensor =>
      this.dropout2.call(
        this.multiheadAttn.call(x, memory, memory, { attnMask: given.memoryMask, keyPaddingMask: given.memoryKeyPaddingMask, needWeights: false })[0],
      )
    const feed = (x: Tensor): Tensor => this.dropout3.call(this.feedForward(x))
    if (this.normFirst) {
      const x = add(tgt, self(this.norm1.call(tgt)))
      const y = add(x, cross(this.norm2.call(x)))
      return add(y, feed(this.norm3.call(y)))
    }
    const x = this.norm1.call(add(tgt, self(tgt)))
    const y = this.norm2.call(add(x, cross(x)))
    return this.norm3.call(add(y, feed(y)))
  }
}

/** Options of {@link TransformerEncoder} and {@link TransformerDecoder}. */
export interface StackOptions {
  /** A norm at the end. */
  readonly norm?: LayerNorm | null
}

const MOST_LAYERS = 1_000_000

function copiesOf(where: string, name: string, layer: Module, count: number): ModuleList {
  checkModule(where, name, layer)
  checkInteger(where, 'numLayers', count)
  if (count > MOST_LAYERS) throw new ArgumentError(`${where}: numLayers must be at most ${MOST_LAYERS}, got ${count}.`)
  return new ModuleList(Array.from({ length: count }, () => layer.deepCopy()))
}

/** A number of copies of one encoder layer, one after the other. PyTorch's `nn.TransformerEncoder`. */
export class TransformerEncoder extends Module {
  readonly layers: ModuleList
  readonly norm: LayerNorm | null

  constructor(encoderLayer: TransformerEncoderLayer, numLayers: number, ...options: Trailing<[norm: LayerNorm | null], StackOptions>)
  constructor(...args: Named<[['encoderLayer', TransformerEncoderLayer], ['numLayers', number]], Trailing<[norm: LayerNorm | null], StackOptions>>)
  constructor(...args: readonly unknown[]) {
    const [encoderLayer, numLayers, ...options] = readRequired<[encoderLayer: TransformerEncoderLayer, numLayers: number]>(
      'nn.TransformerEncoder',
      ['encoderLayer', 'numLayers'],
      args,
    )
    super()
    this.layers = copiesOf('nn.TransformerEncoder', 'encoderLayer', encoderLayer, numLayers)
    this.norm = readOptions<Required<StackOptions>>('nn.TransformerEncoder', { norm: null }, options).norm
  }

  override forward(src: Tensor, masks: { readonly mask?: Tensor | null; readonly srcKeyPaddingMask?: Tensor | null } = {}): Tensor {
    checkCount(this, arguments, 2)
    const { mask, srcKeyPaddingMask } = readOptions<{ mask: Tensor | null; srcKeyPaddingMask: Tensor | null }>(
      'nn.TransformerEncoder.forward',
      { mask: null, srcKeyPaddingMask: null },
      [masks],
    )
    let x = src
    for (const layer of this.layers) if (layer instanceof TransformerEncoderLayer) x = layer.call(x, { srcMask: mask, srcKeyPaddingMask })
    return this.norm === null ? x : this.norm.call(x)
  }
}

/** A number of copies of one decoder layer, one after the other. PyTorch's `nn.TransformerDecoder`. */
export class TransformerDecoder extends Module {
  readonly layers: ModuleList
  readonly norm: LayerNorm | null

  constructor(decoderLayer: TransformerDecoderLayer, numLayers: number, ...options: Trailing<[norm: LayerNorm | null], StackOptions>)
  constructor(...args: Named<[['decoderLayer', TransformerDecoderLayer], ['numLayers', number]], Trailing<[norm: LayerNorm | null], StackOptions>>)
  constructor(...args: readonly unknown[]) {
    const [decoderLayer, numLayers, ...options] = readRequired<[decoderLayer: TransformerDecoderLayer, numLayers: number]>(
      'nn.TransformerDecoder',
      ['decoderLayer', 'numLayers'],
      args,
    )
    super()
    this.layers = copiesOf('nn.TransformerDecoder', 'decoderLayer', decoderLayer, numLayers)
    this.norm = readOptions<Required<StackOptions>>('nn.TransformerDecoder', { norm: null }, options).norm
  }

  override forward(tgt: Tensor, memory: Tensor, masks: DecoderLayerMasks = {}): Tensor {
    checkCount(this, arguments, 3)
    const given = readOptions('nn.TransformerDecoder.forward', decoderMasks(), [masks])
    let x = tgt
    for (const layer of this.layers) if (layer instanceof TransformerDecoderLayer) x = layer.call(x, memory, given)
    return this.norm === null ? x : this.norm.call(x)
  }
}

/** Masks of {@link Transformer.forward}. */
export interface TransformerMasks extends DecoderLayerMasks {
  readonly srcMask?: Tensor | null
  readonly srcKeyPaddingMask?: Tensor | null
}

type TransformerPositions = [
  dModel: number,
  nhead: number,
  numEncoderLayers: number,
  numDecoderLayers: number,
  dimFeedforward: number,
  dropout: number,
]
interface Sizes {
  readonly dModel?: number
  readonly nhead?: number
  readonly numEncoderLayers?: number
  readonly numDecoderLayers?: number
}

/** An encoder and a decoder that reads what it says: `forward(src, tgt)`. PyTorch's `nn.Transformer`. */
export class Transformer extends Module {
  readonly encoder: TransformerEncoder
  readonly decoder: TransformerDecoder

  constructor(...options: Trailing<TransformerPositions, Sizes & TransformerOptions>) {
    super()
    const sizes: Required<Sizes> = { dModel: 512, nhead: 8, numEncoderLayers: 6, numDecoderLayers: 6 }
    const { dModel, nhead, numEncoderLayers, numDecoderLayers, ...layer } = readOptions('nn.Transformer', { ...sizes, ...defaults() }, options)
    const { layerNormEps: eps, bias, dtype } = layer
    const norm = (): LayerNorm => new LayerNorm(dModel, { eps, bias, dtype })
    this.encoder = new TransformerEncoder(new TransformerEncoderLayer(dModel, nhead, layer), numEncoderLayers, norm())
    this.decoder = new TransformerDecoder(new TransformerDecoderLayer(dModel, nhead, layer), numDecoderLayers, norm())
    for (const parameter of this.parameters()) if (parameter.ndim > 1) xavierUniform_(parameter)
  }

  override forward(src: Tensor, tgt: Tensor, masks: TransformerMasks = {}): Tensor {
    checkCount(this, arguments, 3)
    const { srcMask, srcKeyPaddingMask, ...decoder } = readOptions<Required<TransformerMasks>>(
      'nn.Transformer.forward',
      { ...decoderMasks(), srcMask: null, srcKeyPaddingMask: null },
      [masks],
    )
    return this.decoder.call(tgt, this.encoder.call(src, { mask: srcMask, srcKeyPaddingMask }), decoder)
  }

  /** The mask that lets each position attend to itself and those before it: -Infinity above the diagonal, else 0. */
  static generateSquareSubsequentMask(size: number): Tensor {
    checkCount('generateSquareSubsequentMask', arguments, 1)
    return triu(full([size, size], -Infinity), 1)
  }
}
