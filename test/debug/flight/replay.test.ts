// The script that a recorder writes replays the step in a fresh process, and names the same operator and element. Code that only the compiler gets wrong is told apart.
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { MemoryFileStore, replayStep, setFileStore } from 'tensorfx/debug'
import { temporaryFolder } from '../../helpers/folder.ts'
import { runScript } from '../processes.ts'
import { batch, firstReport, training, withElement } from './training.ts'
import type { Mode } from './training.ts'

const folder = temporaryFolder('tensorfx-flight-')

function* batches(at: number, change: (x: Tensor, y: Tensor) => [Tensor, Tensor]): Generator<[Tensor, Tensor]> {
  for (let i = 0; i <= at; i++) {
    const [x, y] = batch()
    yield i === at ? change(x, y) : [x, y]
  }
}

it.each([
  ['eager', 'forward', (h: Tensor, x: Tensor) => h.add(x.select(1, 0).unsqueeze(1).square().log())],
  ['compiled step', 'backward', (h: Tensor, x: Tensor) => h.mul(x.select(1, 0).unsqueeze(1)).abs().sqrt()],
] as const)('%s, %s: a fresh process finds the same element', async (mode: Mode, phase, between) => {
  torch.manualSeed(11)
  const made = training(mode, between)
  const dir = join(folder, phase)
  const report = firstReport(
    made,
    batches(2, (x, y) => [withElement(x, [1, 0], 0), y]),
    { dir },
  )
  if (report?.origin.kind !== 'operator' || report.file === null) throw new Error(String(report))
  const { operator, computedBy, gradFn, index, element } = report.origin
  expect(report.origin.phase).toBe(phase)
  expect(report.notes).toEqual([])
  expect(report.script).toContain('class RecordedStep extends nn.Module')
  const { how, output } = await runScript(folder, report.file)
  expect(how).toBe('exit 1')
  const what = gradFn === null ? operator : `${gradFn} (in its ${computedBy})`
  expect(output).toContain(`the result of ${what} is ${element} at [${index.join(', ')}], and its arguments are good`)
})

it('replays in a page from files in memory, says what an input had before, and prints the loss that jumped', () => {
  const store = new MemoryFileStore()
  const previous = setFileStore(store)
  try {
    torch.manualSeed(12)
    const bad = firstReport(
      training('eager'),
      batches(1, (x, y) => [withElement(x, [0, 3], NaN), y]),
      { dir: 'recorded' },
    )
    expect(bad?.file).toBe('recorded/step_1/replay.mjs')
    expect(store.files.has('recorded/step_1/replay.mjs')).toBe(true)
    expect(bad?.notes).toEqual([])
    const jump = firstReport(
      training('eager'),
      batches(7, (x, y) => [x, y.mul(1e6)]),
      { dir: 'recorded' },
    )
    expect(jump).toMatchObject({ step: 7, origin: { kind: 'jump' }, script: expect.stringContaining(`loss: ${jump?.trigger.value}`) })
    expect(String(jump)).toMatch(/input 1: up to [\d.]+ in magnitude, usually/)
  } finally {
    setFileStore(previous)
  }
})

it('names the graph and the node if only the compiled code gives bad numbers', () => {
  torch.manualSeed(13)
  // Its graphs are wrong where a tanh is: NaN in every matrix that they return. (The statistics of the normalization are vectors.)
  const made = training(
    'compiled model',
    (h) => h.tanh(),
    undefined,
    (gm) =>
      (...inputs: Tensor[]) => {
        const hasTanh = [...gm.graph.nodes].some((node) => node.name.startsWith('tanh'))
        const outputs = gm.forward(...inputs) as Tensor[]
        if (!hasTanh || gm.className.endsWith('_backward')) return outputs
        return outputs.map((output) => (output.ndim === 2 ? output.mul(NaN) : output))
      },
  )
  const report = firstReport(
    made,
    batches(2, (x, y) => [x, y]),
  )
  expect(report).toMatchObject({ step: 0, compiled: 'only the compiled code', origin: { kind: 'compiled code', operator: 'tanh', element: NaN } })
  expect(String(report)).toContain('and eager kernels give a good one')
})

it('says that nothing is known of a step that cannot be repeated', () => {
  let calls = 0
  const made = training('eager', (h) => (calls++ === 1 ? h.mul(NaN) : h))
  const report = firstReport(
    made,
    batches(2, (x, y) => [x, y]),
  )
  expect(report).toMatchObject({ step: 1, origin: { kind: 'unknown' } })
  expect(String(report)).toContain('It reads something that is not recorded')
})

it('replayStep checks its arguments', () => {
  const usual = { saveDir: null, intended: [], gradFn: null, loss: null }
  expect(() => replayStep(3 as never, () => {}, usual)).toThrow(/^replayStep: argument 'Step' must be a class of modules, got 3/)
  expect(() => replayStep((() => 3) as never, () => {}, usual)).toThrow(/^replayStep: argument 'Step' must be a class of modules, got a function/)
  expect(() => replayStep(nn.Identity as never, 3 as never, usual)).toThrow(/^replayStep: argument 'loadArgs'/)
  for (const saveDir of [3, true, {}, undefined])
    expect(() => replayStep(nn.Identity as never, () => {}, { ...usual, saveDir } as never)).toThrow(
      /^replayStep: argument 'options\.saveDir' must be a path, a URL or null, got /,
    )
})
