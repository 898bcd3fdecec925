// Values in and out of tensors; what JavaScript's operators do to them.
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { arange, tensor, zeros } from 'tensorfx'
import { ArgumentError, ShapeError } from '../../src/errors/index.ts'
import { Tensor } from '../../src/tensor/index.ts'

describe('tensor()', () => {
  test('numbers become float32, booleans bool, typed arrays keep their type', () => {
    expect(tensor([1, 2]).dtype).toBe('float32')
    expect(tensor([true]).dtype).toBe('bool')
    expect(tensor(Int32Array.of(1, 2)).dtype).toBe('int32')
    expect(tensor(Float64Array.of(1)).dtype).toBe('float64')
    expect(tensor([1.9, -1.9], { dtype: 'int32' }).toArray()).toEqual([1, -1])
    expect(tensor([0, 2], { dtype: 'bool' }).toArray()).toEqual([false, true])
  })
  test('nested arrays give the shape', () => {
    const x = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ])
    expect(x.shape).toEqual([2, 3])
    expect(x.toArray()).toEqual([
      [1, 2, 3],
      [4, 5, 6],
    ])
    expect(tensor(7).shape).toEqual([])
    expect(tensor([]).shape).toEqual([0])
    expect(tensor([[], []]).shape).toEqual([2, 0])
  })
  test('ragged arrays, strings and unknown options are errors', () => {
    expect(() => tensor([[1], [2, 3]])).toThrow(ShapeError)
    expect(() => tensor([[1], 2])).toThrow(ShapeError)
    expect(() => tensor(['a'] as never)).toThrow(/torch.tensor.*got string/)
    expect(() => tensor([1], { device: 'cuda' } as never)).toThrow(/unknown option 'device'/)
  })
  test('the data is copied', () => {
    const source = Float32Array.of(1, 2)
    const x = tensor(source)
    source[0] = 9
    expect(x.toArray()).toEqual([1, 2])
    x.toTypedArray()[0] = 5
    expect(x.toArray()).toEqual([1, 2])
  })
})

describe('reading', () => {
  test('toArray and toTypedArray follow strides', () => {
    const x = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ])
    expect(x.t().toArray()).toEqual([
      [1, 4],
      [2, 5],
      [3, 6],
    ])
    expect([...x.t().toTypedArray()]).toEqual([1, 4, 2, 5, 3, 6])
    expect(x.select(1, 1).toArray()).toEqual([2, 5])
    expect(tensor([1]).expand([3]).toArray()).toEqual([1, 1, 1])
    expect(zeros([2, 0]).toArray()).toEqual([[], []])
  })
  test('item wants exactly one element', () => {
    expect(tensor([[2.5]]).item()).toBe(2.5)
    expect(tensor(true).item()).toBe(true)
    expect(arange(4).select(0, 2).item()).toBe(2)
    expect(() => tensor([1, 2]).item()).toThrow(/item: a tensor of shape \[2\] has 2 elements/)
  })
  test('size, dim and stride', () => {
    const x = zeros([2, 3])
    expect([x.size(), x.size(0), x.size(-1), x.dim(), x.ndim, x.numel]).toEqual([[2, 3], 2, 3, 2, 2, 6])
    expect([x.stride(), x.stride(0), x.t().stride(0)]).toEqual([[3, 1], 3, 1])
    expect(() => x.size(2)).toThrow(ShapeError)
    expect([x.isContiguous(), x.t().isContiguous(), x.elementSize()]).toEqual([true, false, 4])
  })
  test('a fake tensor has no data', () => {
    const fake = Tensor.fake({ shape: [2], dtype: 'float32' })
    expect(() => fake.toArray()).toThrow(/this tensor is fake/)
    expect(() => fake.sum().item()).toThrow(/this tensor is fake/)
  })
  test('a disposed tensor says so, and frees its memory', () => {
    const x = zeros([4])
    x.dispose()
    x.dispose()
    expect(() => x.toArray()).toThrow(/given back with dispose/)
    expect(() => x.add(1)).toThrow(/given back with dispose/)
  })
})

describe('coercing a tensor throws and names the fix', () => {
  const x = tensor([1])
  test.each<[string, () => unknown]>([
    ['a comparison', () => (x as unknown as number) > 0],
    ['unary plus', () => +(x as unknown as number)],
    ['addition', () => (x as unknown as number) + 1],
    ['a template', () => `${x as unknown as string}`],
    ['valueOf', () => x.valueOf()],
  ])('%s', (_, coerce) => {
    expect(coerce).toThrow(ArgumentError)
    expect(coerce).toThrow(/x\.gt\(0\).*x\.item\(\)/)
  })
  test('inspecting is no coercion', () => {
    expect(inspect(x)).toBe('tensor([1.])')
  })
})
