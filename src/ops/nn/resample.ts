// Lines of another length, whose elements are weighted sums of a few elements of the line: what interpolate does to each dimension.
import {
  accumulate,
  at,
  bufferParam,
  call,
  compileKernel,
  compileSwizzledLines,
  constant,
  declare,
  forLoop,
  load,
  local,
  loopVar,
  read,
  sizeParam,
  store,
  swizzleTable,
} from '../../kernels/index.ts'
import type { CompiledKernel, DType, Expr, LoopVar, Size, Stmt } from '../../kernels/index.ts'
import { Tensor, tensorFromValues } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { zeros } from '../creation.ts'
import type { OpFunction } from '../declaration.ts'
import { defineOp } from '../defineOp.ts'
import { kernelCache, launch } from '../eager/launch.ts'
import { constantIndices } from '../indices.ts'
import { add, mul } from '../pointwise/arithmetic.ts'
import { matmul } from '../linalg/matmul.ts'
import { dimAndSize, linesOf, sizeAt } from '../shapes.ts'
import { indexSelect } from '../view/indexing.ts'
import { indexAdd } from '../view/positions.ts'
import { transpose } from '../view/permute.ts'
import { contiguous, reshape } from '../view/reshape.ts'
import { checkSizes, resampleTable, transposedTable } from './resampleTable.ts'
import type { ResampleTable } from './resampleTable.ts'
import { constantOf } from './windowTables.ts'

const NAME = 'torch.nn.functional.interpolate'

/** So many elements of a line are written out in the kernel; more are a loop. */
const WRITTEN_OUT = 4

/**
 * out[o][k][i] = the sum over t of a[o][positions[t][k]][i] * weights[t][k]. `taps` is the number of summands, or 0 for a loop over them; `isLast`: there is no i.
 * Where `guarded`, a weight of 0 stands for no element.
 */
const lineKernel = kernelCache((dtype: DType, taps: number, weighted: boolean, guarded: boolean, isLast: boolean): CompiledKernel => {
  const [outer, m, inner, line, otherLine] = [sizeParam('outer'), sizeParam('m'), sizeParam('inner'), sizeParam('line'), sizeParam('other_line')]
  const [count, m2, m3] = [sizeParam('taps'), sizeParam('m2'), sizeParam('m3')]
  const [o, k, i, t] = [loopVar('o', outer), loopVar('k', m), loopVar('i', inner), loopVar('t', count)]
  const [out, a] = [bufferParam('out', dtype, 'write'), bufferParam('a', dtype)]
  const [positions, weights] = [bufferParam('positions', 'int32'), bufferParam('weights', dtype)]
  const behind: readonly (readonly [LoopVar, Size])[] = isLast ? [] : [[i, 1]]
  /** A summand: its entries in the tables begin at `base`, or lie along a loop. */
  const summand = (base: Size, ...along: readonly (readonly [LoopVar, Size])[]): Expr => {
    const entry = { ...at([k, 1], ...along), base }
    const element = load(a, { ...at([o, otherLine], ...behind), dynamic: [{ value: load(positions, entry), stride: inner }] })
    if (!weighted) return element
    const weight = load(weights, entry)
    const product = call('mul', element, weight)
    return guarded ? call('where', call('eq', weight, constant(dtype, 0)), constant(dtype, 0), product) : product
  }
  const place = at([o, line], [k, inner], ...behind)
  const sum = local('sum', dtype)
  const bases: readonly Size[] = [0, m, m2, m3]
  const written = (): Expr =>
    bases
      .slice(0, taps)
      .map((base) => summand(base))
      .reduce((total, part) => call('add', total, part))
  const body: readonly Stmt[] =
    taps > 0
      ? [store(out, place, written())]
      : [declare(sum, constant(dtype, 0)), forLoop(t, 'serial', [accumulate(sum, 'add', summand(0, [t, m]))]), store(out, place, read(sum))]
  return compileKernel({
    name: 'resample',
    params: [out, a, positions, ...(weighted ? [weights] : []), outer, m, inner, line, otherLine, count, m2, m3],
    body: [forLoop(o, 'serial', [isLast ? forLoop(k, 'simd', body) : forLoop(k, 'serial', [forLoop(i, 'simd', body)])])],
  })
})

const swizzleKernel = kernelCache(compileSwizzledLines)

/** The lines of dimension `dim` with the elements that the table says. */
function byTable(self: Tensor, dim: number, table: ResampleTable): Tensor {
  const { out: m, taps, positions, weights, guarded } = table
  const result = Tensor.empty(self.shape.with(dim, m), self.dtype)
  const [outer, n, inner] = linesOf(self.shape, dim)
  const swizzles = inner === 1 && self.dtype === 'float32' && !guarded ? swizzleTable(table, n) : null
  if (swizzles !== null) {
    const entries = tensorFromValues(swizzles, [swizzles.length], 'int32')
    launch(swizzleKernel(taps, weights !== null), [result, contiguous(self), entries], [outer, n, m])
    return result
  }
  const tables = [
    tensorFromValues(positions, [positions.length], 'int32'),
    ...(weights === null ? [] : [tensorFromValues(weights, [weights.length], self.dtype)]),
  ]
  launch(
    lineKernel(self.dtype, taps <= WRITTEN_OUT ? taps : 0, weights !== null, guarded, inner === 1),
    [result, contiguous(self), ...tables],
    [outer, m, inner, m * inner, n * inner, taps, 2 * m, 3 * m],
  )
  return result
}

