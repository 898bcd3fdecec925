// The matrix-product template: sizes around its tiles, layouts of operands, epilogues.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compile } from 'tensorfx/compile'

/** The greatest difference from the product in float64, whose kernel is another one. */
function errorOf(actual: Tensor, a: Tensor, b: Tensor): number {
  const exact = a.to('float64').unsqueeze(2).mul(b.to('float64').unsqueeze(0)).sum(1)
  expect(actual.shape).toEqual(exact.shape)
  return actual.to('float64').sub(exact).abs().max().item() as number
}

const sizes = fc.record({ m: fc.integer({ min: 1, max: 13 }), n: fc.integer({ min: 1, max: 37 }), k: fc.integer({ min: 1, max: 21 }) })

describe('matrix products', () => {
  it('are right for all sizes around the tile, plain and transposed', () => {
    fc.assert(
      fc.property(sizes, fc.boolean(), fc.boolean(), ({ m, n, k }, turnA, turnB) => {
        torch.manualSeed(m * 1000 + n * 10 + k)
        const a = turnA ? torch.randn([k, m]).transpose(0, 1) : torch.randn([m, k])
        const b = turnB ? torch.randn([n, k]).transpose(0, 1) : torch.randn([k, n])
        expect(errorOf(a.mm(b), a, b)).toBeLessThan(1e-4)
      }),
      { numRuns: 60 },
    )
  })

  it('of few rows or columns are right, eager and compiled, with a bias and operators after it', () => {
    const f = (x: Tensor, y: Tensor, z: Tensor): Tensor => torch.relu(torch.nn.functional.linear(x, y, z)).add(1)
    for (const [m, n, k] of [
      [1, 33, 17],
      [3, 8, 40],
      [9, 2, 5],
      [21, 4, 64],
      [1, 1, 19],
      [2, 3, 1],
      [5, 13, 21],
      [8, 9, 64],
    ] as const)
      for (const turned of [false, true]) {
        const [x, z] = [torch.randn([m, k]), torch.randn([n])]
        const y = turned ? torch.randn([k, n]).t() : torch.randn([n, k])
        const exact = f(x.double(), y.double(), z.double())
        for (const g of [f, compile(f)]) expect(g(x, y, z).double().sub(exact).abs().max().item()).toBeLessThan(1e-5 * k)
      }
  })

  it('of few rows or columns are added in the order of the depth if they are strict, each product and each sum rounded', () => {
    const f = (x: Tensor, y: Tensor): Tensor => x.mm(y)
    const [m, n, k] = [2, 11, 50]
    const [x, y] = [torch.randn([m, k]), torch.randn([k, n])]
    const [a, b] = [x.toTypedArray(), y.toTypedArray()]
    const inOrder = Float32Array.from({ length: m * n }, (_, at) => {
      const [i, j] = [Math.floor(at / n), at % n]
      let sum = 0
      for (let d = 0; d < k; d++) sum = Math.fround(sum + Math.fround(Number(a[i * k + d]) * Number(b[d * n + j])))
      return sum
    })
    expect(compile(f, { options: { strict: true } })(x, y).toTypedArray()).toEqual(inOrder)
    expect(compile(f, { options: { strict: true } })(x, y.t().contiguous().t()).toTypedArray()).toEqual(inOrder)
    torch.useDeterministicAlgorithms(true)
    try {
      expect(f(x, y).toTypedArray()).toEqual(inOrder)
      expect(f(y.t(), x.t()).t().contiguous().toTypedArray()).toEqual(inOrder)
    } finally {
      torch.useDeterministicAlgorithms(false)
    }
  })

  it('pass through an epilogue with vectors and single elements', () => {
    const a = torch.randn([7, 9])
    const b = torch.randn([9, 21])
    const bias = torch.randn([21])
    const f = (x: Tensor, y: Tensor, z: Tensor): Tensor => torch.relu(x.mm(y).add(z)).mul(2)
    expect(
      compile(f)(a, b, bias)
        .sub(f(a, b, bias))
        .abs()
        .max()
        .item(),
    ).toBeLessThan(1e-5)
  })

  it('pass through an epilogue in float64, which has no vectors', () => {
    const a = torch.randn([5, 8])
    const b = torch.randn([8, 10])
    const f = (x: Tensor, y: Tensor): Tensor => x.mm(y).to('float64').mul(0.1)
    const [eager, compiled] = [f(a, b), compile(f)(a, b)]
    expect(compiled.dtype).toBe('float64')
    expect(compiled.sub(eager).abs().max().item()).toBeLessThan(1e-6)
  })

  it('with no rows, no columns or no depth give empty results and zeros', () => {
    expect(torch.randn([0, 3]).mm(torch.randn([3, 4])).shape).toEqual([0, 4])
    expect(torch.randn([2, 3]).mm(torch.randn([3, 0])).shape).toEqual([2, 0])
    expect(
      torch
        .randn([2, 0])
        .mm(torch.randn([0, 3]))
        .toArray(),
    ).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ])
  })
})
