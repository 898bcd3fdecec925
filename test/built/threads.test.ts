// Processes with threads: they end by themselves, also in the middle of a launch; idle workers sleep; without shared memory one thread computes.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
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
/** Runs a module in a process of its own. */
function node(code: string, threads: string): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  const env = { ...process.env, TENSORFX_NUM_THREADS: threads }
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
