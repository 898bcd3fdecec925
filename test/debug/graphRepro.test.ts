// The functions that write scripts for any graph: the parts of PyTorch's scripts, in text that runs.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx } from 'tensorfx/aot'
import { config, registerBackend } from 'tensorfx/compile'
import {
  MemoryFileStore,
  dumpCompilerGraphState,
  dumpToMinify,
  fileStore,
  generateStandaloneRepro,
  inductorFails,
  isolateFails,
  minifierDir,
  saveGraphRepro,
  setFileStore,
  setLogSink,
} from 'tensorfx/debug'
import type { Helper } from 'tensorfx/debug'
import { Graph, symbolicTrace } from 'tensorfx/fx'
import type { Query } from '../../src/debug/isolate/protocol.ts'
import { listen, resetConfig, runHere, textOf } from './inProcess.ts'

const nodeStore = fileStore()
let store = new MemoryFileStore()
beforeEach(() => {
  store = new MemoryFileStore()
  setFileStore(store)
  setLogSink(() => {})
  config.debugDirRoot = '/dumps'
})
afterEach(() => {
  setLogSink(null)
  setFileStore(nodeStore)
  resetConfig()
})

const x = torch.tensor([[1, -2]])
const relu = symbolicTrace((a: Tensor) => [torch.relu(a)])

