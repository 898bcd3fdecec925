// The product schedule: its scratch memory, its code, packed operands, and the order of its sums. What it computes: everySchedule.test.ts.
import { describe, expect, test } from 'vitest'
import { withStrict } from '../../../src/kernels/engine/computing.ts'
import type { GemmSpec, MatrixOperand } from '../../../src/kernels/schedules/gemmSpec.ts'
import { at, bufferParam, call, loopVar, store } from '../../../src/kernels/ir/loopIr.ts'
import type { BufferParam, Expr } from '../../../src/kernels/ir/loopIr.ts'
import { scratchBytes } from '../../../src/kernels/ir/scratchLayout.ts'
import { gemm, gemmScratchBytes, packedElements, packedGemm } from '../../../src/kernels/schedules/gemm.ts'
import { emitKernel } from '../../../src/kernels/emit/emit.ts'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { drawAnyProduct, drawPackable, withoutSigns } from '../problems/products.ts'
import { numbersOf, runWasm } from '../harness.ts'

const { int: random } = randomFrom(11)

describe('the product schedule', () => {
  test('needs no more scratch memory than is said, and at most 8 KB of code', () => {
    for (let i = 0; i < 60; i++) {
      const { spec, args, what } = drawAnyProduct(randomFrom(i))
      for (const tile of gemm.tiles(i % 2 === 0 ? 'wasm-relaxed' : 'wasm')) {
        const kernel = gemm.build(gemm.spec(spec), tile)
        const size = (name: 'm' | 'n' | 'k'): number => Number(args[name])
        const bytes = scratchBytes(kernel, ({ name }) => Number(args[name]))
        expect(bytes, what).toBeLessThanOrEqual(gemmScratchBytes(size('m'), size('n'), size('k')))
        if (typeof spec.rows.extent === 'number') expect(emitKernel(kernel).length, what).toBeLessThan(8192)
      }
    }
  })

  test('takes a B that was packed before only where that is the same B for all batches, and computes the same', () => {
    let taken = 0
    for (let i = 0; i < 120; i++) {
      const { spec, args, expected, what } = drawPackable(randomFrom(i))
      const elements = packedElements(spec)
      if (elements === null) continue
      taken++
      const { pack, product } = packedGemm(spec, { rows: 4, columns: 8, together: 4, packsRows: i % 2 === 0 })
      const { packed } = runWasm(pack, { ...args, packed: new Float32Array(elements) })
      const { out } = runWasm(product, { ...args, b: packed ?? 0 })
      expect(withoutSigns(numbersOf('float32', out)), what).toEqual(withoutSigns(expected.map(Math.fround)))
    }
    expect(taken).toBeGreaterThan(10)
  })

  test('writes a long epilogue once for all tiles', () => {
    const lengthOf = (operations: number): number => {
      const [out, a, b] = [bufferParam('out', 'float32', 'write'), bufferParam('a', 'float32'), bufferParam('b', 'float32')]
      const [rows, cols] = [loopVar('i', 15), loopVar('j', 29)]
      const operand = (buffer: BufferParam): MatrixOperand => ({ buffer, rowStride: 64, colStride: 1, batchStrides: [] })
      const long = (sum: Expr): Expr => Array.from({ length: operations }).reduce<Expr>((x) => call('max', call('neg', x), sum), sum)
      const spec: GemmSpec = {
        ...{ name: 'product', batch: [], rows, cols, depth: 7, a: operand(a), b: operand(b), reduceBatch: 0 },
        epilogue: (sum) => [store(out, at([rows, 29], [cols, 1]), long(sum))],
        params: [out, a, b, bufferParam('scratch', 'float32', 'readwrite')],
      }
      return emitKernel(gemm.build(spec, { rows: 4, columns: 8, together: 4, packsRows: false })).length
    }
    // Written out it would be there for 8 vectors of a tile, for two heights and two widths of tiles.
    expect(lengthOf(40) - lengthOf(20)).toBeLessThan(3000)
  })

  test('adds products in the order of the depth, rounded one by one, in strict code', () => {
    const value = (): number => Math.fround((random(2 ** 24) - 2 ** 23) / 2 ** 20)
    for (const [m, n, k] of [
      [5, 11, 70],
      [9, 8, 33],
    ] as const) {
      for (const turned of [false, true]) {
        const [x, y] = [Float32Array.from({ length: m * k }, value), Float32Array.from({ length: k * n }, value)]
        const [out, a, b, scratch] = [
          bufferParam('out', 'float32', 'write'),
          bufferParam('a', 'float32'),
          bufferParam('b', 'float32'),
          bufferParam('scratch', 'float32', 'readwrite'),
        ]
        const [rows, cols] = [loopVar('i', m), loopVar('j', n)]
        const spec: GemmSpec = {
          name: 'product',
          batch: [],
          rows,
          cols,
          depth: k,
          a: { buffer: a, rowStride: turned ? 1 : k, colStride: turned ? m : 1, batchStrides: [] },
          b: { buffer: b, rowStride: turned ? 1 : n, colStride: turned ? k : 1, batchStrides: [] },
          reduceBatch: 0,
          epilogue: (sum) => [store(out, at([rows, n], [cols, 1]), sum)],
          params: [out, a, b, scratch],
        }
        const expected = Array.from({ length: m * n }, (_, e) => {
          const [i, j] = [Math.floor(e / n), e % n]
          let sum = 0
          for (let d = 0; d < k; d++)
            sum = Math.fround(sum + Math.fround((x[turned ? d * m + i : i * k + d] ?? NaN) * (y[turned ? j * k + d : d * n + j] ?? NaN)))
          return sum
        })
        for (const tile of gemm.tiles('wasm')) {
          const result = withStrict(true, () => runWasm(gemm.build(gemm.spec(spec), tile), { out: new Float32Array(m * n), a: x, b: y }))
          expect(Array.from(result['out'] as Float32Array)).toEqual(expected)
        }
      }
    }
  })
})
