// Transform: an invertible function of tensors, with the logarithm of its derivative. PyTorch's torch.distributions.transforms.
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import { checkArray, valueText } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { independent } from './constraints.ts'
import type { Constraint } from './constraints.ts'
import { sumOfLast } from './distribution.ts'

/**
 * A function of tensors that has an inverse, elementwise or of the last dimensions: {@link forward}, {@link inverse} and {@link logAbsDetJacobian}, by which densities are transformed.
 * PyTorch's `Transform`. A subclass says its `domain` and `codomain`.
 *
 * @example new ExpTransform().inv.forward(torch.tensor(1)).item() // 0
 */
export abstract class Transform {
  /** What it maps. */
  abstract readonly domain: Constraint
  /** What it maps to. */
  abstract readonly codomain: Constraint
  /** Whether each value has one inverse. */
  get bijective(): boolean {
    return true
  }

  /** The function. Shape: see {@link forwardShape}. */
  abstract forward(x: Tensor): Tensor
  /** Its inverse. */
  abstract inverse(y: Tensor): Tensor
  /** log |dy/dx| at `x`, whose image is `y`. Shape: that of `x` without the dimensions of an event of the domain. */
  abstract logAbsDetJacobian(x: Tensor, y: Tensor): Tensor

  /** 1 if larger x give larger y, -1 if they give smaller ones. Throws UnsupportedError for transforms of vectors, and those that are not monotone. */
  get sign(): number | Tensor {
    throw new UnsupportedError(`${this.constructor.name}.sign: it is not monotone, element by element.`)
  }

  /** The inverse as a transform. */
  get inv(): Transform {
    return new InverseTransform(this)
  }

  forwardShape(shape: readonly number[]): readonly number[] {
    return shape
  }

  inverseShape(shape: readonly number[]): readonly number[] {
    return shape
  }

  /** Whether another transform is the same function. */
  equals(other: Transform): boolean {
    return other.constructor === this.constructor
  }

  toString(): string {
    return `${this.constructor.name}()`
  }
}

/** The inverse of a transform; what `inv` gives. */
export class InverseTransform extends Transform {
  readonly #of: Transform

  constructor(of: Transform) {
    super()
    this.#of = of
  }

  override get domain(): Constraint {
    return this.#of.codomain
  }

  override get codomain(): Constraint {
    return this.#of.domain
  }

  override get bijective(): boolean {
    return this.#of.bijective
  }

  override get sign(): number | Tensor {
    return this.#of.sign
  }

  override get inv(): Transform {
    return this.#of
  }

  override forward(x: Tensor): Tensor {
    return this.#of.inverse(x)
  }

  override inverse(y: Tensor): Tensor {
    return this.#of.forward(y)
  }

  override logAbsDetJacobian(x: Tensor, y: Tensor): Tensor {
    return this.#of.logAbsDetJacobian(y, x).neg()
  }

  override forwardShape(shape: readonly number[]): readonly number[] {
    return this.#of.inverseShape(shape)
  }

  override inverseShape(shape: readonly number[]): readonly number[] {
    return this.#of.forwardShape(shape)
  }

  override equals(other: Transform): boolean {
    return other instanceof InverseTransform && this.#of.equals(other.#of)
  }

  override toString(): string {
    return `InverseTransform(${String(this.#of)})`
  }
}

/** A constraint of events of at least `eventDim` dimensions. */
export const widened = (base: Constraint, eventDim: number): Constraint =>
  eventDim > base.eventDim ? independent(base, eventDim - base.eventDim) : base

/** Transforms as an argument. Throws ArgumentError for anything else. */
export function checkTransforms(where: string, name: string, transforms: readonly Transform[]): void {
  checkArray(where, name, transforms)
  for (const [i, transform] of transforms.entries())
    if (!(transform instanceof Transform))
      throw new ArgumentError(`${where}: argument '${name}[${i}]' must be a Transform, got ${valueText(transform)}.`)
}

/**
 * Several transforms, the first one applied first. PyTorch's `ComposeTransform`.
 *
 * @example new ComposeTransform([new AffineTransform(0, 2), new ExpTransform()]).forward(torch.tensor(0)).item() // 1
 */
export class ComposeTransform extends Transform {
  readonly parts: readonly Transform[]

  constructor(parts: readonly Transform[]) {
    super()
    checkTransforms('ComposeTransform', 'parts', parts)
    if (parts.length === 0) throw new ArgumentError("ComposeTransform: argument 'parts' must have at least one transform, got none.")
    this.parts = [...parts]
  }