describe('saveGraphRepro', () => {
  it("has the parts of PyTorch's script: imports, class, inputs, and the call that runs it", () => {
    const shared = torch.tensor([
      [1, 2],
      [3, 4],
    ])
    const inputs = [shared, shared.select(0, 0), 3, torch.ones([2, 2])] as const
    const gm = makeFx((a: Tensor, v: Tensor, n: number, y: Tensor) => [torch.relu(torch.mm(a, y)).add(v.mul(n))])(...inputs)
    const text = saveGraphRepro(gm, inputs, { stableOutput: true, accuracy: true })
    expect(text.match(/^(import|class|function|loadArgs|await).*$/gm)).toEqual([
      "import { config, nn, torch } from 'tensorfx'",
      "import { runRepro } from 'tensorfx/debug'",
      'class Repro extends nn.Module {',
      'function loadArgs(reader) {',
      'loadArgs.version = 0',
      'await runRepro(Repro, loadArgs, {',
    ])
    // Inputs that share memory have one storage.
    expect(text.match(/const buf\d/g)).toEqual(['const buf0', 'const buf1'])
    expect(text).toContain("  accuracy: 'accuracy',\n  checkStr: null,")
    expect(saveGraphRepro(gm, inputs, { stableOutput: true, accuracy: true })).toBe(text)
    expect(text).not.toMatch(/\d+\.\d+\.\d+|written:/)
    expect([...store.files.keys()]).toEqual([])
  })

  it.each([
    [{}, ["backend: 'inductor'", "command: 'run'", "accuracy: 'none'", "after: 'aot'", 'onlyFwd: true', 'saveDir: null', 'written: {']],
    [{ compilerName: 'eager_accuracy' }, ["backend: 'eager'", "accuracy: 'accuracy'"]],
    [{ compilerName: 'eager_accuracy', accuracy: false }, ["accuracy: 'none'"]],
    [
      { accuracy: 'strict_accuracy', command: 'minify', tracingMode: 'fake' },
      ["accuracy: 'strict_accuracy'", "command: 'minify'", "tracingMode: 'fake'"],
    ],
    [{ checkStr: "it's" }, ["checkStr: 'it\\'s'"]],
    [{ after: 'dynamo' }, ["after: 'dynamo'", 'onlyFwd: false']],
    [{ compilerName: 'unheard of' }, ['backend: null', '// Needs --backend: ']],
  ] as const)('%j', (options, parts) => {
    const text = saveGraphRepro(relu, [x], options)
    for (const part of parts) expect(text).toContain(part)
  })

  it('writes large data into a folder, if there is one', () => {
    const large = torch.linspace(0, 1, 3000)
    expect(saveGraphRepro(relu, [large], { saveDir: 'checkpoints', stableHash: true })).toMatch(
      /reader\.storage\('[0-9a-f]{40}', 12000\)[^]*saveDir: 'checkpoints'/,
    )
    expect([...store.files.keys()]).toEqual([expect.stringMatching(/^checkpoints\/storages\/[0-9a-f]{40}$/)])
  })

  it('keeps parameters, buffers, layers and nested modules as what they are', async () => {
    class Inner extends nn.Module {
      forward(): never {
        throw new Error('it only holds')
      }
    }
    class Model extends nn.Module {
      inner = new Inner()
      fc = new nn.Linear(2, 2)
      norm = new nn.BatchNorm1d(2).eval()
      w = new nn.Parameter(torch.ones([2]))
      constructor() {
        super()
        this.inner.registerBuffer('scale', torch.tensor([2, 3]))
      }
      forward(a: Tensor): Tensor {
        const { scale } = this.inner as unknown as { scale: Tensor }
        return torch
          .relu(this.norm(this.fc(a)) as Tensor)
          .mul(this.w)
          .mul(scale)
      }
    }
    const model = new Model()
    const gm = symbolicTrace(model)
    const text = saveGraphRepro(gm, [x], { compilerName: 'eager', command: 'get_args' })
    expect(text).toContain('this.fc = new nn.Linear(2, 2, { bias: true })')
    expect(text).toContain('this.norm.train(false)')
    expect(text).toContain('this.inner = new nn.Module()')
    expect(text).toMatch(/this\.inner\.registerBuffer\('scale', reader\.load\(buf\d, \[2\]\)\)/)
    expect(text).toMatch(/this\.registerParameter\('w', reader\.load\(buf\d, \[2\], \{ requiresGrad: true, parameter: true \}\)\)/)
    store.write(
      '/r.mjs',
      text.replace("command: 'get_args'", "command: 'run'").replace("backend: 'eager'", "backend: 'relu_accuracy_error_TESTING_ONLY'"),
    )
    expect((await runHere(store, '/r.mjs', ['--only-fwd'])).error).toBeNull()
  })

  it('checks its arguments', () => {
    expect(() => saveGraphRepro(3 as never, [x])).toThrow("saveGraphRepro: argument 'graph' must be a GraphModule")
    expect(() => saveGraphRepro(relu, x as never)).toThrow("saveGraphRepro: argument 'inputs'")
    expect(() => saveGraphRepro(relu, [x], { command: 'walk' as never })).toThrow("argument 'command'")
    expect(() => saveGraphRepro(relu, [x], { tracingMode: 'magic' as never })).toThrow("argument 'tracingMode' must be 'real', 'fake' or 'symbolic'")
    expect(() => saveGraphRepro(relu, [x], { accuracy: 'exact' as never })).toThrow("argument 'accuracy'")
    expect(() => saveGraphRepro(relu, [Symbol('s')])).toThrow("input 'a' cannot be written into a repro")
    expect(saveGraphRepro(relu.graph, [x])).toContain('torch.relu(a)')
  })
})

it('generateStandaloneRepro writes one file, which runs', async () => {
  const text = generateStandaloneRepro(relu, [torch.linspace(-1, 1, 3000)], { savePath: '/out/alone.mjs' })
  expect([...store.files.keys()]).toEqual(['/out/alone.mjs'])
  expect(textOf(store, '/out/alone.mjs')).toBe(text)
  expect((await runHere(store, '/out/alone.mjs', ['--backend', 'relu_compile_error_TESTING_ONLY'])).error?.message).toContain('relu found in graph')
  expect(generateStandaloneRepro(relu, [x])).toContain('saveDir: null')
})

