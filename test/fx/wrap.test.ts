// wrap: functions that stay one call. autowrap: those of whole objects, patched while a trace runs.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, Tracer, Transformer, len, math, symbolicTrace, wrap } from 'tensorfx/fx'
import * as nn from 'tensorfx/nn'

const { tensor } = torch

const { Module } = nn
const values = (t: unknown): number[] => Array.from((t as Tensor).contiguous().toTypedArray(), Number)
const run = (m: GraphModule, ...args: readonly unknown[]): unknown => (m.forward as (...a: readonly unknown[]) => unknown)(...args)
const targets = (m: GraphModule): string[] =>
  [...m.graph.nodes].filter((n) => n.op === 'call_function').map((n) => (n.target as { name: string }).name)
const lines = (m: GraphModule): string[] =>
  String(m.graph)
    .split('\n')
    .slice(1)
    .map((l) => l.trim())

const twice = wrap(
  function twice(x: Tensor): Tensor {
    return x.add(x)
  },
  { name: 'test.wrap.twice' },
)

describe('wrap', () => {
  it('test_wrap, test_wrap_fn_directly: one node for a traced value, an ordinary call otherwise (difference: wrap-returns)', () => {
    const gm = symbolicTrace((x: Tensor) => twice(x).relu())
    expect(lines(gm)[1]).toBe('%twice : [num_users=1] = call_function[target=test.wrap.twice](args = (%x,), kwargs = {})')
    expect(values(twice(tensor([2])))).toEqual([4])
    expect(values(run(gm, tensor([3])))).toEqual([6])
  })

  it('a value inside an array or an options object is found', () => {
    const pick = wrap((options: { of: Tensor[] }) => options.of[0] as Tensor, { name: 'test.wrap.pick' })
    expect(targets(symbolicTrace((x: Tensor) => pick({ of: [x] })))).toEqual(['pick'])
  })

  it('test_wrapped_via_decorator, test_wrapped_retrace: nothing is patched, and a trace of the trace keeps the leaf', () => {
    const gm = symbolicTrace((x: Tensor) => twice(x))
    const again = symbolicTrace(gm)
    expect(targets(again)).toEqual(['twice'])
    expect(again.code).toBe(gm.code)
    expect(values(run(again, tensor([1])))).toEqual([2])
  })

  it('test_wrapped_via_decorator_and_transformed: a Transformer keeps the call', () => {
    const gm = new Transformer(symbolicTrace((x: Tensor) => twice(x).neg())).transform()
    expect(targets(gm)).toEqual(['twice'])
    expect(values(run(gm, tensor([1])))).toEqual([-2])
  })

  it('test_wrap_with_submodule: a module of the root is an argument', () => {
    const apply = wrap((x: Tensor, m: nn.Module) => (m.call as (t: Tensor) => Tensor)(x), { name: 'test.wrap.apply' })
    class Root extends Module {
      readonly act = new nn.ReLU()
      override forward(x: Tensor): Tensor {
        return apply(x, this.act)
      }
    }
    const gm = symbolicTrace(new Root())
    expect(lines(gm).slice(1, 3)).toEqual([
      '%act : [num_users=1] = get_attr[target=act]',
      '%apply : [num_users=1] = call_function[target=test.wrap.apply](args = (%x, %act), kwargs = {})',
    ])
    expect(values(run(gm, tensor([-1, 1])))).toEqual([0, 1])
  })

  it('test_wrap_decorated_function: a decorated function is wrapped like any other', () => {
    const decorate =
      <A extends readonly unknown[], R>(fn: (...args: A) => R) =>
      (...args: A): R =>
        fn(...args)
    const decorated = wrap(
      decorate((x: Tensor) => x.mul(3)),
      { name: 'test.wrap.decorated' },
    )
    expect(targets(symbolicTrace((x: Tensor) => decorated(x)))).toEqual(['decorated'])
  })

  it('wrapping again gives the same function', () => {
    const plus = (x: Tensor): Tensor => x.add(1)
    const wrapped = wrap(plus, { name: 'test.wrap.plus' })
    expect(wrap(plus, { name: 'test.wrap.plus' })).toBe(wrapped)
    expect(wrap(wrapped)).toBe(wrapped)
    expect(wrap(plus, { name: 'test.wrap.alias' })).not.toBe(wrapped)
    expect(wrap(plus, { name: 'test.wrap.plus' })).toBe(wrapped)
  })

  it('its nodes are marked', () => {
    const gm = symbolicTrace((x: Tensor) => twice(x).relu())
    expect([...gm.graph.nodes].map((n) => n.meta['is_wrapped'] === true)).toEqual([false, true, false, false])
  })

  it('dead-code elimination keeps a call with effects', () => {
    const log: unknown[] = []
    const note = wrap((x: Tensor) => void log.push(x), { name: 'test.wrap.note', effects: 'io' })
    const gm = symbolicTrace((x: Tensor) => {
      note(x)
      void twice(x)
      return x
    })
    gm.graph.eliminateDeadCode()
    expect(targets(gm)).toEqual(['note'])
  })

  it('what is no function, an anonymous function, and a name that is taken are refused', () => {
    expect(() => wrap('len' as never)).toThrow('Unsupported type for global function! Must be a callable')
    expect(() => wrap((x: Tensor) => x)).toThrow('an anonymous function needs a name')
    expect(() => wrap((x: Tensor) => x, { name: 'test.wrap.twice' })).toThrow("the name 'test.wrap.twice' already belongs to another function")
  })
})

