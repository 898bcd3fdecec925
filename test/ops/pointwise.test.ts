// Pointwise operators against JavaScript's own arithmetic: values, layouts, promotion, in-place forms, errors.
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as ops from '../../src/ops/index.ts'
import { DTypeError, ShapeError, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const { add, arange, clamp, full, isnan, logicalAnd, logicalNot, maskedFill, mul, ones, pow, sub, tensor, where, zeros } = torch

const values = [-2.5, -1.5, -1, -0.5, -0, 0, 0.25, 0.5, 1, 1.5, 2.5, 3, 7.75, 20]
const positive = values.filter((v) => v > 0)
const erf = (x: number): number => {
  // Series near 0, complement by continued fraction far away: good to 1e-9 on the tested range.
  const a = Math.abs(x)
  if (a > 5) return Math.sign(x)
  let term = a
  let sum = a
  for (let n = 1; n < 200; n++) {
    term *= (-a * a) / n
    sum += term / (2 * n + 1)
  }
  return (Math.sign(x) * 2 * sum) / Math.sqrt(Math.PI)
}
const even = (x: number): number => {
  const r = Math.round(x)
  return Math.abs(x % 1) === 0.5 && r % 2 !== 0 ? r - 1 : r
}

const unary: Record<string, [(x: Tensor) => Tensor, (x: number) => number, number[]?]> = {
  exp: [ops.exp, Math.exp],
  expm1: [ops.expm1, Math.expm1],
  log: [ops.log, Math.log, positive],
  log1p: [ops.log1p, Math.log1p, positive],
  sqrt: [ops.sqrt, Math.sqrt, positive],
  rsqrt: [ops.rsqrt, (x) => 1 / Math.sqrt(x), positive],
  reciprocal: [ops.reciprocal, (x) => 1 / x, positive],
  sin: [ops.sin, Math.sin],
  cos: [ops.cos, Math.cos],
  tanh: [ops.tanh, Math.tanh],
  sigmoid: [ops.sigmoid, (x) => 1 / (1 + Math.exp(-x))],
  erf: [ops.erf, erf],
  floor: [ops.floor, Math.floor],
  ceil: [ops.ceil, Math.ceil],
  round: [ops.round, even],
  trunc: [ops.trunc, Math.trunc],
  square: [ops.square, (x) => x * x],
  neg: [ops.neg, (x) => -x],
  abs: [ops.abs, Math.abs],
  sign: [ops.sign, Math.sign],
  relu: [ops.relu, (x) => Math.max(0, x)],
  silu: [ops.silu, (x) => x / (1 + Math.exp(-x))],
  gelu: [ops.gelu, (x) => (x * (1 + erf(x * Math.SQRT1_2))) / 2],
  'gelu tanh': [(x) => ops.gelu(x, { approximate: 'tanh' }), (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))],
  leakyRelu: [(x) => ops.leakyRelu(x, 0.1), (x) => (x > 0 ? x : 0.1 * x)],
  elu: [(x) => ops.elu(x), (x) => (x > 0 ? x : Math.expm1(x))],
  clamp: [(x) => clamp(x, -1, 2), (x) => Math.min(2, Math.max(-1, x))],
  'pow 3': [(x) => pow(x, 3), (x) => x ** 3],
  'pow 2.5': [(x) => pow(x, 2.5), (x) => x ** 2.5, positive],
}

const binary: Record<string, [(x: Tensor, y: Tensor) => Tensor, (x: number, y: number) => number]> = {
  add: [add, (x, y) => x + y],
  sub: [sub, (x, y) => x - y],
  mul: [mul, (x, y) => x * y],
  div: [ops.div, (x, y) => x / y],
  'div floor': [(x, y) => ops.div(x, y, { roundingMode: 'floor' }), (x, y) => Math.floor(x / y)],
  'div trunc': [(x, y) => ops.div(x, y, { roundingMode: 'trunc' }), (x, y) => Math.trunc(x / y)],
  remainder: [ops.remainder, (x, y) => x - y * Math.floor(x / y)],
  floorDivide: [ops.floorDivide, (x, y) => Math.floor(x / y)],
  maximum: [ops.maximum, Math.max],
  minimum: [ops.minimum, Math.min],
  'add alpha': [(x, y) => add(x, y, { alpha: 3 }), (x, y) => x + 3 * y],
  'sub alpha': [(x, y) => sub(x, y, { alpha: 3 }), (x, y) => x - 3 * y],
  lerp: [(x, y) => ops.lerp(x, y, 0.25), (x, y) => x + 0.25 * (y - x)],
  addcmul: [(x, y) => ops.addcmul(x, y, y, { value: 2 }), (x, y) => x + 2 * y * y],
  addcdiv: [(x, y) => ops.addcdiv(x, x, y, { value: 2 }), (x, y) => x + (2 * x) / y],
}

