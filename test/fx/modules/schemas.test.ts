// Normal forms, types from schemas and collections that cannot be changed; PyTorch's experimental.normalize, experimental.schema_type_annotation, operator_schemas and
// immutable_collections.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, Tracer, getSignatureForTorchOp, isProxy, normalizeFunction, operator, symbolicTrace, tuple } from 'tensorfx/fx'
import type { Argument } from 'tensorfx/fx'
import {
  AnnotateTypesWithSchema,
  NormalizeArgs,
  NormalizeOperators,
  annotate,
  checkForMutableOperation,
  immutableDict,
  immutableList,
  normalizeModule,
} from 'tensorfx/fx/experimental'
import { Conv2d, F, Linear, Module, MultiheadAttention, Parameter, ReLU, Sequential } from 'tensorfx/nn'
import * as pytree from 'tensorfx/pytree'
import { X, describeGolden, expectText, messageOf, nodeOf, resultOf } from './golden.ts'

class AllThree extends Module {
  linear: Linear = new Linear(4, 4)
  w: Parameter = new Parameter(torch.zeros([4]))
  scale = 3
  override forward(x: Tensor): Tensor {
    return operator.add(F.relu(this.linear.call(x)), this.w) as Tensor
  }
}

const allThree = (): GraphModule => symbolicTrace(new AllThree())

/** The types of nodes, as PyTorch prints them. */
const types = (gm: GraphModule): Record<string, string> =>
  Object.fromEntries(
    Array.from(gm.graph.nodes, (node) => {
      const type = node.type === null ? 'None' : String(node.type)
      return [node.name, /^(?:torch\.Tensor|int|float|str)$/.test(type) ? `<class '${type}'>` : type === 'None' ? type : `typing.${type}`]
    }),
  )

describeGolden('schema_type_annotation', {
  all_kinds: (golden) => {
    const annotated = new AnnotateTypesWithSchema(allThree()).transform()
    expect(types(annotated)).toEqual(resultOf<{ types: unknown }>(golden).types)
  },
  switches: (golden) => {
    const options = [{ annotateFunctionals: false }, { annotateModules: false }, { annotateGetAttrs: false }]
    const annotated = options.map((option) => types(new AnnotateTypesWithSchema(allThree(), option).transform()))
    expect(annotated).toEqual(resultOf<{ types: unknown }[]>(golden).map((result) => result.types))
  },
  'only_nn_functional (difference: types-from-schemas)': (golden) => {
    const { types: theirs } = resultOf<{ types: Record<string, string> }>(golden)
    const gm = symbolicTrace((x: Tensor) => operator.add(torch.relu(F.gelu(F.softmax(x, { dim: -1 }))), F.linear(x, x))) as GraphModule
    const ours = types(new AnnotateTypesWithSchema(gm).transform())
    expect(Object.keys(ours)).toEqual(Object.keys(theirs))
    for (const name of ['softmax', 'gelu', 'relu', 'linear']) expect(ours[name]).toBe("<class 'torch.Tensor'>")
    for (const name of ['x', 'add', 'output']) expect(ours[name]).toBe(theirs[name])
  },
  modules_by_class: (golden) => {
    class MyLinear extends Linear {}
    class A extends Module {
      a: MyLinear = new MyLinear(4, 4)
      b: Sequential = new Sequential(new ReLU(), new ReLU())
      c: Conv2d = new Conv2d(1, 1, 1)
      override forward(x: Tensor): unknown {
        return [this.a.call(x), this.b.call(x), this.c.call(x)]
      }
    }
    class AllLeaves extends Tracer {
      override isLeafModule(): boolean {
        return true
      }
    }
    const model = new A()
    const gm = new GraphModule(model, new AllLeaves().trace(model))
    expect(types(new AnnotateTypesWithSchema(gm).transform())).toEqual(golden.result)
    class Attends extends Module {
      attention: MultiheadAttention = new MultiheadAttention(4, 2)
      override forward(x: Tensor): unknown {
        return this.attention.call(x, x, x)
      }
    }
    const several = new AnnotateTypesWithSchema(symbolicTrace(new Attends())).transform()
    expect(nodeOf(several, 'attention').type).toBe(null)
  },
  'existing_types_stay (difference: types-kept)': (golden) => {
    const gm = allThree()
    nodeOf(gm, 'linear').type = 'int'
    const theirs = resultOf<Record<string, string>>(golden)
    expect(types(new AnnotateTypesWithSchema(gm).transform())).toEqual({ ...theirs, linear: "<class 'int'>" })
  },
  missing_attribute: (golden) => {
    expect(resultOf<{ error: string }>(golden).error).toContain('nonextent target')
    const gm = allThree()
    nodeOf(gm, 'w').target = 'nope.w'
    expect(messageOf(() => new AnnotateTypesWithSchema(gm).transform())).toContain('nope')
  },
  attribute_kinds: (golden) => {
    class A extends Module {
      n = 3
      l = [1, 2]
      d = { a: 1.5 }
      s = 'x'
      constructor() {
        super()
        this.registerBuffer('b', torch.zeros([2]))
      }
      override forward(x: Tensor): Tensor {
        return x
      }
    }
    const graph = new Graph()
    graph.placeholder('x')
    graph.output(tuple(...['b', 'n', 'l', 'd', 's'].map((name) => graph.getAttr(name))))
    expect(types(new AnnotateTypesWithSchema(new GraphModule(new A(), graph)).transform())).toEqual(golden.result)
  },
})

