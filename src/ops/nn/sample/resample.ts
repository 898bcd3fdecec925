// Lines of another length, whose elements are weighted sums of a few elements of the line: what interpolate does to each dimension.
import { ArgumentError } from '../../../errors/index.ts'
import {
  accumulate,
  at,
  bufferParam,
  call,
  compileKernel,
  compileScheduled,
  constant,
  declare,
  forLoop,
  load,
  local,
  loopTables,
  loopVar,
  read,
  resample as resampling,
  resamplingsOf,
  rowsInBlocks,
  sizeParam,
  store,
  weightsInGroups,
  windowsOf,
} from '../../../kernels/index.ts'
import type { Size } from '../../../protocol/index.ts'
import { remembered } from '../../../protocol/index.ts'
import type { CompiledKernel, DType, Expr, LoopVar, Resampling, Size as KernelSize, Stmt } from '../../../kernels/index.ts'
import { Tensor, numelOf, sameShape, sizeNumber, sizeNumbers } from '../../../tensor/index.ts'
import type { TensorSpec } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { kernelCache, launch, scratchMemory } from '../../eager/launch.ts'
import { constantIndices } from '../../view/indices.ts'
import { add, mul } from '../../pointwise/arithmetic.ts'
import { matmul } from '../../linalg/matmul.ts'
import { dimAndSize, linesOf, sizeAt } from '../../shared/shapes.ts'
import { indexSelect } from '../../view/indexing.ts'
import { transpose } from '../../view/permute.ts'
import { clone, contiguous, reshape } from '../../view/reshape.ts'
import { checkSizes, tableOf } from './resampleTable.ts'
import type { ResampleTable } from './resampleTable.ts'
import { constantOf } from '../pool/windowTables.ts'
import { NO_GRADIENTS } from '../windows.ts'

const NAME = 'torch.nn.functional.interpolate'

/** How many elements of a line are written out in the kernel; more are a loop. */
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
  const behind: readonly (readonly [LoopVar, KernelSize])[] = isLast ? [] : [[i, 1]]
  /** A summand: its entries in the tables begin at `base`, or lie along a loop. */
  const summand = (base: KernelSize, ...along: readonly (readonly [LoopVar, KernelSize])[]): Expr => {
    const entry = { ...at([k, 1], ...along), base }
    const element = load(a, { ...at([o, otherLine], ...behind), dynamic: [{ value: load(positions, entry), stride: inner }] })
    if (!weighted) return element
    const weight = load(weights, entry)
    const product = call('mul', element, weight)
    return guarded ? call('where', call('eq', weight, constant(dtype, 0)), constant(dtype, 0), product) : product
  }
  const place = at([o, line], [k, inner], ...behind)
  const sum = local('sum', dtype)
  const bases: readonly KernelSize[] = [0, m, m2, m3]
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

/** What kernels make of a table, made once. */
function madeOnce<T>(make: (table: ResampleTable) => Exclude<T, undefined>): (table: ResampleTable) => Exclude<T, undefined> {
  const made = new WeakMap<ResampleTable, T>()
  return (table) => remembered(made, table, make)
}

/** A table as kernels read it. It stays in memory for the next call, as what it is made of does. */
const tableTensor = (values: Int32Array | Float64Array, dtype: DType = 'int32'): Tensor => constantOf(values, [values.length], dtype)
const weightTensors = (weights: Float64Array | null): readonly Tensor[] => (weights === null ? [] : [tableTensor(weights, 'float32')])

/** The weights of a table for lines, and its kernels by what else they depend on; null where there are none. */
const linesTable = madeOnce((table) => ({
  weights: weightTensors(weightsInGroups(table)),
  kernels: new Map<string, QuickKernels | null>(),
}))

/** Kernels that together make lines, the tables that they take before the weights, and the numbers that they take last. */
interface QuickKernels {
  readonly kernels: readonly CompiledKernel[]
  readonly tables: readonly Tensor[]
  readonly sizes: readonly number[]
  /** How many lines are made together. */
  readonly together: number
}

