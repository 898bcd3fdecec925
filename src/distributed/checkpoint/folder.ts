// Checkpoints in a folder, numbered: one that a crash cut off is told from a whole one.
import { UnsupportedError } from '../../errors/index.ts'
import { writeWhole } from '../../interop/atomicFile.ts'
import { decode } from '../../protocol/decode.ts'
import { parseJson } from '../../protocol/jsonText.ts'
import { MANIFEST, MANIFEST_FILE, rankFile } from './manifest.ts'
import type { Manifest } from './manifest.ts'

/** `checkpoint-00000012` */
const NAME = /^checkpoint-(\d{8})$/

export class CheckpointFolder {
  readonly path: string
  readonly #where: string
  readonly #fs: typeof import('node:fs')

  /** Throws UnsupportedError where there are no files. */
  constructor(where: string, path: string) {
    const fs = globalThis.process?.getBuiltinModule?.('node:fs')
    if (fs === undefined) throw new UnsupportedError(`${where}: there is no file system here.`)
    this.path = path
    this.#where = where
    this.#fs = fs
  }

  /** Where the checkpoint of a number lies. */
  pathOf(number: number): string {
    return `${this.path}/checkpoint-${String(number).padStart(8, '0')}`
  }

  /** The numbers of all checkpoints, the newest first, whole or not. */
  numbers(): readonly number[] {
    if (!this.#fs.existsSync(this.path)) return []
    return this.#fs
      .readdirSync(this.path)
      .flatMap((name) => NAME.exec(name)?.[1] ?? [])
      .map(Number)
      .toSorted((a, b) => b - a)
  }

  /** The newest whole checkpoint; null if there is none. */
  newestWhole(): number | null {
    return this.numbers().find((number) => this.isWhole(number)) ?? null
  }

  /** Whether a checkpoint has its manifest, and all files with as many bytes as that says. */
  isWhole(number: number): boolean {
    const path = this.pathOf(number)
    if (!this.#fs.existsSync(`${path}/${MANIFEST_FILE}`)) return false
    const { files } = this.manifest(number)
    return files.every((bytes, rank) => this.#fs.statSync(`${path}/${rankFile(rank)}`, { throwIfNoEntry: false })?.size === bytes)
  }

  /** What a checkpoint holds. Throws ArgumentError for a file that is not a manifest. */
  manifest(number: number): Manifest {
    const text = this.#fs.readFileSync(`${this.pathOf(number)}/${MANIFEST_FILE}`, 'utf8')
    return decode(this.#where, MANIFEST, parseJson(this.#where, MANIFEST_FILE, text), MANIFEST_FILE)
  }

  read(number: number, name: string): Uint8Array {
    return this.#fs.readFileSync(`${this.pathOf(number)}/${name}`)
  }

  /** Makes the place of the next checkpoint, and returns its number. */
  makeNext(): number {
    const next = (this.numbers()[0] ?? 0) + 1
    this.#fs.mkdirSync(this.pathOf(next), { recursive: true })
    return next
  }

  /** Writes a file so that under its name there is only ever all of it. */
  write(number: number, name: string, data: Uint8Array | string): void {
    writeWhole(this.#fs, `${this.pathOf(number)}/${name}`, (draft) => this.#fs.writeFileSync(draft, data))
  }

  /** Removes a checkpoint, its manifest first: what a crash leaves of it is not whole. */
  remove(number: number): void {
    this.#fs.rmSync(`${this.pathOf(number)}/${MANIFEST_FILE}`, { force: true })
    this.#fs.rmSync(this.pathOf(number), { recursive: true, force: true })
  }

  /** Keeps the newest `keep` whole checkpoints; older ones, and what older crashes have left, go. */
  prune(keep: number): void {
    const numbers = this.numbers()
    const kept = numbers.filter((number) => this.isWhole(number)).slice(0, keep)
    const oldest = kept.at(-1)
    const newest = kept[0]
    if (oldest === undefined || newest === undefined) return
    for (const number of numbers) if (number < oldest || (number < newest && !kept.includes(number))) this.remove(number)
  }
}
