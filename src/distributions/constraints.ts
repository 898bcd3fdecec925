// Constraints: which values a parameter of a distribution may have, and which its samples have. PyTorch's torch.distributions.constraints.
import { ArgumentError } from '../errors/index.ts'
import { choleskyEx, concat, stack as stacked } from '../ops/index.ts'
import { valueText } from '../protocol/index.ts'
import { finfo, formatShape } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'

/** Which values are allowed. */
export interface Constraint {
  /** How many of the last dimensions make one value: 0 for numbers, 1 for vectors, 2 for matrices. */
  readonly eventDim: number
  /** Whether the values are whole numbers. */
  readonly isDiscrete: boolean
  /** For each value whether it is allowed. Shape: that of `value` without the last `eventDim` dimensions. The result is bool. */
  check(value: Tensor): Tensor
  toString(): string
}

type Bound = number | Tensor

/** Whether all of the last `count` dimensions hold. */
function allOfLast(holds: Tensor, count: number): Tensor {
  let result = holds
  for (let i = 0; i < count; i++) result = result.all(-1)
  return result
}

class Rule implements Constraint {
  readonly eventDim: number
  readonly isDiscrete: boolean
  /** A function where it has bounds, whose tensors are read for the text alone. */
  readonly #text: string | (() => string)
  readonly #check: (value: Tensor) => Tensor

  constructor(text: string | (() => string), check: (value: Tensor) => Tensor, { eventDim = 0, isDiscrete = false } = {}) {
    this.#text = text
    this.#check = check
    this.eventDim = eventDim
    this.isDiscrete = isDiscrete
  }

  check(value: Tensor): Tensor {
    return this.#check(value)
  }

  toString(): string {
    return typeof this.#text === 'string' ? this.#text : this.#text()
  }
}

const boundText = (bound: Bound): string =>
  typeof bound === 'number' ? String(bound) : bound.ndim === 0 ? String(bound.item()) : `tensor of shape ${formatShape(bound.shape)}`

const isWhole = (value: Tensor): Tensor => value.remainder(1).eq(0)
const both = (a: Tensor, b: Tensor): Tensor => a.logicalAnd(b)

/** All numbers but NaN. */
export const real: Constraint = new Rule('Real()', (x) => x.eq(x))
/** 0 and 1. */
export const boolean: Constraint = new Rule('Boolean()', (x) => x.eq(0).logicalOr(x.eq(1)), { isDiscrete: true })
/** Numbers above a bound. */
export const greaterThan = (lower: Bound): Constraint =>
  new Rule(
    () => `GreaterThan(lowerBound=${boundText(lower)})`,
    (x) => x.gt(lower),
  )
/** Numbers of at least a bound. */
export const greaterThanEq = (lower: Bound): Constraint =>
  new Rule(
    () => `GreaterThanEq(lowerBound=${boundText(lower)})`,
    (x) => x.ge(lower),
  )
/** Numbers below a bound. */
export const lessThan = (upper: Bound): Constraint =>
  new Rule(
    () => `LessThan(upperBound=${boundText(upper)})`,
    (x) => x.lt(upper),
  )
/** Numbers between two bounds, which are allowed too. */
export const interval = (lower: Bound, upper: Bound): Constraint =>
  new Rule(
    () => `Interval(lowerBound=${boundText(lower)}, upperBound=${boundText(upper)})`,
    (x) => both(x.ge(lower), x.le(upper)),
  )
/** Numbers from a bound on, below another. */
export const halfOpenInterval = (lower: Bound, upper: Bound): Constraint =>
  new Rule(
    () => `HalfOpenInterval(lowerBound=${boundText(lower)}, upperBound=${boundText(upper)})`,
    (x) => both(x.ge(lower), x.lt(upper)),
  )
/** Whole numbers between two bounds, which are allowed too. */
export const integerInterval = (lower: Bound, upper: Bound): Constraint =>
  new Rule(
    () => `IntegerInterval(lowerBound=${boundText(lower)}, upperBound=${boundText(upper)})`,
    (x) => both(isWhole(x), both(x.ge(lower), x.le(upper))),
    { isDiscrete: true },
  )
/** Whole numbers of at least a bound. PyTorch's name for the text is IntegerGreaterThan. */
export const integerGreaterThanEq = (lower: Bound): Constraint =>
  new Rule(
    () => `IntegerGreaterThan(lowerBound=${boundText(lower)})`,
    (x) => both(isWhole(x), x.ge(lower)),
    { isDiscrete: true },
  )

