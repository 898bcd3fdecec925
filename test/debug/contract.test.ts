// Level 4: wrong numbers in whatever graph they are, and what a backend promises beside right numbers. Each is an error that says what was wrong, and the program's
// memory is as it was.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compile, enableGrad, nn, noGrad, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config } from 'tensorfx/compile'
import { AccuracyError, MemoryFileStore, fileStore, setFileStore, setLogSink, wrapCompilerDebug } from 'tensorfx/debug'
import type { Backend } from '../../src/dynamo/index.ts'
import { symbolicTrace, wrap } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { asTensor } from '../../src/tensor/index.ts'
import { listen, pathOf, resetConfig, textOf, thrownBy } from './inProcess.ts'

const nodeStore = fileStore()
let store = new MemoryFileStore()
let said: [string, string][] = []
beforeEach(() => {
  store = new MemoryFileStore()
  setFileStore(store)
  said = listen()
  Object.assign(config, { debugDirRoot: '/dumps', reproAfter: 'dynamo', reproLevel: 4 })
})
afterEach(() => {
  setLogSink(null)
  setFileStore(nodeStore)
  resetConfig()
})

const launcher = (): string => textOf(store, pathOf(store, 'minifier_launcher.mjs'))
const errorsSaid = (): string[] => said.filter(([level]) => level === 'error').map(([, message]) => message)
type Run = (...inputs: readonly unknown[]) => unknown[]

/** A backend whose code is made from that of the graph; `isHere` says for which graphs. */
const spoiled =
  (change: (run: Run, gm: GraphModule) => Run, isHere: (gm: GraphModule) => boolean = () => true): Backend =>
  (gm) => {
    const run: Run = (...inputs) => gm.forward(...inputs) as unknown[]
    return isHere(gm) ? change(run, gm) : run
  }

const isBackward = (gm: GraphModule): boolean => gm.code.includes('tangents')
const isForward = (gm: GraphModule): boolean => !isBackward(gm)
const plus = (value: unknown, by: number): unknown => (value === null ? null : (value as Tensor).add(by))

function wrongBy(error: Error, message: RegExp): void {
  expect(error).toBeInstanceOf(AccuracyError)
  expect(error.message).toMatch(message)
}

