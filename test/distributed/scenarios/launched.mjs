// Programs for `tensorfx run`, by their first word.
import { existsSync, writeFileSync } from 'node:fs'
import { torch } from 'tensorfx'
import { allReduce, barrier, destroyProcessGroup, getBackend, getRank, getWorldSize, initProcessGroup, restartCount } from 'tensorfx/distributed'

const [, , way, ...words] = process.argv
const nap = (ms) => new Promise((done) => void setTimeout(done, ms))

const ways = {
  async sums() {
    await initProcessGroup()
    const x = torch.tensor([getRank() + 1])
    allReduce(x)
    console.log(`${getBackend()} ${getRank()} of ${getWorldSize()}: ${x.item()} ${words.join('|')}`)
    console.error(`error output of ${getRank()}`)
    process.stdout.write('no newline')
    destroyProcessGroup()
  },
  /** Fails until the program was started three times. */
  async restarts() {
    await initProcessGroup()
    console.log(`start ${restartCount()}`)
    barrier()
    if (restartCount() < 2 && getRank() === 1) process.exit(5)
    barrier()
  },
  /** A program that goes on after its module has run. */
  async later() {
    await initProcessGroup()
    setTimeout(() => console.log('later'), 50)
  },
  async exitCode() {
    await initProcessGroup()
    barrier()
    process.exitCode = getRank() === 1 ? 9 : 0
  },
  /** Waits for a signal, and ends in its own way. */
  async waits() {
    await initProcessGroup()
    process.on('SIGTERM', () => {
      console.log('saved')
      process.exit(0)
    })
    barrier()
    writeFileSync(`${words[0]}-${getRank()}`, '')
    await nap(60_000)
  },
  /** Waits and knows no signals. */
  async naps() {
    await initProcessGroup()
    barrier()
    writeFileSync(`${words[0]}-${getRank()}`, '')
    await nap(60_000)
  },
  async missing() {
    await import('./no-such-module.mjs')
  },
}

export const ready = (path, size) => Array.from({ length: size }, (_, rank) => existsSync(`${path}-${rank}`)).every(Boolean)

await ways[way]?.()
