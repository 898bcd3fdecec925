// Printing, indexing, iterating and saving tensors, as a program in strict TypeScript writes it, without type assertions.
import { expect, describe, it } from 'vitest'
import { Tensor, compile, fx, torch } from 'tensorfx'
import { fakeLike } from '../../src/dispatch/index.ts'

const x = torch.tensor([
  [1, 2],
  [3, 4],
])

describe('text', () => {
  it('templates and String print a tensor', () => {
    expect(`${torch.tensor([1, 2])}`).toBe('tensor([1., 2.])')
    expect(String(x)).toBe('tensor([[1., 2.],\n        [3., 4.]])')
  })

  it('a tensor without dimensions prints its number, as in an f-string of Python', () => {
    expect(`${torch.tensor(0.5)}`).toBe('0.5')
    expect(`${torch.tensor(0.1)}`).toBe('0.10000000149011612')
    expect(`${torch.tensor(true)}`).toBe('true')
    expect(`${torch.tensor(3, { requiresGrad: true })}`).toBe('3')
    expect(torch.tensor(0.5).toString()).toBe('tensor(0.5000)')
  })

  it('as a key, it finds the entry (difference: tensors-as-keys)', () => {
    const table: Readonly<Record<string, string>> = { 0: 'a', 2: 'c' }
    expect(table[`${torch.tensor([3, 9, 1]).argmin()}`]).toBe('c')
  })

  it('in a concatenation, it is an error', () => {
    expect(() => x[Symbol.toPrimitive]('default')).toThrow('a tensor was used in an expression')
    expect(() => x[Symbol.toPrimitive]('number')).toThrow('a tensor was used as a number')
  })

  it('of a fake tensor shows its shape', () => expect(`${fakeLike(torch.tensor(1))}`).toBe('FakeTensor(..., size=())'))

  it('is a graph break in compile', () => {
    const texts: string[] = []
    const f = compile((a: Tensor) => {
      const sum = a.sum()
      texts.push(`${sum}`)
      return sum.mul(2)
    })
    expect(f(torch.ones([3])).item()).toBe(6)
    expect(texts).toEqual(['3'])
    expect(f.graphs()).toHaveLength(2)
  })

  it('is an error in symbolicTrace', () => {
    expect(() => fx.symbolicTrace((a: Tensor) => a.add(`${a}`.length))).toThrow(fx.TraceError)
  })
})

describe('x[i]', () => {
  it('is a view of one position, also from the end', () => {
    const a = torch.zeros(2, 2)
    a[1]?.fill_(5)
    expect(a.toArray()).toEqual([
      [0, 0],
      [5, 5],
    ])
    expect(x[-1]?.toArray()).toEqual([3, 4])
    expect(x[0]?.[1]?.item()).toBe(2)
  })

  it('has a gradient', () => {
    const w = torch.ones(3, { requiresGrad: true })
    w[1]?.mul(4).backward()
    expect(w.grad?.toArray()).toEqual([0, 4, 0])
  })

  it('is recorded by compile', () => {
    const f = compile((a: Tensor) => a[1]?.mul(2) ?? a)
    expect(f(x).toArray()).toEqual([6, 8])
    expect(f(torch.ones([2, 2])).toArray()).toEqual([2, 2])
    expect(f.graphs()).toHaveLength(1)
  })

  it('out of range, or of a number, is an error', () => {
    expect(() => x[2]).toThrow('index 2 is out of range for dimension 0 with size 2')
    expect(() => torch.tensor(1)[0]).toThrow('x.item() is its number')
    expect(() => x[0.5]).toThrow('an index must be an integer')
  })

  it('cannot be assigned, and other keys say what to write', () => {
    expect(() => Object.assign(x, { 0: 1 })).toThrow('x.select(0, i).fill_(2)')
    expect(() => Reflect.get(x, '0:1')).toThrow('x.slice(dim, start, end)')
    expect(() => Reflect.get(x, `${x}`)).toThrow('x.getitem(y)')
  })
})

describe('iteration', () => {
  it('gives the rows, as views', () => {
    const sums: number[] = []
    for (const row of x) sums.push(row.sum().item())
    expect(sums).toEqual([3, 7])
    const [a, b] = x
    expect([a?.toArray(), b?.toArray()]).toEqual([
      [1, 2],
      [3, 4],
    ])
    expect([...torch.zeros([0, 3])]).toEqual([])
    const base = torch.zeros(2, 1)
    for (const row of base) row.add_(1)
    expect(base.toArray()).toEqual([[1], [1]])
  })

  it('of a tensor without dimensions is an error, as in PyTorch', () => {
    expect(() => [...torch.tensor(1)]).toThrow(TypeError)
  })
})

describe('JSON', () => {
  it('has dtype, shape and data, from which the tensor can be made again', () => {
    const values = [x, x.t(), torch.tensor([true, false]), torch.zeros([0, 3]), torch.tensor(2, { dtype: 'float64' })]
    for (const value of values) {
      const { dtype, shape, data } = value.toJSON()
      const again = torch.tensor(data, { dtype }).reshape(shape)
      expect([again.dtype, again.shape, again.toArray()]).toEqual([value.dtype, value.shape, value.toArray()])
    }
    expect(JSON.stringify({ x: x.t() })).toBe('{"x":{"dtype":"float32","shape":[2,2],"data":[1,3,2,4]}}')
  })

  it('of a fake tensor is an error', () => expect(() => JSON.stringify(fakeLike(x))).toThrow('this tensor is fake'))
})

describe('types', () => {
  it('item is a number, or a boolean if the program says so', () => {
    const total: number = x.sum().item()
    const any: boolean = x.gt(3).any().item<boolean>()
    expect([total + 1, any]).toEqual([11, true])
  })

  it('sizes are given one by one or as an array, with options at the end', () => {
    const shape: readonly number[] = [2, 4]
    const all = [
      torch.randn(2, 4),
      torch.randn([2, 4]),
      torch.randn(...shape),
      torch.rand(2, 4, { requiresGrad: true }),
      torch.zeros(shape, { dtype: 'int32' }),
      torch.ones(2, 4, {}),
      torch.empty(2, 4),
    ]
    for (const made of all) expect(made.shape).toEqual([2, 4])
    expect([all[3]?.requiresGrad, all[4]?.dtype]).toEqual([true, 'int32'])
  })
})
