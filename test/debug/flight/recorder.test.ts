// The recorder itself: its options, what it keeps, when it reports, and what it refuses.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { compile, nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { MemoryFileStore, TrainingError, fileStore, flightRecorder, setFileStore, setLogSink } from 'tensorfx/debug'
import type { FlightRecorderOptions, FlightReport } from 'tensorfx/debug'
import { debugDirectory } from '../../../src/debug/files/fileStore.ts'

const t = torch.tensor
const usual = fileStore()
let store = new MemoryFileStore()
beforeEach(() => {
  store = new MemoryFileStore()
  setFileStore(store)
})
afterEach(() => {
  setFileStore(usual)
  setLogSink(null)
})

const model = new nn.Linear(1, 1)
const sgd = new optim.SGD(model.parameters(), { lr: 1 })
const MODEL = "argument 'options.model' must be a Module, a compiled Module, or an array of them, got"
const STATEFUL = "argument 'options.stateful' must be objects with stateDict and loadStateDict, got"
const CHECK = "argument 'options.check' must be an array with some of 'loss', 'gradients', 'weights', got"

it.each<[unknown, string]>([
  [3, "argument 'options' must be an object such as { model, optimizer, steps: 20 }, got 3."],
  [{}, 'give the model, the optimizer, or both, e.g. flightRecorder({ model, optimizer, steps: 20 }): their state is what is recorded.'],
  [
    { modle: model },
    "unknown option 'modle'; did you mean 'model'? Known are model, optimizer, tensors, stateful, generators, steps, maxBytes, check, jump, onTrouble, dir.",
  ],
  [{ model: 3 }, `${MODEL} 3.`],
  [{ model: () => 3 }, `${MODEL} a function.`],
  [{ model: [model, null] }, `${MODEL} null.`],
  [{ optimizer: model }, "argument 'options.optimizer' must be an Optimizer or an array of them, got a Linear."],
  [{ optimizer: [sgd, null] }, "argument 'options.optimizer' must be an Optimizer or an array of them, got null."],
  [{ tensors: [t(1)] }, "argument 'options.tensors' must be an object of tensors, got [a Tensor of shape []]."],
  [{ tensors: { a: t(1), b: 2 } }, "argument 'options.tensors.b' must be a Tensor, got 2."],
  [{ model, stateful: {} }, "argument 'options.stateful' must be an array, got an object."],
  [{ model, stateful: [{ stateDict: () => 1 }] }, `${STATEFUL} an object.`],
  [{ model, stateful: [{ loadStateDict: () => 1 }] }, `${STATEFUL} an object.`],
  [{ model, stateful: [null] }, `${STATEFUL} null.`],
  [{ model, generators: {} }, "argument 'options.generators' must be an array of Generators, got an object."],
  [
    { model, generators: [new torch.Generator(1), torch.Generator] },
    "argument 'options.generators' must be Generators, got the class Generator. Make one: new Generator(…).",
  ],
  [{ model, steps: 0 }, "argument 'options.steps' must be a number of steps, at least 1, got 0."],
  [{ model, steps: 1.5 }, "argument 'options.steps' must be a number of steps, at least 1, got 1.5."],
  [{ model, maxBytes: -1 }, "argument 'options.maxBytes' must be a number of bytes, got -1."],
  [{ model, maxBytes: '1' }, "option 'maxBytes' must be a number, got '1'."],
  [{ model, check: 'loss' }, `${CHECK} 'loss'.`],
  [{ model, check: ['loss', 'losses'] }, `${CHECK} ['loss', 'losses'].`],
  [{ model, jump: 1 }, "argument 'options.jump' must be a factor above 1, or null, got 1."],
  [{ model, jump: '10' }, "argument 'options.jump' must be a factor above 1, or null, got '10'."],
  [{ model, onTrouble: 'print' }, "argument 'options.onTrouble' must be 'throw', 'log' or a function, got 'print'."],
  [{ model, dir: 3 }, "argument 'options.dir' must be a string, got 3."],
])('refuses options: %#', (options, message) => {
  expect(() => flightRecorder(options as FlightRecorderOptions)).toThrow(expect.objectContaining({ message: `flightRecorder: ${message}` }))
})

