// RewritingTracer: what JavaScript hides from other tracers is recorded or refused. PyTorch's experimental.rewriter and its tests in test_fx_experimental.py.
import { describe, expect, it, vi } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, TraceError, Tracer, Transformer, operator, symbolicTrace, wrap } from 'tensorfx/fx'
import { annotate } from 'tensorfx/fx/experimental'
import type { ConcreteArgs, Proxied, Traceable } from 'tensorfx/fx'
import * as nn from 'tensorfx/nn'
import { RewritingTracer, rewriteFunction } from 'tensorfx/rewriter'
import { assertPresent } from '../../src/rewriter/assertions.ts'
import type { RewritingTracerOptions } from 'tensorfx/rewriter'
import { describeGolden, expectText, messageOf, resultOf } from '../fx/modules/golden.ts'

const scope = { torch, nn, operator, annotate }

/** A value from source text, because the tests' own imports have other names when they run. */
const fromText = <T>(text: string, names: Readonly<Record<string, unknown>> = scope): T =>
  // oxlint-disable-next-line no-new-func -- the text is part of the test
  new Function(...Object.keys(names), `return (${text})`)(...Object.values(names)) as T

/** A module whose forward has this source. */
const moduleOf = (forward: string, fields = ''): nn.Module => {
  const M = fromText<new () => nn.Module>(`class M extends nn.Module { ${fields}\n ${forward} }`)
  return new M()
}

const rewritten = (root: Traceable, options: RewritingTracerOptions = { scope }, concreteArgs: ConcreteArgs = {}): GraphModule => {
  const tracer = new RewritingTracer({ unusedConditions: 'error', ...options })
  const graph = tracer.trace(root, concreteArgs)
  return new GraphModule(tracer.root, graph)
}

const traced = (source: string, options?: RewritingTracerOptions): GraphModule => {
  const tracer = new RewritingTracer({ unusedConditions: 'error', scope, ...options })
  const graph = tracer.trace(fromText<Traceable>(source))
  return new GraphModule(tracer.root, graph)
}

const targets = (gm: GraphModule): string[] =>
  [...gm.graph.nodes].filter((node) => node.op.startsWith('call')).map((node) => (typeof node.target === 'string' ? node.target : node.target.name))

