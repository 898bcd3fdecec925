// OperatorSupport with dtypes, type texts and annotate; PyTorch's passes.operator_support, operator_schemas and torch.fx.annotate.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, Tracer, getSignatureForTorchOp, len, normalizeFunction, operator, symbolicTrace, tuple } from 'tensorfx/fx'
import type { NormalizedCall } from 'tensorfx/fx'
import { annotate, createTypeHint, typeMatches } from 'tensorfx/fx/experimental'
import { OpSupports, OperatorSupport, ShapeProp, anyChain, chain as allOf, createOpSupport } from 'tensorfx/fx/passes'
import type { OperatorSupportBase } from 'tensorfx/fx/passes'
import { X, Y, chain, describeGolden, expectText, messageOf, resultOf } from './golden.ts'

/** A value as Python prints it. */
const pythonText = (value: unknown): string =>
  JSON.stringify(value).replaceAll('"', "'").replaceAll(':', ': ').replaceAll(',', ', ').replaceAll('null', 'None').replaceAll('false', 'False')

type Answers = Record<string, boolean>

/** For each node, whether it is supported. */
function answers(support: OperatorSupportBase, gm: GraphModule = chain(), shapes = true): Answers {
  if (shapes) new ShapeProp(gm).propagate(X, Y)
  return Object.fromEntries(Array.from(gm.graph.nodes, (node) => [node.name, support.isNodeSupported(gm, node)]))
}

describeGolden('operator_support', {
  'by_target_name (difference: home-of-classes)': (golden) => {
    expect(answers(new OperatorSupport({ 'torch.relu': null, 'operator.add': null, cos: null, Linear: null }))).toEqual(golden.result)
  },
  empty_dictionary: (golden) => {
    expect(answers(new OperatorSupport())).toEqual(golden.result)
  },
  dtypes_of_args: (golden) => {
    expect([
      answers(new OperatorSupport({ 'operator.add': [['float32'], ['float32']] })),
      answers(new OperatorSupport({ 'operator.add': [null, ['int32']], 'torch.sin': [['int32']], cos: [] })),
    ]).toEqual(golden.result)
  },
  without_tensor_meta: (golden) => {
    expect(resultOf<{ sin: { error: string } }>(golden).sin.error).toBe("'type'")
    const support = new OperatorSupport({ 'torch.sin': [['float32']] })
    expect(() => answers(support, chain(), false)).toThrow("the dtype of node 'add' is not known; run ShapeProp on the graph first")
  },
  chains: (golden) => {
    const a = createOpSupport((_, node) => ['lin', 'relu'].includes(node.name))
    const b = createOpSupport((_, node) => ['relu', 'sin'].includes(node.name))
    expect([answers(allOf(a, b)), answers(anyChain(a, b)), answers(allOf()), answers(anyChain())]).toEqual(golden.result)
  },
  decline_dtype: (golden) => {
    const traced = (): GraphModule => symbolicTrace((x: Tensor, y: Tensor) => operator.add(x.gt(0).to('float32'), y.to('float64'))) as GraphModule
    // x.float() and y.double() are both `to` here.
    const renamed = resultOf<Answers[]>(golden).map(({ float_1, double, ...rest }) => ({ ...rest, to: float_1, to_1: double }))
    expect([answers(OpSupports.declineIfInputDtype('float32'), traced()), answers(OpSupports.declineIfInputDtype('bool'), traced())]).toEqual(renamed)
  },
  decline_names: (golden) => {
    expect(answers(OpSupports.declineIfNodeInNames(new Set(['relu', 'x'])))).toEqual(golden.result)
  },
  abstract_base: (golden) => {
    // An interface here: TypeScript refuses an object without the method.
    expect(resultOf<{ error: string }>(golden).error).toContain("Can't instantiate abstract class OperatorSupportBase")
    // @ts-expect-error -- isNodeSupported is missing
    const support: OperatorSupportBase = {}
    expect(() => allOf(support).isNodeSupported(chain(), chain().graph.outputNode())).toThrow(TypeError)
  },
  placeholder_type_is_used_for_numbers: (golden) => {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => operator.add(x, y.size(0))) as GraphModule
    expect(answers(new OperatorSupport({ 'operator.add': [null, ['number']], size: null }), gm)).toEqual(golden.result)
    expect(answers(new OperatorSupport({ 'operator.add': [null, ['float32']], size: null }), gm)['add']).toBe(false)
  },
})

