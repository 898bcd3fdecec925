// Creating tensors: from data, filled, as ranges. Constructors are operators, so that captures record them.
import { withoutModes } from '../dispatch/index.ts'
import { ArgumentError, ShapeError } from '../errors/index.ts'
import { bufferParam, call, cast, compileKernel, dtypeInfo, forLoop, iota, loopVar, scalar, scalarParam, sizeParam, store } from '../kernels/index.ts'
import type { CompiledKernel, DType } from '../kernels/index.ts'
import { Tensor, tensorFromValues } from '../tensor/index.ts'
import type { TensorSpec } from '../tensor/index.ts'
import { defineOp } from './defineOp.ts'
import type { OpFunction } from './defineOp.ts'
import { launch } from './eager/launch.ts'
import { nameTarget } from '../protocol/index.ts'

export interface CreationOptions {
  /** Default float32, also for arange; the dtype of the model for `…Like`. */
  readonly dtype?: DType | null
  readonly requiresGrad?: boolean
}

export type TensorData = number | boolean | readonly TensorData[] | Float32Array | Float64Array | Int32Array | Uint8Array

/**
 * A tensor from numbers, nested arrays or a typed array (which is copied). Numbers become float32, booleans bool, typed arrays keep their type,
 * unless `dtype` says otherwise. PyTorch's `torch.tensor`.
 */
export function tensor(data: TensorData, options: CreationOptions = {}): Tensor {
  for (const key of Object.keys(options))
    if (key !== 'dtype' && key !== 'requiresGrad') throw new ArgumentError(`torch.tensor: unknown option '${key}'; known are dtype, requiresGrad.`)
  // The values are there: a new tensor is made now, also while a mode captures or fakes.
  const made = withoutModes(() => fromNested(data, options.dtype ?? null))
  return finish('torch.tensor', made, options.requiresGrad === true)
}
nameTarget(tensor, { name: 'torch.tensor' })

function fromNested(data: TensorData, dtype: DType | null): Tensor {
  if (ArrayBuffer.isView(data)) {
    const own: DType =
      data instanceof Float32Array ? 'float32' : data instanceof Float64Array ? 'float64' : data instanceof Int32Array ? 'int32' : 'bool'
    return tensorFromValues(data as Float32Array, [data.length], dtype ?? own)
  }
  const shape: number[] = []
  for (let level: unknown = data; Array.isArray(level); level = level[0]) shape.push(level.length)
  const flat: number[] = []
  let bool = true
  const visit = (value: unknown, depth: number): void => {
    if (Array.isArray(value)) {
      if (depth >= shape.length || value.length !== shape[depth])
        throw new ShapeError(
          `torch.tensor: the nested arrays are ragged: expected ${shape[depth] ?? 'a number'} elements at depth ${depth}, got ${value.length}.`,
        )
      for (const item of value) visit(item, depth + 1)
      return
    }
    if (depth !== shape.length)
      throw new ShapeError(`torch.tensor: the nested arrays are ragged: expected an array at depth ${depth}, got ${String(value)}.`)
    if (typeof value !== 'number' && typeof value !== 'boolean')
      throw new ArgumentError(`torch.tensor: expected numbers or booleans, got ${value === null ? 'null' : typeof value}.`)
    if (typeof value === 'number') bool = false
    flat.push(Number(value))
  }
  visit(data, 0)
  return tensorFromValues(flat, shape, dtype ?? (bool && flat.length > 0 ? 'bool' : 'float32'))
}

const fillKernels = new Map<DType, CompiledKernel>()

function fillKernel(dtype: DType): CompiledKernel {
  let kernel = fillKernels.get(dtype)
  if (kernel === undefined) {
    const n = sizeParam('n')
    const i = loopVar('i', n)
    const value = scalarParam('value', dtype)
    const out = bufferParam('out', dtype, 'write')
    kernel = compileKernel({
      name: 'fill',
      params: [out, n, value],
      body: [forLoop(i, 'simd', [store(out, { base: 0, terms: [{ loop: i, stride: 1 }], dynamic: [] }, scalar(value))])],
    })
    fillKernels.set(dtype, kernel)
  }
  return kernel
}

function checkSize(op: string, size: readonly number[]): void {
  if (size.some((s) => !Number.isInteger(s) || s < 0)) throw new ShapeError(`${op}: sizes must be integers of at least 0, got [${size.join(', ')}].`)
}

