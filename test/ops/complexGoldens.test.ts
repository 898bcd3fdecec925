// What PyTorch 2.13 gives for complex numbers, recorded in test/goldens/around: texts, casts, dtypes of results, and calls of functions with their refusals.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Tensor, TensorfxError, torch } from 'tensorfx'
import type { DType } from 'tensorfx'
import { describe, expect, it } from 'vitest'
import { isDType } from '../../src/kernels/index.ts'
import { camelCase } from '../pytorch/python.ts'

type Num = number | string | boolean
interface Recorded {
  readonly dtype: string
  readonly shape: readonly number[]
  readonly data: readonly Num[] | null
}
interface Case {
  readonly name: string
  readonly [key: string]: unknown
}

const read = (name: string): readonly Case[] =>
  JSON.parse(readFileSync(fileURLToPath(new URL(`../goldens/around/${name}.json`, import.meta.url)), 'utf8')) as readonly Case[]

const NUMBERS: Readonly<Record<string, number>> = { nan: NaN, inf: Infinity, '-inf': -Infinity, '-0': -0 }
const number = (x: Num): number => (typeof x === 'string' ? (NUMBERS[x] ?? Number(x)) : Number(x))

function tensorOf({ dtype, shape, data }: Recorded): Tensor {
  if (!isDType(dtype)) throw new Error(`unknown dtype ${dtype}`)
  const values = (data ?? []).map(number)
  if (!dtype.startsWith('complex')) return torch.tensor(values, { dtype }).reshape(shape)
  return torch.viewAsComplex(torch.tensor(Float64Array.from(values)).reshape([...shape, 2])).to(dtype)
}

const numbersOf = (t: Tensor): readonly number[] => Array.from(t.dtype === 'int64' ? t.toBigIntArray() : t.toTypedArray(), Number)

describe('texts', () => {
  /** The tensors of over 100 elements. */
  const LARGE: Readonly<Record<string, () => Tensor>> = {
    '1d_summary': () => torch.complex(torch.arange(1200), torch.arange(1200).mul(-0.5)),
    '2d_summary': () => torch.complex(torch.arange(1600).reshape(40, 40), torch.ones([40, 40])),
    '2d_summary_both': () => torch.complex(torch.arange(3600).reshape(60, 60).div(7), torch.arange(3600).reshape(60, 60).div(3).neg()),
  }
  const HOW: Readonly<Record<string, (x: Tensor) => Tensor>> = {
    x: (x) => x,
    'x.requires_grad_()': (x) => x.requiresGrad_(),
    'torch.isfinite(x)': (x) => torch.isfinite(x),
    'torch.isinf(x)': (x) => torch.isinf(x),
    'torch.isnan(x)': (x) => torch.isnan(x),
    'torch.isreal(x)': (x) => torch.isreal(x),
    'torch.view_as_real(x)': (x) => torch.viewAsReal(x),
    'x == x.conj()': (x) => x.eq(x.conj()),
    'x.T': (x) => x.t(),
    'x.H': (x) => torch.adjoint(x),
    'x.angle()': (x) => x.angle(),
    'x.bool()': (x) => x.bool(),
    'x.conj()': (x) => x.conj(),
    'x.conj().imag': (x) => x.conj().imag(),
    'x.conj_physical()': (x) => x.conjPhysical(),
    'x.real': (x) => x.real(),
    'x.sum()': (x) => x.sum(),
  }
  const cases = read('print').filter(({ how, printoptions }) => printoptions === undefined && String(how) in HOW)
  it.each(cases)('$name is written as PyTorch writes it', ({ name, how, input, repr }) => {
    const x = (input as Recorded).data === null ? LARGE[name]?.() : tensorOf(input as Recorded)
    expect(String(x === undefined ? undefined : HOW[String(how)]?.(x))).toBe(repr)
  })
  it('has cases of most kinds', () => {
    expect(cases.length).toBeGreaterThan(30)
  })
})

describe('casts', () => {
  it.each(read('casts').filter(({ kind }) => kind === 'cast'))('$name', ({ input, out }) => {
    const wanted = tensorOf(out as Recorded)
    const actual = tensorOf(input as Recorded).to(wanted.dtype)
    expect([actual.dtype, numbersOf(actual)]).toEqual([wanted.dtype, numbersOf(wanted)])
  })
  it.each(read('casts').filter(({ kind }) => kind !== 'cast'))('$name', ({ v, dtype, shape, tolist }) => {
    const t = torch.tensor(v as number)
    expect([t.dtype, t.shape]).toEqual([dtype, shape])
    expect([t.toArray()].flat(9)).toEqual(tolist)
  })
})

