// Negative log likelihood: a primitive with a kernel, and with a decomposition into comparisons and reductions.
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import {
  at,
  bufferParam,
  call,
  compileKernel,
  constant,
  declare,
  forLoop,
  load,
  local,
  loopVar,
  read,
  scalar,
  scalarParam,
  sizeParam,
  store,
} from '../../../kernels/index.ts'
import type { CompiledKernel, DType } from '../../../kernels/index.ts'
import { swappedHint } from '../../../protocol/index.ts'
import { formatShape, numelOf, sameShape, sizeEq, Tensor } from '../../../tensor/index.ts'
import { arange } from '../../create/creation.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import type { Op } from '../../generated/signatures.ts'
import { kernelCache, launch } from '../../eager/launch.ts'
import { checkIndexRange, checkIndexType, checkedIndices, kernelIndices } from '../../view/indices.ts'
import { div, mul, neg } from '../../pointwise/arithmetic.ts'
import { to } from '../../pointwise/cast.ts'
import { eq, ne } from '../../pointwise/comparison.ts'
import { where } from '../../pointwise/select.ts'
import { sum } from '../../reduction/sum.ts'
import { checkOperand, sizeAt } from '../../shared/shapes.ts'
import { contiguous, reshape, unsqueeze } from '../../view/reshape.ts'

/** How the losses of the elements become the result. */
export type Reduction = 'none' | 'mean' | 'sum'

/** The reduction that the user named. Throws ArgumentError if it is not one. */
export function checkedReduction(op: string, reduction: string): Reduction {
  if (reduction === 'none' || reduction === 'mean' || reduction === 'sum') return reduction
  throw new ArgumentError(`${op}: reduction must be 'none', 'mean' or 'sum', got '${reduction}'.`)
}

const NAME = 'torch.nn.functional.nll_loss'

/** The end of a message if scores and classes have changed places. */
const orderHint = (self: Tensor, target: Tensor): string =>
  swappedHint(
    target.ndim > 1 && sameShape(self.symSizes, [sizeAt(target.symSizes, 0), ...target.symSizes.slice(2)]),
    'self',
    'target',
    'self, target',
  )

function check(self: Tensor, target: Tensor, weight: Tensor | null): void {
  const [images, classes, ...plane] = self.symSizes
  if (images === undefined || classes === undefined)
    throw new ShapeError(
      `${NAME}: input must have at least 2 dimensions [batch, classes, ..], got shape ${formatShape(self.symSizes)}.${orderHint(self, target)}`,
    )
  const expected = [images, ...plane]
  if (!sameShape(target.symSizes, expected)) {
    throw new ShapeError(
      `${NAME}: target has shape ${formatShape(target.symSizes)} but input has shape ${formatShape(self.symSizes)}; target holds a class per element: expected ${formatShape(expected)}.${orderHint(self, target)}`,
    )
  }
  checkIndexType(NAME, 'target', target)
  if (weight !== null && (weight.ndim !== 1 || !sizeEq(weight.symSizes[0], classes))) {
    throw new ShapeError(
      `${NAME}: weight has shape ${formatShape(weight.symSizes)} but input has ${classes} classes (shape ${formatShape(self.symSizes)}); expected [${classes}].`,
    )
  }
  checkOperand(NAME, 'weight', weight, [classes], self.dtype)
}

function checkBackward(scaled: Tensor, self: Tensor, target: Tensor, weight: Tensor | null): void {
  check(self, target, weight)
  checkOperand(NAME, 'scaled', scaled, target.symSizes, self.dtype)
}

/** [batch, classes, plane] sizes. */
const sizesOf = (self: Tensor): readonly [number, number, number] => [sizeAt(self.sizes, 0), sizeAt(self.sizes, 1), numelOf(self.sizes.slice(2))]

