// Resizing of images, dimension by dimension: each element of the result is a mixture of a few elements of a line.
import { withoutModes } from '../../dispatch/index.ts'
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { formatShape, tensorFromValues } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../declaration.ts'
import { defineOp } from '../defineOp.ts'
import { matmul } from '../linalg/matmul.ts'
import { add, mul } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { sizeAt } from '../shapes.ts'
import { indexSelect } from '../view/indexing.ts'
import { transpose } from '../view/permute.ts'
import { reshape } from '../view/reshape.ts'

/** How an element of the result follows from its neighbours. */
export type InterpolateMode = 'nearest' | 'nearest-exact' | 'linear' | 'bilinear' | 'bicubic' | 'trilinear' | 'area'

export interface InterpolateOptions {
  /** The sizes of the result; give this or `scaleFactor`. */
  readonly size?: number | readonly number[] | null
  readonly scaleFactor?: number | readonly number[] | null
  /** Default 'nearest'. */
  readonly mode?: InterpolateMode
  /** Whether the first and last elements keep their places; for the linear modes and 'bicubic'. */
  readonly alignCorners?: boolean | null
  /** Take the scale from the sizes of the result, and not from `scaleFactor`. */
  readonly recomputeScaleFactor?: boolean | null
  /** Smooth before shrinking; for 'bilinear' and 'bicubic'. */
  readonly antialias?: boolean
}

const NAME = 'torch.nn.functional.interpolate'
const MOST_WEIGHTS = 2 ** 24
/** The modes, and for how many spatial dimensions they are. */
const MODES: Readonly<Record<InterpolateMode, readonly number[]>> = {
  nearest: [1, 2, 3],
  'nearest-exact': [1, 2, 3],
  linear: [1],
  bilinear: [2],
  bicubic: [2],
  trilinear: [3],
  area: [1, 2, 3],
}
const isMode = (mode: string): mode is InterpolateMode => Object.hasOwn(MODES, mode)

/** A neighbour of each element of the result: its position, and its weight (null: 1). */
interface Tap {
  readonly positions: readonly number[]
  readonly weights: readonly number[] | null
}

const range = (n: number): readonly number[] => Array.from({ length: n }, (_, i) => i)

/** Keys' cubic kernel; PyTorch's constant is -0.75, and -0.5 for antialiasing. */
function cubic(x: number, a: number): number {
  const d = Math.abs(x)
  if (d < 1) return ((a + 2) * d - (a + 3)) * d * d + 1
  return d < 2 ? ((d - 5) * d + 8) * d * a - 4 * a : 0
}

/** Where element i of the result lies in the line, and its neighbours there. `scale` is the step in the line for one in the result. */
function tapsOf(mode: InterpolateMode, size: number, out: number, scale: number, align: boolean): readonly Tap[] {
  const inside = (at: number): number => Math.min(Math.max(at, 0), size - 1)
  if (mode === 'nearest') return [{ positions: range(out).map((i) => inside(Math.floor(Math.fround(i * Math.fround(scale))))), weights: null }]
  if (mode === 'nearest-exact')
    return [{ positions: range(out).map((i) => inside(Math.floor(Math.fround((i + 0.5) * Math.fround(scale))))), weights: null }]
  const centers = range(out).map((i) => (align ? i * scale : (i + 0.5) * scale - 0.5))
  if (mode === 'bicubic')
    return [-1, 0, 1, 2].map((k) => ({
      positions: centers.map((c) => inside(Math.floor(c) + k)),
      weights: centers.map((c) => cubic(c - Math.floor(c) - k, -0.75)),
    }))
  const places = centers.map((c) => Math.max(c, 0))
  return [0, 1].map((k) => ({
    positions: places.map((c) => inside(Math.floor(c) + k)),
    weights: places.map((c) => (k === 0 ? 1 - (c - Math.floor(c)) : c - Math.floor(c))),
  }))
}

