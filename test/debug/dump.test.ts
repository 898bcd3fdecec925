// What is written of one watched graph, and what is said: the settings of the script, by the place and the failure.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config } from 'tensorfx/compile'
import { MemoryFileStore, fileStore, setFileStore, setLogSink } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { AccuracyError } from '../../src/debug/closeness/accuracyError.ts'
import { Dump } from '../../src/debug/repro/dump.ts'
import type { Where } from '../../src/debug/repro/dump.ts'

const usual = { store: fileStore(), config: { ...config } }
let store = new MemoryFileStore()
let said: string[] = []
beforeEach(() => {
  store = new MemoryFileStore()
  said = []
  setFileStore(store)
  setLogSink((level, message) => void said.push(`${level}: ${message}`))
  Object.assign(config, { debugDirRoot: 'root', reproLevel: 2 })
})
afterEach(() => {
  setFileStore(usual.store)
  setLogSink(null)
  Object.assign(config, usual.config)
})

const graph = (half?: unknown): GraphModule => {
  const gm = symbolicTrace((x: Tensor) => [x.sin()])
  if (half !== undefined) gm.meta['half'] = half
  return gm
}
/** The lines of the only script that say how the graph is judged. */
function settings(): readonly string[] {
  const [path] = [...store.files.keys()].filter((name) => name.endsWith('.mjs'))
  const text = new TextDecoder().decode(store.files.get(path ?? ''))
  return ['after', 'command', 'backend', 'accuracy', 'signature', 'contract', 'onlyFwd'].flatMap(
    (key) => new RegExp(`^  ${key}: (.*),$`, 'm').exec(text)?.[1] ?? [],
  )
}
const [plain, learned] = [torch.ones([1]), torch.ones([1], { requiresGrad: true })]
const finding = { rule: 'numbers', message: 'it differs', reasons: ['one', 'two'] } as never

it('has a name in messages, and says once that a graph was not checked', () => {
  const label = (half?: unknown): string => new Dump(graph(half), 'eager', 'dynamo').label
  expect([label(), label('forward'), label(3)]).toEqual(['the graph GraphModule', 'the forward graph GraphModule', 'the graph GraphModule'])
  const { unchecked } = new Dump(graph('backward'), 'eager', 'aot')
  unchecked('first')
  unchecked('second')
  expect(said).toEqual(["error: Level 4 did not check the backward graph GraphModule of backend 'eager': first"])
})

it.each<[string, Where, boolean, object, Tensor, unknown, boolean]>([
  ['a failure with a backward', 'dynamo', false, {}, learned, undefined, true],
  ['a failure in aot', 'aot', true, {}, learned, undefined, true],
  ['only the forward is asked for', 'dynamo', true, { reproForwardOnly: true }, learned, undefined, true],
  ['half of a joint graph', 'dynamo', true, {}, learned, 'forward', true],
  ['a graph that holds its backward', 'dynamo', true, {}, learned, undefined, false],
  ['one whose inputs require nothing', 'dynamo', false, {}, plain, undefined, false],
])('%s: what a script runs', (_, where, onlyFwd, changes, input, half, isDifferentiated) => {
  Object.assign(config, changes)
  const dump = new Dump(graph(half), 'eager', where)
  dump.isDifferentiated = isDifferentiated
  const error = new TypeError('bad 3')
  expect(dump.failure(error, [[plain], [input, 3]])).toBe(error)
  expect(settings().slice(0, 3)).toEqual([`'${where}'`, "'minify'", "'eager'"])
  expect(settings()).toContain("'TypeError||bad #'")
  expect(settings().at(-1)).toBe(String(onlyFwd))
  expect(error).toMatchObject({ minifierPath: [...store.files.keys()].find((name) => name.endsWith('.mjs')), dumpProblem: null })
  expect(said[0]).toBe('warning: Compiled Fx GraphModule failed. Creating script to minify the error.')
})

it.each<[Where, string]>([
  ['dynamo', 'warning: Accuracy failed for the TorchDynamo produced graph. Creating script to minify the error.'],
  ['aot', 'warning: Accuracy failed for the AOT Autograd graph GraphModule'],
])('wrong numbers in %s', (where, warning) => {
  const dump = new Dump(graph(), 'eager', where)
  const error = dump.wrong(finding, [[learned]])
  expect(error).toBeInstanceOf(AccuracyError)
  expect(error.message).toMatch(/^Bad accuracy detected\. Backend 'eager', the graph GraphModule: it differs/)
  expect([error.cause, error.code]).toEqual(['one\ntwo', 'TFX_ACCURACY'])
  expect(error.minifierPath).toMatch(/minifier_launcher\.mjs$/)
  expect(said[0]).toBe(warning)
  expect(settings().at(-1)).toBe('true')
  expect([...store.files.keys()].some((name) => name.endsWith('/repro.mjs'))).toBe(where === 'aot')
  // It is written already.
  expect(dump.failure(error, [])).toBe(error)
})
