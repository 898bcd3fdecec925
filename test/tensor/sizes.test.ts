// Sizes are values: nothing that a program does to the lists it gave or got changes a tensor.
import { describe, expect, test } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import { readSafetensors, writeSafetensors } from 'tensorfx/interop'
import { FakeTensorMode, fakeLike, withMode } from '../../src/dispatch/index.ts'
import { Tensor } from '../../src/tensor/index.ts'

const linear = new nn.Linear(3, 2)
const x = torch.arange(6).reshape(2, 3)
const file = readSafetensors(writeSafetensors([['x', x]]))
const kinds: Readonly<Record<string, Tensor>> = {
  'a new tensor': torch.zeros([2, 3]),
  'a tensor from values': torch.tensor([
    [1, 2, 3],
    [4, 5, 6],
  ]),
  'a view': x.t(),
  'a slice': x.narrow(1, 1, 2),
  'a result': x.add(1),
  'a reduction': x.sum(0),
  'a parameter': linear.weight,
  'a fake tensor': fakeLike(x),
  'a result of a fake tensor': withMode(new FakeTensorMode(), () => fakeLike(x).add(1)),
  'a result of compiled code': compile((a: Tensor) => a.add(1).t())(x),
  'a transferred tensor': torch.fromTransfer(x.t().transfer()),
  'a tensor of a file': file.tensors.get('x') ?? torch.zeros([0]),
  'a window with given strides': x.asStrided([2, 2], [1, 2]),
}

describe('the shape and the strides of', () => {
  test.each(Object.entries(kinds))('%s cannot be changed', (_, tensor) => {
    const before = { shape: [...tensor.shape], strides: [...tensor.strides] }
    for (const list of [tensor.shape, tensor.strides, tensor.size(), tensor.stride()]) {
      expect(Object.isFrozen(list)).toBe(true)
      expect(() => Reflect.apply(Array.prototype.push, list, [1])).toThrow(TypeError)
      expect(Reflect.set(list, 0, 4000)).toBe(false)
    }
    expect({ shape: tensor.shape, strides: tensor.strides }).toEqual(before)
  })

  test.each(Object.entries(kinds))('%s are plain lists for operators, since frozen ones slow down every loop over lists', (_, tensor) => {
    expect(Object.isFrozen(tensor.sizes)).toBe(false)
    expect(Object.isFrozen(tensor.steps)).toBe(false)
    expect(tensor.sizes).not.toBe(tensor.shape)
    expect([tensor.sizes, tensor.steps]).toEqual([tensor.shape, tensor.strides])
  })
})

test('tensors of the same shape share the list', () => {
  expect(torch.zeros([2, 3]).shape).toBe(torch.ones([2, 3]).shape)
  expect(x.add(1).shape).toBe(x.shape)
})

test('the list that made a tensor stays the caller’s: it is neither kept nor frozen', () => {
  const size = [2, 3]
  const tensors = [
    torch.zeros(size),
    torch.zeros([6]).reshape(size),
    torch.zeros([1, 1]).expand(size),
    Tensor.fake({ shape: size, dtype: 'float32' }),
  ]
  size[0] = 4000
  for (const tensor of tensors) expect(tensor.shape).toEqual([2, 3])
  const strides = [1, 2]
  const window = x.asStrided([2, 2], strides)
  strides.reverse()
  expect(window.strides).toEqual([1, 2])
  expect(window.toArray()).toEqual([
    [0, 2],
    [1, 3],
  ])
})

test('no program enters other tensors through a shape that it has changed', () => {
  const around = Array.from({ length: 300 }, () => torch.ones([4]))
  const one = torch.ones([4])
  // Read-only for TypeScript; JavaScript has no such types.
  expect(() => Reflect.apply(Array.prototype.splice, one.shape, [0, 1, 4000])).toThrow(TypeError)
  compile((t: Tensor) => t.mul_(3))(one)
  expect(one.toArray()).toEqual([3, 3, 3, 3])
  for (const other of around) expect(other.toArray()).toEqual([1, 1, 1, 1])
})

test.each([
  ['shape', [3, 2], 'x.shape = [3, 2]: the shape of a tensor cannot be assigned; make a tensor of another shape: y = x.reshape([2, 3]).'],
  ['dtype', 'int64', "x.dtype = 'int64': the dtype of a tensor cannot be assigned; make a tensor of another dtype: y = x.to('float64')."],
  [
    'strides',
    [1, 2],
    'x.strides = [1, 2]: the strides of a tensor cannot be assigned; make a tensor with other strides: y = x.asStrided(shape, strides).',
  ],
  ['numel', 4000, 'x.numel = 4000: the numel of a tensor cannot be assigned; make a tensor of another shape: y = x.reshape([2, 3]).'],
  ['offset', 1, 'x.offset = 1: the offset of a tensor cannot be assigned; make a tensor that begins elsewhere: y = x.narrow(dim, start, length).'],
])('x.%s cannot be assigned', (name, value, message) => {
  expect(() => Reflect.set(x, name, value)).toThrow(message)
  expect([x.shape, x.dtype, x.strides, x.numel, x.offset]).toEqual([[2, 3], x.dtype, [3, 1], 6, 0])
})