function mixed(x: Tensor, dim: number, taps: readonly Tap[]): Tensor {
  const along = x.shape.map((_, d) => (d === dim ? -1 : 1))
  const parts = taps.map(({ positions, weights }) => {
    const chosen = indexSelect(
      x,
      dim,
      withoutModes(() => tensorFromValues(positions, [positions.length], 'int64')),
    )
    if (weights === null) return chosen
    const factors = withoutModes(() => tensorFromValues(weights, [weights.length], x.dtype))
    return mul(chosen, reshape(factors, along))
  })
  return parts.reduce((sum, part) => add(sum, part))
}

/** A dimension as a product with the matrix of weights, row by row: for neighbourhoods whose size depends on the scale. */
function byMatrix(x: Tensor, dim: number, rows: readonly (readonly number[])[]): Tensor {
  const size = sizeAt(x.shape, dim)
  const matrix = withoutModes(() => tensorFromValues(rows.flat(), [rows.length, size], x.dtype))
  return transpose(matmul(transpose(x, dim, -1), to(transpose(matrix, 0, 1), x.dtype)), dim, -1)
}

/** The mean of the elements that each element of the result covers. */
const areaRows = (size: number, out: number): readonly (readonly number[])[] =>
  range(out).map((i) => {
    const [start, end] = [Math.floor((i * size) / out), Math.ceil(((i + 1) * size) / out)]
    return range(size).map((j) => (j >= start && j < end ? 1 / (end - start) : 0))
  })

function antialiasRows(mode: InterpolateMode, size: number, out: number, scale: number): readonly (readonly number[])[] {
  const stretch = Math.max(scale, 1)
  const kernel = mode === 'bicubic' ? (x: number): number => cubic(x, -0.5) : (x: number): number => Math.max(0, 1 - Math.abs(x))
  const reach = (mode === 'bicubic' ? 2 : 1) * stretch
  return range(out).map((i) => {
    // With aligned corners too, as in PyTorch: only the scale is another.
    const center = scale * (i + 0.5)
    const [start, end] = [Math.max(0, Math.trunc(center - reach + 0.5)), Math.min(size, Math.trunc(center + reach + 0.5))]
    const weights = range(size).map((j) => (j >= start && j < end ? kernel((j - center + 0.5) / stretch) : 0))
    const total = weights.reduce((a, b) => a + b, 0)
    return weights.map((w) => w / total)
  })
}

const isNumbers = (value: unknown): value is readonly number[] => Array.isArray(value) && value.every((v) => typeof v === 'number')

/** A number for each spatial dimension; null if there is none. */
function numbers(name: string, value: unknown, count: number): readonly number[] | null {
  if (value === null) return null
  const list = typeof value === 'number' ? range(count).map(() => value) : isNumbers(value) ? value : []
  if (list.length !== count || list.some((v) => !(v > 0)))
    throw new ArgumentError(
      `${NAME}: ${name} must be a positive number, or one for each of the ${count} spatial dimensions, got ${valueText(value)}.`,
    )
  return list
}

