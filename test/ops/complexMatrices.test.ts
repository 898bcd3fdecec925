// Linear algebra of complex matrices: decompositions put together again, for drawn matrices of many shapes; eigenvalues of real ones; derivatives against differences; compile and vmap.
import { Tensor, compile, torch } from 'tensorfx'
import { gradcheck } from 'tensorfx/autograd'
import { vmap } from 'tensorfx/func'
import { describe, expect, it } from 'vitest'

const drawn = (shape: readonly number[], seed: number, dtype: 'complex128' | 'complex64' | 'float64' = 'complex128'): Tensor =>
  torch.randn(shape, { dtype, generator: new torch.Generator().manualSeed(seed) })
const near = (actual: Tensor, wanted: Tensor, tolerance = 1e-10): void => {
  expect(actual.shape).toEqual(wanted.shape)
  if (actual.numel > 0) expect(Number(torch.sub(actual, wanted).abs().max().item())).toBeLessThan(tolerance)
}
const identity = (like: Tensor): Tensor => torch.eye(like.shape.at(-1) ?? 0, { dtype: like.dtype }).expand(like.shape)

describe('decompositions give the matrix again', () => {
  const shapes = [
    [1, 1],
    [2, 2],
    [5, 5],
    [4, 7],
    [7, 4],
    [2, 3, 3],
    [0, 3, 3],
    [3, 0],
    [12, 12],
  ]
  const square = shapes.filter((shape) => shape.at(-1) === shape.at(-2))
  it.each(shapes)('qr, svd and lu of %s, %s %s', (...given) => {
    const shape = given.filter((n): n is number => typeof n === 'number')
    const a = drawn(shape, 1)
    const [q, r] = torch.linalg.qr(a)
    near(q.matmul(r), a)
    near(q.mH.matmul(q), identity(q.mH.matmul(q)))
    const [u, s, vh] = torch.linalg.svd(a)
    const k = s.shape.at(-1) ?? 0
    near(
      u
        .narrow(-1, 0, k)
        .mul(s.unsqueeze(-2))
        .matmul(vh.narrow(-2, 0, k)),
      a,
    )
    near(u.mH.matmul(u), identity(u))
    near(vh.matmul(vh.mH), identity(vh))
    const [p, l, upper] = torch.linalg.lu(a)
    near(p.matmul(l).matmul(upper), a)
    near(a.matmul(torch.linalg.pinv(a)).matmul(a), a)
  })
  it.each(square)('eig, eigh, cholesky, inv, det and the exponential of %s, %s %s', (...given) => {
    const shape = given.filter((n): n is number => typeof n === 'number')
    const a = drawn(shape, 2)
    const [values, vectors] = torch.linalg.eig(a)
    near(a.matmul(vectors), vectors.mul(values.unsqueeze(-2)), 1e-9)
    near(vectors.abs().square().sum(-2), torch.ones(values.shape, { dtype: 'float64' }))
    near(values.prod(-1), torch.linalg.det(a), 1e-8 * (1 + Number(torch.linalg.det(a).abs().sum().item())))
    const hermitian = a.add(a.mH)
    const [w, v] = torch.linalg.eigh(hermitian)
    expect(w.dtype).toBe('float64')
    near(v.mul(w.unsqueeze(-2)).matmul(v.mH), hermitian)
    const positive = a.matmul(a.mH).add(identity(a))
    for (const upper of [false, true]) {
      const factor = torch.linalg.cholesky(positive, { upper })
      near(upper ? factor.mH.matmul(factor) : factor.matmul(factor.mH), positive)
    }
    near(a.matmul(torch.linalg.inv(a)), identity(a), 1e-9)
    const [sign, log] = torch.linalg.slogdet(a)
    near(sign.mul(log.exp()), torch.linalg.det(a), 1e-8 * (1 + Number(torch.linalg.det(a).abs().sum().item())))
    near(torch.linalg.matrixExp(a).matmul(torch.linalg.matrixExp(a.neg())), identity(a), 1e-6)
  })
  it('a singular matrix has a decomposition, and no inverse', () => {
    const column = drawn([4, 1], 3)
    const a = column.matmul(column.mH)
    const [u, s, vh] = torch.linalg.svd(a)
    near(u.mul(s).matmul(vh), a)
    near(u.mH.matmul(u), identity(u))
    expect(torch.linalg.matrixRank(a).item()).toBe(1)
    expect(() => torch.linalg.inv(torch.zeros([2, 2], { dtype: 'complex64' }))).toThrow(/torch.linalg.inv: matrix 0 of the batch is singular/)
  })
})