it('dumpToMinify writes the launcher, and dumpCompilerGraphState the state, in the folder of the run', () => {
  const launcher = dumpToMinify(relu, [x], 'relu_accuracy_error_TESTING_ONLY_accuracy')
  expect(launcher).toBe(`${minifierDir()}/minifier_launcher.mjs`)
  expect(textOf(store, launcher)).toMatch(/command: 'minify',\n {2}backend: 'relu_accuracy_error_TESTING_ONLY',\n {2}accuracy: 'accuracy'/)
  expect(dumpCompilerGraphState(relu, [x], 'inductor', { accuracy: 'strict_accuracy' })).toBe(`${process.cwd()}/repro.mjs`)
  expect(textOf(store, `${minifierDir()}/checkpoints/3.mjs`)).toContain("accuracy: 'strict_accuracy'")
})

it('inductorFails and isolateFails say whether a graph fails, here and elsewhere', async () => {
  expect(inductorFails(relu, [x])).toBe(false)
  expect(inductorFails(relu, [Symbol('s')] as never)).toBe(false)
  const asked: Query[] = []
  const answering = (status: string) => async (): Promise<Helper> => {
    let answer: (message: unknown) => void = () => {}
    return {
      post: (query) => {
        asked.push(query)
        answer({ id: query.id, outcome: { status, message: '' } })
      },
      listen: (onMessage) => (answer = onMessage),
      kill: () => {},
    }
  }
  expect(await isolateFails(relu, [x], 'inductor', { startHelper: answering('fails'), checkStr: 'oh' })).toBe(true)
  expect(await isolateFails(relu, [x], 'inductor_accuracy', { startHelper: answering('unrelated') })).toBe(false)
  expect(asked.map(({ spec }) => [spec.backend, spec.accuracy, spec.checkStr])).toEqual([
    ['inductor', 'none', 'oh'],
    ['inductor', 'accuracy', null],
  ])
  await expect(isolateFails(relu, [x], 'unheard of', { startHelper: answering('fails') })).rejects.toThrow('the graph cannot be judged elsewhere')
  for (const timeoutMs of [0, NaN, {}, null])
    await expect(isolateFails(relu, [x], 'inductor', { startHelper: answering('fails'), timeoutMs: timeoutMs as never })).rejects.toThrow(
      `isolateFails: ${typeof timeoutMs === 'object' ? "option 'timeoutMs' must be a number" : "argument 'options.timeoutMs' must be a positive number"}`,
    )
})

