// Values in and out of tensors; what JavaScript's operators do to them.
import { inspect } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import { ArgumentError, ShapeError } from '../../src/errors/index.ts'
import { heapGuard, heapStats, setSoftLimit } from '../../src/kernels/index.ts'
import { Storage, Tensor, tensorFromBytes } from '../../src/tensor/index.ts'

const { arange, tensor, zeros } = torch

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
    expect(() => tensor(['a'] as never)).toThrow(/torch.tensor.*got 'a'/)
    expect(() => tensor([1], { device: 'cuda' } as never)).toThrow(
      /option 'device': there is no device 'cuda', only 'cpu' and, with tensorfx\/webgpu, 'webgpu'/,
    )
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
  test('the awaited reads give what the others do, and reject with what these throw', async () => {
    const x = arange(6).reshape([2, 3]).t()
    expect(await x.toArrayAsync()).toEqual(x.toArray())
    expect(await x.toTypedArrayAsync()).toEqual(x.toTypedArray())
    expect(await torch.tensor([2n ** 60n]).toBigIntArrayAsync()).toEqual(BigInt64Array.of(2n ** 60n))
    expect(await tensor(true).itemAsync<boolean>()).toBe(true)
    await expect(x.itemAsync()).rejects.toThrow(/item: a tensor of shape \[3, 2\] has 6 elements/)
    await expect(Tensor.fake({ shape: [2], dtype: 'float32' }).toArrayAsync()).rejects.toThrow(/this tensor is fake/)
  })
  test('an awaited read of what a compiled function computes late is computed', async () => {
    const read: unknown[] = []
    const f = compile((x: Tensor) => {
      const y = x.mul(2)
      read.push(y.toArrayAsync())
      return y.add(1)
    })
    expect(f(tensor([1, 2])).toArray()).toEqual([3, 5])
    expect(await Promise.all(read)).toEqual([[2, 4]])
  })
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
    expect(() => x.size(2)).toThrow('Tensor.size: dim 2 is out of range for a tensor of 2 dimensions; expected -2 to 1.')
    expect(() => x.stride(-3)).toThrow('Tensor.stride: dim -3 is out of range for a tensor of 2 dimensions; expected -2 to 1.')
    expect(() => x.size(0.5)).toThrow('Tensor.size: dim 0.5 is out of range')
    expect([x.isContiguous(), x.t().isContiguous(), x.elementSize()]).toEqual([true, false, 4])
  })
  test('a tensor without dimensions has no sizes', () => {
    const x = tensor(3)
    expect([x.size(), x.stride(), x.dim()]).toEqual([[], [], 0])
    for (const dim of [0, -1]) expect(() => x.size(dim)).toThrow(`Tensor.size: dim ${dim} is out of range for a tensor without dimensions.`)
    expect(() => x.stride(1)).toThrow('Tensor.stride: dim 1 is out of range for a tensor of 0 dimensions; expected -1 to 0.')
  })
  test('each dtype has its element size', () => {
    const of = (dtype: 'float32' | 'float64' | 'int32' | 'bool'): [number, boolean] => {
      const x = zeros([1], { dtype })
      return [x.elementSize(), x.isFloatingPoint()]
    }
    expect([of('float32'), of('float64'), of('int32'), of('bool')]).toEqual([
      [4, true],
      [8, true],
      [4, false],
      [1, false],
    ])
  })
  test('a storage that has a writer is settled when its data is read, through whichever tensor', () => {
    const settled: Storage[] = []
    const storage = Storage.deferred(8, {
      settle: (s) => {
        settled.push(s)
        s.writer = null
        s.moveTo(tensor([3, 4]).realize())
      },
    })
    const lazy = new Tensor([2], 'float32', storage)
    const view = new Tensor([1], 'float32', storage, [1], 1)
    expect([lazy.isFake, storage.isDeferred]).toEqual([false, true])
    expect(view.toArray()).toEqual([4])
    expect(lazy.toArray()).toEqual([3, 4])
    expect(settled).toEqual([storage])
    const broken = new Tensor([2], 'float32', Storage.deferred(8, { settle: () => {} }))
    expect(() => broken.toArray()).toThrow('a storage was settled but has no memory')
  })
  test('a storage that moves shares the new memory and its version, and the old memory stays as it was', () => {
    const [a, b] = [tensor([1, 2]), tensor([3, 4])]
    a.add_(1)
    const storage = a.realize()
    const old = storage.moveTo(b.realize())
    expect(a.toArray()).toEqual([3, 4])
    expect(new Tensor([2], 'float32', old).toArray()).toEqual([2, 3])
    b.add_(1)
    expect([a.toArray(), storage.version]).toEqual([[4, 5], 2])
  })
  test('views of one storage see the same data, each with its offset and strides', () => {
    const x = arange(12).view(3, 4)
    const window = x.narrow(1, 1, 2).narrow(0, 1, 2)
    expect([window.offset, window.strides, window.contiguousLayout]).toEqual([5, [4, 1], false])
    expect(window.toArray()).toEqual([
      [5, 6],
      [9, 10],
    ])
    expect(window.t().toTypedArray()).toEqual(Float32Array.of(5, 9, 6, 10))
    expect(x.narrow(0, 1, 1).contiguousLayout).toBe(true)
  })
  test('a fake tensor has no data', () => {
    const fake = Tensor.fake({ shape: [2], dtype: 'float32' })
    expect(() => fake.toArray()).toThrow(/this tensor is fake/)
    expect(() => fake.sum().item()).toThrow(/this tensor is fake/)
  })
  test('a disposed tensor says so, and frees its memory', () => {
    // On the heap, however much of it the garbage of earlier tests fills: a spilled tensor has no address there.
    const { softLimit } = heapStats()
    setSoftLimit(Infinity)
    onTestFinished(() => setSoftLimit(softLimit))
    const x = zeros([4])
    const address = x.storage?.block.ptr
    x.dispose()
    x.dispose()
    // The next tensor of that size gets the memory, and only that one. (The checked heap keeps it back.)
    const next = [zeros([4]), zeros([4])]
    expect(next.map((t) => t.storage?.block.ptr === address)).toEqual([heapGuard() === null, false])
    Tensor.fake({ shape: [2], dtype: 'float32' }).dispose()
    expect(() => x.toArray()).toThrow(/this tensor has been disposed, so its data is gone/)
    expect(() => x.add(1)).toThrow(/this tensor has been disposed, so its data is gone/)
    expect(() => x.storage?.readBytes()).toThrow(/this tensor has been disposed/)
    const y = zeros([4])
    y[Symbol.dispose]()
    expect(() => y.toArray()).toThrow(/this tensor has been disposed/)
  })
})

