// LU with partial pivoting: factors in one matrix, apart, and the systems that they solve.
import { ArgumentError, InternalError, ShapeError } from '../../errors/index.ts'
import type { Size } from '../../protocol/index.ts'
import { exactElements, formatShape, sameShape, sizeLess, tensorFromValues, windowOf, sizeMax } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { arange, rangeOf, eye, zeros } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { cat } from '../join/join.ts'
import { add, sub } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { eq } from '../pointwise/comparison.ts'
import { amax } from '../reduction/extremes.ts'
import { sizeAt } from '../shared/shapes.ts'
import { tril, triu } from './triangular.ts'
import { clone, contiguous, squeeze, unsqueeze } from '../view/reshape.ts'
import { narrow } from '../view/slicing.ts'
import { expand } from '../view/windows.ts'
import { adjointOf, checkMatrix, failure, matricesOf, tensorOf, smaller } from './batches.ts'
import { factorsOf } from './elimination.ts'
import { matmul } from './matmul.ts'
import { solveTriangular } from './solve.ts'

/**
 * LU with partial pivoting, both factors in one matrix: [LU, pivots, info]. Row i was exchanged with row `pivots[i]`, counted from 1; `info` is 0, or the number of the first pivot that
 * is 0. With `pivot: false` no rows are exchanged. PyTorch's `torch.linalg.lu_factor_ex`.
 *
 * Shapes: [.., m, n] gives [.., m, n], [.., min(m, n)] and [..]. Pivots and info are int32.
 *
 * @throws ShapeError unless `self` holds matrices.
 * @throws ArgumentError with `checkErrors`, if a pivot is 0.
 * @example torch.linalg.luFactorEx(torch.tensor([[0, 2], [1, 3]])).map((t) => t.toArray()) // [[[1, 3], [0, 2]], [2, 2], 0]
 */
export const luFactorEx: Op['luFactorEx'] = defineOp({
  schema: 'lu_factor_ex(Tensor self, *, bool pivot=True, bool check_errors=False) -> (Tensor, Tensor, Tensor)',
  namespace: 'torch.linalg',
  matrices: ['self'],
  autocast: 'as is',
  meta: (self) => {
    checkMatrix('torch.linalg.lu_factor_ex', self)
    const lead = self.symSizes.slice(0, -2)
    return [
      { shape: self.symSizes, dtype: self.dtype },
      { shape: [...lead, smaller(self.symSizes)], dtype: 'int32' },
      { shape: lead, dtype: 'int32' },
    ]
  },
  kernel: (self, pivot, checkErrors): readonly [Tensor, Tensor, Tensor] => {
    checkMatrix('torch.linalg.lu_factor_ex', self)
    const lead = self.sizes.slice(0, -2)
    const all = matricesOf(self).map((a) => factorsOf(a, pivot))
    all.forEach(({ info }, batch) => {
      if (checkErrors && info > 0) throw failure('torch.linalg.lu_factor_ex', batch, `has a pivot of 0, number ${info}`)
    })
    return [
      tensorOf(
        all.map(({ lu }) => lu),
        self.sizes,
        self.dtype,
      ),
      tensorFromValues(
        all.flatMap(({ pivots }) => pivots.map((p) => p + 1)),
        [...lead, smaller(self.sizes)],
        'int32',
      ),
      tensorFromValues(
        all.map(({ info }) => info),
        lead,
        'int32',
      ),
    ]
  },
  derivative: ([g], { args: [self], outputs: [lu, pivots] }) => {
    if (g === null) return [null, null, null]
    const [m, n, k] = [sizeAt(self.sizes, -2), sizeAt(self.sizes, -1), smaller(self.sizes)]
    const square = narrow(narrow(lu, -2, 0, k), -1, 0, k)
    const upper = triu(square)
    /** L^-T x U^-T, with the square parts of the factors. */
    const byUpper = (x: Tensor): Tensor => adjointOf(solveTriangular(upper, adjointOf(x), { upper: true }))
    const byLower = (x: Tensor): Tensor => solveTriangular(adjointOf(square), x, { upper: true, unitriangular: true })
    const lower = add(tril(square, -1), eye(k, { dtype: self.dtype }))
    const gsquare = narrow(narrow(g, -2, 0, k), -1, 0, k)
    let inLower = matmul(adjointOf(lower), tril(gsquare, -1))
    let inUpper = matmul(triu(gsquare), adjointOf(upper))
    let right: Tensor | null = null
    let below: Tensor | null = null
    if (n > k) {
      const gwide = narrow(g, -1, k, n - k)
      inLower = sub(inLower, matmul(gwide, adjointOf(narrow(lu, -1, k, n - k))))
      right = byLower(gwide)
    }
    if (m > k) {
      const gtall = narrow(g, -2, k, m - k)
      inUpper = sub(inUpper, matmul(adjointOf(narrow(lu, -2, k, m - k)), gtall))
      below = byUpper(gtall)
    }
    const core = byLower(byUpper(add(tril(inLower, -1), triu(inUpper))))
    const wide = right === null ? core : cat([core, right], -1)
    return [matmul(permutation(pivots, m, self), below === null ? wide : cat([wide, below], -2)), null, null]
  },
})

