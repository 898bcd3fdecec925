// Candidates take turns: seven rounds, in each of which every candidate runs for some milliseconds, so that a busy machine slows all of them.
const ROUNDS = 7
/** Seconds of a turn. */
const TURN = 0.02
/** Seconds that are timed as one at least, where the clock is exact enough. A turn counts with its fastest batch: in others, other processes may have run. */
const BATCH = 0.0005
/** Seconds before the rounds: engines optimise code that has run for a while. */
const WARM_UP = 0.5

const pause = () => new Promise((resolve) => setImmediate(resolve))
const now = () => performance.now() / 1000

/** Makes a candidate of a function, which may return a promise: `seconds(times)` runs it that often. */
export const inProcess = (run) => ({
  async seconds(times) {
    const start = now()
    for (let i = 0; i < times; i++) {
      const result = run()
      if (result instanceof Promise) await result
    }
    return now() - start
  },
})

/** Calls `batch` until that many seconds are over, and returns its smallest result. */
async function fastest(seconds, batch) {
  const until = now() + seconds
  let best = Infinity
  do {
    best = Math.min(best, await batch())
    await pause()
  } while (now() < until)
  return best
}

/** The times of a run of each candidate in milliseconds: the fastest round, and the first quartile of the rounds. */
export async function inTurns(candidates) {
  const batches = []
  for (const candidate of candidates) batches.push(Math.max(1, Math.ceil(BATCH / (await fastest(WARM_UP, () => candidate.seconds(1))))))
  const times = candidates.map(() => [])
  for (let round = 0; round < ROUNDS; round++)
    for (let turn = 0; turn < candidates.length; turn++) {
      const i = (turn + round) % candidates.length
      const runs = batches[i]
      // The caches still hold what the last candidate used.
      await candidates[i].seconds(1)
      times[i].push((1000 * (await fastest(TURN, () => candidates[i].seconds(runs)))) / runs)
    }
  return times.map((values) => {
    const sorted = values.toSorted((a, b) => a - b)
    return { best: sorted[0], quartile: sorted[ROUNDS >> 2] }
  })
}
