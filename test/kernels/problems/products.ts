// Random matrix products with their results, for the schedules that compute them.
import { at, bufferParam, call, cast, constant, iota, load, loopVar, sizeParam, store } from '../../../src/kernels/ir/loopIr.ts'
import type { BufferParam, Expr, Kernel, Size } from '../../../src/kernels/ir/loopIr.ts'
import type { GemmSpec, MatrixOperand } from '../../../src/kernels/schedules/gemmSpec.ts'
import { gemm } from '../../../src/kernels/schedules/gemm.ts'
import { FEW_LINES, skinnyAcross, skinnyAlong } from '../../../src/kernels/schedules/skinny.ts'
import { unpackedProduct } from '../../../src/kernels/schedules/unpacked.ts'
import type { Schedule } from '../../../src/kernels/schedules/schedule.ts'
import type { Random } from '../../../scripts/fuzz/random.mjs'
import type { Args } from '../harness.ts'
import { builtWith, elementsOf, floats, untilTaken } from './problem.ts'
import type { DrawProblem, Problem } from './problem.ts'

export interface ProductCase {
  readonly spec: GemmSpec
  readonly args: Args
  readonly expected: readonly number[]
  readonly what: string
}

/** Rows, columns and depth. Those in `known` are never parameters of a call. Whether rows of B have neighbours is drawn where it is not said. */
interface ProductSizes {
  readonly m: number
  readonly n: number
  readonly k: number
  readonly known?: 'm' | 'n'
  readonly bTurned?: boolean
  /** Whether all batches have the same B. */
  readonly isShared?: boolean
}

/** An operand in memory: whether its lines run along the other side, the distance of neighbours and of lines, and how far it reaches. */
interface Layout {
  readonly turned: boolean
  readonly step: number
  readonly line: number
  readonly reach: number
}

/**
 * out[z, i, j] = max(sum + bias[j], i - 100), or the sum alone. Lines of operands lie apart, or over each other, in either order; both operands may be views of the same memory; one
 * problem of two has run-time sizes. With `all`, some products are summed over the batch, have operands without neighbours, or epilogues in float64.
 */
function drawProduct(random: Random, { m, n, k, known, bTurned, isShared = false }: ProductSizes, all: boolean): ProductCase {
  const { int, pick, chance } = random
  const symbolic = chance(1 / 2)
  const batch = pick([1, 1, 2, 3, 0])
  const isSummed = all && chance(1 / 3)
  const layoutOf = (lines: number, turned: boolean): Layout => {
    const [across, along] = turned ? [k, lines] : [lines, k]
    const step = all ? pick([1, 1, 1, 2, 3]) : 1
    const line = chance(1 / 6) ? pick([0, 1, 2]) : (along + int(3)) * step
    return { turned, step, line, reach: across === 0 || along === 0 ? 0 : (across - 1) * line + (along - 1) * step + 1 }
  }
  // Element (k, j) of B lies in line j where it is turned, so that rows of B have no neighbours.
  const [A, B] = [layoutOf(m, chance(1 / 2)), layoutOf(n, bTurned ?? chance(1 / 2))]
  const isSame = chance(1 / 8)
  const sizes: Record<string, number> = {
    ...{ batch, m, n, k, aLine: A.line, bLine: B.line, o0: m * n },
    ...{ a0: chance(1 / 3) ? int(2) : A.reach + int(2), b0: isShared ? 0 : chance(1 / 6) ? int(2) : B.reach + int(2) },
  }
  const params = Object.fromEntries(Object.keys(sizes).map((name) => [name, sizeParam(name)]))
  const size = (name: string): Size => (symbolic && name !== known ? (params[name] ?? 0) : (sizes[name] ?? 0))
  const [out, a, other, bias] = [
    bufferParam('out', 'float32', 'write'),
    bufferParam('a', 'float32'),
    bufferParam('b', 'float32'),
    bufferParam('bias', 'float32'),
  ]
  const b = isSame ? a : other
  const [z, rows, cols] = [loopVar('z', size('batch')), loopVar('i', size('m')), loopVar('j', size('n'))]
  const operand = (buffer: BufferParam, name: 'a' | 'b', { turned, step }: Layout): MatrixOperand => {
    const [line, depth] = turned ? [step, size(`${name}Line`)] : [size(`${name}Line`), step]
    const [rowStride, colStride] = name === 'a' ? [line, depth] : [depth, line]
    return { buffer, rowStride, colStride, batchStrides: [size(`${name}0`)] }
  }
  const kind = pick(all ? ['sum', 'max', 'float64'] : ['max'])
  const finished = (sum: Expr): Expr => {
    if (kind === 'sum') return sum
    const least = cast(call('sub', iota(rows), constant('int32', 100)), 'float32')
    const most = call('max', call('add', sum, load(bias, at([cols, 1]))), least)
    return kind === 'max' ? most : cast(call('mul', cast(most, 'float64'), constant('float64', 2)), 'float32')
  }
  const spec: GemmSpec = {
    ...{ name: 'product', batch: [z], rows, cols, depth: size('k') },
    ...{ a: operand(a, 'a', A), b: operand(b, 'b', B), reduceBatch: isSummed ? 1 : 0 },
    epilogue: (sum) => [store(out, isSummed ? at([rows, size('n')], [cols, 1]) : at([z, size('o0')], [rows, size('n')], [cols, 1]), finished(sum))],
    params: [...[out, a, ...(isSame ? [] : [b]), bias], ...(symbolic ? Object.values(params) : []), bufferParam('scratch', 'float32', 'readwrite')],
  }
  const { any } = elementsOf(random)
  const reach = (layout: Layout, stride: number): number => layout.reach + Math.max(batch - 1, 0) * stride
  const [aReach, bReach] = [reach(A, sizes['a0'] ?? 0), reach(B, sizes['b0'] ?? 0)]
  const ofA = floats(isSame ? Math.max(aReach, bReach) : aReach, any)
  const [ofB, ofBias] = [isSame ? ofA : floats(bReach, any), floats(n, any)]
  const element = (of: Float32Array, first: number, { turned, step, line }: Layout, i: number, d: number): number =>
    of[first + (turned ? d * line + i * step : i * line + d * step)] ?? NaN
  const sumOf = (y: number, i: number, j: number): number => {
    let sum = 0
    for (let d = 0; d < k; d++) sum += element(ofA, y * (sizes['a0'] ?? 0), A, i, d) * element(ofB, y * (sizes['b0'] ?? 0), B, j, d)
    return sum
  }
  const expected: number[] = []
  for (let y = 0; y < (isSummed ? 1 : batch); y++)
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        let sum = 0
        for (let z_ = 0; z_ < (isSummed ? batch : 1); z_++) sum += sumOf(y + z_, i, j)
        const most = Math.max(sum + (ofBias[j] ?? NaN), i - 100)
        expected.push(kind === 'sum' ? sum : kind === 'max' ? most : 2 * most)
      }
  const buffers = { out: new Float32Array(expected.length), a: ofA, ...(isSame ? {} : { b: ofB }), bias: ofBias }
  const what = JSON.stringify({ ...sizes, A, B, isSame, isSummed, symbolic, kind })
  return { spec, args: { ...buffers, ...sizes }, expected, what }
}

