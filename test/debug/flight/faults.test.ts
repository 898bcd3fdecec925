// Faults that are planted into trainings: the recorder names the step, the operator and the element, in eager and in compiled code.
import { describe, expect, it } from 'vitest'
import { nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import { MODES, batch, firstReport, training, withElement } from './training.ts'
import type { Mode } from './training.ts'

/** Batches, the one of step `at` changed. */
function* batches(at: number, change: (x: Tensor, y: Tensor) => [Tensor, Tensor], count = at + 3): Generator<[Tensor, Tensor]> {
  for (let i = 0; i < count; i++) {
    const [x, y] = batch()
    yield i === at ? change(x, y) : [x, y]
  }
}

/** A fault that one element of the input sets off. */
interface Fault {
  readonly name: string
  /** What the model does with the hidden values; `x` is the input, whose first column is 1 in healthy batches. */
  readonly between: (hidden: Tensor, x: Tensor) => Tensor
  readonly trigger: number
  readonly operator: string
  readonly phase: 'forward' | 'backward'
  readonly element: number
  readonly gradFn?: string
  readonly computedBy?: string
}

const column = (x: Tensor): Tensor => x.select(1, 0).unsqueeze(1)

const FAULTS: readonly Fault[] = [
  { name: 'log of a negative number', between: (h, x) => h.add(column(x).log()), trigger: -2, operator: 'log', phase: 'forward', element: NaN },
  { name: 'log of zero', between: (h, x) => h.add(column(x).log()), trigger: 0, operator: 'log', phase: 'forward', element: -Infinity },
  {
    name: 'division by zero',
    between: (h, x) => h.add(torch.ones([3, 1]).div(column(x))),
    trigger: 0,
    operator: 'div',
    phase: 'forward',
    element: Infinity,
  },
  {
    name: 'overflow of float16',
    between: (h, x) => h.add(column(x).to('float16').mul(30_000).to('float32').mul(1e-5)),
    trigger: 3,
    operator: 'mul',
    phase: 'forward',
    element: Infinity,
  },
  {
    name: 'the derivative of a root at zero',
    between: (h, x) => h.mul(column(x)).abs().sqrt(),
    trigger: 0,
    operator: 'sqrt',
    phase: 'backward',
    element: Infinity,
    gradFn: 'SqrtBackward0',
    computedBy: 'reciprocal',
  },
  {
    name: 'zero times infinity in the backward',
    between: (h, x) => h.mul(column(x)).abs().sqrt().mul(column(x)),
    trigger: 0,
    operator: 'sqrt',
    phase: 'backward',
    element: NaN,
    gradFn: 'SqrtBackward0',
    computedBy: 'reciprocal',
  },
]

const healthy = (x: Tensor): Tensor => torch.cat([torch.ones([3, 1]), x.narrow(1, 1, 3)], 1)

describe.each(MODES)('%s', (mode) => {
  it.each(FAULTS.map((fault, i) => [fault.name, fault, i] as const))('%s', (_, fault, i) => {
    torch.manualSeed(i)
    const { int: draw } = randomFrom(i + MODES.indexOf(mode) * 100)
    const [at, row] = [1 + draw(6), draw(3)]
    const all = function* (): Generator<[Tensor, Tensor]> {
      let step = 0
      for (const [x, y] of batches(at, (a, b) => [a, b])) yield [step++ === at ? withElement(healthy(x), [row, 0], fault.trigger) : healthy(x), y]
    }
    const report = firstReport(training(mode, fault.between), all(), { steps: 1 + draw(8) })
    expect(report).toMatchObject({
      step: at,
      noticed: at,
      compiled: mode === 'eager' ? null : 'eager has it too',
      origin: {
        ...{
          kind: 'operator',
          operator: fault.operator,
          phase: fault.phase,
          element: fault.phase === 'backward' ? expect.any(Number) : fault.element,
        },
        ...{ gradFn: fault.gradFn ?? null, computedBy: fault.computedBy ?? fault.operator },
      },
    })
    const { origin } = report ?? {}
    if (origin?.kind !== 'operator') throw new Error('no operator')
    expect(origin.index[0]).toBe(row)
    // Dropout may make NaN of an infinity.
    if (fault.phase === 'forward') expect(origin.element).toBe(fault.element)
    else expect(Number.isFinite(origin.element)).toBe(false)
    // The line of this file in which the program called the operator.
    const line = origin.stack?.frames.at(-1)
    expect(line?.file).toMatch(/faults\.test\.ts$/)
    expect(String(report)).toContain(`Step ${at} went wrong`)
  })

  it('a batch that is bad already', () => {
    torch.manualSeed(1)
    const report = firstReport(
      training(mode),
      batches(3, (x, y) => [withElement(x, [2, 1], NaN), y]),
    )
    expect(report).toMatchObject({ step: 3, trigger: { kind: 'loss' }, origin: { kind: 'input', name: 'input 0', index: [2, 1], element: NaN } })
    expect(String(report)).toContain('input 0 was NaN at [2, 1] when the step started. No operator is at fault.')
  })

  it('a weight that the program spoils between two steps', () => {
    torch.manualSeed(2)
    const made = training(mode)
    const spoil = (step: number): void => {
      if (step === 2) torch.noGrad(() => made.model.last.weight.select(1, 3).fill_(Infinity))
    }
    const report = firstReport(
      made,
      batches(9, (x, y) => [x, y]),
      {},
      spoil,
    )
    expect(report).toMatchObject({
      step: 2,
      noticed: 2,
      origin: { kind: 'parameter', name: 'last.weight', index: [0, 3], element: Infinity, wasGood: true },
    })
  })

  it('a weight that an earlier step made bad, if only losses are looked at', () => {
    torch.manualSeed(3)
    // The gradient of a bias before batch normalization is rounding noise: where it is 0 in compiled code and not in the replay, one has NaN and the other Infinity.
    const made = training(mode, undefined, (model) => new optim.SGD(model.last.parameters(), { lr: 0.01 }))
    const rate = (step: number): void => {
      for (const group of made.optimizer.paramGroups) group.lr = step === 3 ? Infinity : 0.01
    }
    const report = firstReport(
      made,
      batches(9, (x, y) => [x, y]),
      { check: ['loss'] },
      rate,
    )
    expect(report).toMatchObject({ step: 3, noticed: 4, trigger: { kind: 'loss' }, origin: { kind: 'operator', phase: 'optimizer' } })
    expect(String(report)).toMatch(/Step 3 went wrong: the loss is (NaN|-?Infinity), noticed after step 4/)
  })

  it('an optimizer that divides by zero', () => {
    torch.manualSeed(4)
    // The last layer's gradient is exactly 0 where the hidden values are 0.
    const made = training(
      mode,
      (hidden) => hidden.mul(0),
      (model) => new optim.Adam(model.parameters(), { lr: 0.01, eps: 0 }),
    )
    const report = firstReport(
      made,
      batches(5, (x, y) => [x, y]),
    )
    expect(report).toMatchObject({
      step: 0,
      trigger: { kind: 'parameter', value: NaN },
      origin: { kind: 'operator', phase: 'optimizer', operator: 'addcdiv_', element: NaN },
    })
    expect(String(report)).toContain('It was first written to ')
  })

  it('a learning rate that explodes', () => {
    torch.manualSeed(5)
    const made = training(mode, undefined, (model) => new optim.SGD(model.parameters(), { lr: 0.01 }))
    const rate = (step: number): void => {
      for (const group of made.optimizer.paramGroups) group.lr = step === 7 ? 300 : 0.01
    }
    const report = firstReport(
      made,
      batches(12, (x, y) => [x, y]),
      {},
      rate,
    )
    expect(report).toMatchObject({ step: 8, noticed: 8, trigger: { kind: 'jump' }, origin: { kind: 'jump' } })
    if (report?.origin.kind !== 'jump') throw new Error('no jump')
    const [change] = report.origin.changes
    expect(change?.update).toBeGreaterThan(100 * (change?.usualUpdate ?? Infinity))
    expect(report.origin.inputs.map(({ name }) => name)).toEqual(['input 0', 'input 1'])
  })
})

it('is quiet in healthy trainings, masks and infinities that belong to the program included', () => {
  class Attention extends nn.Module {
    query = new nn.Linear(4, 4)
    constructor() {
      super()
      this.registerBuffer('mask', torch.triu(torch.full([5, 5], -Infinity), 1))
    }
    override forward(x: Tensor): Tensor {
      const mask = this.getBuffer('mask')
      return torch.softmax(this.query(x).matmul(x.transpose(0, 1)).add(mask), -1).matmul(x)
    }
  }
  for (let seed = 0; seed < 50; seed++) {
    torch.manualSeed(seed)
    const mode: Mode = MODES[seed % 20 === 0 ? 1 : seed % 25 === 0 ? 2 : 0] ?? 'eager'
    const made = training(mode, seed % 2 === 0 ? undefined : (h) => h.relu().mul(2), (model) =>
      seed % 3 === 0
        ? new optim.SGD(model.parameters(), { lr: 0.01 })
        : seed % 3 === 1
          ? new optim.AdamW(model.parameters(), { lr: 0.01 })
          : new optim.RMSprop(model.parameters(), { lr: 0.02 }),
    )
    const count = 8
    expect(
      firstReport(
        made,
        batches(count, (x, y) => [x, y]),
        { steps: 6 },
      ),
    ).toBeNull()
  }
  const model = new Attention()
  const optimizer = new optim.SGD(model.parameters(), { lr: 0.1 })
  const step = (x: Tensor): Tensor => {
    optimizer.zeroGrad()
    const loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss
  }
  const made = { model, optimizer, step } as unknown as Parameters<typeof firstReport>[0]
  const inputs = function* (bad: number): Generator<[Tensor, Tensor]> {
    for (let i = 0; i < 6; i++) yield [i === bad ? torch.randn([5, 4]).mul(1e30) : torch.randn([5, 4]), torch.ones([1])]
  }
  expect(firstReport(made, inputs(-1))).toBeNull()
  // Now the scores overflow: the mask's infinities are not blamed.
  expect(firstReport(made, inputs(4))).toMatchObject({ step: 4, origin: { kind: 'operator', operator: 'mm' } })
})