/** What interpolate computes, from its arguments as they were given. */
function resized(
  input: Tensor,
  size: unknown,
  scaleFactor: unknown,
  mode: string,
  alignCorners: boolean | null,
  recompute: boolean | null,
  antialias: boolean,
): Tensor {
  if (!isMode(mode)) throw new ArgumentError(`${NAME}: mode must be one of ${Object.keys(MODES).join(', ')}, got ${valueText(mode)}.`)
  const spatial = input.ndim - 2
  if (!MODES[mode].includes(spatial))
    throw new ShapeError(
      `${NAME}: mode '${mode}' is for ${MODES[mode].map((n) => n + 2).join(', ')} dimensions, got shape ${formatShape(input.shape)}.`,
    )
  const align = alignCorners === true
  if (alignCorners !== null && (mode === 'nearest' || mode === 'nearest-exact' || mode === 'area'))
    throw new ArgumentError(`${NAME}: align_corners has no meaning in mode '${mode}'; leave it out.`)
  if (antialias && mode !== 'bilinear' && mode !== 'bicubic')
    throw new ArgumentError(`${NAME}: antialias is for the modes 'bilinear' and 'bicubic', not '${mode}'.`)
  const [sizes, factors] = [numbers('size', size, spatial), numbers('scale_factor', scaleFactor, spatial)]
  if ((sizes === null) === (factors === null)) throw new ArgumentError(`${NAME}: give size or scale_factor, one of them.`)
  let out = input
  for (let k = 0; k < spatial; k++) {
    const dim = k + 2
    const own = sizeAt(input.shape, dim)
    const factor = factors?.[k]
    const wanted = sizes?.[k] ?? Math.floor(own * (factor ?? 1))
    // The weights are computed in lists of JavaScript, which take more memory than the tensor.
    if (!Number.isInteger(wanted) || wanted < 1 || wanted * (mode === 'area' || antialias ? own : 1) > MOST_WEIGHTS)
      throw new ArgumentError(
        `${NAME}: dimension ${dim} of size ${own} cannot become ${wanted}: sizes are whole, at least 1, and have at most ${MOST_WEIGHTS} weights.`,
      )
    if (wanted === own && mode !== 'bicubic' && factor === undefined) continue
    const ratio = factor === undefined || recompute === true ? own / wanted : 1 / factor
    const scale = align ? (wanted > 1 ? (own - 1) / (wanted - 1) : 0) : ratio
    if (mode === 'area') out = byMatrix(out, dim, areaRows(own, wanted))
    else if (antialias) out = byMatrix(out, dim, antialiasRows(mode, own, wanted, scale))
    else out = mixed(out, dim, tapsOf(mode, own, wanted, scale, align))
  }
  return out
}

/**
 * Resizes the dimensions after the first two, to `size` or by `scaleFactor`. PyTorch's `F.interpolate`.
 *
 * Shape: [N, C, ..], with other sizes in the dimensions after the second.
 *
 * @throws ArgumentError unless `size` or `scaleFactor` is given, for an unknown `mode`, and for options that the mode does not have.
 * @throws ShapeError if the input does not have the number of dimensions that the mode needs.
 * @example
 * F.interpolate(torch.tensor([[[1, 2]]]), { scaleFactor: 2 }).toArray() // [[[1, 1, 2, 2]]]
 * F.interpolate(torch.tensor([[[1, 3]]]), { size: 3, mode: 'linear', alignCorners: true }).toArray() // [[[1, 2, 3]]]
 */
export const interpolate: OpFunction<(input: Tensor, options: InterpolateOptions) => Tensor> = defineOp({
  schema:
    "interpolate(Tensor input, any size=None, any scale_factor=None, str mode='nearest', bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  decompose: resized,
})

/**
 * {@link interpolate}, under its older name. PyTorch's `F.upsample`.
 *
 * Shape: [N, C, ..], with other sizes in the dimensions after the second.
 *
 * @throws ArgumentError unless `size` or `scaleFactor` is given, for an unknown `mode`, and for options that the mode does not have.
 * @throws ShapeError if the input does not have the number of dimensions that the mode needs.
 * @example F.upsample(torch.tensor([[[1, 2]]]), { scaleFactor: 2 }).toArray() // [[[1, 1, 2, 2]]]
 */
export const upsample: OpFunction<(input: Tensor, options: InterpolateOptions) => Tensor> = defineOp({
  schema: "upsample(Tensor input, any size=None, any scale_factor=None, str mode='nearest', bool? align_corners=None) -> Tensor",
  namespace: 'torch.nn.functional',
  decompose: (input, size, scaleFactor, mode, alignCorners) => resized(input, size, scaleFactor, mode, alignCorners, null, false),
})
