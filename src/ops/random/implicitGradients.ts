// Samples of gamma distributions, and how samples of gamma and Dirichlet distributions move with their parameters: implicit reparametrization, -(dF/da) / (dF/dx) for the distribution
// function F. The slopes are PyTorch's approximations (torch._standard_gamma_grad, torch._dirichlet_grad): that of a gamma sample is within 0.2% of the exact one.
import type { Size } from '../../protocol/index.ts'
import { scalarOps } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { numbersOf, tensorFromValues } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { mul, sub } from '../pointwise/arithmetic.ts'
import { sum } from '../reduction/sum.ts'
import { refusedGradient } from '../pointwise/refusedGradient.ts'
import { checkOperand } from '../shared/shapes.ts'
import { expand } from '../view/windows.ts'

const digamma = (x: number): number => scalarOps.digamma.reference('float64', x, NaN, NaN)
const lgamma = (x: number): number => scalarOps.lgamma.reference('float64', x, NaN, NaN)

/** Sums over i and j of c[i][j] u^i v^j. */
const polynomial = (c: readonly (readonly number[])[], u: number, v: number): number =>
  c.reduceRight((total, row) => total * u + row.reduceRight((inner, one) => inner * v + one, 0), 0)

/** The shape and the dtype of `self`, which the result has. Throws unless the other operands have them too. */
function likeSelf(op: string, self: Tensor, others: Readonly<Record<string, Tensor>>): { shape: readonly Size[]; dtype: DType } {
  for (const [name, tensor] of Object.entries(others)) checkOperand(op, name, tensor, self.symSizes, self.dtype)
  return { shape: self.symSizes, dtype: self.dtype }
}

const elementsOf = (x: Tensor): readonly number[] => Array.from(x.contiguous().toTypedArray(), Number)

const NO_ONNX = 'runtimes draw other random numbers'
const NO_SECOND =
  'there is no gradient of the gradient of a sample: PyTorch has none either. Use samples without gradients (sample), or a distribution of another kind.'

// ---- the slope of a gamma distribution's sample

/** Where x is small: by the first terms of the series of the distribution function. */
function smallSlope(a: number, x: number): number {
  let [numerator, denominator] = [1, a]
  let [first, second] = [1 / a, 1 / (a * a)]
  for (let i = 1; i <= 5; i++) {
    numerator *= -x / i
    denominator++
    first += numerator / denominator
    second += numerator / (denominator * denominator)
  }
  const power = x ** a
  const density = x ** (a - 1) * Math.exp(-x)
  const slope = -((Math.log(x) - digamma(a)) * power * first - power * second) / density
  return Number.isNaN(slope) ? 0 : slope
}

/** For large a: Rice's saddle point expansion. */
function largeSlope(a: number, x: number): number {
  if (0.9 * a <= x && x <= 1.1 * a) {
    const first = 1 + 24 * a * (1 + 12 * a)
    const second = 1440 * a * a + 6 * x * (53 - 120 * x) - (65 * x * x) / a + a * (107 + 3600 * x)
    return (first * second) / (1244160 * a ** 4)
  }
  const scale = Math.sqrt(8 * a)
  const second = scale / (a - x)
  const third = (x - a - a * Math.log(x / a)) ** -1.5
  const first = Math.log(x / a) * (x < a ? second - third : second + third) - (Math.sqrt(2 / a) * (a + x)) / (a - x) ** 2
  return (-(1 + (1 + 1 / (24 * a)) / (12 * a)) * x * first) / scale
}

// A rational function of u = log(x / a) and v = log a: powers of u by rows, of v within them.
const GAMMA_ABOVE = [
  [0.16009398, -0.094634809, 0.025146376, -0.0030648343],
  [0.53487893, 0.1298071, 0.065735949, -0.0015649758],
  [0.040121004, -0.0065914022, -0.0026286047, -0.0013441777],
]
const GAMMA_BELOW = [
  [1, 0.32668115, 0.10406089, 0.0014179084],
  [0.16639465, 0.020070113, -0.0035938915, -0.00058392623],
  [0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-7],
]

function gammaSlopeOf(a: number, x: number): number {
  if (x < 0.8) return smallSlope(a, x)
  if (a > 8) return largeSlope(a, x)
  const [u, v] = [Math.log(x / a), Math.log(a)]
  return Math.exp(polynomial(GAMMA_ABOVE, u, v) / polynomial(GAMMA_BELOW, u, v))
}

