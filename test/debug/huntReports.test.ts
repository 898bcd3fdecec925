// What a hunt asks its helpers, in which order, and what it prints, writes and says at the end. The helpers answer what the test says.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { MemoryFileStore, fileStore, minifyBackendFailure, setFileStore, setLogSink } from 'tensorfx/debug'
import type { FailureSpec, FileStore, Helper, HuntOptions, Outcome, StartHelper } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import type { Query } from '../../src/debug/isolate/protocol.ts'
import { listen, resetConfig, textOf } from './inProcess.ts'

const nodeStore = fileStore()
let store = new MemoryFileStore()
let said: [string, string][] = []
beforeEach(() => {
  store = new MemoryFileStore()
  setFileStore(store)
  said = listen()
})
afterEach(() => {
  setLogSink(null)
  setFileStore(nodeStore)
  resetConfig()
})

const PASSES: Outcome = { status: 'passes', message: 'ran' }
const FAILS: Outcome = { status: 'fails', message: 'RangeError: no relu\n  at line 2', signature: 'RangeError||no relu' }
const chain = (): GraphModule => symbolicTrace((x: Tensor) => [torch.cos(torch.relu(torch.sin(x)))])
const has = ({ graph }: Query, name: string): boolean => graph.nodes.some((node) => node.op === 'call_function' && node.name.startsWith(name))
const hasRelu = (query: Query): boolean => has(query, 'relu')
const operators = (gm: GraphModule): string[] => [...gm.graph.nodes].filter((node) => node.op === 'call_function').map((node) => node.name)

/** An outcome, how the helper dies, or null for no answer. */
type Answer = Outcome | { readonly dies: string } | null

/** Helpers that answer queries for a backend other than eager. */
function helpers(
  answer: (query: Query) => Answer,
  ofEager: (query: Query) => Answer = () => PASSES,
): { readonly start: StartHelper; readonly asked: Query[] } {
  const asked: Query[] = []
  const start = async (): Promise<Helper> => {
    let [say, die] = [(_message: unknown): void => {}, (_reason: string): void => {}]
    return {
      listen: (onMessage, onDeath) => void ([say, die] = [onMessage, onDeath]),
      post: (query) => {
        asked.push(query)
        const given = (query.spec.backend === 'eager' ? ofEager : answer)(query)
        if (given !== null) queueMicrotask(() => ('dies' in given ? die(given.dies) : say({ id: query.id, outcome: given })))
      },
      kill: () => {},
    }
  }
  return { start, asked }
}

interface Hunted {
  readonly result: Awaited<ReturnType<typeof minifyBackendFailure>> | null
  readonly error: string
  readonly lines: readonly string[]
  readonly asked: readonly Query[]
  /** The kinds of the queries in their order, each once in a row. */
  readonly specs: readonly string[]
}

async function hunted(answer: (query: Query) => Answer, options: Partial<HuntOptions> = {}, ofEager?: (query: Query) => Answer): Promise<Hunted> {
  const { start, asked } = helpers(answer, ofEager)
  const lines: string[] = []
  let [result, error]: [Hunted['result'], string] = [null, '']
  try {
    const all = { backend: 'aot_eager', startHelper: start, print: (line: string) => void lines.push(line), ...options }
    result = await minifyBackendFailure(chain(), [torch.ones([2])], all)
  } catch (thrown) {
    error = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)
  }
  const specs = asked.map(({ spec }) => textOfSpec(spec)).filter((text, i, all) => text !== all[i - 1])
  return { result, error, lines, asked, specs }
}

const textOfSpec = ({ backend, accuracy, signature, death = null, contract = false, checkStr, onlyFwd }: FailureSpec): string =>
  [backend, accuracy, ...(contract ? ['contract'] : []), ...(onlyFwd ? ['forward'] : []), checkStr, signature, death]
    .filter((text) => text !== null)
    .join(' ')

const looking = (how: string): string => `With 'aot_eager', the graph ${how}. Looking for candidates that do the same.`

