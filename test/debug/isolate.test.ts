// Isolated helpers are not trusted: whatever they send, the search goes on.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it, vi } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, symbolicTrace } from 'tensorfx/fx'
import { Isolator, childEntry } from 'tensorfx/debug'
import type { FailureSpec, Helper, StartHelper } from 'tensorfx/debug'
import { temporaryFolder } from '../helpers/folder.ts'
import { nodeHelper } from '../../src/debug/isolate/nodeHelper.ts'
import { READY, answerLine } from '../../src/debug/isolate/pipes.ts'
import { QueryEncoder, isAnswerTo } from '../../src/debug/isolate/protocol.ts'
import { startWatchdog, watch } from '../../src/debug/isolate/watchdog.ts'
import { distUrl } from './processes.ts'

childEntry.url = distUrl('entries/debugChild.js')
const work = temporaryFolder('tensorfx-isolate-')

const spec: FailureSpec = { backend: 'mad', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true }
const gm = (): GraphModule => symbolicTrace((x: Tensor) => [torch.sin(x)])

/** A helper that answers each query with these messages. */
function scripted(messages: (id: number) => readonly unknown[]): () => Promise<Helper> {
  return async () => {
    let receive: (message: unknown) => void = () => {}
    return {
      post: (query) => queueMicrotask(() => messages(query.id).forEach((message) => receive(message))),
      listen: (onAnswer) => void (receive = onAnswer),
      kill: () => {},
    }
  }
}

describe('messages of a helper', () => {
  const good = (id: number): unknown => ({ id, outcome: { status: 'passes', message: 'ran' } })

  it.each([
    ['null', null],
    ['undefined', undefined],
    ['a string', 'ready'],
    ['an array', [1]],
    ['an object without id', {}],
    ['the answer to another query', { id: 99, outcome: null }],
  ])('that are no answer are ignored: %s', async (_what, message) => {
    const isolator = new Isolator(scripted((id) => [message, good(id)]))
    expect(await isolator.query(gm(), [torch.ones([2])], spec)).toEqual({ status: 'passes', message: 'ran' })
  })

  it.each([
    ['no outcome', undefined],
    ['an unknown status', { status: 'maybe', message: '' }],
    ['a message that is no text', { status: 'fails', message: 7 }],
  ])('that answer with %s end the helper', async (_what, outcome) => {
    const isolator = new Isolator(scripted((id) => [{ id, outcome }]))
    const answer = await isolator.query(gm(), [torch.ones([2])], spec)
    expect(answer.status).toBe('unrelated')
    expect(answer.message).toContain('an answer that cannot be read')
    await isolator.query(gm(), [torch.ones([2])], spec)
    expect(isolator.started).toBe(2)
  })
})

describe('an isolator', () => {
  it('refuses times that are none, and options that it does not have', () => {
    const start = scripted(() => [])
    for (const name of ['timeoutMs', 'importTimeoutMs'])
      for (const value of [0, -1, NaN, '5', null, undefined])
        expect(() => new Isolator(start, { [name]: value })).toThrow(
          value === '5' || value === null
            ? `Isolator: option '${name}' must be a number, got `
            : `Isolator: argument 'options.${name}' must be a positive number, got `,
        )
    expect(() => new Isolator(start, { timeout: 5 } as never)).toThrow(/^Isolator: unknown option 'timeout'/)
  })
})

