// The files of a trace that is being written. Everything is written at once: what a program did before it was killed is there.
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import { hostProcess } from '../../protocol/index.ts'
import { makeFolder } from '../files/fileStore.ts'
import { nodeModule } from '../common/node.ts'
import type { TextFile } from './format.ts'
import type { TraceSink } from './recorder.ts'

const ARTIFACTS = 'artifacts'
/** The names of the last this many texts are kept: a pass and an event after it often say the same. */
const MOST_KEPT = 64

/** Writes to a file of its own in a folder. */
export class TraceFiles implements TraceSink {
  /** The path of the file. */
  readonly file: string
  readonly #fs: typeof import('node:fs')
  readonly #descriptor: number
  readonly #folder: string
  readonly #stem: string
  readonly #texts = new Map<string, TextFile>()
  #count = 0

  /** Makes the folder and the file. `where` names what was asked for in errors. Throws ArgumentError if that is impossible, and UnsupportedError in a browser. */
  constructor(where: string, folder: string, run: string) {
    const [fs, path] = [nodeModule('node:fs'), nodeModule('node:path')]
    if (fs === null || path === null)
      throw new UnsupportedError(`${where}: there is no file system here. In a page leave 'dir' out, and call downloadReport().`)
    this.#fs = fs
    this.#folder = path.resolve(folder)
    try {
      makeFolder(fs, path, path.join(this.#folder, ARTIFACTS))
      const [stem, descriptor] = newFile(fs, path.join(this.#folder, `${run}-${hostProcess()?.pid ?? 0}`))
      this.#descriptor = descriptor
      this.#stem = path.basename(stem)
      this.file = `${stem}.jsonl`
    } catch (error) {
      throw new ArgumentError(`${where}: the trace cannot be written to the folder '${folder}'. Name a folder that can be written to.`, {
        cause: error,
      })
    }
  }

  record(record: object): number {
    const line = `${JSON.stringify(record)}\n`
    this.#fs.writeSync(this.#descriptor, line)
    return line.length
  }

  text(name: string, text: string): string | TextFile {
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    const file = `${ARTIFACTS}/${this.#stem}-${this.#count++}-${name.replaceAll(/[^\w.-]+/g, '_').slice(0, 80)}.txt`
    this.#fs.writeFileSync(`${this.#folder}/${file}`, text)
    const [oldest] = this.#texts.keys()
    if (this.#texts.size >= MOST_KEPT && oldest !== undefined) this.#texts.delete(oldest)
    this.#texts.set(text, { file })
    return { file }
  }

  close(): void {
    this.#fs.closeSync(this.#descriptor)
  }
}

/** A file that was not there: a process may write several traces to one folder. Returns its path without the ending, and its descriptor. */
function newFile(fs: typeof import('node:fs'), stem: string): readonly [stem: string, descriptor: number] {
  for (let i = 1; ; i++) {
    const name = i === 1 ? stem : `${stem}-${i}`
    try {
      return [name, fs.openSync(`${name}.jsonl`, 'wx')]
    } catch (error) {
      if (!(error instanceof Error) || Reflect.get(error, 'code') !== 'EEXIST') throw error
    }
  }
}