describe('a hunt that finds out how a graph fails', () => {
  const find = { findFailure: true } as const

  it('looks for the end of the process first', async () => {
    const dying = await hunted((query) => (hasRelu(query) ? { dies: 'exit code 7' } : PASSES), find)
    expect([dying.error, dying.lines[0]]).toEqual(['', looking('ends its process (exit 7)')])
    expect(dying.specs.slice(0, 3)).toEqual(['eager none', 'aot_eager none any', 'aot_eager none exit 7'])
    expect(dying.result && operators(dying.result.gm)).toEqual(['relu'])
    // Each final run needs a new process, so they are few.
    expect(dying.asked.slice(-6).map(({ spec }) => spec.backend)).toEqual(['eager', 'aot_eager', 'eager', 'aot_eager', 'eager', 'aot_eager'])
    const hanging = await hunted((query) => (hasRelu(query) ? null : PASSES), { ...find, timeoutMs: 15 })
    expect([hanging.error, hanging.lines[0]]).toEqual(['', looking('does not end')])
    expect(hanging.specs[2]).toBe('aot_eager none hang')
  })

  it('then for an error, then for wrong numbers, then for a rule that is broken', async () => {
    const noDeath: Outcome = {
      status: 'unrelated',
      message: 'an error, not the end of the process: RangeError: no relu\n  at 2',
      signature: 'RangeError||no relu',
    }
    const throwing = await hunted((query) => (!hasRelu(query) ? PASSES : query.spec.death === 'any' ? noDeath : FAILS), find)
    expect([throwing.error, throwing.lines[0]]).toEqual(['', looking('fails: RangeError: no relu')])
    expect(throwing.specs.slice(0, 3)).toEqual(['eager none', 'aot_eager none any', 'aot_eager none RangeError||no relu'])
    const wrong: Outcome = { status: 'fails', message: 'Bad accuracy detected\nRMSE', signature: 'accuracy|value' }
    const numbers = await hunted((query) => (hasRelu(query) && query.spec.accuracy === 'accuracy' ? wrong : PASSES), find)
    expect([numbers.error, numbers.lines[0]]).toEqual(['', looking('computes wrong numbers')])
    expect(numbers.specs.slice(0, 5)).toEqual([
      'eager none',
      'aot_eager none any',
      'aot_eager accuracy',
      'eager accuracy',
      'aot_eager accuracy accuracy|value',
    ])
    const rule: Outcome = { status: 'fails', message: 'it overwrites input 0\nmore', signature: 'accuracy|overwrites an input' }
    const broken = await hunted((query) => (hasRelu(query) && query.spec.contract === true ? rule : PASSES), find)
    expect([broken.error, broken.lines[0]]).toEqual(['', looking('breaks a rule for backends (it overwrites input 0)')])
    expect(broken.specs.slice(0, 4)).toEqual(['eager none', 'aot_eager none any', 'aot_eager accuracy', 'aot_eager accuracy contract'])
  })

  it('three times, before it says that there is nothing; and says why a graph cannot be judged', async () => {
    const nothing = await hunted(() => PASSES, find)
    expect(nothing.error).toBe(
      "MinifierError: With 'aot_eager', the graph runs, ends, and its numbers are right (in 3 runs), so there is nothing to minify.",
    )
    expect(nothing.asked).toHaveLength(1 + 3 * 3)
    let run = 0
    const late = await hunted((query) => (hasRelu(query) && ++run > 4 ? { dies: 'signal SIGSEGV' } : PASSES), find)
    expect([late.error, late.lines[0]]).toEqual(['', looking('ends its process (crash)')])
    const odd = await hunted(() => ({ status: 'unrelated', message: 'no such operator' }), find)
    expect(odd.error).toBe('MinifierError: The graph cannot be judged: no such operator')
  })

  it('forgets what it was told to look for', async () => {
    const told = { ...find, accuracy: 'accuracy', checkStr: 'text', signature: 'S', death: 'hang' } as const
    const { specs } = await hunted((query) => (hasRelu(query) ? { dies: 'exit code 7' } : PASSES), told)
    expect(specs.slice(0, 3)).toEqual(['eager none', 'aot_eager none any', 'aot_eager none exit 7'])
  })
})

