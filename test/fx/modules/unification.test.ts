// Terms with variables: unify, reify, and functions chosen by patterns; PyTorch's torch.fx.experimental.unification.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Slice, tuple } from 'tensorfx/fx'
import {
  Substitution,
  Var,
  isvar,
  match as matching,
  reify,
  reifyObject,
  unifiable,
  unificationTools as ut,
  unify,
  unifyObject,
  utils,
  variable,
  variables,
  vars,
} from 'tensorfx/fx/experimental/unification'
import { pyRepr } from '../../../src/fx/text/format.ts'
import { describeGolden, messageOf, resultOf } from './golden.ts'

const [x, y, z] = [Var('x'), Var('y'), Var('z')]
const text = (value: unknown): string => (value === false ? 'False' : String(value))
const substitution = (...entries: readonly (readonly [unknown, unknown])[]): Substitution => new Substitution(entries)

/** PyTorch's answers, with False where it has no rule for two different constants. */
const repaired = (results: readonly unknown[]): unknown[] => results.map((result) => (typeof result === 'object' ? 'False' : result))

class Pair {
  readonly a: unknown
  readonly b: unknown

  constructor(a: unknown, b: unknown) {
    this.a = a
    this.b = b
  }
}

describeGolden('unification', {
  var_printing_and_equality: (golden) => {
    expect([
      String(x),
      String(Var(3)),
      Var('x') === Var('x'),
      Object.is(x, y),
      Object.is(x, 'x'),
      String(variable()('q')),
      isvar(x),
      isvar('x'),
      isvar([1]),
      Var() === Var(),
    ]).toEqual(golden.result)
  },
  'unify_basics (difference: unify-constants)': (golden) => {
    const cases = [
      [1, 1],
      [1, 2],
      [x, 1],
      [1, x],
      [x, y],
      [x, x],
      [
        [1, x],
        [1, 2],
      ],
      [
        [x, x],
        [1, 2],
      ],
      [
        [x, y],
        [y, 3],
      ],
      [
        [1, 2],
        [1, 2, 3],
      ],
      [
        [x, 2],
        [1, y],
      ],
      [
        [1, [x, 3]],
        [1, [2, y]],
      ],
    ] as const
    expect(cases.map(([u, v]) => text(unify(u, v)))).toEqual(repaired(resultOf(golden)))
  },
  'unify_with_substitution (difference: unify-constants)': (golden) => {
    const found = [
      unify(x, 1),
      unify(x, 2, substitution([x, 1])),
      unify(x, 1, substitution([x, 1])),
      unify([x, y], [y, z], substitution([z, 5])),
      unify(x, y, substitution([x, y])),
      unify([x, 2], [1, x]),
    ]
    expect(found.map(text)).toEqual(repaired(resultOf(golden)))
  },
  'unify_unsupported (difference: unify-constants)': (golden) => {
    const found = [unify({ a: x }, { a: 1 }), unify('ab', 'cd'), unify(1, 'a'), unify(tuple(1, 2), [1, 2]), unify(tuple(1), 1)]
    expect(found.map(text)).toEqual(repaired(resultOf(golden)).with(0, '{~x: 1}'))
  },
  reify_cases: (golden) => {
    const s = substitution([x, 2], [y, z], [z, 'v'])
    const terms = [
      x,
      y,
      tuple(1, x, tuple(3, y)),
      [x, [y]],
      new Map<unknown, unknown>([
        [1, x],
        [3, tuple(y, 5)],
      ]),
      7,
      Var('u'),
      new Slice<unknown>(x, y, 1),
    ]
    const shown = terms.map((term) => {
      const value = reify(term, s)
      return typeof value === 'string' ? value : value instanceof Map ? String(new Substitution(value)) : pyRepr(value)
    })
    expect(shown).toEqual(golden.result)
  },
  'slices (difference: unify-constants)': (golden) => {
    const found = [
      unify(new Slice<unknown>(1, x, 2), new Slice<unknown>(1, 10, y)),
      unify(new Slice(0, 1), new Slice(0, 2)),
      unify(new Slice<unknown>(0, 1), new Slice<unknown>(0, x)),
    ]
    expect(found.map(text)).toEqual(repaired(resultOf(golden)))
  },
  variables_scope: (golden) => {
    const before = isvar('a')
    const inside = variables(['a', 5], () => [isvar('a'), isvar(5), text(unify('a', 1)), text(unify([5, 'a'], [1, 2]))])
    expect([before, inside, isvar('a')]).toEqual(golden.result)
    expect(() =>
      variables(['b'], () => {
        throw new RangeError('no')
      }),
    ).toThrow(RangeError)
    expect(isvar('b')).toBe(false)
  },
  'match_dispatcher (difference: unify-constants)': (golden) => {
    const e = new matching.Dispatcher('e')
    e.register(x)((a: unknown) => ['any', a])
    e.register(y, z)((a: unknown, b: unknown) => ['two', a, b])
    e.register([Var('p'), Var('q')], 1)((a: unknown) => ['pair and 1', a])
    const [any, pair, , none, count] = resultOf<readonly unknown[]>(golden)
    expect([e.call(4), e.call([1, 2], 1), e.call(7, 8)]).toEqual([any, pair, ['two', 7, 8]])
    expect(messageOf(() => e.call(1, 2, 3)).split('[')[0]).toBe(none)
    expect(e.ordering).toHaveLength(Number(count))
  },
  'match_of_different_constants_fails_while_registering (difference: unify-constants)': (golden) => {
    const d = new matching.Dispatcher('d')
    d.add([0], () => 'zero')
    d.add([1], () => 'one')
    expect([d.call(0), d.call(1)]).toEqual([resultOf<readonly unknown[]>(golden)[1], 'one'])
    expect(messageOf(() => d.call(5))).toBe('No match found. \nKnown matches: [(0,), (1,)]\nInput: (5,)')
  },
  'var_dispatcher (difference: unify-constants)': (golden) => {
    const d = new matching.VarDispatcher('d')
    d.register('inc', x)((given: { x: number }) => given.x + 1)
    d.add(['double', x], (given: { x: number }) => given.x * 2)
    expect([d.call('inc', 10), d.call('double', 10)]).toEqual([resultOf<readonly unknown[]>(golden)[0], 20])
    expect(messageOf(() => d.call('halve', 10))).toContain('No match found')
  },
  match_decorator_namespace: (golden) => {
    const options = { namespace: {}, name: 'f' }
    const f = matching.match(x, options)((a: unknown) => ['one', a])
    matching.match(x, y, options)((a: unknown, b: unknown) => ['two', a, b])
    const [one, two, names, none] = resultOf<readonly unknown[]>(golden)
    expect([f.call(1), f.call(1, 2), Object.keys(options.namespace)]).toEqual([one, two, names])
    expect(messageOf(() => f.call()).split('[')[0]).toBe(none)
  },
  'tools_dicts (difference: unify-constants)': (golden) => {
    const sum = (values: unknown): number => (values as number[]).reduce((a, b) => a + b)
    const even = (v: unknown): boolean => Number(v) % 2 === 0
    const { 'bad keyword': _, ...wanted } = resultOf<Record<string, unknown>>(golden)
    expect({
      merge: ut.merge({ 1: 'one' }, { 2: 'two' }, { 1: 'uno' }),
      'merge of list': ut.merge([{ 1: 2 }, { 3: 4 }]),
      merge_with: ut.mergeWith(sum, { 1: 1, 2: 2 }, { 1: 10, 2: 20 }),
      valmap: ut.valmap(sum, { a: [1, 2], b: [3] }),
      keymap: ut.keymap((key) => String(key).toLowerCase(), { A: 1 }),
      itemmap: ut.itemmap(([key, value]) => [value, key], { a: 10 }),
      valfilter: ut.valfilter(even, { 1: 2, 2: 3, 3: 4 }),
      keyfilter: ut.keyfilter(even, { 1: 2, 2: 3, 4: 4 }),
      itemfilter: ut.itemfilter(([key, value]) => even(key) && Number(value) < 4, { 1: 2, 2: 3, 4: 5 }),
    }).toEqual(wanted)
    expect(messageOf(() => ut.merge('foo' as never))).toBe("unificationTools: expected plain objects or Maps, got 'foo'.")
  },
  tools_nested: (golden) => {
    const p = { name: 'A', order: { items: ['x'], costs: [1, 2] } }
    const wanted = resultOf<Record<string, unknown[]>>(golden)
    const failure = wanted['get_in']?.pop()
    expect({
      assoc: ut.assoc({ x: 1 }, 'y', 2),
      dissoc: [ut.dissoc({ x: 1, y: 2 }, 'y'), ut.dissoc({ x: 1, y: 2 }, 'y', 'x'), ut.dissoc({ x: 1 }, 'q')],
      assoc_in: ut.assocIn(p, ['order', 'costs'], [5]),
      update_in: ut.updateIn({ a: 0 }, ['a'], (v) => Number(v) + 1),
      'update_in default': ut.updateIn({}, [1, 2, 3], String, 'bar'),
      get_in: [ut.getIn(['order', 'costs', 0], p), ut.getIn(['order', 'zzz'], p), ut.getIn(['order', 'zzz'], p, 'dflt')],
      'original kept': p,
    }).toEqual(wanted)
    expect(messageOf(() => ut.getIn(['y'], {}, null, { noDefault: true }))).toContain(
      resultOf<{ error: string }>({ ...golden, result: failure }).error,
    )
  },
  'tools_groupby_and_utils (difference: unify-constants)': (golden) => {
    const wanted = resultOf<Record<string, unknown>>(golden)
    const people = [
      { g: 'F', n: 1 },
      { g: 'M', n: 2 },
      { g: 'F', n: 3 },
    ]
    expect({
      groupby: Object.fromEntries(ut.groupby((word: string) => word.length, ['Al', 'Bob', 'Cy'])),
      'groupby key': Object.fromEntries(ut.groupby('g', people)),
      first: ut.first('ABC'),
      'getter list': ut.getter([0, 2])('abc'),
      'getter one': ut.getter(1)('abc'),
      transitive_get: [
        utils.transitiveGet(
          1,
          new Map([
            [1, 2],
            [2, 3],
            [3, 4],
          ]),
        ),
        utils.transitiveGet([1], new Map()),
      ],
      // A frozen dictionary is a tuple of its entries.
      freeze: [pyRepr(utils.freeze([1, [2]])), pyRepr(utils.freeze(new Map([[1, 2]]))).replace('((1, 2),)', 'frozenset({(1, 2)})')],
      reverse_dict: Object.fromEntries(
        utils.reverseDict(
          new Map([
            ['a', [1, 2]],
            ['b', [2, 3]],
          ]),
        ),
      ),
      toposort: utils.toposort(
        new Map([
          [1, [2, 3]],
          [2, [3]],
        ]),
      ),
      cycle: wanted['cycle'],
      hashable: [utils.hashable(1), utils.hashable([1])],
      raises: [utils.raises(RangeError, () => new Array(-1)), utils.raises(RangeError, () => 1)],
    }).toEqual(wanted)
    expect(
      messageOf(() =>
        utils.toposort(
          new Map([
            [1, [2]],
            [2, [1]],
          ]),
        ),
      ),
    ).toBe('toposort: Input has cycles.')
  },
})

