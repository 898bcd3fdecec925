// PyTorch's functions that the comparison of models consists of, on recorded values. Where ours differ, the reason is said.
import { describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { castToFp64, cloneInputsRetainingGradness, collectResults, reduceToScalarLoss, requiresBwdPass } from 'tensorfx/debug'
import type { Runnable } from 'tensorfx/debug'
import { Graph, GraphModule, symbolicTrace } from 'tensorfx/fx'
import { half } from '../../src/ops/index.ts'
import { Bn, G, MaskedLMOutput, Mlp, Shared, det, fill } from './prelude.ts'
import { byName, decoder, shown } from './recorded.ts'
import type { Case, Json } from './recorded.ts'

const trace = symbolicTrace

/** What was recorded of a call that did not raise. */
const resultOf = (one: Case | undefined): Readonly<Record<string, Json>> => one?.result as Readonly<Record<string, Json>>

/** Every recorded case is one of ours, or has no counterpart. */
function expectAll(fn: string, ...names: readonly string[]): void {
  expect([...byName('helpers', fn).keys()].toSorted()).toEqual(names.toSorted())
}

describe('reduceToScalarLoss and requiresBwdPass, as recorded', () => {
  const named = (name: string, fields: object): object => {
    const made = { [name]: class {} }[name] ?? Object
    return Object.assign(new made(), fields)
  }
  const outs: Readonly<Record<string, () => unknown>> = {
    tensor: () => det([2, 3]),
    'tensor that requires grad': () => det([2, 3], { grad: true }),
    'integer tensor': () => torch.tensor([1, 2, 4], { dtype: 'int64' }),
    'bool tensor': () => torch.tensor([true, false, true]),
    'zero-dimensional': () => torch.tensor(2.5),
    'empty tensor': () => torch.zeros([0]),
    'float16 sum': () => torch.full([100], 1000, { dtype: 'float16' }),
    float64: () => det([4], { dtype: 'float64' }),
    nan: () => torch.tensor([1, NaN]),
    list: () => [det([2]), det([3], { grad: true })],
    'tuple of different sizes': () => [det([10]), torch.tensor(8)],
    'nested list': () => [det([2]), [det([3]), [det([1])]]],
    'list with an integer tensor': () => [det([2], { grad: true }), torch.tensor([1, 2], { dtype: 'int64' })],
    'empty list': () => [],
    'list with None': () => [det([2], { grad: true }), null],
    'list with None first': () => [null, det([2], { grad: true })],
    'list with int': () => [3, det([2])],
    'list with a string last': () => [det([2], { grad: true }), 'a'],
    dict: () => ({ a: det([2], { grad: true }), b: det([3]) }),
    'empty dict': () => ({}),
    'dict in list': () => [{ a: det([2]) }],
    MaskedLMOutput: () => new MaskedLMOutput(torch.tensor(5), det([2])),
    Seq2SeqLMOutput: () => named('Seq2SeqLMOutput', { logits: det([4]), loss: torch.tensor(9) }),
    CausalLMOutputWithCrossAttentions: () => named('CausalLMOutputWithCrossAttentions', { logits: [det([4]), det([2])] }),
    LongformerMaskedLMOutput: () => named('LongformerMaskedLMOutput', { logits: det([4]) }),
    SquashedNormal: () => named('SquashedNormal', { mean: det([4]) }),
    None: () => null,
    int: () => 3,
    float: () => 0.5,
    bool: () => true,
    string: () => 'a',
    'set of tensors': () => new Set([1]),
    'list of bools': () => [true, false],
    'list with a string': () => ['a', det([2], { grad: true })],
    object: () => named('SimpleNamespace', { logits: det([2]) }),
    'dict with None': () => ({ a: null }),
    'MaskedLMOutput, logits None': () => new MaskedLMOutput(null, null),
    'list of float and tensor': () => [1.5, det([2])],
    QuestionAnsweringModelOutput: () => named('QuestionAnsweringModelOutput', { loss: det([4]) }),
  }
  /** Outputs that have a loss require a backward pass: PyTorch refuses them only here (difference: structures-differ). */
  const judged = new Set([
    ...['dict', 'empty dict', 'dict with None', 'MaskedLMOutput', 'MaskedLMOutput, logits None'],
    ...['Seq2SeqLMOutput', 'CausalLMOutputWithCrossAttentions', 'SquashedNormal'],
  ])
  /** Neither complex numbers nor `torch.Size`. */
  const NOT_HERE = ['complex', 'Size']

  it.each(Object.keys(outs))('%s', (name) => {
    const make = outs[name] ?? ((): unknown => null)
    const [loss, requires] = ['reduce_to_scalar_loss', 'requires_bwd_pass'].map((fn) => byName('helpers', fn).get(name))
    if (loss?.raises !== undefined) expect(() => reduceToScalarLoss(make())).toThrow(/don't know how to reduce/)
    else if (loss !== undefined) expect(shown(reduceToScalarLoss(make()))).toEqual(shown(decoder()(loss.result ?? null)))
    if (judged.has(name)) expect(requiresBwdPass(make())).toBe(name === 'dict')
    else if (requires?.raises !== undefined) expect(() => requiresBwdPass(make())).toThrow(/don't know how to reduce/)
    else if (requires !== undefined) expect(requiresBwdPass(make())).toBe(requires.result)
    expect(loss ?? requires).toBeDefined()
  })

  it('are tried on every recorded case', () => {
    const recorded = ['reduce_to_scalar_loss', 'requires_bwd_pass'].flatMap((fn) => [...byName('helpers', fn).keys()])
    expect([...new Set(recorded)].toSorted()).toEqual([...NOT_HERE, ...Object.keys(outs)].toSorted())
  })
})

describe('collectResults, as recorded', () => {
  type Results = readonly [model: Runnable, prediction: unknown, loss: Tensor | null, inputs: readonly unknown[]]
  /** A model after the backward of the sum of its output. */
  const after = (model: nn.Module, x: Tensor): Results => {
    const out = Reflect.apply(model, undefined, [x]) as Tensor
    out.sum().backward()
    return [model, out, null, [x]]
  }
  const models: Readonly<Record<string, () => Results>> = {
    'before any backward: zeros': () => {
      const [linear, x] = [fill(new nn.Linear(2, 1)), det([1, 2], { grad: true })]
      return [linear, linear.call(x), null, [x]]
    },
    'with a loss': () => {
      const [linear, x] = [fill(new nn.Linear(2, 1)), det([1, 2])]
      const out = linear.call(x) as Tensor
      const loss = out.sum()
      loss.backward()
      return [linear, out, loss, [x]]
    },
    BatchNorm: () => after(new Bn(), det([4, 3])),
    'list among the inputs': () => {
      const [a, b, c] = [det([2], { grad: true }), det([2]), det([2], { grad: true })]
      const out = a.mul(c)
      out.sum().backward()
      return [new nn.ReLU(), out, null, [[a, 3, b], c]]
    },
    'nested twice: not seen': () => {
      const x = det([2], { grad: true })
      const out = x.mul(2)
      out.sum().backward()
      return [new nn.ReLU(), out, null, [[[x]]]]
    },
    'numbers and None among the inputs': () => [new nn.ReLU(), null, null, [1, null, 'a']],
    'frozen parameter': () => {
      const linear = fill(new nn.Linear(2, 1))
      linear.bias?.requiresGrad_(false)
      return after(linear, det([1, 2]))
    },
    'shared parameter once': () => {
      const linear = new nn.Linear(2, 2)
      return after(fill(new nn.Sequential(linear, linear)), det([1, 2]))
    },
    'a function': () => [(x: Tensor) => x, null, null, [det([1])]],
    'nested module names': () => after(fill(new nn.Sequential(new nn.Sequential(new nn.Linear(1, 1)), new nn.BatchNorm1d(1))), det([3, 1])),
    'buffer that is not persistent is there too': () => {
      const module = new nn.Identity()
      module.registerBuffer('b', det([2]), { persistent: false })
      module.registerBuffer('none', null)
      return [module, null, null, []]
    },
    'unused parameter: zeros': () => {
      const module = new nn.Identity()
      module.registerParameter('w', new nn.Parameter(det([2])))
      return [module, 3, null, []]
    },
  }
  // An object of inputs is refused: PyTorch walks its keys.
  const REFUSED = 'inputs as a dict: keys are walked'
  const recorded = byName('helpers', 'collect_results')

  it.each(Object.keys(models))('%s', (name) => {
    const [model, prediction, loss, inputs] = models[name]?.() ?? [() => null, null, null, []]
    const run = (): unknown => collectResults(model as nn.Module, prediction, loss, inputs)
    if (recorded.get(name)?.raises !== undefined) return void expect(run).toThrow(/collectResults: model must be a Module/)
    expect(shown(run())).toEqual(shown((resultOf(recorded.get(name)).results as readonly Json[]).map(decoder())))
  })

  it('is tried on every recorded case', () => {
    expect(() => collectResults(new nn.ReLU(), null, null, { a: det([2]) } as never)).toThrow(/'exampleInputs' must be an array/)
    expectAll('collect_results', REFUSED, ...Object.keys(models))
  })
})

describe('cloneInputsRetainingGradness, as recorded', () => {
  const made: Readonly<Record<string, () => unknown[]>> = {
    'leaf that requires grad': () => [det([3], { grad: true })],
    'leaf with .grad': () => {
      const x = det([3], { grad: true })
      x.grad = torch.ones([3])
      return [x]
    },
    'non-leaf': () => [det([3], { grad: true }).mul(2)],
    'integers and booleans': () => [torch.tensor([1], { dtype: 'int64' }), torch.tensor([true])],
    transposed: () => [det([2, 3]).t()],
    expanded: () => [det([1, 3]).expand([2, 3])],
    'expanded that requires grad': () => [det([1, 3], { grad: true }).expand([2, 3])],
    'numbers, None, strings are the same objects': () => [1, 2.5, null, 'a'],
    'nested lists are the same objects': () => [[det([2])], [det([2])]],
    'the same tensor twice becomes two': () => {
      const x = det([3])
      return [x, x]
    },
    'view and base become two': () => {
      const x = det([4])
      return [x, x.narrow(0, 0, 2)]
    },
    Parameter: () => [new nn.Parameter(det([2]))],
    'zero-dimensional and empty': () => [det([]), torch.zeros([0, 3])],
    'channels last': () => [det([2, 2, 2, 2]).permute([0, 2, 3, 1]).contiguous().permute([0, 3, 1, 2])],
    'empty list': () => [],
  }
  const REFUSED = 'dict of inputs'
  const recorded = byName('helpers', 'clone_inputs_retaining_gradness')

  it.each(Object.keys(made))('%s', (name) => {
    const inputs = made[name]?.() ?? []
    const clones = cloneInputsRetainingGradness(inputs)
    const wanted = resultOf(recorded.get(name))
    expect(shown(clones)).toEqual(shown(decoder()(wanted.clones ?? null)))
    const each = clones.map((clone, i) => {
      if (!(clone instanceof torch.Tensor)) return { same_object: clone === inputs[i] }
      const { requiresGrad, isLeaf, grad, strides } = clone
      const data = grad === null ? null : { data: grad.toArray() }
      return { same_object: clone === inputs[i], requires_grad: requiresGrad, is_leaf: isLeaf, grad: data, stride: [...strides] }
    })
    expect(wanted.each).toMatchObject(each)
    const memoryOf = (values: readonly unknown[]): unknown[] => values.flatMap((value) => (value instanceof torch.Tensor ? [value.storage] : []))
    const memory = new Set([...memoryOf(inputs), ...memoryOf(clones)])
    expect(memory.size).toBe(new Set(memoryOf(inputs)).size + memoryOf(clones).length)
    expect(clones.map((clone) => clone instanceof torch.Tensor && clone.isParameter)).toEqual(inputs.map((input) => input instanceof nn.Parameter))
  })

  it('keeps the layout of what is only said to be expanded', () => {
    const row = det([6]).asStrided([1, 3], [0, 2])
    const clone = cloneInputsRetainingGradness([row])[0] as Tensor
    expect([clone.strides, clone.toArray()]).toEqual([[0, 2], row.toArray()])
  })

  it('is tried on every recorded case', () => {
    expect(() => cloneInputsRetainingGradness({ x: det([2]) } as never)).toThrow(/'inputs' must be an array/)
    expectAll('clone_inputs_retaining_gradness', REFUSED, ...Object.keys(made))
  })
})

describe('castToFp64, as recorded', () => {
  type Made = readonly [GraphModule, unknown[]]
  const linear = (dtype: DType): Made => [trace(fill(new nn.Linear(2, 2)).to(dtype)), [det([1, 2], { dtype, grad: true })]]
  const graph = (forward: (x: Tensor) => unknown, inputs: unknown[] = [det([4])]): Made => [trace(new G((_m, x: Tensor) => forward(x))), inputs]
  const models: Readonly<Record<string, () => Made>> = {
    'float16 model and input': () => linear('float16'),
    'bfloat16 model and input': () => linear('bfloat16'),
    'float32 model and input': () => linear('float32'),
    'integers and booleans stay': () => [
      trace(new G(({ n }, x: Tensor) => x.add(n ?? 0), {}, { n: torch.tensor([1, 2], { dtype: 'int64' }), b: torch.tensor([true]) })),
      [torch.tensor([1, 2], { dtype: 'int32' })],
    ],
    'inputs of all kinds': () =>
      graph(
        (x) => x,
        [det([2]), torch.tensor([1], { dtype: 'int8' }), torch.tensor([true]), 3, 2.5, null, 'a', [det([2]), { k: det([1], { dtype: 'float16' }) }]],
      ),
    'dtype keyword in the graph': () => graph((x) => x.to({ dtype: 'float32' }).sum()),
    'float16 dtype keyword in the graph': () => graph((x) => torch.zeros([2], { dtype: 'float16' }).add(x), [det([2])]),
    'int dtype keyword in the graph stays': () => graph((x) => x.to({ dtype: 'int64' }).sum()),
    'positional dtype of a method stays': () => graph((x) => x.to('float32').mul(2)),
    'x.float() stays': () => graph((x) => x.float().mul(2)),
    'prims.convert_element_type': () => graph((x) => x.to('float16')),
    'prims.convert_element_type to int stays': () => graph((x) => x.to('int32')),
    'parameters with gradients': () => {
      const gm = trace(fill(new nn.Linear(2, 1)))
      ;(gm.call(det([1, 2])) as Tensor).sum().backward()
      return [gm, [det([1, 2])]]
    },
    'tuple of inputs': () => [trace(fill(new nn.Linear(2, 1))), [det([1, 2])]],
    'shared parameter': () => [trace(new Shared()), [det([1, 2])]],
  }
  const recorded = byName('helpers', 'cast_to_fp64')
  /** Where PyTorch keeps what the graph converts to, so that its reference is not in float64 from there on (difference: float64-reference). */
  const KEPT = ['positional dtype of a method stays', 'x.float() stays']
  const NOT_HERE = ['float8 input', 'complex64 input and parameter']

  it.each(Object.keys(models))('%s', (name) => {
    const [gm, inputs] = models[name]?.() ?? linear('float32')
    const wanted = resultOf(recorded.get(name))
    const [before, code] = [JSON.stringify(shown([gm.stateDict(), inputs])), gm.code]
    const wide = castToFp64(gm, inputs)
    const decode = decoder()
    expect(shown(wide.inputs)).toEqual(shown(decode(wanted.inputs ?? null)))
    const tensors = (wide.inputs.flat() as unknown[]).filter((input) => input instanceof torch.Tensor)
    expect(tensors.map(({ requiresGrad }) => requiresGrad)).toEqual(
      (wanted.requires_grad as readonly (boolean | null)[]).filter((flag) => flag !== null).slice(0, tensors.length),
    )
    // The values that a graph has computed while it was traced are constants of ours, and are operators in PyTorch's, or the other way round.
    const held = Object.fromEntries([...wide.gm.namedParameters(), ...wide.gm.namedBuffers()])
    expect(shown(held)).toEqual(shown(Object.fromEntries(Object.entries(wanted.module ?? {}).map(([key, value]) => [key, decode(value as Json)]))))
    const output = wanted.output as Readonly<Record<string, Json>>
    if ('error' in output) expect(() => wide.gm.call(...wide.inputs)).not.toThrow()
    else expect(shown(wide.gm.call(...wide.inputs))).toEqual(shown(decode(KEPT.includes(name) ? { ...output, tensor: 'float64' } : output)))
    // PyTorch converts the model in place (difference: float64-reference).
    expect(wide.gm).not.toBe(gm)
    expect([JSON.stringify(shown([gm.stateDict(), inputs])), gm.code]).toEqual([before, code])
  })

  it('widens what the graph converts to, by methods and by functions', () => {
    for (const convert of [(x: Tensor) => x.half(), (x: Tensor) => x.bfloat16(), (x: Tensor) => x.float(), (x: Tensor) => x.to('float16')]) {
      const wide = castToFp64(...graph((x) => convert(x).mul(0.1), [det([4])]))
      expect(shown(wide.gm.call(...wide.inputs))).toEqual(shown(det([4], { dtype: 'float64' }).mul(0.1)))
    }
  })

  it('widens functions that convert, and leaves inputs of their names', () => {
    const graph = new Graph()
    const x = graph.placeholder('half')
    graph.output([graph.callFunction(half, [x]), graph.callFunction(torch.add, [x, 1])])
    const wide = castToFp64(new GraphModule({}, graph), [det([4])])
    expect(wide.gm.graph.findNodes({ op: 'placeholder' }).map(({ target }) => target)).toEqual(['half'])
    expect(shown(wide.gm.call(...wide.inputs))).toEqual(shown([det([4], { dtype: 'float64' }), det([4], { dtype: 'float64' }).add(1)]))
  })

  it('is tried on every recorded case', () => {
    expect(() => castToFp64(new Mlp() as never, [])).toThrow(/castToFp64: .*GraphModule/)
    expectAll('cast_to_fp64', 'a Module without a graph', ...NOT_HERE, ...Object.keys(models))
  })
})