/** Params: losses, weights, input, target, weight?, images, classes, plane, ignore. */
const forwardKernel = kernelCache((dtype: DType, hasWeight: boolean): CompiledKernel => {
  const [losses, weights] = [bufferParam('losses', dtype, 'write'), bufferParam('weights', dtype, 'write')]
  const [input, target, weight] = [bufferParam('input', dtype), bufferParam('target', 'int32'), bufferParam('weight', dtype)]
  const [images, classes, plane] = [sizeParam('images'), sizeParam('classes'), sizeParam('plane')]
  const [imageStride, ignore] = [sizeParam('imageStride'), scalarParam('ignore', 'int32')]
  const [n, l] = [loopVar('n', images), loopVar('l', plane)]
  const [cls, keep, factor] = [local('cls', 'int32'), local('keep', 'bool'), local('factor', dtype)]
  const element = at([n, plane], [l, 1])
  const zero = constant(dtype, 0)
  const classWeight = hasWeight ? load(weight, { ...at(), dynamic: [{ value: read(cls), stride: 1 }] }, read(keep)) : constant(dtype, 1)
  const picked = load(input, { ...at([n, imageStride], [l, 1]), dynamic: [{ value: read(cls), stride: plane }] }, read(keep))
  return compileKernel({
    name: 'nll_loss',
    params: [losses, weights, input, target, ...(hasWeight ? [weight] : []), images, classes, plane, imageStride, ignore],
    body: [
      forLoop(n, 'serial', [
        forLoop(l, 'serial', [
          declare(cls, load(target, element)),
          declare(keep, call('ne', read(cls), scalar(ignore))),
          declare(factor, call('where', read(keep), classWeight, zero)),
          store(weights, element, read(factor)),
          store(losses, element, call('where', read(keep), call('neg', call('mul', read(factor), picked)), zero)),
        ]),
      ]),
    ],
  })
})

/** Params: gradInput, scaled, target, weight?, total, images, plane, imageStride, ignore. `scaled` holds minus the gradient per element. */
const backwardKernel = kernelCache((dtype: DType, hasWeight: boolean): CompiledKernel => {
  const gi = bufferParam('gradInput', dtype, 'readwrite')
  const [scaled, target, weight] = [bufferParam('scaled', dtype), bufferParam('target', 'int32'), bufferParam('weight', dtype)]
  const [total, images, plane, imageStride] = [sizeParam('total'), sizeParam('images'), sizeParam('plane'), sizeParam('imageStride')]
  const ignore = scalarParam('ignore', 'int32')
  const [z, n, l] = [loopVar('z', total), loopVar('n', images), loopVar('l', plane)]
  const [cls, keep, safe, value] = [local('cls', 'int32'), local('keep', 'bool'), local('safe', 'int32'), local('value', dtype)]
  const element = at([n, plane], [l, 1])
  const factor = hasWeight ? load(weight, { ...at(), dynamic: [{ value: read(cls), stride: 1 }] }, read(keep)) : constant(dtype, 1)
  return compileKernel({
    name: 'nll_loss_backward',
    params: [gi, scaled, target, ...(hasWeight ? [weight] : []), total, images, plane, imageStride, ignore],
    body: [
      forLoop(z, 'simd', [store(gi, at([z, 1]), constant(dtype, 0))]),
      forLoop(n, 'serial', [
        forLoop(l, 'serial', [
          declare(cls, load(target, element)),
          declare(keep, call('ne', read(cls), scalar(ignore))),
          declare(safe, call('where', read(keep), read(cls), constant('int32', 0))),
          declare(value, call('where', read(keep), call('mul', load(scaled, element), factor), constant(dtype, 0))),
          // An ignored element adds 0 to class 0.
          store(gi, { ...at([n, imageStride], [l, 1]), dynamic: [{ value: read(safe), stride: plane }] }, read(value), 'add'),
        ]),
      ]),
    ],
  })
})

