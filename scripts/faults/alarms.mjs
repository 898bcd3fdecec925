// Runs programs on right backends under level 4: the debugger must say nothing, and write nothing.
import { generate } from '../fuzz/generate.mjs'
import { passingKinds } from '../fuzz/fuzz.mjs'
import { randomFrom } from '../fuzz/random.mjs'
import { runProgram as runFuzzed } from '../fuzz/run.mjs'
import { textOf } from '../fuzz/program.mjs'
import { MODELS, MODES, runProgram, takesNaN } from './models.mjs'
import { REGISTERED, VARIANT_NAMES, rightBackend } from './right.mjs'

/** A right backend: the name of a registered one, or the variants of one. */
function drawBackend(random) {
  const names = VARIANT_NAMES.filter(() => random.chance(0.4))
  if (random.chance(0.2)) return random.pick(REGISTERED)
  return names.length === 0 ? [random.pick(VARIANT_NAMES)] : names
}

const backendOf = (api, backend) => (typeof backend === 'string' ? backend : rightBackend(api, backend))

/** A right backend and a program for it, drawn with this seed. */
export function drawRight(seed) {
  const random = randomFrom(seed)
  const backend = drawBackend(random)
  const program = {
    model: random.pick(Object.keys(MODELS)),
    mode: random.pick(MODES),
    dtype: random.pick(['float32', 'float32', 'float64', 'float16']),
    seed: random.int(1000),
    calls: 2,
  }
  if (takesNaN(program) && random.chance(0.3)) program.nan = true
  return { seed, backend, program, after: random.pick(['dynamo', 'aot']) }
}

/** What the debugger did though the backend is right; null if it did nothing. */
export function alarmOf(api, { backend, program, after }) {
  return watched(api, after, () => runProgram(api, program, backendOf(api, backend)))
}

/** The same for a random program of the fuzzer; `fuzz` has its names. Errors of the program's own are none of the debugger's. */
export function fuzzedAlarm(api, fuzz, seed) {
  const random = randomFrom(seed)
  const backend = drawBackend(random)
  const after = random.pick(['dynamo', 'aot'])
  const program = generate(fuzz, seed, passingKinds('compile'))
  let found = []
  const said = watched(api, after, () => {
    const { notes } = runFuzzed(fuzz, program, { wrap: (f) => fuzz.compile(f, { backend: backendOf(api, backend) }) })
    found = notes.filter(({ value }) => value.error === 'AccuracyError').map(({ value }) => value.message)
  })
  if (found.length === 0 && !/accura/i.test(said ?? '')) return null
  return [`seed ${seed}, after ${after}, on ${backend}`, textOf(program), ...found, said].join('\n')
}

/** Runs something at level 4, with files in memory. */
export function watched({ config, debug, reset }, after, run) {
  const store = new debug.MemoryFileStore()
  const said = []
  const [usual, files] = [{ ...config }, debug.fileStore()]
  let thrown = null
  debug.setFileStore(store)
  debug.setLogSink((level, message) => void said.push(`${level}: ${message}`))
  Object.assign(config, { reproAfter: after, reproLevel: 4 })
  try {
    run()
  } catch (error) {
    thrown = error
  } finally {
    Object.assign(config, usual)
    debug.setFileStore(files)
    debug.setLogSink(null)
    reset()
  }
  if (thrown === null && store.files.size === 0 && said.length === 0) return null
  const reason = thrown === null ? '' : `${thrown.name}: ${thrown.message}${thrown.cause === undefined ? '' : `\n${String(thrown.cause)}`}`
  return [reason, ...said, ...[...store.files.keys()].slice(0, 3)].join('\n')
}
