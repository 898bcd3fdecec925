// PyTorch's torch.signal.windows: windows of signal processing by their parameters. A window that is not `sym` is periodic: the symmetric window of length n + 1 without its last value.
import { ArgumentError } from '../../errors/index.ts'
import type { DType } from '../../kernels/index.ts'
import { checkArgument, checkCount, checkOptionNames } from '../../protocol/index.ts'
import { getDefaultDtype } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { asLeaf, empty, linspace, ones } from './creation.ts'
import { abs, add, div, mul, neg } from '../pointwise/arithmetic.ts'
import { i0 } from '../pointwise/bessel.ts'
import { clamp } from '../pointwise/select.ts'
import { to } from '../pointwise/cast.ts'
import { cos, exp, sin, sqrt, square } from '../pointwise/unary.ts'

/** What all windows take. */
export interface SignalWindowOptions {
  /** Whether the window is symmetric (the default), or periodic. */
  readonly sym?: boolean
  /** float32 or float64. */
  readonly dtype?: DType | null
  readonly requiresGrad?: boolean
}

interface Place {
  /** Number of values. */
  readonly length: number
  /** Number of values of the symmetric window that this one is, or is cut from. */
  readonly whole: number
  /** `count` numbers at equal distances, the first and the distance given. */
  readonly from: (start: number, step: number) => Tensor
}

/** Checks what all windows take, and makes a window of at least one value by `fn`. */
function window<O extends SignalWindowOptions>(
  name: string,
  length: number,
  options: O,
  own: readonly string[],
  check: () => void,
  fn: (place: Place) => Tensor,
): Tensor {
  const op = `torch.signal.windows.${name}`
  checkOptionNames(op, options, [...own, 'sym', 'dtype', 'requiresGrad'])
  checkArgument(Number.isSafeInteger(length) && length >= 0, op, 'M', 'a whole number that is not negative', length)
  const dtype = options.dtype ?? getDefaultDtype()
  if (dtype !== 'float32' && dtype !== 'float64') throw new ArgumentError(`${op}: option 'dtype' must be 'float32' or 'float64', got '${dtype}'.`)
  check()
  const make = (values: Tensor): Tensor => asLeaf(op, to(values, dtype), options.requiresGrad === true)
  if (length === 0) return make(empty([0], { dtype }))
  const whole = options.sym === false && length > 1 ? length + 1 : length
  const from = (start: number, step: number): Tensor => linspace(start, start + (length - 1) * step, length, { dtype: 'float64' })
  return make(fn({ length, whole, from }))
}

const one = (length: number): Tensor => ones([length], { dtype: 'float64' })

/** Sums of cosines with alternating signs: a[0] - a[1] cos(x) + a[2] cos(2 x) - …, over a turn. */
function cosines(name: string, length: number, a: readonly number[], options: SignalWindowOptions, own: readonly string[] = []): Tensor {
  const op = `torch.signal.windows.${name}`
  const check = (): void => {
    checkArgument(Array.isArray(a) && a.length > 0 && a.every((c) => typeof c === 'number'), op, 'a', 'an array of at least one number', a)
  }
  return window(name, length, options, own, check, ({ whole, from }) => {
    if (length === 1) return one(1)
    const x = from(0, (2 * Math.PI) / (whole - 1))
    return a.map((c, i) => mul(cos(mul(x, i)), i % 2 === 0 ? c : -c)).reduce((sum, term) => add(sum, term))
  })
}

/** A triangle from 0 to 1 and back. PyTorch's `torch.signal.windows.bartlett`. */
export function bartlett(M: number, options: SignalWindowOptions = {}): Tensor {
  checkCount('torch.signal.windows.bartlett', arguments, 2)
  return window('bartlett', M, options, [], nothing, ({ whole, from }) => (M === 1 ? one(1) : add(neg(abs(from(-1, 2 / (whole - 1)))), 1)))
}

const nothing = (): void => {}

/** Blackman's window: three cosines. PyTorch's `torch.signal.windows.blackman`. */
export function blackman(M: number, options: SignalWindowOptions = {}): Tensor {
  checkCount('torch.signal.windows.blackman', arguments, 2)
  return cosines('blackman', M, [0.42, 0.5, 0.08], options)
}

/** Half a turn of the sine. PyTorch's `torch.signal.windows.cosine`. */
export function cosine(M: number, options: SignalWindowOptions = {}): Tensor {
  checkCount('torch.signal.windows.cosine', arguments, 2)
  return window('cosine', M, options, [], nothing, ({ whole, from }) => sin(from((0.5 * Math.PI) / whole, Math.PI / whole)))
}

