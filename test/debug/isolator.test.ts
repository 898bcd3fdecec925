// The search's side of a helper, on a clock that the test moves: when a candidate hangs, which death is a failure, which helper answers.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, symbolicTrace } from 'tensorfx/fx'
import { graphFromJson } from 'tensorfx/fx/json'
import { registerBackend } from 'tensorfx/compile'
import { Isolator, serveWorker } from 'tensorfx/debug'
import type { FailureSpec, Helper, IsolatorOptions, Outcome } from 'tensorfx/debug'
import { whyHung } from '../../src/debug/isolate/clock.ts'
import { READY, answerLine, answerReader, progressLine, queryBytes, queryReader } from '../../src/debug/isolate/pipes.ts'
import { QueryEncoder, QueryServer, progressOf } from '../../src/debug/isolate/protocol.ts'
import type { Progress, Query } from '../../src/debug/isolate/protocol.ts'

const gm = symbolicTrace((x: Tensor) => [torch.sin(x)])
const SPEC: FailureSpec = { backend: 'mad', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true }
const PASSES: Outcome = { status: 'passes', message: 'ran' }

/** A helper that says what the test says. */
class Puppet implements Helper {
  readonly announces: boolean
  readonly queries: Query[] = []
  isKilled = false
  say: (message: unknown) => void = () => {}
  die: (reason: string) => void = () => {}

  constructor(announces: boolean) {
    this.announces = announces
  }

  post(query: Query): void {
    this.queries.push(query)
  }

  listen(onMessage: (message: unknown) => void, onDeath: (reason: string) => void): void {
    this.say = onMessage
    this.die = onDeath
  }

  kill(): void {
    this.isKilled = true
  }

  get id(): number {
    return this.queries.at(-1)?.id ?? -1
  }

  answer(more: object = {}): void {
    this.say({ id: this.id, outcome: PASSES, ...more })
  }
}

let puppets: Puppet[] = []
beforeEach(() => {
  puppets = []
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => vi.useRealTimers())

/** An isolator, and its latest helper. */
function made(
  options: IsolatorOptions = {},
  announces = false,
): { isolator: Isolator; puppet: () => Puppet; ask: (changes?: Partial<FailureSpec>) => Asked } {
  const isolator = new Isolator(
    async () => {
      const puppet = new Puppet(announces)
      puppets.push(puppet)
      return puppet
    },
    { timeoutMs: 1000, importTimeoutMs: 5000, ...options },
  )
  const puppet = (): Puppet => {
    const last = puppets.at(-1)
    if (last === undefined) throw new Error('no helper was started')
    return last
  }
  const ask = (changes: Partial<FailureSpec> = {}): Asked => {
    const asked: Asked = { outcome: null, begun: Promise.resolve() }
    void isolator.query(gm, [torch.ones([2])], { ...SPEC, ...changes }).then((outcome) => (asked.outcome = outcome))
    asked.begun = vi.advanceTimersByTimeAsync(0).then(() => {})
    return asked
  }
  return { isolator, puppet, ask }
}

interface Asked {
  outcome: Outcome | null
  begun: Promise<void>
}

const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms)

