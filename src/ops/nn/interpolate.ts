// Resizing of images, dimension by dimension.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { formatShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../declaration.ts'
import { defineOp } from '../defineOp.ts'
import { sizeAt } from '../shapes.ts'
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
      `${NAME}: mode '${mode}' is for ${MODES[mode].map((n) => n + 2).join(', ')} dimensions, got shape ${formatShape(input.sizes)}.`,
    )
  const align = alignCorners === true
  if (alignCorners !== null && (mode === 'nearest' || mode === 'nearest-exact' || mode === 'area'))
    throw new ArgumentError(`${NAME}: align_corners has no meaning in mode '${mode}'; leave it out.`)
  if (antialias && mode !== 'bilinear' && mode !== 'bicubic')
    throw new ArgumentError(`${NAME}: antialias is for the modes 'bilinear' and 'bicubic', not '${mode}'.`)
  const [sizes, factors] = [numbers('size', size, spatial), numbers('scale_factor', scaleFactor, spatial)]
  if ((sizes === null) === (factors === null)) throw new ArgumentError(`${NAME}: give size or scale_factor, one of them.`)
  const dims: number[] = []
  const lengths: number[] = []
  const scales: number[] = []
  for (let k = 0; k < spatial; k++) {
    const dim = k + 2
    const own = sizeAt(input.sizes, dim)
    const factor = factors?.[k]
    const wanted = sizes?.[k] ?? Math.floor(own * (factor ?? 1))
    if (!Number.isInteger(wanted) || wanted < 1 || wanted * (mode === 'area' || antialias ? own : 1) > MOST_WEIGHTS)
      throw new ArgumentError(
        `${NAME}: dimension ${dim} of size ${own} cannot become ${wanted}: sizes are whole, at least 1, and have at most ${MOST_WEIGHTS} weights.`,
      )
    if (wanted === own && mode !== 'bicubic' && factor === undefined) continue
    const ratio = factor === undefined || recompute === true ? own / wanted : 1 / factor
    dims.push(dim)
    lengths.push(wanted)
    scales.push(align ? (wanted > 1 ? (own - 1) / (wanted - 1) : 0) : ratio)
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
