// A folder of checkpoints, numbered: which there are, which is the best, and which may go. One process writes a file; several ranks write a folder, which counts as soon as it has a manifest.
import { DRAFT, syncFolder, writeWhole } from '../interop/atomicFile.ts'
import { readHeaderOf } from '../interop/safetensorsFile.ts'
import type { About } from './format.ts'
import { readMetadata } from './format.ts'
import { MANIFEST_FILE, rankFile, readManifestOf } from './manifest.ts'
import type { Manifest } from './manifest.ts'

/** `checkpoint-00000012.safetensors`, and the folders `checkpoint-00000012` and, if one of that name was there, `checkpoint-00000012.2`. */
const NAME = /^checkpoint-(\d{8,})(\.safetensors|\.[1-9]\d{0,8})?$/
const FILE = '.safetensors'

type Fs = typeof import('node:fs')

/** A checkpoint of a folder. */
interface Entry {
  readonly number: number
  readonly path: string
  /** What tells it from others of the same number: 0 for a file. */
  readonly revision: number
}

export class CheckpointFiles {
  readonly #fs: Fs
  readonly #where: string
  readonly #folder: string

  constructor(fs: Fs, where: string, folder: string) {
    this.#fs = fs
    this.#where = where
    this.#folder = folder
  }

  /** The path of the file of one process. */
  pathOf(number: number): string {
    return `${this.#folder}/checkpoint-${String(number).padStart(8, '0')}${FILE}`
  }

  /** All entries, whole or not, the newest first. Files that a crash cut off have another name. */
  #entries(): readonly Entry[] {
    if (!this.#fs.existsSync(this.#folder)) return []
    return this.#fs
      .readdirSync(this.#folder)
      .flatMap((name) => {
        const [, number, suffix = '.1'] = NAME.exec(name) ?? []
        if (number === undefined) return []
        return { number: Number(number), path: `${this.#folder}/${name}`, revision: suffix === FILE ? 0 : Number(suffix.slice(1)) }
      })
      .toSorted((a, b) => b.number - a.number || b.revision - a.revision)
  }

  /** The whole checkpoints, the newest first. */
  #whole(): readonly Entry[] {
    return this.#entries().filter(({ path, revision }) => revision === 0 || this.#isWhole(path))
  }

  /** Whether a folder has its manifest, and all files with as many bytes as that says. */
  #isWhole(path: string): boolean {
    if (!this.#fs.existsSync(`${path}/${MANIFEST_FILE}`)) return false
    return readManifestOf(this.#fs, this.#where, path).files.every(
      (bytes, rank) => this.#fs.statSync(`${path}/${rankFile(rank)}`, { throwIfNoEntry: false })?.size === bytes,
    )
  }

  /** The path of the newest checkpoint; null if there is none. */
  newest(): string | null {
    return this.#whole()[0]?.path ?? null
  }

  /** The number of the next checkpoint. */
  next(): number {
    return (this.#entries()[0]?.number ?? 0) + 1
  }

  /** Makes the folder. */
  make(): void {
    this.#fs.mkdirSync(this.#folder, { recursive: true })
  }

  /** Makes a folder for a checkpoint of several ranks, and returns its path. An older one of the same number stays until this one is whole. */
  makePlace(number: number): string {
    const revision = Math.max(0, ...this.#entries().flatMap((entry) => (entry.number === number ? [entry.revision] : []))) + 1
    const path = `${this.pathOf(number).slice(0, -FILE.length)}${revision === 1 ? '' : `.${revision}`}`
    this.#fs.mkdirSync(path, { recursive: true })
    return path
  }

  /** Writes the manifest, which makes a folder a checkpoint. */
  writeManifest(path: string, manifest: Manifest): void {
    syncFolder(this.#fs, this.#folder)
    writeWhole(this.#fs, `${path}/${MANIFEST_FILE}`, (draft) => this.#fs.writeFileSync(draft, JSON.stringify(manifest)))
  }

  #about({ path, revision }: Entry): About {
    const metadata = revision === 0 ? readHeaderOf(this.#fs, this.#where, path).metadata : readManifestOf(this.#fs, this.#where, path).metadata
    return readMetadata(this.#where, metadata).about
  }

  /** The path of the checkpoint with the best score, the newest of equal ones; null if none has a score. */
  best(): string | null {
    let found: { readonly path: string; readonly rank: number } | null = null
    for (const entry of this.#whole()) {
      const { score, mode } = this.#about(entry)
      if (score === null || Number.isNaN(score)) continue
      const rank = mode === 'max' ? score : -score
      if (found === null || rank > found.rank) found = { path: entry.path, rank }
    }
    return found?.path ?? null
  }

  /** Removes all but the one that was just written, the newest `keep` and the best, and what crashes have left. */
  prune(keep: number, written: string): void {
    const of = this.#entries().find(({ path }) => path === written)
    for (const entry of this.#entries()) if (entry.number === of?.number && entry.path !== written) this.#remove(entry)
    const whole = this.#whole()
    const best = whole.length > keep ? this.best() : null
    const kept = new Set([...whole.slice(0, keep).map(({ path }) => path), best, written])
    for (const entry of this.#entries()) if (!kept.has(entry.path)) this.#remove(entry)
    for (const name of this.#fs.readdirSync(this.#folder))
      if (name.endsWith(DRAFT) && NAME.test(name.slice(0, -DRAFT.length))) this.#fs.rmSync(`${this.#folder}/${name}`, { force: true })
  }

  /** Removes a checkpoint, its manifest first: what a crash leaves of it is not whole. */
  #remove({ path, revision }: Entry): void {
    if (revision > 0) this.#fs.rmSync(`${path}/${MANIFEST_FILE}`, { force: true })
    this.#fs.rmSync(path, { recursive: true, force: true })
  }
}