describe('a candidate', () => {
  it('has its time from the start, where nothing is imported, and is hanging after it', async () => {
    const { isolator, puppet, ask } = made()
    const asked = ask()
    await pass(999)
    expect([asked.outcome, puppet().isKilled]).toEqual([null, false])
    await pass(2)
    expect(asked.outcome).toEqual({ status: 'unrelated', message: 'no answer within 1000 ms (an endless loop?)', signature: 'hang' })
    expect([puppet().isKilled, isolator.started, vi.getTimerCount()]).toEqual([true, 1, 0])
    // Another helper answers the next one.
    const next = ask()
    await next.begun
    expect([puppets.length, isolator.started]).toEqual([2, 2])
    puppet().answer()
    await pass(0)
    expect(next.outcome).toEqual(PASSES)
    const third = ask()
    await third.begun
    expect([puppets.length, puppet().queries.length, isolator.started, vi.getTimerCount()]).toEqual([2, 2, 2, 1])
    isolator.close()
  })

  it.each([
    ['a helper that announces imports', {}, true],
    ['a query with imports', { imports: ['data:text/javascript,'] }, false],
  ])('has its time from when its modules are imported: %s', async (_what, options, announces) => {
    const { puppet, ask } = made(options, announces)
    const asked = ask()
    await pass(4000)
    expect(asked.outcome).toBeNull()
    puppet().say({ imported: puppet().id + 1 })
    puppet().say({ cpuMs: 3000 })
    puppet().say({ imported: puppet().id, cpuMs: 3500 })
    await pass(900)
    // Of the processor time, what was used before does not count.
    puppet().say({ cpuMs: 4400 })
    await pass(200)
    expect(asked.outcome).toBeNull()
    puppet().say({ cpuMs: 4499 })
    await pass(200)
    expect(asked.outcome).toBeNull()
    puppet().say({ cpuMs: 4501 })
    await pass(60)
    expect(asked.outcome).toMatchObject({ status: 'unrelated', message: 'no answer within 1000 ms of processor time (an endless loop?)' })
  })

  it('whose modules are never imported is no failure, whatever counts as one', async () => {
    const { puppet, ask } = made({ deathFails: true }, true)
    const asked = ask({ death: 'any' })
    await pass(4999)
    expect(asked.outcome).toBeNull()
    await pass(1)
    expect(asked.outcome).toEqual({ status: 'unrelated', message: 'the modules of the backend were not imported within 5000 ms' })
    expect(puppet().isKilled).toBe(true)
  })

  it('that sleeps is ended after five times its time, one on a busy machine after twenty', async () => {
    const { puppet, ask } = made()
    const asleep = ask()
    await asleep.begun
    puppet().say({ cpuMs: 10 })
    await pass(4990)
    expect(asleep.outcome).toBeNull()
    await pass(60)
    expect(asleep.outcome?.message).toMatch(/does it wait for ever/)
    const busy = ask()
    await busy.begun
    for (let i = 0; i < 39; i++) {
      puppet().say({ cpuMs: 500 })
      await pass(500)
      expect(busy.outcome).toBeNull()
    }
    await pass(560)
    expect(busy.outcome?.message).toBe('no answer within 20000 ms')
  })

  it('that dies, or hangs, is a failure if that is what is looked for', async () => {
    const statusOf = async (reason: string | null, options: IsolatorOptions, death: string | null): Promise<unknown> => {
      const { puppet, ask } = made(options)
      const asked = ask({ death })
      await asked.begun
      if (reason === null) await pass(1001)
      else puppet().die(reason)
      await pass(0)
      return [asked.outcome?.status, asked.outcome?.signature]
    }
    expect(await statusOf('signal SIGSEGV', {}, null)).toEqual(['unrelated', 'crash'])
    expect(await statusOf('signal SIGSEGV', {}, 'crash')).toEqual(['fails', 'crash'])
    expect(await statusOf('signal SIGSEGV', {}, 'hang')).toEqual(['unrelated', 'crash'])
    expect(await statusOf('signal SIGSEGV', { deathFails: true }, null)).toEqual(['fails', 'crash'])
    expect(await statusOf('exit code 7', {}, 'exit 7')).toEqual(['fails', 'exit 7'])
    expect(await statusOf('exit code 7', {}, 'exit 8')).toEqual(['unrelated', 'exit 7'])
    expect(await statusOf('exit code 7', {}, 'any')).toEqual(['fails', 'exit 7'])
    expect(await statusOf(null, {}, 'hang')).toEqual(['fails', 'hang'])
    // A process that runs out of memory may run out of time first.
    expect(await statusOf(null, {}, 'crash')).toEqual(['fails', 'hang'])
    expect(await statusOf(null, {}, 'exit 7')).toEqual(['unrelated', 'hang'])
    expect(await statusOf(null, {}, null)).toEqual(['unrelated', 'hang'])
  })

  it('says of what it died', async () => {
    const { puppet, ask } = made()
    const asked = ask()
    await asked.begun
    puppet().die('signal SIGKILL')
    await pass(0)
    expect(asked.outcome).toMatchObject({ message: 'the isolated process died: signal SIGKILL' })
  })
})

