// What comparisons say, whole: tables and culprits of compareBackends, the lines of compareTraining, the scripts and folders of a repro.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { registerBackend } from 'tensorfx/compile'
import { MemoryFileStore, compareBackends, fileStore, setFileStore } from 'tensorfx/debug'
import { Graph, GraphModule, symbolicTrace } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import { saveGraphModule, writeSafetensors } from 'tensorfx/interop'
import { comparedOn } from '../../src/debug/compare/compared.ts'
import { culpritAt, statusOf } from '../../src/debug/compare/culprit.ts'
import type { Culprit, Status } from '../../src/debug/compare/culprit.ts'
import { readComparison, writeComparison } from '../../src/debug/compare/folder.ts'
import type { GradientRow } from '../../src/debug/compare/gradients.ts'
import { RIGHT } from '../../src/debug/compare/measure.ts'
import type { Measured } from '../../src/debug/compare/measure.ts'
import { BackendComparison } from '../../src/debug/compare/result.ts'
import { TrainingComparison } from '../../src/debug/compare/training.ts'
import type { TrainingCulprit } from '../../src/debug/compare/training.ts'
import type { WorstInput } from '../../src/debug/compare/worstInput.ts'
import { present } from '../../src/errors/index.ts'
import { textOf } from './inProcess.ts'

const gm = symbolicTrace((a: Tensor) => torch.sum(torch.relu(a.mul(2))))
const x = torch.tensor([0.5, -1])
const named = (name: string): Node =>
  present(
    [...gm.graph.nodes].find((node) => node.name === name),
    name,
  )
const [mul, relu] = [named('mul'), named('relu')]

const culpritOf = (changes: Partial<Culprit>): Culprit => ({
  ...{ kind: 'wrong', nodes: [relu], error: 0.25, found: 'alone', rule: null, rate: 1, reason: null, thrown: null, set: 0 },
  ...{ half: 'forward', forward: null },
  ...changes,
})
const measuredAs = (status: Measured['status'], error: number): Measured => ({ ...RIGHT, status, error })

