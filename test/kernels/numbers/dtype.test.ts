// The table of dtypes, promotion, elements of typed arrays, and the two half precisions.
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { DTYPES, accumulationType, dtypeInfo, isComplexDType, isDType, isNarrow, promoteTypes } from '../../../src/kernels/numbers/dtype.ts'
import type { DType } from '../../../src/kernels/numbers/dtype.ts'
import { readElement, readNumber, writeElement } from '../../../src/kernels/numbers/elements.ts'
import {
  bfloat16Bits,
  bfloat16Number,
  float16Bits,
  float16Number,
  roundToBfloat16,
  roundToFloat16,
} from '../../../src/kernels/numbers/halfPrecision.ts'
import { converted, rounded } from '../../../src/kernels/numbers/numbers.ts'

const promotion = JSON.parse(readFileSync(new URL('../../goldens/dtypes/promotion.json', import.meta.url), 'utf8')) as {
  readonly tensor_tensor: Readonly<Record<string, DType>>
}

describe('the table', () => {
  test('lists every dtype of real numbers once, with a typed array of its size', () => {
    const all = Object.keys(dtypeInfo).filter(isDType)
    expect(all).toEqual(Object.keys(dtypeInfo))
    expect([...DTYPES].sort()).toEqual(all.filter((dtype) => !isComplexDType(dtype)).sort())
    for (const dtype of DTYPES) {
      const { size, array, kind, floating } = dtypeInfo[dtype]
      expect(new array(3).byteLength, dtype).toBe(3 * size)
      expect(floating).toBe(kind === 'floating')
    }
    // A complex number is two of the floats that lie in its array.
    for (const dtype of all.filter(isComplexDType)) expect(new dtypeInfo[dtype].array(2 * 3).byteLength, dtype).toBe(3 * dtypeInfo[dtype].size)
    expect(isDType('complex32')).toBe(false)
    expect(new Set(DTYPES.map((dtype) => dtypeInfo[dtype].short)).size).toBe(DTYPES.length)
  })

  test('has the ranges of the integers', () => {
    const ranges = DTYPES.filter((dtype) => dtypeInfo[dtype].kind === 'integer').map((dtype) => [
      dtype,
      dtypeInfo[dtype].lowest,
      dtypeInfo[dtype].highest,
    ])
    expect(ranges).toEqual([
      ['uint8', 0, 255],
      ['int8', -128, 127],
      ['int16', -32768, 32767],
      ['int32', -2147483648, 2147483647],
      ['int64', -9223372036854775808n, 9223372036854775807n],
    ])
  })

  test('computes small integers in int32 and half precisions in float32, and sums in int64 and float32', () => {
    expect(DTYPES.filter(isNarrow).map((dtype) => [dtype, dtypeInfo[dtype].compute])).toEqual([
      ['uint8', 'int32'],
      ['int8', 'int32'],
      ['int16', 'int32'],
      ['float16', 'float32'],
      ['bfloat16', 'float32'],
    ])
    expect(DTYPES.map(accumulationType)).toEqual(['int64', 'int64', 'int64', 'int64', 'int64', 'int64', 'float32', 'float32', 'float32', 'float64'])
  })
})

test('promoteTypes agrees with PyTorch for every pair', () => {
  expect(Object.keys(promotion.tensor_tensor)).toHaveLength(100)
  for (const a of DTYPES) for (const b of DTYPES) expect(promoteTypes(a, b), `${a}, ${b}`).toBe(promotion.tensor_tensor[`${a},${b}`])
})

