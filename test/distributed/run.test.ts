// `tensorfx run`: ranks, their output, exit codes, signals and restarts.
import { execFile, execFileSync, spawn } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from '../helpers/folder.ts'
import { runTensorfx } from '../../src/cli/commands.ts'
import { bundledCommand } from '../../scripts/bundled.mjs'
import { scenario, worlds } from './worlds.ts'
import { turn } from '../helpers/rotation.ts'

const PROGRAM = scenario('launched')
const folder = temporaryFolder('tensorfx-test-run-')

interface End {
  readonly code: number
  readonly out: readonly string[]
  readonly err: readonly string[]
}

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '')

const run = (words: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<End> =>
  new Promise((resolve) => {
    execFile(process.execPath, [bundledCommand, 'run', ...words], { timeout: 60_000, env: { ...process.env, ...env } }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1
      resolve({ code, out: linesOf(stdout), err: linesOf(stderr) })
    })
  })

describe.each(turn(worlds))('on %s', (world) => {
  const options = (size: number): string[] => ['-n', String(size), '--backend', world]

  test('every rank runs the program with its words, and each line of output has its rank', async () => {
    const { code, out, err } = await run([...options(3), PROGRAM, 'sums', '-n', '--help', 'a b'])
    expect(code).toBe(0)
    const ranks = [0, 1, 2]
    const lines = ranks.flatMap((rank) => [`[${rank}] ${world} ${rank} of 3: 6 -n|--help|a b`, `[${rank}] no newline`])
    expect(out.toSorted()).toEqual(lines.toSorted())
    expect(err.toSorted()).toEqual(ranks.map((rank) => `[${rank}] error output of ${rank}`))
  })

  test('starts again after failures, and says how often', async () => {
    const { code, out, err } = await run([...options(2), '--restarts', '4', PROGRAM, 'restarts'])
    expect(code).toBe(0)
    expect(out.toSorted()).toEqual([0, 1].flatMap((rank) => [0, 1, 2].map((start) => `[${rank}] start ${start}`)))
    expect(err.filter((line) => line.startsWith('tensorfx run'))).toEqual([1, 2].map((n) => `tensorfx run: ended with code 5; restart ${n} of 4`))
  })

  test('ends with the code of the failure when there are no restarts left', async () => {
    const { code, out } = await run([...options(2), '--restarts=1', PROGRAM, 'restarts'])
    expect(code).toBe(5)
    expect(out.filter((line) => line.includes('start'))).toHaveLength(4)
  })

  test('a program may go on after its module has run, and may set an exit code', async () => {
    expect(await run([...options(2), PROGRAM, 'later'])).toMatchObject({ code: 0, err: [] })
    const { code, err } = await run([...options(2), PROGRAM, 'exitCode'])
    expect(code).toBe(9)
    expect(err[0]).toBe('[1] rank 1 of 2: ended with exit code 9')
  })

  test('an error before the ranks join is theirs too', async () => {
    const { code, err } = await run([...options(2), PROGRAM, 'missing'])
    expect(code).toBe(1)
    expect(err[0]).toMatch(/^\[\d\] rank \d of 2: Error: Cannot find module .*no-such-module\.mjs/)
  })

  test('a signal goes to the ranks, which may end as they like', async () => {
    const end = await signalled(world, 'waits', 'SIGTERM')
    // Threads hear of no signals: the process ends.
    if (world === 'threads') expect(end.code).toBe(143)
    else {
      expect(end.out.toSorted()).toEqual(['[0] saved', '[1] saved'])
      expect(end.code).toBe(0)
    }
  })

  test('an interrupt ends all ranks, and the code says so', async () => {
    const { code, err } = await signalled(world, 'naps', 'SIGINT')
    expect(code).toBe(130)
    expect(err).toEqual([])
  })

  test('without the launcher the ranks end', async () => {
    await signalled(world, 'naps', 'SIGKILL')
    for (let i = 0; i < 50 && running() !== ''; i++) await sleep(200)
    expect(running()).toBe('')
  })
})

