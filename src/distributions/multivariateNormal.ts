// Normal distributions of vectors.
import { ArgumentError } from '../errors/index.ts'
import { cholesky, eye, solveTriangular } from '../ops/index.ts'
import { checkOptions } from '../protocol/index.ts'
import { Tensor, broadcastShapes } from '../tensor/index.ts'
import { lowerCholesky, positiveDefinite, realVector } from './constraints.ts'
import type { Constraint } from './constraints.ts'
import { Distribution } from './distribution.ts'
import type { DistributionOptions, SampleOptions } from './distribution.ts'
import { draws } from './draws.ts'

/** How the components of the vectors depend on each other: one of three matrices. */
export interface MultivariateNormalOptions extends DistributionOptions {
  /** The covariances, symmetric and positive definite. */
  readonly covarianceMatrix?: Tensor
  /** The inverse of the covariances. */
  readonly precisionMatrix?: Tensor
  /** The lower triangular factor of the covariances, with a positive diagonal. */
  readonly scaleTril?: Tensor
}

const CONSTRAINTS = { covarianceMatrix: positiveDefinite, precisionMatrix: positiveDefinite, scaleTril: lowerCholesky }

/** The factor of the inverse of matrices. */
function factorOfInverse(precision: Tensor): Tensor {
  const flipped = cholesky(precision.flip([-2, -1]))
  const inverse = flipped.flip([-2, -1]).transpose(-2, -1)
  return solveTriangular(inverse, eye(precision.shape.at(-1) ?? 0, { dtype: precision.dtype }).expandAs(precision), { upper: false })
}

/**
 * For vectors `x` the squares of their lengths in the measure of the factors `tril`: x^T (L L^T)^-1 x. Shapes: [..., n] and [batch, n, n], where the dimensions before n broadcast to
 * further ones and the batch.
 */
export function mahalanobis(tril: Tensor, x: Tensor): Tensor {
  const batch = broadcastShapes('mahalanobis', tril.shape.slice(0, -2), x.shape.slice(Math.max(0, x.ndim - tril.ndim + 1), -1))
  const full = x.expand([...x.shape.slice(0, Math.max(0, x.ndim - 1 - batch.length)), ...batch, ...x.shape.slice(-1)])
  const extra = full.shape.slice(0, full.ndim - 1 - batch.length)
  // All vectors of a factor are the columns of one system.
  const columns = full.reshape([-1, ...batch, ...x.shape.slice(-1)]).movedim(0, -1)
  const solved = solveTriangular(tril.expand([...batch, ...tril.shape.slice(-2)]), columns, { upper: false })
  return solved
    .square()
    .sum(-2)
    .movedim(-1, 0)
    .reshape([...extra, ...batch])
}

/** Half of the logarithm of the determinant of the covariances. */
export const halfLogDet = (tril: Tensor): Tensor => tril.diagonal(0, -2, -1).log().sum(-1)

/**
 * The normal distribution of vectors with the mean `loc` along the last dimension, and one of three matrices: `new MultivariateNormal(loc, { covarianceMatrix })`; a tensor in the place of
 * the options is the covariances. PyTorch's `MultivariateNormal`.
 *
 * @throws ArgumentError unless exactly one matrix is given, and it is one of its kind.
 * @example
 * const d = new MultivariateNormal(torch.zeros([2]), { covarianceMatrix: torch.eye(2) })
 * d.logProb(torch.zeros([2])).item().toFixed(4) // '-1.8379'
 */
export class MultivariateNormal extends Distribution {
  override get hasRsample(): boolean {
    return true
  }
  readonly loc: Tensor
  /** The lower triangular factor of the covariances. */
  readonly scaleTril: Tensor
  readonly #given: Tensor
  readonly #name: keyof typeof CONSTRAINTS