/** bool, in the shape of the input: true at the target's class, unless the element is ignored. */
function classMask(self: Tensor, target: Tensor, ignoreIndex: number): Tensor {
  const classes = sizeAt(self.sizes, 1)
  const numbers = reshape(arange(classes, { dtype: 'int32' }), [1, classes, ...self.sizes.slice(2).map(() => 1)])
  const hit = eq(unsqueeze(target, 1), numbers)
  return ignoreIndex >= 0 && ignoreIndex < classes ? hit.logicalAnd(unsqueeze(ne(target, ignoreIndex), 1)) : hit
}

const weightView = (weight: Tensor, self: Tensor): Tensor =>
  reshape(
    weight,
    self.symSizes.map((size, i) => (i === 1 ? size : 1)),
  )

/**
 * The gradient with respect to the log-probabilities; `scaled` is minus the gradient of each element's loss. Internal; PyTorch's `aten.nll_loss_backward`.
 *
 * Shapes: self [N, C, ..], scaled and target [N, ..]. The result has the shape of `self`.
 *
 * @throws ArgumentError if `ignoreIndex` is not an integer.
 * @example torch.ops.tensorfx.nllLossBackward(torch.tensor([-1]), torch.zeros([1, 2]), torch.tensor([1]).long(), null, -100).toArray() // [[0, -1]]
 */
export const nllLossBackward: Op['nllLossBackward'] = defineOp({
  schema: 'nll_loss_backward(Tensor scaled, Tensor self, Tensor target, Tensor? weight, int ignore_index) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  halvesInFloat32: true,
  vmap: { folded: ['self', 'scaled', 'target'], rank: 2 },
  meta: (scaled, self, target, weight) => {
    checkBackward(scaled, self, target, weight)
    return { shape: self.symSizes, dtype: self.dtype }
  },
  indices: {
    argument: 'target',
    check: (_scaled, self, target, _weight, ignoreIndex) => checkIndexRange(NAME, 'target', target, self.sizes[1] ?? 1, ignoreIndex),
  },
  kernel: (scaled, self, target, weight, ignoreIndex) => {
    checkBackward(scaled, self, target, weight)
    const out = Tensor.empty(self.sizes, self.dtype)
    const [images, classes, plane] = sizesOf(self)
    const classesOf = kernelIndices(NAME, 'target', target, classes, ignoreIndex)
    const tensors = [out, contiguous(scaled), classesOf, ...(weight === null ? [] : [contiguous(weight)])]
    launch(backwardKernel(self.dtype, weight !== null), tensors, [out.numel, images, plane, classes * plane, ignoreIndex])
    return out
  },
  decompose: (scaled, self, target, weight, ignoreIndex) => {
    const spread = unsqueeze(scaled, 1)
    const value = weight === null ? spread : mul(spread, weightView(weight, self))
    return where(classMask(self, target, ignoreIndex), value, 0)
  },
  derivative: ([g], { args: [, , target, weight, ignoreIndex] }) => [
    // Linear in `scaled`. The transpose picks the class again: nll_loss_forward, without its sign.
    neg(nllLossForward(g, target, weight, ignoreIndex)[0]),
    null,
    null,
    null,
    null,
  ],
})

/**
 * The loss and the weight of each element, 0 if it is ignored: [losses, weights]. Internal; PyTorch's `aten.nll_loss_forward`.
 *
 * Shapes: self [N, C, ..] and target [N, ..] (integers) give twice [N, ..].
 *
 * @throws ShapeError if the shapes do not fit, DTypeError if `target` does not hold integers.
 * @throws ArgumentError if a class is out of range.
 * @example torch.ops.tensorfx.nllLossForward(torch.tensor([[-1, -2]]), torch.tensor([1]).long(), null, -100).map((t) => t.toArray()) // [[2], [1]]
 */
