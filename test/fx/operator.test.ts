// Python's operators as functions: on numbers, on tensors, and with a number on the left of a tensor.
import { describe, expect, it } from 'vitest'
import { ArgumentError, operator, tensor } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const values = (t: unknown): number[] => Array.from((t as Tensor).contiguous().toTypedArray(), Number)
const int = (...data: number[]): Tensor => tensor(data, { dtype: 'int32' })

describe('operator', () => {
  it('computes as Python does on numbers', () => {
    expect([operator.floordiv(-7, 2), operator.mod(-7, 2), operator.mod(7, -2), operator.pow(2, 10), operator.truediv(1, 4)]).toEqual([
      -4, 1, -1, 1024, 0.25,
    ])
    expect([operator.and_(6, 3), operator.or_(6, 3), operator.xor(6, 3), operator.lshift(1, 4), operator.rshift(-9, 1)]).toEqual([2, 7, 5, 16, -5])
    expect([operator.and_(true, false), operator.or_(true, false), operator.xor(true, true)]).toEqual([false, true, false])
    expect([operator.neg(2), operator.pos(-2), operator.abs(-2), operator.invert(5)]).toEqual([-2, -2, 2, -6])
    expect([operator.gt(1, 2), operator.le(1, 2), operator.eq(1, 1), operator.ne(1, 1)]).toEqual([false, true, true, false])
  })

  it('calls the methods of tensors', () => {
    const x = int(-7, 8)
    expect(values(operator.floordiv(x, 2))).toEqual([-4, 4])
    expect(values(operator.mod(x, 3))).toEqual([2, 2])
    expect(values(operator.and_(x, 6))).toEqual([-7 & 6, 8 & 6])
    expect(values(operator.invert(x))).toEqual([6, -9])
    expect(operator.pos(x)).toBe(x)
  })

  it('puts a number on the left: 7 // x, 2 ** x, 1 << i', () => {
    expect(values(operator.floordiv(7, tensor([2, -2])))).toEqual([3, -4])
    expect(values(operator.mod(7, int(4, -4)))).toEqual([3, -1])
    expect(values(operator.pow(2, int(3, 0)))).toEqual([8, 1])
    expect(values(operator.lshift(1, int(3, 5)))).toEqual([8, 32])
    expect(values(operator.rshift(64, int(3, 5)))).toEqual([8, 2])
    expect(values(operator.sub(1, tensor([3, 5])))).toEqual([-2, -4])
    expect(values(operator.floordiv(7, tensor([Infinity, 0.5])))).toEqual([0, 14])
  })

  it('refuses a matrix product with a number, and values without the method', () => {
    expect(() => operator.matmul(1, 2)).toThrow(ArgumentError)
    expect(() => operator.neg('x')).toThrow(/has no method 'neg'/)
  })
})
