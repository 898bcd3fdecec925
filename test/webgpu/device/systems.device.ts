// Systems of equations on the GPU: x with a x = b for drawn triangular matrices solves a system that is as near to the given one as sums in float32 allow. This file runs in Node and in a page.
import { beforeAll, describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { init } from 'tensorfx/webgpu'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { third } from '../../helpers/rotation.ts'

beforeAll(async () => init({ thread: false }))

interface Case {
  readonly a: Tensor
  readonly b: Tensor
  readonly upper: boolean
  readonly left: boolean
  readonly unitriangular: boolean
}

/** A drawn system. What is on the other side of the diagonal must not count; it is large. */
function drawn(seed: number, rows: number): Case {
  const { int } = randomFrom(seed)
  torch.manualSeed(seed)
  const [upper, left, unitriangular] = [int(2) === 0, int(2) === 0, int(2) === 0]
  const batch = [[], [3], [2, 1]][int(3)] ?? []
  const columns = 1 + int(4)
  const strict = (t: Tensor): Tensor => (upper ? t.triu(1) : t.tril(-1))
  const other = (t: Tensor): Tensor => (upper ? t.tril(-1) : t.triu(1))
  const random = torch.randn([...batch, rows, rows])
  const diagonal = torch.eye(rows).mul(torch.rand([...batch, rows, 1]).add(1))
  // Small enough that solutions do not grow with each row.
  const a = strict(random)
    .mul(1 / Math.sqrt(rows))
    .add(other(random.mul(1e6)))
    .add(diagonal)
  const b = torch.randn([...(int(2) === 0 ? batch : []), ...(left ? [rows, columns] : [columns, rows])])
  const turned = (t: Tensor): Tensor => (int(2) === 0 ? t.transpose(-2, -1).contiguous().transpose(-2, -1) : t)
  return { a: turned(a), b: turned(b), upper, left, unitriangular }
}

const there = (t: Tensor): Tensor => t.to('webgpu')
const solve = (a: Tensor, b: Tensor, { upper, left, unitriangular }: Case): Tensor =>
  torch.linalg.solveTriangular(a, b, { upper, left, unitriangular })

/** How far a x is from b, by element, in units of what rounding each product and sum once can be off: Higham's bound for substitution has `rows` of them. */
function backwardError(given: Case, x: Tensor): number {
  const { a, b, upper, left, unitriangular } = given
  const kept = upper ? a.triu() : a.tril()
  const rows = a.shape.at(-1) ?? 1
  const eye = torch.eye(rows)
  const matrix = (unitriangular ? kept.mul(torch.ones([rows, rows]).sub(eye)).add(eye) : kept).to('float64')
  const wide = x.to('float64')
  const times = (m: Tensor, v: Tensor): Tensor => (left ? m.matmul(v) : v.matmul(m))
  const residual = times(matrix, wide).sub(b.to('float64')).abs()
  return Number(residual.div(times(matrix.abs(), wide.abs())).max().item()) / 2 ** -24
}

describe('solveTriangular', () => {
  test.each(third(Array.from({ length: 24 }, (_, i) => i)))('drawn system %i', async (i) => {
    const rows = [1, 2, 5, 13, 40, 150][i % 6] ?? 1
    const given = drawn(33_500 + i, rows)
    const x = solve(there(given.a), there(given.b), given)
    expect(x.device).toBe('webgpu')
    const error = backwardError(given, await copied(x))
    expect(error).toBeLessThan(rows + 4)
    expect(error).toBeGreaterThanOrEqual(0)
  })

  test.each(third([1, 2, 3]))('has gradients, compiled too, drawn system %i', async (i) => {
    const given = drawn(33_600 + i, 6)
    const step = (a: Tensor, b: Tensor): Tensor => solve(a, b, given).tanh().sum()
    const gradients = async (place: (t: Tensor) => Tensor, fn: typeof step): Promise<readonly number[]> => {
      const [a, b] = [place(given.a).requiresGrad_(), place(given.b).requiresGrad_()]
      fn(a, b).backward()
      const arrays = await Promise.all([a, b].map(async ({ grad }) => grad?.toTypedArrayAsync()))
      return arrays.flatMap((array) => Array.from(array ?? [], Number))
    }
    const want = await gradients((t) => t.clone(), step)
    for (const fn of [step, compile(step)]) {
      // oxlint-disable-next-line no-await-in-loop -- one GPU
      const got = await gradients(there, fn)
      expect(got).toHaveLength(want.length)
      got.forEach((value, k) => expect(value).toBeCloseTo(want[k] ?? NaN, 4))
    }
  })

  test('a diagonal with a zero gives infinities, as on the CPU', async () => {
    const a = torch.tensor([
      [0, 0],
      [1, 2],
    ])
    const b = torch.tensor([[3], [1]])
    const got = await torch.linalg.solveTriangular(there(a), there(b), { upper: false }).toArrayAsync()
    expect(got).toEqual(torch.linalg.solveTriangular(a, b, { upper: false }).toArray())
  })
})

const copied = async (x: Tensor): Promise<Tensor> => torch.tensor([...(await x.toTypedArrayAsync())].map(Number)).reshape(x.shape)

describe('what takes no tensors and has no shader, the program computes', () => {
  const n = 70_000
  test.each([
    ['in eager mode', () => torch.randperm(n, { device: 'webgpu' })],
    [
      'compiled, on tensors there',
      () => compile((x: Tensor) => torch.randperm(n, { device: 'webgpu' }).add(x))(torch.zeros([n], { dtype: 'int64', device: 'webgpu' })),
    ],
    [
      'compiled, on tensors of the program',
      () => compile((x: Tensor) => torch.randperm(n).add(x), { backend: 'webgpu' })(torch.zeros([n], { dtype: 'int64' })),
    ],
  ] as const)('a long permutation %s', async (_, make) => {
    torch.manualSeed(5)
    const got = await make().toTypedArrayAsync()
    torch.manualSeed(5)
    const want = torch.randperm(n).toTypedArray()
    expect(got).toHaveLength(n)
    expect(got.findIndex((value, i) => value !== want[i])).toBe(-1)
  })
})