describe('the text of a comparison', () => {
  /** What the last lines of a result with these culprits say. */
  function said(culprits: Readonly<Record<string, Culprit | null>>, parts: object = {}): string[] {
    const compared = { ...comparedOn(gm, [x], 0, [], { reference: 'float64', tol: 1e-4 }), rows: [] }
    const result = new BackendComparison({ sets: [compared], culprits: new Map(Object.entries(culprits)), notes: [], backends: [], ...parts })
    return String(result).split('\n')
  }

  it('has the table of errors alone and in the graph: the one that says more', () => {
    const compared = comparedOn(gm, [x], 0, [], { reference: 'float64', tol: 1e-4 })
    const note = (backend: string, i: number, alone: Measured, inGraph?: Measured): void => {
      compared.rows[i]?.alone.set(backend, alone)
      if (inGraph !== undefined) compared.rows[i]?.inGraph.set(backend, inGraph)
    }
    note('a', 0, measuredAs('ok', 1e-7), measuredAs('ok', 3e-7))
    note('a', 1, measuredAs('ok', 3e-7), measuredAs('ok', 1e-7))
    note('a', 2, measuredAs('ok', 1), measuredAs('differs', 0.5))
    note('b', 0, measuredAs('differs', 0.5), measuredAs('flaky', 0.25))
    note('b', 1, measuredAs('failed', NaN), measuredAs('ok', 0))
    note('b', 2, measuredAs('skipped', NaN))
    note('c', 0, measuredAs('differs', Infinity))
    note('c', 2, measuredAs('ok', 1e-7), measuredAs('failed', NaN))
    const parts = { sets: [compared], notes: ['a note', 'and another'], backends: [] }
    const result = new BackendComparison({
      ...parts,
      culprits: new Map([
        ['a', null],
        ['b', culpritOf({})],
        ['c', culpritOf({ nodes: [mul, relu] })],
      ]),
    })
    expect(String(result)).toBe(
      [
        'node   target      value        a         b        c',
        '-----  ----------  -----------  --------  -------  ----------',
        'mul    mul         float32 [2]  3.0e-7    flaky    Infinity *',
        'relu   torch.relu  float32 [2]  3.0e-7    failed',
        'sum_1  torch.sum   float32 []   5.0e-1 *  skipped  1.0e-7',
        '',
        'a: no node differs',
        "b: 'relu' differs (error 2.5e-1; found alone)",
        "c: 'mul', 'relu' differ (error 2.5e-1; found alone)",
        'a note',
        'and another',
      ].join('\n'),
    )
    expect([result.statuses, result.first?.backend]).toEqual([
      new Map<string, Status>([
        ['a', 'right'],
        ['b', 'wrong'],
        ['c', 'wrong'],
      ]),
      'b',
    ])
    expect([result.gradients, result.worst, result.gm, result.inputs, result.functional]).toEqual([[], new Map(), compared.gm, [x], false])
  })

  it('has a line for each culprit: what is wrong, where it was found, and how', () => {
    const lines = said({
      infinite: culpritOf({ error: Infinity, reason: 'shape [1] instead of [2]' }),
      nan: culpritOf({ error: Infinity, found: 'in the graph' }),
      failed: culpritOf({ kind: 'failed', error: NaN, reason: 'RangeError: no', found: 'in the graph' }),
      silent: culpritOf({ kind: 'failed', error: NaN }),
      skipped: culpritOf({ kind: 'not judged', reason: 'it draws' }),
      quiet: culpritOf({ kind: 'not judged' }),
      flaky: culpritOf({ kind: 'flaky', rate: 0.126, set: 2 }),
      rule: culpritOf({ rule: 'overwrites an input', reason: 'input 0 has other values', error: Infinity }),
      mute: culpritOf({ rule: 'overwrites a weight', nodes: [mul, relu], found: 'only where it is fused' }),
      backward: culpritOf({ half: 'backward', set: 1 }),
      derivative: culpritOf({ half: 'backward', forward: 'tanh' }),
    })
    expect(lines.slice(2)).toEqual([
      '',
      "infinite: 'relu' differs (shape [1] instead of [2]; found alone)",
      "nan: 'relu' differs (another NaN or infinity; found in the graph)",
      "failed: 'relu' could not be run (RangeError: no; found in the graph)",
      "silent: 'relu' could not be run (; found alone)",
      "skipped: not judged: 'relu' cannot be compared, since it draws",
      "quiet: not judged: 'relu' cannot be compared, since ",
      "flaky: flaky at 'relu': wrong in 13% of the runs (error 2.5e-1; found alone, inputs 2)",
      "rule: 'relu' overwrites an input (input 0 has other values; found alone)",
      "mute: 'mul', 'relu' overwrites a weight (; found only where it is fused)",
      "backward: 'relu' differs (error 2.5e-1; found alone, in the backward, inputs 1)",
      "derivative: 'relu' differs (error 2.5e-1; found alone, in the backward of 'tanh')",
    ])
  })

  it('has a table of gradients, and the worst inputs', () => {
    const row = (name: string, shape: readonly number[], found: Readonly<Record<string, Measured>>): GradientRow => ({
      ...{ name, node: relu, dtype: 'float32', shape, statuses: new Map() },
      measured: new Map(Object.entries(found)),
    })
    const gradients = [
      row('input 0', [2], { a: measuredAs('ok', 0), b: measuredAs('differs', 2) }),
      row('0.weight', [3, 2], { b: measuredAs('failed', NaN) }),
    ]
    const worst = new Map<string, WorstInput>([
      ['a', { inputs: [], names: [], error: 2e-7, status: 'right' }],
      ['b', { inputs: [], names: ['x', 'y'], error: Infinity, status: 'wrong' }],
      ['c', { inputs: [], names: ['x'], error: NaN, status: 'failed' }],
    ])
    expect(said({ a: null, b: null }, { gradients, worst, notes: ['a note'] })).toEqual([
      'node  target  value  a  b',
      '----  ------  -----  -  -',
      '',
      'gradient  value           a  b',
      '--------  --------------  -  --------',
      'input 0   float32 [2]     0  2.0e+0 *',
      '0.weight  float32 [3, 2]     failed',
      '',
      'a: no node differs',
      'b: no node differs',
      'a: the worst inputs found are the inputs that were given (right, error 2.0e-7)',
      "b: the worst inputs found are other values of 'x', 'y' (wrong, error Infinity)",
      "c: the worst inputs found are other values of 'x' (failed, error NaN)",
      'a note',
    ])
  })

  it('takes its words from what was measured', () => {
    const statuses = ['ok', 'differs', 'failed', 'flaky', 'skipped'] as const
    expect(statuses.map((status) => statusOf({ status }))).toEqual(['right', 'wrong', 'failed', 'flaky', 'not judged'])
    const where = { found: 'alone', set: 3, half: 'backward', forward: 'sin' } as const
    const measured: Measured = { status: 'flaky', error: 1, reason: 'r', rule: 'overwrites an input', rate: 0.5, thrown: x }
    const rest = { nodes: [mul], error: 1, reason: 'r', rule: 'overwrites an input', rate: 0.5, thrown: x, ...where }
    expect(culpritAt([mul], measured, where)).toEqual({ kind: 'flaky', ...rest })
    // A culprit is not right.
    expect(culpritAt([mul], { ...measured, status: 'ok' }, where)).toEqual({ kind: 'wrong', ...rest })
  })
})

