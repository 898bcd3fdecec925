// Kernels that read along another dimension than they write along, for every tile and both engines, against the same loops without a schedule.
import { describe, expect, test } from 'vitest'
import { DTYPES } from '../../src/kernels/dtype.ts'
import type { DType } from '../../src/kernels/dtype.ts'
import { withStrict } from '../../src/kernels/engine.ts'
import {
  bufferParam,
  call,
  cast,
  constant,
  declare,
  forLoop,
  iota,
  load,
  local,
  loopVar,
  read,
  serialLoops,
  sizeParam,
  store,
} from '../../src/kernels/loopIr.ts'
import type { Expr, Index, Kernel, LoopVar, Param, Size, Stmt } from '../../src/kernels/loopIr.ts'
import { pointwiseKernel } from '../../src/kernels/schedules/pointwise.ts'
import { transpose } from '../../src/kernels/schedules/transpose.ts'
import type { Nest } from '../../src/kernels/schedules/transpose.ts'
import { arrayOf, runBoth, runOracle } from './harness.ts'
import type { Args } from './harness.ts'

let state = 11
const random = (below: number): number => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return Math.floor((state / 2 ** 32) * below)
}
const pick = <T>(values: readonly [T, ...T[]]): T => values[random(values.length)] ?? values[0]
const shuffled = <T>(values: readonly T[]): T[] => {
  const rest = [...values]
  return values.flatMap(() => rest.splice(random(rest.length), 1))
}

interface Case {
  readonly nest: Nest
  readonly args: Args
  /** Whether the source's dimension without gaps is another one than the target's, and neither is broadcast. */
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
function draw(): Case {
  const rank = pick([2, 2, 3])
  const sizes = Array.from({ length: rank }, () => pick([0, 1, 2, 3, 4, 5, 7, 8, 11, 15, 16, 17, 20, 31, 33]))
  const dtype = pick<DType>(['float32', 'float32', 'float32', ...DTYPES])
  const kind = pick(['copy', 'copy', 'sum', 'cast', 'place', 'both', 'inPlace', 'local'] as const)
  const target = kind === 'cast' ? pick<DType>(['float64', 'int32', 'bfloat16', 'float32']) : dtype
  const orders = [0, 1, 2].map(() => shuffled([...sizes.keys()]))
  const layoutOf = (i: number): ReturnType<typeof layout> => layout(sizes, orders[i] ?? [], random(3))
  const [O, A, B] = [layoutOf(0), layoutOf(1), layoutOf(2)]
  const symbolic = random(2) === 1
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
        type === 'bool' ? i & 1 : type.includes('float') && random(30) === 0 ? (odd[random(5)] ?? 0) : (i * 7) % 120,
      ).map((v) => (type === 'int64' ? BigInt(v) : v)),
    )
  const unit = (order: readonly number[] = []): number | undefined => order.at(-1)
  const [o1, a1] = [unit(orders[0]), unit(orders[1])]
  return {
    nest: { name: 'turn', params: [out, a, b, ...params], loops, body },
    args: { out: values(target, O.reach), a: values(dtype, A.reach), b: values(dtype, B.reach), ...given },
    turned: o1 !== a1 && sizes.every((n) => n > 1),
  }
}

const plain = ({ name, params, loops, body }: Nest): Kernel => ({ name, params, body: serialLoops(loops, body) })

describe('kernels that read along another dimension than they write along', () => {
  test('compute what the loops say, for every tile and both engines', () => {
    let matched = 0
    const problems = Number(process.env['TENSORFX_FUZZ'] ?? 100)
    for (let i = 0; i < problems; i++) {
      const { nest, args, turned } = draw()
      if (turned) expect(transpose.match(nest), `problem ${i}`).toBe(true)
      if (!transpose.match(nest)) continue
      const tiles = transpose.tiles('wasm')
      const tile = tiles[matched % tiles.length]
      const isStrict = Math.floor(matched / tiles.length) % 2 === 0
      matched++
      if (tile === undefined) throw new Error('a schedule has tiles')
      const expected = runOracle(plain(nest), args)['out']
      const { wasm, oracle } = withStrict(isStrict, () => runBoth(transpose.build(transpose.spec(nest), tile), args))
      expect(wasm['out'], `problem ${i}`).toEqual(expected)
      expect(oracle['out'], `problem ${i}`).toEqual(expected)
    }
    expect(matched).toBeGreaterThan(problems / 4)
  })

  const [i, j] = [loopVar('i', 8), loopVar('j', 12)]
  const [out, a, b] = [bufferParam('out', 'float32', 'readwrite'), bufferParam('a', 'float32'), bufferParam('b', 'int32')]
  const over = (first: Size, second: Size): Index => ({
    base: 0,
    terms: [
      { loop: i, stride: first },
      { loop: j, stride: second },
    ],
    dynamic: [],
  })
  const matches = (loops: readonly LoopVar[], ...body: readonly Stmt[]): boolean => transpose.match({ name: 'k', params: [out, a, b], loops, body })

  test('are taken only where iterations in another order compute the same', () => {
    expect(matches([i, j], store(out, over(12, 1), load(a, over(1, 8))))).toBe(true)
    // The other tensor is read as it is written.
    expect(matches([i, j], store(out, over(12, 1), load(a, over(12, 1))))).toBe(false)
    // A value for each row needs no tile.
    expect(matches([i, j], store(out, over(12, 1), load(a, over(1, 0))))).toBe(false)
    // Stores that read what others write.
    expect(matches([i, j], store(out, over(12, 1), load(out, over(1, 8))))).toBe(false)
    expect(matches([i, j], store(out, over(12, 1), load(a, over(1, 8)), 'add'))).toBe(false)
    expect(matches([i, j], store(out, { ...over(12, 1), dynamic: [{ value: load(b, over(1, 8)), stride: 1 }] }, load(a, over(1, 8))))).toBe(false)
    // Stores without neighbours.
    expect(matches([i, j], store(out, over(24, 2), load(a, over(1, 8))))).toBe(false)
    expect(matches([i, j], forLoop(loopVar('k', 2), 'serial', [store(out, over(12, 1), load(a, over(1, 8)))]))).toBe(false)
  })

  test('other nests are refused by name', () => {
    expect(() => transpose.spec({ name: 'k', params: [], loops: [], body: [] })).toThrow(/kernel k/)
  })

  test('copies of halves keep all bits, those of NaN too, in tiles and in lanes', () => {
    const words = Uint16Array.from({ length: 65536 }, (_, k) => k)
    for (const dtype of ['float16', 'bfloat16'] as const) {
      const [to, from] = [bufferParam('to', dtype, 'write'), bufferParam('from', dtype)]
      const [r, c] = [loopVar('r', 256), loopVar('c', 256)]
      const index = (row: number, column: number): Index => ({
        ...over(0, 0),
        terms: [
          { loop: r, stride: row },
          { loop: c, stride: column },
        ],
      })
      for (const [row, column] of [
        [1, 256],
        [256, 1],
      ] as const) {
        const body = [store(to, index(256, 1), cast(cast(load(from, index(row, column)), 'float32'), dtype))]
        const { wasm } = runBoth(pointwiseKernel({ name: 'halves', params: [to, from], loops: [r, c], body }, true), {
          to: new Uint16Array(65536),
          from: words,
        })
        const copied = new Uint16Array(wasm['to']?.buffer ?? new ArrayBuffer(0))
        expect(words.findIndex((word, k) => copied[row === 1 ? (k % 256) * 256 + (k >> 8) : k] !== word)).toBe(-1)
      }
    }
  })
})
