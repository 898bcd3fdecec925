// Piecewise linear activations: hardtanh and related functions, thresholds, shrinkage, prelu.
import { call, constant } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { channelsLastHint } from '../../protocol/index.ts'
import { formatShape, sizeEq } from '../../tensor/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { reshape } from '../view/reshape.ts'
import { abs, add, div, mul } from './arithmetic.ts'
import { ge, gt, le, logicalAnd, lt } from './comparison.ts'
import { where } from './select.ts'

const number = (like: Expr, value: number): Expr => constant(like.dtype, value)
const limited = (x: Expr, low: Expr, high: Expr): Expr => call('min', call('max', x, low), high)

/**
 * x limited to `minVal` and `maxVal`, elementwise; at the limits the gradient is 0. PyTorch's `F.hardtanh`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws ArgumentError if `minVal` exceeds `maxVal`.
 * @example F.hardtanh(torch.tensor([-2, 0.5, 3])).toArray() // [-1, 0.5, 1]
 */
export const hardtanh: Op['hardtanh'] = defineOp({
  schema: 'hardtanh(Tensor self, float min_val=-1.0, float max_val=1.0) -> Tensor',
  namespace: 'torch.nn.functional',
  inPlace: 'function',
  recordAs: 'keywords',
  pointwise: {
    promotion: 'promote',
    baked: ['minVal', 'maxVal'],
    compute: (x, low, high) => {
      if (low > high) throw new ArgumentError(`torch.nn.functional.hardtanh: min_val ${low} exceeds max_val ${high}.`)
      return limited(x, number(x, low), number(x, high))
    },
  },
  derivative: ([g], { args: [x, low, high] }) => [where(logicalAnd(gt(x, low), lt(x, high)), g, 0), null, null],
})

/**
 * x limited to 0 and 6, elementwise. PyTorch's `F.relu6`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example F.relu6(torch.tensor([-1, 3, 9])).toArray() // [0, 3, 6]
 */
export const relu6: Op['relu6'] = defineOp({
  schema: 'relu6(Tensor self) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (self) => hardtanh(self, 0, 6),
})

/**
 * relu6(x + 3) / 6, elementwise. PyTorch's `F.hardsigmoid`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws DTypeError unless `self` is floating.
 * @example F.hardsigmoid(torch.tensor([-4, 0, 1.5])).toArray() // [0, 0.5, 0.75]
 */
export const hardsigmoid: Op['hardsigmoid'] = defineOp({
  schema: 'hardsigmoid(Tensor self) -> Tensor',
  namespace: 'torch.nn.functional',
  pointwise: {
    promotion: 'promote',
    dtypes: 'floating',
    compute: (x) => call('div', limited(call('add', x, number(x, 3)), number(x, 0), number(x, 6)), number(x, 6)),
  },
  derivative: ([g], { args: [x] }) => [where(logicalAnd(gt(x, -3), lt(x, 3)), div(g, 6), 0)],
})

/**
 * x * relu6(x + 3) / 6, elementwise. PyTorch's `F.hardswish`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws DTypeError unless `self` is floating.
 * @example F.hardswish(torch.tensor([-4, 0, 3])).toArray() // [0, 0, 3]
 */
export const hardswish: Op['hardswish'] = defineOp({
  schema: 'hardswish(Tensor self) -> Tensor',
  namespace: 'torch.nn.functional',
  pointwise: {
    promotion: 'promote',
    dtypes: 'floating',
    compute: (x) => call('div', call('mul', x, limited(call('add', x, number(x, 3)), number(x, 0), number(x, 6))), number(x, 6)),
  },
  derivative: ([g], { args: [x] }) => [where(le(x, -3), 0, where(ge(x, 3), g, mul(g, add(div(x, 3), 0.5))))],
})

