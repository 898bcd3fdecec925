// Random loops in lanes over elements of any dtype: copies, sums, gathers, shifted and strided reads, with known and with unknown lengths.
import type { Random } from '../../../scripts/fuzz/random.mjs'
import {
  accumulate,
  at,
  bufferParam,
  call,
  cast,
  constant,
  declare,
  forLoop,
  identityOf,
  iota,
  load,
  local,
  loopVar,
  read,
  sizeParam,
  store,
} from '../../../src/kernels/ir/loopIr.ts'
import type { Expr, Kernel, Stmt } from '../../../src/kernels/ir/loopIr.ts'
import { DTYPES } from '../../../src/kernels/numbers/dtype.ts'
import type { DType } from '../../../src/kernels/numbers/dtype.ts'
import { from } from '../../../src/kernels/schedules/notation.ts'
import { arrayOf } from '../harness.ts'
import type { Args } from '../harness.ts'

export interface LoopsCase {
  readonly kernel: Kernel
  readonly args: Args
}

let names = 0

/** rows x columns elements of `out`, twice as many in pairs, or one of each row, from `a`, `places` and, in some, a value that all iterations share. */
export function drawLoops({ int, pick, chance }: Random): LoopsCase {
  const id = names++
  const dtype = pick<DType>(['float32', 'float32', 'int32', 'uint8', ...DTYPES.filter((one) => one !== 'bool')])
  const [rows, columns] = [1 + int(3), pick([1, 2, 3, 4, 6, 8, 15, 16, 17, 33])]
  const size = chance(1 / 2) ? sizeParam(`n${id}`) : null
  const [i, j] = [loopVar('i', rows), loopVar('j', size ?? columns)]
  const [out, a, places] = [bufferParam(`out${id}`, dtype, 'readwrite'), bufferParam(`a${id}`, dtype), bufferParam(`places${id}`, 'int32')]
  const shift = pick([0, 1, 5])
  const x = load(a, from(shift, [i, columns], [j, pick([1, 1, 1, 0, 2, 3])]))
  const kind = pick(['copy', 'sum', 'gather', 'masked', 'shared', 'places', 'pairs'] as const)
  const values: Record<typeof kind, () => Expr> = {
    copy: () => x,
    sum: () => call('add', x, load(a, from(shift + 2, [i, columns], [j, 1]))),
    gather: () => load(a, { ...at([i, 1]), dynamic: [{ value: load(places, at([j, 1])), stride: 1 }] }),
    masked: () => load(a, at([i, 1], [j, 1]), call('lt', iota(j), constant('int32', 2))),
    shared: () => call('add', x, call('mul', load(a, at([i, 1])), load(a, at()))),
    places: () => cast(call('add', iota(i), iota(j)), dtype),
    pairs: () => x,
  }
  const value = call(pick(['add', 'mul', 'max', 'min'] as const), values[kind](), constant(dtype, 1 + int(3)))
  const isReduced = chance(1 / 3)
  const total = local(`total${id}`, dtype)
  const combine = pick(['max', 'min'] as const)
  const body: Stmt[] = isReduced
    ? [declare(total, identityOf(combine, dtype)), forLoop(j, 'simd', [accumulate(total, combine, value)]), store(out, at([i, 1]), read(total))]
    : kind === 'pairs'
      ? [
          forLoop(
            j,
            'simd',
            [0, 1].map((side) => store(out, from(side, [i, 2 * columns], [j, 2]), call('add', value, constant(dtype, side)))),
          ),
        ]
      : [forLoop(j, 'simd', [store(out, at([i, columns], [j, 1]), value, chance(1 / 5) ? 'add' : null)])]
  const numbers = (count: number, most: number): readonly number[] => Array.from({ length: count }, (_, k) => (k * 7 + 3) % most)
  const elements = (type: DType, list: readonly number[]): ReturnType<typeof arrayOf> => arrayOf(type, type === 'int64' ? list.map(BigInt) : list)
  return {
    kernel: { name: 'loops', params: [out, a, places, ...(size === null ? [] : [size])], body: [forLoop(i, 'serial', body)] },
    args: {
      [out.name]: elements(dtype, numbers(2 * rows * columns, 11)),
      [a.name]: elements(dtype, numbers(rows * columns + 3 * columns + 16, 13)),
      [places.name]: elements('int32', numbers(columns, 16)),
      ...(size === null ? {} : { [size.name]: columns }),
    },
  }
}

/** Both, one after the other, in one kernel. */
export const joined = (first: LoopsCase, second: LoopsCase): LoopsCase => ({
  kernel: {
    name: 'joined',
    params: [...first.kernel.params, ...second.kernel.params],
    body: [...first.kernel.body, ...second.kernel.body],
  },
  args: { ...first.args, ...second.args },
})