export const positive: Constraint = greaterThan(0)
export const nonnegative: Constraint = greaterThanEq(0)
export const unitInterval: Constraint = interval(0, 1)
export const nonnegativeInteger: Constraint = integerGreaterThanEq(0)
export const positiveInteger: Constraint = integerGreaterThanEq(1)

/** Vectors of numbers of at least 0 that add up to 1. */
export const simplex: Constraint = new Rule('Simplex()', (x) => both(x.ge(0).all(-1), x.sum(-1).sub(1).abs().lt(1e-6)), { eventDim: 1 })

/** Vectors of zeros and one 1. */
export const oneHot: Constraint = new Rule('OneHot()', (x) => both(boolean.check(x).all(-1), x.sum(-1).eq(1)), { eventDim: 1, isDiscrete: true })

/** Lower triangular matrices with positive numbers on the diagonal. */
export const lowerCholesky: Constraint = new Rule('LowerCholesky()', (x) => both(allOfLast(x.tril().eq(x), 2), x.diagonal(0, -2, -1).gt(0).all(-1)), {
  eventDim: 2,
})

/** Lower triangular matrices with positive numbers on the diagonal and rows of length 1: factors of matrices of correlations. */
export const corrCholesky: Constraint = new Rule(
  'CorrCholesky()',
  (x) => {
    const tolerance = finfo(x.dtype).eps * (x.shape.at(-1) ?? 1) * 10
    const lengths = x.square().sum(-1).sqrt()
    return both(lengths.sub(1).abs().lt(tolerance).all(-1), lowerCholesky.check(x))
  },
  { eventDim: 2 },
)

/** Symmetric matrices with positive eigenvalues. */
export const positiveDefinite: Constraint = new Rule(
  'PositiveDefinite()',
  (x) => {
    const mirrored = x.transpose(-2, -1)
    const isSymmetric = allOfLast(x.sub(mirrored).abs().le(mirrored.abs().mul(1e-5).add(1e-6)), 2)
    // The number of the first pivot that is not positive; 0 if all are.
    const [, failed] = choleskyEx(x)
    return both(isSymmetric, failed.eq(0))
  },
  { eventDim: 2 },
)

/** The values of `base`, the last `count` dimensions as one. PyTorch's `constraints.independent`. */
export const independent = (base: Constraint, count: number): Constraint =>
  new Rule(
    () => `IndependentConstraint(${String(base)}, ${count})`,
    (x) => allOfLast(base.check(x), count),
    {
      eventDim: base.eventDim + count,
      isDiscrete: base.isDiscrete,
    },
  )

export const realVector: Constraint = independent(real, 1)

/** The parts of a tensor along `dim`, each with a constraint of its own and the sizes `lengths`. PyTorch's `constraints.cat`. */
export function cat(parts: readonly Constraint[], dim: number, lengths: readonly number[]): Constraint {
  let from = 0
  const starts = lengths.map((length) => (from += length) - length)
  const check = (x: Tensor): Tensor =>
    concat(
      parts.map((part, i) => part.check(x.narrow(dim, starts[i] ?? 0, lengths[i] ?? 0))),
      dim,
    )
  return new Rule('Cat()', check, shared(parts))
}

/** The slices of a tensor along `dim`, each with a constraint of its own. PyTorch's `constraints.stack`. */
export function stack(parts: readonly Constraint[], dim: number): Constraint {
  const check = (x: Tensor): Tensor => {
    if (x.shape.at(dim) !== parts.length) throw new ArgumentError(`Stack(): dimension ${dim} must have ${parts.length} slices, got ${valueText(x)}.`)
    return stacked(
      parts.map((part, i) => part.check(x.select(dim, i))),
      dim,
    )
  }
  const { eventDim, isDiscrete } = shared(parts)
  return new Rule('Stack()', check, { eventDim: dim + eventDim < 0 ? eventDim + 1 : eventDim, isDiscrete })
}

const shared = (parts: readonly Constraint[]): { readonly eventDim: number; readonly isDiscrete: boolean } => ({
  eventDim: Math.max(0, ...parts.map(({ eventDim }) => eventDim)),
  isDiscrete: parts.some(({ isDiscrete }) => isDiscrete),
})