describe('wrong numbers', () => {
  const wrongAt = (position: number, isHere: (gm: GraphModule) => boolean): Backend =>
    spoiled(
      (run) =>
        (...inputs) =>
          run(...inputs).map((value, i) => (i === position ? plus(value, 0.5) : value)),
      isHere,
    )
  const model = (): { readonly w: Tensor; readonly x: Tensor; readonly f: (x: Tensor) => Tensor } => {
    const w = torch.linspace(-1, 1, 6).reshape([3, 2]).requiresGrad_()
    return { w, x: torch.linspace(0.5, 2, 6).reshape([2, 3]).requiresGrad_(), f: (x) => torch.tanh(torch.sin(x).matmul(w)) }
  }

  it.each(['dynamo', 'aot'] as const)('after %s, of the forward: named, with the forward in the launcher', (reproAfter) => {
    config.reproAfter = reproAfter
    const { x, f } = model()
    const error = thrownBy(() => compile(f, { backend: wrongAt(0, isForward) })(x))
    wrongBy(error, /Bad accuracy detected.*the (forward )?graph __compiled_fn_\d+(_forward)?: Its numbers are wrong/)
    expect(String(error.cause)).toMatch(/output 0 \(tanh\w*\)/)
    expect(launcher()).toContain('torch.mm(')
    expect(launcher()).not.toContain('tangents')
  })

  const backwards: Readonly<Record<string, (y: Tensor, x: Tensor, w: Tensor) => unknown>> = {
    'backward()': (y) => y.sum().backward(),
    'autograd.grad': (y, x) => torch.autograd.grad([y.sum()], [x]),
    'a part of the outputs': (y) => y.slice(0, 0, 1).sum().backward(),
  }
  it.each((['dynamo', 'aot'] as const).flatMap((where) => Object.keys(backwards).map((name) => [where, name] as const)))(
    'after %s, of the backward alone, by %s: named, with the backward in the launcher',
    (reproAfter, name) => {
      config.reproAfter = reproAfter
      const { x, w, f } = model()
      const y = compile(f, { backend: wrongAt(0, isBackward) })(x)
      const error = thrownBy(() => backwards[name]?.(y, x, w))
      wrongBy(error, /the backward graph __compiled_fn_\d+_backward\w*: Its numbers are wrong/)
      expect(launcher()).toContain('tangents_1')
      expect([x.grad, w.grad]).toEqual([null, null])
    },
  )

  it('of the backward of one of two heads', () => {
    const { x, f } = model()
    const backend = wrongAt(0, isBackward)
    const [first] = compile((t: Tensor) => [f(t), torch.cos(t)] as const, { backend })(x)
    wrongBy(
      thrownBy(() => first.sum().backward()),
      /the backward graph/,
    )
  })

  it('that the forward saves for the backward, while every output and the backward itself are right', () => {
    const { x, f } = model()
    // The captured graph returns fewer values than its forward half; the rest is saved.
    let returned = 0
    const onGraph = (gm: GraphModule): void => void (returned = (gm.graph.outputNode().args[0] as unknown[]).length)
    const backend = spoiled(
      (run) =>
        (...inputs) =>
          run(...inputs).map((value, i) => (i >= returned && !inputs.includes(value) ? plus(value, 0.5) : value)),
      isForward,
    )
    const error = thrownBy(() => compile(f, { backend, onGraph })(x))
    wrongBy(error, /the forward graph __compiled_fn_\d+_forward: What it saves for the backward is wrong/)
  })

  it('that the forward of a later call saves: those of the call itself, and not of the run that judges it', () => {
    const { x, f } = model()
    let returned = 0
    const onGraph = (gm: GraphModule): void => void (returned = (gm.graph.outputNode().args[0] as unknown[]).length)
    let runs = 0
    const backend = spoiled(
      (run) =>
        (...inputs) => {
          runs++
          return run(...inputs).map((value, i) => (runs > 1 && i >= returned && !inputs.includes(value) ? plus(value, 0.5) : value))
        },
      isForward,
    )
    const g = compile(f, { backend, onGraph })
    g(x)
    expect(runs).toBeGreaterThan(1)
    wrongBy(
      thrownBy(() => g(x)),
      /What it saves for the backward is wrong/,
    )
  })

  it('of a whole training step that is one graph', () => {
    const { w, x } = model()
    const opt = new optim.SGD([w], { lr: 0.1, momentum: 0.9 })
    const step = (): Tensor => {
      opt.zeroGrad()
      const loss = torch.tanh(x.detach().matmul(w)).sum()
      loss.backward()
      opt.step()
      return loss
    }
    const before = w.toArray()
    let last = 0
    const backend = spoiled((run, gm) => {
      last = gm.graph.findNodes({ op: 'placeholder' }).length
      return (...inputs) => run(...inputs).map((value, i) => (i === 0 ? plus(value, 0.5) : value))
    })
    wrongBy(
      thrownBy(() => compile(step, { backend })()),
      /Its numbers are wrong/,
    )
    expect(last).toBeGreaterThan(0)
    // The writes of the step have taken effect as in eager mode, once.
    const other = torch.linspace(-1, 1, 6).reshape([3, 2]).requiresGrad_()
    const plain = new optim.SGD([other], { lr: 0.1, momentum: 0.9 })
    torch.tanh(x.detach().matmul(other)).sum().backward()
    plain.step()
    expect(w.toArray()).not.toEqual(before)
    expect(w.toArray()).toEqual(other.toArray())
  })

  it('in a region without gradients, and beside a custom Function', () => {
    const { x, w } = model()
    const f = (t: Tensor): Tensor => noGrad(() => enableGrad(() => t.mul(2)).matmul(w))
    wrongBy(
      thrownBy(() => compile(f, { backend: wrongAt(0, () => true) })(x)),
      /numbers/,
    )
  })

  it('of a backward are not looked for with reproForwardOnly', () => {
    config.reproForwardOnly = true
    const { x, f } = model()
    compile(f, { backend: wrongAt(0, isBackward) })(x)
      .sum()
      .backward()
    expect(x.grad).not.toBe(null)
  })

  it('are none: nothing is written or said, and gradients are those without the debugger', () => {
    const gradients = (): unknown => {
      const { w, x, f } = model()
      compile(f)(x).sum().backward()
      return [x.grad?.toArray(), w.grad?.toArray()]
    }
    const checked = gradients()
    config.reproAfter = null
    expect(gradients()).toEqual(checked)
    expect([...store.files.keys()]).toEqual([])
    expect(said).toEqual([])
  })
})

