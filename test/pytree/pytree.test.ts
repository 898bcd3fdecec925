// Nested values: flattening, rebuilding, comparing and printing structures.
import { afterEach, describe, expect, test } from 'vitest'
import { ArgumentError } from 'tensorfx'
import {
  countLeaves,
  registerPytreeNode,
  treeEqual,
  treeFlatten,
  treeFlattenSpec,
  treeLeaves,
  treeMap,
  treeSpecToString,
  treeStructure,
  treeUnflatten,
} from 'tensorfx/pytree'

class Pair {
  readonly left: unknown
  readonly right: unknown
  readonly label: string
  constructor(left: unknown, right: unknown, label = 'pair') {
    this.left = left
    this.right = right
    this.label = label
  }
}
class SubPair extends Pair {}
const how = {
  flatten: ({ left, right, label }: Pair) => ({ children: [left, right], context: { label } }),
  unflatten: ([left, right]: readonly unknown[], { label }: { label: string }) => new Pair(left, right, label),
  sameContext: (a: { label: string }, b: { label: string }) => a.label === b.label,
}

let unregister: (() => void) | null = null
const register = (): void => {
  unregister = registerPytreeNode(Pair, how)
}
afterEach(() => {
  unregister?.()
  unregister = null
})

const nested = (): unknown => [
  1,
  { a: null, b: [undefined, 'x'] },
  new Map<unknown, unknown>([
    ['k', 2],
    [3, []],
  ]),
  {},
]

describe('treeFlatten', () => {
  test('the leaves are in order, and everything but arrays, plain objects and Maps is one', () => {
    const [date, fn] = [new Date(0), (): number => 1]
    expect(treeFlatten(nested()).leaves).toEqual([1, null, undefined, 'x', 2])
    expect(treeLeaves([date, [fn, new Set([1])]])).toEqual([date, fn, new Set([1])])
    expect(treeLeaves(null)).toEqual([null])
    expect(treeLeaves(5)).toEqual([5])
    expect(treeLeaves([])).toEqual([])
  })

  test('the structure names kinds and keys', () => {
    expect(treeStructure([1, { a: 2 }, new Map([['k', 3]])])).toEqual({
      kind: 'array',
      children: [
        { kind: 'leaf' },
        { kind: 'object', keys: ['a'], children: [{ kind: 'leaf' }] },
        { kind: 'map', keys: ['k'], children: [{ kind: 'leaf' }] },
      ],
    })
    expect(treeStructure(1)).toEqual({ kind: 'leaf' })
  })

  test('countLeaves counts the leaves of the whole structure', () => {
    expect([1, [], [1, 2], nested(), { a: [1, { b: 2 }], c: 3 }].map((value) => countLeaves(treeStructure(value)))).toEqual([1, 0, 2, 5, 3])
  })
})

describe('treeUnflatten', () => {
  test('rebuilds what was flattened', () => {
    for (const value of [nested(), 1, [], {}, new Map(), [[[]]]]) {
      const { leaves, spec } = treeFlatten(value)
      expect(treeUnflatten(leaves, spec)).toEqual(value)
    }
    const { spec } = treeFlatten(nested())
    expect(treeUnflatten(['a', 'b', 'c', 'd', 'e'], spec)).toEqual([
      'a',
      { a: 'b', b: ['c', 'd'] },
      new Map<unknown, unknown>([
        ['k', 'e'],
        [3, []],
      ]),
      {},
    ])
  })

  test('wants one value for each leaf', () => {
    const spec = treeStructure([1, { a: 2 }])
    const message = (count: number): string =>
      `treeUnflatten: got ${count} values for a structure of 2 leaves, [*, { a: * }]; pass one value per leaf.`
    expect(() => treeUnflatten([1], spec)).toThrow(new ArgumentError(message(1)))
    expect(() => treeUnflatten([1, 2, 3], spec)).toThrow(new ArgumentError(message(3)))
  })
})

test('treeMap gives each leaf alone to the function, and keeps the structure', () => {
  const calls: unknown[][] = []
  const result = treeMap([1, { a: 2 }], (...args: readonly unknown[]) => {
    calls.push([...args])
    return String(args[0])
  })
  expect(result).toEqual(['1', { a: '2' }])
  expect(calls).toEqual([[1], [2]])
})

