// Products with few rows or columns: their scratch memory, and which products are such. What they compute: everySchedule.test.ts.
import { describe, expect, test } from 'vitest'
import type { GemmSpec, MatrixOperand } from '../../../src/kernels/schedules/gemmSpec.ts'
import { bufferParam, loopVar, sizeParam } from '../../../src/kernels/ir/loopIr.ts'
import type { Size } from '../../../src/kernels/ir/loopIr.ts'
import { scratchBytes } from '../../../src/kernels/ir/scratchLayout.ts'
import { skinnyAcross, skinnyAlong, skinnyScratchBytes } from '../../../src/kernels/schedules/skinny.ts'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { drawSkinnyProduct, skinnyKernels } from '../problems/products.ts'

describe('skinny products', () => {
  test('need no more scratch memory than is said', () => {
    for (let i = 0; i < 60; i++) {
      const { spec, args, what } = drawSkinnyProduct(randomFrom(i))
      const kernels = skinnyKernels(spec)
      expect(kernels.length, what).toBeGreaterThan(0)
      const of = (name: 'm' | 'n' | 'k'): number => Number(args[name])
      for (const kernel of kernels)
        expect(
          scratchBytes(kernel, ({ name }) => Number(args[name])),
          what,
        ).toBeLessThanOrEqual(skinnyScratchBytes(of('m'), of('n'), of('k')))
    }
  })

  test('need few known rows or columns, and neighbours in the large operand', () => {
    const operand = (rowStride: Size, colStride: Size): MatrixOperand => ({
      buffer: bufferParam('x', 'float32'),
      rowStride,
      colStride,
      batchStrides: [],
    })
    const [n, five, four] = [sizeParam('n'), loopVar('i', 5), loopVar('i', 4)]
    const { spec } = drawSkinnyProduct(randomFrom(1))
    const taken = (problem: Partial<GemmSpec>): string => {
      const all = { ...spec, batch: [], rows: four, cols: five, a: operand(9, 2), b: operand(9, 2), ...problem }
      return `${skinnyAlong.match(all) ? 'along' : ''} ${skinnyAcross.match(all) ? 'across' : ''}`.trim()
    }
    expect(taken({ b: operand(1, 9) })).toBe('along')
    expect(taken({ b: operand(9, 1) })).toBe('across')
    expect(taken({})).toBe('')
    expect(taken({ b: operand(1, 9), rows: five })).toBe('along')
    expect(taken({ b: operand(9, 1), rows: five })).toBe('')
    expect(taken({ b: operand(1, 9), rows: loopVar('i', 9) })).toBe('')
    expect(taken({ a: operand(9, 1), rows: five, cols: four })).toBe('along')
    expect(taken({ a: operand(1, 9), rows: five, cols: four })).toBe('across')
    expect(taken({ b: operand(1, 9), rows: loopVar('i', n) })).toBe('')
    expect(taken({ b: operand(1, 9), rows: loopVar('i', 0) })).toBe('')
    expect(taken({ b: operand(1, 9), reduceBatch: 1 })).toBe('')
    expect(taken({ a: operand(9, 1), b: operand(n, 1), cols: four })).toBe('along across')
  })
})