describe('bytes', () => {
  const bytes = new Uint8Array(Float32Array.of(1, 2, 3, 4, 5).buffer)
  test('become a tensor with the strides that are given', () => {
    expect(tensorFromBytes(bytes, [5], 'float32').toArray()).toEqual([1, 2, 3, 4, 5])
    expect(tensorFromBytes(bytes, [2, 2], 'float32', [1, 3]).toArray()).toEqual([
      [1, 4],
      [2, 5],
    ])
    expect(tensorFromBytes(bytes, [3, 2], 'float32', [0, 1]).toArray()).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ])
    expect(tensorFromBytes(new Uint8Array(0), [2, 0], 'float64').toArray()).toEqual([[], []])
  })
  test('must be enough for the shape', () => {
    expect(() => tensorFromBytes(bytes, [6], 'float32')).toThrow(ArgumentError)
    expect(() => tensorFromBytes(bytes, [2, 2], 'float32', [1, 4])).toThrow(
      'tensorFromBytes: a float32 tensor of shape [2, 2] and strides [1, 4] needs 24 bytes, got 20.',
    )
    expect(() => tensorFromBytes(bytes, [], 'float64')).not.toThrow()
    expect(() => tensorFromBytes(new Uint8Array(7), [], 'float64')).toThrow('needs 8 bytes, got 7')
  })
})

describe('storage', () => {
  test('is read and written in bytes, from and to a position', () => {
    const { storage } = tensor(Int32Array.of(1, 2, 3))
    expect([...(storage?.readBytes() ?? [])]).toEqual([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0])
    expect([...(storage?.readBytes(4, 6) ?? [])]).toEqual([2, 0])
    const x = zeros([2], { dtype: 'int32' })
    x.storage?.writeBytes(Uint8Array.of(7, 1), 4)
    expect(x.toArray()).toEqual([0, 263])
    expect(x.storage?.version).toBe(0)
  })
})

describe('coercing a tensor throws and names the fix', () => {
  const x = tensor([1])
  test.each<[string, () => unknown]>([
    ['a comparison', () => (x as unknown as number) > 0],
    ['unary plus', () => +(x as unknown as number)],
    ['addition', () => (x as unknown as number) + 1],
    ['addition of text', () => (x as unknown as string) + ' is x'],
    ['valueOf', () => x.valueOf()],
  ])('%s', (_, coerce) => {
    expect(coerce).toThrow(ArgumentError)
    expect(coerce).toThrow(/x\.gt\(0\).*x\.item\(\).*x\.toString\(\)/)
  })
  test('the message says how it was used', () => {
    expect(() => x.valueOf()).toThrow(/^a tensor was used as a number\./)
    expect(() => +(x as unknown as number)).toThrow(/^a tensor was used as a number\./)
    expect(() => (x as unknown as number) + 1).toThrow(/^a tensor was used in an expression\./)
  })
  test('inspecting is no coercion', () => {
    expect(inspect(x)).toBe('tensor([1.])')
  })
})
