// Indexing by tensors: gather, scatterAdd, indexSelect.
import { DTypeError, ShapeError } from '../../errors/index.ts'
import { at, bufferParam, compileKernel, declare, forLoop, load, local, loopVar, read, sizeParam, store } from '../../kernels/index.ts'
import type { CompiledKernel, DType, Expr, LoopVar, Size, Stmt } from '../../kernels/index.ts'
import { collapseDims, formatShape, sizeEq, sizeLess, Tensor, wrapDim } from '../../tensor/index.ts'
import { zeros } from '../create/creation.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { copyInto } from '../eager/copy.ts'
import { kernelCache, launch } from '../eager/launch.ts'
import { checkIndexRange, checkIndexType, strideIndices } from './indices.ts'
import { linesOf, sizeAt } from '../shared/shapes.ts'
import { clone, contiguous, reshape } from './reshape.ts'
import { narrow, sliceBackward } from './slicing.ts'
import { expand } from './windows.ts'

export function checkIndex(op: string, self: Tensor, dim: number, index: Tensor): number {
  const wrapped = wrapDim(op, dim, self.ndim)
  checkIndexType(op, 'index', index)
  if (sizeEq(index.symNumel, 0)) return wrapped
  if (Math.max(index.ndim, 1) !== Math.max(self.ndim, 1) || index.symSizes.some((s, i) => i !== wrapped && sizeLess(self.symSizes[i] ?? 1, s))) {
    throw new ShapeError(
      `${op}: argument 'index' has shape ${formatShape(index.symSizes)}, which does not fit self of shape ${formatShape(self.symSizes)}: same number of dimensions, and no size above self's but in dimension ${dim}.`,
    )
  }
  return wrapped
}

/** A tensor without dimensions as a line of one element. */
export const lineOf = (t: Tensor): Tensor => (t.ndim === 0 ? reshape(t, [1]) : t)

/** What a scatter does with a value that an index names: writes it, or combines it with the one that is there. */
export type ScatterKind = 'set' | 'mul' | 'min' | 'max'

/** What a kernel does along the lines of an index: reads the values that it names, or writes there. */
type LineKind = 'gather' | 'scatter' | ScatterKind

/**
 * How the elements of an index lie: one for each slice of the dimensions behind `dim` ('slices'), as where it is expanded in them; one for each element of such a slice;
 * or there are no dimensions behind.
 */
type IndexLayout = 'slices' | 'elements' | 'last'

const lineKernel = kernelCache((kind: LineKind, dtype: DType, layout: IndexLayout): CompiledKernel => {
  const [outer, n, inner, otherLine] = [sizeParam('outer'), sizeParam('n'), sizeParam('inner'), sizeParam('other_line')]
  const [outerStep, step, innerStep] = [sizeParam('index_outer'), sizeParam('index_step'), sizeParam('index_inner')]
  const denseLine = sizeParam('dense_line')
  const [o, k, i] = [loopVar('o', outer), loopVar('k', n), loopVar('i', inner)]
  const index = bufferParam('index', 'int32')
  const out = bufferParam('out', dtype, kind === 'gather' ? 'write' : 'readwrite')
  const a = bufferParam('a', dtype)
  const combine = kind === 'gather' || kind === 'set' ? null : kind === 'scatter' ? 'add' : kind
  const body = (position: Expr, behind: readonly (readonly [LoopVar, Size])[]): Stmt => {
    const dense = at([o, denseLine], [k, inner], ...behind)
    const chosen = { ...at([o, otherLine], ...behind), dynamic: [{ value: position, stride: inner }] }
    return kind === 'gather' ? store(out, dense, load(a, chosen)) : store(out, chosen, load(a, dense), combine)
  }
  const position = local('position', 'int32')
  const walks: Readonly<Record<IndexLayout, () => Stmt>> = {
    // The elements of a slice never collide, so they run in lanes.
    slices: () =>
      forLoop(k, 'serial', [declare(position, load(index, at([o, outerStep], [k, step]))), forLoop(i, 'simd', [body(read(position), [[i, 1]])])]),
    elements: () => forLoop(k, 'serial', [forLoop(i, 'simd', [body(load(index, at([o, outerStep], [k, step], [i, innerStep])), [[i, 1]])])]),
    last: () => forLoop(k, kind === 'gather' ? 'simd' : 'serial', [body(load(index, at([o, outerStep], [k, step])), [])]),
  }
  return compileKernel({
    name: kind,
    params: [out, a, index, outer, n, inner, denseLine, otherLine, outerStep, step, innerStep],
    body: [forLoop(o, 'serial', [walks[layout]()])],
  })
})

