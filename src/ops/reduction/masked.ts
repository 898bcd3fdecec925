// Reductions, scans and normalizations of the elements where a mask holds. PyTorch's torch.masked: functions composed of operators, with a mask that broadcasts to the input.
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { checkArgument, checkCount, checkOptions, isPlainObject } from '../../protocol/index.ts'
import { Tensor, iinfo } from '../../tensor/index.ts'
import { onesLike } from '../create/creation.ts'
import { asFloating } from '../eager/promotion.ts'
import { softmin as plainSoftmin } from '../nn/activation/smoothActivations.ts'
import { vectorNorm } from '../linalg/norms.ts'
import { div, mul, sub } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { logicalNot } from '../pointwise/comparison.ts'
import { logaddexp as plainLogaddexp } from '../pointwise/logaddexp.ts'
import { checkMask, clamp, maskedFill } from '../pointwise/select.ts'
import { sqrt } from '../pointwise/unary.ts'
import { argmax as plainArgmax, argmin as plainArgmin } from './argExtremes.ts'
import { cumsum as plainCumsum } from './cumsum.ts'
import { amax as plainAmax, amin as plainAmin } from './extremes.ts'
import { mean as plainMean } from './mean.ts'
import { nanmedian } from './orderStatistics.ts'
import { cumprod as plainCumprod } from './scans.ts'
import { logSoftmax as plainLogSoftmax, logsumexp as plainLogsumexp, softmax as plainSoftmax } from './softmax.ts'
import { prod as plainProd, sum as plainSum } from './sum.ts'
import type { Dims } from './sum.ts'
import { reshape } from '../view/reshape.ts'
import { expand } from '../view/windows.ts'

/** The options of the scans and normalizations of `torch.masked`. */
export interface MaskedOptions {
  /** Where it is true the elements count; it broadcasts to the input. Default: everywhere. */
  readonly mask?: Tensor | null
  /** The input is cast to this dtype first. */
  readonly dtype?: DType | null
}

/** The options of the reductions of `torch.masked`. */
export interface MaskedReductionOptions extends MaskedOptions {
  readonly dim?: Dims
  readonly keepdim?: boolean
}

/** The options of `torch.masked.var` and `torch.masked.std`. */
export interface MaskedMomentOptions extends MaskedReductionOptions {
  readonly unbiased?: boolean | null
  /** What is subtracted from the number of elements in the divisor. Default 1. */
  readonly correction?: number | null
}

/** The options of `torch.masked.logaddexp`. */
export interface MaskedPairOptions {
  readonly dtype?: DType | null
  readonly inputMask?: Tensor | null
  readonly otherMask?: Tensor | null
}

/** A reduction of the elements where a mask holds, over some dimensions or all. */
export type MaskedReduction = (input: Tensor, dim?: Dims | MaskedReductionOptions, options?: MaskedReductionOptions) => Tensor
/** A moment of the elements where a mask holds. */
export type MaskedMoment = (
  input: Tensor,
  dim?: Dims | MaskedMomentOptions,
  unbiased?: boolean | null | MaskedMomentOptions,
  options?: MaskedMomentOptions,
) => Tensor
/** A scan or a normalization along a dimension, of the elements where a mask holds. */
export type MaskedAlongDim = (input: Tensor, dim: number, options?: MaskedOptions) => Tensor

/** What stands for elements that do not count: a number, or the least or the greatest value of a dtype. */
type Fill = number | 'least' | 'greatest'

function numberOf(fill: Fill, dtype: DType): number {
  if (typeof fill === 'number') return fill
  const isLeast = fill === 'least'
  if (dtypeInfo[dtype].differentiable) return isLeast ? -Infinity : Infinity
  if (dtype === 'bool') return Number(!isLeast)
  // The ends of int64 are no exact numbers.
  if (dtype === 'int64') return isLeast ? Number.MIN_SAFE_INTEGER : Number.MAX_SAFE_INTEGER
  const { min, max } = iinfo(dtype)
  return Number(isLeast ? min : max)
}

/** `input`, in the dtype that is asked for, with `fill` where the mask does not hold. */
function filled(op: string, given: Tensor, { mask, dtype }: MaskedOptions, fill: Fill): Tensor {
  checkArgument(given instanceof Tensor, op, 'input', 'a Tensor', given)
  const input = dtype === null || dtype === undefined ? given : to(given, dtype)
  if (mask === null || mask === undefined) return input
  checkArgument(mask instanceof Tensor, op, 'mask', 'a Tensor', mask)
  checkMask(op, mask)
  return maskedFill(input, logicalNot(expand(mask, input.symSizes)), numberOf(fill, input.dtype))
}

const KNOWN = { mask: true, dtype: true } as const
const REDUCTION = { ...KNOWN, dim: true, keepdim: 'boolean' } as const

/** The options of a call, by position and by name, which are checked. */
function reductionOptions(op: string, dim: unknown, options: MaskedReductionOptions | undefined): MaskedReductionOptions {
  const named: MaskedReductionOptions = isPlainObject(dim) ? dim : { ...options, ...(dim === undefined ? {} : { dim: dimsOf(op, dim) }) }
  checkOptions<MaskedReductionOptions>(op, named, REDUCTION)
  return named
}

