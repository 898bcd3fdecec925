// Creating tensors: filled with a value, or as ranges. These are operators, so that captures record them; their primitives are `full` and `range` of
// torch.ops.tensorfx.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import {
  at,
  bufferParam,
  call,
  cast,
  compileKernel,
  dtypeInfo,
  forLoop,
  iota,
  loopVar,
  scalar,
  scalarParam,
  sizeParam,
  store,
} from '../../kernels/index.ts'
import type { CompiledKernel, DType } from '../../kernels/index.ts'
import { isSymbolicSize } from '../../protocol/index.ts'
import type { Size } from '../../protocol/index.ts'
import {
  Tensor,
  areNumbers,
  exactInteger,
  formatShape,
  getDefaultDtype,
  isNoSize,
  sizeAtMost,
  sizeCeilDiv,
  sizeEq,
  sizeNumber,
  sizeProduct,
  sizeSub,
} from '../../tensor/index.ts'
import type { ComplexNumber, Device } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { kernelCache, launch } from '../eager/launch.ts'
import { computedIn } from '../eager/promotion.ts'

/** Options of functions that create tensors. */
export interface CreationOptions {
  /** The default is the default dtype (float32, unless `setDefaultDtype` changed it), also for arange; for the functions that end in `Like`, the dtype of their argument. */
  readonly dtype?: DType | null
  readonly requiresGrad?: boolean
  /** Where the tensor is: 'cpu' (default), or 'webgpu' with tensorfx/webgpu. */
  readonly device?: Device
}

/** Sizes as one array or one by one, and perhaps options: `([2, 3], o)` or `(2, 3, o)`. */
export type SizeArguments<O> = [size: readonly Size[], options?: O] | [...size: Size[]] | [...size: Size[], options: O]

const fillKernel = kernelCache((dtype: DType): CompiledKernel => {
  const n = sizeParam('n')
  const i = loopVar('i', n)
  const value = scalarParam('value', dtype)
  const out = bufferParam('out', dtype, 'write')
  return compileKernel({ name: 'fill', params: [out, n, value], body: [forLoop(i, 'simd', [store(out, at([i, 1]), scalar(value))])] })
})

/** Throws ShapeError unless all sizes are non-negative integers. */
export function checkSize(op: string, size: readonly Size[]): void {
  const numel = sizeProduct(size)
  if (typeof numel === 'number' && numel > Number.MAX_SAFE_INTEGER)
    throw new ShapeError(`${op}: a tensor of shape ${formatShape(size)} would have more than ${Number.MAX_SAFE_INTEGER} elements; ask for fewer.`)
  if (size.some(isNoSize)) throw new ShapeError(`${op}: argument 'size' must hold integers of at least 0, got ${formatShape(size)}.`)
}

/**
 * One value everywhere: the primitive behind full, zeros, ones and the like. Internal; PyTorch's `aten.full`.
 *
 * Shape: `size`.
 *
 * @throws ArgumentError if `dtype` is not a dtype.
 * @example torch.ops.tensorfx.full([2], 3, 'int32').toArray() // [3, 3]
 */
export const fullOf: Op['fullOf'] = defineOp({
  schema: 'full(SymInt[] size, Scalar fill_value, ScalarType dtype) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  tags: ['creation', 'fill'],
  vmap: { none: 'it takes no tensors' },
  onnx: 'full',
  autocast: 'as is',
  meta: (size, _value, dtype) => ({ shape: size, dtype }),
  kernel: (size, value, dtype) => {
    const out = Tensor.empty(size, dtype)
    if (out.numel > 0) launch(fillKernel(dtype), [out], [out.numel, dtype === 'bool' ? Number(Number(value) !== 0) : Number(value)])
    return out
  },
})

/** Marks a new tensor as a leaf that requires grad, if asked to. Above the modes, so that captures see it too. */
export function asLeaf(op: string, out: Tensor, requiresGrad: boolean): Tensor {
  if (!requiresGrad) return out
  if (!dtypeInfo[out.dtype].differentiable)
    throw new ArgumentError(
      `${op}: only floating-point and complex tensors can require gradients, this one is ${out.dtype}; leave out requiresGrad, or ask for dtype 'float32'.`,
    )
  out.requiresGrad = true
  return out
}