describeGolden('rewriter', {
  without_message: (golden) => {
    const [text, , sum, error] = resultOf<[string, string, number, { error: string }]>(golden)
    const gm = traced('(a, b) => { console.assert(a === b); return operator.add(a, b) }')
    expect(String(gm.graph)).toBe(text)
    expect(gm.call(3, 3)).toBe(sum)
    expect(messageOf(() => gm.call(3, 5)).startsWith(error.error)).toBe(true)
  },
  with_message: (golden) => {
    const [text, , sum, error] = resultOf<[string, string, number, { error: string }]>(golden)
    for (const source of [
      "(a, b) => { console.assert(a === b, 'test message'); return operator.add(a, b) }",
      "(a, b) => { if (!(a === b)) throw new Error('test message'); return operator.add(a, b) }",
      "(a, b) => { if (!(a === b)) { throw new TypeError('test message') } return operator.add(a, b) }",
    ]) {
      const gm = traced(source)
      expectText(gm, text, ['test message'])
      expect(gm.call(3, 3)).toBe(sum)
      expect(messageOf(() => gm.call(3, 5))).toContain(error.error)
    }
  },
  empty_message: (golden) => {
    const [text] = resultOf<[string, unknown]>(golden)
    const gm = traced("(a, b) => { console.assert(a === b, ''); return operator.add(a, b) }")
    expect(String(gm.graph)).toBe(text)
    expect(() => gm.call(3, 5)).toThrow()
  },
  'submodules_are_rewritten_and_kept (difference: children-rewritten)': (golden) => {
    const [refused, text, tag] = resultOf<[{ error: string }, string, string]>(golden)
    expect(refused.error).toContain('cannot be used as inputs to control flow')
    const forward = "forward(x) { console.assert(x.dim() === 4, 'rank'); return this.bn.call(x) }"
    const outer = moduleOf(forward, "bn = new nn.BatchNorm2d(3); tag = 'kept'")
    expectText(rewritten(outer), text, ['rank'])
    const before = Object.getOwnPropertyNames(outer)
    expect([Reflect.get(outer, 'tag'), before.includes('forward')]).toEqual([tag, false])
    const inner = moduleOf("forward(a, b) { if (!(a === b)) throw new Error('test message'); return operator.add(a, b) }")
    const both = moduleOf('forward(x) { return this.bn.call(this.inner.call(x, x.neg())) }', 'bn = new nn.BatchNorm2d(3)')
    Reflect.set(both, 'inner', inner)
    expect(targets(rewritten(both))).toEqual(['neg', 'eq', '_assert', 'add', 'bn'])
  },
  'free_functions (difference: children-rewritten)': (golden) => {
    const [text, value, failed] = resultOf<[string, { data: number[] }, { error: string }]>(golden)
    const gm = traced("function local(x) { if (!operator.gt(x.sum(), 0)) throw new Error('positive'); return torch.neg(x) }")
    expectText(gm, text, ['positive'])
    expect((gm.call(torch.ones([2])) as Tensor).toArray()).toEqual(value.data)
    expect(messageOf(() => gm.call(torch.ones([2]).neg()))).toContain(failed.error)
  },
  'annotated_local (difference: no-annotations)': (golden) => {
    const [text] = resultOf<[string]>(golden)
    expect(text).toContain('%relu : TensorType[(1, 2)]')
    const gm = traced("(x) => { const y = annotate(torch.relu(x), 'TensorType[(1, 2)]'); return operator.add(y, 1) }")
    expect([...gm.graph.nodes].map((node) => node.type)).toEqual([null, 'TensorType[(1, 2)]', null, null])
  },
  'plain_tracer_fails it sees no condition (difference: bool-by-call)': (golden) => {
    expect(resultOf<[{ error: string }]>(golden)[0].error).toContain('cannot be used as inputs to control flow')
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const program = fromText<Traceable>("(a, b) => { if (!a.eq(b)) throw new Error('differ'); return a }")
    expect(targets(symbolicTrace(program))).toEqual(['eq'])
    expect(warn).toHaveBeenCalled()
    warn.mockRestore()
  },
})

const CONTROL_FLOW = 'cannot be used as inputs to control flow'

describe('conditions on traced values are refused', () => {
  it.each([
    ['if', '(x) => { if (x.sum().gt(0)) return x; return x.neg() }'],
    ['while', '(x) => { while (x.gt(0)) return x; return x.neg() }'],
    ['do while', '(x) => { do { x = x.neg() } while (x.gt(0)); return x }'],
    ['for', '(x) => { for (; x.gt(0); ) return x; return x.neg() }'],
    ['a ternary', '(x) => (x.gt(0) ? x : x.neg())'],
    ['not', '(x) => (!x.gt(0) ? x.neg() : x)'],
    ['and', '(x) => (x.gt(0) && x.lt(1)) || x'],
    ['or', '(x) => x.gt(0) || x'],
    ['Boolean', '(x) => (Boolean(x.gt(0)) ? x : x.neg())'],
    ['identity', '(x) => (x.size(0) === 3 ? x : x.neg())'],
    ['difference', '(x) => (x.size(0) !== 3 ? x : x.neg())'],
    ['loose equality of traced values', '(x, y) => { if (x.size(0) == y.size(0)) return x; return y }'],
    ['Object.is', '(x) => (Object.is(x.size(0), 3) ? x : x.neg())'],
  ])('%s', (_, source) => {
    expect(() => traced(source)).toThrow(TraceError)
    expect(messageOf(() => traced(source))).toContain(CONTROL_FLOW)
  })

  it.each([
    ['typeof', "(x) => (typeof x === 'object' ? x : x.neg())", 'the type of a traced value'],
    ['typeof of a call', "(x) => (typeof x.size(0) === 'number' ? x : x.neg())", 'the type of a traced value'],
    ['instanceof', '(x) => (x instanceof torch.Tensor ? x : x.neg())', 'the class of a traced value'],
    ['Array.isArray', '(x) => (Array.isArray(x) ? x[0] : x)', 'whether it is an array of a traced value'],
    ['switch', '(x) => { switch (x.size(0)) { case 1: return x; default: return x.neg() } }', 'which case of a switch holds'],
  ])('%s', (_, source, message) => {
    expect(messageOf(() => traced(source))).toContain(message)
  })

  it('a tracer that knows the answer decides', () => {
    class Optimist extends RewritingTracer {
      override toBool(_value: Proxied): boolean {
        return true
      }
    }
    const program = fromText<Traceable>('(x) => (x.gt(0) && !x.lt(1) ? x.neg() : x.sin())')
    expect(targets(new GraphModule({}, new Optimist().trace(program)))).toEqual(['gt', 'lt', 'sin'])
  })

  it('comparisons are recorded', () => {
    expect(targets(traced('(x, y) => [x.size(0) === 3, x.size(0) !== y.size(0), x == 4]'))).toEqual(['size', 'eq', 'size', 'size', 'ne', 'eq'])
    expect(targets(traced('(x) => (x === x ? x.neg() : x)'))).toEqual(['neg'])
  })
})

