// The parts of a graph: order, names, effects, and the operators and containers that graphs name.
import { describe, expect, test } from 'vitest'
import { ArgumentError, operator, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphError, GraphModule, Node, TraceError, hasSideEffect, symbolicTrace } from 'tensorfx/fx'
import { Namespace } from '../../src/fx/graph/namespace.ts'
import { getattr } from '../../src/fx/graph/operator.ts'
import { giveKey } from '../../src/fx/graph/order.ts'
import { nodeEffects, refuseMutation } from '../../src/fx/graph/purity.ts'
import { isIdentifier, lookupTarget, targetInfo } from '../../src/protocol/index.ts'

const { tensor } = torch

describe('order keys', () => {
  interface Item {
    prev: Item | null
    next: Item | null
    sortKey: number
  }
  class List {
    first: Item | null = null
    last: Item | null = null
    insert(before: Item | null): Item {
      const prev = before === null ? this.last : before.prev
      const item: Item = { prev, next: before, sortKey: NaN }
      if (prev === null) this.first = item
      else prev.next = item
      if (before === null) this.last = item
      else before.prev = item
      giveKey(item)
      return item
    }
    keys(): readonly number[] {
      const keys: number[] = []
      for (let item = this.first; item !== null; item = item.next) keys.push(item.sortKey)
      return keys
    }
  }
  const ascend = (keys: readonly number[]): boolean => keys.every((key, i) => i === 0 || key > (keys[i - 1] ?? NaN))

  test('ascend, wherever nodes are inserted', () => {
    const [appended, prepended] = [new List(), new List()]
    for (let i = 0; i < 5; i++) {
      appended.insert(null)
      prepended.insert(prepended.first)
    }
    expect(appended.keys()).toEqual([0, 1024, 2048, 3072, 4096])
    expect(prepended.keys()).toEqual([-4096, -3072, -2048, -1024, 0])
    appended.insert(appended.last)
    expect(appended.keys()).toEqual([0, 1024, 2048, 3072, 3584, 4096])
  })

  test('stay apart when thousands of nodes come between two others', () => {
    for (const [before, after] of [
      [1, 1],
      [0, 1],
      [1000, 1000],
      [3, 1000],
      [1000, 3],
    ] as const) {
      for (const front of [true, false]) {
        const list = new List()
        let place: Item = list.insert(null)
        for (let i = 0; i < before; i++) place = list.insert(null)
        const anchor = list.insert(null)
        for (let i = 0; i < after; i++) list.insert(null)
        let at = anchor
        for (let i = 0; i < 3000; i++) {
          const made = list.insert(at)
          if (front) at = made
        }
        const keys = list.keys()
        expect(keys).toHaveLength(before + after + 3002)
        expect(ascend(keys)).toBe(true)
        expect(place.sortKey < anchor.sortKey).toBe(true)
      }
    }
  })

  test('only a few nodes get other keys', () => {
    const list = new List()
    for (let i = 0; i < 4000; i++) list.insert(null)
    const keys = list.keys()
    let at = list.first
    for (let i = 0; i < 2000; i++) at = at?.next ?? null
    for (let i = 0; i < 60; i++) at = list.insert(at)
    const kept = new Set(list.keys())
    expect(ascend(list.keys())).toBe(true)
    expect(keys.filter((key) => kept.has(key)).length).toBeGreaterThan(3800)
  })
})

