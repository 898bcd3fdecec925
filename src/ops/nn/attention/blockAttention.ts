// Attention as a primitive: its kernels, where they take the call, go through the scores in blocks, and the gradients compute them once more from the logarithms of the rows' sums.
import { dispatchState } from '../../../dispatch/index.ts'
import { InternalError, ShapeError } from '../../../errors/index.ts'
import { formatShape, sameShape, sizeEq, sizeLess, sizeMod, sizeFloorDiv, sizeNumber } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import { rangeOf } from '../../create/creation.ts'
import { defineOp } from '../../define/defineOp.ts'
import { lateOperator } from '../../define/late.ts'
import type { Op } from '../../generated/signatures.ts'
import { checkAdmits } from '../../eager/admittedTypes.ts'
import { matmul } from '../../linalg/matmul.ts'
import { add, mul, sub } from '../../pointwise/arithmetic.ts'
import { to } from '../../pointwise/cast.ts'
import { eq, gt, logicalNot } from '../../pointwise/comparison.ts'
import { maskedFill } from '../../pointwise/select.ts'
import { amax, any } from '../../reduction/extremes.ts'
import { logsumexp, softmax } from '../../reduction/softmax.ts'
import { sum, sumToSize } from '../../reduction/sum.ts'
import { checkOperand, sizeAt } from '../../shared/shapes.ts'
import { repeatInterleave } from '../../view/arrange.ts'
import { transpose } from '../../view/permute.ts'
import { reshape } from '../../view/reshape.ts'
import { attentionBackwardByBlocks, attentionByBlocks, isExpandable, takesBlocks } from './attentionKernel.ts'
import type { Attention } from './attentionKernel.ts'
import { narrowTo, wideFor } from '../wide.ts'

const NAME = 'torch.ops.tensorfx.block_attention'

/** Each head of `key`, or `value`, as often as `query` has heads for it. */
export function forHeads(query: Tensor, key: Tensor): Tensor {
  const [heads, own] = [query.symSizes.at(-3) ?? 1, key.symSizes.at(-3) ?? 1]
  return sizeEq(heads, own) ? key : repeatInterleave(key, sizeNumber(sizeFloorDiv(heads, own)), -3)
}

/** What decides the scores. */
type Scored = Omit<Attention, 'value'>

/** The scores, scaled and masked. The keys have as many heads as the queries. */
function scoresOf({ query, key, mask, isCausal, scale }: Scored): Tensor {
  const scores = mul(matmul(query, transpose(key, -2, -1)), scale)
  if (isCausal) {
    const [rows, cols] = [sizeAt(query.symSizes, -2), sizeAt(key.symSizes, -2)]
    const hidden = gt(reshape(rangeOf(0, 1, cols, 'int32'), [1, cols]), reshape(rangeOf(0, 1, rows, 'int32'), [rows, 1]))
    return maskedFill(scores, hidden, -Infinity)
  }
  if (mask === null) return scores
  return mask.dtype === 'bool' ? maskedFill(scores, logicalNot(mask), -Infinity) : add(scores, mask)
}

/** The rows that a mask may hide as a whole. */
const hiddenRows = (mask: Tensor): Tensor => (mask.dtype === 'bool' ? logicalNot(any(mask, -1, true)) : eq(amax(mask, -1, true), -Infinity))

/** The softmax of the scores. Weights of rows that the mask hides as a whole are 0, not NaN. */
export function weightsOf(scored: Scored): Tensor {
  const [scores, { mask }] = [scoresOf(scored), scored]
  if (mask === null) return softmax(scores, -1)
  const hidden = hiddenRows(mask)
  return maskedFill(softmax(maskedFill(scores, hidden, 0), -1), hidden, 0)
}

