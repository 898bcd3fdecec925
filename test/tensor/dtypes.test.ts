// Tensors of every dtype: made from JavaScript's values, read back, and their limits.
import { afterEach, describe, expect, it, test } from 'vitest'
import { torch } from 'tensorfx'
import type { DType } from 'tensorfx'
import { notADType } from '../../src/tensor/index.ts'

const { tensor } = torch

afterEach(() => torch.setDefaultDtype('float32'))

describe('torch.tensor (difference: numbers-are-floats)', () => {
  it.each<[string, () => { dtype: DType; values: unknown }, DType, unknown]>([
    ['numbers', () => from(tensor([1, 2])), 'float32', [1, 2]],
    ['booleans', () => from(tensor([true, false])), 'bool', [true, false]],
    ['bigints', () => from(tensor([[1n], [-2n]])), 'int64', [[1], [-2]]],
    ['a bigint', () => from(tensor(5n)), 'int64', 5],
    ['a Float32Array', () => from(tensor(new Float32Array([1.5]))), 'float32', [1.5]],
    ['a Float64Array', () => from(tensor(new Float64Array([0.1]))), 'float64', [0.1]],
    ['an Int8Array', () => from(tensor(new Int8Array([-128, 127]))), 'int8', [-128, 127]],
    ['a Uint8Array', () => from(tensor(new Uint8Array([0, 255]))), 'uint8', [0, 255]],
    ['a Uint8ClampedArray', () => from(tensor(new Uint8ClampedArray([0, 300]))), 'uint8', [0, 255]],
    ['an Int16Array', () => from(tensor(new Int16Array([-32768]))), 'int16', [-32768]],
    ['an Int32Array', () => from(tensor(new Int32Array([2 ** 31 - 1]))), 'int32', [2 ** 31 - 1]],
    ['a BigInt64Array', () => from(tensor(new BigInt64Array([2n ** 40n]))), 'int64', [2 ** 40]],
    ['numbers as int8', () => from(tensor([1.9, -1.9], { dtype: 'int8' })), 'int8', [1, -1]],
    ['numbers as float16', () => from(tensor([0.1, 65520], { dtype: 'float16' })), 'float16', [0.0999755859375, Infinity]],
    ['numbers as bfloat16', () => from(tensor([0.1, 257], { dtype: 'bfloat16' })), 'bfloat16', [0.10009765625, 256]],
    ['bigints as float32', () => from(tensor([2n ** 60n], { dtype: 'float32' })), 'float32', [2 ** 60]],
    ['numbers and bigints, with a dtype', () => from(tensor([1, 2n], { dtype: 'int16' })), 'int16', [1, 2]],
    ['nothing', () => from(tensor([])), 'float32', []],
  ])('takes %s', (_, make, dtype, values) => expect(make()).toEqual({ dtype, values }))

  test('takes a Float16Array where the host has one', () => {
    const Half: unknown = Reflect.get(globalThis, 'Float16Array')
    // A stand-in of the same name on hosts without it.
    class Float16Array extends Float32Array {
      override get [Symbol.toStringTag](): 'Float32Array' {
        return 'Float16Array' as 'Float32Array'
      }
    }
    const made = tensor(typeof Half === 'function' ? (Reflect.construct(Half, [[1.5]]) as Float32Array) : new Float16Array([1.5]))
    expect([made.dtype, made.toArray()]).toEqual(['float16', [1.5]])
  })

  test('refuses what it cannot represent', () => {
    expect(() => tensor([1, 2n])).toThrow(/numbers and bigints are mixed/)
    expect(() => tensor([2 ** 53], { dtype: 'int64' })).toThrow(/9007199254740992.*bigint/)
    expect(() => tensor([NaN], { dtype: 'int64' })).toThrow(/NaN/)
    expect(() => torch.full([1], 2 ** 60, { dtype: 'int64' })).toThrow(/1152921504606847000 is not exact as int64.*bigint/)
    expect(() => tensor(['1'] as never)).toThrow(/expected numbers, booleans or bigints, .*got '1'/)
    expect(() => tensor(new Uint16Array([1]) as never)).toThrow(/no dtype corresponds to Uint16Array/)
  })
})

