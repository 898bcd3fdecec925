// Limits of dtypes: finfo and iinfo.
import { checkCount } from '../protocol/index.ts'
import { DTypeError } from '../errors/index.ts'
import { dtypeInfo, isDType } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { getDefaultDtype } from './defaultDType.ts'
import { notADType } from './dtypeNames.ts'

/** The limits of a floating-point dtype. PyTorch's `torch.finfo`. */
export interface FloatInfo {
  readonly dtype: DType
  /** Bits per element. */
  readonly bits: number
  /** The distance from 1 to the next greater number. */
  readonly eps: number
  readonly max: number
  readonly min: number
  /** The least positive number with full precision. */
  readonly smallestNormal: number
  /** The same as `smallestNormal`. */
  readonly tiny: number
  /** A power of ten: about the precision in decimal digits. */
  readonly resolution: number
}

/** The limits of an integer dtype. PyTorch's `torch.iinfo`. */
export interface IntegerInfo {
  readonly dtype: DType
  /** Bits per element. */
  readonly bits: number
  /** A bigint for int64, whose limits are not safe integers. */
  readonly max: number | bigint
  /** A bigint for int64, whose limits are not safe integers. */
  readonly min: number | bigint
}

/** Bits of the fraction, and the exponent of the greatest power of two. */
const FORMATS: Readonly<Partial<Record<DType, readonly [fraction: number, exponent: number]>>> = {
  float16: [10, 15],
  bfloat16: [7, 127],
  float32: [23, 127],
  float64: [52, 1023],
}

/**
 * The limits of a floating-point dtype; of the default dtype without an argument. PyTorch's `torch.finfo`.
 *
 * @throws DTypeError if `dtype` is not floating.
 * @example torch.finfo('float16').max // 65504
 */
export function finfo(dtype: DType = getDefaultDtype()): FloatInfo {
  checkCount('torch.finfo', arguments, 1)
  if (!isDType(dtype)) throw new DTypeError(`torch.finfo: ${notADType(dtype)}`)
  const format = FORMATS[dtype]
  if (format === undefined) throw new DTypeError(`torch.finfo: expected a floating-point dtype, got ${dtype}; use torch.iinfo for integers.`)
  const [fraction, exponent] = format
  const eps = 2 ** -fraction
  const max = (2 - eps) * 2 ** exponent
  const tiny = 2 ** (1 - exponent)
  return {
    dtype,
    bits: dtypeInfo[dtype].size * 8,
    eps,
    max,
    min: -max,
    smallestNormal: tiny,
    tiny,
    resolution: Number(`1e${Math.ceil(Math.log10(eps))}`),
  }
}

/**
 * The limits of an integer dtype. PyTorch's `torch.iinfo`.
 *
 * @throws DTypeError if `dtype` is not an integer dtype.
 * @example torch.iinfo('int8').max // 127
 */
export function iinfo(dtype: DType): IntegerInfo {
  checkCount('torch.iinfo', arguments, 1)
  if (!isDType(dtype)) throw new DTypeError(`torch.iinfo: ${notADType(dtype)}`)
  const { kind, size, lowest, highest } = dtypeInfo[dtype]
  if (kind !== 'integer')
    throw new DTypeError(`torch.iinfo: expected an integer dtype, got ${dtype}${kind === 'floating' ? '; use torch.finfo' : ''}.`)
  return { dtype, bits: size * 8, max: highest, min: lowest }
}