describe('treeFlattenSpec', () => {
  const specOf = (value: unknown): ReturnType<typeof treeStructure> => treeStructure(value)

  test('what is below a leaf of the structure stays whole', () => {
    expect(treeFlattenSpec([[1, 2], { a: { b: 3 } }], specOf([0, { a: 0 }]))).toEqual([[1, 2], { b: 3 }])
    expect(treeFlattenSpec(null, specOf(0))).toEqual([null])
  })

  test('objects and Maps may have their keys in another order; the order of the structure counts', () => {
    expect(treeFlattenSpec({ b: 2, a: 1 }, specOf({ a: 0, b: 0 }))).toEqual([1, 2])
    const reordered = new Map([
      ['b', 2],
      ['a', 1],
    ])
    const spec = specOf(
      new Map([
        ['a', 0],
        ['b', 0],
      ]),
    )
    expect(treeFlattenSpec(reordered, spec)).toEqual([1, 2])
  })

  test('a value of another structure is refused', () => {
    const pairs: readonly (readonly [value: unknown, spec: unknown])[] = [
      [1, [0]],
      [null, [0]],
      [[1, 2], [0]],
      [[1], [0, 0]],
      [{ 0: 1 }, [0]],
      [[1], { 0: 0 }],
      [{ a: 1, b: 2 }, { a: 0 }],
      [{ a: 1 }, { a: 0, b: 0 }],
      [{ b: 1 }, { a: 0 }],
      [new Map([['a', 1]]), { a: 0 }],
      [{ a: 1 }, new Map([['a', 0]])],
      [new Map([['b', 1]]), new Map([['a', 0]])],
      [
        new Map([['a', 1]]),
        new Map([
          ['a', 0],
          ['b', 0],
        ]),
      ],
      [
        new Map([
          ['a', 1],
          ['b', 2],
        ]),
        new Map([['a', 0]]),
      ],
      [[[1]], [[0, 0]]],
      [Object.create({ a: 1 }), { a: 0 }],
    ]
    for (const [value, structure] of pairs) expect(() => treeFlattenSpec(value, specOf(structure))).toThrow(ArgumentError)
    expect(() => treeFlattenSpec([1, { b: 1 }], specOf([0, { a: 0 }]))).toThrow(
      new ArgumentError('treeFlattenSpec: Cannot flatten pytree [*, { b: * }], given spec: [*, { a: * }]; pass a value of that structure.'),
    )
  })

  test('the caller can take values apart that nobody else can', () => {
    const box = { isBox: true, held: [7, 8] }
    const spec = specOf([0, [0, 0]])
    expect(treeFlattenSpec([1, box], spec, (value) => (value === box ? box.held : null))).toEqual([1, 7, 8])
  })
})

describe('treeEqual', () => {
  test('structures are equal if kinds, keys and children are', () => {
    for (const value of [1, [], [1, [2]], { a: 1, b: [] }, new Map([[{}, 1]])]) {
      expect(treeEqual(treeStructure(value), treeStructure(value))).toBe(true)
    }
    expect(treeEqual(treeStructure([1, { a: 2 }]), treeStructure(['x', { a: null }]))).toBe(true)
    expect(treeEqual(treeStructure(new Map([[NaN, 1]])), treeStructure(new Map([[NaN, 2]])))).toBe(true)
  })

  test('each difference makes them unequal', () => {
    const pairs: readonly (readonly [unknown, unknown])[] = [
      [1, []],
      [[], 1],
      [[], {}],
      [{}, new Map()],
      [[1], [1, 2]],
      [[1, 2], [1]],
      [
        [1, [2]],
        [1, 2],
      ],
      [
        [1, [2]],
        [[1], [2]],
      ],
      [{ a: 1 }, { b: 1 }],
      [
        { a: 1, b: 2 },
        { b: 1, a: 2 },
      ],
      [new Map([[{}, 1]]), new Map([[{}, 1]])],
    ]
    for (const [a, b] of pairs) expect(treeEqual(treeStructure(a), treeStructure(b))).toBe(false)
  })
})

