// Pooling in any number of dimensions: which positions of the input each window holds, and the maximum and mean over windows that such a table describes. The
// 2D pooling of pool.ts has kernels of its own.
import type { Size } from '../../../protocol/index.ts'
import { withoutModes } from '../../../dispatch/index.ts'
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import { dtypeInfo } from '../../../kernels/index.ts'
import { valueText } from '../../../protocol/index.ts'
import { formatShape, numelOf, tensorFromValues, sizeNumber, sizeNumbers } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import { cat, constantPadNd } from '../../join/join.ts'
import { div } from '../../pointwise/arithmetic.ts'
import { argmax } from '../../reduction/argExtremes.ts'
import { sum } from '../../reduction/sum.ts'
import { sizeAt } from '../../shared/shapes.ts'
import { gather } from '../../view/indexing.ts'
import { reshape, squeeze, unsqueeze } from '../../view/reshape.ts'
import { expand } from '../../view/windows.ts'
import { isKernelSize, isNumbers, windowCount } from '../windows.ts'

/** One number for every spatial dimension, or a list with one for each. */
export type Sizes = number | readonly number[]

/** The positions of each window along one dimension. PADDING and BEYOND stand for places outside the input. */
export type AxisWindows = readonly (readonly number[])[]

/** A place in the padding, which counts as one of the window's places, and one past it, which does not. */
const PADDING = -1
const BEYOND = -2

/** Longer lists take all memory of JavaScript, which ends the process. */
const LONGEST = 2 ** 24

export function range(n: number): readonly number[] {
  if (n > LONGEST) throw new ArgumentError(`pooling: a dimension can have at most ${LONGEST} windows, got ${n}.`)
  return Array.from({ length: n }, (_, i) => i)
}

/** One integer for each of `count` dimensions. Throws ArgumentError, naming `op` and the argument, unless they are integers of at least `least`. */
export function sizesOf(op: string, name: string, value: unknown, count: number, least: number): readonly number[] {
  const list =
    typeof value === 'number'
      ? range(count).map(() => value)
      : isNumbers(value)
        ? value.length === 1
          ? range(count).map(() => value[0] ?? 0)
          : value
        : []
  if (list.length === count && list.every((v) => Number.isInteger(v) && v >= least)) return list
  throw new ArgumentError(`${op}: ${name} must be an integer >= ${least}, or one for each of the ${count} dimensions, got ${valueText(value)}.`)
}

/** One integer, for the only dimension of a line. */
export const single = (op: string, name: string, value: unknown, least: number): number => sizesOf(op, name, value, 1, least)[0] ?? 0

/** The stride of windows for each dimension of `kernel`, which is its default. Throws ArgumentError like {@link sizesOf}. */
export const strideOf = (op: string, stride: unknown, kernel: readonly number[]): readonly number[] =>
  isKernelSize(stride) ? kernel : sizesOf(op, 'stride', stride, kernel.length, 1)

/** Throws ShapeError unless there are one or two dimensions before the last `spatial` ones. */
export function checkSpatial(op: string, input: Tensor, spatial: number): void {
  if (input.ndim !== spatial + 1 && input.ndim !== spatial + 2)
    throw new ShapeError(`${op}: expected an input of ${spatial + 1} or ${spatial + 2} dimensions, got shape ${formatShape(input.symSizes)}.`)
}

/** The last `spatial` sizes as numbers, of which tables are made. Throws like {@link checkSpatial}. */
export function spatialSizes(op: string, input: Tensor, spatial: number): readonly number[] {
  checkSpatial(op, input, spatial)
  return sizeNumbers(input.symSizes.slice(-spatial))
}

export interface WindowOptions {
  readonly kernel: readonly number[]
  readonly stride: readonly number[]
  readonly padding: readonly number[]
  readonly dilation: readonly number[]
  readonly ceilMode: boolean
}

/** The windows of a pooling with fixed steps. Throws ShapeError if a window does not fit, ArgumentError if the padding exceeds half of it. */
export function steppedWindows(op: string, input: Tensor, options: WindowOptions): readonly AxisWindows[] {
  const { kernel, stride, padding, dilation, ceilMode } = options
  return spatialSizes(op, input, kernel.length).map((size, d) => {
    const [k = 1, step = 1, pad = 0, apart = 1] = [kernel[d], stride[d], padding[d], dilation[d]]
    if (pad > k / 2) throw new ArgumentError(`${op}: padding must be at most half of the kernel size ${k}, got ${pad}.`)
    const count = windowCount(size, k, step, pad, apart, ceilMode)
    if (count < 1) throw new ShapeError(`${op}: a window of size ${k} does not fit into the input of shape ${formatShape(input.symSizes)}.`)
    return range(count).map((i) =>
      range(k).map((j) => {
        const at = i * step + j * apart - pad
        return at >= 0 && at < size ? at : at < size + pad ? PADDING : BEYOND
      }),
    )
  })
}

/** The windows that cover a line of `size` elements with `count` of nearly equal length. */
export function adaptiveWindows(size: number, count: number): AxisWindows {
  const spans = range(count).map((i) => [Math.floor((i * size) / count), Math.ceil(((i + 1) * size) / count)] as const)
  const longest = spans.reduce((most, [start, end]) => Math.max(most, end - start), 1)
  return spans.map(([start, end]) => range(longest).map((j) => (start + j < end ? start + j : BEYOND)))
}