describe('a check that cannot run', () => {
  it('is an error in the log, once for each graph, and the program goes on', () => {
    // What a backend is asked to compile is read again for each check: an attribute that only the program can compute.
    let isProgram = true
    const once = wrap(
      (x: Tensor): Tensor => {
        if (!isProgram) throw new RangeError('only in the program')
        return torch.sin(x)
      },
      { name: 'once' },
    )
    const gm = symbolicTrace((x: Tensor) => [once(x)])
    const code = wrapCompilerDebug(
      () =>
        (x: Tensor): Tensor[] => [torch.sin(x)],
      'other',
    )(gm, [torch.ones([2])]) as Run
    isProgram = false
    for (let i = 0; i < 2; i++) expect((code(torch.ones([2]))[0] as Tensor).toArray()).toEqual(torch.sin(torch.ones([2])).toArray())
    expect(errorsSaid()).toHaveLength(1)
    expect(errorsSaid()[0]).toMatch(
      /^Level 4 did not check the graph GraphModule of backend 'other': it fails on eager kernels: RangeError: .*only in the program$/s,
    )
  })

  it('is silent at other levels', () => {
    config.reproLevel = 2
    compile((t: Tensor) => torch.sin(t))(torch.ones([2]))
    expect(said).toEqual([])
  })
})

