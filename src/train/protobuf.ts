// Messages as TensorBoard reads them: protocol buffers' wire format, written field by field, and records with checksums (TFRecord).
import { joinBytes } from '../protocol/joinBytes.ts'

/** A field: its number, and its value as bytes. */
type Field = Uint8Array

const utf8 = new TextEncoder()

/** An integer in groups of seven bits, the lowest first. */
function varint(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = BigInt(value)
  do {
    const part = Number(rest & 127n)
    rest >>= 7n
    bytes.push(rest > 0n ? part | 128 : part)
  } while (rest > 0n)
  return Uint8Array.from(bytes)
}

const tag = (field: number, kind: 0 | 1 | 2 | 5): Uint8Array => varint(field * 8 + kind)

function numbers(values: readonly number[], size: 4 | 8): Uint8Array {
  const view = new DataView(new ArrayBuffer(values.length * size))
  for (const [i, value] of values.entries()) {
    if (size === 4) view.setFloat32(i * size, value, true)
    else view.setFloat64(i * size, value, true)
  }
  return new Uint8Array(view.buffer)
}

/** An integer of at least 0; nothing for 0, which is what readers assume. */
export const integerField = (field: number, value: number): Field => (value === 0 ? new Uint8Array() : joinBytes([tag(field, 0), varint(value)]))
/** A float64. */
export const doubleField = (field: number, value: number): Field => joinBytes([tag(field, 1), numbers([value], 8)])
/** A float32. */
export const floatField = (field: number, value: number): Field => joinBytes([tag(field, 5), numbers([value], 4)])
/** Bytes: a text, or a message of fields. */
export function bytesField(field: number, content: string | readonly Field[]): Field {
  const bytes = typeof content === 'string' ? utf8.encode(content) : joinBytes(content)
  return joinBytes([tag(field, 2), varint(bytes.length), bytes])
}
/** Several float64. */
export const doublesField = (field: number, values: readonly number[]): Field => bytesField(field, [numbers(values, 8)])
/** Several float32. */
export const floatsField = (field: number, values: readonly number[]): Field => bytesField(field, [numbers(values, 4)])

/** The table of CRC-32C (Castagnoli). */
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ 0x82f63b78 : rest >>> 1
  return rest
})

/** The checksum of a record: CRC-32C, turned by 15 bits and shifted by a constant, so that a checksum within the data does not match by chance. */
function maskedChecksum(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) crc = (TABLE[(crc ^ byte) & 255] ?? 0) ^ (crc >>> 8)
  crc = ~crc >>> 0
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0
}

/** A record: the length and its checksum, the message and its checksum. */
export function record(message: readonly Field[]): Uint8Array {
  const data = joinBytes(message)
  const out = new Uint8Array(16 + data.length)
  const view = new DataView(out.buffer)
  view.setBigUint64(0, BigInt(data.length), true)
  view.setUint32(8, maskedChecksum(out.subarray(0, 8)), true)
  out.set(data, 12)
  view.setUint32(12 + data.length, maskedChecksum(data), true)
  return out
}