it.each<[FlightRecorderOptions]>([
  [{ model, optimizer: undefined, steps: 1, maxBytes: 0, jump: 1.1, check: [], dir: null }],
  [{ model: compile(model) }],
  [{ model: [compile(model), model], jump: null }],
  [{ tensors: { a: t(1) }, onTrouble: 'log', generators: [new torch.Generator(1)] }],
  [{ optimizer: [sgd], stateful: [sgd] }],
])('accepts options: %#', (options) => {
  expect(flightRecorder(options).recordedSteps).toEqual([])
})

it('refuses steps that it cannot record, and keeps nothing of them', () => {
  const recorder = flightRecorder({ model, dir: null })
  const nested = 'FlightRecorder.step: a step cannot be recorded inside of a compiled function or of another step; call recorder.step around it.'
  expect(() => recorder.step(3 as never)).toThrow("FlightRecorder.step: argument 'fn' must be a function, got 3.")
  expect(() => recorder.watch(3 as never)).toThrow("FlightRecorder.watch: argument 'fn' must be a function, got 3.")
  expect(() => recorder.step(async () => t(1))).toThrow(
    'FlightRecorder.step: the step is async, so that its end is not known; await the data first, and record what follows.',
  )
  expect(() => recorder.step(() => recorder.step(() => t(1)))).toThrow(nested)
  expect(() => compile((x: Tensor) => recorder.step(() => x.add(1)))(t(1))).toThrow(nested)
  const error = new RangeError('of the program')
  expect(() =>
    recorder.step(() => {
      torch.noGrad(() => model.weight.mul_(1))
      throw error
    }),
  ).toThrow(error)
  expect([recorder.recordedSteps, recorder.bytes]).toEqual([[], 0])
  const double = recorder.watch((x: Tensor, by: number) => x.mul(by))
  expect([double(t(3), 2).item(), recorder.recordedSteps]).toEqual([6, [3]])
  recorder.dispose()
  expect(() => recorder.step(() => t(1))).toThrow('FlightRecorder.step: the recorder was disposed of; make another one.')
  expect(recorder.recordedSteps).toEqual([])
})

it('keeps steps whose copies take as much as is allowed', () => {
  const recorder = flightRecorder({ model, maxBytes: 0, dir: null })
  for (let i = 0; i < 3; i++) recorder.step(() => 1)
  expect([recorder.recordedSteps, recorder.bytes]).toEqual([[0, 1, 2], 0])
  recorder[Symbol.dispose]()
  expect(recorder.recordedSteps).toEqual([])
})

it('reports once, until a step was healthy again', () => {
  const reports: FlightReport[] = []
  const messages: unknown[] = []
  setLogSink((...message) => void messages.push(message))
  const told = flightRecorder({ model, dir: null, onTrouble: (report) => void reports.push(report) })
  const logged = flightRecorder({ model, dir: null, onTrouble: 'log' })
  const thrown = flightRecorder({ model, dir: null })
  expect(told.report).toBeNull()
  const errors: unknown[] = []
  for (const value of [1, NaN, Infinity, 1, NaN]) {
    for (const recorder of [told, logged]) expect(recorder.step((x: Tensor) => x, t(value)).item()).toBe(value)
    try {
      thrown.step((x: Tensor) => x, t(value))
    } catch (error) {
      errors.push(error)
    }
  }
  expect(reports.map(({ step, losses }) => [step, losses])).toEqual([
    [1, [1, NaN]],
    [4, [1, NaN, Infinity, 1, NaN]],
  ])
  expect(told.report).toBe(reports[1])
  const text = (step: number): string =>
    `Step ${step} went wrong: the loss is NaN.\nOrigin: input 0 was NaN when the step started. No operator is at fault.`
  expect(reports.map(String)).toEqual([text(1), text(4)])
  expect(messages).toEqual([
    ['error', text(1)],
    ['error', text(4)],
  ])
  expect(errors).toEqual([expect.any(TrainingError), expect.any(TrainingError)])
  expect(errors.map((error) => (error as TrainingError).report?.step)).toEqual([1, 4])
  expect((errors[0] as TrainingError).code).toBe('TFX_TRAINING')
})

