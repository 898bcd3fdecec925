// Comparing two results within tolerance, with a float64 reference to tell an error of the compiler from an error of float32.
// PyTorch's torch._dynamo.utils.same.
import { noGrad } from '../../autograd/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { to } from '../../ops/index.ts'
import {
  checkArgument,
  checkCallable,
  checkCount,
  checkDepth,
  checkOptionNames,
  checkOptions,
  isObject,
  isPlainObject,
  isTensorLike,
  valueText,
} from '../../protocol/index.ts'
import { exactElements, formatShape, sameShape, Tensor, tensorFromValues } from '../../tensor/index.ts'
import { elementsOf, farApart, isOutside, misplaced, rmseOf, unexplained } from './closeness.ts'
import type { Elements, Expected } from './closeness.ts'
import { log } from '../common/log.ts'

/** Options of {@link same}. */
export interface SameOptions {
  /** Absolute and relative tolerance. Default 1e-4. */
  readonly tol?: number
  /** NaN equals NaN. Default false. */
  readonly equalNan?: boolean
  /** Different dtypes are a difference. Default true; otherwise the reference is converted to the dtype of the result. */
  readonly exactDtype?: boolean
  /** A bigint equals an integer number, where PyTorch's `relax_numpy_equality` lets a numpy scalar equal a Python number. Default false. */
  readonly relaxNumpyEquality?: boolean
  /** Differences in integers, booleans, strings and null do not count. Default false. */
  readonly ignoreNonFp?: boolean
  /** Compare only the direction: a cosine similarity of at least 0.99 passes. Default false. */
  readonly cosSimilarity?: boolean
  /** With a float64 reference, a result of at most 10 elements may be 10 times as far from it as `ref` is, one of at most 500 elements 8 times. Default false. */
  readonly useLargerMultiplierForSmallerTensor?: boolean
  /** A result may be 10 times as far from the float64 reference as `ref` is. Default false. */
  readonly forceMaxMultiplier?: boolean
  /** Boolean tensors are the same if enough of their true elements are: those in both by those in either. Default false. */
  readonly useIouForBool?: boolean
  /** How many are enough. Default 0.99. */
  readonly iouThreshold?: number
  /** Where reasons for a difference go; default the debug log. */
  readonly logError?: (message: string) => void
}

const DEFAULTS: Required<SameOptions> = {
  tol: 1e-4,
  equalNan: false,
  exactDtype: true,
  relaxNumpyEquality: false,
  ignoreNonFp: false,
  cosSimilarity: false,
  useLargerMultiplierForSmallerTensor: false,
  forceMaxMultiplier: false,
  useIouForBool: false,
  iouThreshold: 0.99,
  logError: (message) => log.error(message),
}

/**
 * Whether `res` equals `ref` within tolerance: tensors and numbers, typed arrays, strings; nested arrays, plain objects, Maps, Sets, and instances of one class by their own
 * fields; other values by identity. NaN and infinities are compared by place, all other elements by value, and shapes have to be equal.
 * With `fp64Ref` (the same computation in float64) a result that differs from `ref` still passes if it is about as close to float64 as `ref` is: `rmse(fp64, res) <= multiplier *
 * rmse(fp64, ref) + tol / 10`. PyTorch's `torch._dynamo.utils.same`.
 *
 * @throws ArgumentError for an unknown option, and for a tolerance or a threshold that is not a number.
 */
export function same(ref: unknown, res: unknown, fp64Ref: unknown = null, options: SameOptions = {}): boolean {
  checkCount('same', arguments, 4)
  checkOptionNames('same', options, Object.keys(DEFAULTS))
  const { tol, iouThreshold, logError } = { ...DEFAULTS, ...options }
  checkArgument(typeof tol === 'number' && tol >= 0, 'same', 'options.tol', 'a number that is not negative', tol)
  checkArgument(typeof iouThreshold === 'number', 'same', 'options.iouThreshold', 'a number', iouThreshold)
  checkCallable('same', 'options.logError', logError)
  return new Comparison(options).same(ref, res, fp64Ref)
}

/** Whether two results are equal in every element. PyTorch's `bitwise_same`, which lets 0 equal -0. Throws ArgumentError for an unknown option. */
export function bitwiseSame(ref: unknown, res: unknown, options: Pick<SameOptions, 'equalNan' | 'logError'> = {}): boolean {
  checkCount('bitwiseSame', arguments, 3)
  checkOptions('bitwiseSame', options, { equalNan: 'boolean', logError: true })
  return new Comparison({ ...options, tol: 0 }, { exactIntegers: true }).same(ref, res, null)
}

