// What fit shows: a bar while an epoch runs, and a line for each epoch.
import { isFunction } from '../protocol/index.ts'
import { timeText } from '../protocol/timeText.ts'
import { ProgressDisplay, progressOf } from '../protocol/progressDisplay.ts'
import type { EpochReport } from './fitOptions.ts'
import { shortNumber } from './shortNumber.ts'

const MINUTE = 60_000

export class FitLog {
  readonly #display: ProgressDisplay | null
  readonly #write: ((line: string) => void) | null
  readonly #epochs: number
  readonly #seen = new Set<string>()
  #began = performance.now()
  #epoch = 0

  constructor(log: boolean | ((line: string) => void), epochs: number) {
    const stream = globalThis.process?.stderr
    this.#display = log === true && stream !== undefined ? progressOf(stream, globalThis.process.env, MINUTE) : null
    this.#write = isFunction(log) ? log : null
    this.#epochs = epochs
  }

  #note(line: string): void {
    this.#write?.(line)
    this.#display?.note(line)
  }

  /** A batch is done. `seen`: samples of this epoch since it began or went on. */
  batch(epoch: number, done: number, total: number | null, loss: number, seen: number): void {
    if (this.#display === null) return
    if (epoch !== this.#epoch) [this.#epoch, this.#began] = [epoch, performance.now()]
    const passed = performance.now() - this.#began
    const left = total === null || done === 0 ? '' : `, ${timeText((passed / done) * (total - done))} left`
    const rate = passed === 0 ? '' : `, ${shortNumber((1000 * seen) / passed)} samples/s`
    this.#display.report({ task: `epoch ${epoch}/${this.#epochs}`, done, total, text: `loss ${shortNumber(loss)}${rate}${left}` })
  }

  epoch({ epoch, values }: EpochReport): void {
    const { seconds = 0, samplesPerSecond = 0, dataWait = 0, ...rest } = values
    const numbers = Object.entries(rest).map(([name, value]) => `${name} ${shortNumber(value)}`)
    const wait = dataWait >= 0.02 ? `, ${Math.round(100 * dataWait)}% of it waiting for data` : ''
    this.#note(
      `epoch ${epoch}/${this.#epochs}: ${numbers.join(', ')}; ${timeText(1000 * seconds)}, ${shortNumber(samplesPerSecond)} samples/s${wait}`,
    )
  }

  /** The live page is served. */
  page(url: string): void {
    this.#note(`the training is shown at ${url}`)
  }

  resumed(path: string, epoch: number, step: number): void {
    this.#note(`goes on from ${path}: epoch ${epoch + 1}, step ${step}`)
  }

  /** A compiled step ended a graph, for a reason that is told once. */
  graphBreak(reason: string): void {
    if (this.#seen.has(reason)) return
    this.#seen.add(reason)
    this.#note(
      `the compiled step has several graphs: ${reason}. explain(step)(batch) of 'tensorfx/compile' shows where; { compile: false } computes eagerly.`,
    )
  }

  end(): void {
    this.#display?.end()
  }
}
