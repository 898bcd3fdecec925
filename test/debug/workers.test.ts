// Isolated helpers without a process: a worker that is served in this one, and the pipes that queries and answers travel through.
import v8 from 'node:v8'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config, registerBackend } from 'tensorfx/compile'
import { Isolator, minifyBackendFailure, serveWorker, setLogSink, workerHelper } from 'tensorfx/debug'
import type { FailureSpec } from 'tensorfx/debug'
import { Graph, GraphModule, operator, symbolicTrace } from 'tensorfx/fx'
import { answerLine, answerReader, queryBytes, queryReader } from '../../src/debug/isolate/pipes.ts'
import { QueryEncoder, QueryServer, isAnswerTo, outcomeOf, whyNotShippable } from '../../src/debug/isolate/protocol.ts'
import type { Query } from '../../src/debug/isolate/protocol.ts'
import { operatorImports, whyNotImportable } from '../../src/debug/script/operatorImports.ts'
import { resetConfig } from './inProcess.ts'

afterEach(() => {
  resetConfig()
  setLogSink(null)
  vi.restoreAllMocks()
})

const spec: FailureSpec = { backend: 'relu_compile_error_TESTING_ONLY', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true }
const relu = (): GraphModule => symbolicTrace((x: Tensor) => [torch.relu(x)])
const sin = (): GraphModule => symbolicTrace((x: Tensor) => [torch.sin(x)])

const failing = (): never => {
  throw new RangeError('no')
}

interface Port {
  onmessage: ((event: { data: unknown }) => void) | null
  postMessage(message: unknown): void
}

/** A worker in this process: messages are copied, as between threads. */
function worker(log: { queries: Query[]; ended: number } = { queries: [], ended: 0 }): Worker {
  const scope: Port = {
    onmessage: null,
    postMessage: (message) => void setTimeout(() => self.onmessage?.({ data: structuredClone(message) }), 0),
  }
  serveWorker(scope)
  const self: Port & { terminate(): void } = {
    onmessage: null,
    postMessage(message) {
      const data = structuredClone(message) as Query
      log.queries.push(data)
      scope.onmessage?.({ data })
    },
    terminate: () => void log.ended++,
  }
  return self as unknown as Worker
}

