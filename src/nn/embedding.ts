// Embedding and EmbeddingBag: a table of vectors, looked up by index, one by one or in bags.
import { ArgumentError } from '../errors/index.ts'
import type { EmbeddingBagMode } from '../ops/index.ts'
import { checkCount, py, valueText } from '../protocol/index.ts'
import { getDefaultDtype } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { EmbeddingTable, withRows } from './embeddingTable.ts'
import type { EmbeddingLayerOptions } from './embeddingTable.ts'
import { embedding, embeddingBag } from './functional.ts'
import { readOptions, readRequired } from './options.ts'
import type { Named, Trailing } from './options.ts'
import type { LayerFacts } from './layerFacts.ts'

/** Options of {@link Embedding.fromPretrained}. */
export interface PretrainedOptions extends Omit<EmbeddingLayerOptions, 'dtype'> {
  /** Leave the rows as they are in training; default true. */
  readonly freeze?: boolean
}

type EmbeddingPositions = [paddingIdx: number | null, maxNorm: number | null, normType: number, scaleGradByFreq: boolean]

/** Looks up rows: integer indices [..] to [.., embeddingDim]. PyTorch's `nn.Embedding`. */
export class Embedding extends EmbeddingTable {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.Embedding' }

  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = ['num_embeddings', 'embedding_dim', 'padding_idx']

  constructor(numEmbeddings: number, embeddingDim: number, ...options: Trailing<EmbeddingPositions, EmbeddingLayerOptions>)
  constructor(...args: Named<[['numEmbeddings', number], ['embeddingDim', number]], Trailing<EmbeddingPositions, EmbeddingLayerOptions>>)
  constructor(...args: readonly unknown[]) {
    const [numEmbeddings, embeddingDim, ...options] = readRequired<[numEmbeddings: number, embeddingDim: number]>(
      'nn.Embedding',
      ['numEmbeddings', 'embeddingDim'],
      args,
    )
    const defaults: Required<EmbeddingLayerOptions> = {
      paddingIdx: null,
      maxNorm: null,
      normType: 2,
      scaleGradByFreq: false,
      dtype: getDefaultDtype(),
    }
    super('nn.Embedding', numEmbeddings, embeddingDim, readOptions('nn.Embedding', defaults, options))
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
    return withRows(where, embeddings, freeze, (rows, size, dtype) => new Embedding(rows, size, { ...given, dtype }))
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    const { weight, paddingIdx, maxNorm, normType, scaleGradByFreq } = this
    return embedding(input, weight, { paddingIdx, maxNorm, normType, scaleGradByFreq })
  }

  override extraRepr(): string {
    const { sizes, padding, norm, scale } = this.reprParts
    return sizes + padding + norm + scale
  }
}

/** Options of {@link EmbeddingBag}. */
export interface EmbeddingBagLayerOptions extends EmbeddingLayerOptions {
  /** What a bag becomes; default 'mean'. */
  readonly mode?: EmbeddingBagMode
  /** Whether the last offset is the end of the last bag, and not the beginning of another one. */
  readonly includeLastOffset?: boolean
}

/** Options of {@link EmbeddingBag.fromPretrained}. */
export interface PretrainedBagOptions extends Omit<EmbeddingBagLayerOptions, 'dtype'> {
  /** Leave the rows as they are in training; default true. */
  readonly freeze?: boolean
}

/** What a call of {@link EmbeddingBag} may give by name. */
export interface EmbeddingBagCallOptions {
  /** Where each bag begins in the indices, which are then a vector. */
  readonly offsets?: Tensor | null
  /** Factors of the rows, of the shape of the indices; for mode 'sum'. */
  readonly perSampleWeights?: Tensor | null
}

type BagPositions = [maxNorm: number | null, normType: number, scaleGradByFreq: boolean, mode: EmbeddingBagMode]

const BAG_DEFAULTS = (): Required<Omit<EmbeddingBagLayerOptions, 'dtype'>> => ({
  maxNorm: null,
  normType: 2,
  scaleGradByFreq: false,
  mode: 'mean',
  includeLastOffset: false,
  paddingIdx: null,
})

