// PyTorch's functions that run models and compare them, on recorded models: the Python sources of test/goldens/debug3 in TypeScript. Where ours differ, the reason is said.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config } from 'tensorfx/compile'
import {
  cloneInputsRetainingGradness,
  collectResults,
  reduceToScalarLoss,
  requiresBwdPass,
  runFwdMaybeBwd,
  sameTwoModels,
  setLogSink,
} from 'tensorfx/debug'
import type { Runnable } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import { listen, resetConfig } from './inProcess.ts'
import { Bn, G, MaskedLMOutput, Mlp, backwardTimes, det, fill } from './prelude.ts'
import { casesOf, decoder, optionsOf } from './recorded.ts'
import type { Case, Json } from './recorded.ts'

let said: (readonly [string, string])[] = []
beforeEach(() => {
  said = listen()
  torch.manualSeed(7)
})
afterEach(() => {
  setLogSink(null)
  resetConfig()
})

const trace = symbolicTrace

/** `running_mean` as `runningMean`, in names of parameters and buffers. */
const camel = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** What is compared: numbers to five digits, what is left of sums that cancel as zero, under our names. */
function shown(value: unknown): unknown {
  if (value instanceof torch.Tensor)
    return {
      shape: [...value.shape],
      dtype: value.dtype,
      values: Array.from(value.toTypedArray(), (x) => (Math.abs(x) < 1e-6 ? 0 : Number(x.toPrecision(5)))),
    }
  if (Array.isArray(value)) return value.map(shown)
  if (value instanceof Map) return shown(Object.fromEntries(value))
  if (typeof value === 'object' && value !== null) return Object.fromEntries(Object.entries(value).map(([key, item]) => [camel(key), shown(item)]))
  return value
}

function byName(file: string, fn?: string): ReadonlyMap<string, Case> {
  return new Map(casesOf(file).flatMap((one) => (fn === undefined || one.function === fn ? [[one.name, one] as const] : [])))
}

