// What counts as the same result, and the runs that are compared.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ArgumentError, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config } from 'tensorfx/compile'
import { bitwiseSame, castToFp64, reduceToScalarLoss, requiresBwdPass, rmse, runFwdMaybeBwd, same, sameTwoModels, setLogSink } from 'tensorfx/debug'
import type { SameOptions } from 'tensorfx/debug'
import { Graph, GraphModule, symbolicTrace } from 'tensorfx/fx'
import { listen, resetConfig } from './inProcess.ts'

let said: (readonly [string, string])[] = []
beforeEach(() => void (said = listen()))
afterEach(() => {
  setLogSink(null)
  resetConfig()
})

const t = torch.tensor
const one = t([1])
const nan = t([NaN, 1])

class Left {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}
class Right extends Left {}

/** Whether two values are the same, and why not. */
function compared(ref: unknown, res: unknown, fp64: unknown = null, options: SameOptions = {}): true | string {
  const reasons: string[] = []
  const isSame = same(ref, res, fp64, { ...options, logError: (reason) => void reasons.push(reason) })
  return isSame && reasons.length === 0 ? true : reasons.join('; ')
}

describe('same', () => {
  it.each<[string, unknown, unknown, SameOptions, true | string]>([
    ['equal tensors', t([1, 2]), t([1, 2]), {}, true],
    ['a difference within the tolerance', t([1, 2]), t([1, 2.0002]), {}, true],
    ['a difference beyond it', t([1, 2]), t([1, 2.0005]), {}, 'Accuracy failed: allclose not within tol=0.0001'],
    ['a difference that is relative', t([1000]), t([1000.05]), {}, true],
    ['a smaller tolerance', t([1, 2]), t([1, 2.0002]), { tol: 1e-6 }, 'Accuracy failed: allclose not within tol=0.000001'],
    ['NaN and NaN', nan, nan, {}, 'Accuracy failed: allclose not within tol=0.0001'],
    ['NaN and NaN, where they are equal', nan, nan, { equalNan: true }, true],
    ['NaN and a number, where NaNs are equal', nan, t([1, 1]), { equalNan: true }, 'Accuracy failed: allclose not within tol=0.0001'],
    ['a number and NaN, where NaNs are equal', t([1, 1]), nan, { equalNan: true }, 'Accuracy failed: allclose not within tol=0.0001'],
    ['infinities', t([Infinity]), t([Infinity]), {}, true],
    ['another shape', t([1]), t([[1]]), {}, 'shapes differ: [1] and [1, 1]'],
    ['another dtype', t([1]), t([1], { dtype: 'float64' }), {}, 'dtype mismatch float32, float64'],
    ['another dtype, where it does not count', t([1]), t([1], { dtype: 'float64' }), { exactDtype: false }, true],
    ['a number in the place of a tensor', t([1]), 1, {}, 'types differ: a Tensor and 1'],
    ['another dtype of a tensor without dimensions', t(1.5), t(1.5, { dtype: 'float64' }), {}, 'dtype mismatch float32, float64'],
    ['equal integers', t([1, 2], { dtype: 'int64' }), t([1, 2], { dtype: 'int64' }), {}, true],
    ['other integers', t([1, 2], { dtype: 'int64' }), t([1, 3], { dtype: 'int64' }), {}, 'Accuracy failed: int64 tensors of shape [2] differ'],
    ['other integers, where only floats count', t([1], { dtype: 'int64' }), t([3], { dtype: 'int64' }), { ignoreNonFp: true }, true],
    ['other bools', t([true]), t([false]), {}, 'Accuracy failed: bool tensors of shape [1] differ'],
    ['numbers', 1, 1.00001, {}, true],
    ['NaN as a number', NaN, NaN, {}, true],
    ['other numbers', 1, 1.1, {}, 'Accuracy failed: 1 and 1.1 not within tol=0.0001'],
    ['a text in the place of a number', 1, 'one', {}, "types differ: a number and 'one'"],
    ['lists', [one, [one]], [one, [one]], {}, true],
    ['lists of other lengths', [one], [one, one], {}, 'Length mismatch'],
    ['a list and a tensor', [one], one, {}, 'Length mismatch'],
    ['lists with another element', [one, one], [one, t([2])], {}, 'Accuracy failed: allclose not within tol=0.0001'],
    ['objects', { a: one }, { a: one }, {}, true],
    ['objects with other keys', { a: one }, { b: one }, {}, 'keys differ'],
    ['an object with more keys', { a: one }, { a: one, b: one }, {}, 'keys differ'],
    ['an object and null', { a: one }, null, {}, 'types differ: an object and null'],
    ['an object and a number', { a: one }, 3, {}, 'types differ: an object and 3'],
    ['objects with another value', { a: one }, { a: t([2]) }, {}, 'Accuracy failed: allclose not within tol=0.0001; Accuracy failed for key name a'],
    ['maps', new Map([['a', one]]), new Map([['a', one]]), {}, true],
    [
      'maps with another value',
      new Map([['k', 1]]),
      new Map([['k', 2]]),
      {},
      'Accuracy failed: 1 and 2 not within tol=0.0001; Accuracy failed for key name k',
    ],
    ['maps with other keys', new Map([['k', 1]]), new Map([['l', 1]]), {}, 'keys differ'],
    ['null and null', null, null, {}, true],
    ['null and a text', null, 'x', {}, "values differ: null and 'x'"],
    ['texts', 'x', 'x', {}, true],
    ['vectors of one direction', t([1, 2]), t([10, 20]), { cosSimilarity: true }, true],
    ['vectors of other directions', t([1, 0]), t([0, 1]), { cosSimilarity: true }, 'Similarity score=0'],
    ['vectors at a small angle', t([1, 0]), t([1, 0.1]), { cosSimilarity: true }, true],
    ['a vector of zeros and another', t([0, 0]), t([1, 0]), { cosSimilarity: true }, 'Similarity score=0'],
    ['vectors of zeros', t([0, 0]), t([0, 0]), { cosSimilarity: true }, true],
    ['almost a vector of zeros', t([0, 0]), t([1e-5, 0]), { cosSimilarity: true }, true],
    [
      'bools, which have no direction',
      t([true, false]),
      t([true, true]),
      { cosSimilarity: true },
      'Accuracy failed: bool tensors of shape [2] differ',
    ],
    ['integers beyond 2^53', t([2n ** 60n]), t([2n ** 60n]), {}, true],
    ['numbers within a relative tolerance', 1000, 1000.05, {}, true],
    ['numbers beyond it', 1000.5, 1000.75, {}, 'Accuracy failed: 1000.5 and 1000.75 not within tol=0.0001'],
    ['whole numbers exactly', 10_000_000, 10_000_001, {}, 'Accuracy failed: 10000000 and 10000001 not within tol=0.0001'],
    ['other whole numbers, where only floats count', 1, 2, { ignoreNonFp: true }, true],
    ['a fraction, where only floats count', 1.5, 2.5, { ignoreNonFp: true }, 'Accuracy failed: 1.5 and 2.5 not within tol=0.0001'],
    ['a number and a tensor without dimensions', 1.5, t(1.5), {}, true],
    ['a tensor without dimensions and a number', t(1.5), 1.5, {}, true],
    ['a fraction and an integer tensor', 1.5, t(1, { dtype: 'int64' }), {}, 'types differ: a number and a Tensor of shape []'],
    ['a bigint and a number', 3n, 3, {}, 'values differ: 3n and 3'],
    ['a bigint and a number, relaxed', 3n, 3, { relaxNumpyEquality: true }, true],
    ['a bigint and another number, relaxed', 3n, 4, { relaxNumpyEquality: true }, 'values differ: 3n and 4'],
    ['null and an instance', null, new Error('x'), {}, 'values differ: null and an Error'],
    ['null and zero, where only floats count', null, 0, { ignoreNonFp: true }, true],
    ['a date and a number, where only floats count', new Date(0), 3, { ignoreNonFp: true }, 'values differ: a Date and 3'],
    ['sets', new Set([1, 2]), new Set([2, 1]), {}, true],
    ['sets with another element', new Set([1, 2]), new Set([1, 3]), {}, 'elements differ'],
    ['a set and a list', new Set([1]), [1], {}, 'elements differ'],
    ['typed arrays', new Float32Array([1, 2]), new Float32Array([1, 2]), {}, true],
    ['typed arrays of other types', new Float32Array([1]), new Float64Array([1]), {}, 'dtype mismatch float32, float64'],
    ['a typed array and a list', new Float32Array([1]), [1], {}, 'types differ: a typed array and [1]'],
    ['a tensor and a typed array', t([1, 2]), new Float32Array([1, 3]), {}, 'Accuracy failed: allclose not within tol=0.0001'],
    ['bytes', new Uint8Array([1, 2]), new Uint8Array([1, 2]), {}, true],
    ['words without a dtype of ours', new Uint32Array([1]), new Uint32Array([2]), {}, 'Accuracy failed: int64 tensors of shape [1] differ'],
    [
      'keys by their names',
      new Map([
        ['b', 1],
        ['a', 1],
      ]),
      new Map([
        ['b', 2],
        ['a', 2],
      ]),
      {},
      'Accuracy failed: 1 and 2 not within tol=0.0001; Accuracy failed for key name a',
    ],
    [
      'keys of several types in their order',
      new Map<unknown, number>([
        ['b', 1],
        [1, 1],
      ]),
      new Map<unknown, number>([
        ['b', 2],
        [1, 2],
      ]),
      {},
      'Accuracy failed: 1 and 2 not within tol=0.0001; Accuracy failed for key name b',
    ],
    ['masks that overlap enough', t([true, true, true, false]), t([true, true, true, true]), { useIouForBool: true, iouThreshold: 0.75 }, true],
    ['masks that do not', t([true, true, true, false]), t([true, true, true, true]), { useIouForBool: true, iouThreshold: 0.76 }, 'IoU score=0.75'],
    ['masks of which the other has less', t([true, true]), t([true, false]), { useIouForBool: true }, 'IoU score=0.5'],
    ['empty masks', t([false]), t([false]), { useIouForBool: true }, true],
    ['other masks, where only floats count', t([true]), t([false]), { useIouForBool: true, ignoreNonFp: true }, true],
    ['a difference that is the tolerance', 0, 0.5, { tol: 0.5 }, true],
    ['a whole number and a text, where only floats count', 1, 'one', { ignoreNonFp: true }, true],
    ['a text and a number, relaxed', '3', 3, { relaxNumpyEquality: true }, "values differ: '3' and 3"],
    ['instances of two classes', new Left(1), new Right(1), {}, 'values differ: a Left and a Right'],
    ['instances of one class', new Left(1), new Left(1), {}, true],
    ['instances of one class with another field', new Left(1), new Left(2), {}, 'Accuracy failed: 1 and 2 not within tol=0.0001'],
    ['a direction that is near enough', t([1, 0, 0, 0, 0]), t([99, 14, 1, 1, 1]), { cosSimilarity: true }, true],
    ['NaN in the same places, which has no direction', nan, nan, { cosSimilarity: true }, true],
    ['NaN in other places', nan, t([1, NaN]), { cosSimilarity: true }, 'Similarity score=NaN'],
  ])('%s', (_what, ref, res, options, expected) => {
    expect(compared(ref, res, null, options)).toBe(expected)
  })

  it('a map is not an object', () => {
    expect(same(new Map([['a', 1]]), { a: 1 })).toBe(false)
  })

  it('reasons go to the log of the debugger', () => {
    expect(same(t([1]), t([2]))).toBe(false)
    expect(said).toEqual([['error', 'Accuracy failed: allclose not within tol=0.0001']])
  })

  it('refuses options that it does not have, and values that they cannot have', () => {
    expect(() => same(one, one, null, { tolerance: 1 } as never)).toThrow(/^same: unknown option 'tolerance'/)
    expect(() => bitwiseSame(one, one, { tol: 1 } as never)).toThrow(/^bitwiseSame: unknown option 'tol'.* known are equalNan, logError\.$/)
    for (const tol of [undefined, null, '1', NaN, -1, 1n, {}])
      expect(() => same(one, t([2]), null, { tol } as never)).toThrow(/^same: argument 'options\.tol' must be a number that is not negative, got /)
    expect(() => same(one, one, null, { iouThreshold: '1' } as never)).toThrow(/^same: argument 'options\.iouThreshold' must be a number, got '1'/)
    expect(() => same(one, one, null, { logError: 'log' } as never)).toThrow(/^same: argument 'options\.logError'/)
  })

  it('refuses values that contain themselves', () => {
    const [list, fields] = [[] as unknown[], {} as { self?: unknown }]
    list.push(list)
    fields.self = fields
    for (const cyclic of [list, fields, new Map([['self', fields]])]) expect(() => same(cyclic, cyclic)).toThrow(ArgumentError)
  })

  it.each([
    [Float64Array, 'float64'],
    [Float32Array, 'float32'],
    [Int32Array, 'int32'],
    [Int16Array, 'int16'],
    [Int8Array, 'int8'],
    [Uint8Array, 'uint8'],
    [Uint8ClampedArray, 'uint8'],
    [Uint16Array, 'int64'],
  ] as const)('a %o is a tensor of its dtype', (Words, dtype) => {
    const words = new Words([0, 1, 100])
    expect(compared(t([0, 1, 100], { dtype }), words)).toBe(true)
    expect(compared(words, new Words([0, 1, 101]))).toMatch(/^(Accuracy failed|RMSE)/)
    const other = dtype === 'int16' ? 'int8' : 'int16'
    expect(compared(t([0, 1, 100], { dtype: other }), words)).toBe(`dtype mismatch ${other}, ${dtype}`)
  })

  it('bitwise, integers are compared beyond 2^53, and no rounding is allowed for', () => {
    const big = t([2n ** 60n])
    expect([bitwiseSame(big, t([2n ** 60n])), bitwiseSame(big, t([2n ** 60n + 1n]))]).toEqual([true, false])
    expect([bitwiseSame(one, one), bitwiseSame(one, t([1 + 2 ** -23])), bitwiseSame(one, one, { equalNan: true })]).toEqual([true, false, true])
    expect([bitwiseSame(nan, nan), bitwiseSame(nan, nan, { equalNan: true })]).toEqual([false, true])
  })

  describe('with a float64 reference', () => {
    /** A thousand ones, but for the first. */
    const onesBut = (first: number): Tensor => t(Array.from({ length: 1000 }, (_, i) => (i === 0 ? first : 1)))
    const wide = (values: number[]): Tensor => t(values, { dtype: 'float64' })

    it.each<[string, Tensor, Tensor, Tensor, SameOptions, true | RegExp]>([
      ['a result that is as close to it as the other passes', t([1.01]), t([0.99]), wide([1]), {}, true],
      ['one that is three times as far passes among few elements', t([1.01]), t([0.9701]), wide([1]), {}, true],
      [
        'one that is farther does not',
        t([1.01]),
        t([0.965]),
        wide([1]),
        {},
        /^RMSE \(res-fp64\): 0\.03500, \(ref-fp64\): 0\.01000 and shape=\[1\]\. res\.dtype: float32, multiplier: 3\.000000, tol: 0\.000100$/,
      ],
      ['one that is off by more than a tenth of the tolerance does not', t([1]), t([1.03]), wide([1]), { tol: 0.01 }, /RMSE/],
      ['one that is off by less, on average, does', torch.ones([1000]), onesBut(1.03), torch.ones([1000], { dtype: 'float64' }), { tol: 0.01 }, true],
      ['a result that is right passes where the other has NaN', t([NaN, 1]), t([2, 1]), wide([2, 1]), {}, true],
      ['a result that is wrong does not', t([NaN, 1]), t([2.5, 1]), wide([2, 1]), {}, /RMSE/],
      ['NaN in all three passes where NaNs are equal', t([NaN, 1.01]), t([NaN, 0.99]), wide([NaN, 1]), { equalNan: true }, true],
      [
        'NaN in all three does not hide another element',
        t([NaN, 1]),
        t([NaN, 1.5]),
        wide([NaN, 1]),
        { equalNan: true },
        /RMSE \(res-fp64\): 0\.50000/,
      ],
      ['where float64 alone has NaN, the reference decides', t([1, 1.01]), t([2, 0.99]), wide([NaN, 1]), { equalNan: true }, /RMSE/],
      ['one that is just as far as it may be passes', t([1.25]), t([0.25]), wide([1]), { tol: 0 }, true],
      ['one that is a little farther does not', t([1.25]), t([0.249]), wide([1]), { tol: 0 }, /RMSE/],
      ['NaN in all three does not pass elsewhere', t([NaN, 1]), t([NaN, 1.5]), wide([NaN, 1]), {}, /RMSE/],
    ])('%s', (_what, ref, res, fp64, options, expected) => {
      if (expected === true) expect(compared(ref, res, fp64, options)).toBe(true)
      else expect(compared(ref, res, fp64, options)).toMatch(expected)
    })

    it('lists, objects and maps are compared with their parts of it', () => {
      const [ref, res, fp64] = [t([1.01]), t([0.99]), wide([1])]
      expect(compared([ref], [res], [fp64])).toBe(true)
      expect(compared({ a: ref }, { a: res }, { a: fp64 })).toBe(true)
      expect(compared(new Map([['a', ref]]), new Map([['a', res]]), new Map([['a', fp64]]))).toBe(true)
      expect(compared([ref], [res], fp64)).toMatch('allclose')
      expect(compared({ a: ref }, { a: res }, null)).toMatch('allclose')
      expect(compared(new Map([['a', ref]]), new Map([['a', res]]), { a: fp64 })).toMatch('allclose')
    })

    const far = (count: number, distance: number, shape: readonly number[] = [count]): [Tensor, Tensor, Tensor] => [
      torch.full(shape, 1.01),
      torch.full(shape, 1 + distance),
      torch.full(shape, 1, { dtype: 'float64' }),
    ]

    it('where float64 is beyond the range of the dtype, infinity is right', () => {
      const half = (x: number): Tensor => t([x, 1], { dtype: 'float16' })
      expect(compared(half(NaN), half(Infinity), wide([65_530, 1]), { equalNan: true })).toBe(true)
      expect(compared(half(NaN), half(Infinity), wide([65_510, 1]), { equalNan: true })).toMatch('RMSE')
      expect(compared(half(NaN), half(-Infinity), wide([-65_530, 1]), { equalNan: true })).toBe(true)
      expect(compared(half(NaN), half(Infinity), wide([-65_530, 1]), { equalNan: true })).toMatch('RMSE')
    })

    it('where the reference has no number, a result is right within 0.04 of float64', () => {
      expect(compared(wide([NaN]), wide([0.04]), wide([0]))).toBe(true)
      expect(compared(wide([NaN]), wide([0.041]), wide([0]))).toMatch('RMSE')
      expect(compared(wide([Infinity]), wide([104.03]), wide([100]))).toBe(true)
      expect(compared(wide([Infinity]), wide([104.1]), wide([100]))).toMatch('RMSE')
    })

    it('a thousand elements may be twice as far, fewer three times', () => {
      expect(compared(...far(999, 0.028))).toBe(true)
      expect(compared(...far(1000, 0.028))).toMatch('multiplier: 2.000000')
      expect(compared(...far(1000, 0.019))).toBe(true)
    })

    it('gradients of 1x1 convolutions, half precision and large tolerances may be three times as far', () => {
      expect(compared(...far(1200, 0.028, [40, 30, 1, 1]))).toBe(true)
      expect(compared(...far(1080, 0.028, [12, 10, 3, 3]))).toMatch('multiplier: 2.000000')
      expect(compared(...far(1200, 0.028, [12, 25, 2, 2]))).toMatch('RMSE')
      expect(compared(...far(1200, 0.028, [40, 10, 1, 3]))).toMatch('RMSE')
      expect(compared(...far(1200, 0.028, [20, 3, 1, 1, 20]))).toMatch('RMSE')
      expect(compared(...far(1200, 0.028, [40, 10, 3, 1]))).toMatch('RMSE')
      const [ref, res, fp64] = far(1200, 0.028)
      expect(compared(ref.half(), res.half(), fp64)).toBe(true)
      expect(compared(...far(1200, 0.1), { tol: 0.02 })).toMatch('multiplier: 3.000000')
    })
  })

  it('rmse is the root of the mean square error', () => {
    expect(rmse(t([1, 2, 3, 4]), t([1, 2, 3, 6]))).toBe(1)
    expect(rmse(t([1, 1]), t([1, 1]))).toBe(0)
    expect(() => rmse(3 as never, one)).toThrow(/^rmse: argument 'ref' must be a Tensor, got 3/)
    expect(() => rmse(one, 3 as never)).toThrow(/^rmse: argument 'res' must be a Tensor, got 3/)
    expect(() => rmse(one, t([1, 2]))).toThrow(/^rmse: argument 'res' must be a Tensor of shape \[1\]/)
  })
})

