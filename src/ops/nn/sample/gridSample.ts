// Sampling of images at any place: gridSample, and affineGrid, which makes the places. A place between elements mixes its neighbours along each dimension; the neighbours of all
// places are read by one gather.
import { withoutModes } from '../../../dispatch/index.ts'
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import { nearest, valueText } from '../../../protocol/index.ts'
import {
  formatShape,
  numelOf,
  sameShape,
  tensorFromValues,
  sizeEq,
  sizeMul,
  sizeNumber,
  sizeProduct,
  sizeSub,
  scalarOf,
  hasNoElements,
} from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import { ones } from '../../create/creation.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import type { Op } from '../../generated/signatures.ts'
import { accumulatedIn } from '../../eager/promotion.ts'
import { stack } from '../../join/join.ts'
import { matmul } from '../../linalg/matmul.ts'
import { abs, add, fmod, mul, neg, sub } from '../../pointwise/arithmetic.ts'
import { to } from '../../pointwise/cast.ts'
import { ge, le, logicalAnd } from '../../pointwise/comparison.ts'
import { clamp, where } from '../../pointwise/select.ts'
import { floor, round } from '../../pointwise/unary.ts'
import { sum } from '../../reduction/sum.ts'
import { sizeAt } from '../../shared/shapes.ts'
import { gather } from '../../view/indexing.ts'
import { transpose } from '../../view/permute.ts'
import { reshape, unsqueeze } from '../../view/reshape.ts'
import { select } from '../../view/slicing.ts'
import { expand } from '../../view/windows.ts'
import { range } from '../pool/windowTables.ts'

const NAME = 'torch.nn.functional.grid_sample'

/** How a place between elements follows from them. */
export type GridSampleMode = 'bilinear' | 'nearest' | 'bicubic'
/** What lies outside of the image: zeros, its border, or its mirror image. */
export type GridSamplePadding = 'zeros' | 'border' | 'reflection'

export interface GridSampleOptions {
  /** Default 'bilinear'. */
  readonly mode?: GridSampleMode
  /** Default 'zeros'. */
  readonly paddingMode?: GridSamplePadding
  /** Whether -1 and 1 are the middles of the outermost elements, and not their outer edges. Default false. */
  readonly alignCorners?: boolean | null
}

const MODES: readonly GridSampleMode[] = ['bilinear', 'nearest', 'bicubic']
const PADDINGS: readonly GridSamplePadding[] = ['zeros', 'border', 'reflection']

function checkName(argument: string, value: string, known: readonly string[]): void {
  if (known.includes(value)) return
  const near = nearest(value, known)
  throw new ArgumentError(
    `${NAME}: ${argument} must be one of ${known.join(', ')}, got ${valueText(value)}${near === null ? '' : `; did you mean ${near}?`}`,
  )
}

/** `n` - x */
const from = (n: number, x: Tensor): Tensor => add(neg(x), n)

/** Coordinates brought into the image, as the padding says. */
function inside(at: Tensor, size: number, padding: string, align: boolean): Tensor {
  if (padding === 'zeros') return at
  return clamp(padding === 'border' ? at : reflected(at, align ? 0 : -0.5, align ? size - 1 : size), 0, size - 1)
}

/** Coordinates mirrored at `low` and at `low` + `span`, as often as it takes. */
function reflected(at: Tensor, low: number, span: number): Tensor {
  if (span === 0) return mul(at, 0)
  // One turn goes there and back.
  const turn = fmod(abs(sub(at, low)), 2 * span)
  return add(where(le(turn, span), turn, from(2 * span, turn)), low)
}

/** Weights of a cubic convolution for the elements at -1, 0, 1 and 2, from the distance to the one at 0. PyTorch's constant is -0.75. */
function cubicWeights(t: Tensor): Tensor {
  const a = -0.75
  const near = (x: Tensor): Tensor => add(mul(mul(sub(mul(x, a + 2), a + 3), x), x), 1)
  const far = (x: Tensor): Tensor => mul(sub(mul(add(mul(sub(x, 5), x), 8), x), 4), a)
  const rest = from(1, t)
  return stack([far(add(t, 1)), near(t), near(rest), far(add(rest, 1))], -1)
}

