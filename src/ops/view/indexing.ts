// Indexing by tensors: gather, scatterAdd, indexSelect.
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
import { bufferParam, compileKernel, forLoop, load, loopVar, sizeParam, store } from '../../kernels/index.ts'
import type { CompiledKernel, DType, Index } from '../../kernels/index.ts'
import { Tensor, formatShape, wrapDim } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { copyInto } from '../eager/copy.ts'
import { launch } from '../eager/launch.ts'
import { zeros } from '../creation.ts'
import { clone, contiguous, reshape } from './reshape.ts'
import { sliceBackward } from './slicing.ts'
import { expand } from './windows.ts'

function checkIndex(op: string, self: Tensor, dim: number, index: Tensor): number {
  const at = wrapDim(op, dim, self.ndim)
  if (index.dtype !== 'int32') throw new DTypeError(`${op}: argument 'index' must be int32, got ${index.dtype}.`)
  if (index.ndim !== self.ndim || index.shape.some((s, i) => i !== at && s > (self.shape[i] as number))) {
    throw new ShapeError(
      `${op}: argument 'index' has shape ${formatShape(index.shape)}, which does not fit self of shape ${formatShape(self.shape)}: same number of dimensions, and no size above self's but in dimension ${dim}.`,
    )
  }
  return at
}

/** Index values are data: they are checked before a kernel follows them. */
function checkRange(op: string, index: Tensor, size: number): void {
  const values = index.toTypedArray()
  for (let i = 0; i < values.length; i++) {
    const v = values[i] as number
    if (v < 0 || v >= size) throw new ArgumentError(`${op}: index ${v} is out of range for a dimension of size ${size}.`)
  }
}

const kernels = new Map<string, CompiledKernel>()

/** Walks [outer, n, inner] of the index; the other operand has line length `m` in the indexed dimension. */
function lineKernel(kind: 'gather' | 'scatter', dtype: DType): CompiledKernel {
  const key = `${kind} ${dtype}`
  let kernel = kernels.get(key)
  if (kernel !== undefined) return kernel
  const [outer, n, inner, indexLine, otherLine] = [
    sizeParam('outer'),
    sizeParam('n'),
    sizeParam('inner'),
    sizeParam('index_line'),
    sizeParam('other_line'),
  ]
  const [o, k, i] = [loopVar('o', outer), loopVar('k', n), loopVar('i', inner)]
  const index = bufferParam('index', 'int32')
  const dense: Index = {
    base: 0,
    terms: [
      { loop: o, stride: indexLine },
      { loop: k, stride: inner },
      { loop: i, stride: 1 },
    ],
    dynamic: [],
  }
  const chosen: Index = {
    base: 0,
    terms: [
      { loop: o, stride: otherLine },
      { loop: i, stride: 1 },
    ],
    dynamic: [{ value: load(index, dense), stride: inner }],
  }
  const out = bufferParam('out', dtype, kind === 'gather' ? 'write' : 'readwrite')
  const a = bufferParam('a', dtype)
  const body = kind === 'gather' ? store(out, dense, load(a, chosen)) : store(out, chosen, load(a, dense), 'add')
  kernel = compileKernel({
    name: kind,
    params: [out, a, index, outer, n, inner, indexLine, otherLine],
    body: [forLoop(o, 'serial', [forLoop(k, 'serial', [forLoop(i, 'serial', [body])])])],
  })
  kernels.set(key, kernel)
  return kernel
}

/** The extents around a dimension: outer, size, inner. */
const lines = (shape: readonly number[], dim: number): [number, number, number] => [
  shape.slice(0, dim).reduce((a, b) => a * b, 1),
  shape[dim] ?? 1,
  shape.slice(dim + 1).reduce((a, b) => a * b, 1),
]

/** Values of self at index along dim: out[i][j] = self[index[i][j]][j] for dim 0. PyTorch's `torch.gather`. */
export const gather: OpFunction<(self: Tensor, dim: number, index: Tensor) => Tensor> = defineOp({
  schema: 'gather(Tensor self, int dim, Tensor index) -> Tensor',
  method: true,
  meta: (self: Tensor, dim: number, index: Tensor): TensorSpec => {
    checkIndex('torch.gather', self, dim, index)
    return { shape: index.shape, dtype: self.dtype }
  },
  kernel: (self: Tensor, dim: number, index: Tensor): Tensor => {
    const at = checkIndex('torch.gather', self, dim, index)
    checkRange('torch.gather', index, self.shape[at] ?? 1)
    // Lines must be as wide as the index in every other dimension.
    const source = contiguous(trimmed(self, index, at))
    const out = Tensor.empty(index.shape, self.dtype)
    const [outer, n, inner] = lines(index.shape, at)
    launch(lineKernel('gather', self.dtype), [out, source, contiguous(index)], [outer, n, inner, n * inner, (source.shape[at] ?? 1) * inner])
    return out
  },
  derivative: ([g], { args: [x, dim, index] }) => [
    scatterAdd(zeros((x as Tensor).shape, { dtype: (g as Tensor).dtype }), dim as number, index as Tensor, g as Tensor),
    null,
    null,
  ],
})

