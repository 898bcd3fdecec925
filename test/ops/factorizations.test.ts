// Factors in LAPACK's forms multiply to what they are factors of: random matrices, batches, and matrices that need blocks of two rows.
import { describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const { linalg } = torch
const randoms = (...size: number[]): Tensor => torch.randn(size, { dtype: 'float64' })
const close = (a: Tensor, b: Tensor, atol = 1e-9): void => expect(torch.allclose(a, b, { rtol: 1e-7, atol }), `${String(a)}\n${String(b)}`).toBe(true)

describe('geqrf', () => {
  it.each([[[4, 4]], [[5, 3]], [[3, 5]], [[2, 4, 3]], [[1, 1]], [[0, 3]], [[3, 0]]])(
    'of %j has reflections and a triangle whose product is the matrix',
    (size) => {
      torch.manualSeed(1)
      const a = randoms(...size)
      const [packed, tau] = torch.geqrf(a)
      const [m = 0, n = 0] = size.slice(-2)
      const k = Math.min(m, n)
      const q = linalg.householderProduct(packed.narrow(-1, 0, k), tau)
      close(q.matmul(torch.triu(packed).narrow(-2, 0, k)), a)
      close(q.mT.matmul(q), torch.eye(k, { dtype: 'float64' }).expand(...size.slice(0, -2), k, k))
      close(torch.ormqr(packed, tau, torch.triu(packed)), a)
      close(torch.ormqr(packed, tau, torch.ormqr(packed, tau, a, true, true)), a)
      close(torch.ormqr(packed, tau, a.mT, false), torch.ormqr(packed, tau, a, true, true).mT)
    },
  )

  it('leaves a triangle as it is, signs included, and so does qr', () => {
    const r = torch.tensor([
      [2, 1],
      [0, -3],
    ])
    expect(torch.geqrf(r)[0].toArray()).toEqual(r.toArray())
    expect(linalg.qr(r)[1].toArray()).toEqual(r.toArray())
  })

  it('has gradients through ormqr', () => {
    torch.manualSeed(2)
    const [packed, tau] = torch.geqrf(randoms(3, 2))
    const other = randoms(3, 2).requiresGrad_()
    torch.ormqr(packed, tau, other).sum().backward()
    close(other.grad ?? torch.zeros([1]), torch.ormqr(packed, tau, torch.ones([3, 2], { dtype: 'float64' }), true, true))
  })

  it('refuses other shapes and dtypes by name', () => {
    const [a, tau] = [torch.zeros([2, 3, 3]), torch.zeros([2, 3])]
    expect(() => torch.ormqr(a, torch.zeros([3]), a)).toThrow('torch.ormqr: tau must have the batches of self')
    expect(() => torch.ormqr(a, tau, torch.zeros([2, 2, 3]))).toThrow('torch.ormqr: other must have the batches of self, and as many rows')
    expect(() => torch.ormqr(a, tau.double(), a)).toThrow('tau must have the dtype of self, float32, got float64')
    expect(() => torch.geqrf(torch.zeros([3]))).toThrow('torch.geqrf: expected matrices')
    expect(() => linalg.householderProduct(torch.zeros([2, 3]), torch.zeros([2]))).toThrow('must not have more columns than rows')
  })
})

describe('ldl', () => {
  /** Symmetric, and far from definite: zeros on the diagonal need blocks of two rows. */
  const symmetric = (n: number, zeros: boolean, ...batch: number[]): Tensor => {
    const a = randoms(...batch, n, n)
    const both = a.add(a.mT)
    return zeros ? both.sub(torch.diagEmbed(both.diagonal(0, -2, -1))) : both
  }

  it.each([
    [1, false],
    [2, true],
    [5, false],
    [6, true],
    [9, true],
  ])('solves systems of %i rows, zeros in the diagonal: %s', (n, zeros) => {
    torch.manualSeed(n)
    for (let i = 0; i < 20; i++) {
      const a = symmetric(n, zeros, 2)
      const x = randoms(2, n, 3)
      const [factors, pivots, info] = linalg.ldlFactorEx(torch.tril(a))
      expect(info.toArray()).toEqual([0, 0])
      close(linalg.ldlSolve(factors, pivots, a.matmul(x)), x, 1e-6)
    }
  })

  it('takes blocks of two rows where the diagonal is small', () => {
    torch.manualSeed(3)
    const [, pivots] = linalg.ldlFactor(symmetric(6, true))
    expect(Array.from(pivots.toTypedArray(), Number).some((p) => p < 0)).toBe(true)
  })

  it('broadcasts batches, compiled as well', () => {
    torch.manualSeed(4)
    const a = symmetric(3, false)
    const x = randoms(2, 3, 1)
    const [factors, pivots] = linalg.ldlFactor(a)
    const solve = (b: Tensor): Tensor => linalg.ldlSolve(factors, pivots, b)
    close(solve(a.matmul(x)), x)
    close(compile(solve)(a.matmul(x)), x)
  })

  it('says what does not fit', () => {
    const [factors, pivots] = linalg.ldlFactor(torch.eye(2))
    expect(() => linalg.ldlSolve(factors, pivots, torch.zeros([2]))).toThrow('B must have at least 2 dimensions')
    expect(() => linalg.ldlSolve(factors, pivots.float(), torch.zeros([2, 1]))).toThrow('pivots must be integers, got float32')
    expect(() => linalg.ldlSolve(factors, pivots, torch.zeros([2, 1], { dtype: 'float64' }))).toThrow('must have the same dtype')
    expect(() => linalg.ldlSolve(factors, pivots.narrow(0, 0, 1), torch.zeros([2, 1]))).toThrow('pivots must have the shape [2]')
    expect(() => linalg.ldlSolve(factors, torch.tensor([3, 1]).int(), torch.zeros([2, 1]))).toThrow('a pivot is 3, but there are only rows 1 to 2')
    expect(() => linalg.ldlSolve(factors, torch.tensor([-1, 1]).int(), torch.zeros([2, 1]))).toThrow('must come twice')
    expect(() => linalg.ldlFactorEx(torch.zeros([2, 2]), { checkErrors: true })).toThrow('has a block of 0 in D, number 1')
    expect(() => linalg.ldlFactor(torch.zeros([2, 2]))).toThrow('has a block of 0 in D')
    expect(linalg.ldlFactorEx(torch.zeros([2, 2]))[2].item()).toBe(1)
  })
})

describe('cholesky_ex', () => {
  it('says which leading minor is not positive, and throws only if it is asked to', () => {
    const a = torch.tensor([
      [4, 2, 0],
      [2, 1, 0],
      [0, 0, 9],
    ])
    expect(linalg.choleskyEx(a)[1].item()).toBe(2)
    expect(() => linalg.choleskyEx(a, { checkErrors: true })).toThrow('its leading minor of order 2 is not positive')
    expect(() => linalg.cholesky(a)).toThrow('torch.linalg.cholesky: matrix 0 of the batch is not positive-definite')
  })

  it('has the gradient of cholesky', () => {
    torch.manualSeed(5)
    const a = randoms(3, 3)
    const positive = a.matmul(a.mT).add(torch.eye(3, { dtype: 'float64' }))
    const grad = (fn: (x: Tensor) => Tensor): Tensor => {
      const x = positive.clone().requiresGrad_()
      fn(x).square().sum().backward()
      return x.grad ?? torch.zeros([1])
    }
    close(
      grad((x) => linalg.choleskyEx(x, { upper: true })[0]),
      grad((x) => linalg.cholesky(x, { upper: true })),
    )
  })
})

describe('approximations of low rank', () => {
  it.each([
    [6, 4, 2],
    [4, 6, 3],
    [5, 5, 5],
  ])('of a matrix of %i rows, %i columns and rank %i are exact', (m, n, rank) => {
    torch.manualSeed(6)
    const a = randoms(2, m, rank).matmul(randoms(2, rank, n))
    const [u, s, v] = torch.svdLowrank(a, rank)
    close(u.mul(s.unsqueeze(-2)).matmul(v.mT), a)
    close(s, linalg.svdvals(a).narrow(-1, 0, rank))
    const mean = a.mean(-2, true)
    const [pu, ps, pv] = torch.pcaLowrank(a, rank)
    close(pu.mul(ps.unsqueeze(-2)).matmul(pv.mT), a.sub(mean))
    const [, difference] = torch.svdLowrank(a, rank, 2, mean)
    close(difference, ps)
  })

  it('take at most the smaller size by default, and refuse other numbers', () => {
    expect(torch.svdLowrank(torch.ones([4, 3])).map((t) => t.shape)).toEqual([[4, 3], [3], [3, 3]])
    expect(torch.pcaLowrank(torch.ones([4, 3])).map((t) => t.shape)).toEqual([[4, 3], [3], [3, 3]])
    expect(() => torch.pcaLowrank(torch.ones([4, 3]), 4)).toThrow('torch.pca_lowrank: q must be an integer from 0 to the smaller size, 3, got 4')
    expect(() => torch.svdLowrank(torch.ones([4, 3]), 1, -1)).toThrow('niter must be an integer from 0')
  })
})
