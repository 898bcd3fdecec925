// A mixture of experts, whose shapes follow the routing: hardly two calls of a Mixtral take the same path. Compiled, it computes what it computes eagerly, and its calls are captured ever more
// seldom, so that all of them together take as long as eager ones, plus a constant. Time is counted: one for each call of the model, 100 for each graph.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Tensor, compile, optim, torch } from 'tensorfx'
import type { nn } from 'tensorfx'
import type { Backend } from 'tensorfx/compile'
import { isCompiling, reset, withConfig } from 'tensorfx/compile'
import { Mixtral } from 'tensorfx/models'
import { clock } from '../../src/dynamo/tree/budget.ts'
import { turn } from '../helpers/rotation.ts'

type Model = nn.Module & ((tokens: Tensor) => Tensor)

const config = {
  vocabSize: 24,
  hiddenSize: 16,
  intermediateSize: 24,
  numHiddenLayers: 2,
  numAttentionHeads: 4,
  numKeyValueHeads: 2,
  numLocalExperts: 4,
}

const GRAPH = 100
const CALLS = 64
const { now } = clock
let time = 0
let compiling = 0
/** How often each graph ran. */
let uses: number[] = []
const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})

beforeEach(() => {
  time = 0
  compiling = 0
  uses = []
  clock.now = () => time
})
afterEach(() => {
  clock.now = now
  warn.mockClear()
  reset()
})

const backend: Backend = (gm) => {
  time += GRAPH
  compiling += GRAPH
  const at = uses.push(0) - 1
  return (...inputs) => {
    uses[at] = (uses[at] ?? 0) + 1
    return gm.forward(...inputs) as readonly Tensor[]
  }
}

/** Times, after a call. */
interface Spent {
  readonly compiling: number
  /** For graphs that were used once. */
  readonly once: number
  readonly calls: number
}

interface Program {
  /** One call, given a sentence; what it gives is compared. */
  readonly run: (tokens: Tensor) => Tensor
  /** What the calls have left in the end. */
  readonly state: () => Tensor[]
}

/** `wrap` compiles, and `called` is called whenever the model is. */
const programs: Readonly<
  Record<string, (wrap: <A extends Tensor[]>(fn: (...args: A) => Tensor) => (...args: A) => Tensor, called: () => void) => Program>
> = {
  'the forward': (wrap, called) => {
    const { model, forward } = mixtral(called)
    return { run: wrap(forward), state: () => parametersOf(model) }
  },
  'a training step': (wrap, called) => {
    const { model, forward } = mixtral(called)
    const optimizer = new optim.SGD(parametersOf(model), { lr: 0.01 })
    return { run: wrap((tokens: Tensor) => trained(optimizer, forward, tokens)), state: () => parametersOf(model) }
  },
}

const parametersOf = (model: Model): Tensor[] => [...model.parameters()]

function mixtral(called: () => void): { readonly model: Model; readonly forward: (tokens: Tensor) => Tensor } {
  torch.manualSeed(1)
  const model = new Mixtral(config)
  return {
    model,
    forward: (tokens) => {
      called()
      return model(tokens)
    },
  }
}

function trained(optimizer: optim.Optimizer, forward: (tokens: Tensor) => Tensor, tokens: Tensor): Tensor {
  optimizer.zeroGrad()
  const loss = forward(tokens).square().mean()
  loss.backward()
  optimizer.step()
  return loss.detach()
}

/** Sentences of the same shape, which are routed differently. */
function sentences(count: number): Tensor[] {
  torch.manualSeed(2)
  return Array.from({ length: count }, () => torch.randint(0, 24, [2, 6]))
}

describe.each(turn(Object.entries(programs)))('%s of a Mixtral', (_, make) => {
  /** Runs the calls, compiled against eager: which of them were captured, and what was spent after each. */
  function compared(): { readonly captured: boolean[]; readonly spent: Spent[] } {
    let wasCaptured = false
    const called = (): void => {
      time++
      wasCaptured = isCompiling()
    }
    const eager = make(
      (fn) => fn,
      () => {},
    )
    const compiled = make((fn) => compile(fn, { backend }), called)
    const captured: boolean[] = []
    const spent: Spent[] = []
    for (const tokens of sentences(CALLS)) {
      expect(torch.allclose(compiled.run(tokens), eager.run(tokens), { rtol: 1e-4, atol: 1e-6 })).toBe(true)
      captured.push(wasCaptured)
      spent.push({ compiling, once: GRAPH * uses.filter((count) => count < 2).length, calls: time - compiling })
    }
    const expected = eager.state()
    for (const [i, parameter] of compiled.state().entries())
      expect(torch.allclose(parameter, expected[i] ?? parameter.add(1), { rtol: 1e-3, atol: 1e-5 })).toBe(true)
    return { captured, spent }
  }

  it('compiles up to the limit, and then captures ever fewer calls', () => {
    withConfig({ compileBudget: 1e6 }, () => {
      const { captured, spent } = compared()
      const last = spent.findIndex((after) => after.compiling === spent.at(-1)?.compiling)
      expect(last).toBeLessThan(CALLS / 4)
      const later = captured.slice(last + 1).filter(Boolean).length
      expect(later).toBeGreaterThan(0)
      expect(later).toBeLessThanOrEqual(1 + Math.log2(CALLS))
    })
  }, 120_000)

  it('compiles graphs that are used once for at most the budget, what its calls took and one graph', () => {
    withConfig({ compileBudget: 1000, recompileLimit: 10_000 }, () => {
      const { captured, spent } = compared()
      for (const after of spent) expect(after.once).toBeLessThanOrEqual(1000 + after.calls + GRAPH)
      expect(spent.at(-1)?.compiling).toBeGreaterThanOrEqual(1000)
      expect(captured.filter(Boolean).length).toBeLessThanOrEqual(2 * Math.log2(CALLS))
    })
  }, 120_000)
})
