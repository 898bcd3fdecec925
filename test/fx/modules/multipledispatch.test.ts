// Functions chosen by the classes of their arguments; PyTorch's torch.fx.experimental.unification.multipledispatch.
import { describe, expect, it, vi } from 'vitest'
import { tuple } from 'tensorfx/fx'
import { multipledispatch as md } from 'tensorfx/fx/experimental/unification'
import { describeGolden, messageOf, resultOf } from './golden.ts'

class A {
  readonly isA = true
}
class B extends A {
  readonly isB = true
}
class C extends B {
  readonly isC = true
}

/** The classes of a golden's message in JavaScript's names. */
const renamed = (text: string): string =>
  text
    .replaceAll(/\bint\b/g, 'Number')
    .replaceAll(/\bstr\b/g, 'String')
    .replaceAll(/\bfloat\b/g, 'Boolean')
    .replaceAll(/\bobject\b/g, 'Object')

const errorOf = (result: unknown): string => renamed(resultOf<{ error: string }>({ name: '', python: '', result }).error)

/** What a call prints or warns. */
function printed(method: 'log' | 'warn', run: () => unknown): string[] {
  const lines: string[] = []
  const spy = vi.spyOn(console, method).mockImplementation((line: unknown) => void lines.push(String(line)))
  run()
  spy.mockRestore()
  return lines
}

describeGolden('multipledispatch', {
  by_type_and_subclass: (golden) => {
    const options = { namespace: {}, name: 'f' }
    const f = md.dispatch(Number, options)((a: number) => a + 1)
    md.dispatch(Object, options)((a: unknown) => ['obj', a])
    md.dispatch(Boolean, options)((a: unknown) => ['bool', a])
    expect([f.call(3), f.call(true), f.call('s'), String(f)]).toEqual(golden.result)
  },
  two_arguments_most_specific_wins: (golden) => {
    const d = new md.Dispatcher('g')
    for (const [one, other] of [
      [A, A],
      [B, A],
      [B, B],
    ] as const)
      d.add([one, other], () => `${one.name}${other.name}`)
    const order = d.ordering.map(md.strSignature)
    expect([
      d.call(new A(), new A()),
      d.call(new B(), new A()),
      d.call(new C(), new A()),
      d.call(new C(), new C()),
      d.call(new A(), new C()),
      order,
    ]).toEqual(golden.result)
  },
  'nothing_matches (difference: dispatch-classes)': (golden) => {
    const d = new md.Dispatcher('h')
    d.add([Number, String], () => 1)
    const [both, one, known] = resultOf<readonly unknown[]>(golden)
    expect(messageOf(() => d.call('a', 2))).toBe(errorOf(both))
    expect(messageOf(() => d.call(1))).toBe(errorOf(one))
    expect([d.dispatch(Number, String) !== null, d.dispatch(Boolean, String)]).toEqual([known, null])
  },
  'not_a_type (difference: dispatch-classes)': (golden) => {
    const d = new md.Dispatcher('n')
    const [notType, last, one] = resultOf<readonly unknown[]>(golden)
    // @ts-expect-error a number is no class
    expect(messageOf(() => d.add([1, Number], () => 0))).toBe(errorOf(notType))
    expect(messageOf(() => d.add([[Number], String], () => 0))).toBe(errorOf(last))
    expect(messageOf(() => d.add([[Number, String]], () => 0))).toBe(errorOf(one).replace('[(Number', '[fx.tuple(Number'))
  },
  'falls_through_on_md_not_implemented (difference: dispatch-classes)': (golden) => {
    const d = new md.Dispatcher('md')
    d.register(Number)((a: number) => {
      if (a > 10) throw new md.MDNotImplementedError()
      return 'int'
    })
    d.register(Object)(() => 'object')
    const e = new md.Dispatcher('md2')
    e.register(Number)(() => {
      throw new md.MDNotImplementedError()
    })
    const [small, large, none] = resultOf<readonly unknown[]>(golden)
    expect([d.call(1), d.call(11)]).toEqual([small, large])
    expect(messageOf(() => e.call(1))).toBe(errorOf(none))
  },
  'ambiguity_warning (difference: dispatch-classes)': (golden) => {
    const d = new md.Dispatcher('amb')
    d.add([A, Object], () => 1)
    d.add([Object, A], () => 2)
    const { result, warnings } = resultOf<{ result: string[]; warnings: string[] }>(golden)
    const lines = printed('warn', () => expect(d.ordering.map(md.strSignature).toSorted()).toEqual(result.map(renamed)))
    expect(lines).toEqual(warnings.map((text) => renamed(text).replace('@dispatch(A, A)\ndef amb(...)', 'amb.add([A, A], …)')))
    // The order is kept, and nothing is said again.
    expect(printed('warn', () => d.ordering)).toEqual([])
  },
  conflict_functions: (golden) => {
    const { supercedes, consistent, ambiguous, ambiguities } = md
    expect({
      supercedes: [supercedes([B], [A]), supercedes([A], [B]), supercedes([Number, A], [Object, Object]), supercedes([A, B], [B, A])],
      consistent: [consistent([A, B], [B, A]), consistent([Number], [String]), consistent([], []), consistent([A], [A, A])],
      ambiguous: [ambiguous([A, B], [B, A]), ambiguous([A, A], [B, B])],
      super_signature: md
        .superSignature([
          [A, B],
          [B, A],
        ])
        .map((type) => type.name),
      ambiguities: ambiguities([
        [A, B],
        [B, A],
      ]).length,
      'broken by': ambiguities([
        [A, B],
        [B, A],
        [B, B],
      ]).length,
    }).toEqual(golden.result)
  },
  variadic_must_be_last: (golden) => {
    const d = new md.Dispatcher('vl')
    expect(messageOf(() => d.add([[Number], String], () => 0))).toBe(resultOf<{ error: string }>(golden).error)
  },
  'methods (difference: dispatch-classes)': (golden) => {
    const m = new md.Dispatcher('m')
    m.register(Number)(function (this: K, a: number) {
      return [this.kind, a]
    })
    m.register(String)((a: string) => ['str', a])
    class K {
      readonly kind = 'int'
      readonly m = m.asMethod()
    }
    const [number, text, none] = resultOf<readonly unknown[]>(golden)
    expect([new K().m(1), new K().m('a')]).toEqual([number, text])
    expect(messageOf(() => new K().m(true))).toBe(errorOf(none))
  },
  'toposort_and_helpers (difference: dispatch-classes)': (golden) => {
    const wanted = resultOf<Record<string, unknown>>(golden)
    expect(
      md.toposort(
        new Map([
          [1, [2, 3]],
          [2, [3]],
        ]),
      ),
    ).toEqual(wanted['toposort'])
    expect(
      messageOf(() =>
        md.toposort(
          new Map([
            [1, [2]],
            [2, [1]],
          ]),
        ),
      ),
    ).toContain('Input has cycles')
    expect([md.typename(Number), md.typename([Number, Boolean]), md.typename([Number])]).toEqual(
      resultOf<string[]>({ ...golden, result: wanted['typename'] }).map(renamed),
    )
    expect(Object.fromEntries(md.groupby((word: string) => word.length, ['a', 'bb', 'c']))).toEqual(wanted['groupby'])
    const some = [md.Variadic(Number)]
    expect([[Number, Number], [Number, String], []].map((types) => md.variadicSignatureMatches(types, some))).toEqual(wanted['variadic match'])
  },
  'documentation_text (difference: dispatch-classes)': (golden) => {
    const d = new md.Dispatcher('doc', 'General doc.')
    d.register(Number)((a: number) => a, 'On ints.')
    d.register(String)((a: string) => a)
    const [text, help, , resolved] = resultOf<[string, { printed: string }, unknown, { warnings: string[] }]>(golden)
    expect(d.documentation).toBe(renamed(text).replace('--------------', '-'.repeat('Inputs: <Number>'.length + 1)))
    expect(printed('log', () => d.help(1))).toEqual([help.printed.trim()])
    expect(messageOf(() => d.source(true))).toContain('No function found')
    expect(printed('log', () => d.source('a'))).toEqual(['(a) => a'])
    expect(printed('warn', () => expect(d.resolve([Number])).not.toBeNull())).toEqual(resolved.warnings)
  },
})

