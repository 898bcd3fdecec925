// Bits of integers and booleans, and einsum's errors.
import { describe, expect, it } from 'vitest'
import { ArgumentError, DTypeError, ShapeError, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const { ones, tensor } = torch

const int = (...data: number[]): Tensor => tensor(data, { dtype: 'int32' })
const values = (t: Tensor): number[] => Array.from(t.contiguous().toTypedArray(), Number)
const numbers = [0, 1, 5, -1, -8, 123456, -123457, 2 ** 31 - 1, -(2 ** 31)]

describe('bitwise operators', () => {
  it('compute what JavaScript computes on 32-bit integers', () => {
    for (const b of [0, 1, 6, -3]) {
      expect(values(int(...numbers).bitwiseAnd(b))).toEqual(numbers.map((a) => a & b))
      expect(values(int(...numbers).bitwiseOr(int(b)))).toEqual(numbers.map((a) => a | b))
      expect(values(torch.bitwiseXor(int(...numbers), b))).toEqual(numbers.map((a) => a ^ b))
    }
    expect(values(int(...numbers).bitwiseNot())).toEqual(numbers.map((a) => ~a))
  })

  it('shift: a negative number rounds down', () => {
    for (const count of [0, 1, 7, 31]) {
      expect(values(int(...numbers).bitwiseLeftShift(count))).toEqual(numbers.map((a) => a << count))
      expect(values(int(...numbers).bitwiseRightShift(count))).toEqual(numbers.map((a) => a >> count))
      expect(values(int(...numbers).bitwiseRightShift(int(count)))).toEqual(numbers.map((a) => a >> count))
    }
  })

  it('of booleans are logical', () => {
    const [a, b] = [tensor([true, true, false, false]), tensor([true, false, true, false])]
    expect(a.bitwiseAnd(b).dtype).toBe('bool')
    expect([a.bitwiseAnd(b), a.bitwiseOr(b), a.bitwiseXor(b), a.bitwiseNot()].map(values)).toEqual([
      [1, 0, 0, 0],
      [1, 1, 1, 0],
      [0, 1, 1, 0],
      [0, 0, 1, 1],
    ])
  })

  it('refuse floats, and shifts refuse booleans', () => {
    expect(() => ones([2]).bitwiseAnd(1)).toThrow(DTypeError)
    expect(() => tensor([true]).bitwiseLeftShift(tensor([true]))).toThrow(/bitwise_left_shift: not implemented for bool; it takes integers/)
  })
})

describe('einsum', () => {
  it('takes its operands one by one or as a list, and several of them', () => {
    const [a, b, c] = [ones([2, 3]), ones([3, 4]), ones([4])]
    expect(torch.einsum('ij,jk', [a, b]).shape).toEqual([2, 4])
    expect(values(torch.einsum('ij,jk,k->i', a, b, c))).toEqual([12, 12])
    expect(values(torch.einsum('ij,jk,k->', a, b, c))).toEqual([24])
  })

  it('broadcasts what the ellipsis stands for', () => {
    expect(torch.einsum('...i,...i->...', ones([5, 1, 3]), ones([2, 3])).shape).toEqual([5, 2])
    expect(torch.einsum('i...->...', ones([3, 2])).shape).toEqual([2])
  })

  it('says what is wrong', () => {
    expect(() => torch.einsum('ij,jk->ik', ones([2, 3]))).toThrow(/2 operand\(s\), but 1 tensor/)
    expect(() => torch.einsum('ij->k', ones([2, 3]))).toThrow(ArgumentError)
    expect(() => torch.einsum('ij,jk->ik', ones([2, 3]), ones([4, 5]))).toThrow(/'j' in 'ij,jk->ik' is 3 in one operand and 4 in another/)
    expect(() => torch.einsum('ijk->i', ones([2, 3]))).toThrow(ShapeError)
    expect(() => torch.einsum('ij->ii', ones([2, 3]))).toThrow(/letter twice/)
    expect(() => torch.einsum('i+j->i', ones([2, 3]))).toThrow(/is not an operand/)
  })
})

describe('Tensor.to', () => {
  it('takes a dtype, the device, or both by name', () => {
    const x = ones([2])
    expect(x.to('cpu')).toBe(x)
    expect(x.to({ dtype: 'int32', device: 'cpu' }).dtype).toBe('int32')
    expect(() => x.to('cuda' as never)).toThrow(/neither a dtype nor a device \('cpu', 'webgpu'\)/)
    expect(() => x.to({ device: 'cuda' as never })).toThrow(/there is no device 'cuda'/)
  })
})
