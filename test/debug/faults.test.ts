// The debugger is judged: planted faults must be found, minimal and at the right node, and right backends must not be blamed. This is the part of `npm run test:faults` that one
// process can do: what ends a process needs one of its own. TENSORFX_FAULTS=400 draws more.
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { config, registerBackend, reset } from 'tensorfx/compile'
import type { Backend } from 'tensorfx/compile'
import { MemoryFileStore, fileStore, setFileStore, setLogSink } from 'tensorfx/debug'
import { alarmOf, drawRight, fuzzedAlarm } from '../../scripts/faults/alarms.mjs'
import { faultyBackend } from '../../scripts/faults/faulty.mjs'
import { givenBackend } from '../../scripts/faults/given.mjs'
import { judgeFault } from '../../scripts/faults/judge.mjs'
import type { Ended, Runner } from '../../scripts/faults/judge.mjs'
import { runProgram } from '../../scripts/faults/models.mjs'
import { DEATHS, drawFault } from '../../scripts/faults/plan.mjs'
import type { DrawnFault } from '../../scripts/faults/plan.mjs'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { api as fuzz } from '../fuzz/api.ts'
import { listen, pathOf, resetConfig, runHere, textOf } from './inProcess.ts'
import { api } from './faultApi.ts'
import { tenth } from '../helpers/rotation.ts'

/** What is wrong with the debugger. */
const mutant = vi.hoisted(() => ({ verdict: '', sameValues: '', skipsCopies: false, cutsNothing: false }))

vi.mock('../../src/debug/judge/twoModels.ts', async (original) => {
  const real = await original<typeof import('../../src/debug/judge/twoModels.ts')>()
  const compareTwoModels: typeof real.compareTwoModels = (...args) => {
    const verdict = real.compareTwoModels(...args)
    if (mutant.verdict === 'same') return { ...verdict, status: 'same', reasons: [], kinds: [] }
    return mutant.verdict === 'different' ? { ...verdict, status: 'different', reasons: ['mutant'] } : verdict
  }
  return { ...real, compareTwoModels }
})
vi.mock('../../src/debug/closeness/same.ts', async (original) => {
  const real = await original<typeof import('../../src/debug/closeness/same.ts')>()
  const judgedSame: typeof real.judgedSame = (...args) => (mutant.sameValues === '' ? real.judgedSame(...args) : mutant.sameValues === 'always')
  return { ...real, judgedSame }
})
vi.mock('../../src/debug/runs/isolated.ts', async (original) => {
  const real = await original<typeof import('../../src/debug/runs/isolated.ts')>()
  const isolated: typeof real.isolated = (model, inputs) => (mutant.skipsCopies ? { model, inputs: [...inputs] } : real.isolated(model, inputs))
  return { ...real, isolated }
})
vi.mock('../../src/debug/minify/subgraph.ts', async (original) => {
  const real = await original<typeof import('../../src/debug/minify/subgraph.ts')>()
  const keepOnly: typeof real.keepOnly = (...args) => (mutant.cutsNothing ? null : real.keepOnly(...args))
  return { ...real, keepOnly }
})

/** The backend that programs and scripts call `suspect`. */
let suspect: Backend | null = null
const registered: Backend = (gm, inputs) => {
  if (suspect === null) throw new Error('no fault is planted')
  return suspect(gm, inputs)
}

/** The operators that the backend 'given' got. */
let told: string[] = []

const nodeStore = fileStore()
let store = new MemoryFileStore()
// Scripts import the module of their backend. This one is registered already.
beforeAll(() => {
  registerBackend('suspect', registered, { module: 'data:text/javascript,', tags: ['debug'] })
  registerBackend('given', (gm, inputs) => givenBackend((operator) => told.push(operator))(gm, inputs), { tags: ['debug'] })
})
beforeEach(() => void Object.assign(mutant, { verdict: '', sameValues: '', skipsCopies: false, cutsNothing: false }))
afterAll(() => {
  setFileStore(nodeStore)
  setLogSink(null)
})

const files = (name: string): string[] => [...store.files.keys()].filter((path) => path.endsWith(`/${name}`))