describe('runFwdMaybeBwd', () => {
  const input = (): Tensor => t([1, 2], { requiresGrad: true })
  const square = (x: Tensor): Tensor => x.mul(x)

  it('returns output, loss, gradients, parameters, buffers and gradients of inputs', () => {
    const layer = new nn.Sequential(new nn.Linear(2, 1), new nn.BatchNorm1d(1))
    const result = runFwdMaybeBwd(layer, [
      t(
        [
          [1, 2],
          [3, 5],
        ],
        { requiresGrad: true },
      ),
    ]) as unknown[]
    const [out, loss, grads, params, buffers, ...inputs] = result as [Tensor, null, object, object, object, ...Tensor[]]
    expect([out.shape, loss, inputs.map((grad) => grad.shape)]).toEqual([[2, 1], null, [[2, 2]]])
    expect(Object.keys(params)).toEqual(['0.weight', '0.bias', '1.weight', '1.bias'])
    expect(Object.keys(grads)).toEqual(Object.keys(params).map((name) => `${name}.grad`))
    expect(Object.keys(buffers)).toEqual(['1.runningMean', '1.runningVar', '1.numBatchesTracked'])
    // Gradients are those of this run alone.
    const again = runFwdMaybeBwd(layer, [
      t([
        [1, 2],
        [3, 5],
      ]),
    ]) as [Tensor, Tensor, Record<string, Tensor>]
    const before = Object.values(grads as Record<string, Tensor>).map((grad) => grad.toArray())
    expect(Object.values(again[2]).map((grad) => grad.toArray())).toEqual(before)
  })

  it('runs on copies, unless it is told not to', () => {
    const x = input()
    const [, loss, , , , ...grads] = runFwdMaybeBwd(square, [x, 3]) as [Tensor, null, object, object, object, ...(Tensor | null)[]]
    expect([loss, grads.length, grads[0]?.toArray(), x.grad]).toEqual([null, 1, [1, 2], null])
    runFwdMaybeBwd(square, [x], { disableClone: true })
    expect(x.grad?.toArray()).toEqual([1, 2])
    const out = runFwdMaybeBwd(square, [x], { disableClone: true, onlyFwd: true })
    expect([out instanceof torch.Tensor && out.toArray(), x.grad?.toArray()]).toEqual([
      [1, 4],
      [1, 2],
    ])
  })

  it('runs no backward where nothing requires grad, or only the forward is wanted', () => {
    expect((runFwdMaybeBwd(square, [t([1])]) as unknown[])[1]).toBeNull()
    expect((runFwdMaybeBwd(square, [input()], { onlyFwd: true }) as Tensor).toArray()).toEqual([1, 4])
  })

  it('refuses bad arguments', () => {
    expect(() => runFwdMaybeBwd(3 as never, [])).toThrow(/^runFwdMaybeBwd: argument 'model'/)
    expect(() => runFwdMaybeBwd(square, 3 as never)).toThrow(/^runFwdMaybeBwd: argument 'inputs'/)
    expect(() => runFwdMaybeBwd(square, [], { fwd: true } as never)).toThrow(/^runFwdMaybeBwd: unknown option 'fwd'/)
  })
})