/** Throws ShapeError unless each list of pivots has at most one for each of m rows. */
function checkPivots(pivots: Tensor, m: Size): void {
  const count = pivots.symSizes.at(-1)
  if (count === undefined || sizeLess(m, count))
    throw new ShapeError(
      `torch.lu_unpack: argument 'pivots' must have the shape [.., k] with at most ${m.toString()} pivots, got ${formatShape(pivots.symSizes)}.`,
    )
}

/**
 * The order of the rows after the exchanges that `pivots` lists, counted from 1. Internal; PyTorch has no such operator.
 *
 * Shape: [.., k] gives [.., m]. It is int64.
 *
 * @throws ArgumentError if a pivot is no row, ShapeError for more pivots than rows, or none at all: a number.
 * @example torch.ops.tensorfx.rowOrder(torch.tensor([2, 2]).int(), 2).toArray() // [1, 0]
 */
export const rowOrder: Op['rowOrder'] = defineOp({
  schema: 'row_order(Tensor pivots, SymInt m) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  vmap: { leading: ['pivots'] },
  onnx: { none: 'ONNX has no linear algebra beyond products' },
  autocast: 'as is',
  meta: (pivots, m) => {
    checkPivots(pivots, m)
    return { shape: [...pivots.symSizes.slice(0, -1), m], dtype: 'int64' }
  },
  kernel: (pivots, m) => {
    checkPivots(pivots, m)
    const k = sizeAt(pivots.sizes, -1)
    const all = Array.from(exactElements(contiguous(pivots)), Number)
    const wrong = all.find((p) => !(p >= 1 && p <= m))
    if (wrong !== undefined) throw new ArgumentError(`torch.lu_unpack: a pivot is ${wrong}, but there are only rows 1 to ${m}.`)
    const lead = pivots.sizes.slice(0, -1)
    // The memory first: a number of rows that it cannot hold is refused before anything is counted.
    const orders = clone(expand(arange(m, { dtype: 'int64' }), [...lead, m]))
    const { data, base } = windowOf(orders)
    if (!(data instanceof BigInt64Array)) throw new InternalError('int64 lies in a BigInt64Array')
    for (const [i, p] of all.entries()) {
      const first = base + Math.floor(i / k) * m
      const [row, other] = [first + (i % k), first + p - 1]
      const kept = data[row] ?? 0n
      data[row] = data[other] ?? 0n
      data[other] = kept
    }
    return orders
  },
})

/** The matrix P with `self` = P L U. */
const permutation = (pivots: Tensor, m: Size, like: Tensor): Tensor =>
  to(eq(unsqueeze(rowOrder(pivots, m), -2), unsqueeze(rangeOf(0, 1, m, 'int64'), -1)), like.dtype)

/**
 * {@link luFactorEx} without `info`: [LU, pivots]. PyTorch's `torch.linalg.lu_factor`.
 *
 * Shapes: [.., m, n] gives [.., m, n] and [.., min(m, n)]. Pivots are int32.
 *
 * @throws ShapeError unless `self` holds matrices.
 * @example torch.linalg.luFactor(torch.tensor([[0, 2], [1, 3]])).map((t) => t.toArray()) // [[[1, 3], [0, 2]], [2, 2]]
 */
export const luFactor: Op['luFactor'] = defineOp({
  schema: 'lu_factor(Tensor self, *, bool pivot=True) -> (Tensor, Tensor)',
  namespace: 'torch.linalg',
  decompose: (self, pivot): readonly [Tensor, Tensor] => {
    const [lu, pivots] = luFactorEx(self, { pivot })
    return [lu, pivots]
  },
})

