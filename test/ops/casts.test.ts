// Casts between dtypes, integers that wrap around, and arithmetic of float16 and bfloat16: PyTorch's values.
import { describe, expect, it, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { allOps } from 'tensorfx/ops'
import { DTYPES, exactly, expectedOf, readGolden, tensorOf } from './dtypeGoldens.ts'
import type { StoredValue } from './dtypeGoldens.ts'

interface Casts {
  readonly casts: readonly {
    readonly from: DType
    readonly to: DType
    readonly values: readonly StoredValue[]
    readonly result: readonly StoredValue[]
  }[]
  readonly arithmetic: readonly {
    readonly dtype: DType
    readonly op: string
    readonly a: readonly StoredValue[]
    readonly b?: readonly StoredValue[]
    readonly result: readonly StoredValue[]
  }[]
}
const golden = readGolden<Casts>('casts')

describe('casts', () => {
  it.each(golden.casts.map((c): [string, Casts['casts'][number]] => [`${c.from} to ${c.to}`, c]))('%s', (_, { from, to, values, result }) => {
    const x = tensorOf(values, from)
    const compiled = compile((t: Tensor) => t.to(to).clone())
    for (const cast of [x.to(to), x.type(to), torch.zeros(x.shape, { dtype: to }).copy_(x), compiled(x)]) {
      expect(cast.dtype).toBe(to)
      expect(exactly(cast)).toEqual(expectedOf(result, to))
    }
  })
  test('each dtype has a method', () => {
    const x = torch.tensor([1.5, 0])
    const made = [x.bool(), x.byte(), x.char(), x.short(), x.int(), x.long(), x.half(), x.bfloat16(), x.float(), x.double()]
    expect(made.map((t) => t.dtype)).toEqual(DTYPES)
    expect(made.map((t) => t.toArray())).toEqual(DTYPES.map((d) => (d === 'bool' ? [true, false] : d.includes('float') ? [1.5, 0] : [1, 0])))
  })
  test('a gradient has the dtype of its tensor', () => {
    const x = torch.tensor([1, 2], { dtype: 'float16', requiresGrad: true })
    x.double().mul(3).sum().backward()
    expect([x.grad?.dtype, x.grad?.toArray()]).toEqual(['float16', [3, 3]])
    expect(() => torch.tensor([1], { dtype: 'int64', requiresGrad: true })).toThrow(/only floating-point and complex tensors can require gradients/)
  })
})

describe('arithmetic', () => {
  const elementwise = golden.arithmetic.filter(({ op }) => op !== 'sum' && op !== 'matmul')
  it.each(elementwise.map((c): [string, Casts['arithmetic'][number]] => [`${c.op} of ${c.dtype}`, c]))('%s', (_, { dtype, op, a, b, result }) => {
    const operator = allOps().find((o) => o.qualname === `torch.${op}`)
    if (operator === undefined) throw new Error(`there is no operator ${op}`)
    const operands = [a, ...(b === undefined ? [] : [b])].map((values) => tensorOf(values, dtype))
    const call = (...tensors: Tensor[]): Tensor => operator.fn(...tensors) as Tensor
    for (const out of [call(...operands), compile(call)(...operands)]) {
      expect(out.dtype).toBe(dtype)
      expect(exactly(out)).toEqual(expectedOf(result, dtype))
    }
  })
  const valuesOf = (op: string, dtype: DType): (number | bigint)[] =>
    expectedOf(golden.arithmetic.find((c) => c.op === op && c.dtype === dtype)?.result ?? [], dtype)

  it.each(['float16', 'bfloat16'] as const)('sums and products of matrices of %s are rounded once', (dtype) => {
    expect(exactly(torch.full([4096], 0.1, { dtype }).sum().reshape([1]))).toEqual(valuesOf('sum', dtype))
    const m = torch.arange(12, { dtype }).reshape(3, 4).div(7)
    expect(exactly(m.matmul(m.t()))).toEqual(valuesOf('matmul', dtype))
  })
})
