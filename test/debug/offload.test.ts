// Values of a graph's nodes in files: those that the minifier would keep in memory, and those that `analyze` compares.
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { registerBackend } from 'tensorfx/compile'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { analyze, MemoryFileStore, minifier, setFileStore } from 'tensorfx/debug'
import type { FileStore, MinifierOptions, MinifierResult } from 'tensorfx/debug'
import { captureValues, OffloadedValue } from '../../src/debug/minify/concreteValues.ts'
import { CONCRETE_VALUE } from '../../src/debug/minify/subgraph.ts'
import { TensorFiles } from '../../src/debug/files/tensorFiles.ts'

let before: FileStore
let store: MemoryFileStore
beforeEach(() => {
  store = new MemoryFileStore()
  before = setFileStore(store)
})
afterEach(() => void setFileStore(before))

const OFFLOAD = { offloadToDisk: true, saveDir: '/run' }
const uses = (gm: GraphModule, fn: unknown): boolean => [...gm.graph.nodes].some((node) => node.target === fn)
const bits = (values: readonly unknown[]): unknown => values.map((value) => [...(value as Tensor).clone().realize().readBytes()])

describe('a tensor in a file', () => {
  const round = (value: unknown): unknown => {
    const files = new TensorFiles(store, '/run')
    files.write('folder/value', value)
    return files.read('folder/value')
  }
  const base = torch.arange(24, { dtype: 'float32' }).reshape([4, 6])

  it.each<[string, Tensor]>([
    ['one on a storage of its own', base],
    ['a view that begins later', base.narrow(0, 2, 1)],
    ['a transposed one', base.t()],
    ['an expanded one', torch.ones([1, 3]).expand([5, 3])],
    ['an empty one', torch.empty([0, 4])],
    ['one without dimensions', torch.tensor(2.5, { dtype: 'float64' })],
    ['NaN, infinities and zeros', torch.tensor([NaN, Infinity, -Infinity, 0, -0])],
    ['one in half precision', torch.tensor([0.1, 70000], { dtype: 'float16' })],
    ['int64 beyond 2^53', torch.tensor([2n ** 60n + 1n], { dtype: 'int64' })],
    ['bool', torch.tensor([true, false])],
  ])('comes back with its layout and its bits: %s', (_, tensor) => {
    const read = round(tensor) as Tensor
    expect([read.dtype, read.shape, read.stride()]).toEqual([tensor.dtype, tensor.shape, tensor.stride()])
    expect(bits([read])).toEqual(bits([tensor]))
    expect([read.requiresGrad, read.isParameter]).toEqual([false, false])
  })

  it('still requires grad, or is a parameter', () => {
    expect((round(torch.ones([2], { requiresGrad: true })) as Tensor).requiresGrad).toBe(true)
    const weight = torch.ones([2], { requiresGrad: true })
    weight.isParameter = true
    expect((round(weight) as Tensor).isParameter).toBe(true)
  })

  it('may be another value, or a list', () => {
    const values = [
      3,
      -0,
      NaN,
      -Infinity,
      2n ** 70n,
      true,
      'text',
      null,
      undefined,
      [1, [2n, null]],
      new Map([[1, { storage: 'x', nbytes: 1 }]]),
      { number: '3' },
    ]
    for (const value of values) expect(round(value)).toEqual(value)
    expect(Object.is(round(-0), -0)).toBe(true)
    expect(() => round(Symbol('s'))).toThrow(/^input 'folder\/value' cannot be written/)
  })

  it('is missed by its path, and not read if it is damaged', () => {
    const files = new TensorFiles(store, '/run')
    expect(() => files.read('a/b')).toThrow('there is no file /run/tensors/a/b.json')
    for (const text of ['{', '{}', '{"tensor":3}', '{"storage":"x","nbytes":4}', '{"kind":"tensor"}']) {
      store.write('/run/tensors/a/b.json', text)
      expect(() => files.read('a/b'), text).toThrow(/^the file \/run\/tensors\/a\/b\.json cannot be read: /)
    }
    files.write('a/b', torch.ones([3]))
    const [path] = [...store.files.keys()].filter((name) => name.includes('/storages/'))
    store.write(path ?? '', new Uint8Array(12))
    expect(() => files.read('a/b')).toThrow(/the file is damaged/)
  })
})

const w = torch.randn([4, 4])
const GRAPHS: Readonly<Record<string, [GraphModule, readonly Tensor[]]>> = {
  chain: [symbolicTrace((x: Tensor) => x.sin().cos().tanh().relu().exp().sigmoid()), [torch.randn([3])]],
  branches: [
    symbolicTrace((x: Tensor, y: Tensor) => {
      const a = x.sin().mul(y.cos())
      const b = a.matmul(w).relu()
      return [b.add(a), torch.softmax(b.sub(x), 1)]
    }),
    [torch.randn([4, 4]), torch.randn([4, 4])],
  ],
  'writes in place': [
    symbolicTrace((x: Tensor) => {
      const a = x.sin()
      a.mul_(2)
      return a.relu().add(a.cos())
    }),
    [torch.randn([3])],
  ],
}

const fails = (gm: GraphModule): boolean => uses(gm, torch.relu) || [...gm.graph.nodes].some((node) => node.target === 'relu')
const search = (name: string, options: MinifierOptions): Promise<MinifierResult> => {
  const [gm, inputs] = GRAPHS[name] as [GraphModule, readonly Tensor[]]
  return minifier(gm, inputs, fails, options)
}