const resizedSpec = (self: Tensor, dim: number, size: number): TensorSpec => {
  const [axis, own] = dimAndSize(NAME, self, dim)
  checkSizes(own, size)
  return { shape: self.shape.with(axis, size), dtype: self.dtype }
}

/** The entries of tap `t` as constants: positions, and weights that multiply the elements of dimension `dim`. */
function tapOf(self: Tensor, dim: number, { out, positions, weights }: ResampleTable, t: number): readonly [Tensor, Tensor | null] {
  const [start, end] = [t * out, (t + 1) * out]
  const along = self.shape.map((_, d) => (d === dim ? -1 : 1))
  return [
    constantIndices(Array.from(positions.subarray(start, end))),
    weights === null ? null : reshape(constantOf(weights.subarray(start, end), [out], self.dtype), along),
  ]
}

/** {@link byTable}, by operators. Where the elements have many parts, as a product with the matrix of weights. */
function byOperators(self: Tensor, dim: number, table: ResampleTable): Tensor {
  const { out, taps, positions, weights, guarded } = table
  if (guarded && weights !== null) {
    const size = sizeAt(self.shape, dim)
    const matrix = new Float64Array(size * out)
    positions.forEach((position, entry) => {
      const axis = position * out + (entry % out)
      matrix[axis] = (matrix[axis] ?? 0) + (weights[entry] ?? 0)
    })
    return transpose(matmul(transpose(self, dim, -1), constantOf(matrix, [size, out], self.dtype)), dim, -1)
  }
  return Array.from({ length: taps }, (_, t) => {
    const [places, factors] = tapOf(self, dim, table, t)
    const chosen = indexSelect(self, dim, places)
    return factors === null ? chosen : mul(chosen, factors)
  }).reduce((sum, part) => add(sum, part))
}

/** {@link resample}; integers, which no weights are for, by operators. */
export const resampled = (self: Tensor, dim: number, size: number, mode: string, scale: number, align: boolean, antialias: boolean): Tensor =>
  self.isFloatingPoint() || mode.startsWith('nearest')
    ? resample(self, dim, size, mode, scale, align, antialias)
    : byOperators(self, dim, resampleTable(sizeAt(self.shape, dim), size, mode, scale, align, antialias))

type Resample = (self: Tensor, dim: number, size: number, mode: string, scale: number, alignCorners: boolean, antialias: boolean) => Tensor

/**
 * Dimension `dim` with `size` elements, as interpolate does it in one of its modes; `scale` is the step in the line for one in the result. Internal; PyTorch's
 * `aten.upsample_linear1d` and its like.
 *
 * Shape: that of `self`, with `size` in `dim`.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example torch.ops.tensorfx.resample(torch.tensor([1, 3]), 0, 4, 'linear', 0.5, false, false).toArray() // [1, 1.5, 2.5, 3]
 */
export const resample: OpFunction<Resample> = defineOp({
  schema: 'resample(Tensor self, int dim, int size, str mode, float scale, bool align_corners, bool antialias) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  tags: ['fusedKernel'],
  halvesInFloat32: true,
  meta: (self, dim, size) => resizedSpec(self, dim, size),
  kernel: (self, dim, size, mode, scale, align, antialias) => {
    const [axis, own] = dimAndSize(NAME, self, dim)
    return byTable(self, axis, resampleTable(own, size, mode, scale, align, antialias))
  },
  decompose: (self, dim, size, mode, scale, align, antialias) => {
    const [axis, own] = dimAndSize(NAME, self, dim)
    return byOperators(self, axis, resampleTable(own, size, mode, scale, align, antialias))
  },
  derivative: ([g], { args: [self, dim, , mode, scale, align, antialias] }) => [
    resampleBackward(g, dim, dimAndSize(NAME, self, dim)[1], mode, scale, align, antialias),
    null,
    null,
    null,
    null,
    null,
    null,
  ],
})

/**
 * The gradient of {@link resample} for lines of `size` elements. Internal; PyTorch's `aten.upsample_linear1d_backward` and its like.
 *
 * Shape: that of `grad`, with `size` in `dim`.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example torch.ops.tensorfx.resampleBackward(torch.tensor([1, 2, 3, 4]), 0, 2, 'nearest', 0.5, false, false).toArray() // [3, 7]
 */
export const resampleBackward: OpFunction<Resample> = defineOp({
  schema: 'resample_backward(Tensor grad, int dim, int size, str mode, float scale, bool align_corners, bool antialias) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  tags: ['fusedKernel'],
  halvesInFloat32: true,
  meta: (grad, dim, size) => resizedSpec(grad, dim, size),
  kernel: (grad, dim, size, mode, scale, align, antialias) => {
    const [axis, out] = dimAndSize(NAME, grad, dim)
    return byTable(grad, axis, transposedTable(resampleTable(size, out, mode, scale, align, antialias), size))
  },
  decompose: (grad, dim, size, mode, scale, align, antialias) => {
    const [axis, out] = dimAndSize(NAME, grad, dim)
    const table = resampleTable(size, out, mode, scale, align, antialias)
    return Array.from({ length: table.taps }, (_, t) => tapOf(grad, axis, table, t)).reduce(
      (sum, [positions, weights]) => indexAdd(sum, axis, positions, weights === null ? grad : mul(grad, weights)),
      zeros(grad.shape.with(axis, size), { dtype: grad.dtype }),
    )
  },
  derivative: ([g], { args: [grad, dim, , mode, scale, align, antialias] }) => [
    resample(g, dim, dimAndSize(NAME, grad, dim)[1], mode, scale, align, antialias),
    null,
    null,
    null,
    null,
    null,
    null,
  ],
})