/** Runs a drawn fault in this process, with files in memory. */
function runnerOf({ program, fault }: DrawnFault, place: string, level: number): Runner {
  suspect = faultyBackend(api, fault)
  const ran = async (path: string, words: readonly string[]): Promise<Ended> => {
    const { error, output, exitCode } = await runHere(store, path, words)
    return { how: `exit ${error === null ? (exitCode ?? 0) : 1}`, output: error === null ? output : `${output}\n${String(error)}` }
  }
  return {
    program() {
      store.files.clear()
      const said = listen()
      const text = (): string => said.map(([, message]) => message).join('\n')
      Object.assign(config, { reproAfter: place, reproLevel: level, debugDirRoot: '/dumps' })
      try {
        runProgram(api, program, 'suspect')
        return Promise.resolve({ how: 'exit 0', output: text() })
      } catch (error) {
        return Promise.resolve({ how: 'exit 1', output: `${text()}\n${String(error)}` })
      } finally {
        setLogSink(null)
        resetConfig()
        reset()
      }
    },
    launcher: () => files('minifier_launcher.mjs').at(-1) ?? null,
    script: (path, words) => ran(path, path.endsWith('minifier_launcher.mjs') ? [...words, '--no-isolate'] : words),
    repro: () => (files('repro.mjs').length === 0 ? null : { path: pathOf(store, 'repro.mjs'), text: textOf(store, pathOf(store, 'repro.mjs')) }),
    async given(path) {
      told = []
      await ran(path, ['--backend', 'given'])
      return told
    },
    elsewhere(path) {
      const folder = path.slice(0, path.lastIndexOf('/'))
      // With the files below its folder, all that the copy finds beside it.
      for (const [name, content] of [...store.files])
        if (name.startsWith(`${folder}/`)) store.write(`/elsewhere${name.slice(folder.length)}`, content)
      return `/elsewhere/repro.mjs`
    },
  }
}

/** What is wrong with the debugger's answer to a drawn fault; null if nothing is. */
async function problemOf(drawn: DrawnFault, place: string, level: number): Promise<string | null> {
  store = new MemoryFileStore()
  setFileStore(store)
  // Faults that come and go do so alike in every run of this test.
  const random = randomFrom(drawn.seed)
  const spy = vi.spyOn(Math, 'random').mockImplementation(() => random.next())
  try {
    return await judgeFault(drawn, level, runnerOf(drawn, place, level))
  } finally {
    spy.mockRestore()
    suspect = null
    setFileStore(nodeStore)
  }
}

/** The first `count` faults from a seed on that one process can judge. */
function drawnFrom(first: number, count: number): DrawnFault[] {
  const found: DrawnFault[] = []
  for (let seed = first; found.length < count; seed++) {
    const drawn = drawFault(api, seed)
    if (drawn !== null && !DEATHS.includes(drawn.fault.kind)) found.push(drawn)
  }
  return found
}

const textOfFault = ({ seed, program, fault }: DrawnFault): string =>
  `${seed}: ${JSON.stringify(fault)} in ${program.model}, ${program.mode}, ${program.dtype}`

/** One of the places and levels that can see a fault. */
const placeOf = ({ seed, seen }: DrawnFault): DrawnFault['seen'][number] => randomFrom(seed).pick(seen)

const count = Number(process.env['TENSORFX_FAULTS'] ?? 12)

describe('a planted fault is caught, minimal, at the right node, and passes on eager', () => {
  const faults = tenth(drawnFrom(1, count), ({ seed }) => String(seed)).map((drawn) => [placeOf(drawn).join(' '), textOfFault(drawn), drawn] as const)

  it.each(faults)('after %s, %s', async (_at, _text, drawn) => {
    const [place, level] = placeOf(drawn)
    expect(await problemOf(drawn, place, level)).toBeNull()
  })
})

describe('nothing is said against a backend that is right', () => {
  const seeds = (first: number, length: number): readonly number[] =>
    tenth(
      Array.from({ length }, (_, i) => first + i),
      String,
    )

  it.each(seeds(1, 2 * count))('and rounds otherwise, on the model of seed %d', (seed) => expect(alarmOf(api, drawRight(seed)) ?? '').toBe(''))
  it.each(seeds(1, 4 * count))('and rounds otherwise, on the random program of seed %d', (seed) =>
    expect(fuzzedAlarm(api, fuzz, seed) ?? '').toBe(''),
  )
})

describe('a debugger that errs is found', () => {
  const drawn: DrawnFault = {
    seed: 1,
    program: { model: 'mlp', mode: 'eval', dtype: 'float32', seed: 1 },
    fault: { operator: 'torch.tanh', name: 'tanh', kind: 'factor', dtype: 'float32' },
    seen: [['aot', 4]],
  }
  const problem = (): Promise<string | null> => problemOf(drawn, 'aot', 4)
  /** Whether it says something against any of some right backends. */
  const alarms = (): boolean => [1, 2, 3, 4, 5, 6, 21].some((seed) => alarmOf(api, drawRight(seed)) !== null)

  it('not at all, if nothing is wrong with it', async () => {
    expect([await problem(), alarms()]).toEqual([null, false])
  })

  it('if it finds all numbers right', async () => {
    mutant.sameValues = 'always'
    expect(await problem()).toMatch(/^missed/)
  })

  it('if it finds all numbers wrong', () => {
    mutant.sameValues = 'never'
    expect(alarms()).toBe(true)
  })

  it.each(['same', 'different'])('if its minifier finds all candidates %s', async (verdict) => {
    mutant.verdict = verdict
    expect(await problem()).toMatch(/^no repro: the launcher/)
  })

  it('if its minifier cuts nothing away', async () => {
    mutant.cutsNothing = true
    expect(await problem()).toMatch(/^not minimal/)
  })

  it('if it judges calls on the tensors of the program', () => {
    mutant.skipsCopies = true
    expect(alarms()).toBe(true)
  })
})
