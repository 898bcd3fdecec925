// Bytes that grow as they are written, with WebAssembly's encodings of integers and names.

/** Where floats are turned into bytes. */
const floats = new DataView(new ArrayBuffer(8))

/** Up to this many values are copied one by one, which takes less time than a call that copies them at once. */
const FEW = 16

/** A growing byte string with the encodings of WebAssembly. */
export class ByteWriter {
  /** Short at first: most writers hold one loop's code, and the engine keeps small arrays where they cost least. */
  private bytes = new Uint8Array(64)
  length = 0

  private reserve(count: number): void {
    const { bytes, length } = this
    if (length + count <= bytes.length) return
    this.bytes = new Uint8Array(Math.max(bytes.length * 4, length + count))
    this.bytes.set(bytes)
  }

  byte(value: number): void {
    if (this.length === this.bytes.length) this.reserve(1)
    this.bytes[this.length++] = value
  }

  /** Replaces a byte that has been written. */
  replace(at: number, value: number): void {
    this.bytes[at] = value
  }

  append(values: ArrayLike<number>): void {
    const count = values.length
    this.reserve(count)
    if (count > FEW) this.bytes.set(values, this.length)
    else for (let i = 0; i < count; i++) this.bytes[this.length + i] = values[i] ?? 0
    this.length += count
  }

  /** An unsigned LEB128 number below 2^32. */
  unsigned(value: number): void {
    let rest = value >>> 0
    while (rest >= 128) {
      this.byte((rest & 127) | 128)
      rest >>>= 7
    }
    this.byte(rest)
  }

  /** A signed LEB128 number of 32 bits. */
  signed(value: number): void {
    let rest = value | 0
    while (rest < -64 || rest > 63) {
      this.byte((rest & 127) | 128)
      rest >>= 7
    }
    this.byte(rest & 127)
  }

  /** A signed LEB128 number of 64 bits. */
  signed64(value: bigint): void {
    let rest = BigInt.asIntN(64, value)
    while (rest < -64n || rest > 63n) {
      this.byte(Number(rest & 127n) | 128)
      rest >>= 7n
    }
    this.byte(Number(rest & 127n))
  }

  float32(value: number): void {
    floats.setFloat32(0, value, true)
    for (let i = 0; i < 4; i++) this.byte(floats.getUint8(i))
  }

  float64(value: number): void {
    floats.setFloat64(0, value, true)
    for (let i = 0; i < 8; i++) this.byte(floats.getUint8(i))
  }

  name(text: string): void {
    const bytes = new TextEncoder().encode(text)
    this.unsigned(bytes.length)
    this.append(bytes)
  }

  /** A section, or any other byte string that is preceded by its length. */
  sized(content: ByteWriter): void {
    this.unsigned(content.length)
    this.append(content.finish())
  }

  finish(): Uint8Array {
    return this.bytes.subarray(0, this.length)
  }
}