function check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | null): void {
  const [lead, own] = [query.symSizes.slice(0, -2), key.symSizes.slice(0, -2)]
  const [heads, owners] = [lead.at(-1) ?? 1, own.at(-1) ?? 1]
  const isSame =
    sameShape(own, value.symSizes.slice(0, -2)) &&
    sameShape(lead.slice(0, -1), own.slice(0, -1)) &&
    sizeLess(0, owners) &&
    sizeEq(sizeMod(heads, owners), 0)
  const scores = [...query.symSizes.slice(0, -1), key.symSizes.at(-2) ?? 0]
  if (
    ![query, key, value].every(({ ndim }) => ndim >= 2 && ndim === query.ndim) ||
    !isSame ||
    !sizeEq(query.symSizes.at(-1), key.symSizes.at(-1)) ||
    !sizeEq(key.symSizes.at(-2), value.symSizes.at(-2)) ||
    (mask !== null && !isExpandable(mask.symSizes, scores))
  )
    throw new ShapeError(
      `${NAME}: expected query [.., L, E], key [.., S, E], value [.., S, V] and a mask that broadcasts to [.., L, S], got shapes ${[query, key, value, ...(mask === null ? [] : [mask])].map((t) => formatShape(t.symSizes)).join(', ')}.`,
    )
  checkAdmits(NAME, 'floating', query.dtype)
  for (const [name, operand] of Object.entries({ key, value, mask })) checkOperand(NAME, name, operand, operand?.symSizes ?? [], query.dtype)
}

/** The same for the backward, whose kernels read the gradient and both results of the forward too. */
function checkBackward(
  { query, key, value, mask }: Omit<Attention, 'isCausal' | 'scale'>,
  { grad, out, logsumexp }: Readonly<Record<'grad' | 'out' | 'logsumexp', Tensor>>,
): void {
  check(query, key, value, mask)
  const rows = query.symSizes.slice(0, -1)
  const shape = [...rows, sizeAt(value.symSizes, -1)]
  for (const [name, operand] of Object.entries({ grad, out })) checkOperand(NAME, name, operand, shape, query.dtype)
  checkOperand(NAME, 'logsumexp', logsumexp, rows, query.dtype)
}

type Gradients = readonly [query: Tensor, key: Tensor, value: Tensor, mask: Tensor | null]

/** The gradients, with operators. */
function formula(grad: Tensor, { query, key, value, mask, isCausal, scale }: Attention): Gradients {
  const [k, v] = [forHeads(query, key), forHeads(query, value)]
  const weights = weightsOf({ query, key: k, mask, isCausal, scale })
  const weighted = mul(weights, matmul(grad, transpose(v, -2, -1)))
  const slopes = sub(weighted, mul(weights, sum(weighted, -1, true)))
  const shared = (gradient: Tensor, like: Tensor): Tensor => {
    if (sameShape(gradient.symSizes, like.symSizes)) return gradient
    const own = sizeAt(like.symSizes, -3)
    const groups = sizeFloorDiv(sizeAt(gradient.symSizes, -3), own)
    return sum(reshape(gradient, [...gradient.symSizes.slice(0, -3), own, groups, ...gradient.symSizes.slice(-2)]), -3)
  }
  const scaled = mul(slopes, scale)
  return [
    matmul(scaled, k),
    shared(matmul(transpose(scaled, -2, -1), query), key),
    shared(matmul(transpose(weights, -2, -1), grad), value),
    mask === null ? null : sumToSize(slopes, mask.symSizes),
  ]
}

/**
 * The gradients of attention: [query, key, value]. Internal; PyTorch's `aten._scaled_dot_product_flash_attention_for_cpu_backward`.
 *
 * Shapes: those of `query`, `key` and `value`.
 *
 * @throws ShapeError if the sizes do not fit.
 * @throws DTypeError unless the tensors have the same floating dtype.
 * @example torch.ops.tensorfx.blockAttentionBackward(torch.ones([16, 8]), torch.ones([16, 8]), torch.ones([2, 8]), torch.ones([2, 8]), null, torch.ones([16, 8]), torch.full([16], 8.693147), false, 1)[2].sum().item() // 128
 */