const flat = (t: Tensor): number[] => Array.from(t.toTypedArray(), Number)
function close(actual: Tensor, expected: readonly number[], tolerance: number): void {
  const got = flat(actual)
  expect(got.length).toBe(expected.length)
  got.forEach((g, i) => {
    const e = expected[i] as number
    if (!Number.isFinite(e)) expect(g).toBe(e)
    else expect(Math.abs(g - e), `element ${i}: ${g} instead of ${e}`).toBeLessThanOrEqual(tolerance * (1 + Math.abs(e)))
  })
}

describe('values agree with Math', () => {
  describe.each(['float32', 'float64'] as const)('%s', (dtype) => {
    const tolerance = dtype === 'float32' ? 3e-6 : 1e-12
    test.each(Object.keys(unary))('%s', (name) => {
      const [op, reference, inputs = values] = unary[name] as (typeof unary)[string]
      if (dtype === 'float64' && name.startsWith('gelu')) close(op(tensor(inputs, { dtype })), inputs.map(reference), 1e-7)
      else close(op(tensor(inputs, { dtype })), inputs.map(reference), name === 'erf' ? 1e-6 : tolerance)
    })
    test.each(Object.keys(binary))('%s', (name) => {
      const [op, reference] = binary[name] as (typeof binary)[string]
      const pairs = values.flatMap((x) => positive.map((y) => [x, y] as const))
      const x = tensor(
        pairs.map(([v]) => v),
        { dtype },
      )
      const y = tensor(
        pairs.map(([, v]) => v),
        { dtype },
      )
      close(
        op(x, y),
        pairs.map(([a, b]) => reference(a, b)),
        tolerance,
      )
    })
  })
  test('comparisons and logic give bool', () => {
    const x = tensor([1, 2, 3])
    expect(x.eq(2).toArray()).toEqual([false, true, false])
    expect(x.ne(2).toArray()).toEqual([true, false, true])
    expect(x.lt(tensor([2, 2, 2])).toArray()).toEqual([true, false, false])
    expect(x.le(2).toArray()).toEqual([true, true, false])
    expect(x.gt(2).toArray()).toEqual([false, false, true])
    expect(x.ge(2).toArray()).toEqual([false, true, true])
    expect(logicalAnd(x.gt(1), x.lt(3)).toArray()).toEqual([false, true, false])
    expect(x.lt(2).logicalOr(x.gt(2)).toArray()).toEqual([true, false, true])
    expect(logicalNot(tensor([0, 1, -2])).toArray()).toEqual([true, false, false])
    expect(isnan(tensor([NaN, 1, Infinity])).toArray()).toEqual([true, false, false])
  })
  test('where and maskedFill choose', () => {
    const x = tensor([-1, 0, 2])
    expect(where(x.gt(0), x, 0).toArray()).toEqual([0, 0, 2])
    expect(where(x.gt(0), 1.5, x).toArray()).toEqual([-1, 0, 1.5])
    expect(maskedFill(x, x.lt(0), -Infinity).toArray()).toEqual([-Infinity, 0, 2])
    expect(where(tensor([[true], [false]]), tensor([1, 2]), tensor([3, 4])).toArray()).toEqual([
      [1, 2],
      [3, 4],
    ])
  })
  test('clamp with one bound, and with an infinite one', () => {
    expect(clamp(tensor([-3, 3]), 0).toArray()).toEqual([0, 3])
    expect(clamp(tensor([-3, 3]), null, 1).toArray()).toEqual([-3, 1])
    expect(clamp(tensor([-3, 3]), { max: 1 } as never).toArray()).toEqual([-3, 1])
    expect(clamp(tensor([-3, 3]), 0, Infinity).toArray()).toEqual([0, 3])
  })
  test('NaN wins in maximum, minimum, relu and clamp', () => {
    const x = tensor([NaN, 1])
    for (const y of [ops.maximum(x, zeros([2])), ops.minimum(x, full([2], 5)), ops.relu(x), clamp(x, 0, 2)]) expect(y.toArray()).toEqual([NaN, 1])
  })
})