test('a structure prints with leaves as stars', () => {
  const text = (value: unknown): string => treeSpecToString(treeStructure(value))
  expect(
    [
      1,
      [],
      [1, [2]],
      {},
      { a: 1, b: [2] },
      { 'a b': 1, '': 2, $_1: 3 },
      new Map(),
      new Map<unknown, unknown>([
        ['k', 1],
        [2, {}],
      ]),
    ].map(text),
  ).toEqual(['*', '[]', '[*, [*]]', '{}', '{ a: *, b: [*] }', '{ "a b": *, "": *, $_1: * }', 'Map {}', 'Map { k => *, 2 => {} }'])
})

describe('registerPytreeNode', () => {
  test('instances of the class are nested values until the registration is undone', () => {
    const value = [new Pair(1, [2]), 3]
    expect(treeLeaves(value)).toEqual([value[0], 3])
    register()
    const { leaves, spec } = treeFlatten(value)
    expect(leaves).toEqual([1, 2, 3])
    expect(treeSpecToString(spec)).toBe('[Pair(*, [*]), *]')
    expect(treeUnflatten(['a', 'b', 'c'], spec)).toEqual([new Pair('a', ['b']), 'c'])
    expect(treeLeaves(new SubPair(1, 2))).toEqual([new SubPair(1, 2)])
    unregister?.()
    expect(treeLeaves(value)).toEqual([value[0], 3])
  })

  test('a class can be registered once, and built-in nested values not at all', () => {
    register()
    expect(() => registerPytreeNode(Pair, how)).toThrow(new ArgumentError('registerPytreeNode: instances of Pair are already nested values.'))
    const anything = { flatten: () => ({ children: [], context: null }), unflatten: () => ({}) }
    expect(() => registerPytreeNode(Object, anything)).toThrow('registerPytreeNode: instances of Object are already nested values.')
    expect(() => registerPytreeNode(Array, { ...anything, unflatten: () => [] })).toThrow(ArgumentError)
    expect(() => registerPytreeNode(Map, { ...anything, unflatten: () => new Map() })).toThrow(ArgumentError)
    unregister?.()
    register()
    expect(treeLeaves(new Pair(1, 2))).toEqual([1, 2])
  })

  test('contexts are compared as the registration says', () => {
    register()
    const structure = (label: string): ReturnType<typeof treeStructure> => treeStructure(new Pair(1, 2, label))
    expect(treeEqual(structure('a'), structure('a'))).toBe(true)
    expect(treeEqual(structure('a'), structure('b'))).toBe(false)
    expect(treeFlattenSpec(new Pair(3, [4], 'a'), structure('a'))).toEqual([3, [4]])
    expect(() => treeFlattenSpec(new Pair(3, 4, 'b'), structure('a'))).toThrow(ArgumentError)
    expect(() => treeFlattenSpec([3, 4], structure('a'))).toThrow(ArgumentError)
    expect(() => treeFlattenSpec(new SubPair(3, 4, 'a'), structure('a'))).toThrow(ArgumentError)
  })

  test('without sameContext, contexts are equal if they are the same value', () => {
    class Tagged {
      readonly value: unknown
      readonly tag: unknown
      constructor(value: unknown, tag: unknown) {
        this.value = value
        this.tag = tag
      }
    }
    const undo = registerPytreeNode(Tagged, {
      flatten: ({ value, tag }) => ({ children: [value], context: tag }),
      unflatten: ([value], tag) => new Tagged(value, tag),
    })
    try {
      const structure = (tag: unknown): ReturnType<typeof treeStructure> => treeStructure(new Tagged(1, tag))
      expect(treeEqual(structure('t'), structure('t'))).toBe(true)
      expect(treeEqual(structure({}), structure({}))).toBe(false)
      expect(treeFlattenSpec(new Tagged(5, NaN), structure(NaN))).toEqual([5])
      expect(() => treeFlattenSpec(new Tagged(5, 'u'), structure('t'))).toThrow(ArgumentError)
      const other = registerPytreeNode(Pair, { flatten: (p) => ({ children: [p.left], context: 't' }), unflatten: ([left]) => new Pair(left, 0) })
      expect(treeEqual(treeStructure(new Pair(1, 2)), structure('t'))).toBe(false)
      other()
    } finally {
      undo()
    }
  })
})