describe('a real child process', () => {
  /** Asks a child whose backend runs `code` first, and then compiles. */
  async function ask(name: string, code: string, options: ConstructorParameters<typeof Isolator>[1] = {}): Promise<readonly string[]> {
    const file = join(work, `${name}.mjs`)
    const compileUrl = distUrl('entries/compile.js')
    writeFileSync(
      file,
      `import { registerBackend } from '${compileUrl}'
       import fs from 'node:fs'
       registerBackend('mad', (gm) => { ${code}; return gm }, { module: import.meta.url })`,
    )
    const start = nodeHelper()
    if (start === null) throw new Error('this test needs child processes')
    const isolator = new Isolator(start, { imports: [pathToFileURL(file).href], timeoutMs: 20_000, ...options })
    try {
      const outcomes = [await isolator.query(gm(), [torch.ones([2])], spec), await isolator.query(gm(), [torch.ones([2])], spec)]
      return [...outcomes.map((outcome) => outcome.status), String(isolator.started)]
    } finally {
      isolator.close()
    }
  }

  it('answers, whatever the environment says of scripts', async () => {
    // A child that saw this would not start.
    vi.stubEnv('TENSORFX_REPRO_LEVEL', 'abc')
    try {
      expect(await ask('plain', '')).toEqual(['passes', 'passes', '1'])
    } finally {
      vi.unstubAllEnvs()
    }
  })

  it('may write what it likes, by console, standard output, messages and raw bytes in any pipe', async () => {
    expect(await ask('console', `console.log('x'.repeat(100_000)); process.stdout.write('no end of line')`)).toEqual(['passes', 'passes', '1'])
    expect(await ask('messages', `process.send?.(null); process.send?.('garbage'); process.send?.({ id: 0 })`)).toEqual(['passes', 'passes', '1'])
    const bytes = `for (const fd of [1, 3, 4]) try { fs.writeSync(fd, Buffer.from([0, 0, 0, 3, 255, 254, 253, 10, 123, 10])) } catch {}`
    expect(await ask('bytes', bytes)).toEqual(['passes', 'passes', '1'])
  })

  it('that dies or hangs is replaced', async () => {
    expect(await ask('exits', 'process.exit(7)')).toEqual(['unrelated', 'unrelated', '2'])
    expect(await ask('hangs', 'for (;;);', { timeoutMs: 500, deathFails: true })).toEqual(['fails', 'fails', '2'])
  })

  it('that dies while a large input is sent to it is reported as a death', async () => {
    const start = nodeHelper()
    if (start === null) throw new Error('this test needs child processes')
    const isolator = new Isolator(start, { timeoutMs: 20_000, imports: ['data:text/javascript,process.exit(5)'] })
    try {
      const first = await isolator.query(gm(), [torch.ones([2])], spec)
      expect(first.message).toContain('exit code 5')
      const large = await isolator.query(gm(), [torch.ones([4_000_000])], spec)
      expect(large.message).toContain('exit code 5')
    } finally {
      isolator.close()
    }
  })
})

