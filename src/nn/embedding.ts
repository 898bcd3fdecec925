// Embedding: a table of vectors, looked up by index.
import { noGrad } from '../autograd/index.ts'
import type { DType } from '../kernels/index.ts'
import { Module } from '../module/index.ts'
import { empty } from '../ops/index.ts'
import { getDefaultDtype } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { embedding } from './functional.ts'
import { normal_ } from './init.ts'
import { markLeaf } from './leaf.ts'
import { checkInteger, readOptions, readPaddingIdx } from './options.ts'
import type { Trailing } from './options.ts'
import { Parameter } from './parameter.ts'

/** Options of {@link Embedding}. */
export interface EmbeddingLayerOptions {
  /** This row starts as zeros and gets no gradient; negative counts from the end. */
  readonly paddingIdx?: number | null
  readonly dtype?: DType
}

/** Looks up rows: integer indices [..] to [.., embeddingDim]. PyTorch's `nn.Embedding`. */
export class Embedding extends Module {
  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['num_embeddings', 'embedding_dim', 'padding_idx']
  readonly numEmbeddings: number
  readonly embeddingDim: number
  readonly paddingIdx: number | null
  /** [numEmbeddings, embeddingDim] */
  weight: Parameter

  constructor(numEmbeddings: number, embeddingDim: number, ...options: Trailing<[paddingIdx: number | null], EmbeddingLayerOptions>) {
    super()
    const { paddingIdx, dtype } = readOptions<Required<EmbeddingLayerOptions>>(
      'nn.Embedding',
      { paddingIdx: null, dtype: getDefaultDtype() },
      options,
    )
    checkInteger('nn.Embedding', 'numEmbeddings', numEmbeddings)
    checkInteger('nn.Embedding', 'embeddingDim', embeddingDim)
    this.numEmbeddings = numEmbeddings
    this.embeddingDim = embeddingDim
    this.paddingIdx = readPaddingIdx('nn.Embedding', paddingIdx, numEmbeddings)
    this.weight = new Parameter(empty([numEmbeddings, embeddingDim], { dtype }))
    this.resetParameters()
  }

  /** New rows of normal numbers; the padding row is zero. */
  resetParameters(): void {
    normal_(this.weight)
    const { paddingIdx, weight } = this
    if (paddingIdx !== null) noGrad(() => weight.select(0, paddingIdx).zero_())
  }

  override forward(input: Tensor): Tensor {
    return embedding(input, this.weight, { paddingIdx: this.paddingIdx })
  }

  override extraRepr(): string {
    return `${this.numEmbeddings}, ${this.embeddingDim}${this.paddingIdx === null ? '' : `, padding_idx=${this.paddingIdx}`}`
  }
}

markLeaf(Embedding)
