// Transforms of vectors and matrices, and of parts of tensors.
import { ArgumentError, ShapeError, UnsupportedError } from '../errors/index.ts'
import { concat, eye, logsigmoid, pad, softplus, stack as stacked, tensor, tril, zeros } from '../ops/index.ts'
import { finfo, formatShape, numelOf } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { cat, corrCholesky, independent, lowerCholesky, real, realVector, simplex, stack } from './constraints.ts'
import type { Constraint } from './constraints.ts'
import { clippedSigmoid } from './elementTransforms.ts'
import { Transform, checkTransforms, sameTransforms } from './transform.ts'

const lastOf = (shape: readonly number[]): number => shape.at(-1) ?? 1

/** The shape with another last size. */
const resized = (shape: readonly number[], by: number): readonly number[] => [...shape.slice(0, -1), lastOf(shape) + by]

/** e^x over its sum along the last dimension; its inverse is one of many. PyTorch's `SoftmaxTransform`. */
export class SoftmaxTransform extends Transform {
  override readonly domain: Constraint = realVector
  override readonly codomain: Constraint = simplex
  override get bijective(): boolean {
    return false
  }

  override forward(x: Tensor): Tensor {
    return x.softmax(-1)
  }

  override inverse(y: Tensor): Tensor {
    return y.log()
  }

  override logAbsDetJacobian(): Tensor {
    throw new UnsupportedError(
      'SoftmaxTransform.logAbsDetJacobian: many vectors have the same softmax, so that there is none; use StickBreakingTransform.',
    )
  }
}

/** Vectors of K numbers to K + 1 positive ones that add up to 1, each a part of what those before it leave. PyTorch's `StickBreakingTransform`. */
export class StickBreakingTransform extends Transform {
  override readonly domain: Constraint = realVector
  override readonly codomain: Constraint = simplex