function filled(op: string, size: readonly Size[], value: Size, dtype: DType, requiresGrad: boolean): Tensor {
  checkSize(op, size)
  if (dtype === 'int64' && typeof value === 'number') exactInteger(value)
  return asLeaf(op, fullOf(size, value as number, dtype), requiresGrad)
}

/** The value of a tensor that has one everywhere. */
export type FillValue = number | boolean | ComplexNumber

/**
 * A tensor with one value everywhere; a boolean gives a bool tensor, a complex number a complex one. PyTorch's `torch.full`.
 *
 * Shape: `size`.
 *
 * @throws ShapeError if a size is negative.
 * @throws ArgumentError if `requiresGrad` is set for a dtype that is not floating, or an int64 has no exact number.
 * @example torch.full([2], 3).toArray() // [3, 3]
 */
export const full: OpFunction<(size: readonly Size[], fillValue: FillValue, options?: CreationOptions) => Tensor> = defineOp({
  schema: 'full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (size, value: Size | boolean, dtype, requiresGrad) =>
    filled(
      'torch.full',
      size,
      typeof value === 'boolean' ? Number(value) : value,
      dtype ?? (typeof value === 'boolean' ? 'bool' : getDefaultDtype()),
      requiresGrad,
    ),
})

/**
 * Zeros: `zeros([2, 3])` or `zeros(2, 3)`, with options at the end. PyTorch's `torch.zeros`.
 *
 * Shape: `size`.
 *
 * @throws ShapeError if a size is negative.
 * @throws ArgumentError if `requiresGrad` is set for a dtype that is not floating.
 * @example torch.zeros([2, 2]).toArray() // [[0, 0], [0, 0]]
 */
export const zeros: OpFunction<(...size: SizeArguments<CreationOptions>) => Tensor> = defineOp({
  schema: 'zeros(SymInt[] size, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (size, dtype, requiresGrad) => filled('torch.zeros', size, 0, dtype ?? getDefaultDtype(), requiresGrad),
})

/**
 * Ones: `ones([2, 3])` or `ones(2, 3)`, with options at the end. PyTorch's `torch.ones`.
 *
 * Shape: `size`.
 *
 * @throws ShapeError if a size is negative.
 * @throws ArgumentError if `requiresGrad` is set for a dtype that is not floating.
 * @example torch.ones(2, { dtype: 'int32' }).toArray() // [1, 1]
 */
export const ones: OpFunction<(...size: SizeArguments<CreationOptions>) => Tensor> = defineOp({
  schema: 'ones(SymInt[] size, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (size, dtype, requiresGrad) => filled('torch.ones', size, 1, dtype ?? getDefaultDtype(), requiresGrad),
})

/**
 * A tensor whose values are unspecified. (They are zeros: old memory is never shown.) PyTorch's `torch.empty`.
 *
 * Shape: `size`.
 *
 * @throws ShapeError if a size is negative.
 * @throws ArgumentError if `requiresGrad` is set for a dtype that is not floating.
 * @example torch.empty(2, 3).shape // [2, 3]
 */
export const empty: OpFunction<(...size: SizeArguments<CreationOptions>) => Tensor> = defineOp({
  schema: 'empty(SymInt[] size, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (size, dtype, requiresGrad) => filled('torch.empty', size, 0, dtype ?? getDefaultDtype(), requiresGrad),
})

/**
 * Zeros in the shape and dtype of `self`. PyTorch's `torch.zeros_like`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `requiresGrad` is set for a dtype that is not floating.
 * @example torch.zerosLike(torch.tensor([1, 2])).toArray() // [0, 0]
 */
export const zerosLike: OpFunction<(self: Tensor, options?: CreationOptions) => Tensor> = defineOp({
  schema: 'zeros_like(Tensor self, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (self, dtype, requiresGrad) => filled('torch.zeros_like', self.symSizes, 0, dtype ?? self.dtype, requiresGrad),
})