/** The neighbours of places along one dimension: [N, places, taps] each; the weights are null for a single neighbour. */
interface Taps {
  readonly at: Tensor
  readonly weights: Tensor | null
}

function tapsOf(grid: Tensor, size: number, mode: string, padding: string, align: boolean): Taps {
  const place = align ? mul(add(grid, 1), (size - 1) / 2) : mul(sub(mul(add(grid, 1), size), 1), 0.5)
  if (mode === 'nearest') return { at: unsqueeze(round(inside(place, size, padding, align)), -1), weights: null }
  const own = mode === 'bicubic' ? place : inside(place, size, padding, align)
  const first = floor(own)
  const t = sub(own, first)
  const tap = (k: number): Tensor => add(first, k)
  if (mode === 'bicubic') return { at: inside(stack([-1, 0, 1, 2].map(tap), -1), size, padding, align), weights: cubicWeights(t) }
  return { at: stack([first, tap(1)], -1), weights: stack([from(1, t), t], -1) }
}

/** The elements of `input` at the neighbours that each dimension has, weighted and added up: [N, C, places]. */
function mixed(input: Tensor, taps: readonly Taps[]): Tensor {
  const sizes = input.symSizes.slice(2)
  const [batch = 0, channels = 0] = input.symSizes
  const places = sizeAt(taps[0]?.at.symSizes ?? [], 1)
  // [N, places, 1, .., taps, .., 1]: the taps of dimension d in a dimension of their own.
  const along = (t: Tensor, d: number): Tensor => reshape(t, [batch, places, ...sizes.map((_, k) => (k === d ? sizeAt(t.symSizes, -1) : 1))])
  const [first, ...rest] = taps.map(({ at, weights }, d) => {
    const size = sizeAt(sizes, d)
    const valid = logicalAnd(ge(at, 0), le(at, scalarOf(sizeSub(size, 1))))
    // What lies outside counts as 0, whatever element is read for it.
    const own = weights === null ? to(valid, at.dtype) : where(valid, weights, 0)
    return { position: along(to(where(valid, at, 0), 'int64'), d), weight: along(own, d) }
  })
  if (first === undefined) return input
  let { position, weight } = first
  rest.forEach((one, k) => {
    position = add(mul(position, scalarOf(sizeAt(sizes, k + 1))), one.position)
    weight = mul(weight, one.weight)
  })
  const count = sizeProduct(position.symSizes.slice(2))
  const all = sizeMul(places, count)
  const index = expand(reshape(position, [batch, 1, all]), [batch, channels, all])
  const elements = reshape(gather(reshape(input, [batch, channels, sizeProduct(sizes)]), -1, index), [batch, channels, places, count])
  return sum(mul(elements, reshape(weight, [batch, 1, places, count])), [-1])
}

/**
 * The image at the places of a grid: coordinates from -1 to 1, [x, y] or [x, y, z], x along the last dimension. PyTorch's `F.grid_sample`.
 *
 * Shapes: input [N, C, H, W] and grid [N, OH, OW, 2] give [N, C, OH, OW]; input [N, C, D, H, W] and grid [N, OD, OH, OW, 3] give [N, C, OD, OH, OW].
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError for an unknown `mode` or `paddingMode`, and for 'bicubic' with volumes.
 * @example F.gridSample(torch.tensor([[[[1, 2], [3, 4]]]]), torch.tensor([[[[0, 0], [-1, 1]]]]), { alignCorners: true }).toArray() // [[[[2.5, 3]]]]
 */
export const gridSample: OpFunction<
  (input: Tensor, grid: Tensor, mode?: GridSampleMode | GridSampleOptions, paddingMode?: GridSamplePadding, alignCorners?: boolean | null) => Tensor
