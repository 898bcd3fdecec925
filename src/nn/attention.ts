// Multi-head attention.
import { ArgumentError, ShapeError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { Module } from '../module/index.ts'
import { add, empty, maskedFill, matmul, mean, mul, narrow, softmax, squeeze, unsqueeze, zeros } from '../ops/index.ts'
import { checkTensor, formatShape, getDefaultDtype } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { dropout, linear, scaledDotProductAttention } from './functional.ts'
import { xavierUniform_, zeros_ } from './init.ts'
import { markLeaf } from './leaf.ts'
import { Linear } from './linear.ts'
import { checkInteger, checkNumber, readOptions } from './options.ts'
import type { Trailing } from './options.ts'
import { Parameter } from './parameter.ts'

/** Options of {@link MultiheadAttention}. */
export interface MultiheadAttentionOptions {
  /** Of the attention weights, in training. */
  readonly dropout?: number
  readonly bias?: boolean
  /** Inputs are [batch, length, embedDim] instead of [length, batch, embedDim]. */
  readonly batchFirst?: boolean
  readonly dtype?: DType
}

/** Options of {@link MultiheadAttention.forward}. Boolean masks are true where attention is NOT allowed (as in PyTorch, and unlike F.scaledDotProductAttention). */
export interface AttentionCallOptions {
  /** bool [batch, source length]: true for padding. */
  readonly keyPaddingMask?: Tensor | null
  /** Return the attention weights too; default true. */
  readonly needWeights?: boolean
  /** bool or floating [target length, source length] or [batch * heads, target length, source length]. */
  readonly attnMask?: Tensor | null
  /** Return the weights' mean over heads; default true. */
  readonly averageAttnWeights?: boolean
}

/** Attention with several heads. `forward(query, key, value)` gives [output, weights]. PyTorch's `nn.MultiheadAttention`. */
export class MultiheadAttention extends Module {
  readonly embedDim: number
  readonly numHeads: number
  readonly dropout: number
  readonly batchFirst: boolean
  /** Shape `[3 * embedDim, embedDim]`: the rows of query, key and value. */
  inProjWeight: Parameter
  inProjBias: Parameter | null
  readonly outProj: Linear

  constructor(embedDim: number, numHeads: number, ...options: Trailing<[dropout: number, bias: boolean], MultiheadAttentionOptions>) {
    super()
    const where = 'nn.MultiheadAttention'
    const given = readOptions<Required<MultiheadAttentionOptions>>(
      where,
      { dropout: 0, bias: true, batchFirst: false, dtype: getDefaultDtype() },
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
    this.inProjWeight = new Parameter(empty([3 * embedDim, embedDim], { dtype: given.dtype }))
    this.inProjBias = given.bias ? new Parameter(zeros([3 * embedDim], { dtype: given.dtype })) : null
    this.outProj = new Linear(embedDim, embedDim, { bias: given.bias, dtype: given.dtype })
    xavierUniform_(this.inProjWeight)
    if (this.outProj.bias !== null) zeros_(this.outProj.bias)
  }

  /** Attends from `query` to `key` and `value`, batched (see batchFirst) or [length, embedDim]. The weights are null with `needWeights: false`. */
  override forward(query: Tensor, key: Tensor, value: Tensor, options: AttentionCallOptions = {}): readonly [output: Tensor, weights: Tensor | null] {
    const defaults: Required<AttentionCallOptions> = { keyPaddingMask: null, needWeights: true, attnMask: null, averageAttnWeights: true }
    const call = readOptions('nn.MultiheadAttention.forward', defaults, [options])
    for (const [name, x] of [
      ['query', query],
      ['key', key],
      ['value', value],
    ] as const) {
      checkTensor('nn.MultiheadAttention', name, x)
      if ((x.ndim !== 2 && x.ndim !== 3) || x.ndim !== query.ndim || x.shape.at(-1) !== this.embedDim) {
        throw new ShapeError(
          `nn.MultiheadAttention: ${name} must have 2 or 3 dimensions, as many as query, and ${this.embedDim} features in the last; got shape ${formatShape(x.shape)}.`,
        )
      }
    }
    const batched = query.ndim === 3
    const perHead = (x: Tensor): Tensor => this.heads(batched ? x : unsqueeze(x, this.batchFirst ? 0 : 1))
    const projected = this.project(query, key, value)
    const [q, k, v] = [perHead(projected[0]), perHead(projected[1]), perHead(projected[2])]
    const mask = this.mask(call, q, k)
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
    const [batch, length] = [mixed.size(0), mixed.size(2)]
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
    if (query === key && key === value) {
      const all = linear(query, inProjWeight, inProjBias)
      const part = (i: number): Tensor => narrow(all, -1, i * embedDim, embedDim)
      return [part(0), part(1), part(2)]
    }
    const part = (x: Tensor, i: number): Tensor => {
      const bias = inProjBias === null ? null : narrow(inProjBias, 0, i * embedDim, embedDim)
      return linear(x, narrow(inProjWeight, 0, i * embedDim, embedDim), bias)
    }
    return [part(query, 0), part(key, 1), part(value, 2)]
  }

  /** [batch, heads, length, features of a head] */
  private heads(x: Tensor): Tensor {
    const split = x.reshape(x.size(0), x.size(1), this.numHeads, this.embedDim / this.numHeads)
    return this.batchFirst ? split.transpose(1, 2) : split.permute(1, 2, 0, 3)
  }

  /** What to add to the scores [batch, heads, target, source]; null for nothing. */
  private mask({ keyPaddingMask, attnMask }: Required<AttentionCallOptions>, q: Tensor, k: Tensor): Tensor | null {
    const [batch, heads, target, source] = [q.size(0), q.size(1), q.size(2), k.size(2)]
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
      if (keyPaddingMask.shape.join() !== [batch, source].join()) throw wrong('keyPaddingMask', keyPaddingMask, `[${batch}, ${source}]`)
      const padding = additive(keyPaddingMask).reshape(batch, 1, 1, source)
      total = total === null ? padding : add(total, padding)
    }
    return total
  }
}

markLeaf(MultiheadAttention)