describe('a worker', () => {
  it('judges graphs, one after the other', async () => {
    const isolator = new Isolator(workerHelper(() => worker()))
    expect(await isolator.query(relu(), [torch.ones([2])], spec)).toMatchObject({
      status: 'fails',
      signature: 'ReluCompileError|TFX_RELU_COMPILE|relu found in graph',
    })
    expect(await isolator.query(sin(), [torch.ones([2])], spec)).toEqual({ status: 'passes', message: 'compiled and ran' })
    expect(isolator.started).toBe(1)
  })

  it('gets the data of an input once, tensors of the graph, numbers and settings', async () => {
    const log = { queries: [] as Query[], ended: 0 }
    const isolator = new Isolator(
      workerHelper(() => worker(log)),
      { imports: ['data:text/javascript,globalThis.wasImported=true'] },
    )
    const x = torch.tensor([1, -2])
    const weight = torch.ones([2, 2])
    const gm = symbolicTrace((a: Tensor, k: number) => [torch.relu(torch.mul(torch.matmul(a, weight), k))])
    config.reproTolerance = 0.5
    expect((await isolator.query(gm, [x, 3], spec)).status).toBe('fails')
    expect((await isolator.query(gm, [x, 4], { ...spec, backend: 'eager', accuracy: 'accuracy' })).status).toBe('passes')
    const [first, second] = log.queries
    expect([first?.id, first?.calls, first?.data.map(([id]) => id), first?.attributes.map(([name]) => name)]).toEqual([
      0,
      [[0, 1]],
      [0, 1],
      ['_tensor_constant0'],
    ])
    expect([second?.id, second?.calls, second?.data.map(([id]) => id)]).toEqual([1, [[0, 2]], [2]])
    expect([first?.config, first?.imports, Reflect.get(globalThis, 'wasImported')]).toEqual([
      { reproTolerance: 0.5 },
      ['data:text/javascript,globalThis.wasImported=true'],
      true,
    ])
  })

  it('is ended and replaced when it gives no answer in time', async () => {
    const log = { queries: [] as Query[], ended: 0 }
    let workers = 0
    const silent = (): Worker => ({ ...worker(log), postMessage: () => {} }) as unknown as Worker
    const isolator = new Isolator(
      workerHelper(() => (workers++ === 0 ? silent() : worker(log))),
      { timeoutMs: 10 },
    )
    expect(await isolator.query(relu(), [torch.ones([2])], spec)).toEqual({
      status: 'unrelated',
      message: 'no answer within 10 ms (an endless loop?)',
      signature: 'hang',
    })
    expect(log.ended).toBe(1)
    expect((await isolator.query(relu(), [torch.ones([2])], spec, 5000)).status).toBe('fails')
    expect([isolator.started, log.ended]).toEqual([2, 1])
    isolator.close()
    isolator.close()
    expect(log.ended).toBe(2)
  })

  it('is started ahead, two at first and one for each that is lost, until the isolator is closed', async () => {
    const log = { queries: [] as Query[], ended: 0 }
    let workers = 0
    const silent = (): Worker => ({ ...worker(log), postMessage: () => {} }) as unknown as Worker
    const isolator = new Isolator(
      workerHelper(() => (workers++, silent())),
      { timeoutMs: 10 },
    )
    isolator.warmUp()
    isolator.warmUp()
    expect(workers).toBe(2)
    await isolator.query(relu(), [], spec)
    expect([workers, log.ended, isolator.started]).toEqual([3, 1, 1])
    const last = isolator.query(relu(), [], spec)
    isolator.close()
    await last
    await Promise.resolve()
    // All three are ended, and the one that was asked has no successor.
    expect([workers, log.ended]).toEqual([3, 3])
  })

  it('that cannot be started is an error of the query that needs it', async () => {
    const isolator = new Isolator(async () => {
      throw new RangeError('no workers here')
    })
    isolator.warmUp()
    await expect(isolator.query(relu(), [], spec)).rejects.toThrow('no workers here')
    isolator.close()
  })

  it('that fails is a death, which counts if it is looked for', async () => {
    const failing = (): Worker => {
      const one: { onmessage: unknown; onerror: ((event: { message: string }) => void) | null } = { onmessage: null, onerror: null }
      return Object.assign(one, {
        postMessage: () => setTimeout(() => one.onerror?.({ message: 'out of memory' }), 0),
        terminate: () => {},
      }) as unknown as Worker
    }
    const died = (options: ConstructorParameters<typeof Isolator>[1], death: string | null = null): Promise<unknown> =>
      new Isolator(workerHelper(failing), options).query(relu(), [torch.ones([2])], { ...spec, death })
    const message = 'the isolated process died: out of memory'
    expect(await died({})).toEqual({ status: 'unrelated', message, signature: 'crash' })
    expect(await died({ deathFails: true })).toEqual({ status: 'fails', message, signature: 'crash' })
    expect(await died({}, 'crash')).toEqual({ status: 'fails', message, signature: 'crash' })
    expect(await died({}, 'exit 1')).toEqual({ status: 'unrelated', message, signature: 'crash' })
    expect(() => new Isolator(workerHelper(failing), { timeout: 1 } as never)).toThrow(/timeout/)
  })

  it('is what a hunt uses if it is given one: one for the search, and one for the final check', async () => {
    const log = { queries: [] as Query[], ended: 0 }
    const options = { backend: spec.backend, startHelper: workerHelper(() => worker(log)), print: () => {} }
    const gm = symbolicTrace((x: Tensor) => [torch.cos(torch.relu(torch.sin(x)))])
    const result = await minifyBackendFailure(gm, [torch.randn([3])], options)
    expect([result.gm.graph.nodes.length, result.isolated, result.whyNotIsolated, result.processes, log.ended]).toEqual([3, true, null, 2, 2])
    // An error's candidates were run on eager by the judge; the original and the final runs are run there by themselves.
    expect(log.queries.length).toBe(result.queries + result.checks + 1 + 5)
    expect(log.queries.filter(({ spec: { backend } }) => backend === 'eager')).toHaveLength(1 + 5)
    expect(result.controls).toBe(1 + 5)
    expect(log.queries[0]?.imports).toEqual([])
    // A helper imports the module of the backend.
    const module = 'data:text/javascript,globalThis.wasImported=2'
    registerBackend('of_a_module', () => failing(), { module })
    log.queries.length = 0
    await minifyBackendFailure(gm, [torch.randn([3])], { ...options, backend: 'of_a_module' })
    expect([log.queries[0]?.imports, Reflect.get(globalThis, 'wasImported')]).toEqual([[module], 2])
    const here = await minifyBackendFailure(gm, [torch.randn([3])], { ...options, isolate: false })
    expect([here.isolated, here.whyNotIsolated, here.processes]).toEqual([false, 'isolate is false', 0])
  })

  it('is not used for what it cannot be sent, and the hunt says why', async () => {
    const warnings: string[] = []
    setLogSink((level, message) => void (level === 'warning' && warnings.push(message)))
    const startHelper = workerHelper(() => worker())
    const why = async (
      gm: GraphModule,
      inputs: readonly unknown[],
      backend: Parameters<typeof minifyBackendFailure>[2]['backend'],
    ): Promise<unknown> => {
      const result = await minifyBackendFailure(gm, inputs, { backend, startHelper, isolate: true, print: () => {} })
      expect(warnings.splice(0)).toEqual([`candidates are judged in this process: ${result.whyNotIsolated}`])
      return result.whyNotIsolated
    }
    expect(await why(relu(), [torch.ones([1])], failing)).toContain('the backend is a function without a name')
    expect(await why(symbolicTrace(new nn.Sequential(new nn.Linear(1, 1))), [torch.ones([1])], 'always_fails')).toContain('the graph calls modules')
    await expect(minifyBackendFailure(relu(), [torch.ones([1])], { backend: failing, deathFails: true })).rejects.toThrow(
      'minifyBackendFailure: the failure ends the process (any), so candidates need one of their own, but the backend is a function without a name',
    )
  })

  registerBackend('always_fails', failing)
})