describe('the text of a training', () => {
  const culprit = (changes: Partial<TrainingCulprit>): TrainingCulprit => ({
    ...{
      ...culpritOf({}),
      step: 1,
      phase: 'optimizer',
      gm: Object.assign(new GraphModule({}, new Graph()), { className: 'Step' }),
      inputs: [],
      line: 'a.ts:7',
    },
    ...changes,
  })

  it('has a line for each backend', () => {
    const culprits = new Map<string, TrainingCulprit | null>([
      ['right', null],
      ['wrong', culprit({})],
      ['nan', culprit({ error: Infinity, line: null, phase: 'forward', nodes: [mul, relu] })],
      ['shape', culprit({ error: Infinity, reason: 'shape [1]' })],
      ['failed', culprit({ kind: 'failed', error: NaN, reason: 'RangeError: no', step: 0 })],
      ['flaky', culprit({ kind: 'flaky', reason: 'in 3 of 5' })],
      ['silent', culprit({ kind: 'failed' })],
      ['rule', culprit({ rule: 'overwrites an input', reason: 'input 1 has other values' })],
    ])
    const result = new TrainingComparison(culprits, [3, 3, 2])
    expect(String(result).split('\n')).toEqual([
      'right: right in 3 steps',
      "wrong: step 1, optimizer: 'relu' differs (error 2.5e-1), in Step (a.ts:7)",
      "nan: step 1, forward: 'mul', 'relu' differs (another NaN or infinity), in Step",
      "shape: step 1, optimizer: 'relu' differs (shape [1]), in Step (a.ts:7)",
      "failed: step 0, optimizer: 'relu' failed: RangeError: no, in Step (a.ts:7)",
      "flaky: step 1, optimizer: 'relu' flaky: in 3 of 5, in Step (a.ts:7)",
      "silent: step 1, optimizer: 'relu' failed, in Step (a.ts:7)",
      "rule: step 1, optimizer: 'relu' overwrites an input, in Step (a.ts:7)",
    ])
    expect([...result.statuses.values()]).toEqual(['right', 'wrong', 'wrong', 'wrong', 'failed', 'flaky', 'failed', 'wrong'])
    expect(result.first).toEqual({ ...culprits.get('wrong'), backend: 'wrong' })
    expect(new TrainingComparison(new Map([['a', null]]), []).first).toBeNull()
  })
})