describe('names', () => {
  const given = (...wishes: string[]): readonly string[] => {
    const names = new Namespace()
    return wishes.map((wish) => names.create(wish))
  }

  test('are made legal, as PyTorch does', () => {
    expect(given('a b', 'a-b.c', '1x', '', 'größe', '..')).toEqual(['a_b', 'a_b_c', '_1x', '_unnamed', 'gr_e', '_'])
    expect(given('x!', 'y$z')).toEqual(['x_', 'y_z'])
  })

  test('get numbers if they are taken or reserved', () => {
    expect(given('x', 'x', 'x_1', 'x', 'x_5', 'x')).toEqual(['x', 'x_1', 'x_2', 'x_3', 'x_5', 'x_6'])
    expect(given('sum', 'sum', 'class', 'torch', 'len', 'NaN', 'sum_1')).toEqual(['sum_1', 'sum_2', 'class_1', 'torch_1', 'len_1', 'NaN_1', 'sum_3'])
    expect(given('_1', '_1', 'a_', 'a_')).toEqual(['_1', '_1_1', 'a_', 'a__1'])
  })

  test('isIdentifier: ASCII names, which need no quotes', () => {
    expect(['a', '_', '$a1', 'class', 'aB_c'].map(isIdentifier)).toEqual([true, true, true, true, true])
    expect(['', '1a', 'a b', 'a-', 'ä', 'a\n', ' a'].map(isIdentifier)).toEqual([false, false, false, false, false, false, false])
  })
})

describe('effects', () => {
  const node = (make: (graph: Graph, x: Node) => Node): Node => {
    const graph = new Graph()
    return make(graph, graph.placeholder('x'))
  }
  const method = (name: string): string => nodeEffects(node((graph, x) => graph.callMethod(name, [x])))

  test('of methods: in place by their underscore, else as the operator', () => {
    expect(['add_', 'relu_', 'backward', 'add', '__call__', '__init__', '_', 'bernoulli', 'ownMethod', 'ownMethod_'].map(method)).toEqual([
      'mutates',
      'mutates',
      'mutates',
      'pure',
      'pure',
      'pure',
      'pure',
      'random',
      'pure',
      'mutates',
    ])
  })

  test('of functions: declared, or in place if the call asks for it by name or position', () => {
    const { relu, dropout } = torch.nn.functional
    const call = (fn: typeof relu | typeof dropout, args: readonly boolean[], kwargs: Record<string, boolean> = {}): string =>
      nodeEffects(node((graph, x) => graph.callFunction(fn, [x, ...args], kwargs)))
    expect([call(relu, []), call(relu, [true]), call(relu, [false]), call(relu, [], { inplace: true }), call(relu, [], { inplace: false })]).toEqual([
      'pure',
      'mutates',
      'pure',
      'mutates',
      'pure',
    ])
    expect(call(dropout, [])).toBe('random')
    const plain = (x: unknown): unknown => x
    expect(nodeEffects(node((graph, x) => graph.callFunction(plain, [x, true])))).toBe('pure')
    expect(hasSideEffect(plain)).toBe(plain)
    expect(nodeEffects(node((graph, x) => graph.callFunction(plain, [x])))).toBe('io')
    expect(() => hasSideEffect(null as never)).toThrow(new ArgumentError("hasSideEffect: argument 'fn' must be a function, got null."))
    expect(() => hasSideEffect('text' as never)).toThrow(new ArgumentError("hasSideEffect: argument 'fn' must be a function, got 'text'."))
  })

  test('inputs and outputs stay, attributes are pure, modules are asked', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    expect([nodeEffects(x), nodeEffects(graph.getAttr('weight')), nodeEffects(graph.output(x))]).toEqual(['io', 'pure', 'io'])
    const call = node((own, input) => own.callModule('fc', [input]))
    expect(() => call.isImpure()).toThrow(
      new GraphError("node 'fc': graph.owningModule not set for purity check; give the graph to a GraphModule first."),
    )
  })

  test('refuseMutation names the operation', () => {
    const message = (what: string): string =>
      `Tried to trace mutable operation ${what}. FX only supports functional code, so operations that mutate operands in-place (e.g. via \`out\` arguments) are not supported`
    expect(() => refuseMutation('call_method', 'add_')).toThrow(TraceError)
    expect(() => refuseMutation('call_method', 'add_')).toThrow(message('add_'))
    expect(() => refuseMutation('call_function', operator.iadd)).toThrow(message('operator.iadd'))
    for (const [op, target] of [
      ['call_method', 'add'],
      ['call_module', 'layer_'],
      ['get_attr', 'weight_'],
      ['call_function', torch.add],
    ] as const)
      expect(() => refuseMutation(op, target)).not.toThrow()
  })
})

