// The soak: programs run again and again under a memory limit while allocations fail, hooks throw and workers are killed. Every program also runs without failures: both must give the
// same numbers, bit for bit, and memory must not grow.
import { randomFrom } from '../fuzz/random.mjs'
import { programs } from './programs.mjs'

const MIB = 2 ** 20

/** Takes memory until less than `room` bytes are left. */
function fill({ torch, kernels, config }, room) {
  const ballast = []
  // What is dead would be found later, and leave more room.
  torch.memory.emptyCache()
  for (;;) {
    const free = config.memoryLimit - torch.memory.memoryAllocated() - room
    if (free < 4096) return ballast
    try {
      ballast.push(torch.empty([Math.floor(Math.min(free, 64 * MIB) / 4)]))
    } catch (error) {
      if (!(error instanceof kernels.OutOfMemoryError)) throw error
      return ballast
    }
  }
}

const isExpected = ({ kernels }, error) => {
  let inner = error
  while (inner instanceof Error && inner.cause !== undefined) inner = inner.cause
  return inner instanceof kernels.OutOfMemoryError || (inner instanceof RangeError && inner.message === 'a hook that throws')
}

/** Runs work that fails at first, up to three times: at its n-th allocation, or because there is no memory. */
function failingAttempt(api, random, figures) {
  let hooks = false
  const attempt = (what, run, isDone = () => false) => {
    for (let left = random.int(4); ; left--) {
      const how = left <= 0 ? 'none' : random.pick(['allocation', 'allocation', 'limit', 'hook'])
      hooks = how === 'hook'
      const ballast = how === 'limit' ? fill(api, random.pick([0, 2 ** 12, 2 ** 16, MIB, 8 * MIB])) : []
      try {
        if (how !== 'allocation') return run()
        const { outcome } = api.kernels.withFailingAllocation(random.pick([1, 2, 3, 4, 6, 10, 15, 25, 40]), run)
        if ('returned' in outcome) return outcome.returned
        throw outcome.threw
      } catch (error) {
        if (!isExpected(api, error)) throw error
        figures.failures[what] = (figures.failures[what] ?? 0) + 1
        if (how === 'none') throw new Error(`${what}: failed without a reason`, { cause: error })
      } finally {
        hooks = false
        for (const tensor of ballast) tensor.dispose()
      }
      if (isDone()) return undefined
    }
  }
  return Object.assign(attempt, { fails: () => hooks })
}

const plainAttempt = Object.assign((_what, run) => run(), { fails: () => false })

/** One program with failures, compared with itself without. Throws an Error with the seed if a number is another. */
export function soakProgram(api, seed, figures) {
  const random = randomFrom(seed)
  const name = random.pick(Object.keys(programs))
  const run = (attempt) => JSON.stringify(programs[name](api, randomFrom(7 * seed + 1), attempt), (_, value) => (Object.is(value, -0) ? '-0' : value))
  const expected = run(plainAttempt)
  let actual
  try {
    actual = run(failingAttempt(api, random, figures))
  } catch (error) {
    throw new Error(`soak, seed ${seed} (${name}): ${error.message}`, { cause: error })
  }
  if (actual !== expected) throw new Error(`soak, seed ${seed} (${name}): other numbers with failures than without`)
  figures.programs[name] = (figures.programs[name] ?? 0) + 1
  api.reset()
}

/** Bytes in use once everything that is dead was found. */
export async function settledBytes(api) {
  let least = Infinity
  for (let i = 0; i < 4; i++) {
    await new Promise((resolve) => setTimeout(resolve))
    api.torch.memory.emptyCache()
    least = Math.min(least, api.torch.memory.memoryAllocated())
  }
  return least
}

/**
 * Runs programs with the seeds from `seed` on while `goesOn` says so. `worker` runs one and may kill it. Returns figures: programs, failures, bytes in use and the process's memory after
 * each `every` programs.
 */
export async function soak(api, { seed, goesOn, every = 10, worker = null, onSample = () => {} }) {
  const figures = { programs: {}, failures: {}, workers: { finished: 0, killed: 0 }, samples: [] }
  for (let count = 0; goesOn(count); count++) {
    soakProgram(api, seed + count, figures)
    if (worker !== null && count % 5 === 0) figures.workers[await worker(api, seed + count)]++
    if (count % every === every - 1) {
      const { counts, reserved } = api.torch.memory.stats()
      const sample = { count: count + 1, bytes: await settledBytes(api), reserved, rss: api.rss(), failures: counts.outOfMemory }
      figures.samples.push(sample)
      onSample(sample, figures)
    }
  }
  return figures
}

/** What is wrong with the samples: memory that grows. An empty text if nothing is. */
export function growth(samples, allowedBytes, allowedRss) {
  const from = Math.ceil(samples.length / 3)
  const middle = samples.slice(from, Math.ceil((2 * samples.length) / 3))
  const end = samples.slice(Math.ceil((2 * samples.length) / 3))
  if (middle.length === 0 || end.length === 0) return ''
  const least = (list, key) => Math.min(...list.map((sample) => sample[key]))
  const bytes = least(end, 'bytes') - least(middle, 'bytes')
  const rss = least(end, 'rss') - least(middle, 'rss')
  if (bytes > allowedBytes) return `${bytes} more bytes are in use in the last third than in the second`
  return rss > allowedRss ? `the process has ${rss} more bytes in the last third than in the second` : ''
}
