// Random numbers as grids: the bits of the eager kernels for the same seed, whose numbers are drawn at each call.
import { call, cast, constant, iota, loopVar, store } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import { philoxBits, philoxOddWord } from '../../ops/index.ts'
import { GridWriter, int, place } from './gridWriter.ts'
import type { Call, Grids } from './gridWriter.ts'

/** The bits of an element: of one word of its counter, or with -1 of the word that it is in, without the lowest `shift`. */
type Bits = (word: number, shift: number) => Expr

/** A thread for each element of a result, from `element` on what is drawn. */
function drawn({ name, args, outs: [out] }: Call, first: number, element: (bits: Bits, place: Where, writer: GridWriter) => Expr): Grids {
  const rule = philoxBits.op.pointwise
  if (out === undefined || rule === null) return null
  const writer = new GridWriter()
  const i = loopVar('i', out.numel)
  const where = { index: iota(i), quarter: int(Math.max(1, Math.ceil(out.numel / 4))) }
  const draw = args.slice(first, first + 4).map((value) => writer.number(value, 'int32'))
  const bits: Bits = (word, shift) => rule.compute(where.index, where.quarter, word, shift, ...draw)
  return [writer.grid(name, [i], [store(writer.target(out), place([i], [1]), element(bits, where, writer))])]
}

/** The number of an element, and how many elements there are for each word of a counter. */
interface Where {
  readonly index: Expr
  readonly quarter: Expr
}

const unit = (bits: Expr): Expr => call('mul', cast(bits, 'float32'), constant('float32', 2 ** -24))

export const randomUniform = (given: Call): Grids => drawn(given, 1, (bits) => unit(bits(-1, 8)))

export const randomNormal = (given: Call): Grids =>
  drawn(given, 1, (bits, { index, quarter }) => {
    const float = (value: number): Expr => constant('float32', value)
    // 1 - u is in (0, 1], so the logarithm is finite.
    const radius = call('sqrt', call('mul', float(-2), call('log', call('add', float(1), call('neg', unit(bits(0, 8)))))))
    const odd = philoxOddWord.op.pointwise?.compute(index, quarter) ?? int(0)
    const turn = call('mul', cast(odd, 'float32'), float(-Math.PI / 2))
    return call('mul', radius, call('cos', call('add', call('mul', unit(bits(1, 8)), float(2 * Math.PI)), turn)))
  })

export const randomIntegers = (given: Call): Grids =>
  drawn(given, 3, (bits, _, writer) => {
    const [, low, range] = given.args
    return call('add', call('mulHiU', bits(-1, 0), writer.number(Number(range) | 0, 'int32')), writer.number(low, 'int32'))
  })
