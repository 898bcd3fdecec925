// Products with few rows or columns, for every tile and both engines, against the reference interpreter and against float64: sizes around tiles, strides, batches,
// epilogues, NaN and infinities.
import { describe, expect, test } from 'vitest'
import { withStrict } from '../../src/kernels/engine.ts'
import type { EngineName } from '../../src/kernels/engine.ts'
import type { GemmSpec, MatrixOperand } from '../../src/kernels/gemmSpec.ts'
import { bufferParam, loopVar, sizeParam } from '../../src/kernels/loopIr.ts'
import type { Kernel, Size } from '../../src/kernels/loopIr.ts'
import { scratchBytes } from '../../src/kernels/scratchLayout.ts'
import { FEW_LINES, skinnyAcross, skinnyAlong, skinnyScratchBytes } from '../../src/kernels/schedules/skinny.ts'
import { verifyKernel } from '../../src/kernels/verify.ts'
import { drawProduct, randomFrom, withoutSigns } from './drawnProducts.ts'
import type { ProductCase } from './drawnProducts.ts'
import { runOracle, runWasm } from './harness.ts'

const random = randomFrom(7)

const draw = (): ProductCase =>
  drawProduct({
    random,
    sizes: () => {
      const few = 1 + random(FEW_LINES)
      const lines = [0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31][random(13)] ?? 0
      const k = [0, 1, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 64, 67][random(15)] ?? 0
      if (random(3) === 0) return { m: FEW_LINES + few, n: lines, k, known: 'm', bTurned: false }
      return random(2) === 1 ? { m: lines, n: few, k, known: 'n' } : { m: few, n: lines, k, known: 'm' }
    },
  })

/** The kernels of a problem: with every tile of every schedule that takes it. */
const kernelsFor = (spec: GemmSpec, engine: EngineName): Kernel[] => [
  ...(skinnyAlong.match(spec) ? skinnyAlong.tiles(engine).map((tile) => skinnyAlong.build(skinnyAlong.spec(spec), tile)) : []),
  ...(skinnyAcross.match(spec) ? skinnyAcross.tiles(engine).map((tile) => skinnyAcross.build(skinnyAcross.spec(spec), tile)) : []),
]

describe('skinny products', () => {
  test('are those of float64 and of the reference interpreter, for every tile and both engines', () => {
    for (let i = 0; i < Number(process.env['TENSORFX_FUZZ'] ?? 60); i++) {
      const { spec, args, expected } = draw()
      const kernels = kernelsFor(spec, i % 2 === 0 ? 'wasm-relaxed' : 'wasm')
      expect(kernels.length).toBeGreaterThan(0)
      for (const kernel of kernels) {
        const what = `problem ${i}, ${kernel.name}`
        verifyKernel(kernel)
        const oracle = runOracle(kernel, args)
        expect(withoutSigns(oracle['out'] as Float32Array), what).toEqual(withoutSigns(expected))
        for (const strict of [false, true]) {
          const wasm = withStrict(strict, () => runWasm(kernel, args))
          expect(wasm['out'], `${what}, strict ${strict}`).toEqual(oracle['out'])
        }
        const of = (name: 'm' | 'n' | 'k'): number => Number(args[name])
        expect(
          scratchBytes(kernel, ({ name }) => Number(args[name])),
          what,
        ).toBeLessThanOrEqual(skinnyScratchBytes(of('m'), of('n'), of('k')))
      }
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
    const { spec } = draw()
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