describe('what is written', () => {
  const before = fileStore()
  let store = new MemoryFileStore()
  beforeEach(() => {
    store = new MemoryFileStore()
    setFileStore(store)
  })
  afterEach(() => void setFileStore(before))

  const wrong = 'relu_accuracy_error_TESTING_ONLY'
  const lines = (backends: string, others: readonly string[]): string[] => [
    'const read = (name) => readFileSync(new URL(name, import.meta.url))',
    "const gm = loadGraphModule(read('graph.safetensors'))",
    "const { tensors } = readSafetensors(read('inputs.safetensors'))",
    'const inputs = Array.from({ length: tensors.size }, (_, i) => tensors.get(`input_${i}`))',
    `const backends = [${backends}]`,
    ...others,
  ]

  it('is a script that compares again, with one backend or two', async () => {
    const result = await compareBackends(gm, [x], { backends: [wrong, 'eager'], tol: 0.01 })
    const small = await result.minify(wrong, { directory: '/out' })
    expect([small.path, ...store.files.keys()]).toEqual(['/out/compare.mjs', '/out/graph.safetensors', '/out/inputs.safetensors', '/out/compare.mjs'])
    const body = textOf(store, '/out/compare.mjs').split('\n')
    expect(body.slice(0, 3)).toEqual([
      `// The backend '${wrong}' differs from the reference (float64) for this graph.`,
      '//   node compare.mjs: prints the errors by node; the exit code is 1 while that is so',
      "import { readFileSync } from 'node:fs'",
    ])
    expect(body.slice(3, 6)).toEqual([
      expect.stringMatching(/^import \{ compareBackends \} from '.*debug.*'$/),
      expect.stringMatching(/^import \{ loadGraphModule, readSafetensors \} from '.*interop.*'$/),
      '',
    ])
    expect(body.slice(6)).toEqual(
      lines(`'${wrong}'`, [
        "const result = await compareBackends(gm, inputs, { backends, reference: 'float64', tol: 0.01 })",
        'console.log(String(result))',
        'const [isWrong] = backends.map((name) => result.culprits.get(name) !== null)',
        'process.exitCode = isWrong ? 1 : 0',
        '',
      ]),
    )
    await result.minify(wrong, { directory: '/two', against: 'eager' })
    const two = textOf(store, '/two/compare.mjs').split('\n')
    expect(two[0]).toBe(`// The backend '${wrong}' differs from the reference (float64) for this graph, and 'eager' does not.`)
    expect(two.slice(6)).toEqual(
      lines(`'${wrong}', 'eager'`, [
        "const result = await compareBackends(gm, inputs, { backends, reference: 'float64', tol: 0.01 })",
        'console.log(String(result))',
        'const [isWrong, isOtherWrong] = backends.map((name) => result.culprits.get(name) !== null)',
        'process.exitCode = isWrong && !isOtherWrong ? 1 : 0',
        '',
      ]),
    )
  })

  it('names a backend that other programs can import, or says what to do before the search', async () => {
    const module = 'data:text/javascript,export const plusOne = (gm) => (...inputs) => [gm.forward(...inputs)].flat().map((value) => value.add(1))'
    const plusOne =
      (part: GraphModule) =>
      (...inputs: never[]) =>
        ([part.forward(...inputs)] as Tensor[][]).flat().map((value) => value.add(1))
    registerBackend('texts_nameless', plusOne)
    registerBackend('texts_named', plusOne, { module: 'file:///there/named.mjs' })
    const result = await compareBackends(gm, [x], { backends: [plusOne, 'texts_nameless', 'texts_named'], whole: false })
    const backendsIn = (): string | undefined => textOf(store, '/n/compare.mjs').match(/^const backends = .*$/m)?.[0]
    for (const name of ['plusOne', 'texts_nameless']) {
      const lines: string[] = []
      await expect(result.minify(name, { directory: '/n', print: (line) => void lines.push(line) })).rejects.toThrow(
        `minify: no script can import the backend '${name}'. Pass its module, { module: './file.mjs' }, or register it in one: registerBackend('${name}', fn, { module: import.meta.url }).`,
      )
      expect([lines, store.files.size]).toEqual([[], 0])
    }
    await result.minify('texts_named', { directory: '/n' })
    expect(backendsIn()).toBe("const backends = ['file:///there/named.mjs#texts_named']")
    await result.minify('plusOne', { directory: '/n', module })
    expect(backendsIn()).toBe(`const backends = ['${module}#plusOne']`)
    // Without a folder it needs no name.
    expect((await result.minify('texts_nameless')).path).toBeNull()
  })

  it('is a graph and its inputs, which can be read', () => {
    const inputs = [x, torch.tensor([1, 2], { dtype: 'int64' })]
    writeComparison(store, '/saved', gm, inputs)
    expect([...store.files.keys()]).toEqual(['/saved/graph.safetensors', '/saved/inputs.safetensors'])
    const read = readComparison(store, '/saved')
    expect([read.gm.code, read.inputs.map((value) => [value.dtype, value.toArray()])]).toEqual([
      gm.code,
      inputs.map((value) => [value.dtype, value.toArray()]),
    ])
    expect(() => writeComparison(store, '/other', gm, [x, 3])).toThrow('input 1 is not a tensor, and the files of a comparison hold only tensors.')
    expect(store.files.size).toBe(2)
  })

  it('is missed where it is not there', () => {
    const needs = 'A comparison is a folder with graph.safetensors (saveGraphModule) and inputs.safetensors (writeSafetensors: input_0, input_1, …).'
    expect(() => readComparison(store, '/gone')).toThrow(`there is no /gone/graph.safetensors. ${needs}`)
    store.write('/gone/graph.safetensors', saveGraphModule(gm))
    expect(() => readComparison(store, '/gone')).toThrow(`there is no /gone/inputs.safetensors. ${needs}`)
    store.write('/gone/inputs.safetensors', writeSafetensors(new Map([['input_1', x]])))
    expect(() => readComparison(store, '/gone')).toThrow("/gone/inputs.safetensors has 1 tensors, but no 'input_0'.")
  })
})
