// The kernels of Fourier transforms. They work on lines of complex numbers in float64, the real parts in one buffer and the imaginary parts in another: Stockham's stages, which need no
// permutation, each from one pair of buffers into another.
import { present } from '../../errors/index.ts'
import {
  bufferParam,
  call,
  cast,
  compileKernel,
  constant,
  forLoop,
  indexFrom,
  load,
  loopVar,
  scalar,
  scalarParam,
  serialLoops,
  sizeDifference,
  sizeParam,
  sizeProduct,
  sizeSum,
  store,
} from '../../kernels/index.ts'
import type { BufferParam, CompiledKernel, Expr, Index, Stmt } from '../../kernels/index.ts'
import { kernelCache } from '../eager/launch.ts'

/** A complex number. */
interface Complex {
  readonly re: Expr
  readonly im: Expr
}

const number = (value: number): Expr => constant('float64', value)
const plus = (a: Complex, b: Complex): Complex => ({ re: call('add', a.re, b.re), im: call('add', a.im, b.im) })
const minus = (a: Complex, b: Complex): Complex => ({ re: call('sub', a.re, b.re), im: call('sub', a.im, b.im) })
const scaled = ({ re, im }: Complex, factor: Expr): Complex => ({ re: call('mul', re, factor), im: call('mul', im, factor) })
const times = (a: Complex, b: Complex): Complex => ({
  re: call('sub', call('mul', a.re, b.re), call('mul', a.im, b.im)),
  im: call('add', call('mul', a.re, b.im), call('mul', a.im, b.re)),
})
/** -i times a number. */
const turned = ({ re, im }: Complex): Complex => ({ re: im, im: call('neg', re) })

/** Complex numbers in two buffers. */
class Pair {
  readonly params: readonly [re: BufferParam, im: BufferParam]

  constructor(name: string, access: BufferParam['access'] = 'read') {
    this.params = [bufferParam(`${name}Re`, 'float64', access), bufferParam(`${name}Im`, 'float64', access)]
  }

  at(index: Index): Complex {
    const [re, im] = this.params
    return { re: load(re, index), im: load(im, index) }
  }

  set(index: Index, value: Complex): readonly Stmt[] {
    const [re, im] = this.params
    return [store(re, index, value.re), store(im, index, value.im)]
  }
}

const ofTwo = (a: Complex, b: Complex): readonly Complex[] => [plus(a, b), minus(a, b)]

function ofFour(a: Complex, b: Complex, c: Complex, d: Complex): readonly Complex[] {
  const [sum, difference] = [plus(a, c), minus(a, c)]
  const [other, side] = [plus(b, d), turned(minus(b, d))]
  return [plus(sum, other), plus(difference, side), minus(sum, other), minus(difference, side)]
}

/** Of an odd number of numbers: x[k] and x[n - k] meet the same cosine, and sines of opposite signs. */
function ofOdd(first: Complex, ...rest: readonly Complex[]): readonly Complex[] {
  const n = rest.length + 1
  const pairs = rest.slice(0, rest.length / 2).map((x, i) => {
    const opposite = present(rest[rest.length - 1 - i], 'the number on the other side')
    return { sum: plus(x, opposite), difference: minus(x, opposite) }
  })
  const results: Complex[] = Array.from({ length: n }, () => pairs.reduce((total, { sum }) => plus(total, sum), first))
  for (let j = 1; j <= pairs.length; j++) {
    const angle = (k: number): number => (2 * Math.PI * ((j * (k + 1)) % n)) / n
    const middle = pairs.reduce((total, { sum }, k) => plus(total, scaled(sum, number(Math.cos(angle(k))))), first)
    const side = turned(pairs.map(({ difference }, k) => scaled(difference, number(Math.sin(angle(k))))).reduce((a, b) => plus(a, b)))
    results[j] = plus(middle, side)
    results[n - j] = minus(middle, side)
  }
  return results
}

/** The transform of a few numbers. */
function small(numbers: readonly Complex[]): readonly Complex[] {
  const [a, b, c, d] = numbers
  if (a === undefined || b === undefined) return numbers
  if (c === undefined) return ofTwo(a, b)
  return d === undefined || numbers.length > 4 ? ofOdd(a, ...numbers.slice(1)) : ofFour(a, b, c, d)
}

/** The largest factor that has a stage: larger ones would be more code than they save time. */
export const LARGEST_FACTOR = 13

/**
 * A stage of lines of `n` numbers: transforms of `radix` numbers, m * stride apart, times the stage's roots of unity, radix - 1 for each of `m` steps. In the first stage the stride is 1,
 * and lanes are steps; in the others they are what lies in one stride.
 *
 * Arguments: y, x, roots; lines, n, m, stride.
 */