/** The dtype and the values of a tensor. */
function from(t: ReturnType<typeof tensor>): { dtype: DType; values: unknown } {
  return { dtype: t.dtype, values: t.toArray() }
}

describe('a dtype that does not exist', () => {
  it.each<[string, () => unknown]>([
    ['of torch.zeros', () => torch.zeros([1], { dtype: 'flaot32' as never })],
    ['of torch.tensor', () => tensor([1], { dtype: 'flaot32' as never })],
    ['of Tensor.to', () => tensor([1]).to('flaot32' as never)],
    ['of Tensor.type', () => tensor([1]).type('flaot32' as never)],
    ['of torch.finfo', () => torch.finfo('flaot32' as never)],
    ['of torch.iinfo', () => torch.iinfo('flaot32' as never)],
  ])('%s is named, with the probable one', (_, call) => expect(call).toThrow(/got 'flaot32'; did you mean 'float32'\?/))

  it.each<[string, () => unknown]>([
    ['torch.zeros', () => torch.zeros([1], { dtype: undefined as never })],
    ['torch.full', () => torch.full([1], 2, { dtype: undefined as never })],
    ['torch.tensor', () => tensor([1], { dtype: undefined as never })],
    ['Tensor.to', () => tensor([1]).to(undefined as never)],
    ['Tensor.to, in options', () => tensor([1]).to({ dtype: undefined as never })],
  ])('is an error when it is undefined: %s', (_, call) => expect(call).toThrow(/expected a dtype, got undefined/))

  test.each([
    ['float', 'float32'],
    ['torch.half', 'float16'],
    ['Long', 'int64'],
    ['boolean', 'bool'],
    ['bfloat', 'bfloat16'],
    ['uint', 'uint8'],
  ])('%s is probably %s', (name, meant) => expect(notADType(name)).toContain(`did you mean '${meant}'?`))
  test('other words get the list', () => {
    expect(notADType('quaternion64')).toBe(
      "expected a dtype, got 'quaternion64'. A dtype is one of bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, complex128.",
    )
    expect(notADType(5)).toMatch(/^expected a dtype, got 5\./)
  })
  test("PyTorch's other names are members of torch", () => {
    expect([torch.half, torch.float, torch.double, torch.short, torch.int, torch.long]).toEqual([
      'float16',
      'float32',
      'float64',
      'int16',
      'int32',
      'int64',
    ])
    expect([torch.bool, torch.uint8, torch.int8, torch.int64, torch.bfloat16]).toEqual(['bool', 'uint8', 'int8', 'int64', 'bfloat16'])
  })
})