describe('runFwdMaybeBwd, as recorded', () => {
  const input = (): Tensor => det([5, 3], { grad: true })
  const many = class extends nn.Module {
    forward(n: number, x: Tensor, _none: null, xs: readonly [Tensor, Tensor]): Tensor {
      return x.mul(n).add(xs[0].mul(xs[1]))
    }
  }
  const shared = class extends nn.Module {
    readonly a = fill(new nn.Linear(3, 3))
    readonly b = this.a
    forward(x: Tensor): Tensor {
      return this.b(this.a(x))
    }
  }
  const post = (fn: (y: Tensor) => unknown): Runnable => trace(new Mlp(fn))
  const withInput = (model: Runnable, x = input()): readonly [Runnable, readonly unknown[]] => [model, [x]]
  const models: Readonly<Record<string, () => readonly [Runnable, readonly unknown[]]>> = {
    'two layers': () => withInput(trace(new Mlp())),
    'two layers, not traced': () => withInput(new Mlp()),
    'two layers, only forward': () => withInput(trace(new Mlp())),
    'two layers, disable_clone, second call adds up': () => {
      const x = input()
      x.grad = torch.ones([5, 3])
      return withInput(trace(new Mlp()), x)
    },
    'input has a gradient before': () => {
      const x = input()
      x.grad = torch.ones([5, 3])
      return withInput(trace(new Mlp()), x)
    },
    'parameters have gradients before': () => {
      const gm = trace(new Mlp())
      ;(gm.call(det([5, 3])) as Tensor).sum().backward()
      return withInput(gm)
    },
    'frozen parameter': () => {
      const net = new Mlp()
      net.lin1.weight.requiresGrad_(false)
      return withInput(trace(net))
    },
    'no parameters, gradient': () => withInput(trace(new G((_m, x: Tensor) => x.mul(x))), det([3], { grad: true })),
    'under no_grad nothing to do': () => withInput(trace(new G((_m, x: Tensor) => x.mul(x).detach())), det([3], { grad: true })),
    'BatchNorm while training': () => withInput(trace(new Bn())),
    'BatchNorm in eval': () => withInput(trace(new Bn()).eval()),
    'tuple of outputs': () => withInput(post((y) => [y, y.mul(y)])),
    'tuple of outputs of different size: each counts the same': () => withInput(post((y) => [y, y.select(0, 0).select(0, 0)])),
    'list of list': () => withInput(post((y) => [y, [y.mul(2), y.mul(3)]])),
    'class output': () => withInput(new Mlp((y) => new MaskedLMOutput(y.sum(), y))),
    'int output': () => withInput(new G(() => 5), det([3])),
    'float output': () => withInput(new G(() => 0.5), det([3])),
    'string output': () => withInput(new G(() => 'a'), det([3])),
    'tuple with None, gradient': () => withInput(post((y) => [y, null])),
    'tuple with int, gradient': () => withInput(post((y) => [y, 3])),
    'tuple with an integer tensor, gradient': () => withInput(post((y) => [y, y.argmax(1)])),
    'zero-dimensional output': () => withInput(post((y) => y.sum())),
    'in-place write of the input': () => withInput(trace(new G((_m, x: Tensor) => x.add_(1).mul(2))), det([3])),
    'in-place write of the input, disable_clone': () => withInput(trace(new G((_m, x: Tensor) => x.add_(1).mul(2))), det([3])),
    'buffer counter': () => withInput(trace(new G(({ n }, x: Tensor) => x.add(n?.add_(1) as Tensor), {}, { n: torch.zeros([1]) })), det([3])),
    'plain function': () => withInput((x: Tensor) => x.mul(2), det([3], { grad: true })),
    'plain function, only forward': () => withInput((x: Tensor) => x.mul(2), det([3], { grad: true })),
    'inputs: number, tensor, None, list of tensors': () => [
      new many(),
      [2, det([3], { grad: true }), null, [det([3], { k: 1, grad: true }), det([3], { k: 2, grad: true })]],
    ],
    'non-leaf input that requires grad': () => withInput(trace(new G((_m, x: Tensor) => x.mul(3))), det([3], { grad: true }).mul(2)),
    'expanded input': () => withInput(trace(new G((_m, x: Tensor) => x.mul(3))), det([1, 2]).expand([3, 2])),
    'shared parameter': () => withInput(trace(new shared()), det([2, 3])),
    'compiled module: the prefix of the names goes': () => withInput(compile(new Mlp(), { backend: 'eager' })),
    'float16 model': () => withInput(trace(new Mlp().half()), det([2, 3], { dtype: 'float16' })),
  }
  const recorded = byName('run-fwd-maybe-bwd')

  it.each(Object.keys(models))('%s', (name) => {
    const one = recorded.get(name)
    const make = models[name]
    if (one === undefined || make === undefined) throw new Error(`no recorded case ${name}`)
    const [model, inputs] = make()
    const before = JSON.stringify(shown([model instanceof nn.Module ? model.stateDict() : null, inputs]))
    const run = (): unknown => runFwdMaybeBwd(model, inputs, optionsOf(one.options))
    // A class output has its prediction in a field, and a function has parameters too: PyTorch refuses both.
    if (name === 'class output' || name === 'plain function') return void expect(run).not.toThrow()
    if (one.raises !== undefined) return void expect(run).toThrow(/don't know how to reduce/)
    const result = run()
    const wanted = one.result as Readonly<Record<string, Json>>
    const decode = decoder()
    const parts = ['output', 'loss', 'parameter gradients', 'parameters', 'buffers'].map((part) => decode(wanted[part] ?? null))
    const all = [...parts, ...((wanted['input gradients'] ?? []) as readonly Json[]).map(decode)]
    // PyTorch's numbers of steps and means of the state are dicts too: they are compared by our names.
    expect(shown(result)).toEqual(shown(one.options?.only_fwd === true ? parts[0] : all))
    if (one.options?.disable_clone !== true)
      expect(JSON.stringify(shown([model instanceof nn.Module ? model.stateDict() : null, inputs]))).toBe(before)
  })

  it('one tensor given twice gets the sum of its gradients, as in the program (difference: shared-inputs)', () => {
    const x = det([3], { grad: true })
    const [, , , , , first, second] = runFwdMaybeBwd((a: Tensor, b: Tensor) => a.mul(b), [x, x]) as Tensor[]
    expect(first?.toArray()).toEqual(second?.toArray())
    expect(first?.toArray()).toEqual(x.mul(2).div(3).toArray())
  })
})

describe('sameTwoModels, as recorded', () => {
  const of = (): Tensor => det([5, 3], { grad: true })
  type Pair = readonly [gm: nn.Module, opt: Runnable, inputs: readonly unknown[]]
  const mlp = (fn?: (y: Tensor) => unknown, x: Tensor = of()): Pair => [trace(new Mlp()), new Mlp(fn), [x]]
  const g = (right: (x: Tensor) => unknown, wrong: (x: Tensor) => unknown, x: Tensor): Pair => [
    trace(new G((_m, v: Tensor) => right(v))),
    new G((_m, v: Tensor) => wrong(v)),
    [x],
  ]
  class Noted extends Bn {
    readonly note: (bn: nn.BatchNorm1d) => void
    constructor(note: (bn: nn.BatchNorm1d) => void) {
      super()
      this.note = note
    }
    override forward(x: Tensor): Tensor {
      const y = super.forward(x)
      torch.noGrad(() => this.note(this.bn))
      return y
    }
  }
  class Wrapper extends nn.Module {
    readonly inner = new Mlp()
    forward(x: Tensor): unknown {
      return this.inner(x)
    }
  }
  class WritesBias extends Mlp {
    override forward(x: Tensor): unknown {
      const y = super.forward(x)
      torch.noGrad(() => this.lin1.bias?.add_(1))
      return y
    }
  }
  const count = (bn: nn.BatchNorm1d): void => void bn.numBatchesTracked?.add_(1)
  const factors = (...values: number[]): Tensor => torch.tensor(values)
  const boom = (): never => {
    throw new RangeError('no kernel')
  }
  const one =
    (wrong: number): ((y: Tensor) => Tensor) =>
    (y) =>
      y.add(torch.tensor(Array.from({ length: 10 }, (_, i) => (i === 5 ? wrong : 0))).reshape([5, 2]))
  const dropout = (x: Tensor): Tensor => torch.nn.functional.dropout(x, 0.5, true)
  const dropped = (wrong: (x: Tensor) => Tensor): Pair => [
    trace(new nn.Sequential(new nn.Dropout(0.5))),
    new G((_m, x: Tensor) => wrong(x)),
    [det([8, 8], { grad: true })],
  ]
  const closed = (post?: (y: Tensor) => unknown): ((x: Tensor) => unknown) => {
    const own = new Mlp(post)
    return (x) => own.call(x)
  }

  const models: Readonly<Record<string, () => Pair>> = {
    itself: () => {
      const gm = trace(new Mlp())
      return [gm, gm, [of()]]
    },
    'equal module': () => mlp(),
    'equal, only forward': () => mlp(),
    'output off by 1e-3': () => mlp((y) => y.add(1e-3)),
    'output off by 5e-5 only': () => mlp((y) => y.add(5e-5)),
    'one element of ten wrong': () => mlp(one(1)),
    'backward wrong': () => mlp((y) => backwardTimes(y, 1.5)),
    'backward wrong, input without gradient': () => mlp((y) => backwardTimes(y, 1.5), det([5, 3])),
    'backward wrong by 1e-4 relative': () => mlp((y) => backwardTimes(y, 1.0001)),
    'backward gives no gradient: zero stands for none': () => mlp((y) => y.detach()),
    'output wrong by 100, opt is a plain function': () => [trace(new Mlp()), closed((y) => y.add(100)), [of()]],
    'output wrong by 100, opt is a plain function, only forward': () => [trace(new Mlp()), closed((y) => y.add(100)), [of()]],
    'right, opt is a plain function, only forward': () => [trace(new Mlp()), closed(), [of()]],
    'opt is compiled': () => {
      const gm = trace(new Mlp())
      return [gm, compile(gm, { backend: 'eager' }), [of()]]
    },
    'opt is a compiled function': () => [
      trace(new Mlp()),
      compile(
        closed((y) => y.mul(1.5)),
        { backend: 'eager' },
      ),
      [of()],
    ],
    'opt is a wrapper module: other parameter names': () => [trace(new Mlp()), new Wrapper(), [of()]],
    'opt throws': () => mlp(boom),
    'gm throws': () =>
      g(
        (x) => torch.mm(x, x),
        (x) => x,
        det([5, 3]),
      ),
    'opt returns a list of one instead of a tensor': () => mlp((y) => [y]),
    'gm returns a tuple, opt a shorter one': () => [trace(new Mlp((y) => [y, y.mul(2)])), new Mlp((y) => [y]), [of()]],
    'opt returns another dtype': () => mlp((y) => y.double()),
    'opt returns another shape': () => mlp((y) => y.reshape([2, 5])),
    'BatchNorm, right': () => [trace(new Bn()), new Bn(), [of()]],
    'BatchNorm, num_batches_tracked wrong': () => [trace(new Bn()), new Noted(count), [of()]],
    'BatchNorm, num_batches_tracked wrong, ignore_non_fp': () => [trace(new Bn()), new Noted(count), [of()]],
    'BatchNorm, running mean wrong, only forward': () => [trace(new Bn()), new Noted((bn) => void bn.runningMean?.mul_(1.5)), [of()]],
    'dropout while training, itself': () => dropped(dropout),
    'dropout while training, output wrong by 50 percent': () => dropped((x) => dropout(x).mul(1.5)),
    'dropout while training, no dropout in opt': () => dropped((x) => x.mul(1)),
    'opt overwrites its input beside the right result': () =>
      g(
        (x) => x.mul(2),
        (x) => [x.mul(2), x.fill_(7)][0],
        det([2, 3]),
      ),
    'gm writes its input, opt does not': () =>
      g(
        (x) => x.add_(1).mul(2),
        (x) => x.add(1).mul(2),
        det([2, 3]),
      ),
    'opt writes a parameter': () => [trace(new Mlp()), new WritesBias(), [of()]],
    'gm is a Module without a graph': () => [new Mlp(), new Mlp(), [of()]],
    'gm is a Module without a graph, require_fp64': () => [new Mlp(), new Mlp(), [of()]],
    'gm is a Module without a graph, output off by 1e-3': () => [new Mlp(), new Mlp((y) => y.add(1e-3)), [of()]],
    'gm without a graph, output wrong, ignore_non_fp': () => [new Mlp(), new Mlp((y) => y.mul(3)), [of()]],
    'class outputs, only forward': () => [
      new Mlp((y) => new MaskedLMOutput(y.sum(), y)),
      new Mlp((y) => new MaskedLMOutput(y.sum(), y.add(1))),
      [of()],
    ],
    'dict outputs': () => {
      const gm = trace(new Mlp((y) => ({ a: y })))
      return [gm, gm, [of()]]
    },
    'dict outputs, only forward, off': () => [trace(new Mlp((y) => ({ a: y, b: y.mul(2) }))), new Mlp((y) => ({ a: y, b: y.mul(3) })), [of()]],
    'integer output off': () =>
      g(
        (x) => [x.mul(2), x.gt(0).to('int64')],
        (x) => [x.mul(2), x.ge(0).to('int64').add(1)],
        det([2, 3]),
      ),
    'bool output off': () =>
      g(
        (x) => [x.mul(2), x.gt(0)],
        (x) => [x.mul(2), x.lt(0)],
        det([2, 3]),
      ),
    'integer inputs, require_fp64': () =>
      g(
        (x) => x.add(1),
        (x) => x.add(2),
        torch.tensor([1, 2], { dtype: 'int64' }),
      ),
    'nan in all, another element wrong': () =>
      g(
        (x) => x.log(),
        (x) => x.log().mul(factors(1, 3, 1)),
        torch.tensor([-1, 2, 3]),
      ),
    'inf in all, another element wrong': () =>
      g(
        (x) => x.reciprocal(),
        (x) => x.reciprocal().mul(factors(1, 3, 1)),
        torch.tensor([0, 2, 3]),
      ),
    'float32 cancels, opt is more exact': () =>
      g(
        (x) => x.add(1e6).sub(1e6),
        (x) => x.mul(1),
        torch.tensor([0.3, 0.7, 0.11]),
      ),
    'tolerance of the config': () => mlp((y) => y.add(5e-3)),
    'tolerance of the config, too small': () => mlp((y) => y.add(5e-3)),
    'x.to(float32) in the graph': () =>
      g(
        (x) => x.to('float32').mul(3),
        (x) => x.mul(3.001),
        det([4]),
      ),
    'integer output that requires nothing, float does': () => [trace(new Mlp((y) => [y, y.argmax(1)])), new Mlp((y) => [y, y.argmin(1)]), [of()]],
    'None among the outputs, backward': () => {
      const gm = trace(new Mlp((y) => [y, null]))
      return [gm, gm, [of()]]
    },
    'None among the outputs, no gradient': () =>
      g(
        (x) => [x.mul(2), null],
        (x) => [x.mul(3), null],
        det([3]),
      ),
  }
  /** Our answers where they are others, by reason. */
  const differently: Readonly<Record<string, Readonly<Record<string, boolean>>>> = {
    'functions are judged, their parameters found (difference: judged-functions)': {
      'output wrong by 100, opt is a plain function': false,
      'opt is a compiled function': false,
    },
    'what cannot run is not the same (difference: not-judged)': { 'opt throws': false },
    'buffers and written inputs are compared, after a forward alone too (difference: written-inputs)': {
      'BatchNorm, running mean wrong, only forward': false,
      'opt overwrites its input beside the right result': false,
      'gm writes its input, opt does not': false,
    },
    'all runs draw the same random numbers (difference: same-random-numbers)': {
      'dropout while training, output wrong by 50 percent': false,
      'dropout while training, no dropout in opt': false,
    },
    'NaN hides nothing (difference: nan-by-place)': { 'nan in all, another element wrong': false, 'inf in all, another element wrong': false },
    'floats are compared whatever is ignored (difference: floats-count)': { 'gm without a graph, output wrong, ignore_non_fp': false },
    'other names and structures are no error (difference: structures-differ)': {
      'opt is a wrapper module: other parameter names': true,
      'opt returns a list of one instead of a tensor': false,
      'opt returns another shape': false,
      'dict outputs': true,
      'None among the outputs, backward': true,
    },
  }
  const ours = new Map(Object.values(differently).flatMap((cases) => Object.entries(cases)))
  const recorded = byName('same-two-models')

  it.each(Object.keys(models))('%s', (name) => {
    const found = recorded.get(name)
    const make = models[name]
    if (found === undefined || make === undefined) throw new Error(`no recorded case ${name}`)
    if (found.config?.repro_tolerance !== undefined) config.reproTolerance = Number(found.config.repro_tolerance)
    const [gm, opt, inputs] = make()
    const state = torch.getRngState()
    const before = JSON.stringify(shown([gm.stateDict(), inputs]))
    const run = (): boolean => sameTwoModels(gm, opt, inputs, optionsOf(found.options))
    const answer = ours.get(name) ?? found.result
    if (answer !== undefined && answer !== null)
      expect([run(), said]).toEqual([
        answer,
        answer === true ? expect.not.arrayContaining([['error', expect.anything()]]) : expect.arrayContaining([['error', expect.any(String)]]),
      ])
    else expect(run).toThrow()
    expect(JSON.stringify(shown([gm.stateDict(), inputs]))).toBe(before)
    expect(torch.getRngState()).toEqual(state)
  })

  // (difference: judged-functions) (difference: not-judged) (difference: written-inputs) (difference: same-random-numbers) (difference: structures-differ)
  it('our other answers are to recorded questions', () => {
    for (const [name, answer] of ours)
      expect([name, recorded.get(name)?.raises !== undefined || recorded.get(name)?.result === !answer]).toEqual([name, true])
  })
})

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
  }
  /** Outputs that have a loss require a backward pass: PyTorch refuses them only here (difference: structures-differ). */
  const judged = new Set(['dict', 'empty dict', 'MaskedLMOutput', 'Seq2SeqLMOutput', 'CausalLMOutputWithCrossAttentions', 'SquashedNormal'])

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
})