function dimsOf(op: string, dim: unknown): Dims {
  const isList = Array.isArray(dim) && dim.every((d) => typeof d === 'number')
  checkArgument(dim === null || typeof dim === 'number' || isList, op, 'dim', 'a number, an array of integers or null', dim)
  return isList || typeof dim === 'number' ? dim : null
}

function reduction(name: string, fill: Fill, reduce: (input: Tensor, dim: Dims, keepdim: boolean) => Tensor): MaskedReduction {
  const op = `torch.masked.${name}`
  return function (input, dim, given) {
    checkCount(op, arguments, 3)
    const options = reductionOptions(op, dim, given)
    return reduce(filled(op, input, options, fill), options.dim ?? null, options.keepdim === true)
  }
}

function alongDim(name: string, fill: Fill, compute: (input: Tensor, dim: number) => Tensor): MaskedAlongDim {
  const op = `torch.masked.${name}`
  return function (input, dim, options = {}) {
    checkCount(op, arguments, 3)
    checkArgument(Number.isInteger(dim), op, 'dim', 'an integer', dim)
    checkOptions<MaskedOptions>(op, options, KNOWN)
    return compute(filled(op, input, options, fill), dim)
  }
}

/** The sum of the elements where the mask holds; 0 of none. PyTorch's `torch.masked.sum`. */
export const sum: MaskedReduction = reduction('sum', 0, (x, dim, keepdim) => plainSum(x, dim, keepdim))
/** The product of the elements where the mask holds; 1 of none. PyTorch's `torch.masked.prod`. */
export const prod: MaskedReduction = reduction('prod', 1, (x, dim, keepdim) => plainProd(x, dim, keepdim))
/** The greatest of the elements where the mask holds. PyTorch's `torch.masked.amax`. */
export const amax: MaskedReduction = reduction('amax', 'least', (x, dim, keepdim) => plainAmax(x, dim, keepdim))
/** The least of the elements where the mask holds. PyTorch's `torch.masked.amin`. */
export const amin: MaskedReduction = reduction('amin', 'greatest', (x, dim, keepdim) => plainAmin(x, dim, keepdim))
/** The logarithm of the sum of the exponentials of the elements where the mask holds, in the dtype of the input. PyTorch's `torch.masked.logsumexp`. */
export const logsumexp: MaskedReduction = reduction('logsumexp', 'least', (x, dim, keepdim) =>
  to(plainLogsumexp(to(x, asFloating(x.dtype)), dim ?? x.symSizes.map((_, d) => d), { keepdim }), x.dtype),
)
const only = (dim: Dims): number | null => (Array.isArray(dim) ? (dim[0] ?? null) : typeof dim === 'number' ? dim : null)
/** The index of the greatest element where the mask holds, in the dtype of the input, as PyTorch gives it. PyTorch's `torch.masked.argmax`. */
export const argmax: MaskedReduction = reduction('argmax', 'least', (x, dim, keepdim) => to(plainArgmax(x, only(dim), keepdim), x.dtype))
/** The index of the least element where the mask holds, in the dtype of the input, as PyTorch gives it. PyTorch's `torch.masked.argmin`. */
export const argmin: MaskedReduction = reduction('argmin', 'greatest', (x, dim, keepdim) => to(plainArgmin(x, only(dim), keepdim), x.dtype))

/** How many elements count for each result. */
const countOf = (input: Tensor, options: MaskedOptions, dim: Dims, keepdim: boolean): Tensor =>
  sum(onesLike(input, { dtype: 'int64' }), { mask: options.mask ?? null, dim, keepdim })

/** The mean of the elements where the mask holds; NaN of none. PyTorch's `torch.masked.mean`. */
export const mean: MaskedReduction = function (input, dim, given) {
  const op = 'torch.masked.mean'
  checkCount(op, arguments, 3)
  const options = reductionOptions(op, dim, given)
  const x = filled(op, input, options, 0)
  const [over, keepdim] = [options.dim ?? null, options.keepdim === true]
  if (options.mask === null || options.mask === undefined) return plainMean(x, over, keepdim)
  return div(plainSum(x, over, keepdim), countOf(x, options, over, keepdim))
}

/** The median along `dim` of the elements where the mask holds; NaN of none. PyTorch's `torch.masked.median`. */
export const median: MaskedAlongDim & ((input: Tensor, dim: number, options?: MaskedReductionOptions) => Tensor) = function (
  input: Tensor,
  dim: number,
  options: MaskedReductionOptions = {},
) {
  const op = 'torch.masked.median'
  checkCount(op, arguments, 3)
  checkArgument(Number.isInteger(dim), op, 'dim', 'an integer', dim)
  checkOptions<MaskedReductionOptions>(op, options, REDUCTION)
  const floating = { ...options, dtype: asFloating(options.dtype ?? input.dtype) }
  return nanmedian(filled(op, input, floating, NaN), dim, options.keepdim === true)[0]
}