describe('reduceToScalarLoss', () => {
  it('takes the mean of a tensor, and the average over lists and objects', () => {
    expect(reduceToScalarLoss(t([1, 2, 6])).item()).toBe(3)
    expect(reduceToScalarLoss([t([1, 3]), t([6])]).item()).toBe(4)
    expect(reduceToScalarLoss({ a: t([1]), b: [t([2]), t([4])] }).item()).toBe(2)
    expect(
      reduceToScalarLoss(
        new Map([
          ['a', t([1])],
          ['b', t([3])],
        ]),
      ).item(),
    ).toBe(2)
  })

  it('refuses what contains itself, and so does what asks for a backward', () => {
    const cyclic: unknown[] = []
    cyclic.push(cyclic)
    for (const fn of [reduceToScalarLoss, requiresBwdPass]) expect(() => fn(cyclic)).toThrow(ArgumentError)
    expect(() => runFwdMaybeBwd(() => cyclic, [])).toThrow(ArgumentError)
    expect([requiresBwdPass(undefined), requiresBwdPass(null), requiresBwdPass([])]).toEqual([false, false, false])
  })

  it('refuses what holds no tensor', () => {
    expect(() => reduceToScalarLoss(null)).toThrow("don't know how to reduce null; return tensors, or arrays or objects of tensors.")
    expect(() => reduceToScalarLoss([1])).toThrow("don't know how to reduce 1")
    expect(() => reduceToScalarLoss('x')).toThrow("don't know how to reduce 'x'")
  })
})

