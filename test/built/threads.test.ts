// Processes with threads: they end by themselves, also in the middle of a launch; idle workers sleep; without shared memory one thread computes.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { describe, expect, test } from 'vitest'
import { root } from './node.ts'

/** A program on threads in which every loop is divided. `busy()` computes until workers take part. */
const BEGIN = `
  import { torch } from './dist/index.js'
  import { poolState } from './dist/kernels/threads/pool.js'
  import { threadCosts } from './dist/kernels/threads/launch.js'
  Object.assign(threadCosts, { awake: 0, asleep: 0, chunk: 0, learns: false })
  const x = torch.ones([300, 301])
  const compute = () => x.t().contiguous().sum().item() + x.matmul(x.t()).sum().item()
  const busy = async () => {
    while (poolState.chunksByWorkers === 0) { compute(); await new Promise((resolve) => setTimeout(resolve, 2)) }
  }
`
const RESULT = 300 * 301 + 300 * 300 * 301
/** Runs a module in a process of its own; without a number of threads, on the default. */
function node(
  code: string,
  threads?: string,
  more: Readonly<Record<string, string>> = {},
): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  const { TENSORFX_NUM_THREADS: _, ...rest } = process.env
  const env = { ...rest, ...more, ...(threads === undefined ? {} : { TENSORFX_NUM_THREADS: threads }) }
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: root,
    encoding: 'utf8',
    env,
    timeout: 120_000,
  })
  return { status, stdout, stderr }
}
const run = (program: string, threads = '3'): ReturnType<typeof node> => node(BEGIN + program, threads)

