// Orthogonal weights, as a parametrization: three maps from any matrix to an orthogonal one.
import { noGrad } from '../../autograd/index.ts'
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import {
  abs,
  add,
  cat,
  copy_,
  diagonal,
  div,
  eq,
  expand,
  eye,
  full,
  householderProduct,
  linalgSolve,
  lt,
  matmul,
  matrixExp,
  max,
  mul,
  narrow,
  neg,
  qr,
  randn,
  reciprocal,
  select,
  sign,
  sqrt,
  square,
  stack,
  sub,
  sum,
  transpose,
  tril,
  trunc,
  unsqueeze,
  where,
  zeros,
} from '../../ops/index.ts'
import { checkCount, checkOptions, valueText } from '../../protocol/index.ts'
import { finfo, formatShape, sameShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { parameterOf, registerParametrization } from './parametrize.ts'

/** How a matrix becomes an orthogonal one. */
export type OrthogonalMap = 'matrix_exp' | 'cayley' | 'householder'

/** Options of `nn.utils.parametrizations.orthogonal`. */
export interface OrthogonalOptions {
  /** The parameter; default 'weight'. */
  readonly name?: string
  /** Default: 'matrix_exp' for square weights, 'householder' for others. */
  readonly orthogonalMap?: OrthogonalMap | null
  /** Keep an orthogonal matrix, the buffer `base`, and train a rotation of it, which starts as none; default true. The weight keeps its value if it is orthogonal. */
  readonly useTrivialization?: boolean
}

const turned = (x: Tensor): Tensor => transpose(x, -2, -1)
const diagonalOf = (x: Tensor): Tensor => diagonal(x, 0, -2, -1)
const isWide = (x: Tensor): boolean => x.size(-2) < x.size(-1)

/** The orthogonal matrices [.., n, k] of matrices of that shape, n >= k. */
function orthogonalOf(x: Tensor, map: OrthogonalMap): Tensor {
  const [n, k] = [x.size(-2), x.size(-1)]
  if (map === 'householder') {
    const reflections = tril(x, -1)
    const tau = mul(reciprocal(add(sum(square(reflections), [-2]), 1)), 2)
    // The diagonal says which columns are turned round; it is not trained.
    return mul(householderProduct(reflections, tau), unsqueeze(trunc(diagonalOf(x.detach())), -2))
  }
  const lower = tril(x)
  const whole = n === k ? lower : cat([lower, zeros([...x.shape.slice(0, -2), n, n - k], { dtype: x.dtype })], -1)
  const skew = sub(whole, turned(whole))
  const one = eye(n, { dtype: x.dtype })
  const q = map === 'matrix_exp' ? matrixExp(skew) : linalgSolve(add(one, skew, { alpha: -0.5 }), add(one, skew, { alpha: 0.5 }))
  return n === k ? q : narrow(q, -1, 0, k)
}

/** Q of the QR decomposition whose R has a positive diagonal. */
function orthogonalized(x: Tensor): Tensor {
  const [q, r] = qr(x)
  return mul(q, unsqueeze(sign(diagonalOf(r)), -2))
}

function isOrthogonal(x: Tensor): boolean {
  const off = sub(matmul(turned(x), x), eye(x.size(-1), { dtype: x.dtype }))
  return x.numel === 0 || Number(max(abs(off)).item()) <= 10 * x.size(-2) * finfo(x.dtype).eps
}

/** What the Householder map makes the Q of `x` from: reflections below the diagonal, and the signs of R's diagonal on it. Of LAPACK's `geqrf`. */
function reflectionsOf(x: Tensor): Tensor {
  let rest = x
  const columns: Tensor[] = []
  const [n, k] = [x.size(-2), x.size(-1)]
  for (let j = 0; j < k; j++) {
    const column = select(rest, -1, j)
    const [top, below] = [narrow(column, -1, j, 1), narrow(column, -1, j + 1, n - j - 1)]
    const length = sqrt(sum(square(below), [-1], true))
    const done = eq(length, 0)
    const whole = sqrt(add(square(top), square(length)))
    const corner = where(done, top, where(lt(top, 0), whole, neg(whole)))
    const safe = where(done, 1, sub(top, corner))
    const tail = where(done, 0, div(below, safe))
    // LAPACK leaves out a reflection of nothing, which this map cannot.
    columns.push(cat([zeros([...x.shape.slice(0, -2), j], { dtype: x.dtype }), mul(sign(corner), where(done, -1, 1)), tail], -1))
    const vector = unsqueeze(cat([zeros([...x.shape.slice(0, -2), j], { dtype: x.dtype }), full(top.shape, 1, { dtype: x.dtype }), tail], -1), -1)
    const tau = where(done, 0, div(sub(corner, top), where(done, 1, corner)))
    rest = sub(rest, mul(unsqueeze(tau, -1), matmul(vector, matmul(turned(vector), rest))))
  }
  return stack(columns, -1)
}

class Orthogonal extends Module {
  readonly orthogonalMap: OrthogonalMap

  constructor(orthogonalMap: OrthogonalMap) {
    super()
    this.orthogonalMap = orthogonalMap
  }

  override forward(x: Tensor): Tensor {
    checkCount(this, arguments, 1)
    const wide = isWide(x)
    const q = orthogonalOf(wide ? turned(x) : x, this.orthogonalMap)
    return wide ? turned(q) : q
  }

  protected check(q: Tensor, shape: readonly number[]): void {
    if (!sameShape(q.shape, shape))
      throw new ShapeError(`orthogonal: the weight must be assigned a tensor of shape ${formatShape(shape)}, got ${formatShape(q.shape)}.`)
  }
}

class Householder extends Orthogonal {
  readonly shape: readonly number[]

  constructor(weight: Tensor) {
    super('householder')
    this.shape = weight.shape
  }

  rightInverse(q: Tensor): Tensor {
    this.check(q, this.shape)
    return noGrad(() => (isWide(q) ? turned(reflectionsOf(turned(q))) : reflectionsOf(q)))
  }
}

class TrivializedOrthogonal extends Orthogonal {
  readonly shape: readonly number[]
  declare base: Tensor

  constructor(weight: Tensor, orthogonalMap: OrthogonalMap) {
    super(orthogonalMap)
    this.shape = weight.shape
    const n = Math.max(weight.size(-2), weight.size(-1))
    this.registerBuffer('base', zeros([...weight.shape.slice(0, -2), n, n], { dtype: weight.dtype }))
  }

  override forward(x: Tensor): Tensor {
    checkCount(this, arguments, 1)
    const wide = isWide(x)
    const q = matmul(this.base, orthogonalOf(wide ? turned(x) : x, this.orthogonalMap))
    return wide ? turned(q) : q
  }

  rightInverse(given: Tensor): Tensor {
    this.check(given, this.shape)
    return noGrad(() => {
      const q = isWide(given) ? turned(given) : given
      const [n, k] = [q.size(-2), q.size(-1)]
      const more = n === k ? q : cat([q, randn([...q.shape.slice(0, -2), n, n - k], { dtype: q.dtype })], -1)
      copy_(this.base, n === k && isOrthogonal(q) ? q : orthogonalized(more))
      // The Householder map of this is the identity, as the others' is.
      const [rows, columns] = [given.size(-2), given.size(-1)]
      return expand(neg(eye(rows, columns, { dtype: given.dtype })), given.shape).clone()
    })
  }
}

/**
 * Keeps a weight orthogonal: its columns, or its rows if there are fewer of them, have length 1 and are at right angles. Returns the module, with the parameter
 * `parametrizations.weight.original` and, with `useTrivialization`, the buffer `parametrizations.weight.0.base`. Dimensions before the last two are batches.
 * PyTorch's `nn.utils.parametrizations.orthogonal`.
 *
 * @throws ArgumentError if there is no such parameter or no such map, ShapeError if it has fewer than 2 dimensions.
 * @example
 * const layer = nn.utils.parametrizations.orthogonal(new nn.Linear(3, 3))
 * torch.matmul(layer.weight, layer.weight.mT) // the identity, but for rounding
 */
export function orthogonal<M extends Module>(module: M, options: OrthogonalOptions = {}): M {
  checkCount('orthogonal', arguments, 2)
  checkOptions('orthogonal', options, { name: true, orthogonalMap: true, useTrivialization: 'boolean' })
  const { name = 'weight', useTrivialization = true } = options
  const weight = parameterOf('orthogonal', module, name)
  if (weight.ndim < 2) throw new ShapeError(`orthogonal: '${name}' must be a matrix or a batch of matrices, got shape ${formatShape(weight.shape)}.`)
  const map = options.orthogonalMap ?? (weight.size(-2) === weight.size(-1) ? 'matrix_exp' : 'householder')
  if (!['matrix_exp', 'cayley', 'householder'].includes(map))
    throw new ArgumentError(`orthogonal: orthogonalMap must be 'matrix_exp', 'cayley' or 'householder', got ${valueText(map)}.`)
  const plain = (): Orthogonal => (map === 'householder' ? new Householder(weight) : new Orthogonal(map))
  return registerParametrization(module, name, useTrivialization ? new TrivializedOrthogonal(weight, map) : plain())
}
