// What a search may cost: queries and processor time for a large graph, and the time limit for a candidate that loops or dies.
import { readFileSync } from 'node:fs'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { registerBackend } from 'tensorfx/compile'
import { Isolator, childEntry, minifyBackendFailure } from 'tensorfx/debug'
import type { FailureSpec } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import { turn } from '../helpers/rotation.ts'
import { removeFolder } from '../helpers/folder.ts'
import { nodeHelper } from '../../src/debug/isolate/nodeHelper.ts'
import { distUrl, folderWith } from './processes.ts'

childEntry.url = distUrl('entries/debugChild.js')

const folders: string[] = []
const folderOf = (files: Readonly<Record<string, string>>): string => {
  const folder = folderWith(files)
  folders.push(folder)
  return folder
}
afterAll(() => folders.forEach((folder) => removeFolder(folder)))

const large = `
  import { torch } from '${distUrl('index.js')}'
  import { Graph, GraphModule } from '${distUrl('entries/fx.js')}'
  import { minifyBackendFailure } from '${distUrl('entries/debug.js')}'
  const graph = new Graph()
  let node = graph.placeholder('x')
  const ops = [torch.sin, torch.cos, torch.tanh, torch.sigmoid]
  for (let i = 0; i < 200; i++) node = graph.callFunction(i === 137 ? torch.relu : ops[i % ops.length], [node])
  graph.output([node])
  const options = { backend: 'relu_compile_error_TESTING_ONLY', print: () => {} }
  const { user, system } = process.cpuUsage()
  const small = await minifyBackendFailure(new GraphModule({}, graph), [torch.randn([4, 4])], options)
  const { queries, checks, isolated, processes } = small
  const operators = [...small.gm.graph.nodes].map((one) => (one.op === 'call_function' ? one.name : one.op))
  // Processes that were ended are waited for, so that their time is counted.
  await new Promise((resolve) => setTimeout(resolve, 500))
  console.log(JSON.stringify({ queries, checks, isolated, processes, operators, startSeconds: (user + system) / 1e6 }))`

/** The seconds in the last line that the shell's \`times\` prints: of the processes that it has waited for, and of theirs. */
const secondsOf = (times: string): number =>
  [...times.matchAll(/(\d+)m([\d.]+)s/g)].slice(-2).reduce((sum, [, minutes = '', seconds = '']) => sum + 60 * Number(minutes) + Number(seconds), 0)

describe('200 operators with a bad one at 137', () => {
  it('take at most 20 queries, and less than 2 seconds of processor time in all processes together', () => {
    // Processor time, since the time that passes also depends on what else the machine does.
    const folder = folderOf({ 'large.mjs': large })
    const secondsOfRun = (): number => {
      const { stdout, stderr } = spawnSync('sh', ['-c', 'node large.mjs; times'], { cwd: folder, encoding: 'utf8' })
      const [line = '', ...times] = stdout.trim().split('\n')
      expect(line, stderr).toMatch(/^\{/)
      const result = JSON.parse(line) as { readonly queries: number; readonly checks: number; readonly startSeconds: number }
      expect(result).toMatchObject({ isolated: true, processes: 2, operators: ['placeholder', 'relu', 'output'] })
      expect(result.queries).toBeLessThanOrEqual(20)
      expect(result.checks).toBeLessThanOrEqual(20)
      // The start of the program is not part of the search; that of the child processes is.
      return secondsOf(times.join('\n')) - result.startSeconds
    }
    // Where many processes share a core, each takes more processor time too: one of three runs has to be fast enough.
    let seconds = secondsOfRun()
    for (let run = 1; run < 3 && seconds >= 2; run++) seconds = Math.min(seconds, secondsOfRun())
    expect(seconds).toBeGreaterThan(0)
    expect(seconds).toBeLessThan(2)
  })
})

const spec: FailureSpec = { backend: 'bad', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true }
const chain = symbolicTrace((x: Tensor) => [torch.cos(torch.relu(torch.sin(x)))])

/** A module whose backend runs \`code\` when it gets a graph. */
const badModule = (code: string): string => `
  import { writeFileSync } from 'node:fs'
  import { registerBackend } from '${distUrl('entries/compile.js')}'
  registerBackend('bad', (gm) => { ${code}; return gm }, { module: import.meta.url })`

/** Whether there is a process with that number. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('a candidate', () => {
  /** The time that one takes whose backend runs `code`, in a process that is there already. */
  async function timeOf(
    code: string,
    timeoutMs: number,
  ): Promise<{ readonly ms: number; readonly signature: string | undefined; readonly pid: number }> {
    const folder = folderOf({ 'bad.mjs': badModule(`writeFileSync(new URL('pid', import.meta.url), String(process.pid)); ${code}`) })
    const start = nodeHelper()
    if (start === null) throw new Error('this test needs child processes')
    const isolator = new Isolator(start, { imports: [pathToFileURL(join(folder, 'bad.mjs')).href] })
    try {
      await isolator.query(chain, [torch.ones([2])], { ...spec, backend: 'eager' })
      const began = performance.now()
      const { signature } = await isolator.query(chain, [torch.ones([2])], spec, timeoutMs)
      return { ms: performance.now() - began, signature, pid: Number(readFileSync(join(folder, 'pid'), 'utf8')) }
    } finally {
      isolator.close()
    }
  }

  // What the machine may need to notice that the time is over, and to end a process.
  const MARGIN_MS = 1500

  /** How long a process takes now to get a second of processor time. */
  async function msOfASecond(): Promise<number> {
    const began = performance.now()
    await once(spawn(process.execPath, ['-e', 'for (;;) { const { user, system } = process.cpuUsage(); if (user + system >= 1e6) break }']), 'exit')
    return performance.now() - began
  }

  const LOOPS = [
    ['loops', 'for (;;);'],
    ['loops and prints', `for (;;) console.log('still here')`],
    ['loops and is deaf to signals', `process.on('SIGTERM', () => {}); for (;;);`],
  ] as const
  it.each(turn(LOOPS))('that %s costs its time limit, and its process is ended', async (_what, code) => {
    // Its limit is of processor time, of which it may get less than a whole processor: another process that wants as much tells how much less.
    let overrun = Infinity
    for (let run = 0; run < 3 && overrun >= MARGIN_MS; run++) {
      const [{ ms, signature, pid }, enough] = await Promise.all([timeOf(code, 1000), msOfASecond()])
      expect(signature).toBe('hang')
      expect(ms).toBeGreaterThan(950)
      expect(ms).toBeLessThan(20 * 1000 + MARGIN_MS)
      overrun = Math.min(overrun, ms - enough)
      await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 30_000 })
    }
    expect(overrun).toBeLessThan(MARGIN_MS)
  })

  it.each([
    ['exits', 'process.exit(7)', 'exit 7'],
    ['kills itself', `process.kill(process.pid, 'SIGKILL'); for (;;);`, 'crash'],
    ['aborts', 'process.abort()', 'crash'],
  ])('that %s costs no more than until then', async (_what, code, how) => {
    const { ms, signature } = await timeOf(code, 60_000)
    expect(signature).toBe(how)
    expect(ms).toBeLessThan(60_000 / 4)
  })
})