/** The tables for rows that are made in blocks, by the number of rows of a block. */
const rowsTables = madeOnce((table) => {
  const made = new Map<number, readonly Tensor[]>()
  return (together: number) =>
    remembered(made, together, () => [
      tableTensor(rowsInBlocks(table, table.positions, together)),
      ...weightTensors(table.weights === null ? null : rowsInBlocks(table, table.weights, together)),
    ])
})

/** The kernels that together make lines four elements at a time, or images of them; null where they do not. */
function quickKernels(table: ResampleTable, lines: number, rows: Resampling['rows']): QuickKernels | null {
  if (table.guarded) return null
  // Kernels make a few lines together.
  return remembered(linesTable(table).kernels, `${Math.min(lines, 4)} ${rows?.taps} ${rows?.weighted} ${rows?.first}`, () => {
    const problems = resamplingsOf(table, rows, lines)
    const [first] = problems ?? []
    if (problems === null || first === undefined) return null
    const windows = first.groups === 'loop' ? windowsOf(table) : null
    return {
      kernels: problems.map((problem) => compileScheduled(resampling, problem)),
      tables: windows === null ? [] : loopTables(table, windows).map((values) => tableTensor(values)),
      sizes: windows === null ? [] : [Math.ceil(table.out / 4), table.size, table.out],
      together: first.together,
    }
  })
}

/** The lines of dimension `axis` with the elements that the table says. */
function byTable(self: Tensor, { axis, table }: Pass): Tensor {
  const { out: m, taps, positions, weights, guarded } = table
  const result = Tensor.empty(self.sizes.with(axis, m), self.dtype)
  const [outer, n, inner] = linesOf(self.sizes, axis)
  const quick = inner === 1 && self.dtype === 'float32' ? quickKernels(table, outer, null) : null
  if (quick !== null) {
    const source = contiguous(self)
    const tensors = [result, source, ...quick.tables, ...linesTable(table).weights]
    for (const kernel of quick.kernels) launch(kernel, tensors, [outer, ...quick.sizes])
    return result
  }
  const tables = [tableTensor(positions), ...(weights === null ? [] : [tableTensor(weights, self.dtype)])]
  launch(
    lineKernel(self.dtype, taps <= WRITTEN_OUT ? taps : 0, weights !== null, guarded, inner === 1),
    [result, contiguous(self), ...tables],
    [outer, m, inner, m * inner, n * inner, taps, 2 * m, 3 * m],
  )
  return result
}

/** An image with more elements between the two passes would not stay in the processor's cache. */
const MOST_SCRATCH = 2 ** 18

/** Two passes over the last two dimensions in one kernel; null where it does not fit. */
function byImages(self: Tensor, first: Pass, second: Pass): Tensor | null {
  const last = self.ndim - 1
  const rowsFirst = second.axis === last
  const [{ axis, table: line }, { axis: other, table: rows }] = rowsFirst ? [second, first] : [first, second]
  if (axis !== last || other !== last - 1 || self.dtype !== 'float32' || rows.guarded) return null
  const height = sizeAt(self.sizes, last - 1)
  const between = rowsFirst ? 0 : line.out * height
  if (between > MOST_SCRATCH) return null
  const quick = quickKernels(line, rowsFirst ? rows.out : height, { taps: rows.taps, weighted: rows.weights !== null, first: rowsFirst })
  if (quick === null) return null
  const result = Tensor.empty(self.sizes.with(last, line.out).with(other, rows.out), self.dtype)
  const tensors = [result, contiguous(self), ...quick.tables, ...linesTable(line).weights, ...rowsTables(rows)(rowsFirst ? quick.together : 1)]
  const numbers = [numelOf(self.sizes.slice(0, -2)), height, rows.out, ...quick.sizes, ...(rowsFirst ? [] : [scratchMemory(4 * between + 64)])]
  for (const kernel of quick.kernels) launch(kernel, tensors, numbers)
  return result
}

/** What becomes of one dimension. */
interface Pass {
  readonly axis: number
  readonly table: ResampleTable
}

