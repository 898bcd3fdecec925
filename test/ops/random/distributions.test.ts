// What the random operators of distributions draw: their frequencies and moments, with a fixed seed.
import { beforeEach, describe, expect, it } from 'vitest'
import { ArgumentError, DTypeError, ShapeError, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const N = 20_000
const moments = (x: Tensor): readonly [number, number] => [x.mean().item(), x.var().item()]
beforeEach(() => torch.manualSeed(7))

describe('multinomial', () => {
  it('draws each position as often as its weight says, with replacement', () => {
    const drawn = torch.multinomial(torch.tensor([1, 0, 3, 4]), N, true)
    const shares = [0, 1, 2, 3].map((k) => drawn.eq(k).float().mean().item())
    expect(shares[1]).toBe(0)
    for (const [k, share] of [0.125, 0, 0.375, 0.5].entries()) expect(Math.abs((shares[k] ?? NaN) - share)).toBeLessThan(0.015)
  })

  it('draws each position once without replacement, the likely ones first', () => {
    const drawn = torch.multinomial(torch.tensor([1, 2, 7]).repeat(N / 10, 1), 3)
    expect(
      drawn
        .sort(1)[0]
        .ne(torch.tensor([0, 1, 2], { dtype: 'int64' }))
        .any()
        .item(),
    ).toBe(false)
    expect(Math.abs(drawn.select(1, 0).eq(2).float().mean().item() - 0.7)).toBeLessThan(0.05)
  })

  it('refuses what it cannot draw', () => {
    expect(() => torch.multinomial(torch.ones([2]), 3)).toThrow(/cannot draw 3 of 2 positions without replacement/)
    expect(() => torch.multinomial(torch.ones([2]), 0)).toThrow(ArgumentError)
    expect(() => torch.multinomial(torch.ones([2]).int(), 1)).toThrow(DTypeError)
    expect(() => torch.multinomial(torch.ones([2, 2, 2]), 1)).toThrow(ShapeError)
  })
})

describe('poisson', () => {
  it.each([0.3, 4, 250])('has the mean and the variance %d', (rate) => {
    const [mean, variance] = moments(torch.poisson(torch.full([N], rate)))
    expect(Math.abs(mean / rate - 1)).toBeLessThan(0.05)
    expect(Math.abs(variance / rate - 1)).toBeLessThan(0.1)
  })

  it('refuses negative rates and integers', () => {
    expect(() => torch.poisson(torch.tensor([-1]))).toThrow(/rates must not be negative, got -1/)
    expect(() => torch.poisson(torch.tensor([1]).int())).toThrow(DTypeError)
  })
})

describe('other distributions', () => {
  it('exponential_ has the mean 1 / lambd, bernoulli_ the mean p, normal what it was told', () => {
    const [mean, variance] = moments(torch.empty([N]).exponential_(2))
    expect([mean, variance].map((v) => Math.round(v * 20) / 20)).toEqual([0.5, 0.25])
    expect(Math.abs(torch.empty([N]).bernoulli_(0.3).mean().item() - 0.3)).toBeLessThan(0.02)
    const [center, spread] = moments(torch.normal(torch.full([N], 5), 2))
    expect(Math.abs(center - 5)).toBeLessThan(0.05)
    expect(Math.abs(spread - 4)).toBeLessThan(0.2)
    expect(torch.normal(torch.zeros([2, 1]), torch.ones([3])).shape).toEqual([2, 3])
  })

  it('refuse parameters out of range', () => {
    const x = torch.zeros([2])
    expect(() => x.exponential_(0)).toThrow(ArgumentError)
    expect(() => x.bernoulli_(1.5)).toThrow(/p must be a Tensor or a number between 0 and 1, got 1.5/)
    expect(() => torch.normal(x, -1)).toThrow(/std must be a Tensor or a number of at least 0, got -1/)
    expect(() => torch.normal(0, 1, null as never)).toThrow(/give 'size' if mean and std are numbers, and only then; got size null/)
    expect(() => torch.normal(x, 1, [2] as never)).toThrow(/and only then; got size \[2\]/)
    expect(() => torch.normal('0' as never, x)).toThrow(/mean must be a Tensor or a number, got '0'/)
    expect(() => x.geometric_(1)).toThrow(/geometric_: p must be between 0 and 1, got 1/)
    expect(() => x.cauchy_(0, 0)).toThrow(/sigma must be positive/)
    expect(() => x.logNormal_(0, -1)).toThrow(/std must be positive/)
    expect(() => x.random_(3, 3)).toThrow(/low < high, got low=3 and high=3/)
    for (const fill of [(t: Tensor) => t.cauchy_(), (t: Tensor) => t.logNormal_()])
      expect(() => fill(torch.zeros([2]).int())).toThrow(/self must be floating, got int32/)
  })

  it('have the statistics of their distributions', () => {
    torch.manualSeed(4)
    const x = (fill: (t: Tensor) => Tensor): number[] => [...fill(torch.zeros([20_000])).toTypedArray()].map(Number)
    const part = (values: number[], holds: (v: number) => boolean): number => values.filter(holds).length / values.length
    expect(
      part(
        x((t) => t.cauchy_(2, 3)),
        (v) => Math.abs(v - 2) < 3,
      ),
    ).toBeCloseTo(0.5, 1)
    expect(
      part(
        x((t) => t.logNormal_(1, 0.5)),
        (v) => v < Math.E,
      ),
    ).toBeCloseTo(0.5, 1)
    const trials = x((t) => t.geometric_(0.25))
    expect(trials.reduce((a, b) => a + b) / trials.length).toBeCloseTo(4, 0)
    expect(part(trials, (v) => v === 1)).toBeCloseTo(0.25, 1)
    const large = torch.zeros([1000]).long().random_()
    expect(Number(large.max().item())).toBeGreaterThan(2 ** 52)
  })
})