describe('a hunt', () => {
  it('asks for what it was told, and keeps to the first failure that it sees', async () => {
    const plain = await hunted((query) => (hasRelu(query) ? FAILS : PASSES))
    expect([plain.error, plain.specs.slice(0, 3)]).toEqual(['', ['eager none', 'aot_eager none', 'aot_eager none RangeError||no relu']])
    expect(plain.result).toMatchObject({ path: null, leads: [], isolated: true, whyNotIsolated: null, failureRate: 1 })
    const options = { accuracy: 'strict_accuracy', onlyFwd: true, contract: true, checkStr: 'relu' } as const
    const all = await hunted((query) => (hasRelu(query) ? FAILS : PASSES), options)
    expect(all.specs.slice(0, 3)).toEqual([
      'eager none contract forward',
      'aot_eager strict_accuracy contract forward relu',
      'eager strict_accuracy contract forward',
    ])
    expect(all.specs.some((text) => text.includes('RangeError'))).toBe(false)
    const signed = await hunted((query) => (hasRelu(query) ? { ...FAILS, signature: 'other' } : PASSES), { signature: 'mine' })
    expect(signed.specs.slice(0, 2)).toEqual(['eager none', 'aot_eager none mine'])
    const any = await hunted((query) => (hasRelu(query) ? { dies: 'exit code 3' } : PASSES), { deathFails: true })
    expect(any.specs.slice(0, 4)).toEqual(['eager none', 'aot_eager none any', 'eager none', 'aot_eager none exit 3'])
  })

  it('needs a graph that passes on eager', async () => {
    const onEager = await hunted(
      () => FAILS,
      {},
      () => ({ status: 'unrelated', message: 'TypeError: no\nmore' }),
    )
    expect(onEager.error).toBe("MinifierError: Input graph fails on eager too, so its failure is not that of 'aot_eager': TypeError: no\nmore")
    expect(onEager.asked).toHaveLength(1)
    // By the rules that the backend is judged by.
    const wrong = { accuracy: 'accuracy' } as const
    const byRules = await hunted(
      () => ({ ...FAILS, signature: 'accuracy|value' }),
      wrong,
      ({ spec }) => (spec.accuracy === 'none' ? PASSES : { status: 'fails', message: 'Bad accuracy\nby 1', signature: 'accuracy|value' }),
    )
    expect(byRules.error).toBe(
      'MinifierError: Input graph fails on a backend that is right too, so its failure is not that of the backend. eager said: Bad accuracy\nby 1',
    )
    expect(byRules.lines).toContain('  (candidate skipped: it fails on eager too: Bad accuracy)')
    // Eager itself has no control.
    const eager = await hunted(
      () => null,
      { backend: 'eager' },
      (query) => (hasRelu(query) ? FAILS : PASSES),
    )
    expect([eager.error, eager.result?.controls, eager.result && operators(eager.result.gm)]).toEqual(['', 0, ['relu']])
  })

  it('says of an original that does not fail how else it failed', async () => {
    const other = { status: 'unrelated', message: 'a different error: TypeError: x\nmore', signature: 'TypeError||x' } as const
    const { error, lines } = await hunted(() => other, { signature: 'mine' })
    expect(error).toMatch(/^MinifierError: Input graph did not fail the tester.*\. It failed in another way: a different error: TypeError: x\nmore$/)
    expect(lines).toContain('  (candidate skipped: a different error: TypeError: x)')
    const right = await hunted(() => PASSES)
    expect(right.error).toMatch(/^MinifierError: Input graph did not fail the tester \(in \d+ runs\)$/)
  })

  it('writes checkpoints and leads, and goes on where they cannot be written', async () => {
    const other = { status: 'unrelated', message: 'a different error: TypeError: x\nmore', signature: 'TypeError||x' } as const
    const answer = (query: Query): Answer => (hasRelu(query) ? FAILS : has(query, 'sin') ? other : PASSES)
    const { result, lines } = await hunted(answer, { runDir: '/run', after: 'aot' })
    const lead = '/run/minifier/leads/lead_1.mjs'
    expect(result?.leads).toEqual([{ signature: 'TypeError||x', message: 'a different error: TypeError: x\nmore', path: lead }])
    expect(lines).toContain(`A failure of another kind was kept as a lead: ${lead} (a different error: TypeError: x)`)
    expect(textOf(store, lead)).toMatch(/after: 'aot'[^]*signature: 'TypeError\|\|x'/)
    expect([result?.path, store.files.has('/run/minifier/checkpoints/3.mjs')]).toEqual([`${process.cwd()}/repro.mjs`, true])
    expect(textOf(store, result?.path ?? '')).toMatch(/after: 'aot',[^]*backend: 'aot_eager',[^]*signature: 'RangeError\|\|no relu'/)

    const full: FileStore = {
      read: () => null,
      write: () => {
        throw new RangeError('the disk is full')
      },
    }
    setFileStore(full)
    const without = await hunted(answer, { runDir: '/run' })
    expect([without.error, without.result?.path, without.result?.leads[0]?.path]).toEqual(['', null, null])
    expect(said.filter(([level]) => level === 'warning')).toEqual([['warning', 'No more checkpoints are written: RangeError: the disk is full']])
  })

  it('removes the script of a result that does not fail when it is judged anew', async () => {
    let runs = 0
    const { error } = await hunted((query) => (hasRelu(query) && ++runs < 8 ? FAILS : PASSES), { runDir: '/run' })
    expect(error).toMatch(/^MinifierError: Uh oh/)
    expect(store.files.has(`${process.cwd()}/repro.mjs`)).toBe(false)
    expect([...store.files.keys()].length).toBeGreaterThan(0)
  })

  it('says of a failure that comes and goes how often it came', async () => {
    let runs = 0
    const { result, lines } = await hunted((query) => (hasRelu(query) && ++runs % 3 !== 0 ? FAILS : PASSES), { runDir: '/run' })
    const percent = Math.round(100 * (result?.failureRate ?? NaN))
    expect([percent > 40, percent < 90]).toEqual([true, true])
    expect(lines.at(-1)).toBe(`'aot_eager' is flaky: for the same graph and inputs it failed in ${percent}% of the runs, and eager in none.`)
    expect(textOf(store, result?.path ?? '')).toContain(
      `// The failure comes and goes: it was seen in ${percent}% of the runs. \`run\` runs the graph until it fails.`,
    )
  })
})