  override forward(x: Tensor): Tensor {
    const z = clippedSigmoid(x.sub(this.#offsets(x)))
    return pad(z, [0, 1], { value: 1 }).mul(pad(z.neg().add(1).cumprod(-1), [1, 0], { value: 1 }))
  }

  override inverse(y: Tensor): Tensor {
    const parts = y.narrow(-1, 0, lastOf(y.shape) - 1)
    const left = parts.cumsum(-1).neg().add(1).clamp(finfo(y.dtype).tiny)
    return parts.log().sub(left.log()).add(this.#offsets(parts))
  }

  override logAbsDetJacobian(x: Tensor, y: Tensor): Tensor {
    const shifted = x.sub(this.#offsets(x))
    return logsigmoid(shifted)
      .sub(shifted)
      .add(y.narrow(-1, 0, lastOf(y.shape) - 1).log())
      .sum(-1)
  }

  /** log K, log(K - 1), …, by which zeros give equal parts. */
  #offsets(x: Tensor): Tensor {
    const size = lastOf(x.shape)
    return tensor(
      Array.from({ length: size }, (_, i) => Math.log(size - i)),
      { dtype: x.dtype },
    )
  }

  override forwardShape(shape: readonly number[]): readonly number[] {
    return resized(shape, 1)
  }

  override inverseShape(shape: readonly number[]): readonly number[] {
    return resized(shape, -1)
  }
}

/** Matrices to lower triangular ones with a positive diagonal, by e^x on the diagonal. PyTorch's `LowerCholeskyTransform`. */
export class LowerCholeskyTransform extends Transform {
  override readonly domain: Constraint = independent(real, 2)
  override readonly codomain: Constraint = lowerCholesky
  override get bijective(): boolean {
    return false
  }

  override forward(x: Tensor): Tensor {
    return tril(x, -1).add(x.diagonal(0, -2, -1).exp().diagEmbed())
  }

  override inverse(y: Tensor): Tensor {
    return tril(y, -1).add(y.diagonal(0, -2, -1).log().diagEmbed())
  }

  override logAbsDetJacobian(): Tensor {
    throw new UnsupportedError('LowerCholeskyTransform.logAbsDetJacobian: it ignores the numbers above the diagonal, so that there is none.')
  }
}

/** The places of the elements below the diagonal `diagonal` of matrices of n rows, in the order of rows. */
const placesBelow = (n: number, diagonal: number): readonly number[] =>
  Array.from({ length: n * n }, (_, i) => i).filter((i) => (i % n) - Math.floor(i / n) <= diagonal)

/** Vectors of D (D - 1) / 2 numbers to Cholesky factors of D x D matrices of correlations. PyTorch's `CorrCholeskyTransform`. */
export class CorrCholeskyTransform extends Transform {
  override readonly domain: Constraint = realVector
  override readonly codomain: Constraint = corrCholesky

  override forward(x: Tensor): Tensor {
    const { eps } = finfo(x.dtype)
    const n = lastOf(this.forwardShape(x.shape))
    const r = belowDiagonal(x.tanh().clamp(-1 + eps, 1 - eps), n)
    const rest = r.square().neg().add(1).sqrt().cumprod(-1)
    return r.add(eye(n, { dtype: x.dtype })).mul(pad(rest.narrow(-1, 0, n - 1), [1, 0], { value: 1 }))
  }

  override inverse(y: Tensor): Tensor {
    const n = lastOf(y.shape)
    const rest = y.square().cumsum(-1).neg().add(1)
    const before = pad(rest.narrow(-1, 0, n - 1), [1, 0], { value: 1 })
    const t = picked(y, placesBelow(n, -1)).div(picked(before, placesBelow(n, -1)).sqrt())
    return t.log1p().sub(t.neg().log1p()).div(2)
  }

  override logAbsDetJacobian(x: Tensor, y: Tensor): Tensor {
    const rest = y.square().cumsum(-1).neg().add(1)
    const sticks = picked(rest, placesBelow(lastOf(y.shape), -2))
      .log()
      .sum(-1)
      .div(2)
    const slopes = x
      .add(softplus(x.mul(-2)))
      .sub(Math.LN2)
      .sum(-1)
      .mul(-2)
    return sticks.add(slopes)
  }

  override forwardShape(shape: readonly number[]): readonly number[] {
    const count = lastOf(shape)
    const n = Math.round(Math.sqrt(0.25 + 2 * count) + 0.5)
    if ((n * (n - 1)) / 2 !== count)
      throw new ShapeError(
        `CorrCholeskyTransform: the last size must be D (D - 1) / 2 for a whole D, such as 1, 3, 6 or 10, got ${formatShape(shape)}.`,
      )
    return [...shape.slice(0, -1), n, n]
  }

  override inverseShape(shape: readonly number[]): readonly number[] {
    const n = lastOf(shape)
    if (shape.length < 2 || shape.at(-2) !== n)
      throw new ShapeError(`CorrCholeskyTransform: its values are square matrices, got shape ${formatShape(shape)}.`)
    return [...shape.slice(0, -2), (n * (n - 1)) / 2]
  }
}

const indicesOf = (places: readonly number[]): Tensor => tensor([...places], { dtype: 'int64' })

/** Elements of matrices, as vectors. */
const picked = (matrices: Tensor, places: readonly number[]): Tensor => matrices.flatten(-2).indexSelect(-1, indicesOf(places))

/** Matrices with these elements below the diagonal, and zeros. */
function belowDiagonal(x: Tensor, n: number): Tensor {
  const count = lastOf(x.shape)
  const places = new Map(placesBelow(n, -1).map((place, i) => [place, i]))
  const sources = Array.from({ length: n * n }, (_, i) => places.get(i) ?? count)
  const withZero = concat([x, zeros([...x.shape.slice(0, -1), 1], { dtype: x.dtype })], -1)
  return withZero.indexSelect(-1, indicesOf(sources)).unflatten(-1, [n, n])
}

/** The last dimensions in another shape of as many elements. PyTorch's `ReshapeTransform`. */
export class ReshapeTransform extends Transform {
  readonly inShape: readonly number[]
  readonly outShape: readonly number[]

  constructor(inShape: readonly number[], outShape: readonly number[]) {
    super()
    if (numelOf(inShape) !== numelOf(outShape))
      throw new ArgumentError(
        `ReshapeTransform: both shapes must have as many elements, got inShape ${formatShape(inShape)} and outShape ${formatShape(outShape)}.`,
      )
    this.inShape = [...inShape]
    this.outShape = [...outShape]
  }

  override get domain(): Constraint {
    return independent(real, this.inShape.length)
  }

  override get codomain(): Constraint {
    return independent(real, this.outShape.length)
  }

  override forward(x: Tensor): Tensor {
    return x.reshape([...this.forwardShape(x.shape)])
  }

  override inverse(y: Tensor): Tensor {
    return y.reshape([...this.inverseShape(y.shape)])
  }

  override logAbsDetJacobian(x: Tensor): Tensor {
    return zeros(x.shape.slice(0, x.ndim - this.inShape.length), { dtype: x.dtype })
  }

  override forwardShape(shape: readonly number[]): readonly number[] {
    return this.#replaced(shape, this.inShape, this.outShape)
  }

  override inverseShape(shape: readonly number[]): readonly number[] {
    return this.#replaced(shape, this.outShape, this.inShape)
  }

  #replaced(shape: readonly number[], from: readonly number[], to: readonly number[]): readonly number[] {
    const cut = shape.length - from.length
    if (cut < 0 || !from.every((n, i) => shape[cut + i] === n))
      throw new ShapeError(`ReshapeTransform: the shape must end with ${formatShape(from)}, got ${formatShape(shape)}.`)
    return [...shape.slice(0, cut), ...to]
  }

  override equals(other: Transform): boolean {
    return other instanceof ReshapeTransform && String(other.inShape) === String(this.inShape) && String(other.outShape) === String(this.outShape)
  }
}

/** A transform for each slice along `dim`. PyTorch's `StackTransform`. */
export class StackTransform extends Transform {
  readonly transforms: readonly Transform[]
  readonly dim: number

  constructor(transforms: readonly Transform[], dim = 0) {
    super()
    checkTransforms('StackTransform', 'transforms', transforms)
    this.transforms = [...transforms]
    this.dim = dim
  }

  override get domain(): Constraint {
    return stack(
      this.transforms.map(({ domain }) => domain),
      this.dim,
    )
  }

  override get codomain(): Constraint {
    return stack(
      this.transforms.map(({ codomain }) => codomain),
      this.dim,
    )
  }

  override get bijective(): boolean {
    return this.transforms.every(({ bijective }) => bijective)
  }

  override forward(x: Tensor): Tensor {
    return this.#each(x, (transform, slice) => transform.forward(slice))
  }

  override inverse(y: Tensor): Tensor {
    return this.#each(y, (transform, slice) => transform.inverse(slice))
  }

  override logAbsDetJacobian(x: Tensor, y: Tensor): Tensor {
    return this.#each(x, (transform, slice, i) => transform.logAbsDetJacobian(slice, y.select(this.dim, i)))
  }

  #each(x: Tensor, compute: (transform: Transform, slice: Tensor, i: number) => Tensor): Tensor {
    if (x.shape.at(this.dim) !== this.transforms.length)
      throw new ShapeError(`StackTransform: dimension ${this.dim} must have ${this.transforms.length} slices, got shape ${formatShape(x.shape)}.`)
    return stacked(
      this.transforms.map((transform, i) => compute(transform, x.select(this.dim, i), i)),
      this.dim,
    )
  }

  override equals(other: Transform): boolean {
    return other instanceof StackTransform && other.dim === this.dim && sameTransforms(this.transforms, other.transforms)
  }
}

/** A transform for each part along `dim`; `lengths` are the sizes of the parts, 1 by default. PyTorch's `CatTransform`. */
export class CatTransform extends Transform {
  readonly transforms: readonly Transform[]
  readonly dim: number
  readonly lengths: readonly number[]

