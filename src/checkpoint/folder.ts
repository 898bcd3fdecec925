// A folder of checkpoints, numbered: which there are, which is the best, and which may go.
import { DRAFT } from '../interop/atomicFile.ts'

/** `checkpoint-00000012.safetensors` */
const NAME = /^checkpoint-(\d{8,})\.safetensors$/

/** The score of a checkpoint; null for one without. */
type ScoreOf = (path: string) => Promise<{ readonly score: number | null; readonly mode: 'min' | 'max' }>

type Fs = typeof import('node:fs')

export class CheckpointFiles {
  readonly #fs: Fs
  readonly #folder: string

  constructor(fs: Fs, folder: string) {
    this.#fs = fs
    this.#folder = folder
  }

  pathOf(number: number): string {
    return `${this.#folder}/checkpoint-${String(number).padStart(8, '0')}.safetensors`
  }

  /** The numbers of all checkpoints, the newest first. Those that a crash cut off have another name. */
  numbers(): readonly number[] {
    if (!this.#fs.existsSync(this.#folder)) return []
    return this.#fs
      .readdirSync(this.#folder)
      .flatMap((name) => NAME.exec(name)?.[1] ?? [])
      .map(Number)
      .toSorted((a, b) => b - a)
  }

  /** Makes the folder. */
  make(): void {
    this.#fs.mkdirSync(this.#folder, { recursive: true })
  }

  /** The checkpoint with the best score, the newest of equal ones; null if none has a score. */
  async best(scoreOf: ScoreOf): Promise<number | null> {
    let found: { readonly number: number; readonly rank: number } | null = null
    for (const number of this.numbers()) {
      const { score, mode } = await scoreOf(this.pathOf(number))
      if (score === null || Number.isNaN(score)) continue
      const rank = mode === 'max' ? score : -score
      if (found === null || rank > found.rank) found = { number, rank }
    }
    return found?.number ?? null
  }

  /** Removes all but the newest `keep` and the best, and what crashes have left. */
  async prune(keep: number, scoreOf: ScoreOf): Promise<void> {
    const numbers = this.numbers()
    const best = numbers.length > keep ? await this.best(scoreOf) : null
    for (const number of numbers.slice(keep)) if (number !== best) this.#fs.rmSync(this.pathOf(number), { force: true })
    for (const name of this.#fs.readdirSync(this.#folder))
      if (name.endsWith(DRAFT) && NAME.test(name.slice(0, -DRAFT.length))) this.#fs.rmSync(`${this.#folder}/${name}`, { force: true })
  }
}