/** The output size of an adaptive pooling: null keeps the size of the input. */
export function adaptiveSizes(op: string, input: Tensor, given: unknown, spatial: number): readonly number[] {
  const own = spatialSizes(op, input, spatial)
  const list: readonly unknown[] = Array.isArray(given)
    ? given.length === 1
      ? range(spatial).map((): unknown => given[0])
      : given
    : range(spatial).map(() => given)
  const sizes = list.flatMap((size, d) =>
    size === null ? [own[d] ?? 0] : typeof size === 'number' && Number.isInteger(size) && size > 0 ? [size] : [],
  )
  if (list.length === spatial && sizes.length === spatial) return sizes
  throw new ArgumentError(
    `${op}: output_size must be a positive integer or null, or one for each of the ${spatial} dimensions, got ${valueText(given)}.`,
  )
}

/** The windows of all dimensions: flat positions in the plane, window after window, those inside first. */
export interface WindowTable {
  readonly outputs: readonly number[]
  readonly taps: number
  readonly positions: readonly number[]
  /** How many places of each window lie inside the input or its padding, and how many inside the input. */
  readonly covered: readonly number[]
  readonly inside: readonly number[]
}

export function windowTable(axes: readonly AxisWindows[], sizes: readonly number[]): WindowTable {
  const outside = numelOf(sizes)
  const outputs = axes.map((axis) => axis.length)
  const taps = axes.reduce((n, axis) => n * (axis[0]?.length ?? 0), 1)
  const positions: number[] = []
  const covered: number[] = []
  const inside: number[] = []
  for (let w = 0; w < numelOf(outputs); w++) {
    let rest = w
    let flat: readonly number[] = [0]
    const windows = axes.map((): readonly number[] => [])
    for (let d = axes.length - 1; d >= 0; d--) {
      const axis = axes[d] ?? []
      windows[d] = axis[rest % axis.length] ?? []
      rest = Math.floor(rest / axis.length)
    }
    windows.forEach((places, d) => {
      const size = sizes[d] ?? 1
      flat = flat.flatMap((base) => places.map((at) => (at === BEYOND || base === BEYOND ? BEYOND : at < 0 || base < 0 ? PADDING : base * size + at)))
    })
    const valid = flat.filter((at) => at >= 0)
    positions.push(...valid, ...flat.filter((at) => at < 0).map(() => outside))
    covered.push(flat.filter((at) => at !== BEYOND).length)
    inside.push(valid.length)
  }
  return { outputs, taps, positions, covered, inside }
}

/** A constant of the computation: tracers and captures hold it as such. */
export const constantOf = (values: ArrayLike<number>, shape: readonly number[], dtype: Tensor['dtype']): Tensor =>
  withoutModes(() => tensorFromValues(values, shape, dtype))

/** Whether a window has places outside of the plane, which tables have at the position behind its last. */
const hasOutside = (flat: Tensor, tables: readonly WindowTable[]): boolean => {
  const outside = sizeNumber(sizeAt(flat.symSizes, -1))
  return tables.some((table) => table.positions.includes(outside))
}

/** The elements of every window: [.., windows, taps], from planes [.., places]. `tables` has one for all planes, or one for each. */
function windowsOf(planes: Tensor, tables: readonly WindowTable[]): { readonly elements: Tensor; readonly table: Tensor } {
  const [{ outputs, taps } = { outputs: [], taps: 0 }] = tables
  const lead = planes.symSizes.slice(0, -1)
  const windows = numelOf(outputs)
  const positions = tables.flatMap((table) => table.positions)
  const own = constantOf(positions, tables.length === 1 ? [...lead.map(() => 1), windows * taps] : [...sizeNumbers(lead), windows * taps], 'int64')
  const table = expand(own, [...lead, windows * taps])
  return { elements: reshape(gather(planes, -1, table), [...lead, windows, taps]), table: reshape(table, [...lead, windows, taps]) }
}

/** A tensor with the lowest value of a dtype. */
const lowestOf = (dtype: Tensor['dtype'], shape: readonly Size[]): Tensor =>
  expand(
    withoutModes(() =>
      tensorFromValues(
        [dtypeInfo[dtype].lowest],
        shape.map(() => 1),
        dtype,
      ),
    ),
    shape,
  )

/**
 * The maximum over each window, and its flat position in the plane: [values, indices]. Places outside are the last of their window and hold the lowest value, so that only
 * a window of nothing else has one as its first maximum: its value is the lowest, and its position the one behind the last.
 */
export function maxOver(input: Tensor, sizes: readonly number[], tables: readonly WindowTable[]): readonly [Tensor, Tensor] {
  const lead = input.symSizes.slice(0, input.ndim - sizes.length)
  const flat = reshape(input, [...lead, numelOf(sizes)])
  const planes = hasOutside(flat, tables) ? cat([flat, lowestOf(input.dtype, [...flat.symSizes.slice(0, -1), 1])], -1) : flat
  const { elements, table } = windowsOf(planes, tables)
  const indices = squeeze(gather(table, -1, unsqueeze(argmax(elements, -1), -1)), -1)
  const shape = [...lead, ...(tables[0]?.outputs ?? [])]
  return [reshape(gather(planes, -1, indices), shape), reshape(indices, shape)]
}

/** The sum over each window divided by its entry of `divisors`. Places outside count as 0. */
export function meanOver(input: Tensor, sizes: readonly number[], table: WindowTable, divisors: readonly number[]): Tensor {
  const lead = input.symSizes.slice(0, input.ndim - sizes.length)
  const flat = reshape(input, [...lead, numelOf(sizes)])
  const { elements } = windowsOf(hasOutside(flat, [table]) ? constantPadNd(flat, [0, 1], 0) : flat, [table])
  const means = div(
    sum(elements, [-1]),
    constantOf(divisors, [divisors.length], input.dtype),
    input.isFloatingPoint() ? {} : { roundingMode: 'trunc' },
  )
  return reshape(means, [...lead, ...table.outputs])
}
