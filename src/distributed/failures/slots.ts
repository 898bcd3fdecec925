// Short texts of each rank in a fixed number of places, which other ranks can read while it hangs.
import type { SlotStore } from '../backend.ts'

/** Places in memory that ranks share: `bytesOf` is a rank's part. */
export class MemorySlots implements SlotStore {
  readonly #own: Uint8Array
  readonly #bytesOf: (rank: number) => Uint8Array
  readonly #slotBytes: number

  constructor(rank: number, slotBytes: number, bytesOf: (rank: number) => Uint8Array) {
    this.#own = bytesOf(rank)
    this.#bytesOf = bytesOf
    this.#slotBytes = slotBytes
  }

  write(slot: number, text: string): void {
    const bytes = new TextEncoder().encode(text).subarray(0, this.#slotBytes)
    const place = this.#own.subarray(slot * this.#slotBytes, (slot + 1) * this.#slotBytes)
    place.fill(0).set(bytes)
  }

  read(rank: number): readonly string[] {
    return textsIn(this.#bytesOf(rank).slice(), this.#slotBytes)
  }
}

/** Places in a file of each rank. */
export class FileSlots implements SlotStore {
  readonly #folder: string
  readonly #fs: typeof import('node:fs')
  readonly #slotBytes: number
  readonly #file: number

  constructor(folder: string, fs: typeof import('node:fs'), rank: number, slotBytes: number) {
    this.#folder = folder
    this.#fs = fs
    this.#slotBytes = slotBytes
    this.#file = fs.openSync(this.#pathOf(rank), 'w')
  }

  #pathOf(rank: number): string {
    return `${this.#folder}/collectives-${rank}`
  }

  write(slot: number, text: string): void {
    const place = new Uint8Array(this.#slotBytes)
    place.set(new TextEncoder().encode(text).subarray(0, this.#slotBytes))
    this.#fs.writeSync(this.#file, place, 0, place.length, slot * this.#slotBytes)
  }

  read(rank: number): readonly string[] {
    try {
      return textsIn(this.#fs.readFileSync(this.#pathOf(rank)), this.#slotBytes)
    } catch {
      return []
    }
  }
}

/** The texts in places that are not empty. */
function textsIn(bytes: Uint8Array, slotBytes: number): readonly string[] {
  const texts: string[] = []
  for (let at = 0; at < bytes.length; at += slotBytes) {
    const text = new TextDecoder().decode(bytes.subarray(at, at + slotBytes)).replaceAll('\0', '')
    if (text !== '') texts.push(text)
  }
  return texts
}
