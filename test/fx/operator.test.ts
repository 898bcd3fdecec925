// Python's operators as functions: on numbers, on tensors, and with a number on the left of a tensor.
import { describe, expect, expectTypeOf, it } from 'vitest'
import { ArgumentError, operator, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Slice, symbolicTrace } from 'tensorfx/fx'

const { tensor } = torch

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

  it('has the types of what it gives', () => {
    const x = tensor([1, 2])
    const either: Tensor | number = x
    const unknown: unknown = x
    expectTypeOf(operator.add(1, 2)).toEqualTypeOf<number>()
    expectTypeOf(operator.truediv(x, 2)).toEqualTypeOf<Tensor>()
    expectTypeOf(operator.sub(2, x)).toEqualTypeOf<Tensor>()
    expectTypeOf(operator.mul(either as Tensor | number, 2)).toEqualTypeOf<Tensor | number>()
    expectTypeOf(operator.lt(1, 2)).toEqualTypeOf<boolean>()
    expectTypeOf(operator.lt(1, x)).toEqualTypeOf<Tensor>()
    expectTypeOf(operator.and_(true, false)).toEqualTypeOf<number | boolean>()
    expectTypeOf(operator.iadd(x, 2)).toEqualTypeOf<Tensor>()
    expectTypeOf(operator.neg(x)).toEqualTypeOf<Tensor>()
    expectTypeOf(operator.add(unknown, 1)).toBeUnknown()
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

  it('writes in place: i-functions into the tensor, whichever methods it has; numbers give the result', () => {
    const x = tensor([7, -7])
    expect(operator.iadd(x, 1)).toBe(x)
    operator.imul(x, 2)
    expect(values(x)).toEqual([16, -12])
    for (const [fn, b] of [
      ['ifloordiv', 5],
      ['ipow', 2],
      ['imod', 4],
      ['isub', 1],
      ['itruediv', 2],
    ] as const)
      expect(operator[fn](x, b)).toBe(x)
    expect(values(x)).toEqual([0, 0])
    const i = int(6, 12)
    for (const [fn, b] of [
      ['iand', 5],
      ['ior', 2],
      ['ixor', 1],
      ['ilshift', 2],
      ['irshift', 1],
    ] as const)
      expect(operator[fn](i, b)).toBe(i)
    expect(values(i)).toEqual([14, 14])
    expect([operator.iadd(2, 3), operator.ifloordiv(-7, 2), operator.ior(5, 2), operator.irshift(-9, 1)]).toEqual([5, -4, 7, -5])
  })

  it('setitem writes elements of tensors, arrays, Maps and objects (difference: sizes-stay)', () => {
    const x = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ])
    operator.setitem(x, 0, 9)
    operator.setitem(x, [1, new Slice(1, null, null)], tensor([7, 8]))
    expect(x.toArray()).toEqual([
      [9, 9, 9],
      [4, 7, 8],
    ])
    const [list, map, object] = [['a', 2], new Map([['a', 1]]), { a: 1 }]
    operator.setitem(list, -1, 5)
    operator.setitem(map, 'a', 5)
    operator.setitem(object, 'a', 5)
    expect([list, map, object]).toEqual([['a', 5], new Map([['a', 5]]), { a: 5 }])
    expect(() => operator.setitem([2, 3], 0, 9)).toThrow('a list of sizes cannot be changed')
    expect(() => operator.setitem(list, 2, 0)).toThrow('index 2 is out of range for 2 elements')
    expect(() => operator.setitem(x, [[0, 1]], 0)).toThrow('a list of positions does not select a part of the tensor that can be written to')
    expect(() => operator.setitem(3, 0, 0)).toThrow('a value of type number has no elements')
  })

  it('writes are recorded, and never dead code', () => {
    const gm = symbolicTrace((x: Tensor) => {
      const y = x.add(0)
      operator.setitem(y, 0, 5)
      operator.isub(y, 1)
      return y
    })
    expect(gm.graph.eliminateDeadCode()).toBe(false)
    expect(values(gm.call(tensor([1, 2])))).toEqual([4, 1])
  })
})
