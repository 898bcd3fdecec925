// Ways for a rank to die or to hang: the first line that a user reads names the rank and the cause, its stack follows, and the job ends with that rank's code. Others
// have a line each. Each way that a program can see is tried in one of the worlds, half of them each day; TENSORFX_DEATHS=all tries all of them in both.
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'
import { bundledCommand } from '../../scripts/bundled.mjs'
import { command, MPI_ENV, scenario, worlds } from './worlds.ts'
import { half } from '../helpers/rotation.ts'

const SCRIPT = scenario('deaths')

interface End {
  readonly code: number
  readonly lines: readonly string[]
}

function start(file: string, args: readonly string[]): Promise<End> {
  return new Promise((resolve) => {
    execFile(file, args, { timeout: 90_000, env: { ...process.env, ...MPI_ENV } }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1
      resolve({ code, lines: `${stdout}${stderr}`.split('\n').filter((line) => line !== '') })
    })
  })
}

/** Processes that still run the scenario this way. */
const left = (way: string): string => {
  try {
    return execFileSync('pgrep', ['-af', `deaths\\.mjs ${way}( |$)`], { encoding: 'utf8' })
  } catch {
    return ''
  }
}

/** What a user reads of each way: the first line, the exit code, and whether the program's own lines are in the stack. */
const WAYS: readonly (readonly [way: string, first: RegExp, code: number, hasStack: boolean])[] = [
  ['throws', /^rank 1 of 2: TypeError: the data of rank 1 is broken$/, 1, true],
  ['throwsLater', /^rank 1 of 2: Error: the timer of rank 1 threw$/, 1, true],
  ['rejects', /^rank 1 of 2: RangeError: rank 1 rejected a promise$/, 1, true],
  ['throwsText', /^rank 1 of 2: threw 'just a text'$/, 1, false],
  ['throwsInFinally', /^rank 1 of 2: Error: the step of rank 1 threw$/, 1, true],
  ['throwsObject', /^rank 1 of 2: threw \{ code: 7, why: 'an object' \}$/, 1, false],
  ['throwsUnreadable', /^rank 1 of 2: threw something that throws when it is read$/, 1, false],
  ['exits', /^rank 1 of 2: process\.exit\(7\), called at \S+ \(.*deaths\.mjs:\d+:\d+\)$/, 7, true],
  ['exitsQuietly', /^rank 0 of 2: DistributedError: barrier\(\), number 1 of group '0', cannot end, since rank 1 has left before it: /, 1, true],
  ['throwsInBackward', /^rank 1 of 2: Error: the hook of rank 1 threw$/, 1, true],
  ['ddpHook', /^rank 1 of 2: Error: the hook of rank 1 threw$/, 1, true],
  [
    'hangsOutside',
    /^rank 0 of 2: CollectiveTimeoutError: barrier\(\), number 1 of group '0', did not end within 2000 ms .* Rank 1 has not come/,
    1,
    true,
  ],
  [
    'hangsBeforeSending',
    /^rank 0 of 2: CollectiveTimeoutError: recv\(float32\[2\]\), a message of group '0', did not end within 2000 ms on rank 0\. Rank 1 has not sent a message with the tag 0\./,
    1,
    true,
  ],
  ['hangsInCollective', /^rank 1 of 2: CollectiveTimeoutError: allreduce\(sum, float32\[3\]\), number 1 .* Rank 0 has not come/, 1, true],
  ['neverSettles', /^rank 1 of 2: ended, since an await never settled$/, 13, false],
]

/** Ways of which the worlds see different things: ends that a program cannot see itself, and those of a rank that has not joined. */
const SILENT: Readonly<Record<'mpi' | 'threads', typeof WAYS>> = {
  mpi: [
    ['isKilled', /^rank 1 of 2: killed by signal SIGKILL\./, 137, false],
    ['isTerminated', /^rank 1 of 2: killed by signal SIGTERM\./, 143, false],
    ['takesAllMemory', /^rank 1 of 2: Reached heap limit .*out of memory \(signal SIGABRT\)$/, 134, false],
    [
      'leavesBeforeJoining',
      /^rank 0 of 2: DistributedError: initProcessGroup\(\) cannot end, since rank 1 has left before it: process\.exit\(0\), called at .*deaths\.mjs/,
      1,
      true,
    ],
    [
      'hangsBeforeJoining',
      /^rank 0 of 2: CollectiveTimeoutError: initProcessGroup\(\) did not end within 20000 ms on rank 0\. Rank 1 has not come to it\./,
      1,
      true,
    ],
  ],
  // A signal ends the process, and with it all threads.
  threads: [
    ['isKilled', /^ranks 0 to 1 of 2, threads of one process: killed by signal SIGKILL\./, 137, false],
    ['isTerminated', /^ranks 0 to 1 of 2, threads of one process: killed by signal SIGTERM\./, 143, false],
    ['takesAllMemory', /^rank 1 of 2: Error: Worker terminated due to reaching memory limit: JS heap out of memory$/, 1, false],
    [
      'leavesBeforeJoining',
      /^rank 0 of 2: DistributedError: barrier\(\), number 1 of group '0', cannot end, since rank 1 has left before it: its program has ended\.$/,
      1,
      true,
    ],
    ['hangsBeforeJoining', /^rank 0 of 2: CollectiveTimeoutError: barrier\(\), number 1 of group '0', .* Rank 1 has not come to it\./, 1, true],
  ],
}