const MODES: readonly unknown[] = ['sum', 'mean', 'max']

/**
 * Bags of rows: integer indices [B, n], or [n] with the offsets [B] where bags begin, to [B, embeddingDim]. For mode 'sum', `perSampleWeights` of the shape of the
 * indices are factors of the rows. PyTorch's `nn.EmbeddingBag`.
 *
 * @example new nn.EmbeddingBag(10, 3, { mode: 'sum' })(torch.tensor([1, 2, 4]).long(), torch.tensor([0, 2]).long()).shape // [2, 3]
 */
export class EmbeddingBag extends EmbeddingTable {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.EmbeddingBag' }

  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = [
    'num_embeddings',
    'embedding_dim',
    'max_norm',
    'norm_type',
    'scale_grad_by_freq',
    'mode',
    'include_last_offset',
    'padding_idx',
  ]
  readonly mode: EmbeddingBagMode
  readonly includeLastOffset: boolean

  constructor(numEmbeddings: number, embeddingDim: number, ...options: Trailing<BagPositions, EmbeddingBagLayerOptions>)
  constructor(...args: Named<[['numEmbeddings', number], ['embeddingDim', number]], Trailing<BagPositions, EmbeddingBagLayerOptions>>)
  constructor(...args: readonly unknown[]) {
    const [numEmbeddings, embeddingDim, ...options] = readRequired<[numEmbeddings: number, embeddingDim: number]>(
      'nn.EmbeddingBag',
      ['numEmbeddings', 'embeddingDim'],
      args,
    )
    const where = 'nn.EmbeddingBag'
    const given = readOptions<Required<EmbeddingBagLayerOptions>>(where, { ...BAG_DEFAULTS(), dtype: getDefaultDtype() }, options)
    const { mode, includeLastOffset } = given
    if (!MODES.includes(mode)) throw new ArgumentError(`${where}: mode must be 'sum', 'mean' or 'max', got ${valueText(mode)}.`)
    super(where, numEmbeddings, embeddingDim, given)
    this.mode = mode
    this.includeLastOffset = includeLastOffset
  }

  /**
   * A layer with the rows of a matrix [numEmbeddings, embeddingDim], which it shares. PyTorch's `nn.EmbeddingBag.from_pretrained`.
   *
   * @throws ShapeError unless it is a matrix.
   * @example nn.EmbeddingBag.fromPretrained(torch.tensor([[1, 2], [3, 4]])).call(torch.tensor([[0, 1]]).long()).toArray() // [[2, 3]]
   */
  static fromPretrained(embeddings: Tensor, ...options: Trailing<[freeze: boolean], PretrainedBagOptions>): EmbeddingBag {
    const where = 'nn.EmbeddingBag.fromPretrained'
    const { freeze, ...given } = readOptions<Required<PretrainedBagOptions>>(where, { freeze: true, ...BAG_DEFAULTS() }, options)
    return withRows(where, embeddings, freeze, (rows, size, dtype) => new EmbeddingBag(rows, size, { ...given, dtype }))
  }

  override forward(input: Tensor, ...given: Trailing<[offsets: Tensor | null, perSampleWeights: Tensor | null], EmbeddingBagCallOptions>): Tensor {
    const { maxNorm, normType, scaleGradByFreq, mode, includeLastOffset, paddingIdx } = this
    const defaults: Required<EmbeddingBagCallOptions> = { offsets: null, perSampleWeights: null }
    const { offsets, perSampleWeights } = readOptions('nn.EmbeddingBag', defaults, given)
    return embeddingBag(input, this.weight, offsets, {
      maxNorm,
      normType,
      scaleGradByFreq,
      mode,
      perSampleWeights,
      includeLastOffset,
      paddingIdx,
    })
  }

  override extraRepr(): string {
    const { sizes, padding, norm, scale } = this.reprParts
    return `${sizes}${norm}${scale}, mode=${py(this.mode)}${padding}`
  }
}