describe('the longest time', () => {
  it('is that of processors where it is known, otherwise that of the clock', async () => {
    const { isolator, puppet, ask } = made()
    const answer = async (wallMs: number, cpuMs?: unknown): Promise<unknown> => {
      const asked = ask()
      await asked.begun
      await pass(wallMs)
      puppet().answer(cpuMs === undefined ? {} : { cpuMs })
      await pass(0)
      return { ...isolator.longest }
    }
    expect(await answer(100, 30)).toEqual({ cpuMs: 30, wallMs: 100 })
    expect(await answer(50, 40)).toEqual({ cpuMs: 40, wallMs: 100 })
    expect(await answer(20, 10)).toEqual({ cpuMs: 40, wallMs: 100 })
    expect(await answer(200)).toEqual({ cpuMs: 200, wallMs: 200 })
    expect(await answer(300, '7')).toEqual({ cpuMs: 300, wallMs: 300 })
  })
})

describe('helpers that are started ahead', () => {
  it('are two, and each that is lost is replaced; all end with the isolator', async () => {
    const { isolator, ask } = made()
    isolator.warmUp()
    expect(puppets.length).toBe(2)
    isolator.warmUp()
    expect([puppets.length, isolator.started]).toEqual([2, 0])
    const first = ask()
    await first.begun
    expect([puppets.length, isolator.started, puppets[0]?.queries.length]).toEqual([2, 1, 1])
    puppets[0]?.die('exit code 1')
    await pass(0)
    expect([puppets.length, first.outcome?.signature]).toEqual([3, 'exit 1'])
    const second = ask()
    await second.begun
    expect([puppets.length, puppets[1]?.queries.length]).toEqual([3, 1])
    // Inputs are sent anew to a helper that has not got them.
    expect(puppets[1]?.queries[0]?.data.length).toBe(1)
    isolator.close()
    await pass(0)
    expect(puppets.map(({ isKilled }) => isKilled)).toEqual([true, true, true])
    // After its end it starts none ahead.
    const third = ask()
    await third.begun
    puppets[3]?.die('exit code 1')
    await pass(0)
    expect(puppets.length).toBe(4)
  })

  it('are not, without warmUp: one that dies is replaced by the next query', async () => {
    const { puppet, ask } = made()
    const asked = ask()
    await asked.begun
    puppet().die('exit code 1')
    await pass(10)
    expect(puppets.length).toBe(1)
  })

  it('may fail to start: the query that needs one says so', async () => {
    const isolator = new Isolator(async () => {
      throw new RangeError('no processes here')
    })
    isolator.warmUp()
    await pass(10)
    await expect(isolator.query(gm, [torch.ones([2])], SPEC)).rejects.toThrow('no processes here')
    isolator.close()
    await pass(10)
  })
})