/** Processes of a program that waits. */
function running(): string {
  try {
    return execFileSync('pgrep', ['-af', `${folder}/naps`], { encoding: 'utf8' })
  } catch {
    return ''
  }
}

let started = 0

/** Runs a program on two ranks, and sends the launcher a signal when both wait. */
async function signalled(world: string, way: string, signal: NodeJS.Signals): Promise<End> {
  const mark = join(folder, `${way}${started++}`)
  const child = spawn(process.execPath, [bundledCommand, 'run', '-n', '2', '--backend', world, PROGRAM, way, mark], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk) => (out += String(chunk)))
  child.stderr.on('data', (chunk) => (err += String(chunk)))
  const ended = new Promise<number>((resolve) => void child.on('close', (code) => resolve(code ?? -1)))
  for (let i = 0; i < 300 && readdirSync(folder).filter((name) => join(folder, name).startsWith(mark)).length < 2; i++) await sleep(100)
  child.kill(signal)
  return { code: await ended, out: linesOf(out), err: linesOf(err) }
}

test('what cannot work is refused with the help, before anything starts', async () => {
  const text = async (...words: readonly string[]): Promise<string> => {
    const result = await runTensorfx(['run', ...words], { print: () => {}, note: () => {} })
    expect(result.code).toBe(2)
    expect(result.text).toContain('usage: tensorfx run -n N [options] FILE.mjs')
    return result.text.split('\n')[0] ?? ''
  }
  expect(await text('-n', '2')).toBe('tensorfx run: the program is missing: name its file.')
  expect(await text(PROGRAM)).toBe('tensorfx run: -n is missing: the number of ranks.')
  expect(await text('-n', '0', PROGRAM)).toBe("tensorfx run: -n needs a whole number of at least 1, got '0'.")
  expect(await text('-n', '2.5', PROGRAM)).toBe("tensorfx run: -n needs a whole number of at least 1, got '2.5'.")
  expect(await text('-n')).toBe('tensorfx run: -n needs a value.')
  expect(await text('-n', '2', '--restarts', 'x', PROGRAM)).toBe("tensorfx run: --restarts needs a whole number of at least 0, got 'x'.")
  expect(await text('-n', '2', '--backend', 'nccl', PROGRAM)).toBe("tensorfx run: --backend is mpi or threads, got 'nccl'.")
  expect(await text('-n', '2', '--backends=mpi', PROGRAM)).toBe("tensorfx run: unknown option '--backends'. Did you mean '--backend'?")
  expect(await text('-np', '2', PROGRAM)).toMatch(/^tensorfx run: unknown option '-np'\./)
  expect(await text('-n', '2', 'nowhere.mjs')).toBe('tensorfx run: there is no file nowhere.mjs.')
})

test('without MPI threads are the default, and --backend mpi says what is missing', async () => {
  const env = { TENSORFX_MPIRUN: 'no-such-launcher' }
  const { out } = await run(['-n', '2', PROGRAM, 'sums'], env)
  expect(out).toContain('[1] threads 1 of 2: 3 ')
  const { code, out: help } = await run(['-n', '2', '--backend', 'mpi', PROGRAM, 'sums'], env)
  expect(code).toBe(2)
  expect(help[0]).toMatch(/^tensorfx run: --backend mpi does not work here: mpirun is not there .*--backend threads needs neither\.$/)
})

test('what mpirun itself says is shown where no rank has failed', async () => {
  // A launcher that knows its version and starts nothing.
  const launcher = join(folder, 'launcher')
  writeFileSync(launcher, '#!/bin/sh\ncase "$1" in --version) echo "Open MPI";; *) echo "no slots" >&2; exit 3;; esac\n', { mode: 0o755 })
  const { code, err } = await run(['-n', '2', '--backend', 'mpi', PROGRAM, 'sums'], { TENSORFX_MPIRUN: launcher })
  expect([code, err]).toEqual([3, ['no slots']])
})