describe('operator', () => {
  test('every function is registered under its name in Python', () => {
    for (const [name, fn] of Object.entries(operator)) {
      expect([fn.name, targetInfo(fn)?.name, lookupTarget(`operator.${name}`)]).toEqual([name, `operator.${name}`, fn])
      expect(targetInfo(fn)?.effects).toBe((/^i[a-z]+$/.test(name) && name !== 'invert') || name === 'setitem' ? 'mutates' : 'pure')
    }
    expect([getattr.name, targetInfo(getattr)?.name, lookupTarget('builtins.getattr')]).toEqual(['getattr', 'builtins.getattr', getattr])
  })

  test('comparisons and bits of numbers', () => {
    const pairs: readonly (readonly [number, number])[] = [
      [1, 2],
      [2, 1],
      [2, 2],
    ]
    const table = pairs.map(([a, b]) => [
      operator.gt(a, b),
      operator.lt(a, b),
      operator.ge(a, b),
      operator.le(a, b),
      operator.eq(a, b),
      operator.ne(a, b),
    ])
    expect(table).toEqual([
      [false, true, false, true, false, true],
      [true, false, true, false, false, true],
      [false, false, true, true, true, false],
    ])
    expect([operator.add('a', 'b'), operator.add(1, true), operator.sub(5, 3), operator.mul(2, 4), operator.neg(true), operator.abs(-3)]).toEqual([
      'ab',
      2,
      2,
      8,
      -1,
      3,
    ])
    expect([operator.iand(6, 3), operator.ior(6, 3), operator.ixor(6, 3), operator.ilshift(1, 3), operator.irshift(8, 2)]).toEqual([2, 7, 5, 8, 2])
    expect([
      operator.iadd(1, 2),
      operator.isub(1, 2),
      operator.imul(3, 2),
      operator.itruediv(1, 2),
      operator.ifloordiv(7, 2),
      operator.imod(-7, 2),
      operator.ipow(2, 3),
    ]).toEqual([3, -1, 6, 0.5, 3, 1, 8])
  })

  test('a tensor on the right of a number', () => {
    const x = tensor([1, 2, 4])
    const list = (value: unknown): unknown => (value instanceof torch.Tensor ? value.toArray() : value)
    expect([operator.add(1, x), operator.sub(1, x), operator.mul(2, x), operator.truediv(2, x)].map(list)).toEqual([
      [2, 3, 5],
      [0, -1, -3],
      [2, 4, 8],
      [2, 1, 0.5],
    ])
    expect([operator.gt(2, x), operator.lt(2, x), operator.ge(2, x), operator.le(2, x), operator.eq(2, x), operator.ne(2, x)].map(list)).toEqual([
      [true, false, false],
      [false, false, true],
      [true, true, false],
      [false, true, true],
      [false, true, false],
      [true, false, true],
    ])
  })

  test('values that fit no operator are refused', () => {
    expect(() => operator.add(null, 1)).toThrow(new ArgumentError('operator.add: expected tensors or numbers, got null.'))
    expect(() => operator.add(1, undefined)).toThrow(new ArgumentError('operator.add: expected tensors or numbers, got undefined.'))
    expect(() => operator.iadd(undefined, 1)).toThrow('operator.iadd: expected tensors or numbers, got undefined.')
    expect(() => operator.neg('a')).toThrow(new ArgumentError("operator: a value of type string has no method 'neg'."))
    expect(() => operator.matmul(2, 3)).toThrow(new ArgumentError('operator.matmul: expected two tensors, got a number.'))
  })

  test('getitem reads arrays, Maps, tensors, objects and texts', () => {
    const x = tensor([
      [1, 2],
      [3, 4],
    ])
    expect([operator.getitem([5, 6], 0), operator.getitem([5, 6], -1), operator.getitem([5, 6], 'length')]).toEqual([5, 6, 2])
    expect(operator.getitem(new Map<unknown, unknown>([['a', 1]]), 'a')).toBe(1)
    expect(operator.getitem({ a: 1 }, 'a')).toBe(1)
    expect(operator.getitem('text', 1)).toBe('e')
    const row = operator.getitem(x, 1)
    expect(row instanceof torch.Tensor && row.toArray()).toEqual([3, 4])
    const selected = operator.getitem({ select: (dim: number, index: number) => [dim, index] }, 3)
    expect(selected).toEqual([0, 3])
    expect(operator.getitem({ select: () => 1, a: 2 }, 'a')).toBe(2)
    for (const nothing of [null, undefined])
      expect(() => operator.getitem(nothing, 0)).toThrow(new ArgumentError(`operator.getitem: ${String(nothing)} has no property '0'.`))
  })

  test('setitem wants a place that there is', () => {
    const list: unknown[] = ['a', 'b', 'c']
    operator.setitem(list, 0, 7)
    operator.setitem(list, -1, 9)
    expect(list).toEqual([7, 'b', 9])
    for (const [index, text] of [
      [3, '3'],
      [-4, '-4'],
      [0.5, '0.5'],
      ['0', "'0'"],
      [null, 'null'],
    ])
      expect(() => operator.setitem(list, index, 0)).toThrow(new ArgumentError(`operator.setitem: index ${text} is out of range for 3 elements.`))
    expect(() => operator.setitem(5, 0, 0)).toThrow(new ArgumentError('operator.setitem: a value of type number has no elements.'))
    expect(() => operator.setitem(null, 0, 0)).toThrow(new ArgumentError('operator.setitem: a value of type object has no elements.'))
    const object = { a: 1 }
    operator.setitem(object, 'a', 2)
    expect(object).toEqual({ a: 2 })
    expect(() => operator.setitem(tensor([1, 2]), [[0, 1]], 0)).toThrow(
      'a list of positions does not select a part of the tensor that can be written to',
    )
  })

  test('getattr reads any value but null', () => {
    expect([getattr({ a: 1 }, 'a'), getattr('text', 'length'), getattr({}, 'a')]).toEqual([1, 4, undefined])
    expect(() => getattr(null, 'a')).toThrow(new ArgumentError("getattr: null has no property 'a'."))
    const { graph } = symbolicTrace((x: Tensor) => getattr(x, 'shape'))
    expect([...graph.nodes].map((n) => [n.op, n.name])).toEqual([
      ['placeholder', 'x'],
      ['call_function', 'getattr_1'],
      ['output', 'output'],
    ])
  })
})