/** The primitive behind full, zeros, ones and their kin. PyTorch's aten.full. */
const fullOf: OpFunction<(size: readonly number[], fillValue: number, dtype: DType) => Tensor> = defineOp({
  schema: 'full(int[] size, Scalar fill_value, ScalarType dtype) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  tags: ['creation'],
  meta: (size: readonly number[], _value: number, dtype: DType): TensorSpec => ({ shape: size, dtype }),
  kernel: (size: readonly number[], value: number, dtype: DType): Tensor => {
    const out = Tensor.empty(size, dtype)
    if (out.numel > 0) launch(fillKernel(dtype), [out], [out.numel, Number(value)])
    return out
  },
})

/** Marks a new tensor as a leaf that requires grad; above the modes, so that captures see it too. */
function finish(op: string, out: Tensor, requiresGrad: boolean): Tensor {
  if (!requiresGrad) return out
  if (!dtypeInfo[out.dtype].floating)
    throw new ArgumentError(
      `${op}: only floating-point tensors can require gradients, this one is ${out.dtype}; leave out requiresGrad, or ask for dtype 'float32'.`,
    )
  out.requiresGrad = true
  return out
}

function filled(op: string, size: readonly number[], value: number, dtype: DType, requiresGrad: boolean): Tensor {
  checkSize(op, size)
  return finish(op, fullOf(size, value, dtype), requiresGrad)
}

/** A tensor with one value everywhere. PyTorch's `torch.full`. */
export const full: OpFunction<(size: readonly number[], fillValue: number | boolean, options?: CreationOptions) => Tensor> = defineOp({
  schema: 'full(int[] size, Scalar fill_value, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (size: readonly number[], value: number | boolean, dtype: DType | null, requiresGrad: boolean): Tensor =>
    filled('torch.full', size, Number(value), dtype ?? (typeof value === 'boolean' ? 'bool' : 'float32'), requiresGrad),
})

/** `zeros([2, 3])` or `zeros(2, 3)`, and options at the end. */
type Sized = (...size: readonly (number | readonly number[] | CreationOptions)[]) => Tensor

/** Zeros. PyTorch's `torch.zeros`. */
export const zeros: OpFunction<Sized> = defineOp({
  schema: 'zeros(int[] size, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (size: readonly number[], dtype: DType | null, requiresGrad: boolean): Tensor =>
    filled('torch.zeros', size, 0, dtype ?? 'float32', requiresGrad),
})

/** Ones. PyTorch's `torch.ones`. */
export const ones: OpFunction<Sized> = defineOp({
  schema: 'ones(int[] size, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (size: readonly number[], dtype: DType | null, requiresGrad: boolean): Tensor =>
    filled('torch.ones', size, 1, dtype ?? 'float32', requiresGrad),
})

/** A tensor whose values are not specified (zeros here: old memory is never shown). PyTorch's `torch.empty`. */
export const empty: OpFunction<Sized> = defineOp({
  schema: 'empty(int[] size, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (size: readonly number[], dtype: DType | null, requiresGrad: boolean): Tensor =>
    filled('torch.empty', size, 0, dtype ?? 'float32', requiresGrad),
})

/** Zeros of another tensor's shape and dtype. PyTorch's `torch.zeros_like`. */
export const zerosLike: OpFunction<(self: Tensor, options?: CreationOptions) => Tensor> = defineOp({
  schema: 'zeros_like(Tensor self, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (self: Tensor, dtype: DType | null, requiresGrad: boolean): Tensor =>
    filled('torch.zeros_like', self.shape, 0, dtype ?? self.dtype, requiresGrad),
})

/** Ones of another tensor's shape and dtype. PyTorch's `torch.ones_like`. */
export const onesLike: OpFunction<(self: Tensor, options?: CreationOptions) => Tensor> = defineOp({
  schema: 'ones_like(Tensor self, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (self: Tensor, dtype: DType | null, requiresGrad: boolean): Tensor =>
    filled('torch.ones_like', self.shape, 1, dtype ?? self.dtype, requiresGrad),
})

/** One value in another tensor's shape and dtype. PyTorch's `torch.full_like`. */
export const fullLike: OpFunction<(self: Tensor, fillValue: number, options?: CreationOptions) => Tensor> = defineOp({
  schema: 'full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (self: Tensor, value: number, dtype: DType | null, requiresGrad: boolean): Tensor =>
    filled('torch.full_like', self.shape, value, dtype ?? self.dtype, requiresGrad),
})

const rangeKernels = new Map<DType, CompiledKernel>()

