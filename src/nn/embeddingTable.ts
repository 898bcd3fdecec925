// What Embedding and EmbeddingBag share: a table of rows that are looked up.
import { noGrad } from '../autograd/index.ts'
import { ShapeError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { Module } from '../module/index.ts'
import { empty } from '../ops/index.ts'
import { checkTensor, formatShape } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { pyFloat } from '../protocol/index.ts'
import { normal_ } from './init.ts'
import { checkInteger, checkNumber, readPaddingIdx } from './options.ts'
import { Parameter } from './parameter.ts'

/** Options of {@link Embedding} and {@link EmbeddingBag}. */
export interface EmbeddingLayerOptions {
  /** This row starts as zeros and gets no gradient; in bags it does not count. Negative counts from the end. */
  readonly paddingIdx?: number | null
  /** Rows that are looked up are first scaled down to this norm, in the weight itself; default null, no limit. */
  readonly maxNorm?: number | null
  /** The p of that norm; default 2. */
  readonly normType?: number
  /** Divide the gradient of each row by how often its index occurs in the input. */
  readonly scaleGradByFreq?: boolean
  readonly dtype?: DType
}

/** A layer with a table of `numEmbeddings` rows of size `embeddingDim`. */
export abstract class EmbeddingTable extends Module {
  readonly numEmbeddings: number
  readonly embeddingDim: number
  readonly paddingIdx: number | null
  readonly maxNorm: number | null
  readonly normType: number
  readonly scaleGradByFreq: boolean
  /** [numEmbeddings, embeddingDim] */
  weight: Parameter

  constructor(where: string, numEmbeddings: number, embeddingDim: number, options: Required<EmbeddingLayerOptions>) {
    super()
    const { paddingIdx, maxNorm, normType, scaleGradByFreq, dtype } = options
    checkInteger(where, 'numEmbeddings', numEmbeddings)
    checkInteger(where, 'embeddingDim', embeddingDim)
    if (maxNorm !== null) checkNumber(where, 'maxNorm', maxNorm, 'a positive number or null', (v) => v > 0)
    checkNumber(where, 'normType', normType, 'a positive number', (v) => v > 0)
    this.numEmbeddings = numEmbeddings
    this.embeddingDim = embeddingDim
    this.paddingIdx = readPaddingIdx(where, paddingIdx, numEmbeddings)
    this.maxNorm = maxNorm
    this.normType = normType
    this.scaleGradByFreq = scaleGradByFreq
    this.weight = new Parameter(empty([numEmbeddings, embeddingDim], { dtype }))
    this.resetParameters()
  }

  /** New rows of normal numbers; the padding row is zero. */
  resetParameters(): void {
    normal_(this.weight)
    const { paddingIdx, weight } = this
    if (paddingIdx !== null) noGrad(() => weight.select(0, paddingIdx).zero_())
  }

  /** What is printed, in the order of the layer. */
  protected get reprParts(): Readonly<Record<'sizes' | 'padding' | 'norm' | 'scale', string>> {
    const { paddingIdx, maxNorm, normType } = this
    return {
      sizes: `${this.numEmbeddings}, ${this.embeddingDim}`,
      padding: paddingIdx === null ? '' : `, padding_idx=${paddingIdx}`,
      norm: `${maxNorm === null ? '' : `, max_norm=${pyFloat(maxNorm)}`}${normType === 2 ? '' : `, norm_type=${pyFloat(normType)}`}`,
      scale: this.scaleGradByFreq ? ', scale_grad_by_freq=True' : '',
    }
  }
}

/** The layer that `make` makes for the sizes and the dtype of a matrix, with its rows, which are shared. Throws ShapeError unless it is a matrix. */
export function withRows<L extends EmbeddingTable>(
  where: string,
  embeddings: Tensor,
  freeze: boolean,
  make: (rows: number, size: number, dtype: DType) => L,
): L {
  checkTensor(where, 'embeddings', embeddings)
  if (embeddings.ndim !== 2)
    throw new ShapeError(`${where}: embeddings must have 2 dimensions [numEmbeddings, embeddingDim], got shape ${formatShape(embeddings.shape)}.`)
  const layer = make(embeddings.size(0), embeddings.size(1), embeddings.dtype)
  layer.weight = new Parameter(embeddings, { requiresGrad: !freeze })
  return layer
}
