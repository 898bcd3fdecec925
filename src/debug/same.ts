// Comparing two results within tolerance, with a float64 reference to tell an error of the compiler from an error of float32.
// PyTorch's torch._dynamo.utils.same.
import { dtypeInfo } from '../kernels/index.ts'
import { checkArgument, checkOptions, isTensorLike, valueText } from '../protocol/index.ts'
import { formatShape, sameShape, Tensor } from '../tensor/index.ts'
import { log } from './log.ts'

export interface SameOptions {
  /** Absolute and relative tolerance. Default 1e-4. */
  readonly tol?: number
  /** NaN equals NaN. Default false. */
  readonly equalNan?: boolean
  /** Different dtypes are a difference. Default true. */
  readonly exactDtype?: boolean
  /** Differences in integers and booleans do not count. Default false. */
  readonly ignoreNonFp?: boolean
  /** Compare only the direction: a cosine similarity of at least 0.99 passes. Default false. */
  readonly cosSimilarity?: boolean
  /** Where reasons for a difference go; default the debug log. */
  readonly logError?: (message: string) => void
}

/**
 * Whether `res` equals `ref` within tolerance: nested arrays, plain objects, Maps, tensors and numbers; other values are compared by `Object.is`.
 * With `fp64Ref` (the same computation in float64) a result that differs from `ref` still passes if it is about as close to float64 as `ref` is: `rmse(fp64, res) <= multiplier * rmse(fp64, ref) + tol / 10`. Throws ArgumentError for an unknown option.
 */
export function same(ref: unknown, res: unknown, fp64Ref: unknown = null, options: SameOptions = {}): boolean {
  checkOptions('same', options, { tol: true, equalNan: true, exactDtype: true, ignoreNonFp: true, cosSimilarity: true, logError: true })
  return new Comparison(options).same(ref, res, fp64Ref)
}

/** Root mean square error of two tensors of one shape. PyTorch's torch._dynamo.utils.rmse. */
export function rmse(ref: Tensor, res: Tensor): number {
  checkArgument(isTensorLike(ref), 'rmse', 'ref', 'a Tensor', ref)
  checkArgument(isTensorLike(res), 'rmse', 'res', 'a Tensor', res)
  return rmseOf(ref.toTypedArray(), res.toTypedArray())
}

type Numbers = ArrayLike<number>

/** The integers as numbers, which are rounded beyond 2^53. */
const integersOf = (tensor: Tensor): Numbers => (tensor.dtype === 'int64' ? Array.from(tensor.toBigIntArray(), Number) : tensor.toTypedArray())

/** NaN if there is no such element, so that a comparison fails. */
const at = (numbers: Numbers, i: number): number => numbers[i] ?? Number.NaN

function rmseOf(a: Numbers, b: Numbers): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += (at(a, i) - at(b, i)) ** 2
  return Math.sqrt(sum / a.length)
}

function allClose(a: Numbers, b: Numbers, tol: number, equalNan: boolean): boolean {
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [at(a, i), at(b, i)]
    if (x === y || (equalNan && Number.isNaN(x) && Number.isNaN(y))) continue
    if (!(Math.abs(x - y) <= tol + tol * Math.abs(x))) return false
  }
  return true
}

class Comparison {
  readonly #options: Required<SameOptions>