function rangeKernel(dtype: DType): CompiledKernel {
  let kernel = rangeKernels.get(dtype)
  if (kernel === undefined) {
    const n = sizeParam('n')
    const i = loopVar('i', n)
    const [start, step] = [scalarParam('start', dtype), scalarParam('step', dtype)]
    const out = bufferParam('out', dtype, 'write')
    const value = call('add', scalar(start), call('mul', cast(iota(i), dtype), scalar(step)))
    kernel = compileKernel({
      name: 'arange',
      params: [out, n, start, step],
      body: [forLoop(i, 'simd', [store(out, { base: 0, terms: [{ loop: i, stride: 1 }], dynamic: [] }, value)])],
    })
    rangeKernels.set(dtype, kernel)
  }
  return kernel
}

/** start + i * step for i below count. The primitive behind arange and linspace. */
const rangeOf: OpFunction<(start: number, step: number, count: number, dtype: DType) => Tensor> = defineOp({
  schema: 'range(Scalar start, Scalar step, int count, ScalarType dtype) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  tags: ['creation'],
  meta: (_start: number, _step: number, count: number, dtype: DType): TensorSpec => ({ shape: [count], dtype }),
  kernel: (start: number, step: number, count: number, dtype: DType): Tensor => {
    const out = Tensor.empty([count], dtype)
    if (count > 0) launch(rangeKernel(dtype), [out], [count, start, step])
    return out
  },
})

interface Arange {
  (end: number, options?: CreationOptions): Tensor
  (start: number, end: number, options?: CreationOptions): Tensor
  (start: number, end: number, step: number, options?: CreationOptions): Tensor
}

/** start, start + step, … before end; `arange(end)` starts at 0. float32 unless dtype says otherwise. PyTorch's `torch.arange`. */
export const arange: OpFunction<Arange> = defineOp({
  schema: 'arange.start_step(Scalar start, Scalar? end=None, Scalar step=1, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (start: number, end: number | null, step: number, dtype: DType | null, requiresGrad: boolean): Tensor => {
    const [from, until] = end === null ? [0, start] : [start, end]
    if (!Number.isFinite(from) || !Number.isFinite(until) || step === 0 || Number.isNaN(step) || (until - from) / step < 0) {
      throw new ArgumentError(`torch.arange: a step of ${step} does not lead from ${from} to ${until}.`)
    }
    return finish('torch.arange', rangeOf(from, step, Math.ceil((until - from) / step), dtype ?? 'float32'), requiresGrad)
  },
})

/** `steps` values from start to end, both included. PyTorch's `torch.linspace`. */
export const linspace: OpFunction<(start: number, end: number, steps: number, options?: CreationOptions) => Tensor> = defineOp({
  schema: 'linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (start: number, end: number, steps: number, dtype: DType | null, requiresGrad: boolean): Tensor => {
    if (steps < 0) throw new ArgumentError(`torch.linspace: argument 'steps' must be at least 0, got ${steps}.`)
    return finish('torch.linspace', rangeOf(start, steps > 1 ? (end - start) / (steps - 1) : 0, steps, dtype ?? 'float32'), requiresGrad)
  },
})

/** The identity matrix of n rows and m (default n) columns. PyTorch's `torch.eye`. */
export const eye: OpFunction<(n: number, m?: number | null | CreationOptions, options?: CreationOptions) => Tensor> = defineOp({
  schema: 'eye(int n, int? m=None, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (n: number, m: number | null, dtype: DType | null, requiresGrad: boolean): Tensor => {
    checkSize('torch.eye', [n, m ?? n])
    const rows = rangeOf(0, 1, n, 'int32')
    const cols = m === null || m === n ? rows : rangeOf(0, 1, m, 'int32')
    return finish(
      'torch.eye',
      rows
        .unsqueeze(1)
        .eq(cols)
        .to(dtype ?? 'float32'),
      requiresGrad,
    )
  },
})

/** A tensor without dimensions. PyTorch's `torch.scalar_tensor`. */
export const scalarTensor: OpFunction<(value: number, options?: CreationOptions) => Tensor> = defineOp({
  schema: 'scalar_tensor(Scalar s, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (value: number, dtype: DType | null, requiresGrad: boolean): Tensor =>
    filled('torch.scalar_tensor', [], value, dtype ?? 'float32', requiresGrad),
})

/** Like {@link zeros}, in another tensor's shape, values not specified. PyTorch's `torch.empty_like`. */
export const emptyLike: OpFunction<(self: Tensor, options?: CreationOptions) => Tensor> = defineOp({
  schema: 'empty_like(Tensor self, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  tags: ['creation'],
  decompose: (self: Tensor, dtype: DType | null, requiresGrad: boolean): Tensor =>
    filled('torch.empty_like', self.shape, 0, dtype ?? self.dtype, requiresGrad),
})