/**
 * How samples of gamma distributions with the rate 1 move with their concentrations. Internal; PyTorch's `torch._standard_gamma_grad`.
 *
 * Shapes: `self`, the concentrations, and `samples` have the same shape, and so has the result.
 *
 * @throws ShapeError if the shapes differ.
 * @example torch.ops.tensorfx.gammaSlope(torch.tensor([1]), torch.tensor([2])).item().toFixed(2) // '1.63'
 */
export const gammaSlope: Op['gammaSlope'] = defineOp({
  schema: 'gamma_slope(Tensor self, Tensor samples) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  halvesInFloat32: true,
  vmap: { leading: ['self', 'samples'] },
  onnx: { none: NO_ONNX },
  autocast: 'as is',
  meta: (self, samples) => likeSelf('gammaSlope', self, { samples }),
  kernel: (self, samples) => {
    const { shape, dtype } = numbersOf(likeSelf('gammaSlope', self, { samples }))
    const x = elementsOf(samples)
    return tensorFromValues(
      elementsOf(self).map((a, i) => gammaSlopeOf(a, x[i] ?? NaN)),
      shape,
      dtype,
    )
  },
  derivative: ([g]) => [refusedGradient(g, NO_SECOND), refusedGradient(g, NO_SECOND)],
})

// ---- samples of gamma distributions

/** The x with P(a, x) = p for a of at least 1: a first guess by Wilson and Hilferty, and Halley's steps. */
function gammaQuantile(a: number, p: number): number {
  const z = scalarOps.ndtri.reference('float64', p, NaN, NaN)
  let x = Math.max(a * (1 - 1 / (9 * a) + z / (3 * Math.sqrt(a))) ** 3, 1e-3 * p)
  for (let i = 0; i < 12; i++) {
    const density = Math.exp((a - 1) * Math.log(x) - x - lgamma(a))
    const step = (scalarOps.igamma.reference('float64', a, x, NaN) - p) / density
    const next = x - step / (1 - Math.min(1, step * ((a - 1) / x - 1)) / 2)
    // A step below 0 goes half of the way.
    const moved = next > 0 ? next : x / 2
    if (Math.abs(moved - x) <= 1e-12 * x) return moved
    x = moved
  }
  return x
}

/**
 * One sample of a gamma distribution with the rate 1. Marsaglia and Tsang's proposal is accepted in most cases; otherwise another number is mapped by the inverse of the distribution
 * function, so that a sample needs a fixed count of random numbers. For concentrations below 1, the sample for one more is made smaller by a power of a uniform number.
 */
function gammaSampleOf(concentration: number, normal: number, accept: number, instead: number, power: number): number {
  const a = concentration < 1 ? concentration + 1 : concentration
  const d = a - 1 / 3
  const v = (1 + normal / Math.sqrt(9 * d)) ** 3
  const isAccepted = v > 0 && Math.log(1 - accept) < (normal * normal) / 2 + d - d * v + d * Math.log(v)
  // The middle of the 2^-24 that a uniform number stands for is never 0.
  const sample = isAccepted ? d * v : gammaQuantile(a, instead + 2 ** -25)
  return concentration < 1 ? sample * (1 - power) ** (1 / concentration) : sample
}

/** The smallest normal number of float32 and float64: what underflows is this, since 0 has no density. */
const TINY: Readonly<Record<string, number>> = { float32: 2 ** -126, float64: 2 ** -1022 }

/**
 * Samples of gamma distributions with the rate 1, from normal numbers and three uniform ones in [0, 1) for each. Internal; PyTorch's `torch._standard_gamma`.
 *
 * Shapes: `self`, the concentrations, and the numbers have the same shape, and so has the result.
 *
 * @throws ShapeError if the shapes differ.
 * @example torch.ops.tensorfx.gammaSamples(torch.ones([1]), ...Array.from({ length: 4 }, () => torch.full([1], 0.5))).item().toFixed(3) // '1.164'
 */