describe('the answering side', () => {
  const encoded = (calls: readonly (readonly unknown[])[], spec: Partial<FailureSpec> = {}): Query =>
    new QueryEncoder().encode(gm, calls, { ...SPEC, backend: 'eager', ...spec }, [])

  it('says when its modules are imported, and how much processor time judging took, where it knows', async () => {
    vi.useRealTimers()
    const [said, query]: [Progress[], Query] = [[], encoded([[torch.ones([2])]])]
    let cpuMs = 100
    const knowing = new QueryServer(
      (progress) => void said.push(progress),
      () => (cpuMs += 50),
    )
    expect(await knowing.answer(query)).toEqual({ id: 0, outcome: { status: 'passes', message: 'compiled and ran' }, cpuMs: 50 })
    const unknowing = new QueryServer((progress) => void said.push(progress))
    expect(await unknowing.answer(query)).toEqual({ id: 0, outcome: { status: 'passes', message: 'compiled and ran' } })
    expect(said).toEqual([{ imported: 0, cpuMs: 150 }, { imported: 0 }])
    // What cannot be imported is not said to be, and took no time of its own.
    expect(await knowing.answer({ ...query, imports: ['data:text/javascript,throw new RangeError("gone")'] })).toEqual({
      ...{ id: 0, outcome: { status: 'unrelated', message: 'RangeError: gone' } },
    })
    expect(said.length).toBe(2)
  })

  it('makes each call once, the earlier ones first', async () => {
    vi.useRealTimers()
    const seen: unknown[] = []
    registerBackend('noting', () => (...inputs: never[]) => {
      const [x] = inputs as Tensor[]
      if (x === undefined) throw new TypeError('no input')
      seen.push(x.toArray())
      return [torch.sin(x)]
    })
    const calls = [[torch.zeros([1])], [torch.ones([1])], [torch.full([1], 2)]]
    expect((await new QueryServer().answer(encoded(calls, { backend: 'noting' }))).outcome.status).toBe('passes')
    expect(seen).toEqual([[0], [1], [2]])
  })

  it('runs a graph as its own program does, with methods that a graph of a stranger may not call', async () => {
    vi.useRealTimers()
    const graph = new Graph()
    graph.output([graph.callMethod('realize', [graph.placeholder('x')])])
    const query = new QueryEncoder().encode(new GraphModule({}, graph), [[torch.ones([2])]], { ...SPEC, backend: 'eager' }, [])
    expect(() => graphFromJson(query.graph)).toThrow("calls the method 'realize'")
    expect((await new QueryServer().answer(query)).outcome).toMatchObject({ message: expect.not.stringContaining('realize') as string })
  })

  it('is not asked about what cannot be sent: it is named', () => {
    expect(() => encoded([[torch.ones([1]), Symbol('s')]])).toThrow("input '#1' cannot be written into a repro")
  })
})

describe('a message of a helper', () => {
  it('that is neither an answer nor progress is passed over; an answer that cannot be read ends it', async () => {
    const { puppet, ask } = made({}, true)
    const asked = ask()
    await asked.begun
    for (const message of [null, 3, 'ready', {}, { id: puppet().id + 1, imported: puppet().id }, { imported: '0' }, { cpuMs: '9' }])
      expect(() => puppet().say(message)).not.toThrow()
    await pass(4000)
    expect(asked.outcome).toBeNull()
    puppet().say({ id: puppet().id, outcome: { status: 'maybe', message: '' } })
    await pass(0)
    expect(asked.outcome).toEqual({ status: 'unrelated', message: 'the isolated process sent an answer that cannot be read' })
    expect([puppet().isKilled, vi.getTimerCount()]).toEqual([true, 0])
  })

  it('says how far it is, or nothing', () => {
    expect(
      [
        { imported: 3, cpuMs: 5 },
        { cpuMs: 5, more: 1 },
        { imported: 0, cpuMs: '5' },
      ].map(progressOf),
    ).toEqual([{ imported: 3, cpuMs: 5 }, { cpuMs: 5 }, { imported: 0 }])
    expect([null, undefined, 3, 'id', {}, { cpuMs: '5' }, { imported: null }, { id: 1, cpuMs: 5 }].map(progressOf)).toEqual(Array(8).fill(null))
  })
})

describe('an isolator', () => {
  it('takes the options that it has, and times that are some', () => {
    const start = (): Promise<Helper> => Promise.reject(new Error('not asked'))
    expect(() => new Isolator(start, { timeoutMs: 1, importTimeoutMs: 1, imports: [], deathFails: true })).not.toThrow()
    expect(() => new Isolator(start, { timeout: 1 } as never)).toThrow(/^Isolator: unknown option 'timeout'/)
    for (const name of ['timeoutMs', 'importTimeoutMs'])
      for (const value of [0, -1, NaN, '5'])
        expect(() => new Isolator(start, { [name]: value })).toThrow(
          new RegExp(
            value === '5'
              ? `^Isolator: option '${name}' must be a number, got '5'`
              : `^Isolator: argument 'options.${name}' must be a positive number`,
          ),
        )
  })

  it('knows when a candidate has hung, and says why', () => {
    const [loops, sleeps] = [
      'no answer within 100 ms of processor time (an endless loop?)',
      'no answer within 500 ms, nearly without processor time (does it wait for ever?)',
    ]
    const cases: readonly (readonly [wallMs: number, cpuMs: number | null, why: string | null])[] = [
      [99, null, null],
      [100, null, 'no answer within 100 ms (an endless loop?)'],
      // Many threads use much processor time in little time.
      [99, 400, null],
      [100, 99, null],
      [100, 100, loops],
      [499, 0, null],
      [500, 0, sleeps],
      [500, 5, null],
      [500, 4.9, sleeps],
      [1999, 50, null],
      [2000, 50, 'no answer within 2000 ms'],
      [2000, 100, loops],
    ]
    expect(cases.map(([wallMs, cpuMs]) => whyHung({ wallMs, cpuMs }, 100))).toEqual(cases.map(([, , why]) => why))
  })
})

