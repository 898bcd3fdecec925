// Bytes that grow as they are written, with WebAssembly's encodings of integers and names.

/** A growing byte string with the encodings of WebAssembly. */
export class ByteWriter {
  private bytes = new Uint8Array(256)
  private view = new DataView(this.bytes.buffer)
  length = 0

  private reserve(count: number): void {
    if (this.length + count <= this.bytes.length) return
    const grown = new Uint8Array(Math.max(this.bytes.length * 2, this.length + count))
    grown.set(this.bytes.subarray(0, this.length))
    this.bytes = grown
    this.view = new DataView(grown.buffer)
  }

  byte(value: number): void {
    this.reserve(1)
    this.bytes[this.length++] = value
  }

  /** Replaces a byte that has been written. */
  replace(at: number, value: number): void {
    this.bytes[at] = value
  }

  append(values: ArrayLike<number>): void {
    this.reserve(values.length)
    this.bytes.set(values, this.length)
    this.length += values.length
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
    this.reserve(4)
    this.view.setFloat32(this.length, value, true)
    this.length += 4
  }

  float64(value: number): void {
    this.reserve(8)
    this.view.setFloat64(this.length, value, true)
    this.length += 8
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