/**
 * Ones in the shape and dtype of `self`. PyTorch's `torch.ones_like`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `requiresGrad` is set for a dtype that is not floating.
 * @example torch.onesLike(torch.tensor([1, 2])).toArray() // [1, 1]
 */
export const onesLike: OpFunction<(self: Tensor, options?: CreationOptions) => Tensor> = defineOp({
  schema: 'ones_like(Tensor self, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (self, dtype, requiresGrad) => filled('torch.ones_like', self.symSizes, 1, dtype ?? self.dtype, requiresGrad),
})

/**
 * One value everywhere, in the shape and dtype of `self`. PyTorch's `torch.full_like`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `fillValue` is not a number, or `requiresGrad` is set for a dtype that is not floating.
 * @example torch.fullLike(torch.tensor([1, 2]), 5).toArray() // [5, 5]
 */
export const fullLike: OpFunction<(self: Tensor, fillValue: number | ComplexNumber, options?: CreationOptions) => Tensor> = defineOp({
  schema: 'full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (self, value, dtype, requiresGrad) => filled('torch.full_like', self.symSizes, value, dtype ?? self.dtype, requiresGrad),
})

/**
 * A tensor in the shape and dtype of `self` whose values are unspecified. PyTorch's `torch.empty_like`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `requiresGrad` is set for a dtype that is not floating.
 * @example torch.emptyLike(torch.zeros([2, 3])).shape // [2, 3]
 */
export const emptyLike: OpFunction<(self: Tensor, options?: CreationOptions) => Tensor> = defineOp({
  schema: 'empty_like(Tensor self, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (self, dtype, requiresGrad) => filled('torch.empty_like', self.symSizes, 0, dtype ?? self.dtype, requiresGrad),
})

/**
 * A tensor without dimensions. PyTorch's `torch.scalar_tensor`.
 *
 * Shape: [].
 *
 * @throws ArgumentError if `value` is not a number, or `requiresGrad` is set for a dtype that is not floating.
 * @example torch.scalarTensor(3).shape // []
 */
export const scalarTensor: OpFunction<(value: number, options?: CreationOptions) => Tensor> = defineOp({
  schema: 'scalar_tensor(Scalar s, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (value, dtype, requiresGrad) => filled('torch.scalar_tensor', [], value, dtype ?? getDefaultDtype(), requiresGrad),
})

const rangeKernel = kernelCache((dtype: DType): CompiledKernel => {
  const n = sizeParam('n')
  const i = loopVar('i', n)
  const compute = computedIn(dtype)
  const [start, step] = [scalarParam('start', compute), scalarParam('step', compute)]
  const out = bufferParam('out', dtype, 'write')
  const value = cast(call('add', scalar(start), call('mul', cast(iota(i), compute), scalar(step))), dtype)
  return compileKernel({ name: 'arange', params: [out, n, start, step], body: [forLoop(i, 'simd', [store(out, at([i, 1]), value)])] })
})

/**
 * start + i * step for i below `count`: the primitive behind arange, linspace and eye. Internal; PyTorch's `aten.arange`.
 *
 * Shape: [count].
 *
 * @throws ArgumentError if `count` is not an integer, or `dtype` is not a dtype.
 * @example torch.ops.tensorfx.range(1, 2, 3, 'int32').toArray() // [1, 3, 5]
 */
export const rangeOf: Op['rangeOf'] = defineOp({
  schema: 'range(Scalar start, Scalar step, SymInt count, ScalarType dtype) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  tags: ['creation', 'range'],
  vmap: { none: 'it takes no tensors' },
  onnx: 'range',
  autocast: 'as is',
  meta: (_start, _step, count, dtype) => ({ shape: [count], dtype }),
  kernel: (start, step, count, dtype) => {
    const out = Tensor.empty([count], dtype)
    if (count > 0) launch(rangeKernel(dtype), [out], [count, start, step])
    return out
  },
})