/** [P, L, U] of factors in one matrix. */
function unpacked(lu: Tensor, pivots: Tensor): readonly [Tensor, Tensor, Tensor] {
  const [m, k] = [sizeAt(lu.symSizes, -2), smaller(lu.symSizes)]
  const unit = narrow(eye(sizeMax(m, k), { dtype: lu.dtype }), -1, 0, k)
  const lower = add(tril(narrow(lu, -1, 0, k), -1), narrow(unit, -2, 0, m))
  return [permutation(pivots, m, lu), lower, triu(narrow(lu, -2, 0, k))]
}

/**
 * The decomposition of matrices into a permutation, a lower triangular matrix with ones in the diagonal, and an upper triangular one: [P, L, U], so that P L U is `self`. With `pivot: false` P is
 * empty. PyTorch's `torch.linalg.lu`.
 *
 * Shapes: [.., m, n] gives [.., m, m], [.., m, k] and [.., k, n], k being the smaller size.
 *
 * @throws ShapeError unless `self` holds matrices.
 * @throws DTypeError unless `self` is floating.
 * @example torch.linalg.lu(torch.tensor([[0, 2], [1, 3]])).map((t) => t.toArray()) // [[[0, 1], [1, 0]], [[1, 0], [0, 1]], [[1, 3], [0, 2]]]
 */
export const lu: Op['lu'] = defineOp({
  schema: 'lu(Tensor self, *, bool pivot=True) -> (Tensor, Tensor, Tensor)',
  namespace: 'torch.linalg',
  decompose: (self, pivot): readonly [Tensor, Tensor, Tensor] => {
    const [factors, pivots] = luFactorEx(self, { pivot })
    const [p, l, u] = unpacked(factors, pivots)
    return [pivot ? p : zeros([0], { dtype: self.dtype }), l, u]
  },
})

/**
 * [P, L, U] of the factors and pivots that `luFactor` gives; what is not asked for is empty. PyTorch's `torch.lu_unpack`.
 *
 * Shapes: [.., m, n] and [.., k] give [.., m, m], [.., m, k] and [.., k, n].
 *
 * @throws ArgumentError if a pivot is no row.
 * @example torch.luUnpack(torch.tensor([[1, 3], [0, 2]]), torch.tensor([2, 2]).int())[0].toArray() // [[0, 1], [1, 0]]
 */
export const luUnpack: OpFunction<
  (
    LUData: Tensor,
    LUPivots: Tensor,
    unpackData?: boolean | { readonly unpackData?: boolean; readonly unpackPivots?: boolean },
    unpackPivots?: boolean,
  ) => readonly [Tensor, Tensor, Tensor]
> = defineOp({
  schema: 'lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor, Tensor, Tensor)',
  decompose: (data, pivots, unpackData, unpackPivots): readonly [Tensor, Tensor, Tensor] => {
    checkMatrix('torch.lu_unpack', data)
    const none = zeros([0], { dtype: data.dtype })
    const [p, l, u] = unpacked(data, pivots)
    return [unpackPivots ? p : none, unpackData ? l : none, unpackData ? u : none]
  },
})

/**
 * X with A X = B, from the factors of A that `luFactor` gives; X A = B for `left: false`, and with A transposed for `adjoint`. PyTorch's `torch.linalg.lu_solve`.
 *
 * Shapes: `LU` [.., n, n], `pivots` [.., n], `B` [.., n, k], and so the result. Other batches broadcast.
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError if a pivot is no row.
 * @example torch.linalg.luSolve(torch.tensor([[1, 3], [0, 2]]), torch.tensor([2, 2]).int(), torch.tensor([[2], [4]])).toArray() // [[1], [1]]
 */
export const linalgLuSolve: Op['linalgLuSolve'] = defineOp({
  schema: 'lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor',
  autocast: 'untouched',
  namespace: 'torch.linalg',
  decompose: (factors, pivots, b, left, adjoint) => {
    checkMatrix('torch.linalg.lu_solve', factors, true)
    checkMatrix('torch.linalg.lu_solve', b)
    if (!left) return adjointOf(linalgLuSolve(factors, pivots, adjointOf(b), { left: true, adjoint: !adjoint }))
    const p = permutation(pivots, sizeAt(factors.symSizes, -1), factors)
    if (adjoint) {
      const inner = solveTriangular(adjointOf(factors), b, { upper: false })
      return matmul(p, solveTriangular(adjointOf(factors), inner, { upper: true, unitriangular: true }))
    }
    const inner = solveTriangular(factors, matmul(adjointOf(p), b), { upper: false, unitriangular: true })
    return solveTriangular(factors, inner, { upper: true })
  },
})

