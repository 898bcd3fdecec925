// Activations composed of other operators: selu, celu, mish, glu and more.
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import type { DType } from '../../../kernels/index.ts'
import { formatShape, sizeEq, sizeMod } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import type { Op } from '../../generated/signatures.ts'
import { chunk } from '../../join/join.ts'
import { elu, leakyRelu } from '../../pointwise/activation.ts'
import { abs, add, div, mul, neg, sub } from '../../pointwise/arithmetic.ts'
import { gt } from '../../pointwise/comparison.ts'
import { clamp, where } from '../../pointwise/select.ts'
import { softplus } from '../../pointwise/softplus.ts'
import { sigmoid, tanh } from '../../pointwise/unary.ts'
import { lateOperator } from '../../define/late.ts'
import type { randLike as RandLike } from '../../random/random.ts'
import { pNorm } from '../../reduction/mean.ts'
import { softmax } from '../../reduction/softmax.ts'
import type { SoftmaxDim } from '../../reduction/softmax.ts'
import { castFirst } from '../../reduction/sum.ts'
import { dimAndSize } from '../../shared/shapes.ts'

// The constants of the paper on self-normalizing networks, to float64.
const SELU_ALPHA = 1.6732632423543772
const SELU_SCALE = 1.0507009873554805

/**
 * scale * (x where it is positive, else alpha * (e^x - 1)), with the constants of self-normalizing networks. PyTorch's `F.selu`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws DTypeError unless `self` is floating.
 * @example F.selu(torch.tensor([-1, 2])).toArray() // [-1.111331, 2.101402]
 */
export const functionalSelu: Op['functionalSelu'] = defineOp({
  schema: 'selu(Tensor self) -> Tensor',
  namespace: 'torch.nn.functional',
  inPlace: 'function',
  decompose: (self) => mul(elu(self, SELU_ALPHA), SELU_SCALE),
})

/**
 * x where it is positive, else alpha * (e^(x / alpha) - 1), elementwise. PyTorch's `F.celu`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws ArgumentError if `alpha` is 0.
 * @example F.celu(torch.tensor([-1, 2]), 2).toArray() // [-0.786939, 2]
 */
export const functionalCelu: Op['functionalCelu'] = defineOp({
  schema: 'celu(Tensor self, float alpha=1.0) -> Tensor',
  namespace: 'torch.nn.functional',
  inPlace: 'function',
  decompose: (self, alpha) => {
    if (alpha === 0) throw new ArgumentError('torch.nn.functional.celu: alpha must not be 0.')
    return mul(elu(div(self, alpha)), alpha)
  },
})

/**
 * x * tanh(softplus(x)), elementwise. PyTorch's `F.mish`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws DTypeError unless `self` is floating.
 * @example F.mish(torch.tensor([0, 1])).toArray() // [0, 0.865098]
 */
export const mish: Op['mish'] = defineOp({
  schema: 'mish(Tensor self) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (self) => mul(self, tanh(softplus(self))),
})

/**
 * x / (1 + |x|), elementwise. PyTorch's `F.softsign`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws DTypeError for bools.
 * @example F.softsign(torch.tensor([-1, 3])).toArray() // [-0.5, 0.75]
 */
export const softsign: Op['softsign'] = defineOp({
  schema: 'softsign(Tensor self) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (self) => div(self, add(abs(self), 1)),
})

/**
 * x - tanh(x), elementwise. PyTorch's `F.tanhshrink`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example F.tanhshrink(torch.tensor([0, 1])).toArray() // [0, 0.238406]
 */
export const tanhshrink: Op['tanhshrink'] = defineOp({
  schema: 'tanhshrink(Tensor self) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (self) => sub(self, tanh(self)),
})

/**
 * The softmax of -x along a dimension. PyTorch's `F.softmin`.
 *
 * Shape: that of `self`.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example F.softmin(torch.tensor([0, 0]), 0).toArray() // [0.5, 0.5]
 */
export const softmin: OpFunction<(self: Tensor, dim: number | SoftmaxDim, options?: { readonly dtype?: DType | null }) => Tensor> = defineOp({
  schema: 'softmin(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor',
  namespace: 'torch.nn.functional',
  prepare: castFirst,
  decompose: (self, dim) => softmax(neg(self), dim),
})

/**
 * The first half of a dimension times the sigmoid of the second half. PyTorch's `F.glu`.
 *
 * Shape: that of `self`, with half the size in `dim`.
 *
 * @throws ShapeError if the size of `dim` is odd.
 * @example F.glu(torch.tensor([1, 2, 0, 0])).toArray() // [0.5, 1]
 */
export const glu: Op['glu'] = defineOp({
  schema: 'glu(Tensor self, int dim=-1) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (self, dim) => {
    const [at, size] = dimAndSize('torch.nn.functional.glu', self, dim)
    if (!sizeEq(sizeMod(size, 2), 0))
      throw new ShapeError(`torch.nn.functional.glu: the size of dimension ${dim} must be even, got shape ${formatShape(self.symSizes)}.`)
    const [value = self, gate = self] = chunk(self, 2, at)
    return mul(value, sigmoid(gate))
  },
})

/**
 * x where it is positive, else x times a slope: while training, a random one between `lower` and `upper` for each element, otherwise their mean. PyTorch's `F.rrelu`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws DTypeError unless `self` is floating.
 * @example F.rrelu(torch.tensor([-1, 2]), 0.1, 0.3).toArray() // [-0.2, 2]
 */
export const rrelu: Op['rrelu'] = defineOp({
  schema: 'rrelu(Tensor self, float lower=0.125, float upper=0.3333333333333333, bool training=False) -> Tensor',
  namespace: 'torch.nn.functional',
  inPlace: 'function',
  tags: ['random'],
  decompose: (self, lower, upper, training) => {
    if (!(lower <= upper)) throw new ArgumentError(`torch.nn.functional.rrelu: lower must not be greater than upper, got ${lower} and ${upper}.`)
    return training
      ? where(gt(self, 0), self, mul(self, add(mul(lateOperator<typeof RandLike>('torch.rand_like')(self), upper - lower), lower)))
      : leakyRelu(self, (lower + upper) / 2)
  },
})

/**
 * `self` divided by its p-norm along a dimension, which counts as at least `eps`. PyTorch's `F.normalize`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example F.normalize(torch.tensor([[3, 4]])).toArray() // [[0.6, 0.8]]
 */
export const normalize: Op['normalize'] = defineOp({
  schema: 'normalize(Tensor self, float p=2.0, int dim=1, float eps=1e-12) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  decompose: (self, p, dim, eps) => div(self, clamp(pNorm('torch.nn.functional.normalize', self, p, dim, true), eps)),
})

/**
 * scale * (x where it is positive, else alpha * (e^x - 1)): `F.selu`. PyTorch's `torch.selu`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws DTypeError unless `self` is floating.
 * @example torch.selu(torch.tensor([-1, 2])).toArray() // [-1.111331, 2.101402]
 */
export const selu: Op['selu'] = defineOp({
  schema: 'selu(Tensor self) -> Tensor',
  inPlace: 'function',
  decompose: (self) => functionalSelu(self),
})

/**
 * x where it is positive, else alpha * (e^(x / alpha) - 1): `F.celu`. PyTorch's `torch.celu`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws ArgumentError if `alpha` is 0.
 * @example torch.celu(torch.tensor([-1, 2]), 2).toArray() // [-0.786939, 2]
 */
export const celu: Op['celu'] = defineOp({
  schema: 'celu(Tensor self, float alpha=1.0) -> Tensor',
  inPlace: 'function',
  decompose: (self, alpha) => functionalCelu(self, alpha),
})