describeGolden('normalize', {
  'args_to_kwargs (difference: only-schemas-normalize)': (golden) => {
    const [named, positional] = resultOf<[string, string]>(golden)
    class A extends Module {
      c: Conv2d = new Conv2d(1, 2, 3)
      override forward(x: Tensor): Tensor {
        return F.maxPool2d(F.relu(this.c.call(x)), 2)
      }
    }
    const gm = symbolicTrace(new A())
    const call = '(args = (), kwargs = {input: %x})'
    expect(named).toContain(call)
    // A layer takes its parameters by position.
    expectText(new NormalizeArgs(gm).transform(), named.replace(call, '(args = (%x,), kwargs = {})'))
    expectText(new NormalizeArgs(gm, { onlyKwargs: false }).transform(), positional)
  },
  operators_both_spellings: (golden) => {
    const { add, mul, sub, div, floorDivide, remainder, eq, ne, lt, le, gt, ge } = torch
    const ours = Object.entries({ add, mul, sub, div, floor_divide: floorDivide, remainder, eq, ne, lt, le, gt, ge }).map(([name, fn]) => {
      const gm = symbolicTrace((x: Tensor, y: Tensor) => (fn as typeof add)(x, y)) as GraphModule
      const call = [...new NormalizeOperators(gm).transform().graph.nodes].find((node) => node.op === 'call_function')
      return [name, typeof call?.target === 'function' ? `operator.${Object.entries(operator).find(([, f]) => f === call.target)?.[0]}` : '']
    })
    expect(Object.fromEntries(ours)).toEqual(golden.result)
  },
  'operators_with_kwargs_drop_them (difference: kwargs-kept)': (golden) => {
    const [dropped] = resultOf<[string]>(golden)
    expect(dropped).toContain('operator.add](args = (%x, %y), kwargs = {})')
    const gm = symbolicTrace((x: Tensor, y: Tensor) => torch.add(x, y, { alpha: 2 })) as GraphModule
    const normal = new NormalizeOperators(gm).transform()
    expect(torch.allclose(normal.call(X, X), X.mul(3))).toBe(true)
  },
  meta_and_type_are_kept: (golden) => {
    const gm = symbolicTrace((x: Tensor) => F.relu(x)) as GraphModule
    for (const node of gm.graph.nodes) {
      node.meta['m'] = node.name
      if (node.op === 'call_function') node.type = 'str'
    }
    const ours = Array.from(new NormalizeArgs(gm).transform().graph.nodes, (node) => [
      node.name,
      node.meta['m'] ?? 'output',
      node.type === 'str' ? "<class 'str'>" : 'None',
    ])
    expect(ours).toEqual(golden.result)
  },
  varargs_are_left: (golden) => {
    const f = (...a: unknown[]): unknown => a
    expect(String(normalizedCall(f, [1]).target === f)).toBe('true')
    expect(normalizedCall(f, [1]).args).toBe(2)
    expect(golden.result).toContain('(args = (%x, 1), kwargs = {})')
  },
  'any_python_function (difference: only-schemas-normalize)': (golden) => {
    expect(golden.result).toEqual([[[], { a: 'x', b: '7', c: '4' }]])
    const h = (a: number, b = 3, { c = 4 } = {}): number => a + b + c
    const graph = new Graph()
    graph.output(graph.callFunction(h, [graph.placeholder('x')]))
    const normal = new NormalizeArgs(new GraphModule({}, graph)).transform()
    const [call] = [...normal.graph.nodes].filter((node) => node.op === 'call_function')
    expect([call?.args.map(String), call?.kwargs]).toEqual([['x', '3'], { c: 4 }])
    expect(normal.call(1)).toBe(8)
  },
  'ambiguous_overloads (difference: own-schemas)': (golden) => {
    const [text] = resultOf<[string, string, string]>(golden)
    expect(text).toContain('torch.add](args = (%x, %y)')
    const gm = symbolicTrace((x: Tensor, y: Tensor) => torch.add(x, y)) as GraphModule
    const call = nodeOf(new NormalizeArgs(gm).transform(), 'add')
    expect(Object.keys(call.kwargs)).toEqual(['input', 'other', 'alpha'])
    expect(normalizeFunction(torch.add, [1, 2])).toEqual({ args: [1, 2], kwargs: { alpha: 1 } })
  },
  normalize_module_direct: (golden) => {
    const [linear, own, missing] = resultOf<[string, string, { error: string }]>(golden)
    const root = new Sequential(new Linear(2, 2), new AllThree())
    expect(normalizeModule(root, '0', ['x'], {}, { onlyKwargs: true })).toEqual({ args: [], kwargs: { input: 'x' } })
    expect(linear).toBe("ArgsKwargsPair(args=(), kwargs={'input': 'x'})")
    expect([own, normalizeModule(root, '1', ['x'], {}, { onlyKwargs: true })]).toEqual(['None', null])
    expect(missing.error).toContain('did not have that target')
    expect(messageOf(() => normalizeModule(root, 'zzz', ['x']))).toBe(
      "normalizeModule: there is no module at 'zzz'; pass a path of root.namedModules().",
    )
  },
})