describe('unify', () => {
  it('refuses a variable that would contain itself (difference: occurs-check)', () => {
    expect(unify(x, [x, 1])).toBe(false)
    expect(unify([x, y], [[y], [x]])).toBe(false)
    expect(unify({ a: x }, { a: { b: [x] } })).toBe(false)
    expect(text(unify([x, x], [y, y]))).toBe('{~x: ~y}')
  })

  it('refuses to build an infinite value from a substitution that somebody else made', () => {
    expect(() => reify(x, substitution([x, [x, 1]]))).toThrow('makes a term a part of itself')
    expect(() => reify([x], substitution([x, y], [y, x]))).toThrow('goes in a circle')
  })

  it('unifies objects by their properties, in any order, and Maps by their keys', () => {
    expect(text(unify({ a: 1, b: x }, { b: 2, a: y }))).toBe('{~y: 1, ~x: 2}')
    expect(unify({ a: 1 }, { b: 1 })).toBe(false)
    expect(unify({ a: 1 }, { a: 1, b: 2 })).toBe(false)
    expect(text(unify(new Map([['k', x]]), new Map([['k', 3]])))).toBe('{~x: 3}')
    expect(unify(new Map([['k', 1]]), { k: 1 })).toBe(false)
  })

  it('unifies iterators, which are read once', () => {
    const values = [1, x].values()
    expect(text(unify(values, [y, 2]))).toBe('{~y: 1, ~x: 2}')
    expect(text(unify(values, [1, 2]))).toBe('{~x: 2}')
  })

  it('unifies objects of registered classes, and of no others', () => {
    class Other {
      readonly a: unknown = 1
    }
    expect(unify(new Pair(1, x), new Pair(1, 2))).toBe(false)
    expect(unifiable(Pair)).toBe(Pair)
    expect(text(unify(new Pair(1, x), new Pair(y, 2)))).toBe('{~y: 1, ~x: 2}')
    expect(reify(new Pair(1, [x]), substitution([x, 2]))).toEqual(new Pair(1, [2]))
    expect(unify(new Pair(1, 2), new Other())).toBe(false)
    expect(messageOf(() => unifiable(3 as never))).toBe('unifiable: expected a class, got 3.')
  })

  it('unifies two objects of one class without registration, and keeps an object in which nothing changes', () => {
    class Edge {
      from: unknown
      constructor(from: unknown) {
        this.from = from
      }
    }
    expect(text(unifyObject(new Edge(x), new Edge(2)))).toBe('{~x: 2}')
    expect(unifyObject(new Edge(x), {})).toBe(false)
    const edge = new Edge(x)
    expect(reifyObject(edge, new Map())).toBe(edge)
    expect(reifyObject(edge, substitution([x, 1]))).toEqual(new Edge(1))
  })

  it('does not change what it was given', () => {
    const given = substitution([y, 1])
    const term = Object.freeze([x, y])
    expect(text(unify(term, [2, 1], given))).toBe('{~y: 1, ~x: 2}')
    expect(text(given)).toBe('{~y: 1}')
    expect(reify(term, new Map())).toBe(term)
  })

  it('treats NaN as equal to itself', () => {
    expect(text(unify([Number.NaN], [Number.NaN]))).toBe('{}')
  })

  it('makes variables that no call has given before', () => {
    const made = vars(3)
    expect(new Set([...made, Var()]).size).toBe(4)
  })
})

