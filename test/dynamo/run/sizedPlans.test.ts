// What a graph with sizes keeps for each list of them: a row of launches. Planted faults show that a wrong row is found before its results are used.
import { beforeEach, describe, expect, it } from 'vitest'
import { compile, nn, noGrad, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { withConfig } from 'tensorfx/compile'
import { counters } from 'tensorfx/debug'
import { beyondLimit, collectBlocks, memoryLimit, setMemoryLimit } from 'tensorfx/kernels'
import { instructionOf } from '../../../src/dynamo/run/instruction.ts'
import { runPlan, sharing } from '../../../src/dynamo/run/launchPlan.ts'
import type { Launch, LaunchPlan } from '../../../src/dynamo/run/launchPlan.ts'
import { recordPlan } from '../../../src/dynamo/run/planRecorder.ts'
import type { RecordedProgram } from '../../../src/dynamo/run/planRecorder.ts'
import { SizedPlans, sameResults } from '../../../src/dynamo/run/sizedPlans.ts'
import { Step } from '../../../src/dynamo/tree/traceTree.ts'
import { SizedKernel } from '../../../src/inductor/sized/sizedKernel.ts'
import type { ArgStep } from '../../../src/dynamo/tree/traceTree.ts'
import { present } from '../../../src/errors/index.ts'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { opByName } from '../../../src/ops/index.ts'

const FILL = 0xff
const value = (constant: number | string | null): ArgStep => ({ kind: 'const', value: constant })
const slot = (at: number): ArgStep => ({ kind: 'slot', slot: at })

/** A step as capture records it; its first result is at slot `firstSlot`. */
function stepOf(parent: Step | null, name: string, args: readonly ArgStep[], results: readonly Tensor[], firstSlot: number): Step {
  const op = present(opByName(name), name)
  return new Step(parent, { op, args, results, single: true, firstSlot, stack: null, recording: false, sourceOffset: 0, isSized: false })
}

/** The steps of a program on x, at slot 0: two results, a temporary that both read, one that neither outlives, and a view. */
function program(x: Tensor): RecordedProgram {
  const calls: readonly (readonly [string, readonly ArgStep[]])[] = [
    ['torch.cat', [{ kind: 'list', items: [slot(0), slot(0)] }, value(0)]], // 1
    ['torch.mul', [slot(1), value(3)]], // 2
    ['torch.transpose', [slot(2), value(0), value(1)]], // 3
    ['torch.mm', [slot(2), slot(3)]], // 4
    ['torch.softmax', [slot(4), value(-1), value(null)]], // 5
    ['torch.exp', [slot(4)]], // 6
    ['torch.sub', [slot(6), slot(4), value(1)]], // 7
  ]
  let parent: Step | null = null
  const steps = calls.map(([name, args], i) => {
    const step = stepOf(parent, name, args, [x], i + 1)
    parent = step
    return step
  })
  return { instructions: steps.map(instructionOf), inputSlots: [0], outputs: [5, 7] }
}

const input = (rows: number): Tensor => torch.randn([rows, 4])
const recorded = (x: Tensor): { readonly outputs: readonly unknown[]; readonly plan: LaunchPlan } => {
  const { outputs, plan } = recordPlan(program(x), [x])
  return { outputs, plan: present(plan, 'the plan') }
}

const launchesOf = ({ actions }: LaunchPlan): Launch[] => actions.filter((action) => action.kind === 'launch')
/** The plan with another launch in the place of the one at `at` (among launches, from the end if negative); null: without it. */
function withLaunch(plan: LaunchPlan, at: number, change: (launch: Launch, all: readonly Launch[]) => Launch | null): LaunchPlan {
  const all = launchesOf(plan)
  const old = present(all.at(at), 'a launch')
  const changed = change(old, all)
  return { ...plan, actions: plan.actions.flatMap((action) => (action !== old ? [action] : changed === null ? [] : [changed])) }
}
const withNumber = (plan: LaunchPlan, at: number, position: (launch: Launch) => number, change: (n: number) => number): LaunchPlan =>
  withLaunch(plan, at, (launch) => ({ ...launch, args: launch.args.map((n, i) => (i === position(launch) ? change(n) : n)) }))
const firstNumber = ({ operands }: Launch): number => operands.length
const withOperand = (
  plan: LaunchPlan,
  at: number,
  position: number,
  change: (o: { base: number; bytes: number }) => { base: number; bytes: number },
): LaunchPlan =>
  withLaunch(plan, at, (launch) => ({ ...launch, operands: launch.operands.map((operand, i) => (i === position ? change(operand) : operand)) }))

/** Each makes a plan wrong in a way in which the compiler could. */
const faults: Readonly<Record<string, (plan: LaunchPlan) => LaunchPlan>> = {
  'the extent of a loop is one too small': (plan) => withNumber(plan, -1, firstNumber, (n) => n - 1),
  'a number of the program is another one': (plan) =>
    withNumber(
      plan,
      2,
      ({ args }) => args.length - 1,
      (n) => n + 1,
    ),
  'the second part of a cat is written one element too early': (plan) => withOperand(plan, 1, 0, ({ base, bytes }) => ({ base, bytes: bytes - 4 })),
  'a kernel reads one element further': (plan) => withOperand(plan, 2, 1, ({ base, bytes }) => ({ base, bytes: bytes + 4 })),
  'a kernel reads the input instead of a temporary': (plan) => withOperand(plan, 2, 1, () => ({ base: 1, bytes: 0 })),
  'a launch is left out': (plan) => withLaunch(plan, 1, () => null),
  'a kernel is that of another step': (plan) => withLaunch(plan, -2, (launch, all) => ({ ...launch, run: present(all[2], 'a launch').run })),
  'launches have changed places': (plan) => ({ ...plan, actions: [...plan.actions.slice(0, -2), ...plan.actions.slice(-2).toReversed()] }),
  'temporaries share their memory': (plan) => ({
    ...plan,
    actions: plan.actions.map((action) =>
      action.kind === 'launch'
        ? { ...action, operands: action.operands.map(({ base, bytes }) => ({ base, bytes: base === 0 ? bytes % 64 : bytes })) }
        : action,
    ),
  }),
  'a result has another shape': (plan) => ({
    ...plan,
    actions: plan.actions.map((action) => (action.kind === 'allocate' ? { ...action, like: torch.zeros([action.like.numel]) } : action)),
  }),
  'results have changed places': (plan) => ({ ...plan, outputs: plan.outputs.toReversed() }),
}

describe('a plan', () => {
  it('gives the bits of the operators, for other numbers of the same sizes too', () => {
    const { outputs, plan } = recorded(input(5))
    expect(launchesOf(plan).length).toBeGreaterThanOrEqual(7)
    expect(plan.arenaBytes).toBeGreaterThan(0)
    const x = input(5)
    const expected = recorded(x).outputs
    expect(sameResults(present(runPlan(plan, [x], FILL), 'results'), expected)).toBe(true)
    expect(sameResults(outputs, expected)).toBe(false)
  })

  it('reads an input that is a window of its memory where it is in this call', () => {
    const { plan } = recorded(torch.randn([9, 4]).narrow(0, 2, 5))
    const x = torch.randn([9, 4]).narrow(0, 4, 5)
    expect(sameResults(present(runPlan(plan, [x], FILL), 'results'), recorded(x).outputs)).toBe(true)
  })

  it('has bits to compare for rows without elements: their statistics are NaN, not what memory held', () => {
    const [, mean, rstd] = torch.ops.tensorfx.nativeLayerNorm(torch.zeros([2, 0]), [0], null, null, 1e-5)
    for (const statistic of [mean, rstd]) expect(statistic.toArray()).toEqual([[NaN], [NaN]])
  })

  it.each([true, false])('may exceed the memory limit where the program may, as an optimizer does: %s', (isAllowed) => {
    const x = torch.randn([512, 512])
    const step = (): Step => stepOf(null, 'torch.mul', [slot(0), value(3)], [x], 1)
    const instruction = instructionOf(isAllowed ? beyondLimit(step) : step())
    const { plan, outputs } = recordPlan({ instructions: [instruction], inputSlots: [0], outputs: [1] }, [x])
    const limit = memoryLimit()
    collectBlocks()
    setMemoryLimit(torch.memory.memoryAllocated() + x.numel)
    try {
      const got = runPlan(present(plan, 'the plan'), [x], FILL)
      expect(got === null ? null : sameResults(got, outputs)).toBe(isAllowed ? true : null)
    } finally {
      setMemoryLimit(limit)
    }
  })

  it('shares the launches that are equal to those of another plan, and both stay what they are', () => {
    const b = torch.randn([4, 4])
    const given = (x: Tensor): RecordedProgram => {
      const square = stepOf(null, 'torch.mm', [slot(1), slot(1)], [x], 2)
      const product = stepOf(square, 'torch.mm', [slot(0), slot(2)], [x], 3)
      const tanh = stepOf(product, 'torch.tanh', [slot(2)], [x], 4)
      return { instructions: [square, product, tanh].map(instructionOf), inputSlots: [0, 1], outputs: [3, 4] }
    }
    const planFor = (rows: number): LaunchPlan => present(recordPlan(given(input(rows)), [input(rows), b]).plan, 'the plan')
    const five = planFor(5)
    const six = sharing(planFor(6), five)
    const isShared = launchesOf(six).map((launch) => launchesOf(five).includes(launch))
    expect(isShared).toEqual([true, false, true])
    for (const [rows, plan] of [
      [5, five],
      [6, six],
      [5, five],
      [6, six],
    ] as const) {
      const x = input(rows)
      expect(sameResults(present(runPlan(plan, [x, b], FILL), 'results'), recordPlan(given(x), [x, b]).outputs)).toBe(true)
    }
  })

  it('is not made where two inputs share memory', () => {
    const x = input(6)
    const cat = stepOf(null, 'torch.add', [slot(0), slot(1), value(1)], [x], 2)
    const parts = [x.narrow(0, 0, 3), x.narrow(0, 3, 3)]
    expect(recordPlan({ instructions: [instructionOf(cat)], inputSlots: [0, 1], outputs: [2] }, parts).plan).toBeNull()
    expect(recordPlan({ instructions: [instructionOf(cat)], inputSlots: [0, 1], outputs: [2] }, [input(3), input(3)]).plan).not.toBeNull()
  })
})

it('a program whose tensor without elements is read by an operator before a kernel reads it runs at each call', () => {
  const f = compile(
    (x: Tensor) => {
      const norm = x.norm()
      const sum = torch.addcmul(norm, x, norm, { value: 0 })
      return [sum.cumsum(0).sum(), sum.norm()]
    },
    { dynamic: true },
  )
  for (let i = 0; i < 5; i++) expect(f(torch.zeros([0, 5, 1])).map((y) => y.item())).toEqual([0, 0])
})

describe('a planted fault', () => {
  beforeEach(() => counters.clear())

  it.each(Object.entries(faults))('%s: the comparison finds it, and the results are those of the operators', (_, plant) => {
    const [x, again] = [input(5), input(5)]
    const given = program(x)
    const plans = new SizedPlans(
      given,
      [{ dims: [{ min: 2, max: Infinity }, null], isStrided: false }],
      (inputs) => recordPlan(given, inputs).outputs,
      (...args) => {
        const { outputs, plan } = recordPlan(...args)
        return { outputs, plan: plan === null ? null : plant(plan) }
      },
    )
    for (let i = 0; i < 3; i++) plans.run([x])
    expect(counters.limits['verifySizes']).toBeUndefined()
    expect(sameResults(plans.run([x]), recorded(x).outputs)).toBe(true)
    expect(counters.limits['verifySizes']).toBe(1)
    expect(sameResults(plans.run([again]), recorded(again).outputs)).toBe(true)
    expect(counters.limits['verifySizes']).toBe(1)
  })

  it('a plan for other sizes, since a size is missing in the list: verifySizes finds it', () => {
    const given = program(input(5))
    const plans = new SizedPlans(given, [null], (inputs) => recordPlan(given, inputs).outputs)
    withConfig({ verifySizes: true }, () => {
      for (const rows of [5, 5, 4]) {
        const x = input(rows)
        expect(sameResults(plans.run([x]), recorded(x).outputs)).toBe(true)
      }
    })
    expect(counters.limits['verifySizes']).toBe(1)
  })
})

describe('what the caller writes to an input', () => {
  const [p, g] = [0, 1]
  type Call = readonly [name: string, ...args: readonly ArgStep[]]

  /** A program on two inputs: calls, whose results have the slots from 2 on. */
  const programOf = (calls: readonly Call[], outputs: readonly number[], writeBacks: readonly (readonly [number, number])[]): RecordedProgram => ({
    instructions: calls.map(([name, ...args], i) => instructionOf(stepOf(null, name, args, [torch.zeros([1])], i + 2))),
    inputSlots: [p, g],
    outputs,
    writeBacks: new Map(writeBacks),
  })
  const add = (a: number, b: number): Call => ['torch.add', slot(a), slot(b), value(1)]
  const square = (): Tensor => torch.randn([4, 4])

  /** The results of a plan for such inputs, beside those of the operators for the same values; and the inputs. */
  function both(
    given: RecordedProgram,
    make: () => Tensor = square,
  ): { readonly got: readonly Tensor[]; readonly inputs: readonly Tensor[]; readonly agree: boolean } {
    const plan = present(recordPlan(given, [make(), make()]).plan, 'the plan')
    const inputs = [make(), make()]
    const expected = recordPlan(
      given,
      inputs.map((input) => input.clone()),
    ).outputs
    const got = present(runPlan(plan, inputs, FILL), 'results')
    return { got, inputs, agree: sameResults(got, expected) }
  }

  it('is written there by the kernel that computes it', () => {
    const { got, inputs, agree } = both(programOf([['torch.mul', slot(g), value(3)], add(p, 2)], [3], [[0, 0]]))
    expect(agree).toBe(true)
    expect(got[0]).toBe(inputs[0])
  })

  it('is compared where it lies, in a window of the memory', () => {
    const { got, inputs, agree } = both(programOf([add(p, g)], [2], [[0, 0]]), () => torch.randn([8, 4]).narrow(0, 3, 4))
    expect(agree).toBe(true)
    expect(got[0]).toBe(inputs[0])
  })

  it('may be read from there by later kernels, and room for what follows is made before', () => {
    const { got, inputs, agree } = both(programOf([add(p, g), ['torch.mm', slot(2), slot(g)], ['torch.exp', slot(3)]], [2, 4], [[0, 0]]))
    expect(agree).toBe(true)
    expect(got[0]).toBe(inputs[0])
    const { plan } = recordPlan(programOf([add(p, g), ['torch.mm', slot(2), slot(g)], ['torch.exp', slot(3)]], [2, 4], [[0, 0]]), [
      square(),
      square(),
    ])
    const kinds = present(plan, 'the plan').actions.map(({ kind }) => kind)
    expect(kinds.lastIndexOf('allocate')).toBeLessThan(kinds.indexOf('launch'))
  })

  const turned = (): Tensor => square().t()
  const refused: Readonly<Record<string, readonly [RecordedProgram, (() => Tensor)?]>> = {
    'the old value is read afterwards': [programOf([add(p, g), add(p, g)], [2, 3], [[0, 0]])],
    'a view of the old value is read afterwards': [
      programOf([['torch.transpose', slot(p), value(0), value(1)], add(p, g), add(2, g)], [3, 4], [[0, 0]]),
    ],
    'the same kernel reads other elements of it': [programOf([['torch.transpose', slot(p), value(0), value(1)], add(p, 2)], [3], [[0, 0]])],
    'a product computes it': [programOf([['torch.mm', slot(p), slot(g)]], [2], [[0, 0]])],
    'the input is not contiguous': [programOf([add(p, g)], [2], [[0, 0]]), turned],
    'an operator runs afterwards, which may fail': [programOf([add(p, g), ['torch.cumsum', slot(g), value(0), value(null)]], [2, 3], [[0, 0]])],
    'two new values, each from both old ones: the second reads what the first has overwritten': [
      programOf([add(p, g), ['torch.sub', slot(p), slot(g), value(1)]], [2, 3], [[0, 0]]),
    ],
  }
  it.each(Object.entries(refused))('gets memory of its own if %s', (_, [given, make]) => {
    const { got, inputs, agree } = both(given, make)
    expect(agree).toBe(true)
    expect(got[0]).not.toBe(inputs[0])
  })

  it('drawn programs give the bits of the operators, and inputs that are not written stay as they are', () => {
    const { int: below } = randomFrom(28)
    let inPlace = 0
    for (let round = 0; round < 300; round++) {
      const calls: Call[] = []
      const any = (): number => below(calls.length + 2)
      for (let i = 2 + below(6); i > 0; i--) {
        const kinds: readonly Call[] = [
          add(any(), any()),
          add(any(), any()),
          ['torch.exp', slot(any())],
          ['torch.transpose', slot(any()), value(0), value(1)],
          ['torch.mm', slot(any()), slot(any())],
        ]
        calls.push(present(kinds[below(kinds.length)], 'a call'))
      }
      const views = new Set(calls.flatMap(([name], i) => (name === 'torch.transpose' ? [i + 2] : [])))
      const outputs = [...calls.keys()].map((i) => i + 2).filter((one) => !views.has(one) && below(2) === 0)
      const writeBacks = outputs.slice(0, 2).map((_, i): [number, number] => [i, i])
      const given = programOf(calls, outputs, writeBacks)
      if (recordPlan(given, [square(), square()]).plan === null) continue
      const { got, inputs, agree } = both(given)
      expect(agree).toBe(true)
      inPlace += got.filter((one) => inputs.includes(one)).length
    }
    expect(inPlace).toBeGreaterThan(60)
  })

  it.each([
    ['SGD', (net: nn.Module) => new optim.SGD(net.parameters(), { lr: 0.1 })],
    ['SGD with momentum, fused', (net: nn.Module) => new optim.SGD(net.parameters(), { lr: 0.1, momentum: 0.9 })],
  ])('%s: parameters are those of eager steps', (_, optimizerOf) => {
    const train = (wrap: (f: (x: Tensor) => Tensor) => (x: Tensor) => Tensor): nn.Module => {
      torch.manualSeed(5)
      const net = new nn.Sequential(new nn.Linear(64, 96), new nn.ReLU(), new nn.Linear(96, 64))
      const optimizer = optimizerOf(net)
      const step = wrap((x) => {
        optimizer.zeroGrad()
        const loss = net.call(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()
      })
      for (let i = 0; i < 60; i++) step(torch.randn([32 + (i % 6), 64]))
      return net
    }
    counters.clear()
    const [eager, compiled] = [train((f) => f), train((f) => compile(f, { dynamic: true, skipReplay: true }))]
    const twins = [...eager.parameters()]
    for (const [i, one] of [...compiled.parameters()].entries())
      expect(one.allclose(present(twins[i], 'a twin'), { rtol: 1e-3, atol: 1e-5 })).toBe(true)
    expect(counters.limits['verifySizes']).toBeUndefined()
  })
})

describe('a number of the program', () => {
  const number: ArgStep = { kind: 'scalar', slot: 1, number: 'any' }

  /** `x * n + n * x`, with x at slot 0 and n at slot 1; what gets recorded goes to `made`. */
  function scaled(x: Tensor): { readonly made: (LaunchPlan | null)[]; readonly differs: (n: number) => boolean } {
    const mul = stepOf(null, 'torch.mul', [slot(0), number], [x], 2)
    const add = stepOf(mul, 'torch.add', [slot(2), slot(0), number], [x], 3)
    const given = { instructions: [mul, add].map(instructionOf), inputSlots: [0, 1], outputs: [3] }
    const eagerly = (inputs: readonly unknown[]): readonly unknown[] => recordPlan(given, inputs).outputs
    const made: (LaunchPlan | null)[] = []
    const plans = new SizedPlans(given, [{ dims: [{ min: 2, max: Infinity }, null], isStrided: false }, null], eagerly, (...args) => {
      const result = recordPlan(...args)
      made.push(result.plan)
      return result
    })
    return { made, differs: (n) => !sameResults(plans.run([x, n]), eagerly([x, n])) }
  }

  const kinds = (plan: LaunchPlan | null | undefined): readonly string[] =>
    (plan?.actions ?? []).map(({ kind }) => kind).filter((kind) => kind !== 'allocate')

  it('is part of the plan for the lists that it comes with; zeros have signs', () => {
    const { made, differs } = scaled(input(5))
    const numbers = [0.5, 0, -0, 2, NaN]
    for (let i = 0; i < 6; i++) expect(numbers.filter(differs)).toEqual([])
    expect(made.map(kinds)).toEqual(numbers.map(() => ['launch', 'launch']))
  })

  it('is given to operators once it has had too many values for a plan each', () => {
    const { made, differs } = scaled(input(5))
    for (let i = 0; i < 5; i++) expect(differs(0.5)).toBe(false)
    for (let n = 0; n < 30; n++) expect(differs(n)).toBe(false)
    expect(differs(0.5)).toBe(false)
    expect(made.map(kinds)).toEqual([
      ['launch', 'launch'],
      ['call', 'call'],
    ])
  })

  it('as a learning rate is that of the call', () => {
    const train = (wrap: (f: (x: Tensor) => Tensor) => (x: Tensor) => Tensor): readonly number[] => {
      torch.manualSeed(3)
      const model = new nn.Linear(64, 32)
      const optimizer = new optim.SGD(model.parameters(), { lr: 0.1 })
      const step = wrap((x) => {
        optimizer.zeroGrad()
        const loss = model.call(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()
      })
      return Array.from({ length: 60 }, (_, i) => {
        for (const group of optimizer.paramGroups) group['lr'] = i % 20 < 15 ? 0.1 : 0.02
        return step(torch.randn([i % 4 === 3 ? 40 : 48, 64])).item()
      })
    }
    counters.clear()
    const eager = train((f) => f)
    const compiled = train((f) => compile(f, { dynamic: true, skipReplay: true }))
    compiled.forEach((loss, i) => expect(loss / present(eager[i], 'a loss')).toBeCloseTo(1, 4))
    expect(counters.limits['verifySizes']).toBeUndefined()
  })
})

describe('compile with sizes', () => {
  it('has kernels for any sizes for a training step with two lists of sizes, its optimizer among them, when it has come often', () => {
    const model = new nn.Sequential(new nn.Linear(64, 128), new nn.ReLU(), new nn.Linear(128, 64))
    const twin = new nn.Sequential(new nn.Linear(64, 128), new nn.ReLU(), new nn.Linear(128, 64))
    twin.loadStateDict(model.stateDict())
    const stepOn = (net: nn.Sequential): ((x: Tensor) => Tensor) => {
      const optimizer = new optim.SGD(net.parameters(), { lr: 0.1 })
      return (x) => {
        optimizer.zeroGrad()
        const loss = net.call(x).square().sum().mul(1e-4)
        loss.backward()
        optimizer.step()
        return loss.detach()
      }
    }
    const [eager, compiled] = [stepOn(twin), compile(stepOn(model), { dynamic: true, skipReplay: true })]
    counters.clear()
    let runs = 0
    const { run } = SizedKernel.prototype
    SizedKernel.prototype.run = function (this: SizedKernel, inputs) {
      runs++
      return run.call(this, inputs)
    }
    try {
      const train = (calls: number): void => {
        for (let i = 0; i < calls; i++) {
          const x = torch.randn([i % 4 === 1 ? 80 : 96, 64])
          expect(compiled(x).allclose(eager(x), { rtol: 1e-4 })).toBe(true)
        }
      }
      train(12)
      expect(runs).toBe(0)
      train(20)
    } finally {
      SizedKernel.prototype.run = run
    }
    expect(runs).toBeGreaterThan(0)
    expect(counters.limits['verifySizes']).toBeUndefined()
  })

  const f = (x: Tensor): Tensor => {
    const y = torch.cat([x, x.mul(2)])
    return y.matmul(y.t()).softmax(-1)
  }

  it.each([false, true])('gives eager results for sizes that come again (verifySizes: %s)', (verifySizes) => {
    counters.clear()
    withConfig({ verifySizes }, () => {
      const g = compile(f, { dynamic: true })
      for (const rows of [3, 5, 3, 5, 3, 8, 5, 3, 3, 5, 5, 3]) {
        const x = input(rows)
        noGrad(() => expect(g(x).toArray()).toEqual(f(x).toArray()))
      }
    })
    expect(counters.limits['verifySizes']).toBeUndefined()
  })
})