/** The stride of the dimensions from `start` to `end - 1` of a tensor, walked as one; null if that takes several. */
function jointStride({ sizes, steps }: Tensor, start: number, end?: number): number | null {
  const { dims, strides: joint } = collapseDims(sizes.slice(start, end), [steps.slice(start, end)])
  return dims.length > 1 ? null : (joint[0]?.[0] ?? 0)
}

/**
 * Gathers or scatters along `dim` between tensors of which one has the shape of the index, and the other lines of `size` elements in `dim`. `target` is written. The
 * indices are checked, and read where they are if their strides allow it.
 */
export function launchLines(kind: LineKind, op: string, target: Tensor, source: Tensor, index: Tensor, dim: number, size: number): void {
  const [outer, n, inner] = linesOf(index.sizes, dim)
  const words = strideIndices(op, 'index', index, size)
  const isWalkable = jointStride(words, 0, dim) !== null && jointStride(words, dim + 1) !== null
  const positions = isWalkable ? words : contiguous(words)
  const [outerStep, innerStep] = [jointStride(positions, 0, dim) ?? 0, jointStride(positions, dim + 1) ?? 0]
  const layout = inner === 1 ? 'last' : innerStep === 0 ? 'slices' : 'elements'
  launch(
    lineKernel(kind, target.dtype, layout),
    [target, source, positions],
    [outer, n, inner, n * inner, size * inner, outerStep, positions.steps[dim] ?? 0, innerStep],
  )
}

/**
 * The values of `self` at `index` along `dim`: out[i][j] = self[index[i][j]][j] for dim 0. PyTorch's `torch.gather`.
 *
 * Shapes: `index` has as many dimensions as `self`, and no size above that of `self` but in `dim`. The result has the shape of `index`.
 *
 * @throws ShapeError if the shapes do not fit, DTypeError if `index` does not hold integers.
 * @throws ArgumentError if an index is out of range.
 * @example torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[1, 0], [0, 0]]).long()).toArray() // [[2, 1], [3, 3]]
 */
export const gather: Op['gather'] = defineOp({
  schema: 'gather(Tensor self, int dim, Tensor index) -> Tensor',
  method: true,
  vmap: 'dimensions',
  onnx: 'gather',
  autocast: 'as is',
  meta: (self, dim, index) => {
    checkIndex('torch.gather', self, dim, index)
    return { shape: index.symSizes, dtype: self.dtype }
  },
  indices: { argument: 'index', check: (self, dim, index) => checkIndexRange('torch.gather', 'index', index, self.sizes.at(dim) ?? 1) },
  kernel: (self, dim, index) => {
    const wrapped = checkIndex('torch.gather', self, dim, index)
    const out = Tensor.empty(index.sizes, self.dtype)
    if (sizeEq(index.symNumel, 0)) return out
    // Lines must be as wide as the index in every other dimension.
    const [from, at] = [lineOf(self), lineOf(index)]
    launchLines('gather', 'torch.gather', out, contiguous(trimmed(from, at, wrapped)), at, wrapped, sizeAt(from.sizes, wrapped))
    return out
  },
  derivative: ([g], { args: [self, dim, index] }) => [scatterAdd(zeros(self.symSizes, { dtype: g.dtype }), dim, index, g), null, null],
})

/** `self` cut to the sizes of `index` in every dimension but `dim`; a view. */
export function trimmed(self: Tensor, index: Tensor, dim: number): Tensor {
  return index.symSizes.reduce<Tensor>(
    (out, size, d) => (d !== dim && sizeLess(size, sizeAt(self.symSizes, d)) ? narrow(out, d, 0, size) : out),
    self,
  )
}

export function checkScatter(self: Tensor, dim: number, index: Tensor, src: Tensor, op = 'torch.scatter_add'): number {
  const wrapped = checkIndex(op, self, dim, index)
  if (src.dtype !== self.dtype) throw new DTypeError(`${op}: argument 'src' is ${src.dtype}, but self is ${self.dtype}; convert one of them.`)
  if (
    !sizeEq(index.symNumel, 0) &&
    (Math.max(src.ndim, 1) !== Math.max(index.ndim, 1) || index.symSizes.some((s, i) => sizeLess(src.symSizes[i] ?? 1, s)))
  ) {
    throw new ShapeError(
      `${op}: argument 'src' has shape ${formatShape(src.symSizes)}, which is smaller than index's shape ${formatShape(index.symSizes)}.`,
    )
  }
  return wrapped
}