  constructor(loc: Tensor, matrix: Tensor | MultivariateNormalOptions, options: DistributionOptions = {}) {
    const where = 'MultivariateNormal'
    const read: MultivariateNormalOptions = matrix instanceof Tensor ? { covarianceMatrix: matrix, ...options } : matrix
    checkOptions<MultivariateNormalOptions>(where, read, {
      covarianceMatrix: true,
      precisionMatrix: true,
      scaleTril: true,
      validateArgs: 'boolean',
    })
    const given = (['covarianceMatrix', 'precisionMatrix', 'scaleTril'] as const).flatMap((name) => {
      const value = read[name]
      return value === undefined ? [] : [{ name, value }]
    })
    const [first] = given
    if (first === undefined || given.length > 1)
      throw new ArgumentError(
        `${where}: give one of covarianceMatrix, precisionMatrix and scaleTril, got ${given.map(({ name }) => name).join(' and ') || 'none'}.`,
      )
    const { name, value } = first
    for (const [argument, tensor, dims] of [
      ['loc', loc, 1],
      [name, value, 2],
    ] as const)
      if (!(tensor instanceof Tensor) || tensor.ndim < dims)
        throw new ArgumentError(
          `${where}: parameter '${argument}' must be a tensor of at least ${dims} dimension${dims === 1 ? '' : 's'}, got ${tensor instanceof Tensor ? `shape [${tensor.shape.join(', ')}]` : typeof tensor}.`,
        )
    const batchShape = broadcastShapes(where, value.shape.slice(0, -2), loc.shape.slice(0, -1))
    const eventShape = loc.shape.slice(-1)
    const matrices = value.expand([...batchShape, ...value.shape.slice(-2)])
    const means = loc.expand([...batchShape, ...eventShape])
    super({
      parameters: { loc: [means, realVector], [name]: [matrices, CONSTRAINTS[name]] },
      others: CONSTRAINTS,
      batchShape,
      eventShape,
      options: read.validateArgs === undefined ? {} : { validateArgs: read.validateArgs },
    })
    this.loc = means
    this.#given = matrices
    this.#name = name
    this.scaleTril = name === 'scaleTril' ? matrices : name === 'covarianceMatrix' ? cholesky(matrices) : factorOfInverse(matrices)
  }

  /** The covariances. */
  get covarianceMatrix(): Tensor {
    return this.#name === 'covarianceMatrix' ? this.#given : this.scaleTril.matmul(this.scaleTril.transpose(-2, -1))
  }

  /** The inverse of the covariances. */
  get precisionMatrix(): Tensor {
    if (this.#name === 'precisionMatrix') return this.#given
    const inverse = solveTriangular(this.scaleTril, eye(this.eventShape[0] ?? 0, { dtype: this.loc.dtype }).expandAs(this.scaleTril), {
      upper: false,
    })
    return inverse.transpose(-2, -1).matmul(inverse)
  }

  override get support(): Constraint {
    return realVector
  }

  override get mean(): Tensor {
    return this.loc
  }

  override get mode(): Tensor {
    return this.loc
  }

  override get variance(): Tensor {
    return this.scaleTril.square().sum(-1)
  }

  override expand(batchShape: readonly number[]): MultivariateNormal {
    return new MultivariateNormal(this.expanded(this.loc, batchShape, 1), {
      [this.#name]: this.expanded(this.#given, batchShape, 2),
      ...this.options,
    })
  }

  override rsample(sampleShape: readonly number[] = [], options: SampleOptions = {}): Tensor {
    const noise = draws.normal(this.draw(sampleShape, options, this.loc.dtype))
    return this.scaleTril.matmul(noise.unsqueeze(-1)).squeeze(-1).add(this.loc)
  }

  override logProb(value: Tensor): Tensor {
    this.checkSample('logProb', value)
    const norm = (this.eventShape[0] ?? 0) * Math.log(2 * Math.PI)
    return mahalanobis(this.scaleTril, value.sub(this.loc)).add(norm).div(-2).sub(halfLogDet(this.scaleTril))
  }

  override entropy(): Tensor {
    return halfLogDet(this.scaleTril).add(((this.eventShape[0] ?? 0) * (1 + Math.log(2 * Math.PI))) / 2)
  }
}