export const nllLossForward: Op['nllLossForward'] = defineOp({
  schema: 'nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int ignore_index) -> (Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  halvesInFloat32: true,
  vmap: { folded: ['self', 'target'], rank: 2 },
  meta: (self, target, weight) => {
    check(self, target, weight)
    const spec = { shape: target.symSizes, dtype: self.dtype }
    return [spec, spec]
  },
  indices: {
    argument: 'target',
    check: (self, target, _weight, ignoreIndex) => checkIndexRange(NAME, 'target', target, self.sizes[1] ?? 1, ignoreIndex),
  },
  kernel: (self, target, weight, ignoreIndex): readonly [Tensor, Tensor] => {
    check(self, target, weight)
    const [images, classes, plane] = sizesOf(self)
    const classesOf = kernelIndices(NAME, 'target', target, classes, ignoreIndex)
    const [losses, weights] = [Tensor.empty(target.sizes, self.dtype), Tensor.empty(target.sizes, self.dtype)]
    const tensors = [losses, weights, contiguous(self), classesOf, ...(weight === null ? [] : [contiguous(weight)])]
    launch(forwardKernel(self.dtype, weight !== null), tensors, [images, classes, plane, classes * plane, ignoreIndex])
    return [losses, weights]
  },
  decompose: (self, target, weight, ignoreIndex) => {
    const mask = classMask(self, checkedIndices(target, sizeAt(self.sizes, 1), ignoreIndex, NAME, 'target'), ignoreIndex)
    const weighted = weight === null ? self : mul(self, weightView(weight, self))
    const losses = neg(sum(where(mask, weighted, 0), [1]))
    const weights = weight === null ? to(ne(target, ignoreIndex), self.dtype) : sum(where(mask, weightView(weight, self), 0), [1])
    return [losses, weights]
  },
  derivative: ([g], { args: [self, target, weight, ignoreIndex] }) => [
    g === null ? null : nllLossBackward(neg(g), self, target, weight, ignoreIndex),
    null,
    null,
    null,
  ],
})

/** Options of nllLoss. */
export interface NllLossOptions {
  /** A weight per class. */
  readonly weight?: Tensor | null
  /** Targets of this class do not count. Default -100. */
  readonly ignoreIndex?: number
  readonly reduction?: Reduction
}

/**
 * Minus the log-probability of the target's class. The mean divides by the sum of the weights of the elements that count. PyTorch's `F.nll_loss`.
 *
 * Shapes: self [N, C, ..] (or [C]) and target [N, ..] (or []), of an integer dtype, give a scalar, or the shape of `target` for reduction 'none'.
 *
 * @throws ShapeError if the shapes do not fit, DTypeError if `target` does not hold integers.
 * @throws ArgumentError if a class is out of range, or for an unknown `reduction`.
 * @example F.nllLoss(torch.tensor([[-1, -2], [-3, -4]]), torch.tensor([1, 0]).long()).item() // 2.5
 */
export const nllLoss: OpFunction<{
  (self: Tensor, target: Tensor, options?: NllLossOptions): Tensor
  (self: Tensor, target: Tensor, weight: Tensor | null, options?: NllLossOptions): Tensor
}> = defineOp({
  schema: "nll_loss(Tensor self, Tensor target, Tensor? weight=None, *, int ignore_index=-100, str reduction='mean') -> Tensor",
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  autocast: 'float32',
  meta: (self, target, _weight, _ignoreIndex, reduction) => ({ shape: reduction === 'none' ? target.symSizes : [], dtype: self.dtype }),
  decompose: (self, target, weight, ignoreIndex, given) => {
    const reduction = checkedReduction(NAME, given)
    if (self.ndim === 1 && target.ndim === 0) {
      const loss = nllLoss(unsqueeze(self, 0), unsqueeze(target, 0), weight, { ignoreIndex, reduction })
      return reduction === 'none' ? reshape(loss, []) : loss
    }
    const [losses, weights] = nllLossForward(self, target, weight, ignoreIndex)
    if (reduction === 'none') return losses
    return reduction === 'sum' ? sum(losses) : div(sum(losses), sum(weights))
  },
})
