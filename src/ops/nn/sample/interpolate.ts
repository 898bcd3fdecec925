// Resizing of images, dimension by dimension.
import { ArgumentError, ShapeError } from '../../../errors/index.ts'
import { valueText } from '../../../protocol/index.ts'
import { formatShape, sizeNumber, sizeNumbers } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { sizeAt } from '../../shared/shapes.ts'
import { resampled } from './resample.ts'
import { MOST_WEIGHTS } from './resampleTable.ts'

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

/** What the sizes of a result follow from. */
export type Resizing = Pick<InterpolateOptions, 'size' | 'scaleFactor'>

/** Factors by name. */
export interface AntialiasScales {
  readonly scaleFactors?: readonly number[] | null
  readonly scalesH?: number | null
  readonly scalesW?: number | null
}

const NAME = 'torch.nn.functional.interpolate'
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

const range = (n: number): readonly number[] => Array.from({ length: n }, (_, i) => i)

const isNumbers = (value: unknown): value is readonly number[] => Array.isArray(value) && value.every((v) => typeof v === 'number')

/** A number for each spatial dimension; null if there is none. */
function numbers(op: string, name: string, value: unknown, count: number): readonly number[] | null {
  if (value === null) return null
  const list = typeof value === 'number' ? range(count).map(() => value) : isNumbers(value) ? value : []
  if (list.length !== count || list.some((v) => !(v > 0)))
    throw new ArgumentError(`${op}: ${name} must be a positive number, or one for each of the ${count} spatial dimensions, got ${valueText(value)}.`)
  return list
}

/** The size that dimension `dim` gets. Throws ArgumentError unless it is possible: each element has `weights` weights. */
function wantedSize(op: string, dim: number, own: number, wanted: number, weights: number): number {
  if (!Number.isInteger(wanted) || wanted < 1 || wanted * weights > MOST_WEIGHTS)
    throw new ArgumentError(
      `${op}: dimension ${dim} of size ${own} cannot become ${wanted}: sizes are whole, at least 1, and have at most ${MOST_WEIGHTS} weights.`,
    )
  return wanted
}

/** The distance between elements of the result, in elements of the input. */
const ratioOf = (own: number, wanted: number, align: boolean, factor: number | null): number =>
  align ? (wanted > 1 ? (own - 1) / (wanted - 1) : 0) : factor === null ? own / wanted : 1 / factor

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
      `${NAME}: mode '${mode}' is for ${MODES[mode].map((n) => n + 2).join(', ')} dimensions, got shape ${formatShape(input.symSizes)}.`,
    )
  const align = alignCorners === true
  if (alignCorners !== null && (mode === 'nearest' || mode === 'nearest-exact' || mode === 'area'))
    throw new ArgumentError(`${NAME}: align_corners has no meaning in mode '${mode}'; leave it out.`)
  if (antialias && mode !== 'bilinear' && mode !== 'bicubic')
    throw new ArgumentError(`${NAME}: antialias is for the modes 'bilinear' and 'bicubic', not '${mode}'.`)
  const [sizes, factors] = [numbers(NAME, 'size', size, spatial), numbers(NAME, 'scale_factor', scaleFactor, spatial)]
  if ((sizes === null) === (factors === null)) throw new ArgumentError(`${NAME}: give size or scale_factor, one of them.`)
  const dims: number[] = []
  const lengths: number[] = []
  const scales: number[] = []
  for (let k = 0; k < spatial; k++) {
    const dim = k + 2
    // Which elements a new one mixes, and by which weights, are tables.
    const own = sizeNumber(sizeAt(input.symSizes, dim))
    const factor = factors?.[k]
    const wanted = wantedSize(NAME, dim, own, sizes?.[k] ?? Math.floor(own * (factor ?? 1)), mode === 'area' || antialias ? own : 1)
    if (wanted === own && mode !== 'bicubic' && factor === undefined) continue
    dims.push(dim)
    lengths.push(wanted)
    scales.push(ratioOf(own, wanted, align, recompute === true ? null : (factor ?? null)))
  }
  return dims.length === 0 ? input : resampled(input, dims, lengths, mode, scales, align, antialias)
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