/**
 * `torch.linalg.luSolve` with the right sides first. PyTorch's `torch.lu_solve`.
 *
 * Shapes: `self` [.., n, k], `LUData` [.., n, n] and `LUPivots` [.., n] give [.., n, k].
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError if a pivot is no row.
 * @example torch.luSolve(torch.tensor([[2], [4]]), torch.tensor([[1, 3], [0, 2]]), torch.tensor([2, 2]).int()).toArray() // [[1], [1]]
 */
export const luSolve: OpFunction<(self: Tensor, LUData: Tensor, LUPivots: Tensor) => Tensor> = defineOp({
  schema: 'lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor',
  method: true,
  autocast: 'float32',
  decompose: (self, factors, pivots) => linalgLuSolve(factors, pivots, self),
})

/**
 * The factors and pivots of `luFactor`; with `getInfos` also its info. PyTorch's `torch.lu`.
 *
 * Shapes: [.., m, n] gives [.., m, n] and [.., min(m, n)], and [..].
 *
 * @throws ShapeError unless `self` holds matrices.
 * @example torch.lu(torch.tensor([[0, 2], [1, 3]])).map((t) => t.toArray()) // [[[1, 3], [0, 2]], [2, 2]]
 */
export const torchLu: Op['torchLu'] = defineOp({
  schema: 'lu(Tensor self, bool pivot=True, bool get_infos=False) -> Tensor[]',
  method: true,
  decompose: (self, pivot, getInfos) => {
    const [factors, pivots, info] = luFactorEx(self, { pivot })
    return getInfos ? [factors, pivots, info] : [factors, pivots]
  },
})

/**
 * X with A X = B (X A = B for `left: false`), and for each matrix 0, or the number of a pivot that is 0: [X, info]. PyTorch's `torch.linalg.solve_ex`.
 *
 * Shapes: `A` [.., n, n] and `B` [.., n, k] or [.., n] give the shape of `B`, and [..].
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws ArgumentError with `checkErrors`, if a matrix is singular.
 * @example torch.linalg.solveEx(torch.tensor([[2, 0], [0, 4]]), torch.tensor([[2], [8]])).map((t) => t.toArray()) // [[[1], [2]], 0]
 */
export const solveEx: Op['solveEx'] = defineOp({
  schema: 'solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor, Tensor)',
  autocast: 'untouched',
  namespace: 'torch.linalg',
  decompose: (a, b, left, checkErrors): readonly [Tensor, Tensor] => {
    checkMatrix('torch.linalg.solve_ex', a, true)
    const [factors, pivots, info] = luFactorEx(a)
    if (checkErrors) checkInfo('torch.linalg.solve_ex', info)
    const isVector = b.ndim === 1 || (b.ndim === a.ndim - 1 && sameShape(b.symSizes, a.symSizes.slice(0, -1)))
    const side = isVector ? unsqueeze(b, -1) : b
    const x = linalgLuSolve(factors, pivots, side, { left })
    return [isVector ? squeeze(x, -1) : x, info]
  },
})

function checkInfo(op: string, info: Tensor): void {
  if (!info.isFake && info.numel > 0 && amax(info).item() > 0) throw new ArgumentError(`${op}: a matrix is singular.`)
}

/**
 * The inverses of square matrices, and for each 0, or the number of a pivot that is 0: [inverse, info]. PyTorch's `torch.linalg.inv_ex`.
 *
 * Shapes: [.., n, n] gives [.., n, n] and [..].
 *
 * @throws ShapeError unless the matrices are square.
 * @throws ArgumentError with `checkErrors`, if a matrix is singular.
 * @example torch.linalg.invEx(torch.tensor([[2, 0], [0, 4]])).map((t) => t.toArray()) // [[[0.5, 0], [0, 0.25]], 0]
 */
export const invEx: Op['invEx'] = defineOp({
  schema: 'inv_ex(Tensor self, *, bool check_errors=False) -> (Tensor, Tensor)',
  namespace: 'torch.linalg',
  autocast: 'float32',
  decompose: (self, checkErrors): readonly [Tensor, Tensor] => {
    checkMatrix('torch.linalg.inv_ex', self, true)
    const [factors, pivots, info] = luFactorEx(self)
    if (checkErrors) checkInfo('torch.linalg.inv_ex', info)
    return [linalgLuSolve(factors, pivots, expand(eye(sizeAt(self.symSizes, -1), { dtype: self.dtype }), self.symSizes)), info]
  },
})