  constructor(transforms: readonly Transform[], dim = 0, lengths: readonly number[] = transforms.map(() => 1)) {
    super()
    checkTransforms('CatTransform', 'transforms', transforms)
    if (lengths.length !== transforms.length)
      throw new ArgumentError(
        `CatTransform: argument 'lengths' must have a size for each of the ${transforms.length} transforms, got ${lengths.length}.`,
      )
    this.transforms = [...transforms]
    this.dim = dim
    this.lengths = [...lengths]
  }

  override get domain(): Constraint {
    return cat(
      this.transforms.map(({ domain }) => domain),
      this.dim,
      this.lengths,
    )
  }

  override get codomain(): Constraint {
    return cat(
      this.transforms.map(({ codomain }) => codomain),
      this.dim,
      this.lengths,
    )
  }

  override get bijective(): boolean {
    return this.transforms.every(({ bijective }) => bijective)
  }

  override forward(x: Tensor): Tensor {
    return this.#each(x, (transform, part) => transform.forward(part))
  }

  override inverse(y: Tensor): Tensor {
    return this.#each(y, (transform, part) => transform.inverse(part))
  }

  override logAbsDetJacobian(x: Tensor, y: Tensor): Tensor {
    return this.#each(x, (transform, part, from, length) => transform.logAbsDetJacobian(part, y.narrow(this.dim, from, length)))
  }

  #each(x: Tensor, compute: (transform: Transform, part: Tensor, from: number, length: number) => Tensor): Tensor {
    const total = this.lengths.reduce((a, b) => a + b, 0)
    if (x.shape.at(this.dim) !== total)
      throw new ShapeError(`CatTransform: dimension ${this.dim} must have the size ${total}, got shape ${formatShape(x.shape)}.`)
    let from = 0
    const parts = this.transforms.map((transform, i) => {
      const length = this.lengths[i] ?? 0
      const part = compute(transform, x.narrow(this.dim, from, length), from, length)
      from += length
      return part
    })
    return concat(parts, this.dim)
  }

  override equals(other: Transform): boolean {
    return (
      other instanceof CatTransform &&
      other.dim === this.dim &&
      String(other.lengths) === String(this.lengths) &&
      sameTransforms(this.transforms, other.transforms)
    )
  }
}
