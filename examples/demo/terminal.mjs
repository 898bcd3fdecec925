// What the demo prints with: headings, and progress bars on a terminal (plain lines elsewhere).
import cliProgress from 'cli-progress'

const terminal = process.stdout.isTTY === true

/** @param {string} title */
export const heading = (title) => console.log(`\n${'='.repeat(78)}\n${title}\n${'='.repeat(78)}`)

/** @param {string} text @param {number} lines */
export function printBlock(text, lines = 60) {
  const all = text.split('\n')
  for (const line of all.slice(0, lines)) console.log(`  ${line}`)
  if (all.length > lines) console.log(`  … ${all.length - lines} more lines`)
}

/**
 * A progress bar; `update` takes the step and a text shown at its end.
 * @param {string} name @param {number} total
 */
export function progress(name, total) {
  if (!terminal) {
    let next = 0
    return {
      update(step, text) {
        if (step < next && step < total) return
        next = step + total / 5
        console.log(`  ${name}: ${step}/${total} ${text}`)
      },
      stop() {},
    }
  }
  const bar = new cliProgress.SingleBar({ format: `  ${name} [{bar}] {value}/{total} {text}`, hideCursor: true }, cliProgress.Presets.legacy)
  bar.start(total, 0, { text: '' })
  return { update: (step, text) => bar.update(step, { text }), stop: () => bar.stop() }
}

/** @param {number[]} values */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]
}

/** @param {number[]} values */
export const fastest = (values) => Math.min(...values)

/**
 * Times functions side by side: interleaved rounds, so that noise hits all of them alike. Returns milliseconds: the median, unless told otherwise.
 * @param {(() => unknown)[]} functions @param {number} rounds @param {(values: number[]) => number} summary
 */
export function sideBySide(functions, rounds, summary = median) {
  const times = functions.map(() => [])
  for (let round = 0; round < rounds + 3; round++) {
    functions.forEach((fn, i) => {
      const start = performance.now()
      fn()
      if (round >= 3) times[i].push(performance.now() - start)
    })
  }
  return times.map((values) => summary(values))
}

/**
 * The same with a turn of the event loop between rounds, as in a program that waits for input: what a synchronous loop leaves to later turns
 * (memory that comes back) is then done outside of the timing.
 * @param {(() => unknown)[]} functions @param {number} rounds
 */
export async function sideBySideInTurns(functions, rounds) {
  const times = functions.map(() => [])
  for (let round = 0; round < rounds + 3; round++) {
    for (const [i, fn] of functions.entries()) {
      await new Promise((resolve) => setTimeout(resolve, 0))
      const start = performance.now()
      fn()
      if (round >= 3) times[i].push(performance.now() - start)
    }
  }
  return times.map(median)
}
