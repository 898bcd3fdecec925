// Functions and classes that a trace records whole: assertions, wrapped functions, proxyable classes, and the names that they get.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { ArgumentError, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { AssertionFailed, Tracer, _assert, _assertIsNone, bool, len, proxyable, symbolicTrace, wrap } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import { lookupTarget, targetInfo } from '../../src/protocol/index.ts'

const { tensor } = torch
const nodesOf = (fn: (x: Tensor) => unknown): readonly Node[] => [...new Tracer().trace(fn).nodes]
const nameOf = (fn: unknown): string | undefined => targetInfo(fn)?.name

let count = 0
/** A name that no function has yet, since names belong to one function for ever. */
const fresh = (base: string): string => `${base}${++count}_${Math.random().toString(36).slice(2)}`

afterEach(() => void vi.restoreAllMocks())

describe('assertions', () => {
  it('a failed assertion has a code of its own and the given message', () => {
    let error: unknown
    try {
      _assert(false, 'must hold')
    } catch (e) {
      error = e
    }
    expect(error).toBeInstanceOf(AssertionFailed)
    expect(error).toMatchObject({ code: 'TFX_ASSERTION', name: 'AssertionFailed', message: 'must hold' })
    expect(() => _assert(0)).toThrow(/^$/)
  })

  it('holds for true values, and for tensors of one element that is not zero', () => {
    for (const value of [true, 1, 'text', {}, { item: 5 }, { item: () => 0 }, tensor(3), tensor([true])])
      expect(() => _assert(value, 'm')).not.toThrow()
    for (const value of [false, 0, '', null, undefined, tensor(0), tensor([false])]) expect(() => _assert(value, 'm')).toThrow(AssertionFailed)
  })

  it('_assertIsNone wants null or undefined', () => {
    for (const value of [null, undefined]) expect(() => _assertIsNone(value, 'm')).not.toThrow()
    for (const value of [0, '', false, tensor(1)]) expect(() => _assertIsNone(value, 'x must be None')).toThrow(new AssertionFailed('x must be None'))
  })

  it('they are recorded by PyTorch’s names', () => {
    expect([nameOf(_assert), nameOf(_assertIsNone), _assert.name, _assertIsNone.name]).toEqual([
      'torch._assert',
      'torch.fx._symbolic_trace._assert_is_none',
      '_assert',
      '_assert_is_none',
    ])
    expect([lookupTarget('torch._assert'), lookupTarget('builtins.len')]).toEqual([_assert, len])
    expect(targetInfo(_assert)?.effects).toBe('io')
    expect(nodesOf((x) => (_assertIsNone(x, 'm'), x)).map((n) => [n.op, n.name])).toEqual([
      ['placeholder', 'x'],
      ['call_function', '_assert_is_none'],
      ['output', 'output'],
    ])
  })

  it('bool reads booleans and tensors of one element', () => {
    expect([bool(true), bool(0), bool(tensor(2)), bool(tensor([0])), bool([])]).toEqual([true, false, true, false, true])
  })
})

describe('wrap', () => {
  it('a name without dots is put under user, and the last part is the name of the function', () => {
    const [short, dotted] = [fresh('plain'), fresh('lib.module.fn')]
    const [a, b] = [wrap((x: Tensor) => x, { name: short }), wrap((x: Tensor) => x, { name: dotted })]
    expect([nameOf(a), a.name]).toEqual([`user.${short}`, short])
    expect([nameOf(b), b.name]).toEqual([dotted, dotted.slice('lib.module.'.length)])
    expect(nodesOf((x) => a(x))[1]?.target).toBe(a)
  })

  it('a wrapped function wraps to itself, whatever the name', () => {
    const leaf = wrap((x: Tensor) => x, { name: fresh('once') })
    expect(wrap(leaf)).toBe(leaf)
    expect(wrap(leaf, { name: fresh('again') })).toBe(leaf)
  })

  it('one function may be wrapped under two names', () => {
    const fn = (x: Tensor): Tensor => x
    const [first, second] = [fresh('first'), fresh('second')]
    const [a, b] = [wrap(fn, { name: first }), wrap(fn, { name: second })]
    expect(a).not.toBe(b)
    expect([wrap(fn, { name: first }), wrap(fn, { name: second })]).toEqual([a, b])
  })

  it('passes on this and all arguments', () => {
    const leaf = wrap(
      function (this: { readonly base: number }, a: number, b: number) {
        return [this.base, a, b]
      },
      { name: fresh('method') },
    )
    expect(leaf.call({ base: 1 }, 2, 3)).toEqual([1, 2, 3])
  })

  it('says what it got instead of a function', () => {
    expect(() => wrap(null as never)).toThrow(
      'wrap: Unsupported type for global function! Must be a callable, got null. wrap takes the function itself',
    )
    expect(() => wrap({} as never)).toThrow('Must be a callable, got Object.')
    expect(() => wrap(3 as never)).toThrow(ArgumentError)
  })

  it('effects are those given, else those declared, else none', () => {
    const plain = wrap((x: Tensor) => x, { name: fresh('pure') })
    const random = wrap((x: Tensor) => x, { name: fresh('random'), effects: 'random' })
    expect([targetInfo(plain)?.effects, targetInfo(random)?.effects]).toEqual(['pure', 'random'])
  })
})

