// Multi-head attention.
import { checkCount } from '../protocol/index.ts'
import { ArgumentError, ShapeError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { Module } from '../module/index.ts'
import { add, cat, empty, maskedFill, matmul, mean, mul, narrow, softmax, squeeze, unsqueeze, zeros } from '../ops/index.ts'
import { checkTensor, formatShape, getDefaultDtype, sizeEq } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { dropout, linear, pad, scaledDotProductAttention } from './functional.ts'
import { xavierNormal_, xavierUniform_, zeros_ } from './init.ts'
import { Linear } from './linear.ts'
import { checkInteger, checkNumber, readOptions, readRequired } from './options.ts'
import type { Named, Trailing } from './options.ts'
import { Parameter } from './parameter.ts'
import type { LayerFacts } from './layerFacts.ts'

/** Options of {@link MultiheadAttention}. */
export interface MultiheadAttentionOptions {
  /** Of the attention weights, in training. */
  readonly dropout?: number
  readonly bias?: boolean
  /** Append a learned key and value, the parameters biasK and biasV, to those of every sequence. */
  readonly addBiasKv?: boolean
  /** Append a key and a value of zeros to those of every sequence. */
  readonly addZeroAttn?: boolean
  /** Features of the keys; null (the default) means embedDim. */
  readonly kdim?: number | null
  /** Features of the values; null (the default) means embedDim. */
  readonly vdim?: number | null
  /** Inputs are [batch, length, embedDim] instead of [length, batch, embedDim]. */
  readonly batchFirst?: boolean
  readonly dtype?: DType
}

/** Options of {@link MultiheadAttention.forward}. Boolean masks are true where attention is NOT allowed (as in PyTorch, and unlike F.scaledDotProductAttention). */
export interface AttentionCallOptions {
  /** bool or floating [batch, source length], or [source length] for inputs without a batch. Boolean: true for padding. */
  readonly keyPaddingMask?: Tensor | null
  /** Return the attention weights too; default true. */
  readonly needWeights?: boolean
  /** bool or floating [target length, source length] or [batch * heads, target length, source length]. */
  readonly attnMask?: Tensor | null
  /** Return the weights' mean over heads; default true. */
  readonly averageAttnWeights?: boolean
  /** Says that `attnMask`, which must be given too, hides the future. The mask is used either way. */
  readonly isCausal?: boolean
}

type AttentionPositions = [
  dropout: number,
  bias: boolean,
  addBiasKv: boolean,
  addZeroAttn: boolean,
  kdim: number | null,
  vdim: number | null,
  batchFirst: boolean,
]

/**
 * Attention with several heads. `forward(query, key, value)` gives [output, weights]. PyTorch's `nn.MultiheadAttention`.
 *
 * Shapes: query [L, N, embedDim], key [S, N, kdim] and value [S, N, vdim], with N first if `batchFirst`, or without N; output like query. The weights are
 * [N, L, S], or [N, heads, L, S] if not averaged; `addBiasKv` and `addZeroAttn` add a column each.
 *
 * @throws ArgumentError unless `embedDim` is a multiple of `numHeads`, and ShapeError if inputs or masks do not fit.
 * @example new nn.MultiheadAttention(8, 2, { batchFirst: true }).call(x, x, x)[0].shape // [2, 3, 8], for x of that shape
 */
export class MultiheadAttention extends Module {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.MultiheadAttention' }

  readonly embedDim: number
  readonly numHeads: number
  readonly dropout: number
  readonly batchFirst: boolean
  readonly kdim: number
  readonly vdim: number
  readonly addZeroAttn: boolean
  /** Of shapes `[embedDim, embedDim]`, `[embedDim, kdim]` and `[embedDim, vdim]` if keys or values have other features than queries; else null. */
  qProjWeight: Parameter | null = null
  kProjWeight: Parameter | null = null
  vProjWeight: Parameter | null = null
  /** Shape `[3 * embedDim, embedDim]`: the rows of query, key and value. null if these have weights of their own. */
  inProjWeight: Parameter | null = null
  inProjBias: Parameter | null
  /** Shape `[1, 1, embedDim]`; null without `addBiasKv`. */
  biasK: Parameter | null
  biasV: Parameter | null
  readonly outProj: Linear

  constructor(embedDim: number, numHeads: number, ...options: Trailing<AttentionPositions, MultiheadAttentionOptions>)
  constructor(...args: Named<[['embedDim', number], ['numHeads', number]], Trailing<AttentionPositions, MultiheadAttentionOptions>>)
  constructor(...args: readonly unknown[]) {
    const [embedDim, numHeads, ...options] = readRequired<[embedDim: number, numHeads: number]>(
      'nn.MultiheadAttention',
      ['embedDim', 'numHeads'],
      args,
    )
    super()
    const where = 'nn.MultiheadAttention'
    const given = readOptions<Required<MultiheadAttentionOptions>>(
      where,
      {
        dropout: 0,
        bias: true,
        addBiasKv: false,
        addZeroAttn: false,
        kdim: null,
        vdim: null,
        batchFirst: false,
        dtype: getDefaultDtype(),
      },
      options,
    )
    checkInteger(where, 'embedDim', embedDim)
    checkInteger(where, 'numHeads', numHeads)
    checkNumber(where, 'dropout', given.dropout, 'a probability between 0 and 1', (v) => v >= 0 && v <= 1)
    if (embedDim % numHeads !== 0) throw new ArgumentError(`${where}: embedDim must be divisible by numHeads, got ${embedDim} and ${numHeads}.`)
    this.embedDim = embedDim
    this.numHeads = numHeads
    this.dropout = given.dropout
    this.batchFirst = given.batchFirst
    this.kdim = given.kdim ?? embedDim
    this.vdim = given.vdim ?? embedDim
    checkInteger(where, 'kdim', this.kdim)
    checkInteger(where, 'vdim', this.vdim)
    this.addZeroAttn = given.addZeroAttn
    const make = (...shape: number[]): Parameter => new Parameter(empty(shape, { dtype: given.dtype }))
    if (this.kdim === embedDim && this.vdim === embedDim) this.inProjWeight = make(3 * embedDim, embedDim)
    else {
      this.qProjWeight = make(embedDim, embedDim)
      this.kProjWeight = make(embedDim, this.kdim)
      this.vProjWeight = make(embedDim, this.vdim)
    }
    for (const weight of [this.inProjWeight, this.qProjWeight, this.kProjWeight, this.vProjWeight]) if (weight !== null) xavierUniform_(weight)
    this.inProjBias = given.bias ? new Parameter(zeros([3 * embedDim], { dtype: given.dtype })) : null
    this.outProj = new Linear(embedDim, embedDim, { bias: given.bias, dtype: given.dtype })
    if (this.outProj.bias !== null) zeros_(this.outProj.bias)
    this.biasK = given.addBiasKv ? make(1, 1, embedDim) : null
    this.biasV = given.addBiasKv ? make(1, 1, embedDim) : null
    for (const bias of [this.biasK, this.biasV]) if (bias !== null) xavierNormal_(bias)
  }

  /**
   * Attends from `query` to `key` and `value`. The weights are null with `needWeights: false`. Throws ShapeError if dimensions or features do not fit, and ArgumentError for
   * `isCausal` without a mask.
   */
  override forward(query: Tensor, key: Tensor, value: Tensor, options: AttentionCallOptions = {}): readonly [output: Tensor, weights: Tensor | null] {
    checkCount(this, arguments, 4)
    const where = 'nn.MultiheadAttention'
    const defaults: Required<AttentionCallOptions> = {
      keyPaddingMask: null,
      needWeights: true,
      attnMask: null,
      averageAttnWeights: true,
      isCausal: false,
    }
    const call = readOptions(`${where}.forward`, defaults, [options])
    for (const [name, x, features] of [
      ['query', query, this.embedDim],
      ['key', key, this.kdim],
      ['value', value, this.vdim],
    ] as const) {
      checkTensor(where, name, x)
      if ((x.ndim !== 2 && x.ndim !== 3) || x.ndim !== query.ndim || !sizeEq(x.symSizes.at(-1), features)) {
        throw new ShapeError(
          `${where}: ${name} must have 2 or 3 dimensions, as many as query, and ${features} features in the last; got shape ${formatShape(x.shape)}.`,
        )
      }
    }
    if (call.isCausal && call.attnMask === null)
      throw new ArgumentError(`${where}: isCausal only describes the mask; pass the mask too, as option 'attnMask'.`)
    const batched = query.ndim === 3
    const perHead = (x: Tensor): Tensor => this.heads(batched ? x : unsqueeze(x, this.batchFirst ? 0 : 1))
    const projected = this.project(query, key, value)
    const q = perHead(projected[0])
    const [batch, length, source] = [q.size(0), q.size(2), perHead(projected[1]).size(2)]
    const [k, v] = [this.extended(perHead(projected[1]), this.biasK), this.extended(perHead(projected[2]), this.biasV)]
    const mask = this.mask(call, q, source, k.size(2) - source)
    const rate = this.training ? this.dropout : 0
    let weights: Tensor | null = null
    let mixed: Tensor
    if (call.needWeights) {
      const scores = mul(matmul(q, k.transpose(-2, -1)), 1 / Math.sqrt(this.embedDim / this.numHeads))
      const attention = softmax(mask === null ? scores : add(scores, mask), -1)
      weights = rate > 0 ? dropout(attention, { p: rate, training: true }) : attention
      mixed = matmul(weights, v)
    } else mixed = scaledDotProductAttention(q, k, v, { attnMask: mask, dropoutP: rate })
    // [batch, heads, length, features] back to the layout of the input.
    const rows = this.batchFirst
      ? mixed.transpose(1, 2).reshape(batch, length, this.embedDim)
      : mixed.permute(2, 0, 1, 3).reshape(length, batch, this.embedDim)
    const output = this.outProj.call(rows)
    if (weights !== null && call.averageAttnWeights) weights = mean(weights, [1])
    if (batched) return [output, weights]
    return [squeeze(output, this.batchFirst ? 0 : 1), weights === null ? null : squeeze(weights, 0)]
  }

  private project(query: Tensor, key: Tensor, value: Tensor): readonly [q: Tensor, k: Tensor, v: Tensor] {
    const { embedDim, inProjWeight, inProjBias } = this
    if (inProjWeight !== null && query === key && key === value) {
      const all = linear(query, inProjWeight, inProjBias)
      const part = (i: number): Tensor => narrow(all, -1, i * embedDim, embedDim)
      return [part(0), part(1), part(2)]
    }
    const part = (x: Tensor, own: Parameter | null, i: number): Tensor => {
      const rows = (all: Tensor): Tensor => narrow(all, 0, i * embedDim, embedDim)
      const weight = own ?? (inProjWeight === null ? null : rows(inProjWeight))
      if (weight === null) throw new ArgumentError('nn.MultiheadAttention: the weights of the projections are missing.')
      return linear(x, weight, inProjBias === null ? null : rows(inProjBias))
    }
    return [part(query, this.qProjWeight, 0), part(key, this.kProjWeight, 1), part(value, this.vProjWeight, 2)]
  }

  /** [batch, heads, length, features of a head] */
  private heads(x: Tensor): Tensor {
    const split = x.reshape(x.size(0), x.size(1), this.numHeads, this.embedDim / this.numHeads)
    return this.batchFirst ? split.transpose(1, 2) : split.permute(1, 2, 0, 3)
  }

  /** Keys or values [batch, heads, length, features of a head] with those that addBiasKv and addZeroAttn append. */
  private extended(x: Tensor, bias: Parameter | null): Tensor {
    const one = [x.size(0), this.numHeads, 1, x.size(3)]
    const parts = [x]
    if (bias !== null) parts.push(bias.reshape(1, this.numHeads, 1, -1).expand(one))
    if (this.addZeroAttn) parts.push(zeros(one, { dtype: x.dtype }))
    return parts.length === 1 ? x : cat(parts, 2)
  }

  /** What to add to the scores [batch, heads, target, source + added]; null for nothing. Masks do not concern the added columns. */
  private mask({ keyPaddingMask, attnMask }: Required<AttentionCallOptions>, q: Tensor, source: number, added: number): Tensor | null {
    const [batch, heads, target] = [q.size(0), q.size(1), q.size(2)]
    const additive = (m: Tensor): Tensor => (m.dtype === 'bool' ? maskedFill(zeros(m.shape, { dtype: q.dtype }), m, -Infinity) : m)
    const wrong = (name: string, m: Tensor, expected: string): ShapeError =>
      new ShapeError(`nn.MultiheadAttention: ${name} has shape ${formatShape(m.shape)}; expected ${expected}.`)
    let total: Tensor | null = null
    if (attnMask !== null) {
      const full = attnMask.ndim === 3
      const expected = full ? [batch * heads, target, source] : [target, source]
      if (attnMask.shape.join() !== expected.join())
        throw wrong('attnMask', attnMask, `[${target}, ${source}] or [${batch * heads}, ${target}, ${source}]`)
      total = additive(full ? attnMask.reshape(batch, heads, target, source) : attnMask)
    }
    if (keyPaddingMask !== null) {
      const fits = keyPaddingMask.shape.join() === [batch, source].join() || (batch === 1 && keyPaddingMask.shape.join() === String(source))
      if (!fits) throw wrong('keyPaddingMask', keyPaddingMask, `[${batch}, ${source}]`)
      const padding = additive(keyPaddingMask).reshape(batch, 1, 1, source)
      total = total === null ? padding : add(total, padding)
    }
    return total === null || added === 0 ? total : pad(total, [0, added])
  }
}