describe('what the functions say of bad arguments', () => {
  const said = async (run: () => unknown): Promise<string> => {
    try {
      await run()
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
    return 'nothing'
  }

  it.each([
    [{ saveDir: 3 }, "argument 'saveDir' must be a string, got 3"],
    [{ earlier: 3 }, "argument 'earlier' must be an array, got 3"],
    [{ earlier: [[x], 4] }, "argument 'earlier[1]' must be an array, got 4"],
    [{ compilerName: 3 }, "argument 'compilerName' must be a string, got 3"],
    [{ command: 'walk' }, "argument 'command' must be one of run, minify, analyze, minifier-query, get_args, got 'walk'"],
    [{ after: 'eager' }, "argument 'after' must be 'aot' or 'dynamo', got 'eager'"],
    [{ stableOutput: 1 }, "option 'stableOutput' must be true or false, got 1"],
    [{ checkStr: 1 }, "argument 'checkStr' must be a string, got 1"],
    [{ tracingMode: 'magic' }, "argument 'tracingMode' must be 'real', 'fake' or 'symbolic', got 'magic'"],
    [{ accuracy: 'exact' }, "argument 'accuracy' must be true, false, 'none', 'accuracy' or 'strict_accuracy', got 'exact'"],
    [{ backend: 'eager' }, "unknown option 'backend'"],
  ])('saveGraphRepro, %j', async (options, text) => {
    const message = await said(() => saveGraphRepro(relu, [x], options as never))
    expect(message.slice(0, text.length + 16)).toBe(`saveGraphRepro: ${text}`)
  })

  it('each names itself, and writes nothing', async () => {
    const options = { accuracies: true } as never
    const calls: readonly (readonly [string, (graph: never, inputs: never, more: never) => unknown])[] = [
      ['saveGraphRepro', (graph, inputs, more) => saveGraphRepro(graph, inputs, more)],
      ['generateStandaloneRepro', (graph, inputs, more) => generateStandaloneRepro(graph, inputs, more)],
      ['dumpToMinify', (graph, inputs, more) => dumpToMinify(graph, inputs, 'eager', more)],
      ['dumpCompilerGraphState', (graph, inputs, more) => dumpCompilerGraphState(graph, inputs, 'eager', more)],
      ['isolateFails', (graph, inputs, more) => isolateFails(graph, inputs, 'eager', more)],
    ]
    for (const [name, call] of calls) {
      expect(await said(() => call(3 as never, [x] as never, {} as never))).toMatch(new RegExp(`^${name}: argument 'graph' must be a GraphModule`))
      expect(await said(() => call(relu as never, x as never, {} as never))).toMatch(new RegExp(`^${name}: argument 'inputs' must be an array`))
      expect(await said(() => call(relu as never, [x] as never, options))).toMatch(new RegExp(`^${name}: unknown option 'accuracies'`))
    }
    expect(await said(() => inductorFails(3 as never, [x]))).toMatch(/^inductorFails: argument 'graph'/)
    expect(await said(() => inductorFails(relu, [x], 3 as never))).toMatch(/^inductorFails: argument 'checkStr' must be a string/)
    expect(await said(() => generateStandaloneRepro(relu, [x], { savePath: 3 as never }))).toMatch(
      /^generateStandaloneRepro: argument 'savePath' must be a string/,
    )
    expect(await said(() => dumpToMinify(relu, [x], 3 as never))).toMatch(/^dumpToMinify: argument 'compilerName'/)
    expect(await said(() => dumpCompilerGraphState(relu, [x], 3 as never))).toMatch(/^dumpCompilerGraphState: argument 'compilerName'/)
    const startHelper = (): never => {
      throw new Error('not asked')
    }
    expect(await said(() => isolateFails(relu, [x], 'unheard of', { startHelper }))).toMatch(
      /^isolateFails: the graph cannot be judged elsewhere: .+\.$/,
    )
    expect(await said(() => isolateFails(relu, [Symbol('s')], 'eager', { startHelper }))).toMatch(
      /^isolateFails: the graph cannot be judged elsewhere: .*#0.*\.$/,
    )
    vi.stubGlobal('process', undefined)
    expect(await said(() => isolateFails(relu, [x], 'eager'))).toBe(
      'isolateFails: the graph cannot be judged elsewhere: there are no child processes here; pass startHelper.',
    )
    vi.unstubAllGlobals()
    expect(store.files.size).toBe(0)
  })
})

it('a graph without a module is written as one; a repro that is saved says where', () => {
  const graph = new Graph()
  graph.output([graph.callFunction(torch.relu, [graph.placeholder('a')])])
  expect(saveGraphRepro(graph, [x])).toContain('torch.relu(a)')
  const said = listen()
  generateStandaloneRepro(relu, [x], { savePath: '/out/alone.mjs' })
  expect(said).toEqual([['info', 'Saved standalone repro to /out/alone.mjs']])
})

it('isolateFails counts the end of the process, imports what the graph needs, and ends its helper', async () => {
  const asked: Query[] = []
  let ended = 0
  const dying = async (): Promise<Helper> => {
    let die: (reason: string) => void = () => {}
    return { post: (query) => (asked.push(query), die('exit code 3')), listen: (_, onDeath) => (die = onDeath), kill: () => void ended++ }
  }
  registerBackend('graph_repro_named', (gm) => gm, { module: 'file:///there/named.mjs' })
  expect(await isolateFails(relu, [x], 'graph_repro_named', { startHelper: dying, timeoutMs: 1000 })).toBe(true)
  expect([asked[0]?.imports, asked[0]?.spec, ended > 0]).toEqual([
    ['file:///there/named.mjs'],
    { backend: 'graph_repro_named', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true },
    true,
  ])
})
