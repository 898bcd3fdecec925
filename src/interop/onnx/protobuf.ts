// Writing protocol buffers: fields of integers, floats, texts and messages, as ONNX files need them. A message is a list of parts, joined once at the end, so that
// weights are copied only once.
import { joinBytes } from '../../protocol/joinBytes.ts'

const VARINT = 0
const BYTES = 2
const FIXED32 = 5

const encoder = new TextEncoder()

/** A message under construction. Numbers of fields are those of the message's definition. */
export class Message {
  readonly #parts: Uint8Array[] = []
  #length = 0

  /** Bytes written so far. */
  get length(): number {
    return this.#length
  }

  /** An integer (`int32`, `int64`, an enum); negative ones take ten bytes. */
  int(field: number, value: number | bigint): this {
    this.#push(varint((field << 3) | VARINT))
    return this.#push(varint(value))
  }

  float(field: number, value: number): this {
    this.#push(varint((field << 3) | FIXED32))
    return this.#push(floatBytes(value))
  }

  bytes(field: number, bytes: Uint8Array): this {
    this.#push(varint((field << 3) | BYTES))
    this.#push(varint(bytes.length))
    return this.#push(bytes)
  }

  text(field: number, text: string): this {
    return this.bytes(field, encoder.encode(text))
  }

  message(field: number, message: Message): this {
    this.#push(varint((field << 3) | BYTES))
    this.#push(varint(message.length))
    for (const part of message.#parts) this.#push(part)
    return this
  }

  /** A repeated integer. Not packed, which every reader takes. */
  ints(field: number, values: readonly (number | bigint)[]): this {
    for (const value of values) this.int(field, value)
    return this
  }

  floats(field: number, values: readonly number[]): this {
    for (const value of values) this.float(field, value)
    return this
  }

  /** The message as bytes. */
  encode(): Uint8Array {
    return joinBytes(this.#parts)
  }

  #push(part: Uint8Array): this {
    this.#parts.push(part)
    this.#length += part.length
    return this
  }
}

function varint(value: number | bigint): Uint8Array {
  const bytes: number[] = []
  let rest = BigInt.asUintN(64, BigInt(value))
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128)
    rest >>= 7n
  }
  bytes.push(Number(rest))
  return Uint8Array.from(bytes)
}

function floatBytes(value: number): Uint8Array {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setFloat32(0, value, true)
  return bytes
}