export const stageKernel: (radix: number, isFirst: boolean) => CompiledKernel = kernelCache((radix: number, isFirst: boolean): CompiledKernel => {
  const [y, x, roots] = [new Pair('y', 'write'), new Pair('x'), new Pair('root')]
  const [lines, n, m, stride] = [sizeParam('lines'), sizeParam('n'), sizeParam('m'), sizeParam('stride')]
  const [line, step, k] = [loopVar('line', lines), loopVar('step', m), loopVar('k', stride)]
  const legs = Array.from({ length: radix }, (_, j) => x.at(indexFrom(sizeProduct(j, sizeProduct(m, stride)), [line, n], [step, stride], [k, 1])))
  const body = small(legs).flatMap((leg, j) =>
    y.set(
      indexFrom(sizeProduct(j, stride), [line, n], [step, sizeProduct(radix, stride)], [k, 1]),
      j === 0 ? leg : times(leg, roots.at(indexFrom(j - 1, [step, radix - 1]))),
    ),
  )
  const [outer, lanes] = isFirst ? [k, step] : [step, k]
  return compileKernel({
    name: 'fft_stage',
    params: [...y.params, ...x.params, ...roots.params, lines, n, m, stride],
    body: serialLoops([line, outer], [forLoop(lanes, 'simd', body)]),
  })
})

/**
 * Takes lines of `n` complex numbers, as pairs, apart; the rest of a line of `room` numbers becomes 0. For an inverse transform the parts are exchanged.
 *
 * Arguments: x, pairs; the element of `pairs` that is the first, lines, n, room.
 */
export const takeApart: (dtype: 'float32' | 'float64', inverse: boolean) => CompiledKernel = kernelCache(
  (dtype: 'float32' | 'float64', inverse: boolean): CompiledKernel => {
    const [x, pairs] = [new Pair('x', 'write'), bufferParam('pairs', dtype)]
    const [first, lines, n, room] = [sizeParam('first'), sizeParam('lines'), sizeParam('n'), sizeParam('room')]
    const [line, k, rest] = [loopVar('line', lines), loopVar('k', n), loopVar('rest', sizeDifference(room, n))]
    const part = (i: number): Expr => cast(load(pairs, indexFrom(sizeSum(first, i), [line, sizeProduct(2, n)], [k, 2])), 'float64')
    const [re, im] = inverse ? [1, 0] : [0, 1]
    return compileKernel({
      name: 'fft_take_apart',
      params: [...x.params, pairs, first, lines, n, room],
      body: serialLoops(
        [line],
        [
          forLoop(k, 'simd', [...x.set(indexFrom(0, [line, room], [k, 1]), { re: part(re), im: part(im) })]),
          forLoop(rest, 'simd', [...x.set(indexFrom(n, [line, room], [rest, 1]), { re: number(0), im: number(0) })]),
        ],
      ),
    })
  },
)

/**
 * Puts the first `n` numbers of each line together as pairs: the way back of {@link takeApart}.
 *
 * Arguments: pairs, x; the element of `pairs` that is the first, lines, n, room.
 */
export const putTogether: (dtype: 'float32' | 'float64', inverse: boolean) => CompiledKernel = kernelCache(
  (dtype: 'float32' | 'float64', inverse: boolean): CompiledKernel => {
    const [x, pairs] = [new Pair('x'), bufferParam('pairs', dtype, 'write')]
    const [first, lines, n, room] = [sizeParam('first'), sizeParam('lines'), sizeParam('n'), sizeParam('room')]
    const [line, k] = [loopVar('line', lines), loopVar('k', n)]
    const { re, im } = x.at(indexFrom(0, [line, room], [k, 1]))
    const parts = inverse ? [im, re] : [re, im]
    return compileKernel({
      name: 'fft_put_together',
      params: [pairs, ...x.params, first, lines, n, room],
      body: serialLoops(
        [line],
        [
          forLoop(
            k,
            'simd',
            parts.map((part, i) => store(pairs, indexFrom(sizeSum(first, i), [line, sizeProduct(2, n)], [k, 2]), cast(part, dtype))),
          ),
        ],
      ),
    })
  },
)

/**
 * Multiplies the first `n` numbers of each line by those of `factors`, and by a number.
 *
 * Arguments: x, factors; lines, n, room, scale.
 */
export const multiply: () => CompiledKernel = kernelCache((): CompiledKernel => {
  const [x, factors] = [new Pair('x', 'readwrite'), new Pair('factor')]
  const [lines, n, room, scale] = [sizeParam('lines'), sizeParam('n'), sizeParam('room'), scalarParam('scale', 'float64')]
  const [line, k] = [loopVar('line', lines), loopVar('k', n)]
  const index = indexFrom(0, [line, room], [k, 1])
  return compileKernel({
    name: 'fft_multiply',
    params: [...x.params, ...factors.params, lines, n, room, scale],
    body: serialLoops([line], [forLoop(k, 'simd', [...x.set(index, scaled(times(x.at(index), factors.at(indexFrom(0, [k, 1]))), scalar(scale)))])]),
  })
})