describe('a child of this process', () => {
  /** A fresh copy of the module, whose children run this program after they have said that they are there. */
  async function helperRunning(program: string): Promise<StartHelper> {
    vi.resetModules()
    const fresh = await import('../../src/debug/isolate/nodeHelper.ts')
    const file = join(work, `child${children++}.mjs`)
    const say = (message: string): string => `process.stdout.write('\\n${MARK}' + JSON.stringify(${message}) + '\\n')`
    writeFileSync(file, `${say('0')}\nprocess.stdin.on('data', () => { ${program.replaceAll(/say\((.*?)\);/g, (_, what: string) => say(what))} })`)
    fresh.childEntry.url = pathToFileURL(file).href
    const start = fresh.nodeHelper()
    if (start === null) throw new Error('this test needs child processes')
    return start
  }
  let children = 0
  const MARK =
    answerLine({ id: 0, outcome: { status: 'passes', message: '' } })
      .trim()
      .split('{')[0] ?? ''
  const query = new QueryEncoder().encode(gm(), [], spec, [])
  const firstMessage = (helper: Helper): Promise<unknown> => new Promise((resolve) => helper.listen(resolve, resolve))

  it('gets the environment without the settings of scripts', async () => {
    vi.stubEnv('TENSORFX_REPRO_AFTER', 'aot')
    vi.stubEnv('TENSORFX_OTHER', 'kept')
    const helper = await (await helperRunning(`say([process.env.TENSORFX_REPRO_AFTER ?? null, process.env.TENSORFX_OTHER, process.argv[2]]);`))()
    vi.unstubAllEnvs()
    try {
      const answer = firstMessage(helper)
      helper.post(query)
      expect(await answer).toEqual([null, 'kept', String(process.pid)])
    } finally {
      helper.kill()
    }
  })

  it('keeps the program alive only while it is asked', async () => {
    const open = (): number => process.getActiveResourcesInfo().filter((name) => name === 'PipeWrap' || name === 'ProcessWrap').length
    const start = await helperRunning('say(1);')
    const before = open()
    const helper = await start()
    try {
      expect(open() - before).toBe(0)
      const answer = firstMessage(helper)
      helper.post(query)
      expect(open() - before).toBe(1)
      await answer
      expect(open() - before).toBe(0)
    } finally {
      helper.kill()
    }
  })

  it('is ended with the program, all of them by one listener; one that was ended before is not', async () => {
    const start = await helperRunning('process.exit(3)')
    const before = process.listeners('exit')
    const [first, second, third] = await Promise.all([start(), start(), start()])
    const added = process.listeners('exit').filter((listener) => !before.includes(listener))
    expect(added).toHaveLength(1)
    const deaths = [first, second, third].map(firstMessage)
    third.kill()
    second.post(query)
    expect(await deaths[1]).toBe('exit code 3')
    for (const listener of added) {
      Reflect.apply(listener, process, [0])
      process.off('exit', listener)
    }
    expect(await deaths[0]).toBe('signal SIGKILL')
    // One that has died before it is listened to says so then.
    expect(await firstMessage(first)).toBe('signal SIGKILL')
    expect(await Promise.race([deaths[2], new Promise((resolve) => setTimeout(resolve, 50, 'nothing'))])).toBe('nothing')
  })

  it('that ends before it can be asked, or cannot be started, says so when it is listened to', async () => {
    const { childEntry: entry, nodeHelper: helperOf } = await import('../../src/debug/isolate/nodeHelper.ts')
    const file = join(work, 'ends.mjs')
    writeFileSync(file, 'process.exit(9)')
    entry.url = pathToFileURL(file).href
    const before = process.listeners('exit')
    const ended = await helperOf()?.()
    const path = process.execPath
    process.execPath = join(work, 'no-node')
    const absent = await helperOf()?.()
    process.execPath = path
    for (const listener of process.listeners('exit')) if (!before.includes(listener)) process.off('exit', listener)
    expect(ended && (await firstMessage(ended))).toBe('exit code 9')
    expect(absent && (await firstMessage(absent))).toMatch(/ENOENT/)
  })

  it('says first that it is there, which answers no query', () => {
    for (let id = 0; id < 3; id++) expect(isAnswerTo({ ...query, id }, READY)).toBe(false)
  })

  it('has a thread that watches its parent, where there are threads', () => {
    const started: { program: string; isUnref: boolean; fail: unknown }[] = []
    class Worker {
      readonly #mine: (typeof started)[number]
      constructor(url: URL) {
        this.#mine = { program: decodeURIComponent(url.href), isUnref: false, fail: null }
        started.push(this.#mine)
      }
      on(event: string, listener: () => void): void {
        if (event === 'error') this.#mine.fail = listener
      }
      unref(): void {
        this.#mine.isUnref = true
      }
    }
    vi.stubGlobal('process', { getBuiltinModule: (name: string) => (name === 'node:worker_threads' ? { Worker } : undefined) })
    startWatchdog(7, 3)
    vi.stubGlobal('process', {})
    startWatchdog(8, 3)
    vi.unstubAllGlobals()
    expect(started.map(({ program, isUnref, fail }) => [program.replace(/"[^"]*"/, 'MODULE'), isUnref, typeof fail])).toEqual([
      ['data:text/javascript,import { watch } from MODULE\nwatch(7, 3)', true, 'function'],
    ])
    expect(started[0]?.program).toContain('/debug/isolate/watchdog.')
  })
})

it('a child whose parent is gone ends itself', () => {
  vi.useFakeTimers()
  const killed: unknown[][] = []
  let [ppid, isThere] = [7, true]
  const kill = (...args: unknown[]): void => {
    if (args[1] === 0 && !isThere) throw new Error('ESRCH')
    if (args[1] !== 0) killed.push(args)
  }
  vi.stubGlobal('process', Object.create(process, { pid: { value: 42 }, ppid: { get: () => ppid }, kill: { value: kill } }))
  try {
    watch(7, null)
    vi.advanceTimersByTime(1000)
    expect(killed).toEqual([])
    ppid = 1
    vi.advanceTimersByTime(250)
    expect(killed).toEqual([[42, 'SIGKILL']])
    // On Windows the number stays.
    ;[ppid, isThere] = [7, false]
    vi.advanceTimersByTime(200)
    expect(killed).toHaveLength(2)
  } finally {
    vi.unstubAllGlobals()
    vi.useRealTimers()
  }
})