/** A call of a function with a traced value and others, after normalization: its target and the number of its positional arguments. */
function normalizedCall(fn: (...args: never[]) => unknown, rest: readonly Argument[]): { target: unknown; args: number } {
  const graph = new Graph()
  const x = graph.placeholder('x')
  graph.output(graph.callFunction(fn, [x, ...rest]))
  const call = [...new NormalizeArgs(new GraphModule({}, graph)).transform().graph.nodes].find((node) => node.op === 'call_function')
  return { target: call?.target, args: call?.args.length ?? 0 }
}

describe('normalizeModule', () => {
  const root = new Sequential(new Linear(2, 2), new MultiheadAttention(4, 2))

  it('arguments without a default stay positional unless asked for', () => {
    expect(normalizeModule(root, '0', ['x'])).toEqual({ args: ['x'], kwargs: {} })
    expect(normalizeModule(root, '0', [], { input: 'x' })).toEqual({ args: ['x'], kwargs: {} })
    expect(normalizeModule(root, '1', ['q', 'k'], { value: 'v' }, { onlyKwargs: true })?.kwargs).toMatchObject({ query: 'q', key: 'k', value: 'v' })
  })

  it('arguments that the layer does not take give null', () => {
    expect(normalizeModule(root, '0', [])).toBe(null)
    expect(normalizeModule(root, '0', ['x', 'y'])).toBe(null)
    expect(normalizeModule(root, '0', ['x'], { input: 'y' })).toBe(null)
    expect(normalizeModule(root, '0', ['x'], { other: 'y' })).toBe(null)
  })
})