describe('a hunt for a hang', () => {
  interface Asked {
    readonly backend: string
    readonly ms: number
  }

  /** The queries of a hunt whose graphs with a relu hang, except on eager. Those that answer take so long. */
  async function asked(death: string, { cpuMs = 0, wallMs = 0, timeoutMs = 9000 } = {}): Promise<Asked[]> {
    const queries: Asked[] = []
    vi.spyOn(Isolator.prototype, 'query').mockImplementation(async function (this: Isolator, gm, _inputs, { backend, death: wanted }, ms = 0) {
      queries.push({ backend, ms })
      if (backend !== 'eager' && operatorNames(gm).includes('relu'))
        return { status: wanted === null ? 'unrelated' : 'fails', message: 'no answer', signature: 'hang' }
      this.longest.cpuMs = cpuMs
      this.longest.wallMs = wallMs
      return { status: 'passes', message: '' }
    })
    const gm = symbolicTrace((x: Tensor) => [torch.cos(torch.relu(torch.sin(x)))])
    const startHelper = workerHelper(() => worker())
    const result = await minifyBackendFailure(gm, [torch.ones([2])], { backend: 'aot_eager', death, startHelper, timeoutMs, print: () => {} })
    vi.restoreAllMocks()
    expect(result.gm.graph.nodes.length).toBe(3)
    expect(queries.filter(({ backend }) => backend === 'eager')).toHaveLength(result.controls)
    return queries
  }
  const operatorNames = (gm: GraphModule): string[] => [...gm.graph.nodes].map((node) => node.name)
  const limitsOf = (queries: readonly Asked[], backend = 'aot_eager'): number[] =>
    queries.filter((query) => query.backend === backend).map(({ ms }) => ms)

  it('gives candidates little time once it is known that it is one', async () => {
    const limits = limitsOf(await asked('any'))
    // The original, and the first final run.
    expect(limits[0]).toBe(9000)
    expect(limits.slice(-3)).toEqual([9000, 2000, 2000])
    const rest = limits.slice(1, -3)
    expect(rest.length).toBeGreaterThan(0)
    expect(new Set(rest)).toEqual(new Set([2000]))
  })

  it('gives the original little time too if that is known from the start', async () => {
    expect(limitsOf(await asked('hang'))[0]).toBe(2000)
  })

  it('gives them twenty times the processor time, or four times the time, that the longest answer took', async () => {
    expect(limitsOf(await asked('hang', { cpuMs: 150 })).slice(0, 2)).toEqual([3000, 3000])
    expect(limitsOf(await asked('hang', { wallMs: 800 })).slice(0, 2)).toEqual([3200, 3200])
    // But no more than was asked for, unless the graph takes that long on eager.
    expect(limitsOf(await asked('any', { cpuMs: 150, timeoutMs: 2500 }))[0]).toBe(3000)
    expect(limitsOf(await asked('any', { cpuMs: 50, timeoutMs: 2500 }))[0]).toBe(2500)
  })

  it('runs the original on eager first, with much time, then each candidate that fails, and the result before each final run', async () => {
    const queries = await asked('any')
    expect(queries[0]).toEqual({ backend: 'eager', ms: 20 * 9000 })
    expect(queries.slice(1, 3)).toEqual([
      { backend: 'aot_eager', ms: 9000 },
      { backend: 'eager', ms: 9000 },
    ])
    expect(queries.slice(-6).map(({ backend }) => backend)).toEqual(['eager', 'aot_eager', 'eager', 'aot_eager', 'eager', 'aot_eager'])
  })
})