describe('OperatorSupport', () => {
  it('looks at arguments by name', () => {
    const graph = new Graph()
    const [x, y] = [graph.placeholder('x'), graph.placeholder('y')]
    y.meta['tensor_meta'] = { shape: [2], dtype: 'float32', requiresGrad: false, strides: [1] }
    graph.output(graph.callFunction(torch.clamp, [x], { min: y }))
    const gm = new GraphModule({}, graph)
    const supports = (dtype: string): boolean | undefined =>
      answers(new OperatorSupport({ 'torch.clamp': { kwargs: { min: [dtype], max: ['int32'] } } }), gm, false)['clamp']
    expect([supports('float32'), supports('int32')]).toEqual([true, false])
  })
})

/** A type as PyTorch prints it, as text that nodes have. */
const typeText = (text: string): string =>
  text
    .replace(/<class '(.*?)'>/g, '$1')
    .replaceAll('typing.', '')
    .replaceAll('torch.nn.parameter.', 'torch.nn.')
    .replace('NoneType', 'None')

describeGolden('operator_schemas', {
  matching_types: (golden) => {
    for (const [pair, expected] of Object.entries(resultOf<Record<string, unknown>>(golden))) {
      const [wanted = '', given = ''] = pair.split(' <- ').map(typeText)
      // PyTorch fails for a list of optional elements; it is not a list of numbers.
      expect([pair, typeMatches(wanted, given)]).toEqual([pair, typeof expected === 'boolean' ? expected : false])
    }
  },
  type_hints_of_values: (golden) => {
    for (const [values, hint] of Object.entries(resultOf<Record<string, string>>(golden))) {
      const types = [...values.matchAll(/<class '(.*?)'>/g)].map((m) => typeText(m[1] ?? ''))
      const [single = ''] = types
      const value = values.startsWith('[') ? types : values.startsWith('(') ? tuple(...types) : single
      expect([values, createTypeHint(value)]).toEqual([values, typeText(hint)])
    }
  },
  'signatures (difference: own-schemas)': (golden) => {
    const theirs = resultOf<Record<string, string[] | null>>(golden)
    const ours = { relu: torch.relu, sum: torch.sum, matmul: torch.matmul, operator_add: operator.add, len, sub: torch.sub }
    for (const [name, fn] of Object.entries(ours))
      expect([name, getSignatureForTorchOp(fn)?.length ?? null]).toEqual([name, theirs[name] === null ? null : 1])
    expect(getSignatureForTorchOp(torch.sub)?.[0]?.args.map((arg) => arg.name)).toEqual(['self', 'other', 'alpha'])
  },
  tracer_that_checks_mutability: (golden) => {
    const [refused, text] = resultOf<[{ error: string }, string]>(golden)
    const tracer = new Tracer()
    tracer.checkMutableOperations = true
    const message = messageOf(() => tracer.trace((x: Tensor) => torch.relu_(x)))
    expect(message).toContain(refused.error.replace('aten::', '').split('. ')[1])
    expect(message).toContain('relu_(Tensor(a!) self) -> Tensor(a!)')
    expectText(
      new GraphModule(
        {},
        tracer.trace((x: Tensor) => torch.sum(x, { dim: 0 })),
      ),
      text,
    )
  },
  'defaults_filled (difference: own-schemas)': (golden) => {
    const [sum, squeeze, add] = resultOf<string[]>(golden)
    const shown = (call: NormalizedCall | null): string => (call === null ? 'None' : `ArgsKwargsPair(args=(), kwargs=${pythonText(call.kwargs)})`)
    const options = { onlyKwargs: true }
    expect(shown(normalizeFunction(torch.sum, ['x'], { dim: [0] }, options))).toBe(sum)
    expect(shown(normalizeFunction(torch.squeeze, ['x', 1], {}, options))).toBe(squeeze)
    expect(shown(normalizeFunction(operator.add, [1, 2], {}, options))).toBe(add)
  },
  'overload_objects (difference: no-aten)': (golden) => {
    const [named, positional] = resultOf<string[]>(golden)
    expect([named, positional]).toEqual([
      "ArgsKwargsPair(args=(), kwargs={'input': 'x', 'other': 'y', 'alpha': 1})",
      "ArgsKwargsPair(args=('x', 'y'), kwargs={'alpha': 2})",
    ])
    expect(normalizeFunction(torch.add, ['x', 'y'], {}, { onlyKwargs: true })).toEqual({ args: [], kwargs: { input: 'x', other: 'y', alpha: 1 } })
    expect(normalizeFunction(torch.add, ['x', 'y'], { alpha: 2 })).toEqual({ args: ['x', 'y'], kwargs: { alpha: 2 } })
  },
  positional_only_and_varargs: (golden) => {
    const functions = [(a: unknown, _b: unknown) => a, (a: unknown, ..._r: unknown[]) => a, (a: unknown, _o: object) => a]
    expect(functions.map((f) => String(normalizeFunction(f, [1, 2])).replace('null', 'None'))).toEqual(golden.result)
  },
})