describe('eigenvalues of real matrices', () => {
  it.each(Array.from({ length: 12 }, (_, i) => i + 1))('are real or come in exact conjugate pairs: %i rows', (n) => {
    const a = drawn([n, n], n, 'float64')
    const [values, vectors] = torch.linalg.eig(a)
    expect(values.dtype).toBe('complex128')
    near(torch.complex(a, torch.zerosLike(a)).matmul(vectors), vectors.mul(values), 1e-9)
    const [re, im] = [values.real().toArray() as number[], values.imag().toArray() as number[]]
    for (let i = 0; i < n; i++) {
      if (im[i] === 0) near(vectors.imag().select(-1, i), torch.zeros([n], { dtype: 'float64' }), Number.MIN_VALUE)
      else if ((im[i] ?? 0) > 0) expect([re[i + 1], im[i + 1]]).toEqual([re[i], -(im[i] ?? 0)])
    }
  })
  it.each([
    [
      'a rotation',
      [
        [0, 1],
        [-1, 0],
      ],
      [
        [0, 1],
        [0, -1],
      ],
    ],
    [
      'a cycle',
      [
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [1, 0, 0, 0],
      ],
      [
        [1, 0],
        [-1, 0],
        [0, 1],
        [0, -1],
      ],
    ],
    [
      'a Jordan block',
      [
        [2, 1, 0],
        [0, 2, 1],
        [0, 0, 2],
      ],
      [
        [2, 0],
        [2, 0],
        [2, 0],
      ],
    ],
    [
      'zeros',
      [
        [0, 0],
        [0, 0],
      ],
      [
        [0, 0],
        [0, 0],
      ],
    ],
    [
      'a diagonal',
      [
        [3, 0],
        [0, -1],
      ],
      [
        [3, 0],
        [-1, 0],
      ],
    ],
  ] as const)('%s', (_name, rows, wanted) => {
    const values = torch.viewAsReal(torch.linalg.eigvals(torch.tensor(rows, { dtype: 'float64' }))).toArray() as number[][]
    const byParts = (a: readonly number[], b: readonly number[]): number => (a[0] ?? 0) - (b[0] ?? 0) || (a[1] ?? 0) - (b[1] ?? 0)
    const round = (list: readonly (readonly number[])[]): number[][] => list.map((z) => z.map((x) => Math.round(x * 1e4) / 1e4 + 0)).sort(byParts)
    expect(round(values)).toEqual(round(wanted))
  })
  it('matrices with NaN have eigenvalues that are NaN, and end', () => {
    expect(
      Number.isNaN(
        torch.linalg
          .eigvals(
            torch.tensor([
              [NaN, 1],
              [1, 2],
            ]),
          )
          .real()
          .sum()
          .item() as number,
      ),
    ).toBe(true)
  })
})

const rows = drawn([3, 3], 5)
const positiveOf = (a: Tensor): Tensor => a.matmul(a.mH).add(identity(a))
/** Functions of a complex matrix that do not depend on phases. */
const FUNCTIONS: Readonly<Record<string, (a: Tensor) => Tensor>> = {
  inv: (a) => torch.linalg.inv(a),
  solve: (a) => torch.linalg.solve(a, rows),
  'solve, of the right side': (a) => torch.linalg.solve(rows, a, { left: false }),
  solveTriangular: (a) => torch.linalg.solveTriangular(a, rows, { upper: true }),
  det: (a) => torch.linalg.det(a),
  slogdet: (a) => torch.linalg.slogdet(a)[0].mul(torch.linalg.slogdet(a)[1]),
  matrixExp: (a) => torch.linalg.matrixExp(a),
  matrixPower: (a) => torch.linalg.matrixPower(a, -3),
  pinv: (a) => torch.linalg.pinv(a.narrow(0, 0, 2)),
  cholesky: (a) => torch.linalg.cholesky(positiveOf(a)),
  'upper cholesky': (a) => torch.linalg.cholesky(positiveOf(a), { upper: true }),
  qr: (a) => torch.cat(torch.linalg.qr(a), -1),
  'wide qr': (a) => torch.cat(torch.linalg.qr(a.narrow(0, 0, 2)), -1),
  lu: (a) => torch.cat(torch.linalg.lu(a).slice(1), -1),
  eigvals: (a) => torch.linalg.eigvals(a).pow(3).sum(),
  'vectors of eig': (a) => torch.linalg.eig(a)[1].abs().square().matmul(rows.real()),
  eigh: (a) => torch.linalg.eigh(a.add(a.mH))[0],
  'vectors of eigh': (a) => torch.linalg.eigh(a.add(a.mH))[1].abs(),
  svdvals: (a) => torch.linalg.svdvals(a),
  'vectors of svd': (a) => {
    const [u, s, vh] = torch.linalg.svd(a.narrow(0, 0, 2), { fullMatrices: false })
    return u.mul(s.square().unsqueeze(-2)).matmul(vh)
  },
  householderProduct: (a) => torch.linalg.householderProduct(a, rows.select(0, 0)),
  norms: (a) => torch.stack(['fro', 'nuc', 1, Infinity].map((ord) => torch.linalg.matrixNorm(a, ord as 'fro'))),
  cov: (a) => torch.cov(a),
}

describe('functions of complex matrices', () => {
  const a = drawn([3, 3], 6)
  it.each(Object.entries(FUNCTIONS))('%s has the derivative of differences; compiled and batched it is the same', (_name, fn) => {
    expect(gradcheck(fn, [a.clone().requiresGrad_()])).toBe(true)
    near(compile(fn)(a), fn(a))
    near(vmap(fn)(torch.stack([a, rows])), torch.stack([fn(a), fn(rows)]))
  })
  it('what is computed in JavaScript of pairs of what was computed in JavaScript, compiled', () => {
    const fn = (x: Tensor): Tensor => torch.fft.fft(torch.linalg.inv(x))
    near(compile(fn)(a), fn(a))
    expect(compile((x: Tensor) => torch.linalg.lu(x)[1])(drawn([0, 3, 5], 8)).shape).toEqual([0, 3, 3])
  })
  it('eigenvalues of a real matrix have a real gradient', () => {
    const real = drawn([4, 4], 7, 'float64').requiresGrad_()
    expect(gradcheck((x: Tensor) => torch.linalg.eigvals(x).abs().sum(), [real])).toBe(true)
  })
  it('a real matrix does not go with complex right sides', () => {
    expect(() => torch.linalg.solve(torch.eye(3), torch.ones([3, 1], { dtype: 'complex64' }))).toThrow(
      /expected real matrices or complex ones, got float32 and complex64/,
    )
  })
  it('properties: mH and H are conjugate transposes', () => {
    near(a.mH, a.conj().transpose(0, 1))
    near(a.H, a.mH)
    expect(() => drawn([2, 3, 3], 1).H).toThrow(/x.H: expected a matrix, got shape \[2, 3, 3\]/)
  })
})