describe('elements', () => {
  test('of every dtype are read as they were written', () => {
    for (const dtype of DTYPES) {
      const values = dtype === 'bool' ? [0, 1] : dtype === 'uint8' ? [0, 1, 255] : [0, 1, -1, 100, -128]
      const data = new dtypeInfo[dtype].array(values.length)
      values.forEach((value, i) => writeElement(dtype, data, i, value))
      expect(values.map((_, i) => readNumber(dtype, data, i))).toEqual(values)
      expect(readNumber(dtype, data, values.length)).toBeUndefined()
    }
  })

  test('of int64 are exact as bigints, and as numbers up to 2^53', () => {
    const data = new BigInt64Array(4)
    const values = [9007199254740991n, 9007199254740993n, -(2n ** 63n), 2n ** 63n + 5n]
    values.forEach((value, i) => writeElement('int64', data, i, value))
    expect([0, 1, 2, 3].map((i) => readElement('int64', data, i))).toEqual([9007199254740991n, 9007199254740993n, -(2n ** 63n), 5n - 2n ** 63n])
    expect(readNumber('int64', data, 0)).toBe(9007199254740991)
    expect(() => readNumber('int64', data, 1)).toThrow('the int64 value 9007199254740993 has no exact JavaScript number')
  })

  test('are converted when they are written: floats truncate, small integers keep the low bits', () => {
    const stored = (dtype: DType, value: number | bigint): unknown => {
      const data = new dtypeInfo[dtype].array(1)
      writeElement(dtype, data, 0, value)
      return readElement(dtype, data, 0)
    }
    expect([stored('int8', 200), stored('uint8', -1.5), stored('int16', 40000n), stored('int32', 2n ** 32n + 7n)]).toEqual([-56, 255, -25536, 7])
    expect([stored('int64', NaN), stored('int64', 1e300), stored('int64', -Infinity)]).toEqual([0n, 2n ** 63n - 1n, -(2n ** 63n)])
    expect([stored('bool', 0.5), stored('float32', 2n ** 24n + 1n), stored('float16', 0.1), stored('bfloat16', 0.1)]).toEqual([
      1, 16777216, 0.0999755859375, 0.10009765625,
    ])
  })
})

test('a bigint becomes the nearest float32 in one rounding', () => {
  // Just above the middle of two float32 values; rounding to float64 first would drop the last bit, and the tie would then go down.
  const value = 2n ** 60n + 2n ** 36n + 1n
  expect(converted('float32', value)).toBe(2 ** 60 + 2 ** 37)
  expect(converted('float32', -value)).toBe(-(2 ** 60) - 2 ** 37)
  expect(converted('float32', value - 1n)).toBe(2 ** 60)
  expect(converted('float64', value)).toBe(2 ** 60 + 2 ** 36)
  expect(rounded('int64', 2n ** 63n)).toBe(-(2n ** 63n))
})

/** The formats by their definition: bits of exponent and mantissa. */
const FORMATS = [
  { name: 'float16', exponentBits: 5, mantissaBits: 10, bits: float16Bits, number: float16Number, round: roundToFloat16 },
  { name: 'bfloat16', exponentBits: 8, mantissaBits: 7, bits: bfloat16Bits, number: bfloat16Number, round: roundToBfloat16 },
] as const

describe.each(FORMATS)('$name', ({ exponentBits, mantissaBits, bits, number, round }) => {
  const greatest = 2 ** exponentBits - 1
  const bias = 2 ** (exponentBits - 1) - 1
  /** The value of a pattern without sign. */
  const defined = (pattern: number): number => {
    const [exponent, mantissa] = [pattern >> mantissaBits, pattern % 2 ** mantissaBits]
    if (exponent === greatest) return mantissa === 0 ? Infinity : NaN
    const fraction = mantissa / 2 ** mantissaBits
    return exponent === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (exponent - bias)
  }

  test('all 65536 patterns have the values of its definition, and these have the patterns', () => {
    for (let pattern = 0; pattern < 32768; pattern++) {
      const value = defined(pattern)
      if (!Object.is(number(pattern), value) || !Object.is(number(pattern + 32768), -value))
        expect([pattern, number(pattern)]).toEqual([pattern, value])
      if (Number.isNaN(value)) continue
      if (bits(value) !== pattern || bits(-value) !== pattern + 32768) expect([value, bits(value)]).toEqual([value, pattern])
      if (round(value) !== value) expect(round(value)).toBe(value)
    }
    expect(Number.isNaN(number(bits(NaN)))).toBe(true)
  })

  test('numbers round to the nearest value, and halfway to the even one', () => {
    const infinity = greatest << mantissaBits
    for (let pattern = 0; pattern < infinity; pattern++) {
      const low = defined(pattern)
      // Infinity is where the next value would be.
      const high = pattern + 1 === infinity ? 2 ** (bias + 1) : defined(pattern + 1)
      const next = pattern + 1 === infinity ? Infinity : high
      const middle = (low + high) / 2
      const step = (high - low) / 64
      const results = [round(middle - step), round(middle), round(middle + step), round(-middle)]
      const even = pattern % 2 === 0 ? low : next
      const wanted = [low, even, next, -even]
      if (!results.every((result, i) => Object.is(result, wanted[i]))) expect([pattern, ...results]).toEqual([pattern, ...wanted])
    }
    expect([round(Infinity), round(-Infinity), round(NaN), round(-0), round(1e300)]).toEqual([Infinity, -Infinity, NaN, -0, Infinity])
  })
})
