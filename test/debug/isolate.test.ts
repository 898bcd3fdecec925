// Isolated helpers are not trusted: whatever they send, the search goes on.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, symbolicTrace } from 'tensorfx/fx'
import { Isolator, childEntry } from 'tensorfx/debug'
import type { FailureSpec, Helper } from 'tensorfx/debug'
import { nodeHelper } from '../../src/debug/isolate/nodeHelper.ts'
import { watchParent } from '../../src/debug/isolate/watchdog.ts'

childEntry.url = new URL('../../dist/entries/debugChild.js', import.meta.url).href
const work = mkdtempSync(join(tmpdir(), 'tensorfx-isolate-'))
afterAll(() => rmSync(work, { recursive: true, force: true }))

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

describe('a real child process', () => {
  /** Asks a child whose backend runs `code` first, and then compiles. */
  async function ask(name: string, code: string, options: ConstructorParameters<typeof Isolator>[1] = {}): Promise<readonly string[]> {
    const file = join(work, `${name}.mjs`)
    const compileUrl = new URL('../../dist/entries/compile.js', import.meta.url).href
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
    expect(await ask('hangs', 'for (;;);', { timeoutMs: 2000, deathFails: true })).toEqual(['fails', 'fails', '2'])
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
    watchParent(7)
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