describe('dtypes of results (difference: no-complex32)', () => {
  const cases = read('promotion').filter(({ b }) => typeof b === 'string' && isDType(b))
  it.each(cases)('$name', (one) => {
    const [a, b] = [one['a'] as DType, one['b'] as DType]
    expect(torch.promoteTypes(a, b)).toBe(one['promote_types'])
    expect(torch.canCast(a, b)).toBe(one['can_cast'])
    const of = (dtype: DType, shape: readonly number[]): Tensor => torch.ones(shape, { dtype })
    expect(torch.resultType(of(a, [1]), of(b, [1]))).toBe(one['dim_dim'])
    // There is no complex32 here: complex64 has more precision than float16.
    const known = (dtype: unknown): unknown => (dtype === 'complex32' ? 'complex64' : dtype)
    expect(torch.resultType(of(a, [1]), of(b, []))).toBe(known(one['dim_0d']))
    expect(torch.resultType(of(a, []), of(b, [1]))).toBe(known(one['0d_dim']))
    expect(torch.resultType(of(a, []), of(b, []))).toBe(one['0d_0d'])
    for (const name of ['add', 'mul', 'div', 'pow', 'eq'] as const)
      expect([name, torch[name](of(a, [2]), of(b, [2])).dtype]).toEqual([name, one[name]])
    for (const name of ['add_', 'mul_'] as const) {
      const wanted = one[name]
      if (typeof wanted === 'string') expect(of(a, [2])[name](of(b, [2])).dtype).toBe(wanted)
      else expect(() => of(a, [2])[name](of(b, [2]))).toThrow(TensorfxError)
    }
  })
  it('has the pairs with a complex dtype', () => {
    expect(cases.length).toBeGreaterThan(20)
  })
})

describe('calls of functions', () => {
  /** Calls of one or two tensors: `torch.add(a, b)`, `torch.add(a, real)` or `torch.exp`. */
  const plain = /^(?:torch|nn\.functional)\.(\w+)(?:\((?:a, b|a, real)\))?$/
  /** What PyTorch takes, and is refused here. */
  const REFUSED = new Set(['nan_to_num', 'logcumsumexp', 'logsumexp', 'numel', 'normalize'])
  /** What PyTorch refuses, and means one thing only: the operands are promoted first, or an argument is missing in the recorded call. */
  const TAKEN = new Set(['isclose', 'allclose', 'vdot', 'inner', 'flip', 'complex'])
  /** Recorded with further arguments that the text does not say. */
  const OTHERS = /(cumsum|full_like|roll|linear|conv1d|pad)$/
  const cases = read('functions').filter(({ call }) => plain.test(String(call)) && !OTHERS.test(String(call)))
  it.each(cases)('$call of $name', ({ call, inputs, ok, value }) => {
    const name = plain.exec(String(call))?.[1] ?? ''
    const owner: unknown = String(call).startsWith('nn.') ? torch.nn.functional : torch
    const key = camelCase(name)
    const fn: unknown = typeof owner === 'object' && owner !== null && key in owner ? Reflect.get(owner, key) : null
    const run = (): unknown => Reflect.apply(fn as () => unknown, null, (inputs as readonly Recorded[]).map(tensorOf))
    if (ok === true && !REFUSED.has(name)) {
      const result = run()
      if (typeof result === 'boolean' || name.startsWith('rand')) return
      const results = [result].flat().filter((t) => t instanceof Tensor)
      const wanted = (value as readonly Recorded[]).map(tensorOf)
      expect(results.map((t) => [t.dtype, t.shape])).toEqual(wanted.map((t) => [t.dtype, t.shape]))
      results.forEach((t, k) => {
        const [got, want] = [numbersOf(t), numbersOf(wanted[k] ?? t)]
        want.forEach((x, i) => {
          if (Number.isFinite(x)) expect(Math.abs((got[i] ?? NaN) - x)).toBeLessThanOrEqual(1e-5 * (1 + Math.abs(x)))
        })
      })
    } else if (!TAKEN.has(name) && fn !== null) expect(run).toThrow(TensorfxError)
  })
})