describe('what a backend promises', () => {
  const x = (): Tensor => torch.tensor([1, 2, 3])

  it('inputs that the graph does not write stay as they are', () => {
    const backend = spoiled((run) => (...inputs) => {
      const out = run(...inputs)
      ;(inputs[0] as Tensor).fill_(7)
      return out
    })
    const input = x()
    const error = thrownBy(() => compile((t: Tensor) => t.mul(2).add(1), { backend })(input))
    wrongBy(error, /Input 0 \('l_t_'\) was overwritten, and the graph does not write to it/)
    expect(input.toArray()).toEqual([1, 2, 3])
    expect(launcher()).toContain('torch.mul')
  })

  it('inputs that the graph writes may be written, with the value of the graph', () => {
    const input = x()
    const f = compile((t: Tensor) => t.mul_(2).add(1))
    expect([f(input).toArray(), input.toArray(), said]).toEqual([[3, 5, 7], [2, 4, 6], []])
  })

  it('a written input that gets another value is wrong', () => {
    const backend: Backend = (gm) =>
      Object.assign(
        (...inputs: readonly Tensor[]) => {
          const out = gm.forward(...inputs) as Tensor[]
          inputs[0]?.fill_(9)
          return out
        },
        { writtenInPlace: new Set([0]) },
      )
    const input = x()
    wrongBy(
      thrownBy(() => compile((t: Tensor) => t.mul_(2).add(1), { backend })(input)),
      /Input 0 .* was overwritten/,
    )
    // The program's write took place, once.
    expect(input.toArray()).toEqual([2, 4, 6])
  })

  it('an output is not used again by the next call', () => {
    const backend = spoiled((run) => {
      const buffer = torch.empty([3])
      return (...inputs) => [buffer.copy_(run(...inputs)[0] as Tensor)]
    })
    wrongBy(
      thrownBy(() => compile((t: Tensor) => t.mul(2), { backend })(x())),
      /Output 0 \('mul'\) lies in memory that the next call uses again/,
    )
  })

  it('nor by a later call, while the program has it', () => {
    const make = (count: number): Backend =>
      spoiled((run) => {
        const buffers = Array.from({ length: count }, () => torch.empty([3]))
        let next = 0
        return (...inputs) => [(buffers[next++ % count] as Tensor).copy_(run(...inputs)[0] as Tensor)]
      })
    const f = compile((t: Tensor) => t.mul(2), { backend: make(4) })
    const first = f(x())
    const second = f(x().add(1))
    expect(first.toArray()).toEqual([2, 4, 6])
    const error = thrownBy(() => {
      for (let i = 2; i < 5; i++) f(x().add(i))
    })
    wrongBy(error, /The call overwrote output 0 \('mul'\) of call \d+: its memory was used again, while the program still has it/)
    expect([first.toArray(), second.toArray()]).toEqual([
      [2, 4, 6],
      [4, 6, 8],
    ])
  })

  it('a result that the program itself has overwritten is its own affair', () => {
    const f = compile((t: Tensor) => t.mul(2))
    const first = f(x())
    first.fill_(5)
    f(x())
    f(first)
    expect([first.toArray(), said]).toEqual([[5, 5, 5], []])
  })

  it('no output lies in the memory of an input, unless it does on eager kernels', () => {
    const aliasing: Backend = () => (t: Tensor) => [t]
    wrongBy(
      thrownBy(() => compile((t: Tensor) => t.add(0), { backend: aliasing })(x())),
      /Output 0 \('add'\) lies in the memory of input 0 \('l_t_'\)/,
    )
    const y = compile((t: Tensor) => t.reshape([3, 1]), { backend: (gm) => gm })(x())
    expect(y.shape).toEqual([3, 1])
  })

  it('what shares memory with the new value of an input on eager kernels may lie in it', () => {
    const w = torch.ones([3])
    compile(() => void w.unsqueeze(1).addcmul_(torch.full([1], 2), torch.full([1], 3)))()
    expect([w.toArray(), said]).toEqual([[7, 7, 7], []])
  })

  it.each([
    [2, /7 of 8|[1-7] of 8/],
    [3, /[1-7] of 8/],
  ])('the same inputs give the same result: every %dth run is wrong', (every, rate) => {
    const backend = spoiled((run) => {
      let calls = 0
      return (...inputs) => (++calls % every === 0 ? run(...inputs).map((value) => plus(value, 1)) : run(...inputs))
    })
    const f = compile((t: Tensor) => t.mul(2), { backend })
    const error = thrownBy(() => {
      for (let i = 0; i < 4; i++) f(x())
    })
    wrongBy(error, /do not always give the same result: .* runs had wrong numbers/)
    expect(error.message).toMatch(rate)
    expect(error.message).not.toContain('Its numbers are wrong')
  })

  it('a second run that throws is a failure that comes and goes', () => {
    const backend = spoiled((run) => {
      let calls = 0
      return (...inputs) => {
        if (++calls % 2 === 0) throw new RangeError('only once')
        return run(...inputs)
      }
    })
    const error = thrownBy(() => compile((t: Tensor) => t.mul(2), { backend })(x()))
    wrongBy(error, /4 of 8 runs had wrong numbers or threw/)
    expect(String(error.cause)).toContain('only once')
  })

  it('rounding in another order is no other result', () => {
    const model = new nn.Linear(64, 64)
    const backend = spoiled((run) => {
      let calls = 0
      return (...inputs) => run(...inputs).map((value) => (value as Tensor).mul(1 + (++calls % 2) * 1e-7))
    })
    const f = compile((t: Tensor) => torch.relu(model.forward(t)), { backend })
    noGrad(() => f(torch.randn([4, 64])))
    expect(said).toEqual([])
  })
})

describe('memory', () => {
  it('the calls that a script could replay are shared where nothing has changed', async () => {
    const { CallHistory } = await import('../../src/debug/runs/history.ts')
    const history = new CallHistory(3)
    const w = torch.ones([4])
    const calls = [1, 2, 3, 4].map((k) => history.add([w, torch.full([2], k)]))
    expect(history.calls).toEqual(calls.slice(1))
    expect(new Set(calls.map(([first]) => first)).size).toBe(1)
    expect(new Set(calls.map(([, second]) => second)).size).toBe(4)
    w.fill_(2)
    expect((history.add([w, 1])[0] as Tensor).toArray()).toEqual([2, 2, 2, 2])
    expect(asTensor(calls[0]?.at(0), 'the first input').toArray()).toEqual([1, 1, 1, 1])
  })
})
