// L D L^T of symmetric matrices, and systems of equations from it.
import type { Size } from '../../protocol/index.ts'
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
import { broadcastShapes, exactElements, formatShape, sameShape, tensorFromValues, numbersOf, sizeEq } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { sizeAt } from '../shared/shapes.ts'
import { contiguous } from '../view/reshape.ts'
import { expand } from '../view/windows.ts'
import { checkMatrix, failure, matricesOf, tensorOf } from './batches.ts'
import { ldlOf, ldlSolveOf } from './bunchKaufman.ts'

const FACTOR = 'torch.linalg.ldl_factor_ex'
const SOLVE = 'torch.linalg.ldl_solve'

/**
 * Symmetric matrices, of which the lower triangle counts, as L D L^T, with blocks of one and two rows in D: [LD, pivots, info]. The lower triangle of LD has both. Row i was exchanged
 * with row `pivots[i]`, counted from 1; two negative pivots belong to a block of two rows. `info` is 0, or the number of the first block that is 0. `hermitian` makes no
 * difference for real numbers. PyTorch's `torch.linalg.ldl_factor_ex`.
 *
 * Shapes: [.., n, n] gives [.., n, n], [.., n] and [..]. Pivots and info are int32.
 *
 * @throws ShapeError unless the matrices are square.
 * @throws DTypeError unless `self` is floating.
 * @throws ArgumentError with `checkErrors`, if a block is 0.
 * @example torch.linalg.ldlFactorEx(torch.tensor([[4, 0], [2, 3]])).map((t) => t.toArray()) // [[[4, 0], [0.5, 2]], [1, 2], 0]
 */
export const ldlFactorEx: Op['ldlFactorEx'] = defineOp({
  schema: 'ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor, Tensor, Tensor)',
  namespace: 'torch.linalg',
  matrices: ['self'],
  autocast: 'as is',
  meta: (self) => {
    checkMatrix(FACTOR, self, true)
    return [
      { shape: self.symSizes, dtype: self.dtype },
      { shape: self.symSizes.slice(0, -1), dtype: 'int32' },
      { shape: self.symSizes.slice(0, -2), dtype: 'int32' },
    ]
  },
  kernel: (self, _, checkErrors): readonly [Tensor, Tensor, Tensor] => {
    checkMatrix(FACTOR, self, true)
    const all = matricesOf(self).map(ldlOf)
    all.forEach(({ info }, batch) => {
      if (checkErrors && info > 0) throw failure(FACTOR, batch, `has a block of 0 in D, number ${info}`)
    })
    return [
      tensorOf(
        all.map(({ factors }) => factors),
        self.sizes,
        self.dtype,
      ),
      tensorFromValues(
        all.flatMap(({ pivots }) => pivots),
        self.sizes.slice(0, -1),
        'int32',
      ),
      tensorFromValues(
        all.map(({ info }) => info),
        self.sizes.slice(0, -2),
        'int32',
      ),
    ]
  },
})

/**
 * {@link ldlFactorEx} without `info`: [LD, pivots]. PyTorch's `torch.linalg.ldl_factor`.
 *
 * Shapes: [.., n, n] gives [.., n, n] and [.., n].
 *
 * @throws ShapeError unless the matrices are square.
 * @throws DTypeError unless `self` is floating.
 * @throws ArgumentError if a block of D is 0.
 * @example torch.linalg.ldlFactor(torch.tensor([[4, 0], [2, 3]]))[0].toArray() // [[4, 0], [0.5, 2]]
 */
export const ldlFactor: Op['ldlFactor'] = defineOp({
  schema: 'ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor, Tensor)',
  namespace: 'torch.linalg',
  tags: ['rejectsData'],
  decompose: (self, hermitian): readonly [Tensor, Tensor] => {
    const [factors, pivots] = ldlFactorEx(self, { hermitian, checkErrors: true })
    return [factors, pivots]
  },
})