describe('int64 values (difference: safe-integers)', () => {
  const large = tensor([2n ** 60n, -1n])
  test('are numbers where those are exact', () => {
    const x = tensor([2n ** 53n - 1n, -(2n ** 53n) + 1n])
    expect(x.toArray()).toEqual([2 ** 53 - 1, -(2 ** 53) + 1])
    expect([...x.toTypedArray()]).toEqual([2 ** 53 - 1, -(2 ** 53) + 1])
    expect(tensor(7n).item()).toBe(7)
  })
  test.each<[string, () => unknown]>([
    ['toArray', () => large.toArray()],
    ['toTypedArray', () => large.toTypedArray()],
    ['item', () => large.select(0, 0).item()],
  ])('beyond that, %s throws an error that says what to call', (_, read) => expect(read).toThrow(/1152921504606846976.*toBigIntArray\(\)/))
  test('are printed exactly', () => {
    expect([String(large), String(large.select(0, 0)), `${tensor(-(2n ** 63n))}`]).toEqual([
      'tensor([1152921504606846976,                  -1])',
      '1152921504606846976',
      '-9223372036854775808',
    ])
  })
  test('that do not fit are refused', () => {
    for (const value of [2n ** 63n, -(2n ** 63n) - 1n, 2n ** 70n])
      expect(() => tensor([value])).toThrow(
        `the bigint ${value}n does not fit in int64, whose values are from -(2^63) to 2^63 - 1; give the option dtype`,
      )
    expect(tensor([2n ** 70n], { dtype: 'float64' }).item()).toBe(2 ** 70)
  })
  test('are no numbers of operators, whose errors say what to write', () => {
    const call = (fn: object, ...args: readonly unknown[]): unknown => (typeof fn === 'function' ? Reflect.apply(fn, undefined, args) : undefined)
    expect(() => call(torch.add, large, 1n)).toThrow("torch.add: argument 'other' must be a Tensor or a number, got 1n. Write it as a number: 1.")
    expect(() => call(torch.eq, large, 2n ** 60n)).toThrow('got 1152921504606846976n. Make a tensor of it: torch.tensor(1152921504606846976n).')
    expect(() => call(torch.zeros, [2n])).toThrow("torch.zeros: argument 'size[0]' must be an integer, got 2n.")
    expect([...large.eq(tensor(2n ** 60n)).toTypedArray()]).toEqual([1, 0])
  })
  test('are bigints in toBigIntArray, through any strides', () => {
    expect(large.toBigIntArray()).toEqual(new BigInt64Array([2n ** 60n, -1n]))
    const matrix = tensor([
      [1n, 2n ** 62n],
      [3n, 4n],
    ])
    expect([...matrix.t().toBigIntArray()]).toEqual([1n, 3n, 2n ** 62n, 4n])
    expect([...tensor([1.9, -1.9]).char().toBigIntArray()]).toEqual([1n, -1n])
    expect(() => tensor([1.5]).toBigIntArray()).toThrow(/integer/)
  })
  test('are compared exactly', () => {
    expect(tensor([2n ** 60n]).equal(tensor([2n ** 60n + 1n]))).toBe(false)
    expect(large.equal(large.clone())).toBe(true)
    expect(large.allclose(large.clone())).toBe(true)
  })
})

describe('limits', () => {
  test('of floating-point dtypes are those of IEEE 754 (and bfloat16)', () => {
    expect(torch.finfo('float32')).toEqual({
      dtype: 'float32',
      bits: 32,
      eps: 2 ** -23,
      max: 3.4028234663852886e38,
      min: -3.4028234663852886e38,
      smallestNormal: 1.1754943508222875e-38,
      tiny: 1.1754943508222875e-38,
      resolution: 1e-6,
    })
    expect(torch.finfo('float64')).toMatchObject({ eps: Number.EPSILON, max: Number.MAX_VALUE, tiny: 2.2250738585072014e-308, resolution: 1e-15 })
    expect(torch.finfo('float16')).toMatchObject({ bits: 16, eps: 0.0009765625, max: 65504, tiny: 0.00006103515625, resolution: 0.001 })
    expect(torch.finfo('bfloat16')).toMatchObject({ bits: 16, eps: 0.0078125, max: 3.3895313892515355e38, resolution: 0.01 })
    expect(torch.finfo().dtype).toBe('float32')
    expect(() => torch.finfo('int8')).toThrow(/use torch\.iinfo/)
  })
  test('of integers', () => {
    expect(torch.iinfo('int8')).toEqual({ dtype: 'int8', bits: 8, max: 127, min: -128 })
    expect(torch.iinfo('uint8')).toEqual({ dtype: 'uint8', bits: 8, max: 255, min: 0 })
    expect(torch.iinfo('int64')).toEqual({ dtype: 'int64', bits: 64, max: 2n ** 63n - 1n, min: -(2n ** 63n) })
    expect(() => torch.iinfo('float32')).toThrow(/use torch\.finfo/)
  })
})