export const gammaSamples: Op['gammaSamples'] = defineOp({
  schema: 'gamma_samples(Tensor self, Tensor normal, Tensor accept, Tensor instead, Tensor power) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  halvesInFloat32: true,
  vmap: { leading: ['self', 'normal', 'accept', 'instead', 'power'] },
  onnx: { none: NO_ONNX },
  autocast: 'as is',
  meta: (self, normal, accept, instead, power) => likeSelf('gammaSamples', self, { normal, accept, instead, power }),
  kernel: (self, ...given) => {
    const { shape, dtype } = numbersOf(likeSelf('gammaSamples', self, { normal: given[0], accept: given[1], instead: given[2], power: given[3] }))
    const [normal = [], accept = [], instead = [], power = []] = given.map(elementsOf)
    const least = TINY[dtype] ?? 0
    return tensorFromValues(
      elementsOf(self).map((a, i) => Math.max(least, gammaSampleOf(a, normal[i] ?? NaN, accept[i] ?? NaN, instead[i] ?? NaN, power[i] ?? NaN))),
      shape,
      dtype,
    )
  },
  derivative: ([g], { args: [self], outputs: [samples] }) => [mul(g, gammaSlope(self, samples)), null, null, null, null],
})

// ---- the slope of a Dirichlet distribution's sample: of a beta distribution's with the parameters a and b = total - a

/** Where x is near 0: by the first terms of the series of the distribution function. */
function slopeNear0(x: number, a: number, b: number): number {
  const factor = digamma(a) - digamma(a + b) - Math.log(x)
  let [numerator, series] = [1, (factor + 1 / a) / a]
  for (let i = 1; i <= 10; i++) {
    numerator *= ((i - b) * x) / i
    series += (numerator / (a + i)) * (factor + 1 / (a + i))
  }
  const slope = x * (1 - x) ** -b * series
  return Number.isNaN(slope) ? 0 : slope
}

/** Where x is near 1: the same for 1 - x, with respect to the other parameter. */
function slopeNear1(x: number, a: number, b: number): number {
  const factor = digamma(a + b) - digamma(a)
  let [numerator, product, derivative, series] = [1, 1, 0, factor / b]
  for (let i = 1; i <= 8; i++) {
    numerator *= (x - 1) / i
    derivative = derivative * (a - i) + product
    product *= a - i
    series += (numerator / (b + i)) * (derivative + factor * product)
  }
  const slope = x ** (1 - a) * series
  return Number.isNaN(slope) ? 0 : slope
}

const stirling = (a: number): number => 1 + 1 / (12 * a) + 1 / (288 * a * a)

/** For large parameters: Rice's saddle point expansion. */
function slopeInside(x: number, a: number, b: number): number {
  const total = a + b
  const mean = a / total
  if (Math.abs(x - mean) <= (0.1 * Math.sqrt((a * b) / (total + 1))) / total) {
    // At the mean the expansion is 0 / 0. A polynomial in a.
    const terms = [
      47 * x * b ** 4,
      (43 + 20 * (16 + 27 * b) * x) * b ** 3,
      3 * (59 + 180 * b - 90 * x) * b * b,
      (453 + 1620 * b * (1 - x) - 455 * x) * b,
      8 * (1 - x) * (135 * b - 11),
    ]
    const above = ((1 + 12 * a) * (1 + 12 * b)) / (total * total)
    return ((above / (1 - x)) * polynomial([terms], 0, a)) / (12960 * a ** 3 * b * b * (1 + 12 * total))
  }
  const distance = a * (x - 1) + b * x
  const first = (2 * a * a * (x - 1) + a * b * (x - 1) - x * b * b) / (Math.sqrt((2 * a) / b) * total ** 1.5 * distance * distance)
  const second = Math.log(a / (total * x)) / 2
  const third = Math.sqrt((8 * a * b) / total) / distance
  const fourth = (b * Math.log(b / (total * (1 - x))) + a * Math.log(a / (total * x))) ** -1.5
  const sums = first + second * (third + (x < mean ? fourth : -fourth))
  return ((stirling(a) * stirling(b)) / stirling(total)) * (-x / Math.sqrt((2 * a * b) / total)) * sums
}

// Rational functions of u = log x, v = log a - u and w = log total - v: by powers of u, then of v, then of w.
const BETA_ABOVE = [
  [
    [1.003668233, -0.01061107488, -0.0657888334, 0.01201642863],
    [0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033],
    [-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013],
  ],
  [
    [0.221950385, -0.3187676331, 0.01799915743, 0.01074823814],
    [-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057],
    [0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-5],
  ],
  [
    [-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565],
    [0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181],
    [0.005900514878, -0.001936558688, -9.495446725e-6, 5.385558597e-5],
  ],
]
const BETA_BELOW = [
  [
    [1, -0.02924021934, -0.04438342661, 0.007285809825],
    [0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521],
    [-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149],
  ],
  [
    [0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273],
    [0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956],
    [-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-5],
  ],
  [
    [0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-5],
    [0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-5],
    [-0.0003477407336, 6.959756487e-5, 1.097287507e-5, -1.650964693e-6],
  ],
]