describeGolden('immutable_collections', {
  'list_mutations (difference: frozen-arguments)': (golden) => {
    expect(Object.values(resultOf<Record<string, { error_type: string }>>(golden)).every((e) => e.error_type === 'builtins.TypeError')).toBe(true)
    const list = immutableList([1, 2]) as number[]
    for (const change of [() => list.push(3), () => list.sort(), () => list.splice(0), () => list.reverse(), () => list.pop()])
      expect(change).toThrow('cannot be changed in place')
    expect(() => (list[0] = 9)).toThrow(TypeError)
    expect(() => Reflect.deleteProperty(list, 0) || list.shift()).toThrow('shift: ')
    expect([...list]).toEqual([1, 2])
  },
  'dict_mutations (difference: frozen-arguments)': (golden) => {
    expect(Object.keys(resultOf<object>(golden))).toContain('setitem')
    const record: Record<string, number> = immutableDict({ a: 1 })
    expect(() => (record['b'] = 1)).toThrow(TypeError)
    expect(() => delete record['a']).toThrow(TypeError)
    expect(record).toEqual({ a: 1 })
  },
  'hash_equality_and_copies copies can be changed (difference: frozen-arguments)': (golden) => {
    const [, , equal, isList, plus] = resultOf<[boolean, unknown, boolean, boolean, string]>(golden)
    const list = immutableList([1, 2])
    expect([list.concat([]).join() === '1,2', Array.isArray(list), plus]).toEqual([equal, isList, 'list'])
    const copy = [...list]
    copy.push(3)
    expect(copy).toEqual([1, 2, 3])
  },
  'config_switches (difference: no-progress-bars)': (golden) => {
    expect(golden.result).toEqual([true, false])
  },
  through_pytree: (golden) => {
    const [leaves] = resultOf<[number[]]>(golden)
    const { leaves: values, spec } = pytree.treeFlatten(immutableList([1, immutableDict({ a: 2 })]))
    expect(values).toEqual(leaves)
    expect(pytree.treeUnflatten([3, 4], spec)).toEqual([3, { a: 4 }])
  },
  annotate_values: (golden) => {
    const [same, type, error, list, none] = resultOf<[boolean, string, { error: string }, number[], null]>(golden)
    let message = ''
    symbolicTrace((x: Tensor) => {
      expect([annotate(x, 'int') === x, isProxy(x)]).toEqual([same, true])
      message = messageOf(() => annotate(x, 'str'))
      return x
    })
    expect(message).toContain('Tried to annotate a value that already had a type on it! Existing type is int and new type is str')
    expect([type, error.error.slice(0, 20)]).toEqual(['int', message.slice(0, 20)])
    expect([annotate(list, 'list'), annotate(none, 'int')]).toEqual([list, none])
  },
  nested_conversion: (golden) => {
    expect(golden.result).toEqual(['immutable_dict', 'immutable_list', 'tuple', 'immutable_list'])
    const graph = new Graph()
    const x = graph.placeholder('x')
    const [record] = graph.callFunction(torch.cat, [{ a: [x, tuple(x, [1])] }]).args as unknown as [{ a: [unknown, [unknown, unknown]] }]
    expect([record, record.a, record.a[1], record.a[1][1]].map((value) => Object.isFrozen(value))).toEqual([true, true, true, true])
  },
})

describe('checkForMutableOperation', () => {
  it('refuses functions that write into their arguments, and only these', () => {
    expect(() => checkForMutableOperation(torch.relu_)).toThrow('Tried to trace mutable operation')
    expect(() => checkForMutableOperation(torch.relu)).not.toThrow()
  })

  it('signatures and tracers that check agree with it', () => {
    expect(getSignatureForTorchOp(torch.relu)).toHaveLength(1)
    const tracer = new Tracer()
    tracer.checkMutableOperations = true
    expect(() => tracer.trace((x: Tensor) => torch.relu_(x))).toThrow('Tried to trace mutable operation relu_')
  })
})