describe('where a program asks whether a value is missing, a traced value is there, and the graph asserts that', () => {
  const missing = 'but the graph was traced for a value'

  it.each([
    ['=== null, == undefined', '(x, y = null) => (y === null || undefined == y ? x.neg() : x.add(y))', 'add'],
    ['!== undefined', '(x, y) => (y !== undefined ? x.add(y) : x.neg())', 'add'],
    ['a variable that is null', '(x, y) => { const none = null; return y == none || none !== y ? x.add(y) : x.neg() }', 'add'],
    ['??', '(x, y) => x.add(y ?? 1)', 'add'],
    ['??=', '(x, y) => { y ??= x; return x.add(y) }', 'add'],
    ['??= of a property', '(x, y) => { const o = { y }; o.y ??= x; return x.add(o.y) }', 'add'],
    ['a call with ?.', '(x, y) => { const f = y; return x.add(f?.(x) ?? 1) }', '__call__ add'],
  ])('%s', (_, source, then) => {
    const gm = traced(source)
    const found = targets(gm)
    expect(found.filter((name) => name !== 'assert_present').join(' ')).toBe(then)
    expect(found.filter((name) => name === 'assert_present').length).toBe(then === 'add' ? 1 : 2)
    const x = torch.ones([2])
    for (const value of [null, undefined]) expect(messageOf(() => gm.call(x, value))).toContain(missing)
    const given = then === 'add' ? x : () => x
    expect((gm.call(x, given) as Tensor).toArray()).toEqual([2, 2])
    // Arguments that are known to be missing are fixed.
    expect(rewritten(fromText<Traceable>(source), { scope }, { y: null }).graph.findNodes({ op: 'call_function', target: assertPresent })).toEqual([])
  })

  it('a default in a pattern is not used, which the graph asserts; null is a value', () => {
    for (const source of [
      '(x) => { const { scale = 2 } = x; return [scale] }',
      '(x) => { const { part: { scale = 2 } } = { part: x }\n return [scale] }',
      '(x) => { let scale; ({ scale = 2 } = x); return [scale] }',
      '(x) => { switch (1) { case 1: const [{ scale = 2 } = {}] = [x]; return [scale] } }',
    ]) {
      const gm = traced(source)
      expect([source, targets(gm)]).toEqual([source, ['getattr', 'assert_present']])
      expect(messageOf(() => gm.call({}))).toContain("'getattr_1' is undefined, but the graph was traced for a value")
      expect([gm.call({ scale: 3 }), gm.call({ scale: null })]).toEqual([[3], [null]])
    }
  })

  it('a value that may not be missing may not be undefined either: it is asserted once, unless only undefined was', () => {
    expect(targets(traced('(x) => { const { a = 1 } = x; const b = a ?? 2; const { c = 3 } = { c: a }; return [b, c] }'))).toEqual([
      'getattr',
      'assert_present',
      'assert_present',
    ])
  })
})