describe('collectResults and cloneInputsRetainingGradness, as recorded', () => {
  const recorded = byName('helpers', 'collect_results')
  const results = (name: string): unknown =>
    shown((recorded.get(name)?.result as { readonly results: readonly Json[] } | undefined)?.results.map(decoder()))

  it('collects gradients, zeros for those that are missing, parameters, buffers, and gradients of inputs', () => {
    const linear = fill(new nn.Linear(2, 1))
    const x = det([1, 2], { grad: true })
    expect(shown(collectResults(linear, linear(x), null, [x]))).toEqual(results('before any backward: zeros'))
    const loss = linear(det([1, 2])).sum()
    loss.backward()
    expect(shown(collectResults(linear, linear(det([1, 2])), loss, [det([1, 2])]))).toEqual(results('with a loss'))
    const frozen = fill(new nn.Linear(2, 1))
    frozen.bias?.requiresGrad_(false)
    const out = frozen(det([1, 2]))
    out.sum().backward()
    expect(shown(collectResults(frozen, out, null, [det([1, 2])]))).toEqual(results('frozen parameter'))
    expect(() => collectResults((v: Tensor) => v, null, null, [])).toThrow(/collectResults: model must be a Module/)
  })

  it('looks into lists of inputs, one level deep', () => {
    const [a, b, c] = [det([2], { grad: true }), det([2]), det([2], { grad: true })]
    const out = a.mul(c)
    out.sum().backward()
    expect(shown(collectResults(new nn.ReLU(), out, null, [[a, 3, b], c]))).toEqual(results('list among the inputs'))
    const [deep] = [det([2], { grad: true })]
    expect(collectResults(new nn.ReLU(), null, null, [[[deep]], 1, null, 'a'])).toHaveLength(5)
  })

  it('clones tensors with layout, requiresGrad and gradient; nothing else', () => {
    const x = det([3], { grad: true })
    x.grad = torch.ones([3])
    const inner = [det([2])]
    const inputs = [x, x.mul(2), det([2, 3]).t(), det([1, 3]).expand([2, 3]), x, 1, null, 'a', inner, new nn.Parameter(det([2]))]
    const clones = cloneInputsRetainingGradness(inputs)
    const [first, later, turned, wide, again, ...rest] = clones as [Tensor, Tensor, Tensor, Tensor, Tensor, ...unknown[]]
    expect(shown(clones.slice(0, 5))).toEqual(shown(inputs.slice(0, 5)))
    expect([first === x, first.requiresGrad, first.grad?.toArray(), first.grad === x.grad]).toEqual([false, true, [1, 1, 1], false])
    expect([later.requiresGrad, later.isLeaf, later.grad, turned.strides, wide.strides, again === first]).toEqual([
      true,
      true,
      null,
      [1, 3],
      [3, 1],
      false,
    ])
    expect(rest.slice(0, 3)).toEqual([1, null, 'a'])
    expect(rest[3]).toBe(inner)
    expect((rest[4] as Tensor).isParameter).toBe(true)
  })
})