/** The gradient of the elements of `src` that the index reaches; that of the others is 0. */
export function widened(grad: Tensor, src: Tensor): Tensor {
  if (sizeEq(grad.symNumel, 0)) return zeros(src.symSizes, { dtype: grad.dtype })
  if (grad.ndim !== src.ndim) return reshape(widened(lineOf(grad), lineOf(src)), src.symSizes)
  return src.symSizes.reduce((out, size, d) => {
    const n = sizeAt(out.symSizes, d)
    return sizeLess(n, size) ? sliceBackward(out, out.symSizes.with(d, size), d, 0, n, 1) : out
  }, grad)
}

/** A copy of `self` with `src` written or combined at `index` along `dim`, which are checked. */
export function writeLines(kind: 'scatter' | ScatterKind, op: string, self: Tensor, dim: number, index: Tensor, src: Tensor): Tensor {
  const out = clone(self)
  if (sizeEq(index.symNumel, 0)) return out
  const wrapped = wrapDim(op, dim, self.ndim)
  const [into, at, from] = [lineOf(out), lineOf(index), lineOf(src)]
  // The part of the result that the index reaches.
  const window = trimmed(into, at, wrapped)
  const target = contiguous(window)
  launchLines(kind, op, target, contiguous(trimmed(from, at, -1)), at, wrapped, sizeAt(into.sizes, wrapped))
  if (target !== window) copyInto(target, window)
  return out
}

/**
 * A copy of `self` with the values of `src` added at `index` along `dim`; values at equal indices add up. PyTorch's `torch.scatter_add`.
 *
 * Shapes: `index` as for {@link gather}; `src` is at least as large in every dimension. The result has the shape of `self`.
 *
 * @throws ShapeError if the shapes do not fit, DTypeError if `index` does not hold integers or the dtypes differ.
 * @throws ArgumentError if an index is out of range.
 * @example torch.scatterAdd(torch.zeros([3]), 0, torch.tensor([2, 0, 2]).long(), torch.tensor([1, 5, 10])).toArray() // [5, 0, 11]
 */
export const scatterAdd: Op['scatterAdd'] = defineOp({
  schema: 'scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor',
  method: true,
  inPlace: 'method',
  halvesInFloat32: true,
  vmap: 'dimensions',
  onnx: 'scatterAdd',
  autocast: 'as is',
  meta: (self, dim, index, src) => {
    checkScatter(self, dim, index, src)
    return { shape: self.symSizes, dtype: self.dtype }
  },
  indices: { argument: 'index', check: (self, dim, index) => checkIndexRange('torch.scatter_add', 'index', index, self.sizes.at(dim) ?? 1) },
  kernel: (self, dim, index, src) => {
    checkScatter(self, dim, index, src)
    return writeLines('scatter', 'torch.scatter_add', self, dim, index, src)
  },
  derivative: ([g], { args: [, dim, index, src] }) => {
    return [g, null, null, widened(gather(g, dim, index), src)]
  },
})

/**
 * The slices of dimension `dim` that `index` lists. PyTorch's `torch.index_select`.
 *
 * Shapes: `index` [n], of an integer dtype. The result has the shape of `self` with size n in `dim`.
 *
 * @throws ShapeError if `index` does not have 1 dimension or `dim` is out of range, DTypeError if `index` does not hold integers.
 * @throws ArgumentError if an index is out of range.
 * @example torch.indexSelect(torch.tensor([[1, 2], [3, 4]]), 0, torch.tensor([1, 1]).long()).toArray() // [[3, 4], [3, 4]]
 */
export const indexSelect: Op['indexSelect'] = defineOp({
  schema: 'index_select(Tensor self, int dim, Tensor index) -> Tensor',
  method: true,
  decompose: (self, dim, index) => {
    const wrapped = wrapDim('torch.index_select', dim, self.ndim)
    if (index.ndim > 1) throw new ShapeError(`torch.index_select: argument 'index' must have 1 dimension, got shape ${formatShape(index.symSizes)}.`)
    if (self.ndim === 0 && !sizeEq(index.symNumel, 1))
      throw new ShapeError(
        `torch.index_select: self has no dimensions, so that index must have one element, got shape ${formatShape(index.symSizes)}.`,
      )
    const line = lineOf(self)
    const along = line.symSizes.map((_, i) => (i === wrapped ? index.symNumel : 1))
    const chosen = gather(line, wrapped, expand(reshape(index, along), line.symSizes.with(wrapped, index.symNumel)))
    return self.ndim === 0 ? reshape(chosen, []) : chosen
  },
})
