// The entries of a zip archive that are stored as they are, which is how torch.save writes them. Nothing is decompressed here: a small file cannot become a large one.
import { ArgumentError } from '../errors/index.ts'

const END_SIGNATURE = 0x06054b50
const END_SIZE = 22
const END64_SIGNATURE = 0x06064b50
const LOCATOR64_SIGNATURE = 0x07064b50
const LOCATOR64_SIZE = 20
const ENTRY_SIGNATURE = 0x02014b50
const ENTRY_SIZE = 46
const LOCAL_SIGNATURE = 0x04034b50
const LOCAL_SIZE = 30
/** A field whose value is in the entry's extra data, as 64 bits. */
const IN_EXTRA = 0xffffffff
const EXTRA64 = 1
/** The only way of compression that is in use. */
const DEFLATED = 8

/** Whether these are the first bytes of a zip archive. */
export const isZip = (bytes: Uint8Array): boolean => bytes.length > 4 && bytes[0] === 0x50 && bytes[1] === 0x4b

/** Reads fields; throws ArgumentError beyond the end of the file. */
class Fields {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  readonly #where: string

  constructor(where: string, bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#where = where
  }

  fail(what: string): ArgumentError {
    return new ArgumentError(`${this.#where}: the zip archive is damaged: ${what}. Save or copy the file again.`)
  }

  #check(at: number, size: number): void {
    if (!(at >= 0 && at + size <= this.#bytes.length)) throw this.fail(`it should have ${size} bytes at ${at}, but ends at ${this.#bytes.length}`)
  }

  short(at: number): number {
    this.#check(at, 2)
    return this.#view.getUint16(at, true)
  }

  word(at: number): number {
    this.#check(at, 4)
    return this.#view.getUint32(at, true)
  }

  long(at: number): number {
    this.#check(at, 8)
    const value = this.#view.getBigUint64(at, true)
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw this.fail(`the number at ${at} is too large`)
    return Number(value)
  }

  bytes(at: number, size: number): Uint8Array {
    this.#check(at, size)
    return this.#bytes.subarray(at, at + size)
  }

  text(at: number, size: number): string {
    return new TextDecoder().decode(this.bytes(at, size))
  }
}

/** Where the list of entries starts, and how many there are. */
function directory(fields: Fields, length: number): { readonly at: number; readonly count: number } {
  for (let at = length - END_SIZE; at >= Math.max(0, length - END_SIZE - 65_535); at--) {
    if (fields.word(at) !== END_SIGNATURE) continue
    const locator = at - LOCATOR64_SIZE
    if (locator >= 0 && fields.word(locator) === LOCATOR64_SIGNATURE) {
      const end64 = fields.long(locator + 8)
      if (fields.word(end64) === END64_SIGNATURE) return { at: fields.long(end64 + 48), count: fields.long(end64 + 32) }
    }
    return { at: fields.word(at + 16), count: fields.short(at + 10) }
  }
  throw fields.fail('it has no list of entries')
}

/** Fields of an entry, of which the extra data has those that exceed 32 bits, in this order. */
function wide(fields: Fields, extraAt: number, extraSize: number, values: readonly number[]): readonly number[] {
  if (!values.includes(IN_EXTRA)) return values
  for (let at = extraAt; at + 4 <= extraAt + extraSize; at += 4 + fields.short(at + 2)) {
    if (fields.short(at) !== EXTRA64) continue
    let next = at + 4
    return values.map((value) => {
      if (value !== IN_EXTRA) return value
      next += 8
      return fields.long(next - 8)
    })
  }
  throw fields.fail('an entry lacks its size')
}

/**
 * The entries by name. Throws ArgumentError, which starts with `where`, for a damaged archive, for two entries of one name, for entries that share bytes (a small
 * file could be a large one otherwise), and for entries that are encrypted, or compressed unless there is `inflate`, which gets their
 * bytes and the size that they should have.
 */
export function readStoredZip(
  where: string,
  bytes: Uint8Array,
  inflate: ((packed: Uint8Array, size: number) => Uint8Array) | null = null,
): ReadonlyMap<string, Uint8Array> {
  const fields = new Fields(where, bytes)
  const { at: start, count } = directory(fields, bytes.length)
  const entries = new Map<string, Uint8Array>()
  const places: { readonly name: string; readonly from: number; readonly to: number }[] = []
  let at = start
  for (let i = 0; i < count; i++) {
    if (fields.word(at) !== ENTRY_SIGNATURE) throw fields.fail(`entry ${i} does not start with its signature`)
    const [nameSize, extraSize, commentSize] = [fields.short(at + 28), fields.short(at + 30), fields.short(at + 32)]
    const name = fields.text(at + ENTRY_SIZE, nameSize)
    const isPacked = inflate !== null && fields.short(at + 10) === DEFLATED
    if ((fields.short(at + 10) !== 0 && !isPacked) || fields.short(at + 8) % 2 === 1)
      throw new ArgumentError(
        `${where}: the entry '${name}' is compressed or encrypted, which torch.save does not do; load and save the file in PyTorch.`,
      )
    const [whole = 0, packed = 0, offset = 0] = wide(fields, at + ENTRY_SIZE + nameSize, extraSize, [
      fields.word(at + 24),
      fields.word(at + 20),
      fields.word(at + 42),
    ])
    if (fields.word(offset) !== LOCAL_SIGNATURE) throw fields.fail(`the data of '${name}' does not start with its signature`)
    const data = offset + LOCAL_SIZE + fields.short(offset + 26) + fields.short(offset + 28)
    if (entries.has(name)) throw fields.fail(`it has two entries called '${name}'`)
    const size = isPacked ? packed : whole
    const stored = fields.bytes(data, size)
    entries.set(name, isPacked ? inflate(stored, whole) : stored)
    places.push({ name, from: offset, to: data + size })
    at += ENTRY_SIZE + nameSize + extraSize + commentSize
  }
  places.sort((a, b) => a.from - b.from)
  for (const [i, { name, from }] of places.entries()) {
    const before = places[i - 1]
    if (before !== undefined && before.to > from) throw fields.fail(`the entries '${before.name}' and '${name}' overlap`)
  }
  return entries
}
