// The product schedule: its scratch memory, its code, and the order of its sums. What it computes: everySchedule.test.ts.
import { describe, expect, test } from 'vitest'
import { withStrict } from '../../src/kernels/engine.ts'
import type { GemmSpec } from '../../src/kernels/gemmSpec.ts'
import { at, bufferParam, loopVar, store } from '../../src/kernels/loopIr.ts'
import { scratchBytes } from '../../src/kernels/scratchLayout.ts'
import { gemm, gemmScratchBytes } from '../../src/kernels/schedules/gemm.ts'
import { emitKernel } from '../../src/kernels/wasm/emit.ts'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { drawAnyProduct } from './problems/products.ts'
import { runWasm } from './harness.ts'

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
