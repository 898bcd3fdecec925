// What happens when ranks disagree, do not come, throw, exit or are killed: every job ends within its deadline, says why, and leaves no process behind.
import { execFile, execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { golden } from './goldens.ts'
import { command, MPI_ENV, scenario, worlds } from './worlds.ts'
import { turn } from '../helpers/rotation.ts'

const SCRIPT = scenario('failures')

interface End {
  readonly code: number
  readonly output: string
  readonly seconds: number
  readonly pid: number
}

function run(world: 'threads' | 'mpi', way: string): Promise<End> {
  const start = performance.now()
  const [file, args] = command(world, 2, [SCRIPT, world, '2', way])
  return new Promise((resolve) => {
    const child = execFile(file, args, { timeout: 60_000, env: { ...process.env, ...MPI_ENV } }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1
      resolve({ code, output: stdout + stderr, seconds: (performance.now() - start) / 1000, pid: child.pid ?? 0 })
    })
  })
}

/** Processes that still run the script this way. */
const left = (way: string): string => {
  try {
    return execFileSync('pgrep', ['-af', `failures\\.mjs .* ${way}$`], { encoding: 'utf8' })
  } catch {
    return ''
  }
}

describe.each(turn(worlds))('on %s', (world) => {
  test('a job without failure ends with code 0', async () => {
    const { code, output } = await run(world, 'ends')
    expect(output).toContain('all is well')
    expect(code).toBe(0)
  })

  test.each([
    ['swapped', /rank \d: CollectiveMismatchError: .*rank 0 calls allreduce\(sum, float32\[4\]\); rank 1 calls allreduce\(sum, float32\[8\]\)/],
    ['size', /rank \d: CollectiveMismatchError: .*float32\[4\].*float32\[5\]/],
    [
      'neverComes',
      /rank 1: CollectiveTimeoutError: barrier\(\), number 1 of group '0', did not end within 2000 ms on rank 1\. Rank 0 has not come to it/,
    ],
    ['throws', /the data of rank 1 is broken/],
  ] as const)('%s: a clear error, and the job ends', async (way, message) => {
    const { code, output, seconds } = await run(world, way)
    expect(output).toMatch(message)
    expect(code).not.toBe(0)
    expect(seconds).toBeLessThan(40)
    expect(left(way)).toBe('')
  })
})

test.each(worlds)('%s: a monitored barrier names the rank that is late, in the words of PyTorch', async (world) => {
  const [rank0] = golden<{ readonly error: string }>('monitored_barrier_timeout_w4') ?? []
  const [words = ''] = rank0?.error.split('\n') ?? []
  expect(words).toMatch(/Rank 1 failed/)
  const { code, output } = await run(world, 'late')
  expect(output).toContain(words)
  expect(code).not.toBe(0)
  expect(left('late')).toBe('')
})

test.each(worlds.includes('mpi') ? ['exits', 'killed'] : [])('mpi, %s: the job ends', async (way) => {
  const { code, output, seconds } = await run('mpi', way)
  expect(code).not.toBe(0)
  expect(output).toMatch(way === 'killed' ? /signal 9|KILLED|Killed/i : /exits while|exit/i)
  expect(seconds).toBeLessThan(40)
  expect(left(way)).toBe('')
})

test.each(worlds.includes('mpi') ? ['destroyed'] : [])(
  'mpi, %s: to wait for a collective of a group that is no more is an error, and no crash',
  async (way) => {
    const { code, output } = await run('mpi', way)
    expect(output).toContain('DistributedError: the process group was destroyed before this collective was over. Wait for every Work first.')
    expect(code).toBe(0)
    expect(left(way)).toBe('')
  },
)

test('a thread world whose rank exits says which', async () => {
  const { code, output } = await run('threads', 'exits')
  expect(code).not.toBe(0)
  expect(output).toMatch(/rank 1 of 2: process\.exit\(0\), called at .*failures\.mjs:\d+/)
})
