// Random matrix products with their results, for the tests of the schedules that compute them.
import { at, bufferParam, call, cast, constant, iota, load, loopVar, sizeParam, store } from '../../src/kernels/loopIr.ts'
import type { BufferParam, Expr, Size } from '../../src/kernels/loopIr.ts'
import type { GemmSpec, MatrixOperand } from '../../src/kernels/gemmSpec.ts'
import type { Args } from './harness.ts'

export interface ProductCase {
  readonly spec: GemmSpec
  readonly args: Args
  readonly expected: readonly number[]
}

/** How the problems of a schedule are drawn. */
export interface ProductDraws {
  readonly random: (below: number) => number
  /** Rows, columns and depth. Those in `known` are never parameters of a call. Whether rows of B have neighbours is drawn where it is not said. */
  readonly sizes: () => { readonly m: number; readonly n: number; readonly k: number; readonly known?: 'm' | 'n'; readonly bTurned?: boolean }
  /** Whether some products are summed over the batch, have operands without neighbours, or epilogues in float64. Default false. */
  readonly all?: boolean
}

/** Numbers below a limit, from a seed. */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** out[z, i, j] = max(sum + bias[j], i - 100), or the sum alone; lines of operands lie apart, in either order, and one problem of two has run-time sizes. */
export function drawProduct({ random, sizes: drawSizes, all = false }: ProductDraws): ProductCase {
  const pick = <T>(values: readonly [T, ...T[]]): T => values[random(values.length)] ?? values[0]
  const { m, n, k, known, bTurned: bTurnedSaid } = drawSizes()
  const symbolic = random(2) === 1
  const batch = pick([1, 1, 2, 3, 0])
  const isSummed = all && random(3) === 0
  const [aTurned, bDrawn, shared] = [random(2) === 1, random(2) === 1, random(3) === 0]
  const bTurned = bTurnedSaid ?? bDrawn
  // Neighbours along one side lie that far apart.
  const [aStep, bStep] = all ? [pick([1, 1, 1, 2]), pick([1, 1, 1, 3])] : [1, 1]
  const [aLine, bLine] = [((aTurned ? m : k) + random(3)) * aStep, ((bTurned ? n : k) + random(3)) * bStep]
  const [aSize, bSize] = [(aTurned ? k : m) * aLine, (bTurned ? k : n) * bLine]
  const sizes: Record<string, number> = { batch, m, n, k, aLine, bLine, a0: shared ? 0 : aSize, b0: bSize, o0: m * n }
  const params = Object.fromEntries(Object.keys(sizes).map((name) => [name, sizeParam(name)]))
  const size = (name: string): Size => (symbolic && name !== known ? (params[name] ?? 0) : (sizes[name] ?? 0))
  const [out, a, b, bias] = [
    bufferParam('out', 'float32', 'write'),
    bufferParam('a', 'float32'),
    bufferParam('b', 'float32'),
    bufferParam('bias', 'float32'),
  ]
  const [z, rows, cols] = [loopVar('z', size('batch')), loopVar('i', size('m')), loopVar('j', size('n'))]
  const operand = (buffer: BufferParam, name: 'a' | 'b', depthIsColumn: boolean, turned: boolean, step: number): MatrixOperand => {
    const [line, depth] = turned ? [step, size(`${name}Line`)] : [size(`${name}Line`), step]
    return { buffer, rowStride: depthIsColumn ? line : depth, colStride: depthIsColumn ? depth : line, batchStrides: [size(`${name}0`)] }
  }
  const kind = pick(all ? ['sum', 'max', 'float64'] : ['max'])
  const finished = (sum: Expr): Expr => {
    if (kind === 'sum') return sum
    const least = cast(call('sub', iota(rows), constant('int32', 100)), 'float32')
    const most = call('max', call('add', sum, load(bias, at([cols, 1]))), least)
    return kind === 'max' ? most : cast(call('mul', cast(most, 'float64'), constant('float64', 2)), 'float32')
  }
  const spec: GemmSpec = {
    name: 'product',
    batch: [z],
    rows,
    cols,
    depth: size('k'),
    a: operand(a, 'a', true, aTurned, aStep),
    b: operand(b, 'b', false, bTurned, bStep),
    reduceBatch: isSummed ? 1 : 0,
    epilogue: (sum) => [store(out, isSummed ? at([rows, size('n')], [cols, 1]) : at([z, size('o0')], [rows, size('n')], [cols, 1]), finished(sum))],
    params: [out, a, b, bias, ...(symbolic ? Object.values(params) : []), bufferParam('scratch', 'float32', 'readwrite')],
  }
  const odd = random(4) === 0
  // Small integers: every order of sums gives the same bits.
  const value = (): number => (odd && random(40) === 0 ? pick([NaN, Infinity, -Infinity, -0, 1e-45]) : random(17) - 8)
  const data = (count: number): Float32Array => Float32Array.from({ length: count }, value)
  const [A, B, C] = [data((shared ? 1 : batch) * aSize), data(batch * bSize), data(n)]
  const element = (of: Float32Array, first: number, turned: boolean, step: number, stride: number, line: number, depth: number): number =>
    of[first + (turned ? depth * stride + line * step : line * stride + depth * step)] ?? NaN
  const sumOf = (y: number, i: number, j: number): number => {
    let sum = 0
    for (let d = 0; d < k; d++)
      sum += element(A, y * (sizes['a0'] ?? 0), aTurned, aStep, aLine, i, d) * element(B, y * bSize, bTurned, bStep, bLine, j, d)
    return sum
  }
  const expected: number[] = []
  for (let y = 0; y < (isSummed ? 1 : batch); y++)
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        let sum = 0
        for (let z_ = 0; z_ < (isSummed ? batch : 1); z_++) sum += sumOf(y + z_, i, j)
        const most = Math.fround(Math.max(sum + (C[j] ?? NaN), i - 100))
        expected.push(kind === 'sum' ? Math.fround(sum) : kind === 'max' ? most : 2 * most)
      }
  return { spec, args: { out: new Float32Array(expected.length), a: A, b: B, bias: C, ...sizes }, expected }
}

/** Numbers, with 0 for -0. */
export const withoutSigns = (values: ArrayLike<number>): number[] => Array.from(values, (x) => x + 0)
