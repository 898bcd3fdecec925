// What the debugger and the minifier tell: failures, scripts, and each candidate.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { compile, fx, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { withConfig } from 'tensorfx/compile'
import { MemoryFileStore, counters, fileStore, minifier, onEvent, setFileStore, setLogSink } from 'tensorfx/debug'
import type { CompileEvent } from 'tensorfx/debug'

const before = fileStore()
beforeEach(() => {
  setFileStore(new MemoryFileStore())
  setLogSink(() => undefined)
})
afterEach(() => {
  setFileStore(before)
  setLogSink(null)
})

const told = (events: readonly CompileEvent[]): unknown[] =>
  events.map(({ id: _id, run: _run, time: _time, fn: _fn, call: _call, graph: _graph, ...body }) => body)

it('a failing compile is told with its code, and the script that was written for it', () => {
  counters.clear()
  const events: CompileEvent[] = []
  using _listening = onEvent((event) => events.push(event), { kinds: ['failure', 'repro'] })
  const f = compile((x: Tensor) => torch.relu(x), { backend: 'relu_compile_error_TESTING_ONLY' })
  expect(() => withConfig({ reproAfter: 'dynamo', reproLevel: 2 }, () => f(torch.ones([2])))).toThrow('relu found in graph')
  expect(told(events)).toEqual([
    { kind: 'repro', file: expect.stringMatching(/minifier_launcher\.mjs$/), command: 'minify' },
    { kind: 'failure', stage: 'compile', code: 'TFX_RELU_COMPILE', message: 'relu found in graph', backend: 'relu_compile_error_TESTING_ONLY' },
  ])
  expect({ ...counters.failures }).toEqual({ TFX_RELU_COMPILE: 1 })
})

it('wrong numbers are told once, where they are found', () => {
  const events: CompileEvent[] = []
  using _listening = onEvent((event) => events.push(event), { kinds: ['failure', 'repro'] })
  const f = compile((x: Tensor) => torch.relu(x), { backend: 'relu_accuracy_error_TESTING_ONLY' })
  expect(() => withConfig({ reproAfter: 'dynamo', reproLevel: 4 }, () => f(torch.ones([2])))).toThrow('Bad accuracy detected')
  expect(events.map((event) => event.kind)).toEqual(['repro', 'failure'])
  expect(told(events)[1]).toMatchObject({ stage: 'accuracy', backend: 'relu_accuracy_error_TESTING_ONLY' })
})

it('a run that fails is told', () => {
  const events: CompileEvent[] = []
  using _listening = onEvent((event) => events.push(event), { kinds: ['failure'] })
  const f = compile((x: Tensor) => torch.relu(x), { backend: 'relu_runtime_error_TESTING_ONLY' })
  expect(() => f(torch.ones([2]))).toThrow('ReluRuntimeError')
  expect(told(events)).toMatchObject([{ stage: 'run', code: 'TFX_RELU_RUNTIME' }])
})

it('the minifier tells each candidate, with the reason if it is not accepted, and its end', async () => {
  const gm = fx.symbolicTrace((x: Tensor) => torch.cos(torch.relu(torch.sin(x))))
  const events: CompileEvent[] = []
  using _listening = onEvent((event) => events.push(event), { kinds: ['minify.step', 'minify.end'] })
  // Without its cosine the graph fails on a backend that is right too.
  const fails = (candidate: { readonly code: string }): boolean => candidate.code.includes('relu')
  const { queries } = await minifier(gm, [torch.ones([2])], fails, { control: (candidate) => candidate.code.includes('cos') })
  const steps = told(events.slice(0, -1))
  expect(steps[0]).toEqual({ kind: 'minify.step', strategy: 'original', nodes: 5, verdict: 'fails', why: null })
  for (const step of steps) expect(step).toMatchObject({ kind: 'minify.step', strategy: expect.any(String), nodes: expect.any(Number) })
  expect(steps).toContainEqual(expect.objectContaining({ verdict: 'other', why: 'it fails on a backend that is right too' }))
  expect(told(events.slice(-1))).toEqual([{ kind: 'minify.end', nodes: 3, queries, failureRate: 1 }])
})