/** How strictly a judge compares. */
interface Strictness {
  /** The absolute tolerance shrinks with the size of the values, and each element is judged, not their average. */
  readonly scaled?: boolean
  /** Integers and booleans are compared exactly. */
  readonly exactIntegers?: boolean
}

/** {@link same} for judges: small values and single elements count, integers are exact. `others` are runs of the reference whose differences are rounding. */
export function judgedSame(ref: unknown, res: unknown, fp64Ref: unknown, options: SameOptions, others: readonly unknown[]): boolean {
  return new Comparison({ equalNan: true, ...options }, { scaled: true, exactIntegers: true }).same(ref, res, fp64Ref, others)
}

/** Root mean square error of two tensors of one shape; NaN if they have no elements. PyTorch's `torch._dynamo.utils.rmse`. Throws ArgumentError for anything else. */
export function rmse(ref: Tensor, res: Tensor): number {
  checkCount('rmse', arguments, 2)
  checkArgument(isTensorLike(ref), 'rmse', 'ref', 'a Tensor', ref)
  checkArgument(isTensorLike(res), 'rmse', 'res', 'a Tensor', res)
  checkArgument(sameShape(ref.shape, res.shape), 'rmse', 'res', `a Tensor of shape ${formatShape(ref.shape)}`, res)
  return rmseOf(elementsOf(ref), elementsOf(res))
}

type TypedNumbers = Iterable<number | bigint> & { readonly length: number }

const isTypedArray = (value: unknown): value is TypedNumbers => ArrayBuffer.isView(value) && !(value instanceof DataView)

const DTYPE_OF: ReadonlyMap<unknown, DType> = new Map<unknown, DType>([
  [Float64Array, 'float64'],
  [Float32Array, 'float32'],
  [Int32Array, 'int32'],
  [Int16Array, 'int16'],
  [Int8Array, 'int8'],
  [Uint8Array, 'uint8'],
  [Uint8ClampedArray, 'uint8'],
])

/** A typed array as a tensor of one dimension: of its dtype, or of the one that holds its values. */
function asTensor(values: TypedNumbers): Tensor {
  const numbers = [...values]
  return tensorFromValues(numbers, [numbers.length], DTYPE_OF.get(values.constructor) ?? 'int64')
}

const isInstance = (value: unknown): value is object => typeof value === 'object' && value !== null && !isPlainObject(value)

class Comparison {
  readonly #options: Required<SameOptions>
  readonly #strictness: Strictness

  constructor(options: SameOptions, strictness: Strictness = {}) {
    this.#options = { ...DEFAULTS, ...options }
    this.#strictness = strictness
  }