/**
 * {@link interpolate} in mode 'nearest'. PyTorch's `F.upsample_nearest`.
 *
 * Shape: [N, C, ..], with other sizes in the dimensions after the second.
 *
 * @throws ArgumentError unless `size` or `scaleFactor` is given.
 * @throws ShapeError unless the input has 3, 4 or 5 dimensions.
 * @example F.upsampleNearest(torch.tensor([[[1, 2]]]), { scaleFactor: 2 }).toArray() // [[[1, 1, 2, 2]]]
 */
export const upsampleNearest: OpFunction<(input: Tensor, size?: Resizing['size'] | Resizing, scaleFactor?: Resizing['scaleFactor']) => Tensor> =
  defineOp({
    schema: 'upsample_nearest(Tensor input, any size=None, any scale_factor=None) -> Tensor',
    namespace: 'torch.nn.functional',
    recordAs: 'keywords',
    decompose: (input, size, scaleFactor) => resized(input, size, scaleFactor, 'nearest', null, null, false),
  })

/**
 * {@link interpolate} of images in mode 'bilinear', with the corners aligned. PyTorch's `F.upsample_bilinear`.
 *
 * Shape: [N, C, H, W], with other sizes in the last two dimensions.
 *
 * @throws ArgumentError unless `size` or `scaleFactor` is given.
 * @throws ShapeError unless the input has 4 dimensions.
 * @example F.upsampleBilinear(torch.tensor([[[[1, 3]]]]), [1, 3]).toArray() // [[[[1, 2, 3]]]]
 */
export const upsampleBilinear: OpFunction<(input: Tensor, size?: Resizing['size'] | Resizing, scaleFactor?: Resizing['scaleFactor']) => Tensor> =
  defineOp({
    schema: 'upsample_bilinear(Tensor input, any size=None, any scale_factor=None) -> Tensor',
    namespace: 'torch.nn.functional',
    recordAs: 'keywords',
    decompose: (input, size, scaleFactor) => resized(input, size, scaleFactor, 'bilinear', true, null, false),
  })

/**
 * Resizes images with smoothing: `interpolate` in mode 'bilinear' with `antialias`. The sizes are `outputSize`, or follow from `scaleFactors`; `scalesH` and `scalesW` are factors that the
 * sizes need not follow from. PyTorch's `aten._upsample_bilinear2d_aa`.
 *
 * Shape: [N, C, H, W], with other sizes in the last two dimensions.
 *
 * @throws ArgumentError unless the sizes or the factors are given.
 * @throws ShapeError unless the input has 4 dimensions.
 * @example torch._upsampleBilinear2dAa(torch.tensor([[[[1, 1, 4, 4]]]]), [1, 2], false).toArray() // [[[[1.428571, 3.571429]]]]
 */
export const upsampleBilinear2dAa: OpFunction<
  (
    input: Tensor,
    outputSize: readonly number[] | null,
    alignCorners: boolean,
    scaleFactors?: readonly number[] | number | null | AntialiasScales,
    scalesW?: number | null,
  ) => Tensor
> = defineOp({
  schema:
    '_upsample_bilinear2d_aa(Tensor input, any? output_size, bool align_corners, any? scale_factors=None, float? scales_w=None, *, float? scales_h=None) -> Tensor',
  decompose: (input, outputSize, align, given, scalesW, byName) => {
    const op = 'torch._upsample_bilinear2d_aa'
    if (input.ndim !== 4) throw new ShapeError(`${op}: expected [N, C, H, W], got shape ${formatShape(input.symSizes)}.`)
    // The older form has the two factors by position.
    const [scaleFactors, scalesH] = typeof given === 'number' ? [null, given] : [given, byName]
    const [sizes, factors] = [numbers(op, 'output_size', outputSize, 2), numbers(op, 'scale_factors', scaleFactors, 2)]
    if (sizes === null && factors === null) throw new ArgumentError(`${op}: give output_size or scale_factors.`)
    const scales = sizes === null ? factors : [scalesH, scalesW]
    const own = sizeNumbers(input.symSizes.slice(2))
    const wanted = own.map((size, k) => wantedSize(op, k + 2, size, sizes?.[k] ?? Math.floor(size * (factors?.[k] ?? 1)), size))
    const ratios = own.map((size, k) => ratioOf(size, wanted[k] ?? 1, align, scales?.[k] ?? null))
    return resampled(input, [2, 3], wanted, 'bilinear', ratios, false, true)
  },
})