/** The passes, one after the other. What is between them is released. */
function inPasses(self: Tensor, passes: readonly Pass[]): Tensor {
  let result = self
  for (let i = 0; i < passes.length; i++) {
    const [pass, next] = [passes[i], passes[i + 1]]
    if (pass === undefined) break
    const both = next === undefined ? null : byImages(result, pass, next)
    const made = both ?? byTable(result, pass)
    if (both !== null) i++
    if (result !== self) result.dispose()
    result = made
  }
  return result === self ? clone(self) : result
}

/** How lines become longer or shorter: the arguments of the operators. */
type How = readonly [mode: string, scale: readonly number[], alignCorners: boolean, antialias: boolean]

/** The sizes of each of `dims` before and after. Throws unless there is one dimension, one size and one scale for each pass. */
function sizesOf(self: Tensor, dims: readonly number[], size: readonly number[]): readonly { axis: number; own: number; wanted: number }[] {
  const sizes = dims.map((dim, i) => {
    const [axis, given] = dimAndSize(NAME, self, dim)
    // The tables of positions and weights are made of numbers.
    const own = sizeNumber(given)
    return { axis, own, wanted: size[i] ?? 0 }
  })
  if (dims.length !== size.length || new Set(sizes.map(({ axis }) => axis)).size !== dims.length)
    throw new ArgumentError(`${NAME}: there must be one size for each dimension, got ${dims.length} and ${size.length}.`)
  for (const { own, wanted } of sizes) checkSizes(own, wanted)
  return sizes
}

function resizedSpec(self: Tensor, dims: readonly number[], size: readonly number[]): TensorSpec<Size> {
  const shape = sizesOf(self, dims, size).reduce((out: readonly Size[], { axis, wanted }) => out.with(axis, wanted), self.symSizes)
  return { shape, dtype: self.dtype }
}

/** A resizing, and how it is done. */
interface Plan {
  readonly shape: readonly number[]
  readonly dims: readonly number[]
  readonly size: readonly number[]
  readonly how: How
  readonly isBackward: boolean
  readonly passes: readonly Pass[]
}

const sameHow = ([mode, scale, alignCorners, antialias]: How, other: How): boolean =>
  mode === other[0] && sameShape(scale, other[1]) && alignCorners === other[2] && antialias === other[3]

/** Whether a plan is one for a call with these arguments. */
const isPlanFor = (plan: Plan, { shape, dims, size, how, isBackward }: Omit<Plan, 'passes'>): boolean =>
  plan.isBackward === isBackward && sameShape(plan.shape, shape) && sameShape(plan.dims, dims) && sameShape(plan.size, size) && sameHow(plan.how, how)

/** The latest plans. Programs resize many tensors in a few ways, and a plan takes longer than to resize a small image by it. */
const plans: Plan[] = []
const MOST_PLANS = 8
/** Plans whose tables have this many entries are not kept. */
const LONG_TABLE = 2 ** 14

/**
 * The passes in the order in which they have least to do: dimensions that shrink come first. Of those that grow the last comes first, whose elements are fetched one by
 * one. `size` are the lengths of the results, or with `isBackward` those of the lines, to which the gradients go back in the opposite order.
 */
export function passesOf(self: Tensor, dims: readonly number[], size: readonly number[], how: How, isBackward = false): readonly Pass[] {
  const request = { shape: self.sizes, dims, size, how, isBackward }
  const known = plans.find((plan) => isPlanFor(plan, request))
  if (known !== undefined) return known.passes
  const [mode, scale, align, antialias] = how
  const steps = sizesOf(self, dims, size).map(({ axis, own, wanted }, i) => {
    const [from, to] = isBackward ? [wanted, own] : [own, wanted]
    return { axis, table: tableOf(isBackward, from, to, mode, scale[i] ?? NaN, align, antialias), grows: wanted > own }
  })
  const passes = steps.toSorted((a, b) => (a.grows === b.grows ? (a.grows ? b.axis - a.axis : a.axis - b.axis) : a.grows ? 1 : -1))
  if (steps.every(({ table }) => table.positions.length < LONG_TABLE)) {
    plans.unshift({ ...request, passes })
    plans.splice(MOST_PLANS)
  }
  return passes
}