describe('nodes and graphs refuse', () => {
  test('arguments that are no arrays or records, and places that are not there', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    const add = graph.callFunction(torch.mul, [x, 1])
    for (const index of [-1, 0.5, NaN, 2]) expect(() => add.updateArg(index, 2)).toThrow(GraphError)
    add.updateArg(1, 3)
    expect(add.args).toEqual([x, 3])
    const wrong: readonly (readonly [value: unknown, text: string])[] = [
      [[], 'an object of class Array'],
      [null, 'null'],
      [3, 'number 3'],
      [new Map(), 'an object of class Map'],
    ]
    for (const [kwargs, text] of wrong)
      expect(() => graph.callFunction(torch.add, [x], kwargs as never)).toThrow(
        new GraphError(`Node 'add': kwargs must be a plain object, got ${text}.`),
      )
    expect(() => graph.callFunction(torch.add, 3 as never)).toThrow("Node 'add': args must be an array, got number 3.")
    expect(() => graph.createNode('nope' as never, 'x')).toThrow(
      "op 'nope' is not in the legal ops: placeholder, get_attr, call_function, call_module, call_method, output",
    )
    expect(() => graph.createNode('call_function', 'text')).toThrow('target text has type string but a function is expected')
    expect(() => graph.createNode('call_method', torch.add)).toThrow('has type function but a string is expected')
    expect(() => graph.findNodes({ op: 'call_function' })).toThrow(new GraphError("findNodes: op 'call_function' needs a target."))
  })

  test('a GraphModule without the module that the graph calls', () => {
    const graph = new Graph()
    graph.output(graph.callModule('missing', [graph.placeholder('x')]))
    expect(() => new GraphModule({}, graph)).toThrow(/missing/)
  })
})
