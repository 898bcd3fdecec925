// Embedding: a table of vectors, looked up by index.
import { noGrad } from '../autograd/index.ts'
import { ShapeError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { Module } from '../module/index.ts'
import { empty } from '../ops/index.ts'
import { checkTensor, formatShape, getDefaultDtype } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { embedding } from './functional.ts'
import { normal_ } from './init.ts'
import { markLeaf } from './leaf.ts'
import { checkInteger, checkNumber, readOptions, readPaddingIdx } from './options.ts'
import type { Trailing } from './options.ts'
import { Parameter } from './parameter.ts'
import { pyFloat } from './repr.ts'

/** Options of {@link Embedding}. */
export interface EmbeddingLayerOptions {
  /** This row starts as zeros and gets no gradient; negative counts from the end. */
  readonly paddingIdx?: number | null
  /** Rows that are looked up are first scaled down to this norm, in the weight itself; default null, no limit. */
  readonly maxNorm?: number | null
  /** The p of that norm; default 2. */
  readonly normType?: number
  /** Divide the gradient of each row by how often its index occurs in the input. */
  readonly scaleGradByFreq?: boolean
  readonly dtype?: DType
}

/** Options of {@link Embedding.fromPretrained}. */
export interface PretrainedOptions extends Omit<EmbeddingLayerOptions, 'dtype'> {
  /** Leave the rows as they are in training; default true. */
  readonly freeze?: boolean
}

type EmbeddingPositions = [paddingIdx: number | null, maxNorm: number | null, normType: number, scaleGradByFreq: boolean]

/** Looks up rows: integer indices [..] to [.., embeddingDim]. PyTorch's `nn.Embedding`. */
export class Embedding extends Module {
  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['num_embeddings', 'embedding_dim', 'padding_idx']
  readonly numEmbeddings: number
  readonly embeddingDim: number
  readonly paddingIdx: number | null
  readonly maxNorm: number | null
  readonly normType: number
  readonly scaleGradByFreq: boolean
  /** [numEmbeddings, embeddingDim] */
  weight: Parameter

  constructor(numEmbeddings: number, embeddingDim: number, ...options: Trailing<EmbeddingPositions, EmbeddingLayerOptions>) {
    super()
    const { paddingIdx, maxNorm, normType, scaleGradByFreq, dtype } = readOptions<Required<EmbeddingLayerOptions>>(
      'nn.Embedding',
      { paddingIdx: null, maxNorm: null, normType: 2, scaleGradByFreq: false, dtype: getDefaultDtype() },
      options,
    )
    checkInteger('nn.Embedding', 'numEmbeddings', numEmbeddings)
    checkInteger('nn.Embedding', 'embeddingDim', embeddingDim)
    if (maxNorm !== null) checkNumber('nn.Embedding', 'maxNorm', maxNorm, 'a positive number or null', (v) => v > 0)
    checkNumber('nn.Embedding', 'normType', normType, 'a positive number', (v) => v > 0)
    this.numEmbeddings = numEmbeddings
    this.embeddingDim = embeddingDim
    this.paddingIdx = readPaddingIdx('nn.Embedding', paddingIdx, numEmbeddings)
    this.maxNorm = maxNorm
    this.normType = normType
    this.scaleGradByFreq = scaleGradByFreq
    this.weight = new Parameter(empty([numEmbeddings, embeddingDim], { dtype }))
    this.resetParameters()
  }

  /**
   * A layer with the rows of a matrix [numEmbeddings, embeddingDim], which it shares. PyTorch's `nn.Embedding.from_pretrained`.
   *
   * @throws ShapeError unless it is a matrix.
   * @example nn.Embedding.fromPretrained(torch.tensor([[1, 2], [3, 4]])).call(torch.tensor([1]).long()).toArray() // [[3, 4]]
   */
  static fromPretrained(embeddings: Tensor, ...options: Trailing<[freeze: boolean], PretrainedOptions>): Embedding {
    const where = 'nn.Embedding.fromPretrained'
    const defaults: Required<PretrainedOptions> = { freeze: true, paddingIdx: null, maxNorm: null, normType: 2, scaleGradByFreq: false }
    const { freeze, ...given } = readOptions(where, defaults, options)
    checkTensor(where, 'embeddings', embeddings)
    if (embeddings.ndim !== 2)
      throw new ShapeError(`${where}: embeddings must have 2 dimensions [numEmbeddings, embeddingDim], got shape ${formatShape(embeddings.shape)}.`)
    const layer = new Embedding(embeddings.size(0), embeddings.size(1), { ...given, dtype: embeddings.dtype })
    layer.weight = new Parameter(embeddings, { requiresGrad: !freeze })
    return layer
  }

  /** New rows of normal numbers; the padding row is zero. */
  resetParameters(): void {
    normal_(this.weight)
    const { paddingIdx, weight } = this
    if (paddingIdx !== null) noGrad(() => weight.select(0, paddingIdx).zero_())
  }

  override forward(input: Tensor): Tensor {
    const { weight, paddingIdx, maxNorm, normType, scaleGradByFreq } = this
    return embedding(input, weight, { paddingIdx, maxNorm, normType, scaleGradByFreq })
  }

  override extraRepr(): string {
    const { paddingIdx, maxNorm, normType } = this
    const parts = [
      paddingIdx === null ? '' : `, padding_idx=${paddingIdx}`,
      maxNorm === null ? '' : `, max_norm=${pyFloat(maxNorm)}`,
      normType === 2 ? '' : `, norm_type=${pyFloat(normType)}`,
      this.scaleGradByFreq ? ', scale_grad_by_freq=True' : '',
    ]
    return `${this.numEmbeddings}, ${this.embeddingDim}${parts.join('')}`
  }
}

markLeaf(Embedding)