describe('the minifier', () => {
  it.each(Object.keys(GRAPHS))('ends at the same graph and inputs with its values in files: %s', async (name) => {
    const plain = await search(name, {})
    const filed = await search(name, OFFLOAD)
    expect(String(filed.gm.graph)).toBe(String(plain.gm.graph))
    expect(bits(filed.inputs)).toEqual(bits(plain.inputs))
    expect([filed.queries, filed.steps.length]).toEqual([plain.queries, plain.steps.length])
    expect([...store.files.keys()].some((path) => /^\/run\/tensors\/eager-[0-9a-f]{12}\/\w+\.json$/.test(path))).toBe(true)
  })

  it('keeps no tensor of the graph in memory', () => {
    const [gm, inputs] = GRAPHS['branches'] as [GraphModule, readonly Tensor[]]
    const state = { graph: gm.graph.deepCopy(), inputs, earlier: [inputs] }
    captureValues(gm, state, { files: new TensorFiles(store, '/run'), areWritten: false })
    const values = [...state.graph.nodes].map((node) => node.meta[CONCRETE_VALUE])
    expect(values.filter((value) => value instanceof OffloadedValue).length).toBeGreaterThan(5)
    expect(values.filter((value) => torch.isTensor(value))).toEqual([])
    const folders = new Set([...store.files.keys()].filter((path) => path.includes('/tensors/')).map((path) => path.split('/')[3]))
    // One for each call.
    expect(folders.size).toBe(2)
  })

  it('never puts a value in the place of a view, which would share nothing', async () => {
    const gm = symbolicTrace((x: Tensor) => x.sin().view([4]).relu())
    const inputs = [torch.randn([2, 2])]
    const filed = await minifier(gm, inputs, fails, OFFLOAD)
    expect([...filed.gm.graph.nodes].map((node) => node.target)).toEqual(['sin', 'view', 'relu', 'output'])
    expect((await minifier(gm, inputs, fails)).gm.graph.nodes.length).toBe(3)
    const parts = symbolicTrace((x: Tensor) => torch.split(x.sin(), 2)[0]?.relu()?.exp())
    const kept = await minifier(parts, [torch.randn([4])], fails, OFFLOAD)
    expect([...kept.gm.graph.nodes].map((node) => node.name)).toEqual(['sin', 'split', 'getitem', 'relu', 'output'])
  })

  it('takes the values of an earlier search', async () => {
    await search('chain', OFFLOAD)
    const written = new Map(store.files)
    let writes = 0
    setFileStore({ read: (path) => store.read(path), write: () => void writes++ })
    const again = await search('chain', { ...OFFLOAD, skipOffload: true })
    expect(again.gm.graph.nodes.length).toBe(3)
    expect(writes).toBe(0)
    expect(store.files).toEqual(written)
    // Those of another graph are others.
    await expect(search('branches', { ...OFFLOAD, skipOffload: true })).rejects.toThrow(
      /there is no file \/run\/tensors\/eager-[0-9a-f]{12}\/\w+\.json: no earlier run/,
    )
  })

  it.each<[MinifierOptions, RegExp]>([
    [{ offloadToDisk: true }, /^minifier: offloadToDisk needs the folder 'saveDir'/],
    [{ skipOffload: true }, /^minifier: skipOffload /],
    [{ offloadToDisk: 1 as never }, /option 'offloadToDisk' must be true or false/],
    [{ offloadToDisk: true, saveDir: 3 as never }, /options.saveDir/],
  ])('refuses %o', async (options, message) => {
    await expect(search('chain', options)).rejects.toThrow(message)
  })
})

describe('analyze', () => {
  let runs = 0
  let wrong = true
  beforeEach(() => {
    runs = 0
    wrong = true
  })
  beforeAll(() => {
    registerBackend('counts_runs', (gm) => {
      const right = compile(gm, { backend: 'eager' })
      return (...inputs: readonly unknown[]) => {
        runs++
        const values = right(...(inputs as Tensor[])) as Tensor[]
        return wrong ? values.map((value, i) => (i === 1 ? value.mul(1.5) : value)) : values
      }
    })
  })
  const [gm, inputs] = GRAPHS['chain'] as [GraphModule, readonly Tensor[]]
  const report = (options: object): string => analyze(gm, inputs, 'counts_runs', { saveDir: '/run', ...options })

  it('takes the values that an earlier run of the backend saved', () => {
    const first = report({})
    expect(first).toMatch(/^DIVERGED at cos: /)
    expect(runs).toBe(2)
    wrong = false
    expect(report({ skipSavingCompiled: true, checkDeterministic: false })).toBe(first)
    expect(runs).toBe(2)
    // What it computes now is something else.
    expect(report({ skipSavingCompiled: true })).toContain('NONDETERMINISTIC counts_runs at cos')
    expect(report({})).toMatch(/^No divergence found/)
  })

  it('takes the values in float64 that an earlier run saved', () => {
    report({})
    const [path] = [...store.files.keys()].filter((name) => /\/float64-[0-9a-f]{12}\/tanh/.test(name))
    new TensorFiles(store, '/run').write((path ?? '').replace('/run/tensors/', '').replace('.json', ''), torch.full([3], 7, { dtype: 'float64' }))
    wrong = false
    expect(report({})).toMatch(/^No divergence found/)
    wrong = true
    report({})
    new TensorFiles(store, '/run').write((path ?? '').replace('/run/tensors/', '').replace('.json', ''), torch.full([4], 7, { dtype: 'float64' }))
    expect(report({ skipSavingFloat64: true })).toContain('DIVERGED at cos')
  })

  it('says which value nobody saved', () => {
    expect(() => report({ skipSavingFloat64: true })).toThrow(
      /there is no file \/run\/tensors\/float64-[0-9a-f]{12}\/sin\.json: no earlier run saved/,
    )
  })
})
