// Functions of torch that torch.nn.functional and torch.linalg have with other arguments: each is computed by the operator there.
import { ShapeError } from '../../errors/index.ts'
import { formatShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { ones, zeros } from '../create/creation.ts'
import { cholesky } from '../linalg/cholesky.ts'
import { qr, svd } from '../linalg/decompositions.ts'
import { pinv } from '../linalg/pinv.ts'
import { solveTriangular } from '../linalg/solve.ts'
import { batchNorm } from '../nn/norm/batchNorm.ts'
import { dropout } from '../nn/dropout.ts'
import { embedding } from '../nn/embedding/embedding.ts'
import { instanceNorm } from '../nn/norm/groupNorm.ts'
import { adaptiveMaxPool1d } from '../nn/pool/adaptivePool.ts'
import { maxPool1d } from '../nn/pool/pool3d.ts'
import { mul } from '../pointwise/arithmetic.ts'
import { sizeAt } from '../shared/shapes.ts'
import { transpose } from '../view/permute.ts'
import { clone } from '../view/reshape.ts'

/**
 * {@link cholesky}, with `upper` by position. PyTorch's `torch.cholesky`.
 *
 * Shape: [.., n, n], and so the result.
 *
 * @throws ShapeError unless the matrices are square.
 * @throws ArgumentError if one of them is not positive-definite.
 * @example torch.cholesky(torch.tensor([[4, 2], [2, 5]]), true).toArray() // [[2, 1], [0, 2]]
 */
export const torchCholesky: Op['torchCholesky'] = defineOp({
  schema: 'cholesky(Tensor self, bool upper=False) -> Tensor',
  method: true,
  autocast: 'float32',
  decompose: (self, upper) => cholesky(self, { upper }),
})

/**
 * {@link qr} with as many columns of Q as the smaller size, or a square Q unless `some`. PyTorch's `torch.qr`.
 *
 * Shapes: [.., m, n] gives [.., m, k] and [.., k, n], k being the smaller size, or m unless `some`.
 *
 * @throws ShapeError unless `self` holds matrices.
 * @example torch.qr(torch.tensor([[3, 0], [4, 5]]))[1].toArray() // [[-5, -4], [0, 3]]
 */
export const torchQr: Op['torchQr'] = defineOp({
  schema: 'qr(Tensor self, bool some=True) -> (Tensor, Tensor)',
  method: true,
  autocast: 'float32',
  decompose: (self, some) => qr(self, some ? 'reduced' : 'complete'),
})

/**
 * {@link svd} with the right vectors as columns: [U, S, V]. Unless `some`, U and V are square; unless `computeUv`, they are zeros. PyTorch's `torch.svd`.
 *
 * Shapes: [.., m, n] gives [.., m, k], [.., k] and [.., n, k], k being the smaller size; square ones are [.., m, m] and [.., n, n].
 *
 * @throws ShapeError unless `self` holds matrices.
 * @throws DTypeError unless it is floating.
 * @example torch.svd(torch.tensor([[3, 0], [0, 4]]))[1].toArray() // [4, 3]
 */
export const torchSvd: Op['torchSvd'] = defineOp({
  schema: 'svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor, Tensor, Tensor)',
  method: true,
  autocast: 'float32',
  decompose: (self, some, computeUv) => {
    const [u, s, vh] = svd(self, !some && computeUv)
    if (computeUv) return [u, s, transpose(vh, -2, -1)]
    const square = (dim: number): Tensor =>
      zeros([...self.symSizes.slice(0, -2), sizeAt(self.symSizes, dim), sizeAt(self.symSizes, dim)], { dtype: s.dtype })
    return [square(-2), s, square(-1)]
  },
})

/**
 * `torch.linalg.pinv`, where singular values of at most `rcond` times the greatest one count as 0. PyTorch's `torch.pinverse`.
 *
 * Shape: [.., m, n] gives [.., n, m].
 *
 * @throws ShapeError unless `self` holds matrices.
 * @example torch.pinverse(torch.tensor([[2, 0], [0, 4]])).toArray() // [[0.5, 0], [0, 0.25]]
 */
export const pinverse: Op['pinverse'] = defineOp({
  schema: 'pinverse(Tensor self, float rcond=1e-15) -> Tensor',
  method: true,
  autocast: 'float32',
  decompose: (self, rcond) => pinv(self, { rtol: rcond }),
})

/**
 * Solves A X = `self` (or A^T X = `self`) for a triangular A: [X, a copy of A]. PyTorch's `torch.triangular_solve`; see `torch.linalg.solveTriangular`.
 *
 * Shapes: `self` is [.., n, k], A [.., n, n]; the results have these shapes.
 *
 * @throws ShapeError if the shapes do not fit.
 * @example torch.triangularSolve(torch.tensor([[2], [4]]), torch.tensor([[1, 1], [0, 2]]))[0].toArray() // [[0], [2]]
 */
export const torchTriangularSolve: Op['torchTriangularSolve'] = defineOp({
  schema: 'triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor, Tensor)',
  method: true,
  autocast: 'float32',
  decompose: (self, a, upper, turned, unitriangular) => [
    solveTriangular(turned ? transpose(a, -2, -1) : a, self, { upper: upper !== turned, unitriangular }),
    clone(a),
  ],
})

/**
 * {@link batchNorm} with the arguments in the order of the function in torch: weight and bias come first. PyTorch's `torch.batch_norm`.
 *
 * Shape: that of `input`, [N, C, ..]; weight, bias and the running statistics are [C].
 *
 * @throws ShapeError if they do not fit.
 * @throws ArgumentError if running statistics are missing and `training` is false.
 * @example torch.batchNorm(torch.tensor([[1], [3]]), null, null, null, null, true, 0.1, 0, false).toArray() // [[-1], [1]]
 */
export const torchBatchNorm: Op['torchBatchNorm'] = defineOp({
  schema:
    'batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled=False) -> Tensor',
  decompose: (input, weight, bias, mean, variance, training, momentum, eps) =>
    batchNorm(input, mean, variance, { weight, bias, training, momentum, eps }),
})

/**
 * {@link instanceNorm} with the arguments in the order of the function in torch: weight and bias come first. PyTorch's `torch.instance_norm`.
 *
 * Shape: that of `input`, [N, C, ..]; weight, bias and the running statistics are [C].
 *
 * @throws ShapeError if they do not fit.
 * @example torch.instanceNorm(torch.tensor([[[1, 3]]]), null, null, null, null, true, 0.1, 0, false).toArray() // [[[-1, 1]]]
 */
export const torchInstanceNorm: Op['torchInstanceNorm'] = defineOp({
  schema:
    'instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled=False) -> Tensor',
  decompose: (input, weight, bias, mean, variance, useInputStats, momentum, eps) =>
    instanceNorm(input, mean, variance, weight, bias, useInputStats, momentum, eps),
})

/**
 * {@link embedding} with the table first; a `paddingIdx` of -1 means none. PyTorch's `torch.embedding`.
 *
 * Shapes: `weight` is [n, d], and the result has the shape of `indices` and d at the end.
 *
 * @throws ShapeError unless `weight` is a matrix.
 * @throws ArgumentError if an index is out of range.
 * @example torch.embedding(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1]).long()).toArray() // [[3, 4]]
 */
export const torchEmbedding: Op['torchEmbedding'] = defineOp({
  schema: 'embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor',
  decompose: (weight, indices, paddingIdx, scaleGradByFreq) =>
    embedding(indices, weight, { paddingIdx: paddingIdx === -1 ? null : paddingIdx, scaleGradByFreq }),
})

/**
 * Sets whole channels to 0 with probability `p` and scales the others by 1 / (1 - p) if `train`. PyTorch's `torch.feature_dropout`.
 *
 * Shape: that of `input`, [N, C, ..].
 *
 * @throws ShapeError for fewer than 2 dimensions, ArgumentError unless 0 <= p <= 1.
 * @example torch.featureDropout(torch.ones([1, 2, 1]), 1, true).sum().item() // 0
 */
export const featureDropout: Op['featureDropout'] = defineOp({
  schema: 'feature_dropout(Tensor input, float p, bool train) -> Tensor',
  tags: ['random'],
  decompose: (input, p, train) => {
    if (input.ndim < 2) throw new ShapeError(`torch.feature_dropout: expected [N, C, ..], got shape ${formatShape(input.symSizes)}.`)
    const mask = ones(
      input.symSizes.map((size, d) => (d < 2 ? size : 1)),
      { dtype: input.dtype },
    )
    return mul(input, dropout(mask, p, train))
  },
})

/**
 * The maxima over windows of a line, chosen so that there are `outputSize` of them, and their positions. PyTorch's `torch.adaptive_max_pool1d`.
 *
 * Shapes: both are [.., outputSize] for [.., L].
 *
 * @throws ShapeError unless the input has 2 or 3 dimensions, ArgumentError if the size is not positive.
 * @example torch.adaptiveMaxPool1d(torch.tensor([[1, 3, 2, 4]]), 2).map((t) => t.toArray()) // [[[3, 4]], [[1, 3]]]
 */
export const torchAdaptiveMaxPool1d: Op['torchAdaptiveMaxPool1d'] = defineOp({
  schema: 'adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)',
  decompose: (self, outputSize) => adaptiveMaxPool1d(self, outputSize, { returnIndices: true }),
})

/**
 * The maxima over windows of a line, and their positions. PyTorch's `torch.max_pool1d_with_indices`.
 *
 * Shapes: both are [.., length] for [.., L].
 *
 * @throws ShapeError unless the input has 2 or 3 dimensions.
 * @example torch.maxPool1dWithIndices(torch.tensor([[1, 3, 2, 4]]), 2).map((t) => t.toArray()) // [[[3, 4]], [[1, 3]]]
 */
export const maxPool1dWithIndices: Op['maxPool1dWithIndices'] = defineOp({
  schema:
    'max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[]? stride=None, int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)',
  decompose: (self, kernelSize, stride, padding, dilation, ceilMode) =>
    maxPool1d(self, kernelSize, { stride, padding, dilation, ceilMode, returnIndices: true }),
})