describe('castToFp64', () => {
  class Layer extends nn.Module {
    readonly inner = new nn.Linear(2, 2)
    declare readonly count: Tensor
    constructor() {
      super()
      this.registerBuffer('count', t([3], { dtype: 'int64' }))
    }
    forward(x: Tensor): Tensor {
      return torch.zerosLike(x, { dtype: 'float32' }).add(this.inner(x).to('float32')).add(x.to('int64')).add(this.count)
    }
  }

  it('casts parameters, inputs and named dtypes; integers stay, and the originals are not changed', () => {
    const gm = symbolicTrace(new Layer())
    const before = String(gm.code)
    const given = t([[1, 2]], { requiresGrad: true })
    const wide = castToFp64(gm, [given, t([1]), t([4], { dtype: 'int64' }), 7])
    const [first, second, third, fourth] = wide.inputs as [Tensor, Tensor, Tensor, number]
    expect([first.dtype, first.requiresGrad, second.requiresGrad, third.dtype, fourth]).toEqual(['float64', true, false, 'int64', 7])
    const weight = wide.gm.parameters().next().value as Tensor
    expect([weight.dtype, weight.requiresGrad, weight.isParameter]).toEqual(['float64', true, true])
    expect((wide.gm(first) as Tensor).dtype).toBe('float64')
    expect(wide.gm.code).not.toContain('float32')
    expect(wide.gm.code).toContain('int64')
    expect(String(gm.code)).toBe(before)
    expect([given.dtype, [...gm.parameters()][0]?.dtype]).toEqual(['float32', 'float32'])
  })

  it('refuses bad arguments', () => {
    expect(() => castToFp64(3 as never, [])).toThrow(/GraphModule/)
    expect(() =>
      castToFp64(
        symbolicTrace((x: Tensor) => x),
        3 as never,
      ),
    ).toThrow(/inputs/)
  })
})

