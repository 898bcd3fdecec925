// Repro scripts as whole texts: graphs that hold layers, functions and tensors, and each option. (scripts.test.ts: what scripts do.)
import { afterEach, describe, expect, it, vi } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config } from 'tensorfx/compile'
import { MemoryFileStore } from 'tensorfx/debug'
import type { FileStore } from 'tensorfx/debug'
import { CodeGen, Graph, GraphModule, PH, symbolicTrace, wrap } from 'tensorfx/fx'
import { checkpointPaths, launcherPaths, leadPaths, packageSpecifier, reproText, writeRepro } from '../../src/debug/script/reproScript.ts'
import type { ReproOptions } from '../../src/debug/script/reproScript.ts'
import { resetConfig } from './inProcess.ts'

afterEach(() => {
  vi.unstubAllGlobals()
  resetConfig()
})

const t = torch.tensor

/** A module that holds others. */
class Holder extends nn.Module {
  constructor(members: Readonly<Record<string, unknown>> = {}) {
    super()
    Object.assign(this, members)
  }
  forward(): void {}
}

const spec = { backend: 'mine', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true } as const
const usual: ReproOptions = { after: 'aot', command: 'run', spec, imports: [], stableOutput: true }

describe('a script', () => {
  it('of everything that a graph can hold', () => {
    const twice = wrap((x: Tensor): Tensor => x.mul(2), { name: 'whole_scripts_twice' })
    class Inner extends Holder {
      readonly lin = new nn.Linear(2, 2, { bias: false })
      readonly drop = new nn.Dropout(0.25).eval()
      constructor() {
        super()
        torch.noGrad(() => this.lin.weight.fill_(0.5))
        this.registerBuffer('my-buffer', t([1, 2]))
        this.registerParameter('scale', new nn.Parameter(t([3])))
      }
    }
    const graph = new Graph()
    const [x, y] = [graph.placeholder('x'), graph.placeholder('y')]
    const lin = graph.callModule('block.lin', [x])
    const drop = graph.callModule('block.drop', [lin])
    const own = graph.callFunction(twice, [drop])
    const sum = graph.callFunction(torch.add, [own, graph.getAttr('block.my-buffer')])
    const scaled = graph.callFunction(torch.mul, [sum, graph.getAttr('block.scale')])
    graph.output([graph.callFunction(torch.add, [scaled, graph.getAttr('factor')]), y])
    const root = new Holder({ block: new Inner(), factor: 2.5, unused: new nn.Linear(1, 1) })
    const text = reproText(null, null, null, new GraphModule(root, graph), [t([1, 2]), 'text'], {
      ...usual,
      after: 'dynamo',
      command: 'minify',
      spec: { ...spec, accuracy: 'accuracy', checkStr: "it's", signature: 'accuracy|nan', contract: true, death: 'exit 7', onlyFwd: false },
      imports: ['data:text/javascript,1', 'data:text/javascript,2'],
      earlier: [
        [t([3, 4]), 'a'],
        [t([5, 6]), 'b'],
      ],
      notes: ['first note', 'second\nnote'],
      runs: 3,
      record: 'last_run.json',
      backendProblem: 'it is a function',
      tracingMode: 'fake',
    })
    expect(text).toMatchInlineSnapshot(`
      "// A failure of the backend 'mine', as a program of its own. Written by tensorfx.
      // Needs --backend: it is a function.
      // It calls the graph 3 times.
      // first note
      // second note
      //   node repro.mjs [run | minify | analyze | minifier-query] [--help]
      import { config, nn, torch } from 'tensorfx'
      import { runRepro } from 'tensorfx/debug'
      import { registered } from 'tensorfx/interop'
      import 'data:text/javascript,1'
      import 'data:text/javascript,2'

      const whole_scripts_twice_1 = registered('user.whole_scripts_twice')

      class Repro extends nn.Module {
        constructor(reader) {
          super()
          this.block = new nn.Module()
          this.block.lin = new nn.Linear(2, 2, { bias: false })
          const buf0 = reader.values([0.5, 0.5, 0.5, 0.5])
          this.block.lin.registerParameter('weight', reader.load(buf0, [2, 2], { requiresGrad: true, parameter: true }))
          this.block.drop = new nn.Dropout({ p: 0.25, inplace: false })
          this.block.drop.train(false)
          const buf1 = reader.values([1, 2])
          this.block.registerBuffer('my-buffer', reader.load(buf1, [2]))
          const buf2 = reader.values([3])
          this.block.registerParameter('scale', reader.load(buf2, [1], { requiresGrad: true, parameter: true }))
          this.factor = 2.5
        }

        forward(x, y) {
          let block_lin = this.block.lin.call(x); x = null
          let block_drop = this.block.drop.call(block_lin); block_lin = null
          let whole_scripts_twice = whole_scripts_twice_1(block_drop); block_drop = null
          const block_my_buffer = this.block['my-buffer']
          let add = torch.add(whole_scripts_twice, block_my_buffer); whole_scripts_twice = null
          const block_scale = this.block.scale
          let mul = torch.mul(add, block_scale); add = null
          const factor = this.factor
          const add_1 = torch.add(mul, factor); mul = null
          return [add_1, y]
        }
      }

      function loadArgs(reader) {
        const buf0 = reader.values([3, 4])
        reader.tensor(buf0, [2]) // x
        reader.value('a') // y
        reader.nextCall()
        const buf1 = reader.values([5, 6])
        reader.tensor(buf1, [2]) // x
        reader.value('b') // y
        reader.nextCall()
        const buf2 = reader.values([1, 2])
        reader.tensor(buf2, [2]) // x
        reader.value('text') // y
      }
      loadArgs.version = 0

      await runRepro(Repro, loadArgs, {
        after: 'dynamo',
        command: 'minify',
        backend: null,
        accuracy: 'accuracy',
        checkStr: 'it\\'s',
        signature: 'accuracy|nan',
        onlyFwd: false,
        contract: true,
        death: 'exit 7',
        runs: 3,
        tracingMode: 'fake',
        record: new URL('./last_run.json', import.meta.url),
        imports: ['data:text/javascript,1', 'data:text/javascript,2'],
        saveDir: null,
      })
      "
    `)
  })

  it('of a small graph, with a store and a folder', () => {
    const store = new MemoryFileStore()
    config.reproTolerance = 0.5
    Object.assign(config, { reproAfter: 'dynamo', reproLevel: 2, debugDirRoot: '/x' })
    const gm = symbolicTrace((x: Tensor) => [torch.asStrided(x, [2], [1], 1)])
    const text = writeRepro(store, '/a b/it.mjs', '/c d/in', gm, [torch.arange(4).narrow(0, 1, 3)], {
      ...usual,
      stableOutput: false,
      runs: 1,
      notes: [],
    })
    const { version, versions, platform, arch } = process
    const package_ = new URL('../../dist/', import.meta.url).href
    const tensorfx = / Written by tensorfx (\S+) on Node (\S+)\.\n/.exec(text)
    expect(tensorfx?.[2]).toBe(version)
    expect(
      text
        .replace(/written: .*/, 'written: …')
        .replaceAll(package_, 'file:dist/')
        .replace(/tensorfx \S+ on Node \S+\./, 'tensorfx … on Node ….'),
    ).toMatchInlineSnapshot(`
      "// A failure of the backend 'mine', as a program of its own. Written by tensorfx … on Node ….
      //   node it.mjs [run | minify | analyze | minifier-query] [--help]
      import { config, nn, torch } from 'file:dist/index.js'
      import { runRepro } from 'file:dist/entries/debug.js'

      Object.assign(config, { reproTolerance: 0.5 })

      class Repro extends nn.Module {
        forward(x) {
          const as_strided = torch.asStrided(x, [2], [1], 1); x = null
          return [as_strided]
        }
      }

      function loadArgs(reader) {
        const buf0 = reader.values([0, 1, 2, 3])
        reader.tensor(buf0, [3], { offset: 1 }) // x
      }
      loadArgs.version = 0

      await runRepro(Repro, loadArgs, {
        after: 'aot',
        command: 'run',
        backend: 'mine',
        accuracy: 'none',
        checkStr: null,
        signature: null,
        onlyFwd: true,
        imports: [],
        saveDir: new URL('../c%20d/in/', import.meta.url),
        written: …
      })
      "
    `)
    expect(text).toContain(`written: { tensorfx: '${tensorfx?.[1]}', node: '${version}', v8: '${versions.v8}', platform: '${platform}-${arch}'`)
    expect([...store.files.keys()]).toEqual(['/a b/it.mjs'])
    const at = (path: string, folder: string | null): string | undefined => {
      const lines = reproText(store, path, folder, gm, [torch.arange(4).narrow(0, 1, 3)], usual).split('\n')
      return lines.find((line) => line.includes('saveDir'))?.trim()
    }
    expect([at('/a/it.mjs', '/a'), at('/a/it.mjs', '/a/b'), at('/a/it.mjs', '/'), at('/a/it.mjs', '/a/.b'), at('/a/it.mjs', null)]).toEqual([
      "saveDir: new URL('./', import.meta.url),",
      "saveDir: new URL('./b/', import.meta.url),",
      "saveDir: new URL('../', import.meta.url),",
      "saveDir: new URL('.b/', import.meta.url),",
      'saveDir: null,',
    ])
    vi.stubGlobal('process', undefined)
    expect([at('it.mjs', ''), at('it.mjs', './'), packageSpecifier('debug', '/elsewhere/it.mjs'), packageSpecifier('', 'x')]).toEqual([
      "saveDir: new URL('./', import.meta.url),",
      "saveDir: new URL('.//', import.meta.url),",
      'tensorfx/debug',
      'tensorfx',
    ])
  })

  it('of a graph that takes its inputs as a program does has one parameter for each', () => {
    const nested = symbolicTrace((of: { a: Tensor; b: Tensor }) => [of.a.add(of.b)], { concreteArgs: { of: { a: PH, b: PH } } })
    const text = reproText(null, null, null, nested, [{ a: t([1]), b: t([2]) }], { ...usual, earlier: [[{ a: t([3]), b: t([4]) }]] })
    expect(text.slice(text.indexOf('class Repro'), text.indexOf('loadArgs.version'))).toMatchInlineSnapshot(`
      "class Repro extends nn.Module {
        forward(of_1, of_2) {
          const add = of_1.add(of_2); of_1 = of_2 = null
          return [add]
        }
      }

      function loadArgs(reader) {
        const buf0 = reader.values([3])
        reader.tensor(buf0, [1]) // of_1
        const buf1 = reader.values([4])
        reader.tensor(buf1, [1]) // of_2
        reader.nextCall()
        const buf2 = reader.values([1])
        reader.tensor(buf2, [1]) // of_1
        const buf3 = reader.values([2])
        reader.tensor(buf3, [1]) // of_2
      }
      "
    `)
    expect(nested.graph.codegen.constructor).not.toBe(CodeGen)
  })

  it('cannot be of what no code can make', () => {
    const write = (gm: GraphModule, inputs: readonly unknown[] = [t([1])]): string => reproText(null, null, null, gm, inputs, usual)
    const calling = (fn: (...args: never[]) => unknown): GraphModule => {
      const graph = new Graph()
      graph.output([graph.callFunction(fn, [graph.placeholder('x')])])
      return new GraphModule({}, graph)
    }
    const mine = (x: Tensor): Tensor => x
    expect(() => write(calling(mine))).toThrow(
      "the graph uses 'mine_1' (a function), which a repro cannot hold: wrap a function with fx.wrap(fn, { name }).",
    )
    class Layer extends nn.Module {
      forward(x: Tensor): Tensor {
        return x
      }
    }
    const graph = new Graph()
    graph.output([graph.callModule('of.layer', [graph.placeholder('x')])])
    const root = new Holder({ of: new Holder({ layer: new Layer() }) })
    expect(() => write(new GraphModule(root, graph))).toThrow(
      "the module 'of.layer' (a Layer) cannot be written into a repro: only layers of torch.nn can. Trace its operators, e.g. with makeFx.",
    )
    class Own extends CodeGen {}
    const relu = symbolicTrace((x: Tensor) => [torch.relu(x)])
    relu.graph.setCodegen(new Own())
    expect(() => write(relu)).toThrow('the graph has a code generator of its own, Own, which a repro cannot hold; set a CodeGen of tensorfx.')
  })

  it('leaves no files where it cannot be written, and of an owner only those of its last one', () => {
    const large = (from: number): Tensor => torch.arange(from, from + 2000)
    const gm = symbolicTrace((x: Tensor) => [torch.relu(x)])
    const store = new MemoryFileStore()
    const failing: FileStore = {
      read: (path) => store.read(path),
      write: (path, content) => {
        if (path.endsWith('.mjs')) throw new Error('EACCES')
        store.write(path, content)
      },
      remove: (path) => store.remove(path),
    }
    expect(() => writeRepro(failing, '/a.mjs', '/in', gm, [large(0)], usual)).toThrow('EACCES')
    expect([...store.files.keys()]).toEqual([])
    const [first, second] = [{}, {}]
    const files = (): string[] => [...store.files.keys()].filter((path) => !path.endsWith('.mjs')).toSorted()
    writeRepro(store, '/a.mjs', '/in', gm, [large(0)], { ...usual, owner: first })
    const [zero] = files()
    writeRepro(store, '/b.mjs', '/in', gm, [large(0)], { ...usual, owner: second })
    // The first one's file is still needed by the second.
    writeRepro(store, '/a.mjs', '/in', gm, [large(1)], { ...usual, owner: first })
    expect(files()).toHaveLength(2)
    writeRepro(store, '/b.mjs', '/in', gm, [large(1)], { ...usual, owner: second })
    expect(files()).toHaveLength(1)
    expect(files()).not.toContain(zero)
    writeRepro(store, '/c.mjs', '/in', gm, [large(2)], usual)
    writeRepro(store, '/c.mjs', '/in', gm, [large(3)], usual)
    expect(files()).toHaveLength(3)
  })

  it('lies where its kind lies', () => {
    expect([launcherPaths('/run'), leadPaths('/run', 2), checkpointPaths('/run', 12)]).toEqual([
      { script: '/run/minifier/minifier_launcher.mjs', saveDir: '/run/minifier/checkpoints' },
      { script: '/run/minifier/leads/lead_2.mjs', saveDir: '/run/minifier/checkpoints' },
      { script: '/run/minifier/checkpoints/12.mjs', saveDir: '/run/minifier/checkpoints' },
    ])
  })
})