  constructor(options: SameOptions) {
    this.#options = {
      tol: 1e-4,
      equalNan: false,
      exactDtype: true,
      ignoreNonFp: false,
      cosSimilarity: false,
      logError: (m) => log.error(m),
      ...options,
    }
  }

  same(ref: unknown, res: unknown, fp64Ref: unknown): boolean {
    if (ref instanceof Tensor || typeof ref === 'number') return this.#sameNumbers(ref, res, fp64Ref)
    if (Array.isArray(ref)) {
      if (!Array.isArray(res) || ref.length !== res.length) return this.#fail('Length mismatch')
      return ref.every((value, i) => this.same(value, res[i], Array.isArray(fp64Ref) ? fp64Ref[i] : null))
    }
    if (ref instanceof Map) return res instanceof Map && this.#sameEntries([...ref], res, fp64Ref instanceof Map ? fp64Ref : new Map())
    if (typeof ref === 'object' && ref !== null && Object.getPrototypeOf(ref) === Object.prototype) {
      if (typeof res !== 'object' || res === null) return this.#fail(`types differ: an object and ${valueText(res)}`)
      const fp64 = typeof fp64Ref === 'object' && fp64Ref !== null ? fp64Ref : {}
      return this.#sameEntries(Object.entries(ref), new Map(Object.entries(res)), new Map(Object.entries(fp64)))
    }
    if (Object.is(ref, res)) return true
    return this.#fail(`values differ: ${valueText(ref)} and ${valueText(res)}`)
  }

  #sameEntries(ref: readonly (readonly [unknown, unknown])[], res: ReadonlyMap<unknown, unknown>, fp64: ReadonlyMap<unknown, unknown>): boolean {
    if (ref.length !== res.size || !ref.every(([key]) => res.has(key))) return this.#fail('keys differ')
    return ref.every(
      ([key, value]) => this.same(value, res.get(key), fp64.get(key) ?? null) || this.#fail(`Accuracy failed for key name ${String(key)}`),
    )
  }

  #fail(message: string): false {
    this.#options.logError(message)
    return false
  }

  #sameNumbers(ref: Tensor | number, res: unknown, fp64Ref: unknown): boolean {
    if (typeof ref === 'number') {
      if (typeof res !== 'number') return this.#fail(`types differ: a number and ${valueText(res)}`)
      return allClose([ref], [res], this.#options.tol, true) || this.#fail(`Accuracy failed: ${ref} and ${res} not within tol=${this.#options.tol}`)
    }
    if (!(res instanceof Tensor)) return this.#fail(`types differ: a Tensor and ${valueText(res)}`)
    if (!sameShape(ref.shape, res.shape)) return this.#fail(`shapes differ: ${formatShape(ref.shape)} and ${formatShape(res.shape)}`)
    if (this.#options.exactDtype && ref.dtype !== res.dtype) return this.#fail(`dtype mismatch ${ref.dtype}, ${res.dtype}`)
    return dtypeInfo[ref.dtype].floating ? this.#sameFloats(ref, res, fp64Ref instanceof Tensor ? fp64Ref : null) : this.#sameIntegers(ref, res)
  }

  #sameIntegers(ref: Tensor, res: Tensor): boolean {
    if (this.#options.ignoreNonFp || allClose(integersOf(ref), integersOf(res), this.#options.tol, true)) return true
    return this.#fail(`Accuracy failed: ${ref.dtype} tensors of shape ${formatShape(ref.shape)} differ`)
  }

  #sameFloats(refTensor: Tensor, resTensor: Tensor, fp64Tensor: Tensor | null): boolean {
    const { tol, equalNan } = this.#options
    const ref = refTensor.toTypedArray()
    const res = resTensor.toTypedArray()
    if (this.#options.cosSimilarity) return this.#sameDirection(ref, res)
    if (allClose(ref, res, tol, equalNan)) return true
    if (fp64Tensor === null) return this.#fail(`Accuracy failed: allclose not within tol=${tol}`)
    const fp64 = fp64Tensor.toTypedArray()
    // If the reference has NaNs, a result that agrees with float64 is right.
    if (hasNaN(ref) && !hasNaN(res) && allClose(fp64, res, 0.04, false)) return true
    const refError = rmseOf(fp64, ref)
    const resError = rmseOf(fp64, res)
    const multiplier = dtypeInfo[resTensor.dtype].size === 2 || refTensor.numel < 1000 || isPointwiseKernel(refTensor) || tol >= 2e-2 ? 3 : 2
    const passes = resError <= multiplier * refError + tol / 10 || (equalNan && Number.isNaN(refError) && Number.isNaN(resError))
    if (passes) return true
    return this.#fail(
      `RMSE (res-fp64): ${resError.toFixed(5)}, (ref-fp64): ${refError.toFixed(5)} and shape=${formatShape(resTensor.shape)}. ` +
        `res.dtype: ${resTensor.dtype}, multiplier: ${multiplier.toFixed(6)}, tol: ${tol.toFixed(6)}`,
    )
  }

  #sameDirection(ref: Numbers, res: Numbers): boolean {
    if (allClose(ref, res, this.#options.tol, true)) return true
    let dot = 0
    let a = 0
    let b = 0
    for (let i = 0; i < ref.length; i++) {
      const [x, y] = [at(ref, i), at(res, i)]
      dot += x * y
      a += x ** 2
      b += y ** 2
    }
    const score = dot / Math.max(Math.sqrt(a) * Math.sqrt(b), 1e-8)
    return score >= 0.99 || this.#fail(`Similarity score=${score}`)
  }
}

/** Gradients of 1x1 convolutions sum few products, so their errors vary more. */
const isPointwiseKernel = (t: Tensor): boolean => t.ndim === 4 && t.shape[2] === t.shape[3] && (t.shape[2] === 1 || t.shape[2] === 3)

function hasNaN(values: Numbers): boolean {
  for (let i = 0; i < values.length; i++) if (Number.isNaN(values[i])) return true
  return false
}