/** The options of {@link exponential}. */
export interface ExponentialWindowOptions extends SignalWindowOptions {
  /** Where the greatest value is, of a window that is not symmetric. Default: in the middle. */
  readonly center?: number | null
  /** In how many steps the values fall to 1/e. Default 1. */
  readonly tau?: number
}

/** e^(-|n - center| / tau). PyTorch's `torch.signal.windows.exponential`. */
export function exponential(M: number, options: ExponentialWindowOptions = {}): Tensor {
  checkCount('torch.signal.windows.exponential', arguments, 2)
  const { center = null, tau = 1, sym = true } = options
  const op = 'torch.signal.windows.exponential'
  const check = (): void => {
    if (!(tau > 0)) throw new ArgumentError(`${op}: option 'tau' must be positive, got ${tau}.`)
    if (sym && center !== null) throw new ArgumentError(`${op}: option 'center' is for windows that are not symmetric, { sym: false }.`)
  }
  return window('exponential', M, options, ['center', 'tau'], check, ({ whole, from }) =>
    exp(neg(abs(from(-(center ?? (whole - 1) / 2) / tau, 1 / tau)))),
  )
}

/** A sum of cosines with the coefficients `a`, with alternating signs. PyTorch's `torch.signal.windows.general_cosine`. */
export function generalCosine(M: number, options: SignalWindowOptions & { readonly a: readonly number[] } = { a: [] }): Tensor {
  checkCount('torch.signal.windows.general_cosine', arguments, 2)
  const { a, ...rest } = options
  return cosines('general_cosine', M, a, rest)
}

/** alpha - (1 - alpha) cos of a turn. PyTorch's `torch.signal.windows.general_hamming`. */
export function generalHamming(M: number, { alpha = 0.54, ...options }: SignalWindowOptions & { readonly alpha?: number } = {}): Tensor {
  checkCount('torch.signal.windows.general_hamming', arguments, 2)
  return cosines('general_hamming', M, [alpha, 1 - alpha], options)
}

/** The bell of the normal distribution. PyTorch's `torch.signal.windows.gaussian`. */
export function gaussian(M: number, options: SignalWindowOptions & { readonly std?: number } = {}): Tensor {
  checkCount('torch.signal.windows.gaussian', arguments, 2)
  const { std = 1 } = options
  const check = (): void => {
    if (!(std > 0)) throw new ArgumentError(`torch.signal.windows.gaussian: option 'std' must be positive, got ${std}.`)
  }
  const scale = 1 / (std * Math.SQRT2)
  return window('gaussian', M, options, ['std'], check, ({ whole, from }) => exp(neg(square(from((-(whole - 1) / 2) * scale, scale)))))
}

/** Hamming's window: 0.54 - 0.46 cos of a turn. PyTorch's `torch.signal.windows.hamming`. */
export function hamming(M: number, options: SignalWindowOptions = {}): Tensor {
  checkCount('torch.signal.windows.hamming', arguments, 2)
  return cosines('hamming', M, [0.54, 0.46], options)
}

/** Hann's window: 0.5 - 0.5 cos of a turn. PyTorch's `torch.signal.windows.hann`. */
export function hann(M: number, options: SignalWindowOptions = {}): Tensor {
  checkCount('torch.signal.windows.hann', arguments, 2)
  return cosines('hann', M, [0.5, 0.5], options)
}

/** Kaiser's window: I0(sqrt(beta^2 - x^2)) / I0(beta), x from -beta to beta. PyTorch's `torch.signal.windows.kaiser`. */
export function kaiser(M: number, options: SignalWindowOptions & { readonly beta?: number } = {}): Tensor {
  checkCount('torch.signal.windows.kaiser', arguments, 2)
  const { beta = 12 } = options
  const check = (): void => {
    if (!(beta >= 0)) throw new ArgumentError(`torch.signal.windows.kaiser: option 'beta' must not be negative, got ${beta}.`)
  }
  return window('kaiser', M, options, ['beta'], check, ({ whole, from }) => {
    if (M === 1) return one(1)
    const inside = i0(sqrt(clamp(add(neg(square(from(-beta, (2 * beta) / (whole - 1)))), beta * beta), 0)))
    return div(inside, i0(mul(one(1), beta)))
  })
}

/** Nuttall's window: four cosines. PyTorch's `torch.signal.windows.nuttall`. */
export function nuttall(M: number, options: SignalWindowOptions = {}): Tensor {
  checkCount('torch.signal.windows.nuttall', arguments, 2)
  return cosines('nuttall', M, [0.3635819, 0.4891775, 0.1365995, 0.0106411], options)
}