> = defineOp({
  schema: "grid_sample(Tensor input, Tensor grid, str mode='bilinear', str padding_mode='zeros', bool? align_corners=None) -> Tensor",
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  autocast: 'float32',
  decompose: (input, grid, mode, padding, alignCorners) => {
    checkName('mode', mode, MODES)
    checkName('padding_mode', padding, PADDINGS)
    const spatial = input.ndim - 2
    if (
      (spatial !== 2 && spatial !== 3) ||
      grid.ndim !== input.ndim ||
      !sizeEq(grid.symSizes[0], input.symSizes[0]) ||
      !sizeEq(grid.symSizes.at(-1), spatial) ||
      hasNoElements(input.symSizes.slice(2))
    )
      throw new ShapeError(
        `${NAME}: expected input [N, C, H, W] and grid [N, OH, OW, 2], or input [N, C, D, H, W] and grid [N, OD, OH, OW, 3], with no empty image, got shapes ${formatShape(input.symSizes)} and ${formatShape(grid.symSizes)}.`,
      )
    if (mode === 'bicubic' && spatial === 3)
      throw new ArgumentError(`${NAME}: mode 'bicubic' is for images of 4 dimensions, got shape ${formatShape(input.symSizes)}; use 'bilinear'.`)
    const places = grid.symSizes.slice(1, -1)
    const flat = reshape(to(grid, accumulatedIn(grid.dtype)), [sizeAt(grid.symSizes, 0), sizeProduct(places), spatial])
    // Where a place lies between elements depends on the sizes of the image by numbers.
    const taps = range(spatial).map((d) =>
      tapsOf(select(flat, -1, spatial - 1 - d), sizeNumber(sizeAt(input.symSizes, d + 2)), mode, padding, alignCorners === true),
    )
    const out = mixed(to(input, accumulatedIn(input.dtype)), taps)
    return to(reshape(out, [...input.symSizes.slice(0, 2), ...places]), input.dtype)
  },
})

/** PyTorch's numbers for modes and paddings. */
const numbered = <T extends string>(op: string, name: string, names: readonly T[], number: number): T => {
  const found = names[number]
  if (found === undefined) throw new ArgumentError(`${op}: ${name} must be a number from 0 (${names.join(', ')}), got ${number}.`)
  return found
}

function numberedSample(op: string, spatial: number | null, input: Tensor, grid: Tensor, mode: number, padding: number, align: boolean): Tensor {
  if (spatial !== null && input.ndim !== spatial + 2)
    throw new ShapeError(`${op}: expected an input of ${spatial + 2} dimensions, got shape ${formatShape(input.symSizes)}.`)
  return gridSample(input, grid, {
    mode: numbered(op, 'interpolation_mode', MODES, mode),
    paddingMode: numbered(op, 'padding_mode', PADDINGS, padding),
    alignCorners: align,
  })
}

/**
 * `F.gridSample`, with numbers for the modes: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection. PyTorch's `torch.grid_sampler`.
 *
 * Shapes: input [N, C, H, W] and grid [N, OH, OW, 2] give [N, C, OH, OW]; input [N, C, D, H, W] and grid [N, OD, OH, OW, 3] give [N, C, OD, OH, OW].
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError for numbers that are not modes.
 * @example torch.gridSampler(torch.tensor([[[[1, 2], [3, 4]]]]), torch.tensor([[[[0, 0], [-1, 1]]]]), 0, 0, true).toArray() // [[[[2.5, 3]]]]
 */
export const gridSampler: Op['gridSampler'] = defineOp({
  schema: 'grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor',
  autocast: 'float32',
  decompose: (input, grid, mode, padding, align) => numberedSample('torch.grid_sampler', null, input, grid, mode, padding, align),
})

