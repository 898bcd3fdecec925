// Conversions between all dtypes: kernels and the reference interpreter against PyTorch's results.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { DTYPES } from '../../../src/kernels/numbers/dtype.ts'
import type { DType, ElementValue, RealDType, StorageArray } from '../../../src/kernels/numbers/dtype.ts'
import { bfloat16Number, float16Number } from '../../../src/kernels/numbers/halfPrecision.ts'
import { at, bufferParam, cast, constant, forLoop, load, loopVar, scalar, scalarParam, store } from '../../../src/kernels/ir/loopIr.ts'
import { arrayOf, runBoth, runWasm, valuesOf } from '../harness.ts'

/** Values as JSON has them: text for infinities, NaN and integers beyond 2^53. */
type Value = number | boolean | string
interface Cast {
  readonly from: DType
  readonly to: DType
  readonly values: readonly Value[]
  readonly result: readonly Value[]
}
const { casts } = JSON.parse(readFileSync(new URL('../../goldens/dtypes/casts.json', import.meta.url), 'utf8')) as { readonly casts: readonly Cast[] }

const WORDS: Readonly<Record<string, number>> = { inf: Infinity, '-inf': -Infinity, nan: NaN }
const elementsOf = (dtype: DType, values: readonly Value[]): ElementValue[] =>
  values.map((value) => (dtype === 'int64' ? BigInt(value) : typeof value === 'string' ? (WORDS[value] ?? Number(value)) : Number(value)))

/** Runs a cast of every element; the results of WebAssembly and of the reference interpreter. */
function castBoth(
  from: DType,
  to: DType,
  data: StorageArray,
): { readonly wasm: StorageArray | undefined; readonly oracle: StorageArray | undefined } {
  const n = data.length
  const i = loopVar('i', n)
  const [out, input] = [bufferParam('out', to, 'write'), bufferParam('a', from)]
  const body = [forLoop(i, 'simd', [store(out, at([i, 1]), cast(load(input, at([i, 1])), to))])]
  const { wasm, oracle } = runBoth({ name: 'cast', params: [out, input], body }, { out: arrayOf(to, n), a: data })
  return { wasm: wasm['out'], oracle: oracle['out'] }
}

test('casts give the results of PyTorch', () => {
  expect(casts).toHaveLength(40)
  for (const { from, to, values, result } of casts) {
    const { wasm, oracle } = castBoth(from, to, arrayOf(from, elementsOf(from, values)))
    expect(valuesOf(to, wasm), `${from} to ${to}`).toEqual(elementsOf(to, result))
    expect(valuesOf(to, oracle), `${from} to ${to}, reference`).toEqual(elementsOf(to, result))
  }
})

test('casts between all pairs of dtypes agree with the reference interpreter at edges and in between', () => {
  const edges = [
    0,
    -0,
    1,
    -1,
    0.5,
    -1.5,
    2.5,
    127,
    128,
    -129,
    255,
    256,
    1e3,
    -1e5,
    65504,
    65520,
    2 ** 31,
    -(2 ** 31),
    2 ** 53,
    1e19,
    -1e30,
    Infinity,
    -Infinity,
    NaN,
  ]
  const integers = [2n ** 63n - 1n, -(2n ** 63n), 2n ** 53n + 1n, 2n ** 60n + 2n ** 36n + 1n, -(2n ** 31n) - 1n]
  for (const from of DTYPES) {
    const data = arrayOf(from, [...edges, ...integers])
    for (const to of DTYPES) {
      const { wasm, oracle } = castBoth(from, to, data)
      expect(valuesOf(to, wasm), `${from} to ${to}`).toEqual(valuesOf(to, oracle))
    }
  }
})

test('every float16 and bfloat16 is loaded, stored and rounded in vector code as by definition', () => {
  const patterns = Uint16Array.from({ length: 65536 }, (_, k) => k)
  for (const [dtype, number] of [
    ['float16', float16Number],
    ['bfloat16', bfloat16Number],
  ] as const) {
    const values = Float32Array.from(patterns, number)
    const widened = castBoth(dtype, 'float32', patterns).wasm
    expect(valuesOf('float32', widened)).toEqual([...values])
    // The midpoint of each pair of neighbours, and the float32 on either side of it.
    const finite = values.slice(0, dtype === 'float16' ? 0x7c00 : 0x7f80)
    const middles = finite.map((x, k) => x + (Math.min(finite[k + 1] ?? x, 3.4e38) - x) / 2)
    const around = Float32Array.from([...middles, ...middles.map((x) => x * (1 + 2 ** -23)), ...middles.map((x) => -x * (1 - 2 ** -23))])
    const { wasm, oracle } = castBoth('float32', dtype, around)
    expect(wasm).toEqual(oracle)
  }
})

test('scalar parameters are rounded to their dtype', () => {
  const given = 300.7
  const wanted: Readonly<Record<RealDType, ElementValue>> = {
    bool: 1,
    uint8: 44,
    int8: 44,
    int16: 300,
    int32: 300,
    int64: 300n,
    float16: 300.75,
    bfloat16: 300,
    float32: Math.fround(300.7),
    float64: 300.7,
  }
  for (const dtype of DTYPES) {
    const i = loopVar('i', 5)
    const [out, s] = [bufferParam('out', dtype, 'write'), scalarParam('s', dtype)]
    const kernel = { name: 'fill', params: [out, s], body: [forLoop(i, 'simd', [store(out, at([i, 1]), scalar(s))])] }
    const { wasm, oracle } = runBoth(kernel, { out: arrayOf(dtype, 5), s: given })
    expect(valuesOf(dtype, wasm['out'])).toEqual(Array(5).fill(wanted[dtype]))
    expect(oracle['out']).toEqual(wasm['out'])
  }
})

test('constants of int64 beyond 2^53 keep all bits', () => {
  const i = loopVar('i', 3)
  const out = bufferParam('out', 'int64', 'write')
  for (const value of [2n ** 62n + 1n, -(2n ** 63n), 5n]) {
    const body = [forLoop(i, 'simd', [store(out, at([i, 1]), constant('int64', value))])]
    expect(runWasm({ name: 'fill', params: [out], body }, { out: new BigInt64Array(3) })['out']).toEqual(BigInt64Array.from([value, value, value]))
  }
})