/** self cut to the index's sizes in all dimensions but `dim`; a view. */
function trimmed(self: Tensor, index: Tensor, dim: number): Tensor {
  let out = self
  self.shape.forEach((size, d) => {
    if (d !== dim && (index.shape[d] as number) < size) out = out.narrow(d, 0, index.shape[d] as number)
  })
  return out
}

function checkScatter(self: Tensor, dim: number, index: Tensor, src: Tensor): number {
  const at = checkIndex('torch.scatter_add', self, dim, index)
  if (src.dtype !== self.dtype)
    throw new DTypeError(`torch.scatter_add: argument 'src' is ${src.dtype}, but self is ${self.dtype}; convert one of them.`)
  if (src.ndim !== index.ndim || src.shape.some((s, i) => s < (index.shape[i] as number))) {
    throw new ShapeError(
      `torch.scatter_add: argument 'src' has shape ${formatShape(src.shape)}, which is smaller than index's shape ${formatShape(index.shape)}.`,
    )
  }
  return at
}

/** self with src added at index along dim; repeated indices add up. PyTorch's `torch.scatter_add`. */
export const scatterAdd: OpFunction<(self: Tensor, dim: number, index: Tensor, src: Tensor) => Tensor> = defineOp({
  schema: 'scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor',
  method: true,
  meta: (self: Tensor, dim: number, index: Tensor, src: Tensor): TensorSpec => {
    checkScatter(self, dim, index, src)
    return { shape: self.shape, dtype: self.dtype }
  },
  kernel: (self: Tensor, dim: number, index: Tensor, src: Tensor): Tensor => {
    const at = checkScatter(self, dim, index, src)
    checkRange('torch.scatter_add', index, self.shape[at] ?? 1)
    const out = clone(self)
    // The part of the result that the index reaches.
    const window = trimmed(out, index, at)
    const target = contiguous(window)
    const [outer, n, inner] = lines(index.shape, at)
    launch(
      lineKernel('scatter', self.dtype),
      [target, contiguous(trimmed(src, index, -1)), contiguous(index)],
      [outer, n, inner, n * inner, (self.shape[at] ?? 1) * inner],
    )
    if (target !== window) copyInto(target, window)
    return out
  },
  derivative: ([g], { args: [, dim, index, src] }) => {
    // Elements of src beyond the index take no part.
    const reached = gather(g as Tensor, dim as number, index as Tensor)
    const sizes = (src as Tensor).shape
    return [
      g as Tensor,
      null,
      null,
      reached.shape.reduce(
        (grad, n, d) => (n < (sizes[d] as number) ? sliceBackward(grad, grad.shape.with(d, sizes[d] as number), d, 0, n, 1) : grad),
        reached,
      ),
    ]
  },
})

/** The rows (of dimension dim) that index lists. PyTorch's `torch.index_select`. */
export const indexSelect: OpFunction<(self: Tensor, dim: number, index: Tensor) => Tensor> = defineOp({
  schema: 'index_select(Tensor self, int dim, Tensor index) -> Tensor',
  method: true,
  decompose: (self: Tensor, dim: number, index: Tensor): Tensor => {
    const at = wrapDim('torch.index_select', dim, self.ndim)
    if (index.ndim !== 1) throw new ShapeError(`torch.index_select: argument 'index' must have 1 dimension, got shape ${formatShape(index.shape)}.`)
    const shape = self.shape.with(at, index.numel)
    const full = expand(
      reshape(
        index,
        self.shape.map((_, i) => (i === at ? index.numel : 1)),
      ),
      shape,
    )
    return gather(self, at, full)
  },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    gather(dim: number, index: Tensor): Tensor
    scatterAdd(dim: number, index: Tensor, src: Tensor): Tensor
    indexSelect(dim: number, index: Tensor): Tensor
  }
}