describe('what would be lost is refused', () => {
  it.each([
    ['a key of a Map', '(x) => new Map([[3, "a"]]).get(x) ?? "none"', 'whether a key or an element equals it'],
    ['an element of a Set', '(x) => (new Set([3]).has(x) ? 1 : x)', 'whether a key or an element equals it'],
    ['an element of an array', '(x) => ([1, 3].includes(x.size(0)) ? 1 : x)', 'whether a key or an element equals it'],
    ['a position in a typed array', '(x) => new Int32Array(2).indexOf(x)', 'whether a key or an element equals it'],
    ['then', '(x) => [x.then, x]', "'then', 'constructor' or 'prototype' of a traced value"],
    ['constructor', '(x) => x.relu().constructor.name', "'then', 'constructor' or 'prototype' of a traced value"],
    ['then in a pattern', '(x) => { const { then } = x; return then }', "'then', 'constructor' or 'prototype' of a traced value"],
    ['then in an assignment', '(x) => { let then; ({ then } = x); return then }', "'then', 'constructor' or 'prototype' of a traced value"],
    ['a global', '(x) => { globalThis.last = x; return x }', 'is stored in a module, a class or a global'],
    ['a class', '(x) => { const L = nn.Linear; L.last = [x]; return x }', 'is stored in a module, a class or a global'],
    ['||=', '(x) => { x ||= 1; return x }', CONTROL_FLOW],
    ['&&=', '(x) => { const o = { x }; o.x &&= 1; return o.x }', CONTROL_FLOW],
  ])('%s', (_, source, message) => {
    expect(messageOf(() => traced(source))).toContain(message)
  })

  it('a module', () => {
    expect(messageOf(() => rewritten(moduleOf('forward(x) { this.last = x; return x }')))).toContain('is stored in a module, a class or a global')
    expect(targets(rewritten(moduleOf('forward(x) { const o = {}; o.x = x; this.count = 1; return o.x.neg() }')))).toEqual(['neg'])
  })

  it('but not what compares identities, as tensors do, nor a traced collection', () => {
    const source =
      '(x, seen) => { const made = new Map([[{}, 1]]); made.has(x) || made.set(x, x.neg()); return [made.get(x), seen.get(x), [x].includes(x)] }'
    const gm = traced(source)
    expect(targets(gm)).toEqual(['neg', 'get'])
  })
})

describe('the tests of the rewriter in test_fx_experimental.py', () => {
  const check = (source: string, message: string): void => {
    const gm = traced(source)
    expect(targets(gm)).toEqual(['eq', '_assert', 'add'])
    expect(gm.call(3, 3)).toBe(6)
    expect(messageOf(() => gm.call(3, 5))).toContain(message)
  }

  it('test_ast_rewriter_rewrites_assert, test_call_to_assert_no_msg', () => {
    check('(a, b) => { console.assert(a === b); return operator.add(a, b) }', '')
  })

  it('test_ast_rewriter_rewrites_assert_with_message, test_call_to_assert_with_msg', () => {
    check("(a, b) => { console.assert(a === b, 'test message'); return operator.add(a, b) }", 'test message')
  })

  it('test_call_to_assert_with_empty_msg', () => {
    check("(a, b) => { console.assert(a === b, ''); return operator.add(a, b) }", '')
  })

  it('test_call_to_assert_with_multiline_message', () => {
    const message = '\nAn error message with\nterrible spacing\n'
    check(`(a, b) => { const message = ${JSON.stringify(message)}; console.assert(a === b, message); return operator.add(a, b) }`, message)
    check('(a, b) => { if (!(a === b)) throw new Error(`first\nsecond`); return operator.add(a, b) }', 'first second')
  })

  it('test_ast_rewriter_reassigns_submodules: the children are those of the model', () => {
    const model = moduleOf("forward(x) { console.assert(x.dim() === 4, 'rank'); return this.bn.call(x) }", 'bn = new nn.BatchNorm2d(3)')
    expect(rewritten(model).attribute('bn')).toBe(Reflect.get(model, 'bn'))
  })

  const wrapped = wrap(
    (a: Tensor, b: Tensor): Tensor => {
      // Its body is not traced, so conditions are plain here.
      if (a === b) return a
      return operator.add(a, b) as Tensor
    },
    { name: 'rewriter_leaf' },
  )

  it('test_ast_rewriter_wrap, test_ast_rewriter_wrap_fn_directly: wrapped functions are one call', () => {
    const gm = traced('(y) => { console.assert(y.dim() === 1, "rank"); return operator.add(leaf(y, y.neg()), 1) }', {
      scope: { ...scope, leaf: wrapped },
    })
    expect(targets(gm)).toEqual(['dim', 'eq', '_assert', 'neg', 'rewriter_leaf', 'add'])
    expect((gm.call(torch.ones([2])) as Tensor).toArray()).toEqual([1, 1])
  })

  it('test_ast_rewriter_wrapped_via_decorator, test_ast_rewriter_wrapped_via_decorator_and_transformed: also after a Transformer', () => {
    const gm = traced('(y) => { if (!(y.dim() === 1)) throw new Error("rank"); return leaf(y, y) }', { scope: { ...scope, leaf: wrapped } })
    const again = new Transformer(gm).transform()
    expect(targets(again)).toEqual(targets(gm))
    expect((again.call(torch.ones([2])) as Tensor).toArray()).toEqual([1, 1])
  })

  it('test_ast_rewriter_wrap_with_submodule: and in modules', () => {
    const model = moduleOf(
      'forward(x) { if (!(x.dim() === 2)) throw new Error("rank"); return leaf(this.lin.call(x), x) }',
      'lin = new nn.Linear(2, 2)',
    )
    expect(targets(rewritten(model, { scope: { ...scope, leaf: wrapped } }))).toEqual(['dim', 'eq', '_assert', 'lin', 'rewriter_leaf'])
  })
})