  same(ref: unknown, res: unknown, fp64Ref: unknown, others: readonly unknown[] = [], depth = 0): boolean {
    checkDepth(depth)
    const part = (get: (of: unknown) => unknown, key: unknown): boolean =>
      this.same(get(ref), get(res), get(fp64Ref) ?? null, others.map(get), depth + 1) ||
      (key !== null && this.#fail(`Accuracy failed for key name ${String(key)}`))
    if (ref instanceof Tensor) return this.#sameTensor(ref, res, fp64Ref, others)
    if (typeof ref === 'number') return this.#sameNumber(ref, res)
    if (isTypedArray(ref)) {
      if (!isTypedArray(res)) return this.#fail(`types differ: a typed array and ${valueText(res)}`)
      return this.#sameTensor(asTensor(ref), asTensor(res), isTypedArray(fp64Ref) ? asTensor(fp64Ref) : fp64Ref, [])
    }
    if (Array.isArray(ref)) {
      if (!Array.isArray(res) || ref.length !== res.length) return this.#fail('Length mismatch')
      return ref.every((_, i) => part((of) => (Array.isArray(of) ? of[i] : undefined), null))
    }
    if (ref instanceof Map) {
      if (!(res instanceof Map) || !sameKeys(ref, res)) return this.#fail('keys differ')
      return sorted([...ref.keys()]).every((key) => part((of) => (of instanceof Map ? of.get(key) : undefined), key))
    }
    if (ref instanceof Set) return (res instanceof Set && sameKeys(ref, res)) || this.#fail('elements differ')
    if (isPlainObject(ref)) {
      if (typeof res !== 'object' || res === null) return this.#fail(`types differ: an object and ${valueText(res)}`)
      return this.#sameFields(ref, res, (key) => part((of) => fieldOf(of, key), key))
    }
    if (Object.is(ref, res)) return true
    if (isInstance(ref) && isInstance(res) && Object.getPrototypeOf(ref) === Object.getPrototypeOf(res) && Object.keys(ref).length > 0)
      return this.#sameFields(ref, res, (key) => part((of) => fieldOf(of, key), null))
    if (typeof ref !== 'object' && this.#options.ignoreNonFp) return true
    if (ref === null && this.#options.ignoreNonFp) return true
    if (typeof ref === 'bigint' && this.#options.relaxNumpyEquality && Object.is(Number(ref), res)) return true
    return this.#fail(`values differ: ${valueText(ref)} and ${valueText(res)}`)
  }

  #sameFields(ref: object, res: object, field: (key: string) => boolean): boolean {
    const keys = Object.keys(ref)
    if (!sameKeys(new Set(keys), new Set(Object.keys(res)))) return this.#fail('keys differ')
    return sorted(keys).every(field)
  }

  #fail(message: string): false {
    this.#options.logError(message)
    return false
  }

  #sameNumber(ref: number, res: unknown): boolean {
    const { tol, ignoreNonFp, exactDtype } = this.#options
    // A tensor without dimensions is a number.
    if (res instanceof Tensor && res.ndim === 0 && (!exactDtype || dtypeInfo[res.dtype].floating || Number.isInteger(ref)))
      return this.#sameNumber(ref, Number(exactElements(res)[0]))
    if (typeof res === 'bigint' && Object.is(Number(res), ref)) return true
    const isInteger = Number.isInteger(ref) && (typeof res !== 'number' || Number.isInteger(res))
    if (isInteger && ignoreNonFp) return true
    if (typeof res !== 'number') return this.#fail(`types differ: a number and ${valueText(res)}`)
    const near = isInteger ? ref === res : Object.is(ref, res) || Math.abs(ref - res) <= tol + tol * Math.abs(ref)
    return near || this.#fail(`Accuracy failed: ${ref} and ${res} not within tol=${tol}`)
  }

  #sameTensor(ref: Tensor, given: unknown, fp64Ref: unknown, others: readonly unknown[]): boolean {
    const { exactDtype, useIouForBool, cosSimilarity, ignoreNonFp } = this.#options
    if (typeof given === 'number' && ref.ndim === 0) return this.#sameNumber(Number(exactElements(ref)[0]), given)
    const res = isTypedArray(given) ? asTensor(given) : given
    if (!(res instanceof Tensor)) return this.#fail(`types differ: a Tensor and ${valueText(res)}`)
    if (!sameShape(ref.shape, res.shape)) return this.#fail(`shapes differ: ${formatShape(ref.shape)} and ${formatShape(res.shape)}`)
    if (exactDtype && ref.dtype !== res.dtype) return this.#fail(`dtype mismatch ${ref.dtype}, ${res.dtype}`)
    if (exactDtype && ref.dtype === 'bool') {
      if (ignoreNonFp) return true
      if (useIouForBool) return this.#sameMask(elementsOf(ref), elementsOf(res))
    }
    if (!dtypeInfo[res.dtype].floating && this.#strictness.exactIntegers) return this.#sameIntegers(ref, res, [fp64Ref, ...others])
    if (cosSimilarity && !(exactDtype && ref.dtype === 'bool')) return this.#sameDirection(ref, res)
    const wide = fp64Ref instanceof Tensor ? fp64Ref : ref
    return this.#sameElements(
      exactDtype ? ref : noGrad(() => to(ref, res.dtype)),
      res,
      wide.dtype === 'float64' && sameShape(wide.shape, res.shape) ? wide : null,
      others.filter((other): other is Tensor => other instanceof Tensor && sameShape(other.shape, res.shape)),
    )
  }

  #sameIntegers(ref: Tensor, res: Tensor, others: readonly unknown[]): boolean {
    if (this.#options.ignoreNonFp) return true
    const isRun = (other: unknown): other is Tensor => other instanceof Tensor && sameShape(other.shape, ref.shape)
    const [want, got] = [exactElements(ref), exactElements(res)]
    const runs = [want, ...others.filter(isRun).map(exactElements)]
    for (let i = 0; i < want.length; i++)
      if (isOutside(got, runs, i)) {
        const where = `element ${i} is ${got[i]}, not ${want[i]}`
        return this.#fail(`Accuracy failed: ${ref.dtype} tensors of shape ${formatShape(ref.shape)} differ: ${where}`)
      }
    return true
  }