describe('pipes', () => {
  const query = (id: number): Query => new QueryEncoder().encode(relu(), [[torch.full([3], id)]], spec, [])

  it.each([1, 3, 7, 10_000])('carry queries in pieces of %d bytes', (size) => {
    const queries = [query(1), query(2)]
    const bytes = Buffer.concat(queries.map((one) => queryBytes(v8, one)))
    const read: Query[] = []
    const take = queryReader(v8, (one) => void read.push(one))
    for (let at = 0; at < bytes.length; at += size) take(bytes.subarray(at, at + size))
    expect(read).toEqual(queries)
  })

  it('carry answers as lines, in any pieces, between whatever else is printed', () => {
    const answers = [
      { id: 1, outcome: { status: 'passes', message: 'a\nb' } },
      { id: 2, outcome: { status: 'fails', message: 'tensorfx-answer {}' } },
    ] as const
    const text = `no end of line${answerLine(answers[0])}more\ntensorfx-answer {broken\n tensorfx-answer 3\n${answerLine(answers[1])}`
    for (const size of [1, 5, 10_000]) {
      const read: unknown[] = []
      const take = answerReader((message) => void read.push(message))
      for (let at = 0; at < text.length; at += size) take(text.slice(at, at + size))
      expect(read).toEqual(answers)
    }
  })

  it('forget what is printed without an end', () => {
    const read: unknown[] = []
    const take = answerReader((message) => void read.push(message))
    for (let i = 0; i < 3; i++) take('x'.repeat(2 ** 20))
    take(answerLine({ id: 1, outcome: { status: 'passes', message: '' } }))
    expect(read).toHaveLength(1)
  })
})

