// What a hunt does beside shrinking a graph: failures that come and go, failures of other kinds, values, settings, scripts, in this process.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config, registerBackend } from 'tensorfx/compile'
import {
  Isolator,
  MemoryFileStore,
  analyze,
  childEntry,
  fileStore,
  judge,
  minifier,
  minifyBackendFailure,
  setFileStore,
  setLogSink,
} from 'tensorfx/debug'
import type { Backend } from 'tensorfx/compile'
import { Interpreter, symbolicTrace } from 'tensorfx/fx'
import type { GraphModule, Node } from 'tensorfx/fx'
import { temporaryFolder } from '../helpers/folder.ts'
import { nodeHelper } from '../../src/debug/isolate/nodeHelper.ts'
import { Faulty, rightValue } from './faultyBackends.ts'
import { distUrl } from './processes.ts'

childEntry.url = distUrl('entries/debugChild.js')
const compileUrl = distUrl('entries/compile.js')
const work = temporaryFolder('tensorfx-hunt-')
const nodeStore = fileStore()
beforeEach(() => void setLogSink(() => {}))
afterEach(() => {
  setLogSink(null)
  setFileStore(nodeStore)
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

const has = (gm: GraphModule, name: string): boolean => [...gm.graph.nodes].some((node) => node.name.startsWith(name))
const chain = (): GraphModule => symbolicTrace((x: Tensor) => [torch.cos(torch.cos(torch.relu(torch.sin(torch.sin(x)))))])
const operators = (gm: GraphModule): string[] => [...gm.graph.nodes].filter((n) => n.op === 'call_function').map((n) => n.name.replace(/_\d+$/, ''))

describe('a failure that comes and goes', () => {
  it('is found, minified and reported with its rate', async () => {
    let calls = 0
    // Deterministic, and without a period that the queries could fall into step with.
    const chance = (): boolean => (Math.sin(++calls * 12.9898) * 43758.5453) % 1 > 0
    const lines: string[] = []
    const result = await minifier(chain(), [torch.randn([3])], (gm) => has(gm, 'relu') && chance(), { print: (line) => lines.push(line) })
    expect(operators(result.gm)).toEqual(['relu'])
    expect(result.failureRate).toBeGreaterThan(0.2)
    expect(result.failureRate).toBeLessThan(0.8)
    expect(lines.some((line) => /^The failure comes and goes: \d+% of the final runs failed$/.test(line))).toBe(true)
  })

  it('has a script that says so, and runs the graph until it fails', async () => {
    const store = new MemoryFileStore()
    setFileStore(store)
    let calls = 0
    const sometimes = (gm: GraphModule): GraphModule => {
      if (has(gm, 'relu') && ++calls % 3 !== 0) throw new Error('sometimes')
      return gm
    }
    const result = await minifyBackendFailure(chain(), [torch.randn([3])], { backend: sometimes, isolate: false, runDir: 'run', print: () => {} })
    const script = Buffer.from(store.read(result.path ?? '') ?? []).toString()
    expect(script).toMatch(/\/\/ The failure comes and goes: it was seen in \d+% of the runs/)
    expect(script).toContain(`it was seen in ${Math.round(100 * result.failureRate)}% of the runs`)
    // So many runs fail at least once in 99 of 100 cases.
    const runs = Number(/runs: (\d+),/.exec(script)?.[1])
    expect((1 - result.failureRate) ** runs).toBeLessThanOrEqual(0.01)
    expect((1 - result.failureRate) ** (runs - 1)).toBeGreaterThan(0.01)
  })

  it('that never comes again in a fresh process is not the result', async () => {
    const lasting = (gm: GraphModule): boolean => operators(gm).includes('sin') && has(gm, 'relu')
    // Once the search is over, only graphs with a sin fail.
    const result = await minifier(chain(), [torch.randn([3])], (gm) => has(gm, 'relu'), { finalCheck: lasting })
    expect(operators(result.gm)).toContain('sin')
    await expect(minifier(chain(), [torch.randn([3])], (gm) => has(gm, 'relu'), { finalCheck: () => false })).rejects.toThrow(
      'when each is judged anew',
    )
    // The smallest graph is judged at the end of both searches, and each larger one once.
    const judged: string[] = []
    const finalCheck = (gm: GraphModule): boolean => (judged.push(operators(gm).join(' ')), false)
    await expect(minifier(chain(), [torch.randn([3])], (gm) => has(gm, 'relu'), { finalCheck })).rejects.toThrow()
    expect(judged.filter((text) => text === 'relu')).toHaveLength(2 * 16)
    expect(judged.filter((text) => text === 'sin sin relu cos cos')).toHaveLength(16)
  })
})

describe('failures of different kinds', () => {
  const twoBugs = (gm: GraphModule): GraphModule => {
    if (has(gm, 'relu')) throw new RangeError('the bug that is hunted')
    if (has(gm, 'sin')) throw new TypeError('another bug')
    return gm
  }

  it('do not mislead the search, and are kept as leads', async () => {
    const store = new MemoryFileStore()
    setFileStore(store)
    const result = await minifyBackendFailure(chain(), [torch.randn([3])], { backend: twoBugs, isolate: false, runDir: 'run', print: () => {} })
    expect(operators(result.gm)).toEqual(['relu'])
    expect(result.leads).toMatchObject([{ signature: 'TypeError||another bug', message: 'a different error: TypeError: another bug' }])
    expect(Buffer.from(store.read(result.leads[0]?.path ?? '') ?? []).toString()).toContain("signature: 'TypeError||another bug'")
  })

  it('are named if the original fails in another way than the one that is looked for', async () => {
    const options = { backend: twoBugs, isolate: false, checkStr: 'quite another', print: () => {} } as const
    await expect(minifyBackendFailure(chain(), [torch.randn([3])], options)).rejects.toThrow(
      /did not fail the tester.*It failed in another way: .*RangeError: the bug that is hunted/,
    )
  })

  it('are left aside if the text or signature of the wanted one is known', async () => {
    const kept = async (options: object): Promise<unknown> => {
      const result = await minifyBackendFailure(chain(), [torch.randn([3])], { backend: twoBugs, isolate: false, print: () => {}, ...options })
      return [operators(result.gm), result.leads.map((lead) => lead.signature)]
    }
    const hunted = 'RangeError||the bug that is hunted'
    expect(await kept({ signature: hunted })).toEqual([['relu'], ['TypeError||another bug']])
    expect(await kept({ checkStr: 'hunted' })).toEqual([['relu'], ['TypeError||another bug']])
    await expect(kept({ signature: 'RangeError||quite another' })).rejects.toThrow(`It failed in another way: a different error: RangeError`)
    // The text of an error does not matter where its signature was not asked for.
    expect(await kept({ checkStr: 'bug' })).toEqual([[expect.stringMatching(/sin|relu/) as string], []])
  })

  it('are at most five', async () => {
    // Without its sin and relu, every graph fails in a way of its own.
    const failing = (gm: GraphModule): never => {
      const isHunted = ['sin', 'relu'].every((name) => operators(gm).includes(name))
      throw Object.assign(new Error('no kernel'), { name: isHunted ? 'Hunted' : operators(gm).join('_') })
    }
    const gm = symbolicTrace((x: Tensor) => [torch.exp(torch.relu(torch.cos(torch.tanh(torch.sin(torch.neg(x))))))])
    const store = new MemoryFileStore()
    setFileStore(store)
    const result = await minifyBackendFailure(gm, [torch.randn([3])], { backend: failing, isolate: false, runDir: 'run', print: () => {} })
    expect(operators(result.gm)).toEqual(['sin', 'relu'])
    const paths = [1, 2, 3, 4, 5].map((number) => `run/minifier/leads/lead_${number}.mjs`)
    expect(result.leads.map((lead) => lead.path)).toEqual(paths)
    expect(new Set(result.leads.map((lead) => lead.signature)).size).toBe(5)
    expect([...store.files.keys()].filter((path) => path.includes('/leads/'))).toEqual(paths)
  })

  it('wrong numbers and errors are told apart', () => {
    const spec = { backend: 'relu_runtime_error_TESTING_ONLY', accuracy: 'accuracy', checkStr: null, signature: null, onlyFwd: true } as const
    expect(judge(chain(), [torch.ones([2])], spec)).toMatchObject({
      status: 'unrelated',
      signature: expect.stringContaining('ReluRuntimeError') as string,
    })
    expect(judge(chain(), [torch.ones([2])], { ...spec, backend: 'relu_accuracy_error_TESTING_ONLY' })).toMatchObject({
      status: 'fails',
      message: expect.stringMatching(/^Bad accuracy detected\nRMSE/) as string,
    })
    expect(judge(chain(), [torch.ones([2])], { ...spec, accuracy: 'none', death: 'crash' })).toMatchObject({ status: 'unrelated' })
  })
})

describe('values', () => {
  const shrunk = async (gm: GraphModule, inputs: readonly unknown[], fails: (values: readonly Tensor[], gm: GraphModule) => boolean) =>
    minifier(gm, inputs, (candidate, values) => fails(values as readonly Tensor[], candidate), { shrinkValues: true })

  it('a relu over [8, 8, 8, 8] becomes one over a single one', async () => {
    const result = await shrunk(chain(), [torch.randn([8, 8, 8, 8], { dtype: 'float64', requiresGrad: true })], (_values, gm) => has(gm, 'relu'))
    const [input] = result.inputs as readonly Tensor[]
    expect([input?.shape, input?.toArray(), input?.dtype, input?.requiresGrad]).toEqual([[1], [1], 'float32', false])
    expect(result.checks).toBeLessThanOrEqual(20)
  })

  it('the one element that matters is kept', async () => {
    const x = torch.randn([10, 10])
    x.select(0, 7).select(0, 3).fill_(500)
    const gm = symbolicTrace((t: Tensor) => [torch.exp(t)])
    const result = await shrunk(gm, [x], ([t]) =>
      Boolean(
        torch
          .isinf(torch.exp(t ?? x))
          .any()
          .item(),
      ),
    )
    expect((result.inputs as readonly Tensor[]).map((t) => t.toArray())).toEqual([[500]])
  })

  it('sizes that must agree shrink together, as far as the failure allows', async () => {
    const gm = symbolicTrace((a: Tensor, b: Tensor) => [torch.matmul(a, b)])
    const result = await shrunk(gm, [torch.randn([6, 8]), torch.randn([8, 4])], ([a, b], g) => has(g, 'matmul') && a?.ndim === 2 && b?.ndim === 2)
    expect((result.inputs as readonly Tensor[]).map((t) => t.shape)).toEqual([
      [1, 1],
      [1, 1],
    ])
    const wide = await shrunk(gm, [torch.randn([6, 8]), torch.randn([8, 4])], ([a, b]) => a?.ndim === 2 && b?.ndim === 2 && (b.shape[0] ?? 0) >= 2)
    expect((wide.inputs as readonly Tensor[]).map((t) => t.shape[0])).toContain(2)
  })

  it('constants become one, unless they matter', async () => {
    const gm = symbolicTrace((x: Tensor) => [torch.add(x, 3.25, { alpha: 7 })])
    const plain = await shrunk(gm, [torch.randn([3])], (_values, g) => has(g, 'add'))
    expect(String(plain.gm.graph)).not.toMatch(/3\.25|7/)
    const needed = await shrunk(gm, [torch.randn([3])], (_values, g) => String(g.graph).includes('3.25'))
    expect(String(needed.gm.graph)).toContain('3.25')
    expect(String(needed.gm.graph)).not.toContain('7')
  })
})

describe('wrong numbers that are wrong in another way than what is behind them', () => {
  const hunted = (gm: GraphModule, inputs: readonly unknown[], backend: Backend) =>
    minifyBackendFailure(gm, inputs, { backend, accuracy: 'accuracy', isolate: false, runDir: 'run', print: () => {} })
  let store = new MemoryFileStore()
  beforeEach(() => void setFileStore((store = new MemoryFileStore())))
  const scriptOf = (path: string | null): string => Buffer.from(store.read(path ?? '') ?? []).toString()

  it('lead to their cause', async () => {
    const logOfPositive = symbolicTrace((x: Tensor) => [torch.log(torch.where(torch.gt(x, 0), torch.add(x, 1), torch.sub(x, 2).neg()))])
    const wrongMask: Backend = (gm) => {
      class Wrong extends Interpreter {
        override runNode(node: Node): unknown {
          const value = super.runNode(node)
          return node.target === torch.gt ? (value as Tensor).logicalNot() : value
        }
      }
      return (...inputs) => new Wrong(gm).run(...inputs)
    }
    // A NaN, many operators behind a boolean.
    const result = await hunted(logOfPositive, [torch.tensor([-3, 4])], wrongMask)
    expect(operators(result.gm)).toEqual(['gt'])
    expect(scriptOf(result.path)).toContain('torch.gt(')
    expect(scriptOf(result.path)).not.toContain('torch.log(')
    expect(result.steps.map(({ strategy }) => strategy).filter((strategy) => strategy === 'original')).toHaveLength(1)
    expect(result.queries).toBeGreaterThan(result.steps.at(-1)?.queries ?? 0)
  })

  it('do not lead to another fault, and stay what they are without a cause', async () => {
    const two = symbolicTrace((x: Tensor) => [torch.tanh(torch.relu(x)), torch.neg(torch.cos(torch.sin(x)))])
    // Two operators together make a NaN; another one has another fault.
    const faulty: Backend = (gm) => {
      const [hasBoth, hasRelu] = [['sin', 'cos'].every((name) => operators(gm).includes(name)), operators(gm).includes('relu')]
      return (...inputs) => {
        const outputs = gm.forward(...(inputs as never[])) as Tensor[]
        return outputs.map((value, i) => (hasBoth && i === outputs.length - 1 ? value.mul(NaN) : hasRelu ? value.add(1) : value))
      }
    }
    const result = await hunted(two, [torch.tensor([0.5, 1])], faulty)
    expect(operators(result.gm)).toEqual(['sin', 'cos'])
    expect(result.leads.map(({ signature }) => signature)).toEqual(['accuracy|value'])
    expect(scriptOf(result.path)).toContain("signature: 'accuracy|nan'")
  })
})

describe('isolated processes', { timeout: 120_000 }, () => {
  it('judge with the settings of this one', async () => {
    const start = nodeHelper()
    if (start === null) throw new Error('this test needs child processes')
    const isolator = new Isolator(start)
    const spec = { backend: 'relu_accuracy_error_TESTING_ONLY', accuracy: 'accuracy', checkStr: null, signature: null, onlyFwd: true } as const
    const before = config.reproTolerance
    try {
      expect((await isolator.query(chain(), [torch.ones([2])], spec)).status).toBe('fails')
      config.reproTolerance = 100
      expect((await isolator.query(chain(), [torch.ones([2])], spec)).status).toBe('passes')
    } finally {
      config.reproTolerance = before
      isolator.close()
    }
  })

  it.each([
    ['exit code 3', 'exit 3', 'fails'],
    ['exit code 3', 'exit 4', 'unrelated'],
    ['exit code 3', 'any', 'fails'],
    ['exit code 3', null, 'unrelated'],
    ['signal SIGSEGV', 'crash', 'fails'],
    ['exit code 134', 'crash', 'fails'],
    ['signal SIGSEGV', 'hang', 'unrelated'],
  ])('that end with %s, where %s is looked for: %s', async (reason, death, status) => {
    const isolator = new Isolator(async () => ({
      post: () => {},
      listen: (_onMessage, onDeath) => void queueMicrotask(() => onDeath(reason)),
      kill: () => {},
    }))
    const spec = { backend: 'eager', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true, death } as const
    expect((await isolator.query(chain(), [torch.ones([2])], spec)).status).toBe(status)
  })

  it('a looping candidate costs its limit of processor time', async () => {
    const file = join(work, 'loops.mjs')
    writeFileSync(file, `import { registerBackend } from '${compileUrl}'\nregisterBackend('loops', () => { for (;;); }, { module: import.meta.url })`)
    const start = nodeHelper()
    if (start === null) throw new Error('this test needs child processes')
    const isolator = new Isolator(start, { timeoutMs: 500, imports: [pathToFileURL(file).href] })
    const spec = { backend: 'loops', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true, death: 'hang' } as const
    try {
      // One query first, so that the process is there.
      await isolator.query(chain(), [torch.ones([2])], { ...spec, backend: 'eager' })
      const began = performance.now()
      expect(await isolator.query(chain(), [torch.ones([2])], spec)).toMatchObject({
        status: 'fails',
        signature: 'hang',
        message: 'no answer within 500 ms of processor time (an endless loop?)',
      })
      // What passes meanwhile is limited, however busy the machine is.
      expect(performance.now() - began).toBeLessThan(20 * 500 + 1000)
    } finally {
      isolator.close()
    }
  })
})

describe('analyze', () => {
  it('names the first value that diverges, and those that it spoils', () => {
    const report = analyze(chain(), [torch.randn([4])], 'relu_accuracy_error_TESTING_ONLY')
    expect(report.split('\n').map((line) => line.replace(/:.*/, ''))).toEqual(['DIVERGED at relu', 'DIVERGED at cos', 'DIVERGED at cos_1'])
    expect(analyze(chain(), [torch.randn([4])], 'eager')).toBe('No divergence found in 5 intermediate values.')
  })

  it('compares NaN with NaN, layers as well as operators, and leaves out what is no tensor', () => {
    const count = (gm: GraphModule, x: Tensor): string => analyze(gm, [x], 'eager')
    expect(
      count(
        symbolicTrace((x: Tensor) => [torch.log(x)]),
        torch.tensor([-1, 1]),
      ),
    ).toBe('No divergence found in 1 intermediate values.')
    expect(count(symbolicTrace(new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU())), torch.ones([1, 2]))).toBe(
      'No divergence found in 2 intermediate values.',
    )
    const pair = symbolicTrace((x: Tensor) => torch.split(torch.sin(x), 1))
    expect(analyze(pair, [torch.ones([2])], 'eager')).toBe('No divergence found in 2 intermediate values.')
    expect(() => analyze(3 as never, [], 'eager')).toThrow(/^analyze: /)
    expect(() => analyze(pair, 3 as never, 'eager')).toThrow(/^analyze: .*inputs/)
  })

  it('names an operator with several results, if one of them is wrong', () => {
    registerBackend(
      'mixes_parts',
      (gm) =>
        (...inputs: never[]) =>
          (gm.forward(...inputs) as unknown[]).map((value) => (Array.isArray(value) ? value.toReversed() : value)),
      { tags: ['debug'] },
    )
    const parts = symbolicTrace((x: Tensor) => torch.split(torch.sin(x), 1))
    expect(analyze(parts, [torch.tensor([1, 2])], 'mixes_parts')).toMatch(/^DIVERGED at split: RMSE[^\n]*$/)
  })

  it('names the first value of the backward that diverges, unless only the forward counts', () => {
    const model = symbolicTrace((x: Tensor) => [torch.tanh(torch.sin(x))])
    const x = torch.tensor([0.5, 1, 2], { requiresGrad: true })
    registerBackend(
      'wrong_cos',
      (gm) =>
        (...inputs: readonly unknown[]) =>
          new Faulty(gm, 'cos', (run, node) => (rightValue(run, node) as Tensor).mul(2)).run(...inputs),
    )
    const report = analyze(model, [x], 'wrong_cos').split('\n')
    expect(report[0]).toMatch(/^DIVERGED at cos of the backward: RMSE/)
    expect(analyze(model, [x], 'wrong_cos', { onlyFwd: true })).toBe('No divergence found in 2 intermediate values.')
    expect(analyze(model, [x.detach()], 'wrong_cos')).toBe('No divergence found in 2 intermediate values.')
    expect(analyze(model, [x], 'eager')).toMatch(/^No divergence found in [5-9] intermediate values\.$/)
    expect(x.grad).toBeNull()
  })

  it('reports values that differ from run to run', () => {
    let runs = 0
    registerBackend(
      'restless',
      (gm) =>
        (...inputs: never[]) =>
          (gm.forward(...inputs) as Tensor[]).map((t, i) => (i === 2 ? t.add(runs++) : t)),
      { tags: ['debug'] },
    )
    expect(analyze(chain(), [torch.randn([4])], 'restless')).toContain('NONDETERMINISTIC restless at relu')
  })
})