/** A product for the schedule of products of any sizes: around the edges of its tiles. */
export const drawAnyProduct = (random: Random): ProductCase =>
  drawProduct(
    random,
    {
      m: random.pick([0, 1, 2, 3, 4, 5, 7, 8, 9, 13]),
      n: random.pick([0, 1, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33]),
      k: random.pick([0, 1, 2, 3, 4, 5, 8, 13, 17]),
    },
    true,
  )

/** A product with a B that is worth memory of its own, if its rows and batch allow that. */
export const drawPackable = (random: Random): ProductCase =>
  drawProduct(random, { m: random.pick([1, 3, 4, 9]), n: random.pick([33, 40, 61]), k: random.pick([32, 37]), isShared: random.chance(1 / 2) }, true)

/** A product with few rows or columns. */
export function drawSkinnyProduct(random: Random): ProductCase {
  const { int, pick, chance } = random
  const few = 1 + int(FEW_LINES)
  const lines = pick([0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31])
  const k = pick([0, 1, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 64, 67])
  const sizes: ProductSizes = chance(1 / 3)
    ? { m: FEW_LINES + few, n: lines, k, known: 'm', bTurned: false }
    : chance(1 / 2)
      ? { m: lines, n: few, k, known: 'n' }
      : { m: few, n: lines, k, known: 'm' }
  return drawProduct(random, sizes, false)
}

const problemOf = <S, T>(schedule: Schedule<GemmSpec, S, T>, { spec, args, expected, what }: ProductCase): Problem => ({
  ...{ what, args, expected: { out: expected } },
  kernels: builtWith(schedule, spec),
})

export const gemmProblem: DrawProblem = (random) => problemOf(gemm, drawAnyProduct(random))
export const unpackedProblem: DrawProblem = (random) => {
  const { spec, args, expected, what } = drawAnyProduct(random)
  return { what, args, expected: { out: expected }, kernels: () => [{ tile: 'plain loops', kernel: unpackedProduct(spec) }] }
}
export const skinnyAlongProblem: DrawProblem = (random) => untilTaken(() => problemOf(skinnyAlong, drawSkinnyProduct(random)))
export const skinnyAcrossProblem: DrawProblem = (random) => untilTaken(() => problemOf(skinnyAcross, drawSkinnyProduct(random)))

/** The kernels of a product with few lines: with every tile of every schedule that takes it. */
export const skinnyKernels = (spec: GemmSpec): readonly Kernel[] =>
  [...builtWith(skinnyAlong, spec)('wasm'), ...builtWith(skinnyAcross, spec)('wasm')].map(({ kernel }) => kernel)

/** Numbers, with 0 for -0. */
export const withoutSigns = (values: ArrayLike<number>): number[] => Array.from(values, (x) => x + 0)
