// Transposes of matrices whose rows lie a multiple of 4,096 bytes apart: their blocks are collected in scratch memory, and where there is no room for that, they are not.
import { describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { withFailingAllocation } from 'tensorfx/kernels'

const dtypes = ['float32', 'float64', 'int16', 'int8'] as const
const strides = { float32: 1024, float64: 1024, int16: 2048, int8: 4096 } as const

/** Rows of whole numbers in memory with so many elements from row to row. */
const matrix = (rows: number, columns: number, dtype: (typeof dtypes)[number]): Tensor =>
  torch
    .arange(rows * strides[dtype])
    .remainder(113)
    .to(dtype)
    .view([rows, strides[dtype]])
    .narrow(1, 3, columns)

const scratch = (): number => torch.memory.stats().scratch.allocated

const turned = (x: Tensor): Tensor => x.t().contiguous()
const added = (x: Tensor): Tensor => x.t().add(x.t().clone().mul(0))
const modes: Readonly<Record<'eager' | 'compiled', (f: (x: Tensor) => Tensor) => (x: Tensor) => Tensor>> = {
  eager: (f) => f,
  compiled: (f) => compile(f),
}

describe.each(['eager', 'compiled'] as const)('a transpose of crowded lines, %s', (mode) => {
  test.each(dtypes)('has each element in its place, whole blocks or not: %s', (dtype) => {
    for (const f of [turned, added]) {
      const g = modes[mode](f)
      for (const [rows, columns] of [
        [64, 64],
        [80, 96],
        [77, 131],
        [130, 65],
      ] as const) {
        const x = matrix(rows, columns, dtype)
        const [y, expected] = [g(x).toArray() as number[][], x.toArray() as number[][]]
        for (let i = 0; i < rows; i++)
          for (let j = 0; j < columns; j++) if (y[j]?.[i] !== expected[i]?.[j]) expect.fail(`${rows}x${columns}: [${j}, ${i}]`)
      }
    }
  })
})

test('a transpose of crowded lines takes scratch memory, and does without', () => {
  const x = torch.randn([128, 1024])
  const expected = turned(x)
  const outcomes: boolean[] = []
  for (let nth = 1; ; nth++) {
    torch.memory.emptyCache()
    const before = scratch()
    const { failed, outcome } = withFailingAllocation(nth, () => turned(x))
    expect(turned(x).equal(expected)).toBe(true)
    expect(scratch()).toBeGreaterThan(before)
    if (!failed) break
    outcomes.push('returned' in outcome && outcome.returned.equal(expected))
  }
  // That of the result is the other one.
  expect(outcomes.filter(Boolean)).toHaveLength(1)
})
