// Type promotion: which dtype operators return, for all pairs of dtypes and kinds of operands, as PyTorch says.
import { afterEach, describe, expect, it, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { FakeTensorMode, withMode } from 'tensorfx/dispatch'
import { DTYPES, readGolden } from './dtypeGoldens.ts'

type Answer = DType | { readonly error: string }
const golden = readGolden<Readonly<Record<string, Readonly<Record<string, Answer>>>>>('promotion')

const one = (dtype: DType, ndim: number): Tensor => torch.ones(Array<number>(ndim).fill(1), { dtype })

function answers(table: string): [string, DType, Answer][] {
  return Object.entries(golden[table] ?? {}).map(([key, answer]) => {
    const dtype = DTYPES.find((d) => d === key)
    if (dtype === undefined) throw new Error(`${key} is not a dtype`)
    return [`${table} ${key}`, dtype, answer]
  })
}

function pairs(table: string): [string, DType, DType, Answer][] {
  return DTYPES.flatMap((a) =>
    DTYPES.map((b): [string, DType, DType, Answer] => {
      const answer = golden[table]?.[`${a},${b}`]
      if (answer === undefined) throw new Error(`the golden has no ${table} of ${a} and ${b}`)
      return [`${table} ${a}, ${b}`, a, b, answer]
    }),
  )
}

function defined(tensor: Tensor | undefined): Tensor {
  if (tensor === undefined) throw new Error('a tensor is missing')
  return tensor
}

/** Checks the dtype of a call, eager, on fake tensors and compiled; or that all three throw where PyTorch does. */
function check(operator: (...tensors: Tensor[]) => Tensor, tensors: readonly Tensor[], answer: Answer): void {
  const call = (): Tensor => operator(...tensors)
  const compiled = (): Tensor => compile(operator)(...tensors)
  const fake = (): Tensor => withMode(new FakeTensorMode(), call)
  if (typeof answer === 'string') expect([call().dtype, fake().dtype, compiled().dtype]).toEqual([answer, answer, answer])
  else for (const run of [call, fake, compiled]) expect(run).toThrow(/not implemented for/)
}

afterEach(() => torch.setDefaultDtype('float32'))

describe('torch.resultType', () => {
  it.each(pairs('tensor_tensor'))('%s', (_, a, b, answer) => {
    expect(torch.resultType(one(a, 1), one(b, 1))).toBe(answer)
    expect(torch.promoteTypes(a, b)).toBe(answer)
    expect(one(a, 1).mul(one(b, 1)).dtype).toBe(answer)
  })
  it.each(pairs('tensor_zero_dim'))('%s', (_, a, b, answer) => {
    expect(torch.resultType(one(a, 1), one(b, 0))).toBe(answer)
    expect(one(a, 1).mul(one(b, 0)).dtype).toBe(answer)
  })
  it.each(pairs('zero_dim_tensor'))('%s', (_, a, b, answer) => {
    expect(torch.resultType(one(a, 0), one(b, 1))).toBe(answer)
    expect(one(a, 0).mul(one(b, 1)).dtype).toBe(answer)
  })
  it.each(answers('tensor_int'))('%s', (_, dtype, answer) => {
    expect(torch.resultType(one(dtype, 1), 2)).toBe(answer)
    expect(one(dtype, 1).mul(2).dtype).toBe(answer)
  })
  it.each(answers('tensor_float'))('%s', (_, dtype, answer) => {
    expect(torch.resultType(one(dtype, 1), 2.5)).toBe(answer)
    expect(one(dtype, 1).mul(2.5).dtype).toBe(answer)
  })
  it.each(answers('tensor_bool'))('%s', (_, dtype, answer) => {
    expect(torch.resultType(one(dtype, 1), true)).toBe(answer)
  })
  test('a whole number keeps integers, a fraction does not (difference: whole-numbers)', () => {
    const ints = one('int32', 1)
    expect([ints.add(2).dtype, ints.add(2.5).dtype, ints.mul(-0).dtype, ints.mul(Infinity).dtype]).toEqual(['int32', 'float32', 'int32', 'float32'])
  })
  test('two numbers have the dtype of the later kind', () => {
    expect([torch.resultType(1, 2), torch.resultType(1, 2.5), torch.resultType(true, false)]).toEqual(['int64', 'float32', 'bool'])
  })
  test('anything else throws', () => {
    expect(() => torch.resultType('1' as never, 2)).toThrow(/expected tensors or numbers, got string/)
  })
})

describe('binary operators', () => {
  const operators = { true_divide: torch.div, floor_divide: torch.floorDivide, pow: torch.pow }
  for (const [table, operator] of Object.entries(operators))
    it.each(pairs(table))('%s', (_, a, b, answer) => check((x, y) => operator(defined(x), defined(y)), [one(a, 1), one(b, 1)], answer))

  test('a rounding mode keeps integers', () => {
    const x = torch.tensor([7, -7], { dtype: 'int16' })
    const [down, towardsZero] = [x.div(2, { roundingMode: 'floor' }), x.div(2, { roundingMode: 'trunc' })]
    expect([down.dtype, down.toArray(), towardsZero.dtype, towardsZero.toArray()]).toEqual(['int16', [3, -4], 'int16', [3, -3]])
  })
})

describe('unary operators and reductions', () => {
  const operators: Readonly<Record<string, (x: Tensor) => Tensor>> = {
    sum: (x) => x.sum(),
    mean: (x) => x.mean(),
    prod: (x) => x.prod(),
    cumsum: (x) => x.cumsum(0),
    exp: (x) => x.exp(),
    neg: (x) => x.neg(),
  }
  for (const [table, operator] of Object.entries(operators))
    it.each(answers(table))('%s', (_, dtype, answer) => check((x) => operator(defined(x)), [one(dtype, 1)], answer))
})

describe('torch.canCast', () => {
  test('allows the same or a later kind: bool, integer, floating', () => {
    const kind = (dtype: DType): number => (dtype === 'bool' ? 0 : dtype.includes('float') ? 2 : 1)
    for (const from of DTYPES) for (const to of DTYPES) expect(torch.canCast(from, to), `${from} to ${to}`).toBe(kind(from) <= kind(to))
  })
  test('is the rule for in-place results', () => {
    expect(() => one('int64', 1).add_(0.5)).toThrow(/add_: the result has dtype float32, which can't be cast to int64/)
    expect(() => one('int32', 1).div_(2)).toThrow(/result has dtype float32, which can't be cast to int32/)
    expect(() => one('bool', 1).add_(one('int8', 1))).toThrow(/result has dtype int8, which can't be cast to bool/)
    expect(one('float16', 1).add_(one('float64', 1)).dtype).toBe('float16')
    expect(one('uint8', 1).add_(one('int64', 1)).toArray()).toEqual([2])
  })
})

describe('the default dtype', () => {
  test('is that of new tensors, of fractions and of integers that become floats', () => {
    for (const dtype of ['float64', 'bfloat16', 'float32', 'float16'] as const) {
      torch.setDefaultDtype(dtype)
      expect(torch.getDefaultDtype()).toBe(dtype)
      const ints = torch.tensor([1, 2], { dtype: 'int32' })
      const made = [
        torch.tensor([1, 2]),
        torch.zeros([2]),
        torch.full([1], 2),
        torch.arange(3),
        torch.eye(2),
        torch.rand([2]),
        torch.randn([2]),
        torch.linspace(0, 1, 3),
        ints.mul(1.5),
        ints.div(2),
        ints.exp(),
        new torch.nn.Linear(2, 2).weight,
      ]
      expect(made.map((t) => t.dtype)).toEqual(made.map(() => dtype))
      expect([ints.mul(2).dtype, torch.zeros([1], { dtype: 'float32' }).dtype, torch.tensor([true]).dtype]).toEqual(['int32', 'float32', 'bool'])
    }
  })
  test('must be floating', () => {
    expect(() => torch.setDefaultDtype('int32')).toThrow(/only float16, bfloat16, float32 and float64 can be the default dtype, got int32/)
    expect(() => torch.setDefaultDtype('flaot32' as never)).toThrow(/got 'flaot32'; did you mean 'float32'\?/)
  })
})