/** How many numbers from `from` on come before `until`, if one of them is a symbolic size; null for numbers, and for what sizes cannot count. */
function symbolicCount(from: Size, until: Size, step: Size): Size | null {
  if (areNumbers([from, until, step])) return null
  const isCounted = [from, until].every((end) => isSymbolicSize(end) || Number.isInteger(end)) && Number.isInteger(step) && Number(step) > 0
  return isCounted && sizeAtMost(from, until) ? sizeCeilDiv(sizeSub(until, from), step) : null
}

/**
 * start, start + step, … before `end`; `arange(end)` starts at 0. It has the default dtype unless `dtype` says otherwise. PyTorch's `torch.arange`.
 *
 * Shape: [ceil((end - start) / step)].
 *
 * @throws ArgumentError if the step is 0, or does not lead from start to end.
 * @example
 * torch.arange(3).toArray() // [0, 1, 2]
 * torch.arange(5, 0, -2).toArray() // [5, 3, 1]
 */
export const arange: OpFunction<{
  (end: number, options?: CreationOptions): Tensor
  (start: number, end: number, options?: CreationOptions): Tensor
  (start: number, end: number, step: number, options?: CreationOptions): Tensor
}> = defineOp({
  schema: 'arange.start_step(Scalar start, Scalar? end=None, Scalar step=1, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (start, end, step, dtype, requiresGrad) => {
    const [from, until] = end === null ? [0, start] : [start, end]
    const symbolic = symbolicCount(from, until, step)
    if (symbolic !== null) return asLeaf('torch.arange', rangeOf(from, step, symbolic, dtype ?? getDefaultDtype()), requiresGrad)
    if (!Number.isFinite(from) || !Number.isFinite(until) || step === 0 || Number.isNaN(step) || (until - from) / step < 0) {
      throw new ArgumentError(
        `torch.arange: a step of ${step} does not lead from ${from} to ${until}; give another step: torch.arange(${from}, ${until}, ${until < from ? -1 : 1}).`,
      )
    }
    return asLeaf('torch.arange', rangeOf(from, step, Math.ceil((until - from) / step), dtype ?? getDefaultDtype()), requiresGrad)
  },
})

/**
 * `steps` values at equal distances from `start` to `end`, both included. PyTorch's `torch.linspace`.
 *
 * Shape: [steps].
 *
 * @throws ArgumentError if `steps` is negative.
 * @example torch.linspace(0, 1, 5).toArray() // [0, 0.25, 0.5, 0.75, 1]
 */
export const linspace: OpFunction<(start: number, end: number, steps: Size, options?: CreationOptions) => Tensor> = defineOp({
  schema: 'linspace(Scalar start, Scalar end, SymInt steps, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (start, end, count, dtype, requiresGrad) => {
    // The step between two values depends on it: a symbol becomes its number, as in PyTorch.
    const steps = sizeNumber(count)
    if (steps < 0) throw new ArgumentError(`torch.linspace: argument 'steps' must be at least 0, got ${steps}.`)
    return asLeaf('torch.linspace', rangeOf(start, steps > 1 ? (end - start) / (steps - 1) : 0, steps, dtype ?? getDefaultDtype()), requiresGrad)
  },
})

/**
 * The identity matrix. PyTorch's `torch.eye`.
 *
 * Shape: [n, m]; `m` is `n` by default.
 *
 * @throws ShapeError if a size is negative.
 * @example torch.eye(2).toArray() // [[1, 0], [0, 1]]
 */
export const eye: OpFunction<(n: Size, m?: Size | null | CreationOptions, options?: CreationOptions) => Tensor> = defineOp({
  schema: 'eye(SymInt n, SymInt? m=None, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (n, m, dtype, requiresGrad) => {
    checkSize('torch.eye', [n, m ?? n])
    const rows = rangeOf(0, 1, n, 'int32')
    const columns = m === null || sizeEq(m, n) ? rows : rangeOf(0, 1, m, 'int32')
    const diagonal = rows.unsqueeze(1).eq(columns)
    return asLeaf('torch.eye', diagonal.to(dtype ?? getDefaultDtype()), requiresGrad)
  },
})