describe('a hunt with the calls before', () => {
  const earlier = [[torch.zeros([2])], [torch.full([2], 2)]]

  it('drops those that are not needed, and judges wrong numbers call by call only where one alone is right', async () => {
    const wrong: Outcome = { status: 'fails', message: 'Bad accuracy', signature: 'accuracy|value' }
    const alone = await hunted((query) => (hasRelu(query) ? wrong : PASSES), { accuracy: 'accuracy', earlier })
    expect([alone.error, alone.result?.earlier]).toEqual(['', []])
    expect(alone.lines[0]).toBe('The last call fails by itself: 2 calls before it are not needed')
    expect(alone.asked.map(({ calls }) => calls.length).slice(0, 3)).toEqual([3, 1, 1])
    const late = await hunted((query) => (hasRelu(query) && query.calls.length > 1 ? wrong : PASSES), { accuracy: 'accuracy', earlier })
    expect([late.error, late.result?.earlier.length]).toEqual(['', 1])
    expect(late.specs.slice(0, 3)).toEqual(['eager none', 'aot_eager accuracy', 'aot_eager accuracy contract'])
    const thrown = await hunted((query) => (hasRelu(query) && query.calls.length > 1 ? FAILS : PASSES), { earlier })
    expect([thrown.error, thrown.result?.earlier.length, thrown.specs[1]]).toEqual(['', 1, 'aot_eager none'])
    const contract = await hunted((query) => (hasRelu(query) && query.calls.length > 1 ? wrong : PASSES), {
      accuracy: 'accuracy',
      contract: true,
      earlier,
    })
    expect([contract.error, contract.asked[1]?.calls.length]).toEqual(['', 3])
  })
})

describe('the options of a hunt', () => {
  it('are checked, and times are some', async () => {
    expect((await hunted(() => PASSES, { backends: [] } as never)).error).toMatch(/^ArgumentError: minifyBackendFailure: unknown option 'backends'/)
    for (const name of ['timeoutMs', 'importTimeoutMs'])
      expect((await hunted(() => PASSES, { [name]: 0 })).error).toBe(
        `ArgumentError: minifyBackendFailure: argument 'options.${name}' must be a positive number, got 0.`,
      )
    expect(
      (await hunted((query) => (hasRelu(query) ? FAILS : PASSES), { importTimeoutMs: 1000, timeoutMs: 1000, maxGranularity: 2, skipSanity: true }))
        .error,
    ).toBe('')
  })

  it('reach the search and the helpers', async () => {
    expect((await hunted(() => FAILS, { maxGranularity: 3 })).error).toMatch(/^ArgumentError: minifier: maxGranularity 3 is not a power of two/)
    const never: StartHelper = async () => ({ announces: true, post: () => {}, listen: () => {}, kill: () => {} })
    expect((await hunted(() => null, { startHelper: never, importTimeoutMs: 10 })).error).toMatch(
      /: the modules of the backend were not imported within 10 ms$/,
    )
  })

  it('may leave no other process to judge in, and it is said why', async () => {
    const why = 'the backend is a function without a name; register it with registerBackend(name, fn, { module }) to have it isolated'
    const failing = (gm: GraphModule): GraphModule => {
      if (operators(gm).some((name) => name.startsWith('relu'))) throw new RangeError('no relu')
      return gm
    }
    const here = await hunted(() => PASSES, { backend: failing, isolate: true })
    expect([here.error, here.result?.isolated, here.result?.whyNotIsolated, here.result?.processes, here.asked]).toEqual(['', false, why, 0, []])
    expect(said).toEqual([['warning', `candidates are judged in this process: ${why}`]])
    expect((await hunted(() => PASSES, { backend: failing })).result?.whyNotIsolated).toBe(why)
    expect((await hunted(() => PASSES, { backend: failing, isolate: false })).result?.whyNotIsolated).toBe('isolate is false')
    // Those of the final runs.
    expect([said.length, here.result?.controls]).toEqual([1, 5])
    expect((await hunted(() => PASSES, { backend: failing, death: 'crash' })).error).toBe(
      `ArgumentError: minifyBackendFailure: the failure ends the process (crash), so candidates need one of their own, but ${why}.`,
    )
  })
})