/**
 * {@link gridSampler} of images. PyTorch's `torch.grid_sampler_2d`.
 *
 * Shapes: input [N, C, H, W] and grid [N, OH, OW, 2] give [N, C, OH, OW].
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError for numbers that are not modes.
 * @example torch.gridSampler2d(torch.tensor([[[[1, 2], [3, 4]]]]), torch.tensor([[[[0, 0]]]]), 1, 0, true).toArray() // [[[[1]]]]
 */
export const gridSampler2d: Op['gridSampler2d'] = defineOp({
  schema: 'grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor',
  autocast: 'float32',
  decompose: (input, grid, mode, padding, align) => numberedSample('torch.grid_sampler_2d', 2, input, grid, mode, padding, align),
})

/**
 * {@link gridSampler} of volumes. PyTorch's `torch.grid_sampler_3d`.
 *
 * Shapes: input [N, C, D, H, W] and grid [N, OD, OH, OW, 3] give [N, C, OD, OH, OW].
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError for numbers that are not modes, and for mode 2.
 * @example torch.gridSampler3d(torch.tensor([[[[[1, 3]]]]]), torch.tensor([[[[[0, 0, 0]]]]]), 0, 1, true).toArray() // [[[[[2]]]]]
 */
export const gridSampler3d: Op['gridSampler3d'] = defineOp({
  schema: 'grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor',
  autocast: 'float32',
  decompose: (input, grid, mode, padding, align) => numberedSample('torch.grid_sampler_3d', 3, input, grid, mode, padding, align),
})

/** The middles of `size` elements between -1 and 1, or, with `align`, this many places from -1 to 1. */
const middles = (size: number, align: boolean): readonly number[] =>
  range(size).map((i) => (align ? (size === 1 ? 0 : (2 * i) / (size - 1) - 1) : (2 * i + 1) / size - 1))

/**
 * The places of a grid after affine maps, for gridSample: place p becomes theta [p, 1]. PyTorch's `F.affine_grid`.
 *
 * Shapes: theta [N, 2, 3] and size [N, C, H, W] give [N, H, W, 2]; theta [N, 3, 4] and size [N, C, D, H, W] give [N, D, H, W, 3].
 *
 * @throws ShapeError if `theta` does not fit `size`.
 * @throws ArgumentError if a size is not positive.
 * @example F.affineGrid(torch.tensor([[[2, 0, 1], [0, 1, 0]]]), [1, 1, 1, 2], { alignCorners: true }).toArray() // [[[[-1, 0], [3, 0]]]]
 */
export const affineGrid: Op['affineGrid'] = defineOp({
  schema: 'affine_grid(Tensor theta, int[] size, bool? align_corners=None) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  decompose: (theta, size, alignCorners) => {
    const name = 'torch.nn.functional.affine_grid'
    const spatial = size.length - 2
    if (size.some((n) => n < 1)) throw new ArgumentError(`${name}: size must hold positive numbers, got ${valueText(size)}.`)
    const [batch = 0] = size
    if ((spatial !== 2 && spatial !== 3) || !sameShape(theta.symSizes, [batch, spatial, spatial + 1]))
      throw new ShapeError(
        `${name}: expected theta [N, 2, 3] and size [N, C, H, W], or theta [N, 3, 4] and size [N, C, D, H, W], got shape ${formatShape(theta.symSizes)} and size ${valueText(size)}.`,
      )
    const sizes = size.slice(2)
    // [.., places of dimension d, ..], with the last dimension first.
    const axes = sizes.map((n, d) => {
      const values = withoutModes(() => tensorFromValues(middles(n, alignCorners === true), [n], theta.dtype))
      return expand(
        reshape(
          values,
          sizes.map((_, k) => (k === d ? n : 1)),
        ),
        sizes,
      )
    })
    const base = reshape(stack([...axes.toReversed(), ones(sizes, { dtype: theta.dtype })], -1), [numelOf(sizes), spatial + 1])
    return reshape(matmul(base, transpose(theta, 1, 2)), [batch, ...sizes, spatial])
  },
})