const ALL = process.env['TENSORFX_DEATHS'] === 'all'

/** The ways that are tried in a world: those of SILENT, since what is seen of them differs, and its share of the others. */
const waysIn = (world: 'threads' | 'mpi'): typeof WAYS => [
  ...(ALL ? WAYS : half(WAYS).filter((_, i) => worlds[i % worlds.length] === world)),
  ...(ALL ? SILENT[world] : half(SILENT[world])),
]

describe.each(worlds)('tensorfx run on %s', (world) => {
  // Side by side: most of the time a rank waits for others to say their last words, or for a timeout.
  test.concurrent.each(waysIn(world))('%s', async (way, first, code, hasStack) => {
    const end = await start(process.execPath, ['--max-old-space-size=120', bundledCommand, 'run', '-n', '2', '--backend', world, SCRIPT, way])
    const lines = end.lines.map((line) => line.replace(/^\[\d\] /, ''))
    expect(lines[0]).toMatch(first)
    expect(end.code).toBe(code)
    expect(lines.filter((line) => first.test(line))).toHaveLength(1)
    expect(lines.some((line) => /^ +at .*deaths\.mjs:\d+/.test(line))).toBe(hasStack)
    // No rank says more than a line after the first.
    const beginnings = lines.slice(1).filter((line) => /^rank \d of 2: /.test(line))
    expect(beginnings.length).toBeLessThanOrEqual(1)
    expect(lines.join('\n')).not.toMatch(/MPI_ABORT|mpirun|-{20}/)
    expect(left(way)).toBe('')
  })
})

test.each(worlds)('%s without tensorfx run: the failing rank comes first, once, with its stack, and the others have a line', async (world) => {
  const [file, args] = command(world, 2, [SCRIPT, 'throws', world])
  const { code, lines } = await start(file, args)
  const ranks = lines.map((line) => line.replace(/^DistributedError: /, '')).filter((line) => /^rank \d of 2: /.test(line))
  expect(ranks[0]).toBe('rank 1 of 2: TypeError: the data of rank 1 is broken')
  // It may still be in the barrier at the start.
  expect(ranks[1]).toMatch(/^rank 0 of 2: DistributedError: barrier\(\), number 1 of group '[01]'.*rank 1/)
  expect(ranks).toHaveLength(2)
  expect(lines.some((line) => /^ +at .*deaths\.mjs:\d+/.test(line))).toBe(true)
  expect(code).toBe(1)
})

/** Runs the scenario on two ranks that `mpirun` starts by itself. */
function startAlone(way: string): Promise<End> {
  const [file, args] = command('mpi', 2, [SCRIPT, way, 'mpi'])
  return start(file, args)
}

test.runIf(worlds.includes('mpi'))('mpirun alone: a rank that ends before it joins is named', async () => {
  const { code, lines } = await startAlone('leavesBeforeJoining')
  expect(lines.find((line) => line.startsWith('DistributedError'))).toMatch(
    /initProcessGroup\(\) cannot end, since rank 1 has left before it: process\.exit\(0\), called at .*deaths\.mjs/,
  )
  expect(code).toBe(1)
})

test.runIf(worlds.includes('mpi'))('mpirun alone: processes and threads of a rank may end before it joins', async () => {
  expect(await startAlone('helpersEndBeforeJoining')).toEqual({ code: 0, lines: [] })
})

const BAD = 'const x = 1\nconst y = ;\n'
const BROKEN: readonly (readonly [what: string, files: Readonly<Record<string, string>>, cause: RegExp, place: RegExp, line: string])[] = [
  ['of the program', { 'program.mjs': BAD }, /Unexpected token ';'$/, /program\.mjs:2$/, 'const y = ;'],
  [
    'of a file that is imported by a file that the program imports',
    { 'program.mjs': "console.log('runs')\nimport './a.mjs'\n", 'a.mjs': "import './b.mjs'\n", 'b.mjs': BAD },
    /Unexpected token ';'$/,
    /b\.mjs:2$/,
    'const y = ;',
  ],
  [
    'of a required file',
    { 'program.mjs': "import './a.cjs'\n", 'a.cjs': "require('./b.cjs')\n", 'b.cjs': BAD },
    /Unexpected token ';'$/,
    /b\.cjs:2$/,
    'const y = ;',
  ],
  [
    'that is a name which a file does not export',
    { 'program.mjs': "import { nope } from './a.mjs'\n", 'a.mjs': 'export const yes = 1\n' },
    /does not provide an export named 'nope'$/,
    /program\.mjs:1$/,
    "import { nope } from './a.mjs'",
  ],
]

describe.each(worlds)('on %s a syntax error comes with its file and line', (world) => {
  test.concurrent.each(BROKEN)('%s', async (_what, files, cause, place, line) => {
    const folder = mkdtempSync(join(tmpdir(), 'tensorfx-syntax-'))
    try {
      for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
      const { code, lines } = await start(process.execPath, [bundledCommand, 'run', '-n', '2', '--backend', world, join(folder, 'program.mjs')])
      const texts = lines.map((text) => text.replace(/^\[\d\] /, ''))
      expect(texts[0]).toMatch(/^rank \d of 2: SyntaxError: /)
      expect(texts[0]).toMatch(cause)
      expect(texts[1]).toMatch(place)
      expect(texts[2]).toBe(line)
      expect(texts).not.toContain('runs')
      expect(code).toBe(1)
    } finally {
      removeFolder(folder)
    }
  })
})