describe('proxyable', () => {
  class Holder {
    readonly value: unknown
    readonly options: unknown
    constructor(value: unknown, options: unknown = null) {
      this.value = value
      this.options = options
    }
  }

  it('records the construction under the name of the class', () => {
    const [short, dotted] = [fresh('Pair'), fresh('lib.Pair')]
    const [A, B] = [proxyable(class extends Holder {}, { name: short }), proxyable(class extends Holder {}, { name: dotted })]
    const [node, other] = [nodesOf((x) => new A(x).value)[1], nodesOf((x) => new B(x).value)[1]]
    expect([node?.op, nameOf(node?.target), nameOf(other?.target)]).toEqual(['call_function', `user.${short}`, dotted])
    const build = node?.target
    expect(typeof build === 'function' && build.name).toBe(short)
  })

  it('the recorded call constructs when the graph runs', () => {
    const Pair = proxyable(class extends Holder {}, { name: fresh('Built') })
    const gm = symbolicTrace((x: Tensor) => new Pair(x, 5))
    const result = gm.call(tensor([1, 2]))
    expect(result).toBeInstanceOf(Pair)
    expect(result).toMatchObject({ options: 5 })
  })

  it('without a traced argument it is an ordinary class', () => {
    const Pair = proxyable(class extends Holder {}, { name: fresh('Plain') })
    expect(new Pair(1, 2)).toMatchObject({ value: 1, options: 2 })
    expect(new Pair(1, 2)).toBeInstanceOf(Pair)
  })

  it('the construction of a subclass is not recorded', () => {
    const Pair = proxyable(class extends Holder {}, { name: fresh('Base') })
    class Sub extends Pair {
      readonly own = true
    }
    const made: unknown[] = []
    const nodes = nodesOf((x) => {
      made.push(new Sub(x))
      return x
    })
    expect(made[0]).toBeInstanceOf(Sub)
    expect(made[0]).toMatchObject({ own: true })
    expect(nodes.map((n) => n.op)).toEqual(['placeholder', 'output'])
  })

  it('says what it got instead of a class, and wants a name', () => {
    expect(() => proxyable(3 as never)).toThrow(new ArgumentError("proxyable: argument 'cls' must be a class, got 3."))
    expect(() => proxyable(class {})).toThrow(new ArgumentError('proxyable: an anonymous class needs a name: proxyable(cls, { name }).'))
  })
})

describe('conditions that nothing uses', () => {
  const warnings = (fn: (x: Tensor) => unknown): readonly string[] => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    symbolicTrace(fn)
    const texts = warn.mock.calls.map(([text]) => String(text))
    warn.mockRestore()
    return texts
  }

  it('the warning says what to do instead', () => {
    const [text] = warnings((x) => (x.sum().gt(0), x))
    expect(text).toMatch(
      /^symbolic tracing: nothing uses the result of gt \(node 'gt'\) at .*\(.*leafFunctions\.test\.ts:\d+:\d+\)\.\nIf the code there branches on it/,
    )
    for (const advice of ['torch.where(condition, a, b)', 'concreteArgs', 'fx.bool(condition)', 'compile()', "unusedConditions: 'ignore'"])
      expect(text).toContain(advice)
  })

  it('each place is told of once', () => {
    expect(
      warnings((x) => {
        for (let i = 0; i < 3; i++) x.gt(i)
        return x
      }),
    ).toHaveLength(1)
    expect(
      warnings((x) => {
        x.lt(0)
        x.le(0)
        return x
      }),
    ).toHaveLength(2)
  })

  it('other unused results are not suspicious', () => {
    const own = wrap((x: Tensor) => x, { name: fresh('lookup') })
    expect(
      warnings((x) => {
        x.add(1)
        torch.relu(x)
        own(x)
        return x.gt(0)
      }),
    ).toEqual([])
  })
})
