// EmbeddingBag: the sum, the mean or the maximum of rows of a table, bag by bag.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { Module } from '../module/index.ts'
import { empty } from '../ops/index.ts'
import type { EmbeddingBagMode } from '../ops/index.ts'
import { valueText } from '../protocol/index.ts'
import { getDefaultDtype } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { embeddingBag } from './functional.ts'
import { normal_ } from './init.ts'
import { markLeaf } from './leaf.ts'
import { checkInteger, readOptions, readPaddingIdx } from './options.ts'
import type { Trailing } from './options.ts'
import { Parameter } from './parameter.ts'
import { py } from './repr.ts'

/** Options of {@link EmbeddingBag}. */
export interface EmbeddingBagLayerOptions {
  /** Divide the gradient of a row by how often it occurs. */
  readonly scaleGradByFreq?: boolean
  /** What a bag becomes; default 'mean'. */
  readonly mode?: EmbeddingBagMode
  /** Whether the last offset is the end of the last bag, and not the beginning of another one. */
  readonly includeLastOffset?: boolean
  /** This row starts as zeros, does not count, and gets no gradient; negative counts from the end. */
  readonly paddingIdx?: number | null
  readonly dtype?: DType
}

/** What a call of {@link EmbeddingBag} may give by name. */
export interface EmbeddingBagCallOptions {
  readonly offsets?: Tensor | null
  readonly perSampleWeights?: Tensor | null
}

const MODES: readonly unknown[] = ['sum', 'mean', 'max']

/**
 * Bags of rows: integer indices [B, n], or [n] with the offsets [B] where bags begin, to [B, embeddingDim]. For mode 'sum', `perSampleWeights` of the shape of the
 * indices are factors of the rows. PyTorch's `nn.EmbeddingBag`.
 *
 * @example new nn.EmbeddingBag(10, 3, { mode: 'sum' })(torch.tensor([1, 2, 4]).long(), torch.tensor([0, 2]).long()).shape // [2, 3]
 */
export class EmbeddingBag extends Module {
  /** Attributes that FxGraphDrawer prints, in this order; PyTorch's `__constants__`. */
  static readonly constants: readonly string[] = [
    'num_embeddings',
    'embedding_dim',
    'scale_grad_by_freq',
    'mode',
    'include_last_offset',
    'padding_idx',
  ]
  readonly numEmbeddings: number
  readonly embeddingDim: number
  readonly scaleGradByFreq: boolean
  readonly mode: EmbeddingBagMode
  readonly includeLastOffset: boolean
  readonly paddingIdx: number | null
  /** [numEmbeddings, embeddingDim] */
  weight: Parameter

  constructor(numEmbeddings: number, embeddingDim: number, options: EmbeddingBagLayerOptions = {}) {
    super()
    const where = 'nn.EmbeddingBag'
    const defaults: Required<EmbeddingBagLayerOptions> = {
      scaleGradByFreq: false,
      mode: 'mean',
      includeLastOffset: false,
      paddingIdx: null,
      dtype: getDefaultDtype(),
    }
    const { scaleGradByFreq, mode, includeLastOffset, paddingIdx, dtype } = readOptions(where, defaults, [options])
    checkInteger(where, 'numEmbeddings', numEmbeddings)
    checkInteger(where, 'embeddingDim', embeddingDim)
    if (!MODES.includes(mode)) throw new ArgumentError(`${where}: mode must be 'sum', 'mean' or 'max', got ${valueText(mode)}.`)
    this.numEmbeddings = numEmbeddings
    this.embeddingDim = embeddingDim
    this.scaleGradByFreq = scaleGradByFreq
    this.mode = mode
    this.includeLastOffset = includeLastOffset
    this.paddingIdx = readPaddingIdx(where, paddingIdx, numEmbeddings)
    this.weight = new Parameter(empty([numEmbeddings, embeddingDim], { dtype }))
    this.resetParameters()
  }

  /** New rows of normal numbers; the padding row is zero. */
  resetParameters(): void {
    normal_(this.weight)
    const { paddingIdx, weight } = this
    if (paddingIdx !== null) noGrad(() => weight.select(0, paddingIdx).zero_())
  }

  override forward(input: Tensor, ...given: Trailing<[offsets: Tensor | null, perSampleWeights: Tensor | null], EmbeddingBagCallOptions>): Tensor {
    const { scaleGradByFreq, mode, includeLastOffset, paddingIdx } = this
    const defaults: Required<EmbeddingBagCallOptions> = { offsets: null, perSampleWeights: null }
    const { offsets, perSampleWeights } = readOptions('nn.EmbeddingBag', defaults, given)
    return embeddingBag(input, this.weight, offsets, { scaleGradByFreq, mode, perSampleWeights, includeLastOffset, paddingIdx })
  }

  override extraRepr(): string {
    const parts = [`${this.numEmbeddings}`, `${this.embeddingDim}`]
    if (this.scaleGradByFreq) parts.push('scale_grad_by_freq=True')
    parts.push(`mode=${py(this.mode)}`)
    if (this.paddingIdx !== null) parts.push(`padding_idx=${this.paddingIdx}`)
    return parts.join(', ')
  }
}

markLeaf(EmbeddingBag)
