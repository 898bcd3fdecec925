// PyTorch's functions that run models and compare them, on recorded models: the Python sources of test/goldens/debug3 in TypeScript. Where ours differ, the reason is said.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config } from 'tensorfx/compile'
import { runFwdMaybeBwd, sameTwoModels, setLogSink } from 'tensorfx/debug'
import type { Runnable } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import { listen, resetConfig } from './inProcess.ts'
import { Bn, G, MaskedLMOutput, Mlp, Shared, backwardTimes, det, fill } from './prelude.ts'
import { byName, decoder, optionsOf, shown } from './recorded.ts'
import type { Json } from './recorded.ts'

let said: (readonly [string, string])[] = []
beforeEach(() => {
  said = listen()
  // The recorded numbers are those of separate multiplications and additions: fused ones round some of the five digits the other way.
  torch.useDeterministicAlgorithms(true)
  torch.manualSeed(7)
})
afterEach(() => {
  setLogSink(null)
  resetConfig()
  torch.useDeterministicAlgorithms(false)
})

const trace = symbolicTrace

describe('runFwdMaybeBwd, as recorded', () => {
  const input = (): Tensor => det([5, 3], { grad: true })
  const many = class extends nn.Module {
    forward(n: number, x: Tensor, _none: null, xs: readonly [Tensor, Tensor]): Tensor {
      return x.mul(n).add(xs[0].mul(xs[1]))
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
    'shared parameter': () => withInput(trace(new Shared(3)), det([2, 3])),
    'compiled module: the prefix of the names goes': () => withInput(compile(new Mlp(), { backend: 'eager' })),
    'float16 model': () => withInput(trace(new Mlp().half()), det([2, 3], { dtype: 'float16' })),
    'dropout p=1 while training': () => withInput(trace(fill(new nn.Sequential(new nn.Linear(3, 2), new nn.Dropout(1)))), det([2, 3])),
    'class output, only forward': () => withInput(new Mlp((y) => new MaskedLMOutput(y.sum(), y))),
    'parameter that is not used: zero gradient': () =>
      withInput(trace(new G(({ w }, x: Tensor) => x.mul(w ?? 0), { w: det([3], { k: 1 }), unused: det([2]) })), det([3])),
    'convolution and pooling': () => {
      const net = new nn.Sequential(new nn.Conv2d(1, 2, 3), new nn.ReLU(), new nn.MaxPool2d(2), new nn.Flatten(), new nn.Linear(2, 2))
      return withInput(trace(fill(net)), det([2, 1, 4, 4], { grad: true }))
    },
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

  it('is tried on every recorded case', () => {
    // There are no complex numbers, and no functions that take all inputs in one list; the same tensor twice comes next.
    const notHere = ['complex output', 'boxed function, only forward', 'the same tensor twice: two clones']
    expect([...recorded.keys()].toSorted()).toEqual([...notHere, ...Object.keys(models)].toSorted())
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
  class MovedBefore extends Bn {
    override forward(x: Tensor): Tensor {
      torch.noGrad(() => this.bn.runningMean?.add_(0.5))
      return super.forward(x)
    }
  }
  class Scaled extends nn.Module {
    forward(x: Tensor, n: number): Tensor {
      return x.mul(n)
    }
  }
  class WritesFirst extends nn.Module {
    forward(x: Tensor, y: Tensor): Tensor {
      x.add_(1)
      return y.mul(2)
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
    'backward wrong, opt is a bound method of a GraphModule': () => {
      const wrong = new Mlp((y) => backwardTimes(y, 1.5))
      return [trace(new Mlp()), wrong.forward.bind(wrong), [of()]]
    },
    'gm returns a tuple, opt a list': () => [trace(new Mlp((y) => [y, y.mul(2)])), new Mlp((y) => [y, y.mul(2)]), [of()]],
    'BatchNorm, gm and opt have gradients and statistics before': () => {
      const [gm, opt] = [trace(new Bn()), new Bn()]
      for (const model of [gm, opt]) (model.call(det([5, 3], { k: 1 })) as Tensor).pow(2).sum().backward()
      const x = of()
      x.grad = torch.ones([5, 3])
      return [gm, opt, [x]]
    },
    'BatchNorm, running mean wrong, written before the layer runs': () => [trace(new Bn()), new MovedBefore(), [of()]],
    'dropout in eval, itself': () => {
      const gm = trace(new nn.Sequential(new nn.Dropout(0.5))).eval()
      return [gm, gm, [det([8, 8], { grad: true })]]
    },
    'in-place write of an input that requires grad': () => {
      const gm = trace(new G((_m, x: Tensor) => x.add_(1).mul(2)))
      return [gm, gm, [det([2, 3], { grad: true })]]
    },
    'float16 model, within 3 times': () => {
      const w = (): Readonly<Record<string, Tensor>> => ({ w: det([4], { dtype: 'float16' }) })
      const gm = trace(new G((m, x: Tensor) => x.mul(m.w ?? 0).sum(1), w()))
      const opt = new G(
        (m, x: Tensor) =>
          x
            .float()
            .mul(m.w?.float() ?? 0)
            .sum(1)
            .half(),
        w(),
      )
      return [gm, opt, [det([3, 4], { dtype: 'float16', k: 2 })]]
    },
    'float32 dtype argument in the graph': () =>
      g(
        (x) => x.to({ dtype: 'float32' }).sum().add(0),
        (x) => torch.sum(x).add(1e-3),
        det([4]),
      ),
    'shared parameter': () => [trace(new Shared(3)), new Shared(3, (y) => y.mul(1.01)), [det([2, 3])]],
    'inputs that are numbers': () => [trace(new Scaled()), new Scaled(), [det([3], { grad: true }), 2]],
    'input is a view of another, written in place': () => {
      const x = det([4])
      return [trace(new WritesFirst()), new WritesFirst(), [x, x.narrow(0, 0, 2)]]
    },
  }
  /** Our answers where they are others, by reason. */
  const differently: Readonly<Record<string, Readonly<Record<string, boolean>>>> = {
    'functions are judged, their parameters found (difference: judged-functions)': {
      'output wrong by 100, opt is a plain function': false,
      'opt is a compiled function': false,
      'backward wrong, opt is a bound method of a GraphModule': false,
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
    // No function takes all inputs in one list.
    expect([...recorded.keys()].toSorted()).toEqual(['opt is boxed', ...Object.keys(models)].toSorted())
    for (const [name, answer] of ours)
      expect([name, recorded.get(name)?.raises !== undefined || recorded.get(name)?.result === !answer]).toEqual([name, true])
  })
})
