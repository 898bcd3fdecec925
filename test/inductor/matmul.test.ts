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