describe('layouts', () => {
  const base = arange(12).view(3, 4)
  const other = arange(12).mul(10).view(3, 4)
  const table: [string, Tensor, Tensor][] = [
    ['both transposed', base.t(), other.t()],
    ['one transposed', base.t(), tensor(other.t().toArray() as number[][])],
    ['a row', base, other.select(0, 1)],
    ['a column', base, other.narrow(1, 2, 1)],
    ['a scalar tensor', base, tensor(5)],
    ['expanded', base.select(0, 0).expand(3, 4), other],
    ['sliced with a step', base.slice(1, 0, 4, 2), other.slice(1, 1, 4, 2)],
    ['an outer product', arange(3).view(3, 1), arange(4)],
    ['three dimensions', arange(24).view(2, 3, 4).permute(2, 0, 1), arange(3)],
    ['leading dimensions', arange(24).view(2, 3, 4), base],
  ]
  test.each(table)('%s', (_, x, y) => {
    // The same values laid out row-major by reading them out first.
    const shape = add(x, y).shape
    const dense = (t: Tensor): number[] => flat(t.expand(shape))
    const [a, b] = [dense(x), dense(y)]
    expect(flat(sub(x, y))).toEqual(a.map((v, i) => v - (b[i] as number)))
    expect(flat(mul(y, x))).toEqual(a.map((v, i) => v * (b[i] as number)))
  })
  test('no elements, one element', () => {
    expect(add(zeros([0, 3]), ones([3])).shape).toEqual([0, 3])
    expect(add(zeros([0]), 1).toArray()).toEqual([])
    expect(add(tensor(1), tensor(2)).item()).toBe(3)
    expect(add(ones([1, 1]), tensor([[[1]]])).shape).toEqual([1, 1, 1])
  })
  test('random shapes, broadcasts and strides agree with a plain loop', () => {
    const shape = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 0, maxLength: 4 })
    fc.assert(
      fc.property(shape, fc.infiniteStream(fc.boolean()), fc.infiniteStream(fc.boolean()), fc.boolean(), (full_, ones1, ones2, transposed) => {
        const make = (drops: Iterator<boolean>, seed: number): Tensor => {
          const s = full_.map((n) => (drops.next().value === true ? 1 : n))
          const t = arange(seed, seed + s.reduce((p, q) => p * q, 1))
          if (!transposed || s.length < 2) return t.reshape(s)
          return t.reshape([...s].reverse()).permute(s.map((_, i) => s.length - 1 - i))
        }
        const x = make(ones1[Symbol.iterator](), 1)
        const y = make(ones2[Symbol.iterator](), 100)
        const z = add(x, y)
        const [a, b] = [flat(x.expand(z.shape)), flat(y.expand(z.shape))]
        expect(flat(z)).toEqual(a.map((v, i) => v + (b[i] as number)))
      }),
      { numRuns: 100 },
    )
  })
})

describe('promotion', () => {
  const [f, d, i, b] = [tensor([1.5]), tensor([1.5], { dtype: 'float64' }), tensor([3], { dtype: 'int32' }), tensor([true])]
  test.each<[string, () => Tensor, string]>([
    ['float + double', () => add(f, d), 'float64'],
    ['int + float', () => add(i, f), 'float32'],
    ['bool + int', () => add(b, i), 'int32'],
    ['bool + bool', () => add(b, b), 'bool'],
    ['int + 1', () => add(i, 1), 'int32'],
    ['int + 1.5', () => add(i, 1.5), 'float32'],
    ['bool * 2', () => mul(b, 2), 'int64'],
    ['float + 1', () => add(f, 1), 'float32'],
    ['double * 0.1', () => mul(d, 0.1), 'float64'],
    ['int / int', () => ops.div(i, i), 'float32'],
    ['exp(int)', () => ops.exp(i), 'float32'],
    ['int > 1', () => ops.gt(i, 1), 'bool'],
    ['float + double scalar tensor', () => add(f, tensor(2, { dtype: 'float64' })), 'float32'],
    ['int + float scalar tensor', () => add(i, tensor(2.5)), 'float32'],
    ['relu(int)', () => ops.relu(i), 'int32'],
  ])('%s', (_, run, dtype) => {
    expect(run().dtype).toBe(dtype)
  })
  test('a double keeps its precision beside a number', () => {
    expect(mul(d, 0.1).item()).toBe(1.5 * 0.1)
  })
  test('a fraction as alpha of integers is refused', () => {
    expect(() => add(i, i, { alpha: 0.5 })).toThrow(DTypeError)
  })
  test('casts', () => {
    expect(tensor([1.7, -1.7, 0]).to('int32').toArray()).toEqual([1, -1, 0])
    expect(tensor([0.5, 0]).bool().toArray()).toEqual([true, false])
    expect(tensor([true, false]).float().toArray()).toEqual([1, 0])
    expect(f.to('float32')).toBe(f)
    expect(tensor([3], { dtype: 'int32' }).double().dtype).toBe('float64')
  })
})