/** The p-norm of the elements where the mask holds. PyTorch's `torch.masked.norm`. */
export function norm(
  input: Tensor,
  ord: number | (MaskedReductionOptions & { readonly ord?: number }) = 2,
  dim?: Dims | MaskedReductionOptions,
  given?: MaskedReductionOptions,
): Tensor {
  const op = 'torch.masked.norm'
  checkCount(op, arguments, 4)
  const { ord: order = 2, ...rest } = typeof ord === 'number' ? { ord } : ord
  const options = reductionOptions(op, typeof ord === 'number' ? dim : rest, given)
  return vectorNorm(filled(op, input, options, order === -Infinity ? 'greatest' : 0), order, options.dim ?? null, options.keepdim === true)
}

function moment(op: string, input: Tensor, dim: unknown, unbiased: unknown, given: MaskedMomentOptions | undefined): Tensor {
  checkArgument(input instanceof Tensor, op, 'input', 'a Tensor', input)
  const byName = isPlainObject(dim) ? dim : isPlainObject(unbiased) ? unbiased : (given ?? {})
  checkOptions<MaskedMomentOptions>(op, byName, { ...REDUCTION, unbiased: true, correction: true })
  const options: MaskedMomentOptions = byName
  const over = isPlainObject(dim) || dim === undefined ? (options.dim ?? null) : dimsOf(op, dim)
  const bias = typeof unbiased === 'boolean' ? unbiased : (options.unbiased ?? null)
  const correction = bias === null ? (options.correction ?? 1) : Number(bias)
  const x = to(input, asFloating(options.dtype ?? input.dtype))
  const { mask = null } = options
  const counts = countOf(x, options, over, true)
  const centered = sub(x, div(sum(x, { mask, dim: over, keepdim: true }), counts))
  const total = sum(mul(centered, centered), { mask, dim: over, keepdim: options.keepdim === true })
  return div(total, clamp(sub(reshape(counts, total.symSizes), correction), 0))
}

/** The variance of the elements where the mask holds. PyTorch's `torch.masked.var`. */
export const variance: MaskedMoment = function (input, dim, unbiased, options) {
  checkCount('torch.masked.var', arguments, 4)
  return moment('torch.masked.var', input, dim, unbiased, options)
}
/** The standard deviation of the elements where the mask holds. PyTorch's `torch.masked.std`. */
export const std: MaskedMoment = function (input, dim, unbiased, options) {
  checkCount('torch.masked.std', arguments, 4)
  return sqrt(moment('torch.masked.std', input, dim, unbiased, options))
}

/** Sums up to each position; elements where the mask does not hold count as 0. PyTorch's `torch.masked.cumsum`. */
export const cumsum: MaskedAlongDim = alongDim('cumsum', 0, (x, dim) => plainCumsum(x, dim))
/** Products up to each position; elements where the mask does not hold count as 1. PyTorch's `torch.masked.cumprod`. */
export const cumprod: MaskedAlongDim = alongDim('cumprod', 1, (x, dim) => plainCumprod(x, dim))
/** The softmax of the elements where the mask holds; 0 elsewhere. PyTorch's `torch.masked.softmax`. */
export const softmax: MaskedAlongDim = alongDim('softmax', 'least', (x, dim) => plainSoftmax(x, dim))
/** The logarithm of the softmax of the elements where the mask holds; -Infinity elsewhere. PyTorch's `torch.masked.log_softmax`. */
export const logSoftmax: MaskedAlongDim = alongDim('log_softmax', 'least', (x, dim) => plainLogSoftmax(x, dim))
/** The softmin of the elements where the mask holds; 0 elsewhere. PyTorch's `torch.masked.softmin`. */
export const softmin: MaskedAlongDim = alongDim('softmin', 'greatest', (x, dim) => plainSoftmin(x, dim))

/** The input divided by the p-norm along `dim` of the elements where the mask holds, which is at least `eps`; 0 elsewhere. PyTorch's `torch.masked.normalize`. */
export function normalize(input: Tensor, ord: number, dim: number, given: MaskedOptions & { readonly eps?: number } = {}): Tensor {
  const op = 'torch.masked.normalize'
  checkCount(op, arguments, 4)
  checkOptions<MaskedOptions & { readonly eps?: number }>(op, given, { ...KNOWN, eps: 'number' })
  const { eps = 1e-12, ...options } = given
  return div(filled(op, input, options, 0), clamp(norm(input, ord, dim, { ...options, keepdim: true }), eps))
}

/** log(e^input + e^other), where elements whose mask does not hold count as nothing. PyTorch's `torch.masked.logaddexp`. */
export function logaddexp(input: Tensor, other: Tensor, options: MaskedPairOptions = {}): Tensor {
  const op = 'torch.masked.logaddexp'
  checkCount(op, arguments, 3)
  checkOptions<MaskedPairOptions>(op, options, { dtype: true, inputMask: true, otherMask: true })
  const { dtype = null, inputMask = null, otherMask = null } = options
  return plainLogaddexp(filled(op, input, { dtype, mask: inputMask }, 'least'), filled(op, other, { dtype, mask: otherMask }, 'least'))
}