describe('rewriteFunction', () => {
  it('with plain values a function does the same as before', () => {
    const sources = [
      '(a, b) => a && b',
      '(a, b) => a || b',
      '(a, b) => (a && b) || !a',
      '(a, b) => a ?? b',
      '(a, b) => [a === b, a !== b, a == b, a != b, Object.is(a, b)]',
      '(a) => [typeof a, typeof missing, Array.isArray(a), Boolean(a), a instanceof Array]',
      'function (a) { switch (a) { case 1: return "one"; case null: return "none"; default: return "other" } }',
      'function (a, b) { let n = 0; while (a && n < 3) n++; do n++; while (!b && n < 5); for (; n < 7 && a; ) n++; return n }',
      'function (a) { if (!a) throw new RangeError("no " + a); return a }',
      'function* (a, b) { return a && (yield b) }',
      '(a, b) => (a /* && */ && // ||\n b)',
      '(a, b) => ((a) || (b)) === (b)',
      '(a, b) => { const c = a\n a && (b = c)\n !b || (b = 1)\n return b }',
      '(a, b) => { let c = a; c ??= b\n c ||= 1\n c &&= [c, b]\n return c }',
      '(a, b) => { const o = { a }; o.a ??= b; o.a ||= () => 1; return typeof o.a === "function" ? o.a.name : o.a }',
      '(a) => { let f; f ??= () => a; return f.name }',
      '(a, b) => [a?.length, a?.[0]?.x.y, b?.b?.().c, a?.toString?.(), a == null, null !== b, undefined === a]',
      '(a, b) => { const { length = b, x: { y = 1 } = {} } = a; return [length, y] }',
      '(a, b) => { let c; [c = b] = [a]; ({ c = 2 } = { c })\n return c }',
      'function (a) { if (a) var { x = 1 } = a; else var y = 2; return [x, y] }',
      'function (a) { for (const { x = a } of [{}, { x: 1 }]) if (x === 1) return x; return a }',
      '(a, b) => [new Map([[a, 1]]).get(b), new Set([a])\n  .has(b), [a, 3].includes(b), "xyz".indexOf("y"), [a].lastIndexOf(b, ...[0])]',
      '(a) => { try { return a.get(1) } catch (e) { return e.name } }',
      '(a) => a.includes?.("x")?.valueOf()',
      '(a) => [a.constructor === Array, a.constructor.prototype === Array.prototype, new a.constructor(1).toString()]',
      '(a) => { const { constructor } = a; return constructor.name }',
      '(a, b) => { const o = { x: 1 }; o.x = a; o["y"] = o.z = b; return Object.entries(o) }',
      'function (a) { class A { static { const { z = a } = {}; this.z = z } } return A.z }',
    ]
    const values = [0, 1, 2, '', 'x', null, undefined, [], {}, Number.NaN]
    const outcome = (fn: (...args: unknown[]) => unknown, args: readonly unknown[]): unknown => {
      try {
        const value = fn(...args)
        return typeof value === 'object' && value !== null && Symbol.iterator in value ? [...(value as Iterable<unknown>)] : value
      } catch (error) {
        // What the engine says about a null may quote the rewritten code.
        return error instanceof TypeError ? error.name : String(error)
      }
    }
    for (const source of sources) {
      const fn = fromText<(...args: unknown[]) => unknown>(source)
      const other = rewriteFunction(fn)
      expect([source, other === fn]).toEqual([source, false])
      for (const a of values) for (const b of values) expect([source, a, b, outcome(other, [a, b])]).toEqual([source, a, b, outcome(fn, [a, b])])
    }
  })

  it('names that are missing are an error that lists them', () => {
    const program = fromText<(x: Tensor) => unknown>('(x) => { if (x.gt(limit)) return helper(x); return x }', { limit: 1, helper: null })
    expect(messageOf(() => rewriteFunction(program))).toContain('uses limit, helper from outside, which its source does not tell: pass them as scope')
    expect(messageOf(() => rewriteFunction(program, { helper: null }))).toContain(
      'uses limit from outside, which its source does not tell: pass it as scope',
    )
    expect(rewriteFunction(program, { limit: 1, helper: null })).not.toBe(program)
  })

  it('what a source cannot do without its closure is refused', () => {
    const counts = fromText<() => unknown>('() => { count += 1; return !count }', { count: 0 })
    expect(() => rewriteFunction(counts, { count: 0 })).toThrow('assigns count outside of it')
    const Private = fromText<new () => { test(): boolean }>('class { #a = 1; test() { return !this.#a } }')
    expect(() => rewriteFunction(new Private().test)).toThrow('uses private names of its class')
    expect(() => rewriteFunction(Math.max)).toThrow('its source is hidden')
    const { [`a${1}`]: computed } = fromText<Record<string, () => boolean>>('{ ["a" + 1]() { return !1 } }')
    expect(() => rewriteFunction(computed as () => boolean)).toThrow('a method whose name is computed or private')
  })

  it('methods keep this and super, and parameters their names', () => {
    const [Base, Derived] = fromText<[new () => nn.Module, new () => nn.Module]>(
      '(() => { class Base extends nn.Module { forward(x) { return x.sin() } } class Derived extends Base { k = 2; forward(value, { flag = true } = {}) { return flag && super.forward(value).mul(this.k) } } return [Base, Derived] })()',
    )
    expect(new Base()).toBeInstanceOf(nn.Module)
    const gm = rewritten(new Derived(), { scope }, { flag: true })
    expect([...gm.graph.nodes].map((node) => node.name)).toContain('value')
    expect(targets(gm).slice(-2)).toEqual(['sin', 'mul'])
  })

  it('library modules, leaves and functions without conditions stay as they are', () => {
    const model = new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU())
    expect(targets(rewritten(model))).toEqual(['0', '1'])
    const plain = fromText<(x: Tensor) => Tensor>('(x) => x.neg()')
    expect(rewriteFunction(plain)).toBe(plain)
    expect(() => new RewritingTracer().trace(3 as unknown as Traceable)).toThrow("argument 'root' must be a function or a Module")
    expect(new RewritingTracer()).toBeInstanceOf(Tracer)
  })

  it('a module is as before when its trace has failed', () => {
    const model = moduleOf('forward(x) { if (x.gt(0)) return x; return x.neg() }')
    expect(() => rewritten(model)).toThrow(CONTROL_FLOW)
    expect(Object.getOwnPropertyNames(model)).not.toContain('forward')
  })
})