describe('sameTwoModels', () => {
  const gm = symbolicTrace((x: Tensor) => torch.sin(x))

  it('compares outputs and gradients, and logs what differs', () => {
    const x = t([1, 2], { requiresGrad: true })
    expect(sameTwoModels(gm, (v: Tensor) => torch.sin(v), [x])).toBe(true)
    expect(said).toEqual([])
    // The values are right, and the gradient is not.
    const wrong = (v: Tensor): Tensor => torch.sin(v).detach().add(v.sub(v.detach()))
    expect(sameTwoModels(gm, wrong, [x])).toBe(false)
    expect(said.at(-1)?.[1]).toMatch(/^RMSE/)
    expect(sameTwoModels(gm, wrong, [x], { onlyFwd: true })).toBe(true)
  })

  it('a run-time error of the compiled model is not the same, and says so', () => {
    const throwing = (): never => {
      throw new RangeError('boom')
    }
    expect(sameTwoModels(gm, throwing, [t([1])])).toBe(false)
    expect(said).toEqual([['error', 'The models were not compared: the compiled model fails: RangeError: boom']])
  })

  it('looks at integers unless they do not count', () => {
    const ints = symbolicTrace((x: Tensor) => torch.argmax(x))
    const other = (x: Tensor): Tensor => torch.argmin(x)
    expect(sameTwoModels(ints, other, [t([1, 2])])).toBe(false)
    expect(sameTwoModels(ints, other, [t([1, 2])], { ignoreNonFp: true })).toBe(true)
    config.reproIgnoreNonFp = true
    expect(sameTwoModels(ints, other, [t([1, 2])])).toBe(true)
  })

  it('has the tolerance of the settings, and a reference in float64 unless they say no', () => {
    const near = (x: Tensor): Tensor => torch.sin(x).add(0.01)
    config.reproTolerance = 0.1
    expect(sameTwoModels(gm, near, [t([1])])).toBe(true)
    config.reproTolerance = 1e-3
    expect(sameTwoModels(gm, near, [t([1])])).toBe(false)
    expect(said.at(-1)?.[1]).toMatch(/^RMSE/)
    config.sameTwoModelsUseFp64 = false
    expect(sameTwoModels(gm, near, [t([1])])).toBe(false)
    expect(said.at(-1)?.[1]).toMatch(/allclose/)
  })

  it('where no float64 reference can be computed, warns, or throws if one is required', () => {
    const float32Only = (x: Tensor): Tensor => {
      if (x.dtype === 'float64') throw new TypeError('no float64')
      return x.mul(2)
    }
    const graph = new Graph()
    graph.output(graph.callFunction(float32Only, [graph.placeholder('x')]))
    const narrow = new GraphModule({}, graph)
    const right = (x: Tensor): Tensor => x.mul(2)
    expect(sameTwoModels(narrow, right, [torch.ones([2, 2])])).toBe(true)
    expect(said).toEqual([['warning', 'Could not generate fp64 outputs']])
    expect(() => sameTwoModels(narrow, right, [torch.ones([2, 2])], { requireFp64: true })).toThrow(
      'Could not generate fp64 outputs, workaround with config.sameTwoModelsUseFp64 = false',
    )
  })

  it('refuses bad arguments', () => {
    expect(() => sameTwoModels(3 as never, () => 1, [])).toThrow(/^sameTwoModels: .*GraphModule/)
    expect(() => sameTwoModels(gm, 3 as never, [])).toThrow(/^sameTwoModels: .*compiled/)
    expect(() => sameTwoModels(gm, () => 1, 3 as never)).toThrow(/inputs/)
    expect(() => sameTwoModels(gm, () => 1, [], { fp64: true } as never)).toThrow(/fp64/)
  })
})