describe('functions of the language', () => {
  it('test_torch_fx_len: len is recorded, and counts arrays, strings, Maps, Sets and tensors', () => {
    const gm = symbolicTrace((x: Tensor) => len(x))
    expect(lines(gm)[1]).toBe('%len_1 : [num_users=1] = call_function[target=builtins.len](args = (%x,), kwargs = {})')
    expect(run(gm, tensor([1, 2, 3]))).toBe(3)
    expect([len([1, 2]), len('abc'), len(new Map([[1, 2]])), len(new Set([1, 2]))]).toEqual([2, 3, 1, 2])
    expect(() => len(5)).toThrow('len: expected an array')
  })

  it('test_sqrt, wrap_normalize: math.sqrt of a length', () => {
    const gm = symbolicTrace((x: Tensor) => x.div(math.sqrt(len(x))))
    expect(lines(gm).slice(1, 3)).toEqual([
      '%len_1 : [num_users=1] = call_function[target=builtins.len](args = (%x,), kwargs = {})',
      '%sqrt : [num_users=1] = call_function[target=math.sqrt](args = (%len_1,), kwargs = {})',
    ])
    expect(values(run(gm, tensor([2, 4, 6, 8])))).toEqual([1, 2, 3, 4])
    expect(math.sqrt(9)).toBe(3)
  })

  it('Math itself refuses traced values', () => {
    expect(() => symbolicTrace((x: Tensor) => Math.sqrt(x as never))).toThrow('symbolically traced variables')
  })
})

describe('autowrap', () => {
  it('test_autowrap_functions: the functions of an object are recorded during the trace, and set back after it, also when it fails (difference: autowrap-by-name)', () => {
    const lib = { plus: (x: Tensor, n: number): Tensor => x.add(n), ignored: 3 }
    const { plus } = lib
    const tracer = new Tracer({ autowrapModules: { 'test.lib': lib } })
    const gm = symbolicTrace((x: Tensor) => lib.plus(x, 2), { tracer })
    expect(lines(gm)[1]).toBe('%plus : [num_users=1] = call_function[target=test.lib.plus](args = (%x, 2), kwargs = {})')
    expect(lib.plus).toBe(plus)
    expect(() =>
      tracer.trace((x: Tensor) => {
        throw new Error(`stop ${String(lib.plus === plus)} ${String(x === null)}`)
      }),
    ).toThrow('stop false false')
    expect(lib.plus).toBe(plus)
    expect(values(run(gm, tensor([1])))).toEqual([3])
  })

  it('test_sqrt: { math: Math } makes Math.sqrt a call of math.sqrt, and plain numbers stay plain', () => {
    const { sqrt } = Math
    const gm = symbolicTrace((x: Tensor) => x.div(Math.sqrt(x.size(0) as number)).mul(Math.sqrt(4)), {
      tracer: new Tracer({ autowrapModules: { math: Math } }),
    })
    expect(String(gm.graph)).toContain('call_function[target=math.sqrt](args = (%size,), kwargs = {})')
    expect(String(gm.graph)).toContain('args = (%div, 2)')
    expect(Math.sqrt).toBe(sqrt)
    expect(values(run(gm, tensor([1, 1, 1, 1])))).toEqual([1, 1, 1, 1])
  })

  it('a custom function of a library is called by its own name', () => {
    expect(targets(symbolicTrace((x: Tensor) => torch.relu(twice(x))))).toEqual(['twice', 'relu'])
  })
})