  override get domain(): Constraint {
    const needed = this.parts.reduceRight(
      (dim, { domain, codomain }) => Math.max(dim + domain.eventDim - codomain.eventDim, domain.eventDim),
      this.#last.codomain.eventDim,
    )
    return widened(this.#first.domain, needed)
  }

  override get codomain(): Constraint {
    const given = this.parts.reduce(
      (dim, { domain, codomain }) => Math.max(dim + codomain.eventDim - domain.eventDim, codomain.eventDim),
      this.#first.domain.eventDim,
    )
    return widened(this.#last.codomain, given)
  }

  get #first(): Transform {
    return this.#at(0)
  }

  get #last(): Transform {
    return this.#at(this.parts.length - 1)
  }

  #at(i: number): Transform {
    const part = this.parts[i]
    if (part === undefined) throw new ArgumentError(`ComposeTransform: there is no part ${i}.`)
    return part
  }

  override get bijective(): boolean {
    return this.parts.every(({ bijective }) => bijective)
  }

  override get sign(): number | Tensor {
    return this.parts.reduce<number | Tensor>((product, { sign }) => times(product, sign), 1)
  }

  override get inv(): Transform {
    return new ComposeTransform(this.parts.map(({ inv }) => inv).toReversed())
  }

  override forward(x: Tensor): Tensor {
    return this.parts.reduce((value, part) => part.forward(value), x)
  }

  override inverse(y: Tensor): Tensor {
    return this.parts.reduceRight((value, part) => part.inverse(value), y)
  }

  override logAbsDetJacobian(x: Tensor, y: Tensor): Tensor {
    let [at, eventDim] = [x, this.domain.eventDim]
    let total: Tensor | null = null
    for (const [i, part] of this.parts.entries()) {
      const next = i === this.parts.length - 1 ? y : part.forward(at)
      const term = sumOfLast(part.logAbsDetJacobian(at, next), eventDim - part.domain.eventDim)
      total = total === null ? term : total.add(term)
      eventDim += part.codomain.eventDim - part.domain.eventDim
      at = next
    }
    return total ?? x.mul(0)
  }

  override forwardShape(shape: readonly number[]): readonly number[] {
    return this.parts.reduce((value, part) => part.forwardShape(value), shape)
  }

  override inverseShape(shape: readonly number[]): readonly number[] {
    return this.parts.reduceRight((value, part) => part.inverseShape(value), shape)
  }

  override equals(other: Transform): boolean {
    return other instanceof ComposeTransform && sameTransforms(this.parts, other.parts)
  }

  override toString(): string {
    return `ComposeTransform(${this.parts.map(String).join(', ')})`
  }
}

/** Whether two lists have the same transforms. */
export const sameTransforms = (a: readonly Transform[], b: readonly Transform[]): boolean =>
  a.length === b.length && a.every((one, i) => b[i] !== undefined && one.equals(b[i]))

const times = (a: number | Tensor, b: number | Tensor): number | Tensor =>
  typeof a === 'number' ? (typeof b === 'number' ? a * b : b.mul(a)) : a.mul(b)

/**
 * A transform whose events have `count` dimensions more: the logarithms of its derivatives are added up over them. PyTorch's `IndependentTransform`.
 *
 * @example new IndependentTransform(new ExpTransform(), 1).logAbsDetJacobian(torch.ones([3]), torch.ones([3])).item() // 3
 */
export class IndependentTransform extends Transform {
  readonly base: Transform
  readonly count: number

  constructor(base: Transform, count: number) {
    super()
    checkTransforms('IndependentTransform', 'base', [base])
    this.base = base
    this.count = count
  }

  override get domain(): Constraint {
    return independent(this.base.domain, this.count)
  }

  override get codomain(): Constraint {
    return independent(this.base.codomain, this.count)
  }

  override get bijective(): boolean {
    return this.base.bijective
  }

  override get sign(): number | Tensor {
    return this.base.sign
  }

  override forward(x: Tensor): Tensor {
    return this.base.forward(x)
  }

  override inverse(y: Tensor): Tensor {
    return this.base.inverse(y)
  }

  override logAbsDetJacobian(x: Tensor, y: Tensor): Tensor {
    return sumOfLast(this.base.logAbsDetJacobian(x, y), this.count)
  }

  override forwardShape(shape: readonly number[]): readonly number[] {
    return this.base.forwardShape(shape)
  }

  override inverseShape(shape: readonly number[]): readonly number[] {
    return this.base.inverseShape(shape)
  }

  override equals(other: Transform): boolean {
    return other instanceof IndependentTransform && other.count === this.count && this.base.equals(other.base)
  }

  override toString(): string {
    return `IndependentTransform(${String(this.base)}, ${this.count})`
  }
}