function betaSlopeOf(x: number, a: number, total: number): number {
  const b = total - a
  const boundary = total * x * (1 - x)
  if (x <= 0.5 && boundary < 2.5) return slopeNear0(x, a, b)
  if (x >= 0.5 && boundary < 0.75) return slopeNear1(x, a, b)
  if (a > 6 && b > 6) return slopeInside(x, a, b)
  const u = Math.log(x)
  const v = Math.log(a) - u
  const w = Math.log(total) - v
  const value = (c: readonly (readonly (readonly number[])[])[]): number => c.reduceRight((sums, rows) => sums * u + polynomial(rows, v, w), 0)
  return ((value(BETA_ABOVE) / value(BETA_BELOW)) * x * (digamma(total) - digamma(a))) / b
}

/**
 * How samples of beta distributions move with their first parameters; what the gradient of a Dirichlet distribution's samples is made of. Internal; PyTorch's `torch._dirichlet_grad`.
 *
 * Shapes: `self`, the samples, the first parameters `concentration`, and `total`, the sums of both parameters, have the same shape, and so has the result.
 *
 * @throws ShapeError if the shapes differ.
 * @example torch.ops.tensorfx.betaSlope(torch.tensor([0.5]), torch.tensor([1]), torch.tensor([3])).item().toFixed(2) // '0.54'
 */
export const betaSlope: Op['betaSlope'] = defineOp({
  schema: 'beta_slope(Tensor self, Tensor concentration, Tensor total) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  halvesInFloat32: true,
  vmap: { leading: ['self', 'concentration', 'total'] },
  onnx: { none: NO_ONNX },
  autocast: 'as is',
  meta: (self, concentration, total) => likeSelf('betaSlope', self, { concentration, total }),
  kernel: (self, concentration, total) => {
    const { shape, dtype } = numbersOf(likeSelf('betaSlope', self, { concentration, total }))
    const [a, totals] = [elementsOf(concentration), elementsOf(total)]
    return tensorFromValues(
      elementsOf(self).map((x, i) => betaSlopeOf(x, a[i] ?? NaN, totals[i] ?? NaN)),
      shape,
      dtype,
    )
  },
  derivative: ([g]) => [refusedGradient(g, NO_SECOND), refusedGradient(g, NO_SECOND), refusedGradient(g, NO_SECOND)],
})

/**
 * Samples of Dirichlet distributions, from those of gamma distributions with the same concentrations. Internal; PyTorch's `torch._sample_dirichlet`.
 *
 * Shapes: `self`, the concentrations, and `gammas` have the same shape, and so has the result.
 *
 * @throws ShapeError if the shapes differ.
 * @example torch.ops.tensorfx.dirichletSamples(torch.ones([2]), torch.tensor([1, 3])).toArray() // [0.25, 0.75]
 */
export const dirichletSamples: Op['dirichletSamples'] = defineOp({
  schema: 'dirichlet_samples(Tensor self, Tensor gammas) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  halvesInFloat32: true,
  vmap: { leading: ['self', 'gammas'] },
  onnx: { none: NO_ONNX },
  autocast: 'as is',
  meta: (self, gammas) => likeSelf('dirichletSamples', self, { gammas }),
  kernel: (self, gammas) => {
    const { shape, dtype } = numbersOf(likeSelf('dirichletSamples', self, { gammas }))
    const numbers = elementsOf(gammas)
    const size = shape.at(-1) ?? 1
    const least = TINY[dtype] ?? 0
    const sums = Array.from({ length: numbers.length / Math.max(1, size) }, (_, row) =>
      numbers.slice(row * size, (row + 1) * size).reduce((total, one) => total + one, 0),
    )
    return tensorFromValues(
      numbers.map((one, i) => Math.max(least, one / (sums[Math.floor(i / size)] ?? 1))),
      shape,
      dtype,
    )
  },
  derivative: ([g], { args: [self], outputs: [samples] }) => {
    const slope = betaSlope(samples, self, expand(sum(self, -1, true), self.symSizes))
    return [mul(slope, sub(g, sum(mul(samples, g), -1, true))), null]
  },
})