describe('a dispatcher', () => {
  it('takes any number of arguments of one type, or of a union', () => {
    const d = new md.Dispatcher('sum')
    d.add([String, [tuple(Number, Boolean)]], (...values: unknown[]) => values.length)
    d.add([String], () => 'alone')
    expect([d.call('a'), d.call('a', 1), d.call('a', 1, true, 2)]).toEqual(['alone', 2, 4])
    expect(messageOf(() => d.call('a', 'b'))).toBe('Could not find signature for sum: <String, String>')
    expect(messageOf(() => d.call(1))).toBe('Could not find signature for sum: <Number>')
  })

  it('expands unions, the first varying fastest', () => {
    expect(md.expandTuples([tuple(1, 2), 3, tuple(4, 5)])).toEqual([
      [1, 3, 4],
      [2, 3, 4],
      [1, 3, 5],
      [2, 3, 5],
    ])
    const d = new md.Dispatcher('either')
    d.add([tuple(Number, String), Array], () => 'yes')
    expect([d.call(1, []), d.call('a', [])]).toEqual(['yes', 'yes'])
  })

  it('takes a new implementation at once, after calls too', () => {
    const d = new md.Dispatcher('later')
    d.add([Object], () => 'object')
    expect(d.call(1)).toBe('object')
    d.add([Number], () => 'number')
    expect(d.call(1)).toBe('number')
    d.add([Number], () => 'another')
    expect([d.call(1), d.ordering.length]).toEqual(['another', 2])
  })

  it('knows null, functions and objects without a prototype', () => {
    expect([null, undefined, () => 0, Object.create(null), [], 1n, Symbol('s')].map((value) => md.typeOf(value).name)).toEqual([
      'NoneType',
      'NoneType',
      'Function',
      'Object',
      'Array',
      'BigInt',
      'Symbol',
    ])
  })

  it('has the name of the function, or of the option', () => {
    const namespace = {}
    const methods = { named: (a: number) => a }
    md.dispatch(Number, { namespace })(methods.named)
    expect(Object.keys(namespace)).toEqual(['named'])
    expect(
      messageOf(() =>
        md.dispatch(Number, { namespace })(
          (
            (): ((a: number) => number) => (a) =>
              a
          )(),
        ),
      ),
    ).toContain("give one: dispatch(Number, { name: 'f' })")
  })

  it('can be called like a function, and lets errors of implementations through', () => {
    const d = new md.Dispatcher('boom')
    d.add([Number], () => {
      throw new RangeError('no')
    })
    expect(() => d.call(1)).toThrow(RangeError)
    expect(() => Reflect.apply(d.call, d, [1])).toThrow('no')
  })
})