describe('messages', () => {
  it('answer a query if they name it', () => {
    const { id, ...rest } = new QueryEncoder().encode(relu(), [], spec, [])
    expect([{ id }, { id, outcome: 3 }, { id: 1 }, rest, null, 0].map((message) => isAnswerTo({ id, ...rest }, message))).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
    ])
  })

  it('have an outcome that can be read, or none', () => {
    const good = { status: 'fails', message: 'm', signature: 's' }
    expect(outcomeOf({ id: 1, outcome: { ...good, more: 1 } })).toEqual(good)
    expect(outcomeOf({ id: 1, outcome: { status: 'unrelated', message: 'm', signature: 7 } })).toEqual({ status: 'unrelated', message: 'm' })
    for (const outcome of [undefined, null, 'passes', {}, { status: 'passes' }, { status: 'other', message: '' }])
      expect(outcomeOf({ id: 1, outcome })).toBeNull()
  })

  it('that cannot be judged are answered, too', async () => {
    const server = new QueryServer()
    const query = new QueryEncoder().encode(relu(), [[torch.ones([1])]], spec, [])
    const told = async (changes: Partial<Query>): Promise<unknown> => (await server.answer({ ...query, ...changes })).outcome
    expect(await told({ calls: [[9]], data: [] })).toEqual({ status: 'unrelated', message: expect.stringContaining('input 9') as string })
    expect(await told({ spec: { ...spec, accuracy: 'exact' as never } })).toMatchObject({
      status: 'unrelated',
      message: expect.stringContaining("got 'exact'") as string,
    })
    expect(await told({ imports: ['./absent.mjs'] })).toMatchObject({ status: 'unrelated' })
    expect(await told({ spec: { ...spec, backend: './absent.mjs#b' } })).toMatchObject({
      message: expect.stringContaining('cannot be imported') as string,
    })
    expect(await told({})).toMatchObject({ status: 'fails' })
    const thrown = new Graph()
    thrown.output([thrown.callFunction(torch.sin, [thrown.placeholder('x')])])
    expect(await told({ imports: ['data:text/javascript,throw "a text"'] })).toEqual({ status: 'unrelated', message: 'a text' })
  })

  it('name the modules of the operators that a program has defined', () => {
    const identity = { schema: '(Tensor x) -> Tensor', forward: (x: Tensor) => x.clone(), fake: (x: Tensor) => torch.emptyLike(x) } as const
    const named = torch.library.customOp('workertest::named', { ...identity, module: 'file:///ops.mjs' })
    const unnamed = torch.library.customOp('workertest::unnamed', identity)
    const graphOf = (...calls: ((x: Tensor) => unknown)[]): GraphModule => {
      const graph = new Graph()
      graph.output(calls.map((call) => graph.callFunction(call as never, [graph.placeholder('x')])))
      return new GraphModule({}, graph)
    }
    expect(operatorImports(graphOf(named, torch.sin, named))).toEqual(['file:///ops.mjs'])
    expect([whyNotImportable(graphOf(named, torch.sin, operator.neg as never)), operatorImports(graphOf(torch.sin))]).toEqual([null, []])
    expect(whyNotImportable(graphOf(torch.sin, unnamed))).toBe(
      'the operator torch.ops.workertest.unnamed was defined without its module; pass { module: import.meta.url } to torch.library.customOp or defineOp to have it isolated',
    )
    const methods = symbolicTrace((x: Tensor) => x.relu())
    expect([operatorImports(methods), whyNotImportable(methods)]).toEqual([[], null])
  })

  it('can hold graphs of named functions on plain values', () => {
    expect(whyNotShippable(relu(), [torch.ones([1]), 3])).toBeNull()
    expect(whyNotShippable(relu(), ['text'])).toBeNull()
    expect(whyNotShippable(relu(), [() => 1])).toMatch(/#0/)
    expect(whyNotShippable(symbolicTrace(new nn.Sequential(new nn.Linear(1, 1))), [])).toBe('the graph calls modules')
    const graph = new Graph()
    graph.output(graph.callFunction((x: unknown) => x, [graph.placeholder('x')]))
    expect(whyNotShippable(new GraphModule({}, graph), [])).toMatch(/function/)
  })
})