/**
 * x, but 0 where |x| is at most `lambd`, elementwise. PyTorch's `F.hardshrink`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws DTypeError unless `self` is floating.
 * @example F.hardshrink(torch.tensor([-1, 0.3, 2])).toArray() // [-1, 0, 2]
 */
export const hardshrink: Op['hardshrink'] = defineOp({
  schema: 'hardshrink(Tensor self, float lambd=0.5) -> Tensor',
  namespace: 'torch.nn.functional',
  method: true,
  pointwise: { promotion: 'promote', dtypes: 'floating', compute: (x, l) => call('where', call('le', call('abs', x), l), number(x, 0), x) },
  derivative: ([g], { args: [x, lambd] }) => [where(le(abs(x), lambd), 0, g), null],
})

/**
 * x moved towards 0 by `lambd`, and 0 where |x| is at most that, elementwise. PyTorch's `F.softshrink`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws DTypeError unless `self` is floating.
 * @example F.softshrink(torch.tensor([-1, 0.3, 2])).toArray() // [-0.5, 0, 1.5]
 */
export const softshrink: Op['softshrink'] = defineOp({
  schema: 'softshrink(Tensor self, float lambd=0.5) -> Tensor',
  namespace: 'torch.nn.functional',
  prepare: (args) => {
    if (!(Number(args[1]) >= 0)) throw new ArgumentError(`torch.nn.functional.softshrink: lambd must not be negative, got ${String(args[1])}.`)
    return args
  },
  pointwise: {
    promotion: 'promote',
    dtypes: 'floating',
    compute: (x, l) => {
      const low = call('where', call('lt', x, call('neg', l)), call('add', x, l), call('mul', x, number(x, 0)))
      return call('where', call('gt', x, l), call('sub', x, l), low)
    },
  },
  derivative: ([g], { args: [x, lambd] }) => [where(le(abs(x), lambd), 0, g), null],
})

/**
 * x where it exceeds `threshold`, else `value`, elementwise. PyTorch's `F.threshold`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws ArgumentError if an argument is missing.
 * @example F.threshold(torch.tensor([-1, 2]), 0, 9).toArray() // [9, 2]
 */
export const threshold: Op['threshold'] = defineOp({
  schema: 'threshold(Tensor self, float threshold, float value) -> Tensor',
  namespace: 'torch.nn.functional',
  inPlace: 'function',
  pointwise: { promotion: 'promote', compute: (x, t, v) => call('where', call('le', x, t), v, x) },
  derivative: ([g], { args: [x, threshold] }) => [where(le(x, threshold), 0, g), null, null],
})

/**
 * x where it is positive, else `weight` times x; one weight, or one for each channel (dimension 1). PyTorch's `F.prelu`.
 *
 * Shapes: `weight` [1] or [C]; the result has the shape of `self`.
 *
 * @throws ShapeError if the number of weights is neither 1 nor that of the channels.
 * @example F.prelu(torch.tensor([-2, 3]), torch.tensor([0.25])).toArray() // [-0.5, 3]
 */
export const prelu: Op['prelu'] = defineOp({
  schema: 'prelu(Tensor self, Tensor weight) -> Tensor',
  namespace: 'torch.nn.functional',
  method: true,
  autocast: 'half',
  decompose: (self, weight) => {
    const channels = self.ndim > 1 ? self.symSizes[1] : 1
    if (!sizeEq(weight.symNumel, 1) && (weight.ndim !== 1 || !sizeEq(weight.symNumel, channels)))
      throw new ShapeError(
        `torch.nn.functional.prelu: weight must have 1 element, or ${channels} (the size of dimension 1), got shape ${formatShape(weight.symSizes)}.${channelsLastHint('self', self.sizes, weight.numel)}`,
      )
    const slope = reshape(weight, self.ndim < 2 ? (sizeEq(weight.symNumel, 1) ? [] : [-1]) : [1, -1, ...self.symSizes.slice(2).map(() => 1)])
    return where(gt(self, 0), self, mul(slope, self))
  },
})
