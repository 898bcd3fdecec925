// A safetensors file on the disk, of which single tensors are read.
import { ArgumentError } from '../errors/index.ts'
import { MAX_HEADER, PREFIX, checkOffsets, malformed, parseHeader } from '../formats/safetensors.ts'
import type { Header } from '../formats/safetensors.ts'
import { tensorOf } from './safetensors.ts'
import type { Tensor } from '../tensor/index.ts'

type Fs = typeof import('node:fs')

/** An open file. */
export class SafetensorsFile {
  readonly header: Header
  readonly #fs: Fs
  readonly #where: string
  readonly #file: number
  /** Where the data begin. */
  readonly #start: number

  /** Opens a file and reads its header. Throws ArgumentError for one of another format. */
  constructor(fs: Fs, where: string, path: string) {
    this.#fs = fs
    this.#where = where
    this.#file = fs.openSync(path, 'r')
    try {
      const { size } = fs.fstatSync(this.#file)
      const prefix = this.#read(0, Math.min(PREFIX, size))
      if (prefix.length < PREFIX) throw malformed(`there are only ${size} bytes, but the length of the header alone takes ${PREFIX}`)
      const length = Number(new DataView(prefix.buffer).getBigUint64(0, true))
      if (length > Math.min(MAX_HEADER, size - PREFIX)) throw malformed(`the header should have ${length} bytes, but the file has only ${size}`)
      this.header = parseHeader(this.#read(PREFIX, length))
      this.#start = PREFIX + length
      checkOffsets(this.header.entries, size - this.#start)
    } catch (error) {
      this.close()
      throw error
    }
  }

  #read(from: number, count: number): Uint8Array {
    const bytes = new Uint8Array(count)
    for (let done = 0; done < count;) {
      const read = this.#fs.readSync(this.#file, bytes, done, count - done, from + done)
      if (read === 0) throw new ArgumentError(`${this.#where}: the file ends after ${from + done} bytes, in the middle of its data; copy it again.`)
      done += read
    }
    return bytes
  }

  /** The tensor of a name; undefined if the file has none. */
  tensor(name: string): Tensor | undefined {
    const entry = this.header.entries.find((one) => one.name === name)
    return entry === undefined ? undefined : tensorOf(entry, this.#read(this.#start + entry.from, entry.to - entry.from))
  }

  close(): void {
    this.#fs.closeSync(this.#file)
  }
}

/** The header of a file. */
export function readHeaderOf(fs: Fs, where: string, path: string): Header {
  const file = new SafetensorsFile(fs, where, path)
  file.close()
  return file.header
}