describe('a process with threads', () => {
  test('ends by itself', () => {
    const { status, stdout, stderr } = run('await busy(); console.log(compute(), poolState.launches > 0)')
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: `${RESULT} true\n`, stderr: '' })
  })

  test('ends where a program calls process.exit while workers compute', () => {
    // The caller exits inside a chunk of its own, while workers have others.
    const { status, stdout, stderr } = run(`
      await busy()
      let chunks = 0
      const now = performance.now.bind(performance)
      performance.now = () => { if (chunks++ > 20) { console.log('out'); process.exit(7) } return now() }
      for (;;) compute()`)
    expect({ status, stdout, stderr }).toEqual({ status: 7, stdout: 'out\n', stderr: '' })
  })

  test('lets its workers sleep: after the last call no thread takes time', () => {
    const { status, stdout } = run(`
      await busy()
      await new Promise((resolve) => setTimeout(resolve, 1000))
      const before = process.cpuUsage()
      await new Promise((resolve) => setTimeout(resolve, 2000))
      const { user, system } = process.cpuUsage(before)
      console.log((user + system) / 1000 < 100)`)
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'true\n' })
  })

  test('forks a process, which has threads of its own', () => {
    const folder = mkdtempSync(`${tmpdir()}/tensorfx-threads-`)
    const program = `${BEGIN}
      import { fork } from 'node:child_process'
      await busy()
      if (process.env.CHILD === undefined) {
        const child = fork(process.argv[1], { env: { ...process.env, CHILD: '1' } })
        child.on('exit', (code) => console.log('child', code, compute()))
      } else console.log(compute())`
    writeFileSync(`${folder}/program.mjs`, program.replaceAll('./dist/', `${root}dist/`))
    try {
      const { status, stdout } = spawnSync(process.execPath, [`${folder}/program.mjs`], {
        encoding: 'utf8',
        env: { ...process.env, TENSORFX_NUM_THREADS: '2' },
      })
      expect({ status, stdout }).toEqual({ status: 0, stdout: `${RESULT}\nchild 0 ${RESULT}\n` })
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('computes in worker threads of the program too', () => {
    const { status, stdout } = run(`
      import { Worker, isMainThread } from 'node:worker_threads'
      if (isMainThread) {
        await busy()
        const code = "import('./dist/index.js').then(({ torch }) => console.log(torch.getNumThreads(), torch.ones([300, 301]).sum().item()))"
        new Worker(code, { eval: true }).on('exit', (status) => console.log('worker', status, compute()))
      }`)
    expect({ status, stdout }).toEqual({ status: 0, stdout: `3 ${300 * 301}\nworker 0 ${RESULT}\n` })
  })
})

describe('where the program has said no number', () => {
  const cores = Math.min(4, availableParallelism())
  const program = `
    import { torch } from './dist/index.js'
    const x = torch.ones([3])
    console.log(torch.getNumThreads(), x.sum().item())`

  test('there are as many threads as cores, 4 at most, and any number may be set at any time', () => {
    const { stdout, stderr } = node(`${program}\ntorch.setNumThreads(1)\ntorch.setNumThreads(${cores})\nconsole.log(torch.getNumThreads())`)
    expect({ stdout, stderr }).toEqual({ stdout: `${cores} 3\n${cores}\n`, stderr: '' })
  })

  test.each(['OMPI_COMM_WORLD_SIZE', 'PMI_SIZE', 'SLURM_STEP_NUM_TASKS'])('a rank of several, which %s tells, has one thread', (variable) => {
    expect(node(program, undefined, { [variable]: '2' }).stdout).toBe('1 3\n')
    expect(node(program, undefined, { [variable]: '1' }).stdout).toBe(`${cores} 3\n`)
  })

  test('a worker thread of the program has one', () => {
    const { stdout } = node(`
      import { Worker } from 'node:worker_threads'
      new Worker("import('./dist/index.js').then(({ torch }) => console.log(torch.getNumThreads(), torch.ones([3]).sum().item()))", { eval: true })`)
    expect(stdout).toBe('1 3\n')
  })

  // The collector of the host does not count shared memory by itself.
  test('tensors that nothing refers to take about as much memory as on one thread', () => {
    const garbage = `
      import { torch } from './dist/index.js'
      for (let i = 0; i < 400; i++) torch.ones([500, 500]).mul(2).sum().item()
      console.log(torch.memory.memoryReserved())`
    const [one, several] = ['1', '2'].map((threads) => Number(node(garbage, threads).stdout))
    expect(several).toBeLessThan(1.5 * (one ?? 0))
  })

  test('a small program starts no worker', () => {
    const { stdout } = node(`
      import { Worker } from 'node:worker_threads'
      import threads from 'node:worker_threads'
      import { syncBuiltinESMExports } from 'node:module'
      let started = 0
      threads.Worker = class extends Worker { constructor(...args) { super(...args); started++ } }
      syncBuiltinESMExports()
      const { compile, torch } = await import('./dist/index.js')
      const f = compile((x) => x.mul(2).add(1).sum())
      for (let i = 0; i < 300; i++) f(torch.ones([64]))
      console.log(started, f(torch.ones([64])).item())`)
    expect(stdout).toBe('0 192\n')
  })

  test('nothing is said where threads cannot be had, until the program asks for some', () => {
    const { stdout, stderr } = node(`
      delete globalThis.SharedArrayBuffer
      const { torch } = await import('./dist/index.js')
      console.log(torch.ones([3]).sum().item(), torch.getNumThreads())
      console.error('now')
      torch.setNumThreads(2)
      console.log(torch.getNumThreads())`)
    expect(stdout).toBe('3 1\n1\n')
    if (cores > 1) expect(stderr).toMatch(/^now\ntensorfx: 2 threads were asked for, but one computes: there is no SharedArrayBuffer here .*\n$/)
    const logged = node(
      "delete globalThis.SharedArrayBuffer; const { compile, torch } = await import('./dist/index.js'); compile((x) => x.add(1))(torch.ones([3]))",
      undefined,
      {
        TENSORFX_LOGS: 'engines',
      },
    )
    if (cores > 1) expect(logged.stderr).toMatch(/\[__engines\] no threads: there is no SharedArrayBuffer here/)
    const core = node("import { tensor } from './dist/entries/core.js'; console.log(tensor([1, 2]).add(1).toArray())")
    expect(core).toEqual({ status: 0, stdout: '[ 2, 3 ]\n', stderr: '' })
  })
})

test('without SharedArrayBuffer, one thread computes, with one notice', () => {
  const program = `
    delete globalThis.SharedArrayBuffer
    const { torch } = await import('./dist/index.js')
    const x = torch.ones([300, 301])
    console.log(x.matmul(x.t()).sum().item(), torch.getNumThreads())
    torch.setNumThreads(2)
    console.log(torch.getNumThreads())`
  const { status, stdout, stderr } = node(program, '4')
  expect({ status, stdout }).toEqual({ status: 0, stdout: `${300 * 300 * 301} 1\n1\n` })
  expect(stderr).toBe(
    'tensorfx: 4 threads were asked for, but one computes: there is no SharedArrayBuffer here (a page must be cross-origin isolated). The results are the same.\n',
  )
})

test.each([
  ['0', 'TENSORFX_NUM_THREADS must be an integer from 1 to 256, got 0.'],
  ['many', "TENSORFX_NUM_THREADS must be an integer from 1 to 256, got 'many'."],
])('TENSORFX_NUM_THREADS=%s is refused', (threads, message) => {
  const { status, stderr } = run('', threads)
  expect(status).toBe(1)
  expect(stderr).toContain(message)
})

test('tensorfx/core computes on one thread, with one notice', () => {
  const program = `
    import { tensor } from './dist/entries/core.js'
    console.log(tensor([1, 2]).add(1).toArray(), tensor([1, 2]).mul(2).toArray())`
  const { status, stdout, stderr } = node(program, '2')
  expect({ status, stdout }).toEqual({ status: 0, stdout: '[ 2, 3 ] [ 2, 4 ]\n' })
  expect(stderr).toBe(
    "tensorfx: 2 threads were asked for, but one computes: tensorfx/core has no threads; write import 'tensorfx' before the first tensor. The results are the same.\n",
  )
})