export const blockAttentionBackward: Op['blockAttentionBackward'] = defineOp({
  schema:
    'block_attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor out, Tensor logsumexp, bool is_causal, float scale) -> (Tensor, Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  tags: ['fusedKernel'],
  meta: (grad, query, key, value, mask, out, logs) => {
    checkBackward({ query, key, value, mask }, { grad, out, logsumexp: logs })
    return [query, key, value].map((t) => ({ shape: t.symSizes, dtype: t.dtype }))
  },
  halvesInFloat32: true,
  kernel: (grad, query, key, value, mask, out, logs, isCausal, scale): readonly [Tensor, Tensor, Tensor] => {
    const attention = { query, key, value, mask, isCausal, scale }
    checkBackward(attention, { grad, out, logsumexp: logs })
    const byBlocks = takesBlocks(attention) ? attentionBackwardByBlocks({ ...attention, grad, out, logs }) : null
    if (byBlocks !== null) return byBlocks
    const [ofQuery, ofKey, ofValue] = formula(grad, attention)
    return [ofQuery, ofKey, ofValue]
  },
  decompose: (grad, query, key, value, mask, _out, _logs, isCausal, scale) => {
    const wide = wideFor(query)
    const [ofQuery, ofKey, ofValue] = formula(wide(grad), {
      query: wide(query),
      key: wide(key),
      value: wide(value),
      mask: wide(mask),
      isCausal,
      scale,
    })
    return narrowTo(query, [ofQuery, ofKey, ofValue])
  },
  // The derivative of blockAttention uses the formula itself if it has to be differentiated.
  derivative: () => {
    throw new InternalError('block_attention_backward is never recorded')
  },
})

/** The result and the logarithms of the rows' sums, with operators. */
function composed({ query, key, value, ...rest }: Attention): readonly [result: Tensor, logs: Tensor] {
  const { mask } = rest
  const scored = { query, key: forHeads(query, key), ...rest }
  const logs = logsumexp(scoresOf(scored), -1)
  const isHidden = mask === null ? null : reshape(hiddenRows(mask), mask.symSizes.slice(0, -1))
  return [matmul(weightsOf(scored), forHeads(query, value)), isHidden === null ? logs : maskedFill(logs, isHidden, Infinity)]
}

/**
 * Attention with what its backward needs: [result, the logarithm of the sum of the exponentials of each row's scores]. The logarithm is Infinity where the mask, which is
 * added to the scores, hides a row as a whole. The gradients are those of the result. Internal; PyTorch's `aten._scaled_dot_product_flash_attention_for_cpu`.
 *
 * Shapes: query [.., L, E], key [.., S, E] and value [.., S, V] give [.., L, V] and [.., L]. The leading dimensions are the same, but the last one of `key` and `value` may
 * divide that of `query`; `mask` broadcasts to [.., L, S].
 *
 * @throws ShapeError if the sizes do not fit.
 * @throws DTypeError unless the tensors have the same floating dtype.
 * @example torch.ops.tensorfx.blockAttention(torch.ones([16, 8]), torch.ones([2, 8]), torch.ones([2, 8]), null, false, 1)[0].sum().item() // 128
 */
export const blockAttention: Op['blockAttention'] = defineOp({
  schema: 'block_attention(Tensor query, Tensor key, Tensor value, Tensor? mask, bool is_causal, float scale) -> (Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  tags: ['fusedKernel'],
  meta: (query, key, value, mask) => {
    check(query, key, value, mask)
    const rows = query.symSizes.slice(0, -1)
    return [
      { shape: [...rows, sizeAt(value.symSizes, -1)], dtype: query.dtype },
      { shape: rows, dtype: query.dtype },
    ]
  },
  halvesInFloat32: true,
  kernel: (query, key, value, mask, isCausal, scale): readonly [Tensor, Tensor] => {
    check(query, key, value, mask)
    const attention = { query, key, value, mask, isCausal, scale }
    return (takesBlocks(attention) ? attentionByBlocks(attention) : null) ?? composed(attention)
  },
  decompose: (query, key, value, mask, isCausal, scale) => {
    const wide = wideFor(query)
    const [result, logs] = composed({ query: wide(query), key: wide(key), value: wide(value), mask: wide(mask), isCausal, scale })
    return [to(result, query.dtype), to(logs, query.dtype)]
  },
  derivative: ([g], { args: [query, key, value, mask, isCausal, scale], outputs: [out, logs], needs }) => {
    if (g === null) return [null, null, null, null, null, null]
    if (dispatchState.gradEnabled || needs[3] === true) return [...formula(g, { query, key, value, mask, isCausal, scale }), null, null]
    return [
      ...lateOperator<Op['blockAttentionBackward']>('torch.ops.tensorfx.block_attention_backward')(
        g,
        query,
        key,
        value,
        mask,
        out,
        logs,
        isCausal,
        scale,
      ),
      null,
      null,
      null,
    ]
  },
})
