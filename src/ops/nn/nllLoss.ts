// Negative log likelihood: a primitive with a kernel and a decomposition into comparisons and reductions (class c is where the target equals c).
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
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
} from '../../kernels/index.ts'
import type { CompiledKernel, DType } from '../../kernels/index.ts'
import { formatShape, Tensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { arange } from '../creation.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { div, mul, neg } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { eq, ne } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { sum } from '../reduction/sum.ts'
import { contiguous, reshape, unsqueeze } from '../view/index.ts'
import { checkIndices } from './embedding.ts'
import { kernelCache, launch } from '../eager/launch.ts'

/** How a loss over elements becomes the result. */
export type Reduction = 'none' | 'mean' | 'sum'

/** Throws ArgumentError for anything that is not a {@link Reduction}. */
export function checkReduction(op: string, reduction: string): void {
  if (reduction !== 'none' && reduction !== 'mean' && reduction !== 'sum') {
    throw new ArgumentError(`${op}: reduction must be 'none', 'mean' or 'sum', got '${reduction}'.`)
  }
}

const NAME = 'torch.nn.functional.nll_loss'

type NativeArgs = [self: Tensor, target: Tensor, weight: Tensor | null, ignoreIndex: number]

function check(...[self, target, weight]: NativeArgs): void {
  if (self.ndim < 2)
    throw new ShapeError(`${NAME}: input must have at least 2 dimensions [batch, classes, ..], got shape ${formatShape(self.shape)}.`)
  const expected = [self.shape[0], ...self.shape.slice(2)]
  if (target.shape.length !== expected.length || target.shape.some((size, i) => size !== expected[i])) {
    throw new ShapeError(
      `${NAME}: target has shape ${formatShape(target.shape)} but input has shape ${formatShape(self.shape)}; target holds a class per element: expected [${expected.join(', ')}].`,
    )
  }
  if (target.dtype !== 'int32')
    throw new DTypeError(
      `${NAME}: target holds classes and must be int32, got ${target.dtype} (shape ${formatShape(target.shape)}). Convert it: target.int().`,
    )
  const classes = self.shape[1] as number
  if (weight !== null && (weight.ndim !== 1 || weight.shape[0] !== classes)) {
    throw new ShapeError(
      `${NAME}: weight has shape ${formatShape(weight.shape)} but input has ${classes} classes (shape ${formatShape(self.shape)}); expected [${classes}].`,
    )
  }
}

/** [batch, classes, plane] sizes. */
const sizesOf = (self: Tensor): readonly [number, number, number] => [
  self.shape[0] as number,
  self.shape[1] as number,
  self.shape.slice(2).reduce((a, b) => a * b, 1),
]

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

/** bool, shaped like input: true at the target's class of elements that are not ignored. */
function classMask(self: Tensor, target: Tensor, ignoreIndex: number): Tensor {
  const classes = self.shape[1] as number
  const numbers = reshape(arange(classes, { dtype: 'int32' }), [1, classes, ...self.shape.slice(2).map(() => 1)])
  const hit = eq(unsqueeze(target, 1), numbers)
  return ignoreIndex >= 0 && ignoreIndex < classes ? hit.logicalAnd(unsqueeze(ne(target, ignoreIndex), 1)) : hit
}

const weightView = (weight: Tensor, self: Tensor): Tensor =>
  reshape(
    weight,
    self.shape.map((size, i) => (i === 1 ? size : 1)),
  )

/** Gradient with respect to the log-probabilities; `scaled` is minus the gradient of each element's loss. Internal. */
export const nllLossBackward: OpFunction<(scaled: Tensor, self: Tensor, target: Tensor, weight: Tensor | null, ignoreIndex: number) => Tensor> =
  defineOp({
    schema: 'nll_loss_backward(Tensor scaled, Tensor self, Tensor target, Tensor? weight, int ignore_index) -> Tensor',
    namespace: 'torch.ops.tensorfx',
    meta: (_scaled: Tensor, self: Tensor): TensorSpec => ({ shape: self.shape, dtype: self.dtype }),
    kernel: (scaled: Tensor, self: Tensor, target: Tensor, weight: Tensor | null, ignoreIndex: number): Tensor => {
      const out = Tensor.empty(self.shape, self.dtype)
      const [images, classes, plane] = sizesOf(self)
      const tensors = [out, contiguous(scaled), contiguous(target), ...(weight === null ? [] : [contiguous(weight)])]
      launch(backwardKernel(self.dtype, weight !== null), tensors, [out.numel, images, plane, classes * plane, ignoreIndex])
      return out
    },
    decompose: (scaled: Tensor, self: Tensor, target: Tensor, weight: Tensor | null, ignoreIndex: number): Tensor => {
      const spread = unsqueeze(scaled, 1)
      const value = weight === null ? spread : mul(spread, weightView(weight, self))
      return where(classMask(self, target, ignoreIndex), value, 0)
    },
    derivative: ([g], { args }) => {
      const [, , target, weight, ignoreIndex] = args as unknown as [Tensor, Tensor, Tensor, Tensor | null, number]
      // Linear in `scaled`; the transpose picks the class again: nll_loss_forward, without its sign.
      return [neg(nllLossForward(g as Tensor, target, weight, ignoreIndex)[0]), null, null, null, null]
    },
  })

/** Loss and weight of each element, 0 where ignored. Internal. */
export const nllLossForward: OpFunction<(...args: NativeArgs) => readonly [Tensor, Tensor]> = defineOp({
  schema: 'nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int ignore_index) -> (Tensor, Tensor)',
  namespace: 'torch.ops.tensorfx',
  meta: (...args: NativeArgs): readonly TensorSpec[] => {
    check(...args)
    const spec = { shape: args[1].shape, dtype: args[0].dtype }
    return [spec, spec]
  },
  kernel: (...args: NativeArgs): readonly Tensor[] => {
    check(...args)
    const [self, target, weight, ignoreIndex] = args
    const [images, classes, plane] = sizesOf(self)
    const classesOf = contiguous(target)
    checkIndices(NAME, 'target', classesOf, classes, ignoreIndex)
    const outs = [Tensor.empty(target.shape, self.dtype), Tensor.empty(target.shape, self.dtype)]
    const tensors = [...outs, contiguous(self), classesOf, ...(weight === null ? [] : [contiguous(weight)])]
    launch(forwardKernel(self.dtype, weight !== null), tensors, [images, classes, plane, classes * plane, ignoreIndex])
    return outs
  },
  decompose: (...args: NativeArgs): readonly Tensor[] => {
    const [self, target, weight, ignoreIndex] = args
    const mask = classMask(self, target, ignoreIndex)
    const weighted = weight === null ? self : mul(self, weightView(weight, self))
    const losses = neg(sum(where(mask, weighted, 0), [1]))
    const weights = weight === null ? to(ne(target, ignoreIndex), self.dtype) : sum(where(mask, weightView(weight, self), 0), [1])
    return [losses, weights]
  },
  derivative: ([g], { args }) => {
    if (g === null || g === undefined) return [null, null, null, null]
    const [self, target, weight, ignoreIndex] = args as unknown as NativeArgs
    return [nllLossBackward(neg(g), self, target, weight, ignoreIndex), null, null, null]
  },
})

/** Options of nllLoss. */
export interface NllLossOptions {
  readonly weight?: Tensor | null
  readonly ignoreIndex?: number
  readonly reduction?: Reduction
}

/**
 * Minus the log-probability of the target's class: input [N, C, ..] of log-probabilities, target [N, ..] int32. The mean divides by the sum of the weights of the
 * elements that count. PyTorch's `F.nll_loss`.
 */
export const nllLoss: OpFunction<{
  (self: Tensor, target: Tensor, options?: NllLossOptions): Tensor
  (self: Tensor, target: Tensor, weight: Tensor | null, options?: NllLossOptions): Tensor
}> = defineOp({
  schema: "nll_loss(Tensor self, Tensor target, Tensor? weight=None, *, int ignore_index=-100, str reduction='mean') -> Tensor",
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  meta: (self: Tensor, target: Tensor, _weight: Tensor | null, _ignoreIndex: number, reduction: string): TensorSpec => ({
    shape: reduction === 'none' ? target.shape : [],
    dtype: self.dtype,
  }),
  decompose: (self: Tensor, target: Tensor, weight: Tensor | null, ignoreIndex: number, reduction: string): Tensor => {
    checkReduction(NAME, reduction)
    if (self.ndim === 1 && target.ndim === 0)
      return nllLoss(unsqueeze(self, 0), unsqueeze(target, 0), weight, { ignoreIndex, reduction: reduction as Reduction })
    const [losses, weights] = nllLossForward(self, target, weight, ignoreIndex)
    if (reduction === 'none') return losses
    return reduction === 'sum' ? sum(losses) : div(sum(losses), sum(weights))
  },
})