it('looks at what it is told to', () => {
  const step = (weight: Tensor, grad: Tensor | null, value: number) => (): number => {
    torch.noGrad(() => void (grad === null ? weight.fill_(value) : grad.fill_(value)))
    return value
  }
  const triggers = ['loss', 'gradients', 'weights', undefined].map((check) => {
    const weight = t([1], { requiresGrad: true })
    weight.grad = t([1])
    const [bad] = [NaN]
    const kinds = [step(weight, null, bad), step(weight, weight.grad, bad), () => bad].map((run) => {
      using recorder = flightRecorder({
        tensors: { weight },
        dir: null,
        onTrouble: 'log',
        ...(check === undefined ? {} : { check: [check as 'loss'] }),
      })
      setLogSink(() => {})
      recorder.step(run)
      torch.noGrad(() => void weight.fill_(1))
      weight.grad?.fill_(1)
      return recorder.report?.trigger.kind ?? null
    })
    return [check, ...kinds]
  })
  expect(triggers).toEqual([
    ['loss', 'loss', 'loss', 'loss'],
    ['gradients', null, 'gradient', null],
    ['weights', 'parameter', null, null],
    [undefined, 'loss', 'loss', 'loss'],
  ])
})

it('writes to the folder of the debugger, if none is named', () => {
  const recorder = flightRecorder({ model, onTrouble: () => {} })
  recorder.step((x: Tensor) => x.log(), t(-1))
  expect([...store.files.keys()]).toEqual([`${debugDirectory(null)}/flight/step_0/replay.mjs`])
  expect(recorder.report?.file).toBe(`${debugDirectory(null)}/flight/step_0/replay.mjs`)
})

it('puts back groups of parameters, states and schedules before it runs a step again', () => {
  const weight = t([1, 2], { requiresGrad: true })
  const optimizer = new optim.Adam([weight], { lr: 0.5 })
  const schedule = {
    value: 0,
    stateDict: () => ({ value: schedule.value }),
    loadStateDict: (state: { value: number }) => void (schedule.value = state.value),
  }
  const generator = new torch.Generator(3)
  const seen: unknown[] = []
  const step = (x: Tensor): Tensor => {
    const [group] = optimizer.paramGroups
    seen.push([optimizer.paramGroups.length, group?.lr, optimizer.state.size, schedule.value, torch.rand([1], { generator }).item(), weight.grad])
    optimizer.addParamGroup({ params: [t([seen.length], { requiresGrad: true })], lr: 9 })
    if (group !== undefined) group.lr = 0.25
    schedule.value++
    const loss = weight.mul(x).sum()
    loss.backward()
    optimizer.step()
    return loss.log()
  }
  const recorder = flightRecorder({ optimizer, stateful: [schedule], generators: [generator], dir: null, onTrouble: () => {} })
  recorder.step(step, t([-1, -1]))
  expect(recorder.report).toMatchObject({ origin: { kind: 'operator', operator: 'log', given: [{ argument: 'self', index: [], element: -3 }] } })
  expect(seen).toHaveLength(2)
  expect(seen[1]).toEqual(seen[0])
  expect(seen[0]).toEqual([1, 0.5, 0, 0, expect.any(Number), null])
  // Afterwards all is as the step left it.
  expect([optimizer.paramGroups.length, optimizer.paramGroups[0]?.lr, optimizer.state.size, schedule.value]).toEqual([2, 0.25, 1, 1])
  expect(weight.grad?.toArray()).toEqual([-1, -1])
})