it('a search among candidates that loop and die costs at most a time limit for each, and ends in the failure', async () => {
  // Without its relu, a graph with one sin loops, and one with more ends the process.
  const code = `
    const count = (name) => [...gm.graph.nodes].filter((node) => node.name.startsWith(name)).length
    if (count('relu') > 0) throw new RangeError('no relu here')
    if (count('sin') === 1) for (;;);
    if (count('sin') > 1) process.exit(7)`
  const folder = folderOf({ 'bad.mjs': badModule(code) })
  registerBackend('bad', () => chain, { module: pathToFileURL(join(folder, 'bad.mjs')).href })
  const gm = symbolicTrace((x: Tensor) => [torch.cos(torch.cos(torch.relu(torch.sin(torch.sin(x)))))])
  const timeoutMs = 1000
  const began = performance.now()
  const small = await minifyBackendFailure(gm, [torch.randn([3])], { backend: 'bad', timeoutMs, print: () => {} })
  const lost = small.processes - 2
  expect([...small.gm.graph.nodes].filter((node) => node.op === 'call_function').map((node) => node.name)).toEqual(['relu'])
  expect(small.leads.map(({ signature }) => signature).toSorted()).toEqual(['exit 7', 'hang'])
  expect(lost).toBeGreaterThanOrEqual(2)
  // And for each the start of another process, which is not the candidate's time.
  expect(performance.now() - began).toBeLessThan((lost + 2) * (timeoutMs + 5000))
})

describe('helpers that are started ahead', () => {
  /** Helpers that die at a query if `dies` says so, and what became of them. */
  function counted(dies: () => boolean): { readonly isolator: Isolator; readonly counts: { started: number; killed: number } } {
    const counts = { started: 0, killed: 0 }
    const isolator = new Isolator(async () => {
      counts.started++
      let [answer, die] = [(_message: unknown): void => {}, (_reason: string): void => {}]
      return {
        listen: (onMessage, onDeath) => void ([answer, die] = [onMessage, onDeath]),
        post: ({ id }) => void queueMicrotask(() => (dies() ? die('exit code 7') : answer({ id, outcome: { status: 'passes', message: '' } }))),
        kill: () => void counts.killed++,
      }
    })
    return { isolator, counts }
  }
  const ask = (isolator: Isolator): Promise<unknown> => isolator.query(chain, [torch.ones([2])], spec)

  it('are one for the search and one for the final check', async () => {
    const { isolator, counts } = counted(() => false)
    isolator.warmUp()
    expect(counts.started).toBe(2)
    await ask(isolator)
    await ask(isolator)
    expect(isolator.started).toBe(1)
    isolator.renew()
    await ask(isolator)
    expect([isolator.started, counts]).toEqual([2, { started: 2, killed: 1 }])
    isolator.close()
    expect(counts.killed).toBe(2)
  })

  it('take the place of those that die, and are ended if nothing needed them', async () => {
    const { isolator, counts } = counted(() => true)
    isolator.warmUp()
    await ask(isolator)
    // One has died, two wait.
    expect(counts).toEqual({ started: 3, killed: 1 })
    isolator.close()
    await Promise.resolve()
    expect(counts).toEqual({ started: 3, killed: 3 })
  })
})