  #sameElements(refTensor: Tensor, resTensor: Tensor, fp64Tensor: Tensor | null, otherTensors: readonly Tensor[]): boolean {
    const { tol, equalNan, ignoreNonFp } = this.#options
    const { dtype, shape } = resTensor
    const { scaled = false } = this.#strictness
    const res = elementsOf(resTensor)
    const ref = elementsOf(refTensor)
    const expected: Expected = { ref, fp64: fp64Tensor === null ? null : elementsOf(fp64Tensor), others: otherTensors.map(elementsOf) }
    const { fp64 } = expected
    const at = misplaced(res, expected, dtype, equalNan)
    const far = farApart(res, ref, { tol, scaled })
    if (at < 0 && far.length === 0) return true
    const { floating } = dtypeInfo[dtype]
    if (!floating && ignoreNonFp) return true
    const multiplier = this.#multiplierFor(resTensor)
    // Where each element is judged, a difference is shown by the worst one.
    const worst = at < 0 && scaled ? unexplained(far, res, expected, dtype, multiplier, { tol, scaled }) : at
    if (scaled && worst < 0) return true
    const shown = scaled ? `; element ${worst} is ${res[worst]}, not ${(fp64 ?? ref)[worst]}` : ''
    if (fp64 === null) {
      const what = floating ? `allclose not within tol=${tol}` : `${dtype} tensors of shape ${formatShape(shape)} differ`
      return this.#fail(`Accuracy failed: ${what}${shown}`)
    }
    const isFinite = (i: number): boolean => [fp64, ref, res].every((elements) => Number.isFinite(elements[i]))
    const [refError, resError] = [rmseOf(fp64, ref, isFinite) || 0, rmseOf(fp64, res, isFinite) || 0]
    // Where float64 has no number, the reference decides.
    const hasCounterpart = far.every((i) => Number.isFinite(fp64[i]))
    if (worst < 0 && hasCounterpart && resError <= multiplier * refError + tol / 10) return true
    return this.#fail(
      `RMSE (res-fp64): ${resError.toFixed(5)}, (ref-fp64): ${refError.toFixed(5)} and shape=${formatShape(shape)}. ` +
        `res.dtype: ${dtype}, multiplier: ${multiplier.toFixed(6)}, tol: ${tol.toFixed(6)}${shown}`,
    )
  }

  /** How many times as far from float64 as the reference a result may be: noise dominates in small tensors, in half precision, and in gradients of 1x1 convolutions. */
  #multiplierFor({ dtype, numel, shape, ndim }: Tensor): number {
    const { tol, useLargerMultiplierForSmallerTensor: larger, forceMaxMultiplier } = this.#options
    if (forceMaxMultiplier) return 10
    if (larger && numel <= 10) return 10
    if (larger && numel <= 500) return 8
    const isPointwiseKernel = ndim === 4 && shape[2] === 1 && shape[3] === 1
    const isHalf = dtypeInfo[dtype].floating && dtypeInfo[dtype].size === 2
    // Single elements of half precision vary more than their average.
    if (isHalf && this.#strictness.scaled) return 6
    return isHalf || numel < 1000 || isPointwiseKernel || tol >= 2e-2 ? 3 : 2
  }

  #sameMask(ref: Elements, res: Elements): boolean {
    let [both, either] = [0, 0]
    for (let i = 0; i < ref.length; i++) {
      if (ref[i] === 1 && res[i] === 1) both++
      if (ref[i] === 1 || res[i] === 1) either++
    }
    const score = either === 0 ? 1 : both / either
    return score >= this.#options.iouThreshold || this.#fail(`IoU score=${score}`)
  }

  #sameDirection(refTensor: Tensor, resTensor: Tensor): boolean {
    const [ref, res] = [elementsOf(refTensor), elementsOf(resTensor)]
    const { tol } = this.#options
    if (misplaced(res, { ref, fp64: null }, resTensor.dtype, true) < 0 && farApart(res, ref, { tol }).length === 0) return true
    let [dot, a, b] = [0, 0, 0]
    for (let i = 0; i < ref.length; i++) {
      const [x = NaN, y = NaN] = [ref[i], res[i]]
      dot += x * y
      a += x ** 2
      b += y ** 2
    }
    const score = dot / Math.max(Math.sqrt(a) * Math.sqrt(b), 1e-8)
    return score >= 0.99 || this.#fail(`Similarity score=${score}`)
  }
}

const fieldOf = (of: unknown, key: string): unknown => (isObject(of) && Object.hasOwn(of, key) ? Reflect.get(of, key) : undefined)

const sameKeys = (a: ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>, b: ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>): boolean =>
  a.size === b.size && [...a.keys()].every((key) => b.has(key))

/** Keys in PyTorch's order: it reports the first that differs. Keys of other types than strings keep theirs. */
const sorted = <K>(keys: readonly K[]): readonly K[] => (keys.every((key) => typeof key === 'string') ? keys.toSorted() : keys)
