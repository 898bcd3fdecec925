// Distances and similarities of vectors.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { broadcastShapes, formatShape, sizeEq, wrapDim, sizeNumber } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { add, div, maximum, mul, sub } from '../pointwise/arithmetic.ts'
import { scalarTensor } from '../create/creation.ts'
import { constantIndices } from '../view/indices.ts'
import { pNorm } from '../reduction/mean.ts'
import { sum } from '../reduction/sum.ts'
import { sizeAt } from '../shared/shapes.ts'
import { indexSelect } from '../view/indexing.ts'
import { unsqueeze } from '../view/reshape.ts'
import { expand } from '../view/windows.ts'

const F = 'torch.nn.functional'

/**
 * The cosine of the angle between vectors along `dim`; lengths below `eps` count as `eps`. PyTorch's `F.cosine_similarity`.
 *
 * Shapes: `x1` and `x2` broadcast; the result lacks the dimension `dim`.
 *
 * @throws ShapeError if the shapes do not broadcast, or `dim` is out of range.
 * @example F.cosineSimilarity(torch.tensor([[3, 4]]), torch.tensor([[4, 3]])).toArray() // [0.96]
 */
export const cosineSimilarity: Op['cosineSimilarity'] = defineOp({
  schema: 'cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (x1, x2, dim, eps) => {
    const op = `${F}.cosine_similarity`
    const shape = broadcastShapes(op, x1.symSizes, x2.symSizes)
    const at = wrapDim(op, dim, shape.length)
    // A vector that broadcasting repeats along `dim` is that long.
    const whole = (x: Tensor): Tensor => (x.ndim === shape.length && sizeEq(x.symSizes[at], shape[at]) ? x : expand(x, shape))
    const [a, b] = [whole(x1), whole(x2)]
    const limited = (t: Tensor): Tensor => maximum(pNorm(op, t, 2, [at], true), scalarTensor(eps, { dtype: t.dtype }))
    return sum(mul(div(a, limited(a)), div(b, limited(b))), [at])
  },
})

/**
 * The p-norm of the differences of vectors along the last dimension, to which `eps` is added. PyTorch's `F.pairwise_distance`.
 *
 * Shapes: `x1` and `x2` broadcast; the result lacks the last dimension, or has it with size 1 for `keepdim`.
 *
 * @throws ShapeError if the shapes do not broadcast.
 * @example F.pairwiseDistance(torch.tensor([[3, 4]]), torch.tensor([[0, 0]]), { eps: 0 }).toArray() // [5]
 */
export const pairwiseDistance: Op['pairwiseDistance'] = defineOp({
  schema: 'pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (x1, x2, p, eps, keepdim) => pNorm(`${F}.pairwise_distance`, add(sub(x1, x2), eps), p, [-1], keepdim),
})

function checkVectors(op: string, x: Tensor): void {
  if (x.ndim < 2) throw new ShapeError(`${op}: expected vectors as rows of at least 2 dimensions, got shape ${formatShape(x.symSizes)}.`)
}

export interface CdistOptions {
  readonly p?: number
  /** How PyTorch computes Euclidean distances. It changes nothing here: they are always the norms of the differences. */
  readonly computeMode?: string
}

const COMPUTE_MODES: readonly string[] = ['use_mm_for_euclid_dist_if_necessary', 'use_mm_for_euclid_dist', 'donot_use_mm_for_euclid_dist']

/**
 * The p-norm distance of each row of `x1` from each row of `x2`. PyTorch's `torch.cdist`.
 *
 * Shapes: [.., P, M] and [.., R, M] give [.., P, R]; the other dimensions broadcast.
 *
 * @throws ShapeError if the rows have different lengths.
 * @throws ArgumentError if `p` is negative, or for an unknown `computeMode`.
 * @example torch.cdist(torch.tensor([[0, 0]]), torch.tensor([[3, 4], [0, 1]])).toArray() // [[5, 1]]
 */
export const cdist: OpFunction<(x1: Tensor, x2: Tensor, p?: number | CdistOptions, computeMode?: string) => Tensor> = defineOp({
  schema: "cdist(Tensor x1, Tensor x2, float p=2.0, str compute_mode='use_mm_for_euclid_dist_if_necessary') -> Tensor",
  autocast: 'float32',
  decompose: (x1, x2, p, computeMode) => {
    if (!COMPUTE_MODES.includes(computeMode))
      throw new ArgumentError(`torch.cdist: compute_mode must be one of ${COMPUTE_MODES.join(', ')}, got ${valueText(computeMode)}.`)
    checkVectors('torch.cdist', x1)
    checkVectors('torch.cdist', x2)
    if (!(p >= 0)) throw new ArgumentError(`torch.cdist: p must not be negative, got ${p}.`)
    if (!sizeEq(sizeAt(x1.symSizes, -1), sizeAt(x2.symSizes, -1)))
      throw new ShapeError(`torch.cdist: rows must have the same length, got shapes ${formatShape(x1.symSizes)} and ${formatShape(x2.symSizes)}.`)
    return pNorm('torch.cdist', sub(unsqueeze(x1, -2), unsqueeze(x2, -3)), p, [-1], false)
  },
})

/**
 * The p-norm distances of all pairs of different rows. PyTorch's `F.pdist`.
 *
 * Shape: [N, M] gives [N (N - 1) / 2]: rows 0 and 1, 0 and 2, …
 *
 * @throws ShapeError unless `self` has 2 dimensions.
 * @example F.pdist(torch.tensor([[0, 0], [3, 4], [0, 1]])).toArray() // [5, 1, 4.242641]
 */
export const pdist: Op['pdist'] = defineOp({
  schema: 'pdist(Tensor self, float p=2.0) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (self, p) => {
    if (self.ndim !== 2) throw new ShapeError(`${F}.pdist: expected 2 dimensions, got shape ${formatShape(self.symSizes)}.`)
    const n = sizeNumber(sizeAt(self.symSizes, 0))
    const pairs = Array.from({ length: n }, (_, i) => Array.from({ length: n - i - 1 }, (__, j) => [i, i + 1 + j] as const)).flat()
    const rows = (side: 0 | 1): Tensor => indexSelect(self, 0, constantIndices(pairs.map((pair) => pair[side])))
    return pNorm(`${F}.pdist`, sub(rows(0), rows(1)), p, [-1], false)
  },
})
