// Creation functions and the table itself.
import { describe, expect, test } from 'vitest'
import { ArgumentError, ShapeError, torch } from 'tensorfx'
import { opByName, opOf } from 'tensorfx/ops'
import { builtInOps } from '../builtInOps.ts'
import { lookupTarget, targetInfo } from '../../../src/protocol/index.ts'
import { camelCase } from '../../../src/protocol/index.ts'

const { arange, equal, eye, full, linspace, ones, scalarTensor, tensor, zeros, zerosLike } = torch

describe('creation', () => {
  test('filled tensors', () => {
    expect(zeros([2, 2]).toArray()).toEqual([
      [0, 0],
      [0, 0],
    ])
    expect(zeros(2, 2).shape).toEqual([2, 2])
    expect(ones(2, { dtype: 'int32' }).toArray()).toEqual([1, 1])
    expect(full([2], 2.5, { dtype: 'float64' }).toArray()).toEqual([2.5, 2.5])
    expect(full([2], true).dtype).toBe('bool')
    expect(zeros([]).shape).toEqual([])
    expect(zerosLike(tensor([1], { dtype: 'int32' })).dtype).toBe('int32')
    expect(torch.onesLike(zeros([2, 1])).toArray()).toEqual([[1], [1]])
    expect(torch.fullLike(zeros([1]), 3).toArray()).toEqual([3])
    expect(torch.emptyLike(zeros([3])).shape).toEqual([3])
    expect(scalarTensor(4).item()).toBe(4)
    expect(ones([2], { requiresGrad: true }).requiresGrad).toBe(true)
  })
  test('ranges', () => {
    expect(arange(3).toArray()).toEqual([0, 1, 2])
    expect(arange(1, 3).toArray()).toEqual([1, 2])
    expect(arange(5, 0, -2, { dtype: 'int32' }).toArray()).toEqual([5, 3, 1])
    expect(arange(0).shape).toEqual([0])
    expect(arange(0, 1, 0.25).toArray()).toEqual([0, 0.25, 0.5, 0.75])
    expect(linspace(0, 1, 5).toArray()).toEqual([0, 0.25, 0.5, 0.75, 1])
    expect(linspace(3, 9, 1).toArray()).toEqual([3])
    expect(eye(2).toArray()).toEqual([
      [1, 0],
      [0, 1],
    ])
    expect(eye(1, 2).toArray()).toEqual([[1, 0]])
  })
  test('errors', () => {
    expect(() => zeros([-1])).toThrow(ShapeError)
    expect(() => arange(0, 5, -1)).toThrow(ArgumentError)
    expect(() => ones([1], { dtype: 'float8' as never })).toThrow(/torch\.ones: argument 'dtype': expected a dtype, got 'float8'/)
    expect(() => ones([1], { dtype: 'int32', requiresGrad: true })).toThrow(/only floating-point and complex tensors/)
    expect(() => zeros('2' as never)).toThrow(/argument 'size' must be an array of integers, got '2'/)
  })
  test('equal and allclose', () => {
    expect(equal(ones([2]), tensor([1, 1]))).toBe(true)
    expect(ones([2]).equal(ones([1, 2]))).toBe(false)
    expect(torch.allclose(tensor([1]), tensor([1 + 1e-7]))).toBe(true)
    expect(tensor([NaN]).allclose(tensor([NaN]))).toBe(false)
    expect(tensor([NaN]).allclose(tensor([NaN]), { equalNan: true })).toBe(true)
  })
})

describe('the operator table', () => {
  test('functions know their operator, and names find it', () => {
    expect(opOf(torch.add)).toBe(opByName('torch.add'))
    expect(opOf(() => 1)).toBeUndefined()
    expect(lookupTarget('torch.log_softmax')).toBe(torch.logSoftmax)
    expect(targetInfo(torch.add)?.schema?.text).toMatch(/^add\.Tensor/)
    expect(targetInfo(torch.relu_)?.effects).toBe('mutates')
    expect(targetInfo(torch.rand)?.effects).toBe('random')
    expect(torch.add.name).toBe('add')
  })
  test('ids and names are unique', () => {
    const ops = builtInOps()
    expect(new Set(ops.map((op) => op.id)).size).toBe(ops.length)
    expect(new Set(ops.map((op) => op.qualname)).size).toBe(ops.length)
  })
  test('every operator can be run and has a meta', () => {
    for (const op of builtInOps()) {
      expect(op.kernel !== null || op.decompose !== null, `${op.qualname} cannot be run`).toBe(true)
      expect(typeof op.meta).toBe('function')
      if (op.pointwise !== null || op.reduction !== null || op.tags.has('view')) expect(op.kernel, op.qualname).not.toBeNull()
    }
  })
  test('functions of torch are reachable under the name that graphs print', () => {
    const missing: string[] = []
    for (const op of builtInOps()) {
      let at: unknown = { torch }
      // Methods as functions: torch.Tensor.add_.
      for (const part of op.qualname.split('.').slice(0, -1)) at = (at as Record<string, unknown> | undefined)?.[part]
      if ((at as Record<string, unknown> | undefined)?.[camelCase(op.name)] !== op.fn) missing.push(op.qualname)
    }
    expect(missing).toEqual([])
  })
})
