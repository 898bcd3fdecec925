// The protocol of the pool (src/kernels/threads/control.ts) in the orders of steps that a few threads can take with a few jobs. TENSORFX_FULL=1 follows every order for one worker.
import { describe, expect, test } from 'vitest'
import { isFull } from '../../helpers/rotation.ts'
import { explore, replaced, sides } from './interleavings.ts'
import type { ModelJob, Setting, Sides } from './interleavings.ts'

const two: ModelJob = { module: 1, part: 0, args: [100, 200], chunk: 2, extent: 3 }
const one: ModelJob = { module: 2, part: 1, args: [300], chunk: 1, extent: 1 }
const again: ModelJob = { module: 1, part: 1, args: [], chunk: 4, extent: 8 }

/** What is followed each day: orders in which a thread that could go on is interrupted once or twice. */
const SETTINGS: Readonly<Record<string, Setting>> = {
  'one worker and two jobs': { workers: 1, jobs: [two, one], preemptions: 2 },
  'a caller that fails in its chunk': { workers: 1, jobs: [{ ...two, fails: true }, one], preemptions: 2 },
  'a worker that dies': { workers: 1, jobs: [two, one], deaths: 1, preemptions: 1 },
  'a worker that is given up and goes on': { workers: 1, jobs: [two, one], giveUps: 1, preemptions: 1 },
  'two workers': { workers: 2, jobs: [two, one], preemptions: 1 },
}

/** What TENSORFX_FULL=1 follows too: every order for one worker, and more interruptions for several. */
const MORE: Readonly<Record<string, Setting>> = {
  'one worker and two jobs, in every order': { workers: 1, jobs: [two, one] },
  'one worker and three jobs, in every order': { workers: 1, jobs: [two, one, again] },
  'a caller that fails in its chunk, in every order': { workers: 1, jobs: [{ ...two, fails: true }, one] },
  'a worker that dies, in every order': { workers: 1, jobs: [two, one], deaths: 1 },
  'a worker that is given up and goes on, in every order': { workers: 1, jobs: [two, one], giveUps: 1 },
  'two workers, interrupted three times': { workers: 2, jobs: [two, one], preemptions: 3 },
  'two workers and three jobs, interrupted twice': { workers: 2, jobs: [two, one, again], preemptions: 2 },
  'two workers of which one dies, interrupted twice': { workers: 2, jobs: [two, one], deaths: 1, preemptions: 2 },
  'two workers that are given up and go on, interrupted twice': { workers: 2, jobs: [two, one], giveUps: 1, preemptions: 2 },
  'three workers, interrupted twice': { workers: 3, jobs: [two, again], preemptions: 2 },
}

describe('each chunk is run once, by a thread that has read its job as it is, and has ended before the job does; nobody sleeps through the bell:', () => {
  test.each(Object.entries({ ...SETTINGS, ...(isFull ? MORE : {}) }))('%s', { timeout: 1_800_000 }, (_, setting) => {
    const { problem, order, states } = explore(sides(), setting)
    expect({ problem, order }).toEqual({ problem: null, order: [] })
    // Whatever the code is, there is more than one order.
    expect(states).toBeGreaterThan(500)
  })
})

/** What must not be in the protocol: passages of the worker or of the caller, and the setting that shows it. */
interface Mutant {
  readonly side: keyof Sides
  readonly changes: readonly (readonly [from: string, to: string])[]
  readonly setting?: Partial<Setting>
  readonly problem: RegExp
}

const MUTANTS: Readonly<Record<string, Mutant>> = {
  'reads who sleeps before it rings the bell': {
    side: 'caller',
    changes: [
      ['Atomics.add(words, WORD.bell, 1)', 'const asleep = Atomics.load(words, WORD.sleepers); Atomics.add(words, WORD.bell, 1)'],
      ['if (Atomics.load(words, WORD.sleepers) > 0)', 'if (asleep > 0)'],
    ],
    problem: /sleeps and has not heard the last bell/,
  },
  'says that it sleeps after it has slept': {
    side: 'worker',
    changes: [
      ['Atomics.add(words, 48, 1)', ''],
      ['Atomics.wait(words, 0, heard)', 'Atomics.wait(words, 0, heard); Atomics.add(words, 48, 1)'],
    ],
    problem: /sleeps and has not heard the last bell/,
  },
  'believes a job that was written while it read': {
    side: 'worker',
    changes: [['if (word >>> 12 !== wanted || (word & 4095) === 4095) return false', '']],
    setting: { preemptions: Infinity },
    problem: /runs kernel/,
  },
  'takes a chunk without a compare-exchange': {
    side: 'worker',
    changes: [['if (Atomics.compareExchange(words, 16, word, word + 1) !== word) continue', 'Atomics.store(words, 16, word + 1)']],
    problem: /runs kernel|was run|sleeps for ever/,
  },
  'closes a job and looks before that what was taken': {
    side: 'caller',
    changes: [
      [
        'Atomics.exchange(words, WORD.next, (generation << 12) | CLOSED) & CLOSED',
        'Atomics.load(words, WORD.next) & CLOSED; Atomics.store(words, WORD.next, (generation << 12) | CLOSED)',
      ],
    ],
    setting: { jobs: [{ ...two, fails: true }, one] },
    problem: /has ended while chunk/,
  },
  'does not wait for chunks that workers have begun': {
    side: 'caller',
    changes: [['if (done === finished) break', 'break']],
    problem: /is said to be finished/,
  },
  'counts a chunk for a job that is not its own': {
    side: 'worker',
    changes: [['if (done >>> 12 !== generation || ', 'if (']],
    setting: { giveUps: 1 },
    problem: /sleeps for ever|is said to be finished|has ended/,
  },
  'looks whether the caller waits before it counts its chunk': {
    side: 'worker',
    changes: [
      ['for (;;) {\n        const done', 'const waits = Atomics.load(words, 64)\n      for (;;) {\n        const done'],
      ['if (Atomics.load(words, 64) !== 0)', 'if (waits !== 0)'],
    ],
    problem: /the caller sleeps for ever/,
  },
  'gives all jobs one generation': {
    side: 'caller',
    changes: [['const { now } = waiting', 'const { now } = waiting; generation = 1']],
    problem: /runs kernel/,
  },
}

describe('a side is found out that', () => {
  test.each(Object.entries(MUTANTS))('%s', (_, { side, changes, setting, problem }) => {
    const whole = sides()
    const code = changes.reduce((text, [from, to]) => replaced(text, from, to), whole[side])
    expect(explore({ ...whole, [side]: code }, { workers: 1, jobs: [two, one], preemptions: 3, ...setting }).problem).toMatch(problem)
  })
})