function solveSpec(LD: Tensor, pivots: Tensor, B: Tensor): TensorSpec<Size> {
  checkMatrix(SOLVE, LD, true)
  if (B.ndim < 2) throw new ShapeError(`${SOLVE}: B must have at least 2 dimensions [.., n, k], got shape ${formatShape(B.symSizes)}.`)
  if (pivots.isFloatingPoint() || pivots.dtype === 'bool') throw new DTypeError(`${SOLVE}: pivots must be integers, got ${pivots.dtype}.`)
  if (B.dtype !== LD.dtype) throw new DTypeError(`${SOLVE}: LD and B must have the same dtype, got ${LD.dtype} and ${B.dtype}.`)
  if (!sameShape(pivots.symSizes, LD.symSizes.slice(0, -1)))
    throw new ShapeError(
      `${SOLVE}: pivots must have the shape ${formatShape(LD.symSizes.slice(0, -1))} of the rows of LD, got ${formatShape(pivots.symSizes)}.`,
    )
  if (!sizeEq(sizeAt(B.symSizes, -2), sizeAt(LD.symSizes, -1)))
    throw new ShapeError(`${SOLVE}: factors of shape ${formatShape(LD.symSizes)} do not fit right sides of shape ${formatShape(B.symSizes)}.`)
  const batch = broadcastShapes(SOLVE, LD.symSizes.slice(0, -2), B.symSizes.slice(0, -2))
  return { shape: [...batch, ...B.symSizes.slice(-2)], dtype: B.dtype }
}

/** The pivots of each matrix. Throws ArgumentError unless each is a row, and negative ones come in pairs. */
function pivotsOf(pivots: Tensor, n: number): readonly (readonly number[])[] {
  const all = Array.from(exactElements(contiguous(pivots)), Number)
  const wrong = all.find((p) => p === 0 || Math.abs(p) > n)
  if (wrong !== undefined) throw new ArgumentError(`${SOLVE}: a pivot is ${wrong}, but there are only rows 1 to ${n}.`)
  const lists = Array.from({ length: n === 0 ? 0 : all.length / n }, (_, b) => all.slice(b * n, (b + 1) * n))
  for (const list of lists)
    for (let k = 0; k < n; k++) {
      if ((list[k] ?? 1) > 0) continue
      if (list[k + 1] !== list[k])
        throw new ArgumentError(`${SOLVE}: a negative pivot must come twice, for the two rows of its block, got ${list.join(', ')}.`)
      k++
    }
  return lists
}

/**
 * X with A X = B, from LD and the pivots that `ldlFactor` gives for A. PyTorch's `torch.linalg.ldl_solve`, which has no gradient either.
 *
 * Shapes: `LD` [.., n, n], `pivots` [.., n] and `B` [.., n, k] give [.., n, k]. Batches broadcast.
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws DTypeError unless `LD` and `B` are floating, of the same dtype, and `pivots` integers.
 * @throws ArgumentError if a pivot is no row.
 * @example torch.linalg.ldlSolve(torch.tensor([[4, 0], [0.5, 2]]), torch.tensor([1, 2]).int(), torch.tensor([[8], [8]])).toArray() // [[1], [2]]
 */
export const ldlSolve: Op['ldlSolve'] = defineOp({
  schema: 'ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor',
  namespace: 'torch.linalg',
  matrices: ['LD', 'pivots', 'B'],
  autocast: 'as is',
  meta: (factors, pivots, b) => solveSpec(factors, pivots, b),
  kernel: (factors, pivots, b) => {
    const { shape } = numbersOf(solveSpec(factors, pivots, b))
    const [batch, n] = [shape.slice(0, -2), sizeAt(factors.sizes, -1)]
    const lists = pivotsOf(expand(pivots, [...batch, n]), n)
    const sides = matricesOf(expand(b, shape))
    const solved = matricesOf(expand(factors, [...batch, n, n])).map((a, i) => ldlSolveOf(a, lists[i] ?? [], sides[i] ?? a))
    return tensorOf(solved, shape, b.dtype)
  },
})
