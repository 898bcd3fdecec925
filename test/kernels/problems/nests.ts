// Random nests of independent iterations whose tensors lie in memory in different orders, for the schedules that compute them.
import { present } from '../../../src/errors/index.ts'
import { DTYPES } from '../../../src/kernels/numbers/dtype.ts'
import type { DType } from '../../../src/kernels/numbers/dtype.ts'
import {
  bufferParam,
  call,
  cast,
  constant,
  declare,
  iota,
  load,
  local,
  loopVar,
  read,
  serialLoops,
  sizeParam,
  store,
} from '../../../src/kernels/ir/loopIr.ts'
import type { Expr, Index, Kernel, Param, Size, Stmt } from '../../../src/kernels/ir/loopIr.ts'
import { printKernel } from '../../../src/kernels/ir/print.ts'
import { pointwiseKernel } from '../../../src/kernels/schedules/pointwise.ts'
import { transpose } from '../../../src/kernels/schedules/transpose.ts'
import type { Nest } from '../../../src/kernels/schedules/transpose.ts'
import type { Random } from '../../../scripts/fuzz/random.mjs'
import { arrayOf, runOracle, valuesOf } from '../harness.ts'
import type { Args } from '../harness.ts'
import { builtWith, untilTaken } from './problem.ts'
import type { Built, DrawProblem, Problem } from './problem.ts'

function shuffled<T>(int: Random['int'], values: readonly T[]): T[] {
  const rest = [...values]
  return values.flatMap(() => rest.splice(int(rest.length), 1))
}

export interface NestCase {
  readonly nest: Nest
  readonly args: Args
  /** Whether the source's dimension without gaps is another one than the target's, and neither is broadcast, nor loaded under a mask. */
  readonly turned: boolean
}

/** Strides of a tensor whose dimensions lie in memory in this order, the outermost first, and how many elements it reaches over. */
function layout(sizes: readonly number[], order: readonly number[], gap: number): { readonly strides: readonly number[]; readonly reach: number } {
  const strides = sizes.map(() => 0)
  let reach = 1
  for (const d of order.toReversed()) {
    strides[d] = reach
    reach = reach * Math.max(sizes[d] ?? 1, 1) + (reach > 1 ? gap : 0)
  }
  return { strides, reach }
}

