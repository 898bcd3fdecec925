// From a failure to its repro, in this process: each level writes what it promises, the launcher shrinks it, and the repro fails as the program did.
import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config, registerBackend } from 'tensorfx/compile'
import type { Backend } from '../../src/dynamo/index.ts'
import { AccuracyError, MemoryFileStore, fileStore, setFileStore, setLogSink, wrapCompilerDebug } from 'tensorfx/debug'
import { fakeLike } from 'tensorfx/dispatch'
import { Graph, GraphModule, operator, symbolicTrace } from 'tensorfx/fx'
import { packageSpecifier, writeRepro } from '../../src/debug/script/reproScript.ts'
import { listen, pathOf, resetConfig, runHere, textOf, thrownBy } from './inProcess.ts'

const nodeStore = fileStore()
let store = new MemoryFileStore()
beforeEach(() => {
  store = new MemoryFileStore()
  setFileStore(store)
  Object.assign(config, { debugDirRoot: '/dumps' })
})
afterEach(() => {
  setLogSink(null)
  setFileStore(nodeStore)
  resetConfig()
  vi.unstubAllGlobals()
})

const chain = (x: Tensor): Tensor => torch.cos(torch.cos(torch.relu(torch.sin(torch.sin(x)))))
const input = (): Tensor => torch.linspace(-1, 1, 12).reshape([3, 4])
const names = (): string[] => [...store.files.keys()].map((path) => path.slice(path.lastIndexOf('/') + 1)).toSorted()
const scripts = (): string[] => names().filter((name) => name.endsWith('.mjs') || name.endsWith('.json'))
const copyPath = (): string => `${process.cwd()}/repro.mjs`
const operatorsIn = (text: string): string[] => [...text.matchAll(/= torch\.(\w+)\(/g)].map(([, name = '']) => name)

function program(after: 'dynamo' | 'aot', level: number, kind: string): () => Tensor {
  Object.assign(config, { reproAfter: after, reproLevel: level })
  return compile(chain, { backend: `relu_${kind}_error_TESTING_ONLY` }).bind(null, input())
}

const ERRORS: Readonly<Record<string, string>> = {
  compile: 'relu found in graph',
  runtime: 'ReluRuntimeError',
  accuracy: 'Bad accuracy detected',
}

describe('a failure that is an error', () => {
  const cases = (['dynamo', 'aot'] as const).flatMap((after) => ['compile', 'runtime'].map((kind) => [after, kind] as const))

  it.each(cases)('after %s, in the %s phase: level 1 writes the whole graph, which fails as the program did', async (after, kind) => {
    const said = listen()
    const error = thrownBy(() => program(after, 1, kind)().toArray())
    expect(error.message).toContain(ERRORS[kind])
    expect(scripts()).toEqual(['7.mjs', 'repro.mjs'])
    expect(said.map(([level, line]) => `${level}: ${line.replace(/run_\S+pid_\d+/, 'RUN')}`)).toEqual([
      'warning: Compiled Fx GraphModule failed. Creating script to minify the error.',
      'info: Writing checkpoint with 7 nodes to /dumps/RUN/minifier/checkpoints/7.mjs',
      `info: Copying repro file for convenience to ${copyPath()}`,
    ])
    const text = textOf(store, copyPath())
    expect(operatorsIn(text)).toEqual(['sin', 'sin', 'relu', 'cos', 'cos'])
    expect(text).toContain(`after: '${after}',\n  command: 'run',\n  backend: 'relu_${kind}_error_TESTING_ONLY',\n  accuracy: 'none',`)
    expect(text).toContain(`onlyFwd: ${after === 'aot'},`)
    // Where to look for failures is no setting of the graph.
    expect(text).not.toMatch(/reproAfter|reproLevel|death:|runs:/)
    const again = await runHere(store, copyPath())
    expect(again.error?.message).toContain(ERRORS[kind])
  })

  it.each(cases)('after %s, in the %s phase: level 2 writes a launcher, which writes the smallest graph', async (after, kind) => {
    listen()
    const error = thrownBy(() => program(after, 2, kind)().toArray())
    expect(scripts()).toEqual(['minifier_launcher.mjs'])
    const launcher = pathOf(store, 'minifier_launcher.mjs')
    expect(error.minifierPath).toBe(launcher)
    if (kind === 'compile') expect(error.message).toContain(launcher)
    expect(textOf(store, launcher)).toContain("command: 'minify'")
    const launched = await runHere(store, launcher, ['--no-isolate'])
    expect(launched).toMatchObject({ error: null })
    expect(launched.output).toContain(`Wrote minimal repro out to ${copyPath()}`)
    const text = textOf(store, copyPath())
    expect(operatorsIn(text)).toEqual(['relu'])
    expect(text).toContain('reader.tensor(buf0, [1])')
    expect(text).not.toContain('comes and goes')
    const again = await runHere(store, copyPath())
    expect(again.error?.message).toContain(ERRORS[kind])
    // A backend without the fault runs it.
    expect(await runHere(store, copyPath(), ['--backend', 'eager'])).toMatchObject({
      error: null,
      output: 'with eager: passes\nThe repro ran without an error.',
      exitCode: undefined,
    })
  })

  it.each(cases)('after %s, in the %s phase: level 3 writes launcher and record before it is known', (after, kind) => {
    listen()
    thrownBy(() => program(after, 3, kind)().toArray())
    expect(scripts()).toEqual(['last_run.json', 'minifier_launcher.mjs'])
    expect(JSON.parse(textOf(store, pathOf(store, 'last_run.json')))).toEqual({ phase: 'run', state: 'failed', pid: process.pid })
  })

  it('is not looked for where the settings do not say so', () => {
    Object.assign(config, { reproAfter: null, reproLevel: 2 })
    thrownBy(() => compile(chain, { backend: 'relu_compile_error_TESTING_ONLY' })(input()).toArray())
    expect(names()).toEqual([])
  })
})

describe('a backward that fails after dynamo', () => {
  const failing =
    (phase: 'compile' | 'run'): Backend =>
    (gm) => {
      const fail = (): never => {
        throw new RangeError('no backward here')
      }
      const isBad = gm.code.includes('tangents')
      if (isBad && phase === 'compile') fail()
      return (...inputs) => (isBad ? fail() : gm.forward(...inputs))
    }
  const module = import.meta.url
  registerBackend('backward_compile_fails', failing('compile'), { module })
  registerBackend('backward_run_fails', failing('run'), { module })

  it.each([
    ['compile', 1],
    ['compile', 2],
    ['run', 1],
    ['run', 2],
    ['run', 3],
  ] as const)('in the %s, at level %d, leaves a script that holds the backward graph and fails in the same way', async (phase, level) => {
    listen()
    Object.assign(config, { reproAfter: 'dynamo', reproLevel: level })
    const x = input()
    x.requiresGrad = true
    const error = thrownBy(() =>
      compile((t: Tensor) => torch.tanh(torch.sin(t)), { backend: `backward_${phase}_fails` })(x)
        .sum()
        .backward(),
    )
    expect(error.message).toContain('no backward here')
    expect(error.minifierPath).toBe(level === 1 ? copyPath() : pathOf(store, 'minifier_launcher.mjs'))
    expect(textOf(store, String(error.minifierPath))).toContain('tangents_1')
    resetConfig()
    Object.assign(config, { debugDirRoot: '/dumps' })
    const again = await runHere(store, String(error.minifierPath), ['run'])
    expect(again.error?.message).toContain('no backward here')
    expect(await runHere(store, String(error.minifierPath), ['run', '--backend', 'eager'])).toMatchObject({ error: null })
  })
})

describe('level 3', () => {
  it('records what is about to be done, and that it has ended', () => {
    const states: unknown[] = []
    const path = (): string => pathOf(store, 'last_run.json')
    registerBackend('watching', (gm) => {
      states.push(JSON.parse(textOf(store, path())))
      return (...inputs: never[]) => {
        states.push(JSON.parse(textOf(store, path())))
        return gm.forward(...inputs)
      }
    })
    Object.assign(config, { reproAfter: 'dynamo', reproLevel: 3 })
    listen()
    const { pid } = process
    compile(chain, { backend: 'watching' })(input()).toArray()
    expect(states).toEqual([
      { phase: 'compile', state: 'started', pid },
      { phase: 'run', state: 'started', pid },
    ])
    expect(JSON.parse(textOf(store, path()))).toEqual({ phase: 'run', state: 'ended', pid })
    expect(textOf(store, pathOf(store, 'minifier_launcher.mjs'))).toContain("record: new URL('./last_run.json', import.meta.url),")
  })

  it('records that a compile has ended before the graph is run', () => {
    Object.assign(config, { reproAfter: 'aot', reproLevel: 3 })
    listen()
    const gm = symbolicTrace(chain)
    const compiled = wrapCompilerDebug((graph) => graph, 'eager')(gm, [input()])
    const record = (): unknown => JSON.parse(textOf(store, pathOf(store, 'last_run.json')))
    expect(record()).toEqual({ phase: 'compile', state: 'ended', pid: process.pid })
    Reflect.apply(compiled as () => unknown, undefined, [input()])
    expect(record()).toEqual({ phase: 'run', state: 'ended', pid: process.pid })
  })

  it('writes nothing before a compile whose example inputs have no data', () => {
    Object.assign(config, { reproAfter: 'aot', reproLevel: 3 })
    const said = listen()
    const gm = symbolicTrace((a: Tensor, b: Tensor) => torch.add(a, b))
    const written: string[][] = []
    const backend: Backend = (graph) => (written.push(scripts()), graph)
    wrapCompilerDebug(backend, 'eager')(gm, [fakeLike(input()), input()])
    wrapCompilerDebug(backend, 'eager')(gm, [input(), 3])
    expect(written).toEqual([[], ['last_run.json', 'minifier_launcher.mjs']])
    expect(said.filter(([, line]) => line.includes('could not be written'))).toEqual([])
  })

  it('has a launcher that finds nothing to do if the run ended', async () => {
    Object.assign(config, { reproAfter: 'dynamo', reproLevel: 3 })
    listen()
    compile(chain, { backend: 'eager' })(input()).toArray()
    const launched = await runHere(store, pathOf(store, 'minifier_launcher.mjs'), ['--no-isolate'])
    expect(launched.output).toContain(`The run that wrote this script ended without a failure (process ${process.pid} ran the graph).`)
    expect(launched.error?.message).toContain('Input graph did not fail the tester')
  })
})

describe('wrong numbers', () => {
  it.each(['dynamo', 'aot'] as const)('after %s are an error at level 4 only, and end in a repro that shows them', async (after) => {
    for (const level of [1, 2, 3]) expect(program(after, level, 'accuracy')().shape).toEqual([3, 4])
    store.files.clear()
    const said = listen()
    const error = thrownBy(() => program(after, 4, 'accuracy')().toArray())
    const launcher = pathOf(store, 'minifier_launcher.mjs')
    expect(error).toBeInstanceOf(AccuracyError)
    expect(error.message).toContain(launcher)
    expect(error).toMatchObject({ minifierPath: launcher, cause: expect.stringContaining('RMSE (res-fp64)') as string })
    expect(said[0]?.[1]).toMatch(
      after === 'dynamo' ? /^Accuracy failed for the TorchDynamo produced graph/ : /^Accuracy failed for the AOT Autograd graph/,
    )
    expect(textOf(store, launcher)).toContain("accuracy: 'accuracy'")
    expect((await runHere(store, launcher, ['--no-isolate'])).error).toBeNull()
    expect(operatorsIn(textOf(store, copyPath()))).toEqual(['relu'])
    expect((await runHere(store, copyPath())).error).toBeInstanceOf(AccuracyError)
    const right = await runHere(store, copyPath(), ['--backend', 'eager'])
    expect(right).toEqual({ error: null, output: 'with eager: passes\nThe repro ran, and its numbers are right.', exitCode: undefined })
  })

  it('of the forward alone count where reproForwardOnly is set, and the script says so', () => {
    const launcher = (): string => {
      thrownBy(() => program('dynamo', 4, 'accuracy')().toArray())
      return textOf(store, pathOf(store, 'minifier_launcher.mjs'))
    }
    listen()
    expect(launcher()).toContain('onlyFwd: false')
    config.reproForwardOnly = true
    expect(launcher()).toContain('onlyFwd: true')
  })
})

describe('a script', () => {
  it('imports the package by its name where that leads to it, and otherwise by its address', () => {
    const address = new URL('../../dist/', import.meta.url).href
    expect(packageSpecifier('', `${process.cwd()}/repro.mjs`)).toBe('tensorfx')
    expect(packageSpecifier('debug', `${process.cwd()}/repro.mjs`)).toBe('tensorfx/debug')
    expect(packageSpecifier('', '/elsewhere/repro.mjs')).toBe(`${address}index.js`)
    expect(packageSpecifier('debug', '/elsewhere/repro.mjs')).toBe(`${address}entries/debug.js`)
  })

  it('holds the tensors of its graph, and runs with them', async () => {
    const weight = torch.tensor([1, -2])
    const gm = symbolicTrace((a: Tensor) => [operator.add(torch.relu(torch.mul(a, weight)), 1)])
    const spec = { backend: 'relu_compile_error_TESTING_ONLY', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true } as const
    const options = { after: 'dynamo', command: 'run', spec, imports: ['data:text/javascript,'], notes: ['a note'], runs: 2 } as const
    const text = writeRepro(store, '/out/a.mjs', '/out/inputs', gm, [torch.ones([2])], options)
    expect(text).toContain("    const buf0 = reader.values([1, -2])\n    this.registerBuffer('_tensor_constant0', reader.load(buf0, [2]))")
    expect(text).toContain("import { config, nn, torch, operator } from 'file:")
    expect(text).toContain("\nimport 'data:text/javascript,'\n")
    expect(text).toContain('\n// a note\n')
    expect(text).toContain('\n  runs: 2,\n')
    expect((await runHere(store, '/out/a.mjs')).error?.message).toContain('relu found in graph')
    const analyzed = await runHere(store, '/out/a.mjs', ['analyze', '--backend', 'relu_accuracy_error_TESTING_ONLY'])
    expect(analyzed.output.split('\n').map((line) => line.replace(/:.*/, ''))).toEqual(['DIVERGED at relu', 'DIVERGED at add'])
    // It is one file, which runs anywhere.
    expect([...store.files.keys()]).toEqual(['/out/a.mjs'])
    store.write('/elsewhere/b.mjs', text)
    const alone = await runHere(store, '/elsewhere/b.mjs', ['--backend', 'eager', '--no-save-dir'])
    expect(alone.output).toBe('with eager: passes\nThe repro ran without an error (2 times).')
  })

  it('whose backend cannot be imported asks for one, which may be a module', async () => {
    const gm = symbolicTrace((a: Tensor) => [torch.relu(a)])
    const spec = { backend: 'mine', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true } as const
    const options = { after: 'dynamo', command: 'run', spec, imports: [], backendProblem: 'it is a function' } as const
    const text = writeRepro(store, '/out/a.mjs', '/out/inputs', gm, [torch.ones([2])], options)
    expect(text).toContain('\n// Needs --backend: it is a function.\n')
    expect(text).toContain('\n  backend: null,\n')
    expect((await runHere(store, '/out/a.mjs')).error?.message).toContain('Name it: --backend ./file.mjs#export')
    const module = 'data:text/javascript,export const mine=()=>{throw new RangeError("no kernel")}#mine'
    expect((await runHere(store, '/out/a.mjs', ['--backend', module])).error?.message).toBe('no kernel')
  })

  it('says how the failure ends the process', () => {
    const gm = symbolicTrace((a: Tensor) => [torch.relu(a)])
    const spec = { backend: 'eager', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true, death: 'exit 7' } as const
    const text = writeRepro(store, '/out/a.mjs', '/out/inputs', gm, [torch.ones([2])], { after: 'aot', command: 'run', spec, imports: [] })
    expect(text).toContain("\n  death: 'exit 7',\n")
  })

  it('in a browser is written without paths of Node', () => {
    vi.stubGlobal('process', undefined)
    const graph = new Graph()
    graph.output([graph.callFunction(torch.cat, [['x', 'y', 'z'].map((name) => graph.placeholder(name))])])
    const spec = { backend: 'eager', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true } as const
    const options = { after: 'aot', command: 'run', spec, imports: [] } as const
    const large = torch.arange(2000)
    const text = writeRepro(store, 'a/b.mjs', 'inputs', new GraphModule({}, graph), [torch.ones([2]), torch.tensor([1, 2]), large], options)
    vi.unstubAllGlobals()
    expect(text).toContain("from 'tensorfx'\nimport { runRepro } from 'tensorfx/debug'")
    expect(text).toContain("saveDir: new URL('./inputs/', import.meta.url)")
    expect(text.split('\n')[0]).toMatch(/Written by tensorfx [\d.]+\.$/)
    expect(text).toMatch(/\n {2}written: \{ tensorfx: '[\d.]+' \},\n/)
    // The name is that which Node gives.
    const hash = createHash('sha1').update(large.realize().readBytes()).digest('hex')
    expect(text).toContain(`reader.storage('${hash}', 8000)`)
    expect([...store.files.keys()]).toEqual([`inputs/storages/${hash}`, 'a/b.mjs'])
  })

  it('reads as a program: graph, inputs, weights, settings', () => {
    const layer = new nn.Linear(4, 2)
    torch.noGrad(() => {
      for (const parameter of layer.parameters()) parameter.fill_(0.5)
    })
    const table = torch.tensor([0, 1, 1], { dtype: 'int64' })
    Object.assign(config, { reproAfter: 'dynamo', reproLevel: 2, reproTolerance: 0.25 })
    listen()
    const run = compile((x: Tensor, k: number) => torch.relu(layer(x.t().mul(k))).add(table.sum()), { backend: 'relu_compile_error_TESTING_ONLY' })
    const x = torch.ones([4, 5])
    x.requiresGrad = true
    thrownBy(() => run(x, 3).toArray())
    const text = textOf(store, pathOf(store, 'minifier_launcher.mjs'))
      .replace(/Written by .*/, 'Written by …')
      .replace(/written: .*/, 'written: …')
      .replace(/'file:\S*\/(\w+)\.js'/g, "'$1'")
    expect(text).toMatchInlineSnapshot(`
      "// A failure of the backend 'relu_compile_error_TESTING_ONLY', as a program of its own. Written by …
      //   node minifier_launcher.mjs [run | minify | analyze | minifier-query] [--help]
      import { config, nn, torch } from 'index'
      import { runRepro } from 'debug'

      Object.assign(config, { reproTolerance: 0.25 })

      class Repro extends nn.Module {
        forward(l_x2_, t1, t2, t3) {
          let transpose = torch.transpose(l_x2_, 0, 1); l_x2_ = null
          let mul = torch.mul(transpose, 3); transpose = null
          const linear = torch.nn.functional.linear(mul, t1, t2); mul = t1 = t2 = null
          const relu = torch.relu(linear)
          const sum_1 = torch.sum(t3); t3 = null
          const add = torch.add(relu, sum_1)
          return [add, linear, relu, sum_1]
        }
      }

      function loadArgs(reader) {
        const buf0 = reader.fill(20, 1)
        reader.tensor(buf0, [4, 5], { requiresGrad: true }) // l_x2_
        const buf1 = reader.values([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
        reader.tensor(buf1, [2, 4], { requiresGrad: true, parameter: true }) // t1
        const buf2 = reader.values([0.5, 0.5])
        reader.tensor(buf2, [2], { requiresGrad: true, parameter: true }) // t2
        const buf3 = reader.values([0, 1, 1], 'int64')
        reader.tensor(buf3, [3], { dtype: 'int64' }) // t3
      }
      loadArgs.version = 0

      await runRepro(Repro, loadArgs, {
        after: 'dynamo',
        command: 'minify',
        backend: 'relu_compile_error_TESTING_ONLY',
        accuracy: 'none',
        checkStr: null,
        signature: 'ReluCompileError|TFX_RELU_COMPILE|relu found in graph',
        onlyFwd: false,
        imports: [],
        saveDir: new URL('./checkpoints/', import.meta.url),
        written: …
      })
      "
    `)
  })
})
