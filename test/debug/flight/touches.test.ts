// A recorded training computes what the training computes alone, bit for bit, also when steps were rewound and run again in between.
import { expect, it } from 'vitest'
import { compile, nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { flightRecorder } from 'tensorfx/debug'
import type { FlightReport } from 'tensorfx/debug'
import { MODES, batch, training } from './training.ts'
import type { MakeOptimizer, Training } from './training.ts'

const OPTIMIZERS: readonly MakeOptimizer[] = [
  (model) => new optim.SGD(model.parameters(), { lr: 0.02, momentum: 0.9 }),
  (model) => new optim.AdamW(model.parameters(), { lr: 0.01, amsgrad: true }),
]

/** Everything that a training has: data, versions, gradients, the optimizer's state, the random stream. */
function fingerprint({ model, optimizer }: Training, losses: readonly Tensor[]): unknown {
  const bits = (tensor: Tensor): readonly unknown[] => [
    tensor.shape,
    tensor.dtype,
    [...new Uint8Array(tensor.contiguous().toTypedArray().slice().buffer)],
  ]
  const { state } = optimizer.stateDict()
  return {
    weights: [...model.stateDict()].map(([name, value]) => [name, bits(value as Tensor), (value as Tensor).storage?.version]),
    grads: [...model.parameters()].map((p) => (p.grad === null ? null : bits(p.grad))),
    state: Object.values(state).map((one) => Object.entries(one).map(([key, value]) => [key, value instanceof torch.Tensor ? bits(value) : value])),
    groups: optimizer.paramGroups.map(({ params, ...rest }) => [params.length, rest]),
    losses: losses.map((loss) => loss.item()),
    random: torch.getRngState(),
    training: model.training,
  }
}

interface Run {
  readonly result: unknown
  readonly reports: readonly FlightReport[]
  readonly backwards: number
}

function run(mode: (typeof MODES)[number], makeOptimizer: MakeOptimizer, recorded: boolean, spoiled: number | null): Run {
  torch.manualSeed(7)
  const made = training(mode, undefined, makeOptimizer)
  let backwards = 0
  const weight = made.model.last.weight as unknown as Tensor
  weight.registerHook(() => void backwards++)
  const reports: FlightReport[] = []
  using recorder = flightRecorder({
    model: made.model,
    optimizer: made.optimizer,
    steps: 3,
    dir: null,
    onTrouble: (report) => void reports.push(report),
  })
  const losses: Tensor[] = []
  for (let i = 0; i < 6; i++) {
    const [x, y] = batch()
    const target = i === spoiled ? y.add(1e25) : y
    losses.push(recorded ? recorder.step(made.step, x, target) : made.step(x, target))
  }
  return { result: fingerprint(made, losses), reports, backwards }
}

it.each(MODES.flatMap((mode) => OPTIMIZERS.map((make, i) => [mode, i, make] as const)))('%s, optimizer %i', (mode, _, make) => {
  const [plain, recorded] = [run(mode, make, false, null), run(mode, make, true, null)]
  expect(recorded.result).toEqual(plain.result)
  expect(recorded.reports).toEqual([])
  expect(recorded.backwards).toBe(plain.backwards)
  const [spoiled, explained] = [run(mode, make, false, 3), run(mode, make, true, 3)]
  expect(explained.reports).toHaveLength(1)
  expect(explained.reports[0]).toMatchObject({ step: 3, origin: { kind: 'operator', phase: 'forward' } })
  expect(explained.result).toEqual(spoiled.result)
})

it('puts back what a step changes beside its model: other tensors, gradients of inputs, schedules, generators', () => {
  const play = (recorded: boolean): unknown => {
    torch.manualSeed(3)
    const model = new nn.Linear(2, 1)
    const optimizer = new optim.SGD(model.parameters(), { lr: 0.1 })
    const schedule = new optim.StepLR(optimizer, 2, { gamma: 0.5 })
    const own = new torch.Generator(5)
    const total = torch.zeros([1])
    const outside = torch.ones([2], { requiresGrad: true })
    const reports: FlightReport[] = []
    using recorder = flightRecorder({
      model,
      optimizer,
      stateful: [schedule],
      generators: [own],
      dir: null,
      onTrouble: (report) => void reports.push(report),
    })
    const step = (x: Tensor): Tensor => {
      optimizer.zeroGrad()
      const noise = torch.rand([2], { generator: own })
      const loss = model(x.mul(outside).add(noise)).square().mean()
      loss.backward()
      optimizer.step()
      schedule.step()
      torch.noGrad(() => total.add_(loss.detach()))
      return loss
    }
    for (let i = 0; i < 5; i++) {
      const x = torch
        .randn([3, 2])
        .add(i === 3 ? 1e25 : 0)
        .requiresGrad_()
      if (recorded) recorder.step(step, x)
      else step(x)
    }
    expect(reports).toHaveLength(recorded ? 1 : 0)
    return [total.toArray(), outside.grad?.toArray(), own.getState(), schedule.stateDict(), optimizer.paramGroups[0]?.lr, model.weight.toArray()]
  }
  expect(play(true)).toEqual(play(false))
})

it('keeps copies only of what steps write to, within a limit', () => {
  const last = new nn.Linear(8, 1)
  const model = new nn.Sequential(new nn.Linear(8, 8), last)
  const frozen = [...model.parameters()].slice(0, 2)
  for (const parameter of frozen) parameter.requiresGrad = false
  const optimizer = new optim.SGD(last.parameters(), { lr: 0.01 })
  const x = torch.randn([2, 8])
  const train = compile(() => {
    optimizer.zeroGrad()
    const loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss
  })
  using recorder = flightRecorder({ model, optimizer, steps: 4, dir: null })
  for (let i = 0; i < 3; i++) recorder.step(() => model(x).mean())
  expect(recorder.bytes).toBe(0)
  expect(recorder.recordedSteps).toEqual([0, 1, 2])
  recorder.step(train)
  // The last layer has 9 numbers of 4 bytes; the gradients of the step before are kept by the next one.
  expect(recorder.bytes).toBe(36)
  recorder.step(train)
  expect(recorder.bytes).toBe(36 * 3)
  expect(recorder.recordedSteps).toEqual([1, 2, 3, 4])
  using small = flightRecorder({ model, optimizer, steps: 4, maxBytes: 80, dir: null })
  for (let i = 0; i < 6; i++) small.step(train)
  expect(small.recordedSteps).toEqual([5])
  expect(small.bytes).toBe(72)
  recorder.dispose()
  expect(recorder.bytes).toBe(0)
  expect(() => recorder.step(train)).toThrow('the recorder was disposed of')
})

it('a step may return anything, itself inside of it included', () => {
  const recorder = flightRecorder({ model: new nn.Linear(2, 2), dir: null })
  const list: unknown[] = []
  list.push(list)
  const fields: { loss?: unknown } = {}
  fields.loss = fields
  for (const result of [list, fields, null, 'text', () => 1, torch.ones([2]), [], { loss: torch.ones([2]) }])
    expect(recorder.step(() => result)).toBe(result)
  expect(recorder.report).toBeNull()
  for (const result of [NaN, [[NaN]], { loss: torch.tensor([NaN]) }, { loss: [{ loss: NaN }] }])
    expect(() => flightRecorder({ model: new nn.Linear(2, 2), dir: null }).step(() => result)).toThrow(/the loss is NaN/)
})