describe('queries', () => {
  it('are read in pieces of their own length', () => {
    const serializer = {
      serialize: ({ id }: Query): Uint8Array => new Uint8Array(id).fill(id),
      deserialize: (bytes: Uint8Array): unknown => [...bytes],
    }
    const [one, two] = [1, 2].map((id) => queryBytes(serializer, { ...new QueryEncoder().encode(gm, [], SPEC, []), id })) as [Uint8Array, Uint8Array]
    expect([[...one], [...two]]).toEqual([
      [0, 0, 0, 1, 1],
      [0, 0, 0, 2, 2, 2],
    ])
    const read: unknown[] = []
    const take = queryReader(serializer, (query) => void read.push(query))
    take(Uint8Array.of(...one, ...two.subarray(0, 5)))
    expect(read).toEqual([[1]])
    take(two.subarray(5))
    expect(read).toEqual([[1], [2, 2]])
  })
})

describe('a worker', () => {
  it('says that the modules are imported before it answers', async () => {
    vi.useRealTimers()
    const said: unknown[] = []
    const scope = { onmessage: null as ((event: { data: unknown }) => void) | null, postMessage: (message: unknown) => void said.push(message) }
    serveWorker(scope)
    const data = new QueryEncoder().encode(gm, [[torch.ones([2])]], { ...SPEC, backend: 'eager' }, [])
    scope.onmessage?.({ data })
    scope.onmessage?.({ data: { ...data, id: 1, calls: [] } })
    await vi.waitFor(() => expect(said.length).toBe(4))
    expect(said).toEqual([
      { imported: 0 },
      { id: 0, outcome: { status: 'passes', message: 'compiled and ran' } },
      { imported: 1 },
      { id: 1, outcome: expect.objectContaining({ status: 'unrelated' }) as unknown },
    ])
  })
})

describe('lines', () => {
  const read = (...texts: readonly string[]): readonly unknown[] => {
    const messages: unknown[] = []
    const take = answerReader((message) => void messages.push(message))
    for (const text of texts) take(text)
    return messages
  }

  it('carry answers and progress, after whatever was printed', () => {
    expect(read(`printed${answerLine(READY)}`, progressLine({ imported: 3, cpuMs: 5 }))).toEqual([
      { id: -1, outcome: { status: 'passes', message: 'ready' } },
      { imported: 3, cpuMs: 5 },
    ])
    expect(read('{"id":1}\n', '3\n')).toEqual([])
    const line = progressLine({ cpuMs: 1 })
    expect(read(...line)).toEqual([{ cpuMs: 1 }])
  })

  it('that are too long are forgotten, and do not fill the memory', () => {
    const [start] = progressLine({ cpuMs: 1 }).trim().split('{')
    expect(read(`${start}"${'x'.repeat(100)}`, '"\n')).toEqual(['x'.repeat(100)])
    expect(read(`${start}"${'x'.repeat(2 ** 20)}`, '"\n', progressLine({ cpuMs: 1 }))).toEqual([{ cpuMs: 1 }])
    // Up to a mebibyte, and the rest of a longer one is no line of its own.
    const rest = `${start}"${'x'.repeat(2 ** 20 - `${start}"`.length)}`
    expect([rest.length, (read(rest, '"\n')[0] as string).length]).toEqual([2 ** 20, 2 ** 20 - `${start}"`.length])
    expect(read('x'.repeat(2 ** 20 + 1), progressLine({ cpuMs: 2 }).trimStart(), progressLine({ cpuMs: 1 }))).toEqual([{ cpuMs: 1 }])
  })
})