/** Terms of variables, numbers and arrays. */
const term: fc.Arbitrary<unknown> = fc.letrec<{ term: unknown }>((tie) => ({
  term: fc.oneof({ maxDepth: 4 }, fc.constantFrom(x, y, z), fc.integer({ min: 0, max: 2 }), fc.array(tie('term'), { maxLength: 3 })),
})).term

describe('random terms', () => {
  it('are equal after reification if they unify, and unify with themselves', () => {
    fc.assert(
      fc.property(term, term, (a, b) => {
        expect(text(unify(a, a))).toBe('{}')
        const found = unify(a, b)
        expect(unify(b, a) === false).toBe(found === false)
        if (found !== false) expect(reify(a, found)).toEqual(reify(b, found))
      }),
    )
  })

  it('that have no solution have none for values either', () => {
    const value = fc.oneof(fc.integer({ min: 0, max: 2 }), fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 2 }))
    fc.assert(
      fc.property(term, term, value, value, value, (a, b, vx, vy, vz) => {
        const values = substitution([x, vx], [y, vy], [z, vz])
        const equal = JSON.stringify(reify(a, values)) === JSON.stringify(reify(b, values))
        if (equal) expect(unify(a, b)).not.toBe(false)
      }),
    )
  })
})

describe('large terms', () => {
  it('need no deep stack, and time in proportion to their size', () => {
    const nest = (leaf: unknown): unknown => {
      let at = leaf
      for (let i = 0; i < 50_000; i++) at = [at]
      return at
    }
    expect(text(unify(nest(x), nest(1)))).toBe('{~x: 1}')
    expect(unify(nest(1), nest(2))).toBe(false)
    let depth = 0
    for (let at = reify(nest(x), substitution([x, 1])); Array.isArray(at); at = at[0]) depth++
    expect(depth).toBe(50_000)
    const many = Array.from({ length: 10_000 }, (_, i) => Var(`v${i}`))
    const found = unify(many, [...many.slice(1), 7])
    expect(found === false ? null : reify(many[0], found)).toBe(7)
  })
})
