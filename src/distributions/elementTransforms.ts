// Transforms of numbers, element by element.
import { UnsupportedError } from '../errors/index.ts'
import { equal, softplus } from '../ops/index.ts'
import { Tensor, broadcastShapes, finfo } from '../tensor/index.ts'
import { interval, independent, positive, real, unitInterval } from './constraints.ts'
import type { Constraint } from './constraints.ts'
import { sumOfLast } from './distribution.ts'
import type { Distribution, Parameter } from './distribution.ts'
import { Transform } from './transform.ts'

const isSame = (a: Parameter, b: Parameter): boolean => (a instanceof Tensor && b instanceof Tensor ? a === b || equal(a, b) : a === b)

/** e^x. PyTorch's `ExpTransform`. */
export class ExpTransform extends Transform {
  override readonly domain: Constraint = real
  override readonly codomain: Constraint = positive

  override get sign(): number {
    return 1
  }

  override forward(x: Tensor): Tensor {
    return x.exp()
  }

  override inverse(y: Tensor): Tensor {
    return y.log()
  }

  override logAbsDetJacobian(x: Tensor): Tensor {
    return x
  }
}

/** loc + scale x; with `eventDim`, of events of that many dimensions. PyTorch's `AffineTransform`. */
export class AffineTransform extends Transform {
  readonly loc: Parameter
  readonly scale: Parameter
  readonly eventDim: number

  constructor(loc: Parameter, scale: Parameter, { eventDim = 0 }: { readonly eventDim?: number } = {}) {
    super()
    this.loc = loc
    this.scale = scale
    this.eventDim = eventDim
  }

  override get domain(): Constraint {
    return this.eventDim === 0 ? real : independent(real, this.eventDim)
  }

  override get codomain(): Constraint {
    return this.domain
  }

  override get sign(): number | Tensor {
    return typeof this.scale === 'number' ? Math.sign(this.scale) : this.scale.sign()
  }

  override forward(x: Tensor): Tensor {
    return x.mul(this.scale).add(this.loc)
  }

  override inverse(y: Tensor): Tensor {
    return y.sub(this.loc).div(this.scale)
  }

  override logAbsDetJacobian(x: Tensor): Tensor {
    const { scale } = this
    const log =
      typeof scale === 'number'
        ? x
            .detach()
            .mul(0)
            .add(Math.log(Math.abs(scale)))
        : scale.abs().log().expandAs(x)
    return sumOfLast(log, this.eventDim)
  }

  override equals(other: Transform): boolean {
    return other instanceof AffineTransform && isSame(this.loc, other.loc) && isSame(this.scale, other.scale) && this.eventDim === other.eventDim
  }
}

/** x^exponent, of positive numbers. PyTorch's `PowerTransform`. */
export class PowerTransform extends Transform {
  override readonly domain: Constraint = positive
  override readonly codomain: Constraint = positive
  readonly exponent: Parameter

  constructor(exponent: Parameter) {
    super()
    this.exponent = exponent
  }

  override get sign(): number | Tensor {
    return typeof this.exponent === 'number' ? Math.sign(this.exponent) : this.exponent.sign()
  }

  override forward(x: Tensor): Tensor {
    return x.pow(this.exponent)
  }

  override inverse(y: Tensor): Tensor {
    return y.pow(typeof this.exponent === 'number' ? 1 / this.exponent : this.exponent.reciprocal())
  }

  override logAbsDetJacobian(x: Tensor, y: Tensor): Tensor {
    return y.mul(this.exponent).div(x).abs().log()
  }

  override forwardShape(shape: readonly number[]): readonly number[] {
    return typeof this.exponent === 'number' ? shape : broadcast(shape, this.exponent)
  }

  override inverseShape(shape: readonly number[]): readonly number[] {
    return this.forwardShape(shape)
  }

  override equals(other: Transform): boolean {
    return other instanceof PowerTransform && isSame(this.exponent, other.exponent)
  }
}

const broadcast = (shape: readonly number[], { shape: other }: Tensor): readonly number[] => broadcastShapes('PowerTransform', shape, other)

/** 1 / (1 + e^-x), away from 0 and 1 by rounding. PyTorch's `SigmoidTransform`. */
export class SigmoidTransform extends Transform {
  override readonly domain: Constraint = real
  override readonly codomain: Constraint = unitInterval

  override get sign(): number {
    return 1
  }

  override forward(x: Tensor): Tensor {
    return clippedSigmoid(x)
  }

  override inverse(y: Tensor): Tensor {
    const { tiny, eps } = finfo(y.dtype)
    const inside = y.clamp(tiny, 1 - eps)
    return inside.log().sub(inside.neg().log1p())
  }

  override logAbsDetJacobian(x: Tensor): Tensor {
    return softplus(x.neg()).neg().sub(softplus(x))
  }
}

/** The sigmoid of numbers, never 0 or 1. */
export const clippedSigmoid = (x: Tensor): Tensor => x.sigmoid().clamp(finfo(x.dtype).tiny, 1 - finfo(x.dtype).eps)

/** tanh x. PyTorch's `TanhTransform`. */
export class TanhTransform extends Transform {
  override readonly domain: Constraint = real
  override readonly codomain: Constraint = interval(-1, 1)

  override get sign(): number {
    return 1
  }

  override forward(x: Tensor): Tensor {
    return x.tanh()
  }

  override inverse(y: Tensor): Tensor {
    return y.atanh()
  }

  override logAbsDetJacobian(x: Tensor): Tensor {
    // log(1 - tanh² x), which keeps its digits where tanh x is near 1.
    return x
      .neg()
      .add(Math.LN2)
      .sub(softplus(x.mul(-2)))
      .mul(2)
  }
}

/** log(1 + e^x). PyTorch's `SoftplusTransform`. */
export class SoftplusTransform extends Transform {
  override readonly domain: Constraint = real
  override readonly codomain: Constraint = positive

  override get sign(): number {
    return 1
  }

  override forward(x: Tensor): Tensor {
    return softplus(x)
  }

  override inverse(y: Tensor): Tensor {
    return y.neg().expm1().neg().log().add(y)
  }

  override logAbsDetJacobian(x: Tensor): Tensor {
    return softplus(x.neg()).neg()
  }
}

/** |x|, whose inverse gives the number that is not negative. PyTorch's `AbsTransform`. */
export class AbsTransform extends Transform {
  override readonly domain: Constraint = real
  override readonly codomain: Constraint = positive
  override get bijective(): boolean {
    return false
  }

  override forward(x: Tensor): Tensor {
    return x.abs()
  }

  override inverse(y: Tensor): Tensor {
    return y
  }

  override logAbsDetJacobian(): Tensor {
    throw new UnsupportedError('AbsTransform.logAbsDetJacobian: two numbers have the same absolute value, so that there is none.')
  }
}

/** The distribution function of a distribution of numbers. PyTorch's `CumulativeDistributionTransform`. */
export class CumulativeDistributionTransform extends Transform {
  override readonly codomain: Constraint = unitInterval
  readonly distribution: Distribution

  constructor(distribution: Distribution) {
    super()
    this.distribution = distribution
  }

  override get domain(): Constraint {
    return this.distribution.support
  }

  override get sign(): number {
    return 1
  }

  override forward(x: Tensor): Tensor {
    return this.distribution.cdf(x)
  }

  override inverse(y: Tensor): Tensor {
    return this.distribution.icdf(y)
  }

  override logAbsDetJacobian(x: Tensor): Tensor {
    return this.distribution.logProb(x)
  }

  override equals(other: Transform): boolean {
    return other instanceof CumulativeDistributionTransform && other.distribution === this.distribution
  }
}
