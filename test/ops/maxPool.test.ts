// The maximum over windows has two kernels: one for calls that nothing records, and one with the positions that a backward pass needs.
import * as fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { FakeTensorMode, isWatched, withMode } from '../../src/dispatch/index.ts'
import { isComplexDType } from '../../src/kernels/index.ts'
import { dtypes } from '../../src/tensor/index.ts'

const { maxPool2d } = torch.nn.functional
const special = fc.constantFrom(NaN, -Infinity, Infinity, -0, 0, 1, 1, -2, 3.5)

test('without positions the values are those with positions, bit by bit: NaN, infinities, zeros of both signs, ties, padding', () => {
  fc.assert(
    fc.property(
      fc.array(special, { minLength: 30, maxLength: 30 }),
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 2 }),
      fc.integer({ min: 0, max: 1 }),
      fc.boolean(),
      (data, kernelSize, dilation, padding, ceilMode) => {
        const x = torch.tensor(data).reshape([1, 5, 6])
        const options = { stride: 1, padding: Math.min(padding, Math.floor(kernelSize / 2)), dilation, ceilMode }
        const [values] = maxPool2d(x, kernelSize, { ...options, returnIndices: true })
        const alone = maxPool2d(x, kernelSize, options)
        expect(alone.toArray()).toEqual(values.toArray())
      },
    ),
    { numRuns: 200 },
  )
})

/** With positions and without, of an image that is itself computed. */
const pooled = (image: Tensor, stride: number): readonly Tensor[] => [
  ...maxPool2d(image.neg(), 2, stride, 0, 1, false, true),
  maxPool2d(image.neg(), 2, stride),
]

test('compiled, the values and positions are those of eager mode, bit by bit', () => {
  const compiled = compile(pooled)
  fc.assert(
    fc.property(fc.array(special, { minLength: 24, maxLength: 24 }), fc.integer({ min: 1, max: 2 }), (data, stride) => {
      const x = torch.tensor(data).reshape([1, 1, 4, 6])
      const snapshot = (results: readonly Tensor[]): unknown => results.map((t) => t.toArray())
      expect(snapshot(compiled(x, stride))).toEqual(snapshot(pooled(x, stride)))
    }),
    { numRuns: 100 },
  )
})

test.each(dtypes.filter((dtype) => dtype !== 'bool' && !isComplexDType(dtype)))('%s: the same values with and without positions', (dtype) => {
  const x = torch
    .tensor([
      [
        [3, 1, 2, 9],
        [4, 4, 0, 5],
        [7, 6, 8, 1],
      ],
    ])
    .to(dtype)
  const alone = maxPool2d(x, 2, 1)
  expect(alone.dtype).toBe(dtype)
  expect(alone.toArray()).toEqual(maxPool2d(x, 2, 1, 0, 1, false, true)[0].toArray())
})

test('a window that holds only -Infinity has a position, also one that begins outside of the image', () => {
  const x = torch.full([1, 2, 2], -Infinity)
  expect(maxPool2d(x, 2, 1, 1, 1, false, true)[1].toArray()).toEqual([
    [
      [0, 0, 1],
      [0, 0, 1],
      [2, 2, 3],
    ],
  ])
})

test('calls are watched by a mode, and by a backward pass that will come', () => {
  const w = torch.ones([1]).requiresGrad_()
  expect([isWatched([torch.ones([1])]), isWatched([w]), torch.noGrad(() => isWatched([w]))]).toEqual([false, true, false])
  expect(withMode(new FakeTensorMode(), () => isWatched([torch.ones([1])]))).toBe(true)
})

describe('pools of any number of dimensions', () => {
  const F = torch.nn.functional
  const dtypes = ['int8', 'int16', 'int32', 'int64', 'uint8', 'float32'] as const

  it.each(dtypes)('the padding never wins over %s, and is never an index', (dtype) => {
    const least = dtype === 'float32' ? -Infinity : torch.iinfo(dtype).min
    for (const value of dtype === 'uint8' ? [0, 5] : [-3, least]) {
      const filled = (shape: number[]): Tensor => torch.tensor([value], { dtype }).expand(shape)
      const input = filled([1, 1, 2, 2, 2])
      const [values, indices] = F.maxPool3d(input, 2, { padding: 1, returnIndices: true })
      expect(torch.equal(values, input)).toBe(true)
      expect(indices.flatten().toArray()).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
      const [line, at] = F.adaptiveMaxPool1d(filled([1, 3]), 2, { returnIndices: true })
      expect([torch.equal(line, filled([1, 2])), at.toArray()]).toEqual([true, [[0, 1]]])
    }
  })

  it('a window that lies in the padding alone has the lowest value, in the volume as in the image', () => {
    for (const dtype of ['int32', 'float32'] as const) {
      const window = { padding: 1, dilation: 2 }
      const image = F.maxPool2d(torch.full([1, 1, 1], 4, { dtype }), 2, window)
      expect(
        F.maxPool3d(torch.full([1, 1, 1, 1], 4, { dtype }), 2, window)
          .flatten()
          .toArray(),
      ).toEqual(image.flatten().toArray())
    }
  })

  it('take an empty stride as the kernel size, as PyTorch does', () => {
    const stride: number[] = []
    const [line, image, volume] = [torch.rand([2, 6]), torch.rand([2, 6, 6]), torch.rand([2, 6, 6, 6])]
    for (const [given, usual] of [
      [F.maxPool1d(line, 2, stride), F.maxPool1d(line, 2)],
      [F.maxPool2d(image, 2, stride), F.maxPool2d(image, 2)],
      [F.maxPool3d(volume, 2, stride), F.maxPool3d(volume, 2)],
      [F.avgPool1d(line, 2, stride), F.avgPool1d(line, 2)],
      [F.avgPool2d(image, 2, stride), F.avgPool2d(image, 2)],
      [F.avgPool3d(volume, 2, stride), F.avgPool3d(volume, 2)],
      [F.lpPool1d(line, 2, 2, stride), F.lpPool1d(line, 2, 2)],
      [F.lpPool2d(image, 2, 2, stride), F.lpPool2d(image, 2, 2)],
      [F.lpPool3d(volume, 2, 2, stride), F.lpPool3d(volume, 2, 2)],
    ] as const)
      expect(given.toArray()).toEqual(usual.toArray())
  })

  it('take the same divisors, by position and by name', () => {
    const [image, volume] = [torch.ones([1, 2, 2]), torch.ones([1, 2, 2, 2])]
    expect(F.avgPool3d(volume, 2, null, 0, false, true, 4).toArray()).toEqual([[[[2]]]])
    expect(F.avgPool3d(volume, 2, { divisorOverride: 4 }).toArray()).toEqual([[[[2]]]])
    for (const divisorOverride of [1.5, 0, Number.NaN]) {
      expect(() => F.avgPool2d(image, 2, { divisorOverride })).toThrow(/avg_pool2d: .*divisor_?[oO]verride/)
      expect(() => F.avgPool3d(volume, 2, { divisorOverride })).toThrow(/avg_pool3d: .*divisor_?[oO]verride/)
    }
    // @ts-expect-error PyTorch's avg_pool1d has no divisor.
    expect(() => F.avgPool1d(torch.ones([1, 2]), 2, { divisorOverride: 3 })).toThrow(/divisorOverride/)
  })
})