describe('in-place operators', () => {
  test('write into self, return it, and raise its version', () => {
    const x = tensor([1, 2])
    const version = x.realize().version
    expect(x.add_(1)).toBe(x)
    expect(x.toArray()).toEqual([2, 3])
    expect(x.realize().version).toBe(version + 1)
  })
  test.each<[string, (x: Tensor) => Tensor, number[]]>([
    ['add_ alpha', (x) => x.add_(tensor([1, 1]), { alpha: 3 }), [4, 7]],
    ['sub_', (x) => x.sub_(1), [0, 3]],
    ['mul_', (x) => x.mul_(tensor([2, 3])), [2, 12]],
    ['div_', (x) => x.div_(2), [0.5, 2]],
    ['neg_', (x) => x.neg_(), [-1, -4]],
    ['sqrt_', (x) => x.sqrt_(), [1, 2]],
    ['clamp_', (x) => x.clamp_(2, 3), [2, 3]],
    ['lerp_', (x) => x.lerp_(tensor([3, 8]), 0.5), [2, 6]],
    ['addcmul_', (x) => x.addcmul_(tensor([1, 2]), tensor([3, 4]), { value: 2 }), [7, 20]],
    ['addcdiv_', (x) => x.addcdiv_(tensor([1, 2]), tensor([2, 4])), [1.5, 4.5]],
    ['copy_', (x) => x.copy_(tensor([7, 8], { dtype: 'int32' })), [7, 8]],
    ['copy_ broadcast', (x) => x.copy_(tensor(9)), [9, 9]],
    ['fill_', (x) => x.fill_(2.5), [2.5, 2.5]],
    ['zero_', (x) => x.zero_(), [0, 0]],
  ])('%s', (_, run, expected) => {
    const x = tensor([1, 4])
    expect(run(x)).toBe(x)
    expect(x.toArray()).toEqual(expected)
  })
  test('through a view', () => {
    const x = zeros([2, 3])
    x.t()
      .select(0, 1)
      .add_(tensor([1, 2]))
    x.narrow(1, 2, 1).fill_(5)
    expect(x.toArray()).toEqual([
      [0, 1, 5],
      [0, 2, 5],
    ])
  })
  test('operands that overlap self in another layout are read before they are written', () => {
    const x = tensor([
      [1, 2],
      [3, 4],
    ])
    x.add_(x.t())
    expect(x.toArray()).toEqual([
      [2, 5],
      [5, 8],
    ])
    const y = tensor([1, 2, 3, 4])
    y.narrow(0, 1, 3).copy_(y.narrow(0, 0, 3))
    expect(y.toArray()).toEqual([1, 1, 2, 3])
  })
  test('a result that does not fit is refused and nothing is written', () => {
    const x = tensor([1, 2])
    expect(() => x.add_(ones([3, 2]))).toThrow(ShapeError)
    expect(() => tensor([1], { dtype: 'int32' }).add_(0.5)).toThrow(DTypeError)
    expect(() => tensor([1]).expand(3).add_(1)).toThrow(/expanded view/)
    expect(x.toArray()).toEqual([1, 2])
  })
})

describe('errors name the operator, the argument and the fix', () => {
  const x = ones([2, 3])
  test.each<[string, () => unknown, RegExp]>([
    ['a string', () => torch.add(x, 'a' as never), /torch\.add: argument 'other' must be a Tensor or a number, got 'a'/],
    ['null', () => torch.add(x, null as never), /torch\.add: argument 'other' must be a Tensor or a number, got null/],
    ['nothing', () => torch.add(x, undefined as never), /torch\.add: missing argument 'other'/],
    ['a number for self', () => torch.relu(1 as never), /torch\.relu: argument 'self' must be a Tensor, got 1/],
    ['too many', () => (torch.relu as (...a: unknown[]) => unknown)(x, x), /torch\.relu: .*takes 1/],
    ['an unknown option', () => torch.add(x, x, { beta: 1 } as never), /torch\.add: unknown option 'beta'; known are self, other, alpha/],
    ['twice', () => torch.add(x, x, { other: x } as never), /torch\.add: argument 'other' was given twice/],
    ['an option of the wrong type', () => torch.sum(x, { keepdim: 1 } as never), /torch\.sum: argument 'keepdim' must be true or false, got 1/],
    ['shapes', () => torch.add(x, ones([4])), /torch\.add: the shapes \[2, 3\] \(self\) and \[4\] \(other\) do not broadcast.*dimension 1/],
    ['an array', () => torch.mul(x, [1, 2, 3] as never), /torch\.mul: argument 'other' must be a Tensor or a number, got \[1, 2, 3\]/],
  ])('%s', (_, run, message) => {
    expect(run).toThrow(message)
  })
})
