// The mode stack: fake tensors, recording, nesting.
import { describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import { FakeTensorMode, RecordMode, dispatchState, fakeLike, withMode, withoutModes } from '../../src/dispatch/index.ts'
import { ShapeError } from '../../src/errors/index.ts'

const { add, cat, clone, full, relu, softmax, sum, tensor, var: variance, zeros } = torch

describe('FakeTensorMode', () => {
  test('operators give shapes and dtypes without data', () => {
    withMode(new FakeTensorMode(), () => {
      const x = zeros([2, 3])
      expect(x.isFake).toBe(true)
      expect(x.add(1).shape).toEqual([2, 3])
      expect(x.sum(1, true).shape).toEqual([2, 1])
      expect(x.gt(0).dtype).toBe('bool')
      expect(softmax(x, 1).shape).toEqual([2, 3])
      expect(variance(x, 0).shape).toEqual([3])
      expect(cat([x, x], 1).shape).toEqual([2, 6])
      expect(x.add_(1)).toBe(x)
    })
  })
  test('views keep strides, offset and base', () => {
    withMode(new FakeTensorMode(), () => {
      const x = zeros([2, 3])
      const y = x.t().narrow(0, 1, 2)
      expect([y.shape, y.strides, y.offset]).toEqual([[2, 2], [1, 3], 1])
      expect(y.viewBase).toBe(x)
    })
  })
  test('real tensors may take part, and bad shapes throw as they do with data', () => {
    const real = tensor([[1, 2, 3]])
    withMode(new FakeTensorMode(), () => {
      expect(add(real, zeros([2, 3])).isFake).toBe(true)
      expect(() => add(real, zeros([2, 2]))).toThrow(ShapeError)
    })
    expect(fakeLike(real.t()).strides).toEqual([1, 3])
  })
})

describe('RecordMode', () => {
  test('lists the calls and runs them', () => {
    const mode = new RecordMode()
    const y = withMode(mode, () => relu(tensor([-1, 2]).add(1)))
    expect(y.toArray()).toEqual([0, 3])
    expect(mode.names).toEqual(['torch.add', 'torch.relu'])
  })
  test('composites are seen as what they are made of', () => {
    const mode = new RecordMode()
    withMode(mode, () => variance(tensor([1, 2, 3])))
    expect(mode.names).toEqual(['torch.mean', 'torch.sub', 'torch.square', 'torch.sum', 'torch.div'])
  })
  test('modes nest: the inner one sees calls first', () => {
    const outer = new RecordMode()
    const inner = new RecordMode()
    withMode(outer, () => withMode(inner, () => sum(full([2], 1))))
    expect([outer.names, inner.names]).toEqual([
      ['torch.ops.tensorfx.full', 'torch.sum'],
      ['torch.ops.tensorfx.full', 'torch.sum'],
    ])
    const fake = new RecordMode()
    const y = withMode(new FakeTensorMode(), () => withMode(fake, () => clone(tensor([1]))))
    expect(y.isFake).toBe(true)
    expect(fake.names).toEqual(['torch.clone'])
  })
  test('a mode is left also when an operator throws, and withoutModes leaves all', () => {
    const mode = new RecordMode()
    expect(() => withMode(mode, () => add(zeros([2]), zeros([3])))).toThrow(ShapeError)
    expect(dispatchState.mode).toBeNull()
    withMode(mode, () => withoutModes(() => zeros([1])))
    expect(mode.names).toEqual(['torch.ops.tensorfx.full', 'torch.ops.tensorfx.full'])
  })
})