describe('types', () => {
  it('test_type_matches: what a parameter takes', () => {
    const accepted: readonly [string, string][] = [
      ['int', 'int'],
      ['Number', 'int'],
      ['Number', 'float'],
      ['int', 'dtype'],
      ['Union[int, float]', 'int'],
      ['Union[int, float]', 'float'],
      ['List[int]', 'int'],
      ['List[int]', createTypeHint(['int', 'int'])],
      ['List[int]', createTypeHint(tuple('int', 'int') as readonly string[])],
      ['List[Tensor]', createTypeHint(['Tensor', 'Parameter'])],
      ['List[Tensor]', createTypeHint(['Parameter', 'Parameter'])],
      ['Tensor', 'Parameter'],
      ['Optional[List[Tensor]]', 'List[Tensor]'],
      ['Optional[List[int]]', 'List[int]'],
      ['Tensor[]', 'readonly Tensor[]'],
    ]
    const refused: readonly [string, string][] = [
      ['int', 'float'],
      ['Parameter', 'Tensor'],
      ['List[int]', createTypeHint(['int', 'Tensor'])],
      ['List[int]', createTypeHint(['float'])],
      ['Optional[int]', 'str'],
    ]
    expect(accepted.filter(([wanted, given]) => !typeMatches(wanted, given))).toEqual([])
    expect(refused.filter(([wanted, given]) => typeMatches(wanted, given))).toEqual([])
  })

  it('annotate gives a traced value a type once, and leaves other values alone', () => {
    const gm = symbolicTrace((x: Tensor) => annotate(torch.relu(x), 'Tensor').add(1)) as GraphModule
    expect(Array.from(gm.graph.nodes, (node) => node.type)).toEqual([null, 'Tensor', null, null])
    expect(annotate(3, 'int')).toBe(3)
    expect(() => symbolicTrace((x: Tensor) => annotate(annotate(x, 'Tensor'), 'Parameter'))).toThrow(
      'Tried to annotate a value that already had a type on it! Existing type is Tensor and new type is Parameter.',
    )
  })
})

it('test_traceable_function_with_nonstandard_name: a function whose name is no identifier can be traced', () => {
  const { 'a.b-c': named } = { 'a.b-c': (x: Tensor) => torch.relu(x) }
  const gm = symbolicTrace(named) as GraphModule
  expect(torch.equal(gm.call(X) as Tensor, torch.relu(X))).toBe(true)
})
