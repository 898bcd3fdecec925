// Forms of operators that captured PyTorch graphs call, beyond their value cases: what they write, which layouts they make, and what they refuse.
import { describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const F = torch.nn.functional

describe('native norms', () => {
  it('update running statistics as F.batchNorm does', () => {
    torch.manualSeed(1)
    const x = torch.randn([4, 3, 2])
    const fresh = (): readonly [Tensor, Tensor] => [torch.zeros([3]), torch.ones([3])]
    const [expected, legit, update, native] = [fresh(), fresh(), fresh(), fresh()]
    const out = F.batchNorm(x, ...expected, { training: true, momentum: 0.3 })
    expect(torch.equal(torch.nativeBatchNorm(x, null, null, ...native, true, 0.3, 1e-5)[0], out)).toBe(true)
    expect(torch.equal(torch._nativeBatchNormLegit(x, null, null, ...legit, true, 0.3, 1e-5)[0], out)).toBe(true)
    const written = compile((a: Tensor) => torch._batchNormWithUpdate(a, null, null, ...update, 0.3, 1e-5)[0])(x)
    expect(torch.allclose(written, out)).toBe(true)
    for (const stats of [legit, update, native]) stats.forEach((t, i) => expect(torch.allclose(t, expected[i] ?? x)).toBe(true))
  })

  it('say what is missing', () => {
    const x = torch.zeros([2, 3])
    expect(() => torch.nativeBatchNorm(x, null, null, null, null, false, 0.1, 1e-5)).toThrow(
      "arguments 'runningMean' and 'runningVar' are missing; they are needed unless training is true",
    )
    expect(() => Reflect.apply(torch._nativeBatchNormLegit, null, [x, null, null, true, 0.1])).toThrow('torch._native_batch_norm_legit: ')
    expect(() => torch.nativeGroupNorm(x, null, null, 2, 3, 1, 2, 1e-5)).toThrow('group must divide the 3 channels, got 2')
    expect(() => torch.nativeGroupNorm(x, null, null, 2, 3, 2, 3, 1e-5)).toThrow('N C HxW = 12 elements, got shape [2, 3]')
  })
})

describe('tensors with chosen strides', () => {
  it('have them', () => {
    expect(torch.emptyStrided([2, 3], [1, 2]).stride()).toEqual([1, 2])
    expect(torch.emptyStrided([2, 3], [0, 5]).stride()).toEqual([0, 5])
    expect(torch.ones([1]).newEmptyStrided([2, 2], [20, 10], { dtype: 'float64' }).stride()).toEqual([20, 10])
    expect(torch.emptyPermuted([2, 3, 5], [1, 2, 0]).stride()).toEqual([1, 10, 2])
  })

  it('can require gradients, in compiled programs too', () => {
    const x = torch.emptyStrided([2], [3], { requiresGrad: true })
    expect([x.requiresGrad, x.isLeaf]).toEqual([true, true])
    expect(torch.emptyPermuted([2, 3], [1, 0], { requiresGrad: true }).isLeaf).toBe(true)
    const fn = (a: Tensor): Tensor => a.newEmptyStrided([2, 3], [1, 2]).copy_(a).mul(2)
    const input = torch.arange(6, { dtype: 'float32' }).view(2, 3)
    expect(torch.equal(compile(fn)(input), fn(input))).toBe(true)
  })

  it('refuse what is no layout', () => {
    expect(() => torch.emptyStrided([2, 3], [1])).toThrow('size and stride must have the same length')
    expect(() => torch.emptyStrided([2], [-1])).toThrow("argument 'stride' must hold integers of at least 0")
    expect(() => torch.emptyStrided([-2], [1])).toThrow("argument 'size' must hold integers of at least 0")
    expect(() => torch.emptyPermuted([2, 3], [0, 2])).toThrow('physical_layout must name each of the 2 dimensions once')
    expect(() => torch.emptyPermuted([2, 3], [0, -1])).toThrow('physical_layout must name each of the 2 dimensions once')
  })
})

describe('histogramdd', () => {
  it('counts points in cells as a loop does, in eager and compiled', () => {
    torch.manualSeed(2)
    const points = torch.rand([200, 2], { dtype: 'float64' }).mul(4)
    const bins = [4, torch.tensor([0, 1, 2.5, 4], { dtype: 'float64' })] as const
    const run = (x: Tensor): Tensor => torch.histogramdd(x, bins, { range: [0, 4, 0, 4] })[0]
    const expected = Array.from({ length: 4 }, () => [0, 0, 0])
    for (const [x = 0, y = 0] of points.toArray() as readonly (readonly number[])[]) {
      const row = expected[Math.min(3, Math.floor(x))]
      const column = y < 1 ? 0 : y < 2.5 ? 1 : 2
      if (row !== undefined) row[column] = (row[column] ?? 0) + 1
    }
    expect(run(points).toArray()).toEqual(expected)
    expect(compile(run)(points).toArray()).toEqual(expected)
  })

  it('is a density whose integral is 1, with weights', () => {
    const points = torch.tensor([
      [0, 0],
      [1, 4],
    ])
    const [counts, edges] = torch.histogramdd(points, 2, { weight: torch.tensor([1, 3]), density: true })
    expect(counts.toArray()).toEqual([
      [0.25, 0],
      [0, 0.75],
    ])
    expect(edges.map((edge) => edge.toArray())).toEqual([
      [0, 0.5, 1],
      [0, 2, 4],
    ])
  })

  it('has the last edge exactly where the range ends', () => {
    const x = torch.tensor([0.1, 0.7, 5.1067])
    for (const bins of [1, 3, 7, 10]) {
      const [counts, edges] = torch.histogram(x, bins)
      expect(counts.sum().item()).toBe(3)
      expect(edges.getitem([-1]).item()).toBe(x.max().item())
    }
  })

  it('refuses bins, ranges and weights that do not fit', () => {
    const x = torch.zeros([5, 2])
    expect(() => torch.histogramdd(x, [1, 1, 1])).toThrow('bins must hold one item for each of the 2 coordinates, got 3')
    expect(() => torch.histogramdd(x, [0, 1])).toThrow('bins must be a positive number or a Tensor of edges, got 0')
    expect(() => torch.histogramdd(x, 2, { range: [0, 1] })).toThrow('range must hold two numbers for each of the 2 coordinates')
    expect(() => torch.histogramdd(x, 2, { weight: torch.ones([4]) })).toThrow('weight must have the shape [5], got [4]')
    expect(() => torch.histogramdd(torch.zeros([5]), 2)).toThrow('at least 2 dimensions')
    expect(() => torch.histogram(torch.zeros([5]), torch.zeros([2]).double())).toThrow('edges must have the dtype of the elements')
  })
})

it('operators that take a number first need a tensor second', () => {
  for (const fn of [torch.pow, torch.xlogy, torch.floatPower, torch.special.xlog1py, torch.special.zeta, torch.special.hermitePolynomialH])
    expect(() => Reflect.apply(fn, null, [2, 3])).toThrow('one of the arguments must be a Tensor')
  expect(torch.pow(2, torch.tensor([3])).toArray()).toEqual([8])
})

it('numbers of modes of gridSampler that there are not are refused', () => {
  const [image, grid] = [torch.zeros([1, 1, 2, 2]), torch.zeros([1, 1, 1, 2])]
  expect(() => torch.gridSampler2d(image, grid, 3, 0, true)).toThrow('interpolation_mode must be a number from 0 (bilinear, nearest, bicubic), got 3')
  expect(() => torch.gridSampler3d(image, grid, 0, 0, true)).toThrow('torch.grid_sampler_3d: expected an input of 5 dimensions')
})

it('recurrences give NaN for degrees that would take seconds an element (difference: degree-limit)', () => {
  const { laguerrePolynomialL, legendrePolynomialP, chebyshevPolynomialT } = torch.special
  const degrees = torch.tensor([2 ** 20, 2 ** 20 + 1, 2 ** 31])
  for (const [polynomial, x] of [
    [laguerrePolynomialL, 0.5],
    [legendrePolynomialP, 0.5],
  ] as const)
    expect(polynomial(x, degrees).isnan().toArray()).toEqual([false, true, true])
  expect(
    chebyshevPolynomialT(0.5, torch.tensor([2 ** 31]))
      .isnan()
      .toArray(),
  ).toEqual([false])
})