/** The entries of tap `t` as constants: positions, and weights that multiply the elements of dimension `dim`. */
function tapOf(self: Tensor, dim: number, { out, positions, weights }: ResampleTable, t: number): readonly [Tensor, Tensor | null] {
  const [start, end] = [t * out, (t + 1) * out]
  const along = self.symSizes.map((_, d) => (d === dim ? -1 : 1))
  return [
    constantIndices(Array.from(positions.subarray(start, end))),
    weights === null ? null : reshape(constantOf(weights.subarray(start, end), [out], self.dtype), along),
  ]
}

/** What {@link byTable} does, by operators. Where the elements have many parts, as a product with the matrix of weights. */
function byOperators(self: Tensor, dim: number, table: ResampleTable): Tensor {
  const { out, taps, positions, weights, guarded } = table
  if (guarded && weights !== null) {
    const size = sizeNumber(sizeAt(self.symSizes, dim))
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
export const resampled = (self: Tensor, dims: readonly number[], size: readonly number[], ...how: How): Tensor =>
  self.isFloatingPoint() || how[0].startsWith('nearest')
    ? resample(self, dims, size, ...how)
    : passesOf(self, dims, size, how).reduce((out, { axis, table }) => byOperators(out, axis, table), self)

type Resample = (self: Tensor, dims: readonly number[], size: readonly Size[], ...how: How) => Tensor

const ownSizes = (self: Tensor, dims: readonly number[]): readonly Size[] => dims.map((dim) => dimAndSize(NAME, self, dim)[1])

/**
 * The dimensions `dims` with `size` elements, as interpolate does it in one of its modes; `scale` is the step in the line for one in the result. Internal; PyTorch's
 * `aten.upsample_bilinear2d` and its like.
 *
 * Shape: that of `self`, with `size` in `dims`.
 *
 * @throws ShapeError if there is no such dimension.
 * @throws ArgumentError if a size is not positive, or not each dimension has one.
 * @example torch.ops.tensorfx.resample(torch.tensor([1, 3]), [0], [4], 'linear', [0.5], false, false).toArray() // [1, 1.5, 2.5, 3]
 */
export const resample: OpFunction<Resample> = defineOp({
  schema: 'resample(Tensor self, int[] dims, SymInt[] size, str mode, float[] scale, bool align_corners, bool antialias) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  tags: ['fusedKernel'],
  halvesInFloat32: true,
  meta: (self, dims, size) => resizedSpec(self, dims, sizeNumbers(size)),
  kernel: (self, dims, size, ...how) => inPasses(self, passesOf(self, dims, size, how)),
  decompose: (self, dims, size, ...how) =>
    passesOf(self, dims, sizeNumbers(size), how).reduce((out, { axis, table }) => byOperators(out, axis, table), self),
  derivative: ([g], { args: [self, dims, , ...how] }) => [resampleBackward(g, dims, ownSizes(self, dims), ...how), ...NO_GRADIENTS],
})

/**
 * The gradient of {@link resample} for dimensions of `size` elements. Internal; PyTorch's `aten.upsample_bilinear2d_backward` and its like.
 *
 * Shape: that of `grad`, with `size` in `dims`.
 *
 * @throws ShapeError if there is no such dimension.
 * @throws ArgumentError if a size is not positive, or not each dimension has one.
 * @example torch.ops.tensorfx.resampleBackward(torch.tensor([1, 2, 3, 4]), [0], [2], 'nearest', [0.5], false, false).toArray() // [3, 7]
 */
export const resampleBackward: OpFunction<Resample> = defineOp({
  schema: 'resample_backward(Tensor grad, int[] dims, SymInt[] size, str mode, float[] scale, bool align_corners, bool antialias) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  tags: ['fusedKernel'],
  halvesInFloat32: true,
  meta: (grad, dims, size) => resizedSpec(grad, dims, sizeNumbers(size)),
  kernel: (grad, dims, size, ...how) => inPasses(grad, passesOf(grad, dims, size, how, true)),
  decompose: (grad, dims, size, ...how) =>
    passesOf(grad, dims, sizeNumbers(size), how, true).reduce((out, { axis, table }) => byOperators(out, axis, table), grad),
  derivative: ([g], { args: [grad, dims, , ...how] }) => [resample(g, dims, ownSizes(grad, dims), ...how), null, null, null, null, null, null],
})