/** out = f(a, b): a copy, a sum with a tensor in another layout, a cast, the place of elements; into new memory, or into that of `b`. */
export function drawNest({ int, pick }: Random): NestCase {
  const rank = pick([2, 2, 3])
  const sizes = Array.from({ length: rank }, () => pick([0, 1, 2, 3, 4, 5, 7, 8, 11, 15, 16, 17, 20, 31, 33]))
  const dtype = pick<DType>(['float32', 'float32', 'float32', ...DTYPES])
  const kind = pick(['copy', 'copy', 'sum', 'cast', 'place', 'both', 'inPlace', 'local', 'masked', 'through'] as const)
  const target = kind === 'cast' ? pick<DType>(['float64', 'int32', 'bfloat16', 'float32']) : dtype
  const orders = [0, 1, 2].map(() => shuffled(int, [...sizes.keys()]))
  const layoutOf = (i: number): ReturnType<typeof layout> => layout(sizes, orders[i] ?? [], int(3))
  /** Of one input of six, some elements lie over each other. */
  const overlapping = ({ strides, reach }: ReturnType<typeof layout>): ReturnType<typeof layout> => {
    const changed = int(6 * rank)
    return { strides: strides.map((stride, d) => (d === changed ? Math.min(stride, int(3)) : stride)), reach }
  }
  const [O, denseA, denseB] = [layoutOf(0), layoutOf(1), layoutOf(2)]
  const [A, B] = [overlapping(denseA), overlapping(denseB)]
  const symbolic = int(2) === 1
  const given: Record<string, number> = {}
  const params: Param[] = []
  const size = (name: string, value: number): Size => {
    if (!symbolic || value === 1) return value
    const param = sizeParam(name)
    params.push(param)
    given[name] = value
    return param
  }
  const loops = sizes.map((n, d) => loopVar(`i${d}`, size(`n${d}`, n)))
  const over = (name: string, { strides }: { readonly strides: readonly number[] }): Index => ({
    base: 0,
    terms: loops.map((loop, d) => ({ loop, stride: size(`${name}${d}`, strides[d] ?? 0) })),
    dynamic: [],
  })
  const [out, a, b] = [bufferParam('out', target, 'readwrite'), bufferParam('a', dtype), bufferParam('b', dtype)]
  const [place, x, y] = [over('o', O), load(a, over('a', A)), load(b, over('b', B))]
  const add = (p: Expr, q: Expr): Expr => (dtype === 'bool' ? call('or', p, q) : call('add', p, q))
  const value: Record<typeof kind, () => readonly Stmt[]> = {
    copy: () => [store(out, place, x)],
    sum: () => [store(out, place, add(x, y))],
    both: () => [store(out, place, add(x, x))],
    cast: () => [store(out, place, cast(x, target))],
    through: () => [store(out, place, cast(cast(x, pick(DTYPES)), dtype))],
    masked: () => [store(out, place, load(a, x.index, call('lt', iota(present(loops[0], 'a loop')), constant('int32', 3))))],
    place: () => [
      store(
        out,
        place,
        add(
          x,
          cast(
            loops.reduce<Expr>((sum, loop) => call('add', sum, iota(loop)), constant('int32', 0)),
            dtype,
          ),
        ),
      ),
    ],
    inPlace: () => [store(out, place, add(load(out, place), x))],
    local: () => {
      const kept = local('kept', dtype)
      return [declare(kept, add(x, y)), store(out, place, read(kept))]
    },
  }
  const body = value[kind]()
  const odd = [NaN, Infinity, -Infinity, -0, 1e-45]
  const values = (type: DType, n: number): ReturnType<typeof arrayOf> =>
    arrayOf(
      type,
      Array.from({ length: n }, (_, i) =>
        type === 'bool' ? i & 1 : type.includes('float') && int(30) === 0 ? (odd[int(5)] ?? 0) : (i * 7) % 120,
      ).map((v) => (type === 'int64' ? BigInt(v) : v)),
    )
  const unit = (order: readonly number[] = []): number | undefined => order.at(-1)
  const [o1, a1] = [unit(orders[0]), unit(orders[1])]
  return {
    nest: { name: 'turn', params: [out, a, b, ...params], loops, body },
    args: { out: values(target, O.reach), a: values(dtype, A.reach), b: values(dtype, B.reach), ...given },
    turned: kind !== 'masked' && o1 !== a1 && A.strides.every((stride, d) => stride === denseA.strides[d]) && sizes.every((n) => n > 1),
  }
}

export const plainKernel = ({ name, params, loops, body }: Nest): Kernel => ({ name, params, body: serialLoops(loops, body) })

function problemOf({ nest, args }: NestCase, kernels: Problem['kernels']): Problem {
  const plain = plainKernel(nest)
  const dtypes = Object.fromEntries(nest.params.flatMap((param) => (param.kind === 'buffer' ? [[param.name, param.dtype] as const] : [])))
  const expected = Object.entries(runOracle(plain, args)).map(([name, data]) => [name, valuesOf(dtypes[name] ?? 'float32', data)] as const)
  return { what: printKernel(plain), args, dtypes, kernels, expected: Object.fromEntries(expected) }
}

export const transposeProblem: DrawProblem = (random) =>
  untilTaken(() => {
    const drawn = drawNest(random)
    return transpose.match(drawn.nest) ? problemOf(drawn, builtWith(transpose, drawn.nest)) : null
  })

export const pointwiseProblem: DrawProblem = (random) => {
  const drawn = drawNest(random)
  const built = (inTiles: boolean): Built => ({ tile: inTiles ? 'in tiles' : 'in lanes', kernel: pointwiseKernel(drawn.nest, inTiles) })
  return problemOf(drawn, () => [built(true), built(false)])
}
