// Products with few rows or columns, for every tile and both engines, against the reference interpreter and against float64: sizes around tiles, strides, batches,
// epilogues, NaN and infinities.
import { describe, expect, test } from 'vitest'
import { withStrict } from '../../src/kernels/engine.ts'
import type { EngineName } from '../../src/kernels/engine.ts'
import type { GemmSpec, MatrixOperand } from '../../src/kernels/gemmSpec.ts'
import { at, bufferParam, call, cast, iota, load, loopVar, sizeParam, store } from '../../src/kernels/loopIr.ts'
import type { BufferParam, Kernel, Size } from '../../src/kernels/loopIr.ts'
import { scratchBytes } from '../../src/kernels/scratchLayout.ts'
import { skinnyAcross, skinnyAlong, skinnyScratchBytes } from '../../src/kernels/schedules/skinny.ts'
import { runOracle, runWasm } from './harness.ts'
import type { Args } from './harness.ts'
import { verifyKernel } from '../../src/kernels/verify.ts'

let state = 7
const random = (below: number): number => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return Math.floor((state / 2 ** 32) * below)
}
const pick = <T>(values: readonly [T, ...T[]]): T => values[random(values.length)] ?? values[0]

interface Case {
  readonly spec: GemmSpec
  readonly args: Args
  readonly expected: readonly number[]
}

/** out[z, i, j] = max(sum + bias[j], i - 100), with few rows or columns; lines of operands lie apart, in either order, and one problem of two has run-time sizes. */
function draw(): Case {
  const few = 1 + random(4)
  const lines = pick([0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31])
  const [swapped, symbolic] = [random(2) === 1, random(2) === 1]
  const [m, n] = swapped ? [lines, few] : [few, lines]
  const k = pick([0, 1, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 64, 67])
  const batch = pick([1, 1, 2, 3, 0])
  const [aTurned, bTurned, shared] = [random(2) === 1, random(2) === 1, random(3) === 0]
  const [aLine, bLine] = [(aTurned ? m : k) + random(3), (bTurned ? n : k) + random(3)]
  const [aSize, bSize] = [(aTurned ? k : m) * aLine, (bTurned ? k : n) * bLine]
  const sizes: Record<string, number> = { batch, m, n, k, aLine, bLine, a0: shared ? 0 : aSize, b0: bSize, o0: m * n }
  const params = Object.fromEntries(Object.keys(sizes).map((name) => [name, sizeParam(name)]))
  const fixed = swapped ? 'n' : 'm'
  const size = (name: string): Size => (symbolic && name !== fixed ? (params[name] ?? 0) : (sizes[name] ?? 0))
  const [out, a, b, bias] = [
    bufferParam('out', 'float32', 'write'),
    bufferParam('a', 'float32'),
    bufferParam('b', 'float32'),
    bufferParam('bias', 'float32'),
  ]
  const [z, rows, cols] = [loopVar('z', size('batch')), loopVar('i', size('m')), loopVar('j', size('n'))]
  const operand = (buffer: BufferParam, name: 'a' | 'b', depthIsColumn: boolean, turned: boolean): MatrixOperand => {
    const [line, depth] = turned ? [1, size(`${name}Line`)] : [size(`${name}Line`), 1]
    return { buffer, rowStride: depthIsColumn ? line : depth, colStride: depthIsColumn ? depth : line, batchStrides: [size(`${name}0`)] }
  }
  const spec: GemmSpec = {
    name: 'skinny',
    batch: [z],
    rows,
    cols,
    depth: size('k'),
    a: operand(a, 'a', true, aTurned),
    b: operand(b, 'b', false, bTurned),
    reduceBatch: 0,
    epilogue: (sum) => [
      store(
        out,
        at([z, size('o0')], [rows, size('n')], [cols, 1]),
        call(
          'max',
          call('add', sum, load(bias, at([cols, 1]))),
          cast(call('sub', iota(rows), { kind: 'const', dtype: 'int32', value: 100 }), 'float32'),
        ),
      ),
    ],
    params: [out, a, b, bias, ...(symbolic ? Object.values(params) : []), bufferParam('scratch', 'float32', 'readwrite')],
  }
  const odd = random(4) === 0
  // Small integers: every order of sums gives the same bits.
  const value = (): number => (odd && random(40) === 0 ? pick([NaN, Infinity, -Infinity, -0, 1e-45]) : random(17) - 8)
  const data = (count: number): Float32Array => Float32Array.from({ length: count }, value)
  const [A, B, C] = [data(batch * aSize), data(batch * bSize), data(n)]
  const element = (of: Float32Array, first: number, turned: boolean, stride: number, line: number, depth: number): number =>
    of[first + (turned ? depth * stride + line : line * stride + depth)] ?? NaN
  const expected: number[] = []
  for (let y = 0; y < batch; y++)
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        let sum = 0
        for (let d = 0; d < k; d++) sum += element(A, y * (sizes['a0'] ?? 0), aTurned, aLine, i, d) * element(B, y * bSize, bTurned, bLine, j, d)
        expected.push(Math.fround(Math.max(sum + (C[j] ?? NaN), i - 100)))
      }
  return { spec, args: { out: new Float32Array(batch * m * n), a: A, b: B, bias: C, ...sizes }, expected }
}

/** The kernels of a problem: with every tile of every schedule that takes it. */
const kernelsFor = (spec: GemmSpec, engine: EngineName): Kernel[] => [
  ...(skinnyAlong.match(spec) ? skinnyAlong.tiles(engine).map((tile) => skinnyAlong.build(skinnyAlong.spec(spec), tile)) : []),
  ...(skinnyAcross.match(spec) ? skinnyAcross.tiles(engine).map((tile) => skinnyAcross.build(skinnyAcross.spec(spec), tile)) : []),
]

const withoutSigns = (values: ArrayLike<number>): number[] => Array.from(values, (x) => x + 0)

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
    expect(taken({ b: operand(1, 9), rows: five })).toBe('')
    expect(taken({ a: operand(9, 1), rows: five, cols: four })).toBe('along')
    expect(taken({ a: operand(1, 9), rows: five, cols: four })).toBe('across')
    expect(taken({ b: operand(1, 9), rows: loopVar('i', n) })).toBe('')
    expect(taken({ b: operand(1, 9), rows: loopVar('i', 0) })).toBe('')
    expect(taken({ b: operand(1, 9), reduceBatch: 1 })).toBe('')
    expect(taken({ a: operand(9, 1), b: operand(n, 1), cols: four })).toBe('along across')
  })
})
