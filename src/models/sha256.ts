// SHA-256 of bytes that arrive in pieces: Node's own if there is one. In pages it is computed here, since theirs takes a file whole.

/** Takes pieces of bytes, and says their SHA-256. */
export interface Sha256 {
  update(bytes: Uint8Array): void
  /** In hexadecimal digits. */
  digest(): string
}

/** A SHA-256 that has seen no bytes. */
export function sha256(): Sha256 {
  const crypto = globalThis.process?.getBuiltinModule?.('node:crypto')
  if (crypto === undefined) return new OwnSha256()
  const hash = crypto.createHash('sha256')
  return { update: (bytes) => void hash.update(bytes), digest: () => hash.digest('hex') }
}

/** The first 32 bits of the fractional parts of the roots of the first primes, of degree 2 and 3: what the hash begins with and mixes in. */
function constants(count: number, degree: 2 | 3): Int32Array {
  const primes: number[] = []
  for (let n = 2; primes.length < count; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n)
  return Int32Array.from(primes, (prime) => (prime ** (1 / degree) % 1) * 2 ** 32)
}

const START = constants(8, 2)
const MIXED = constants(64, 3)
const rotated = (word: number, by: number): number => (word >>> by) | (word << (32 - by))

/** SHA-256 as FIPS 180-4 defines it. */
export class OwnSha256 implements Sha256 {
  readonly #state = START.slice()
  readonly #block = new Uint8Array(64)
  readonly #words = new Int32Array(64)
  #filled = 0
  #length = 0

  update(bytes: Uint8Array): void {
    this.#length += bytes.length
    for (let at = 0; at < bytes.length;) {
      const part = bytes.subarray(at, at + 64 - this.#filled)
      this.#block.set(part, this.#filled)
      this.#filled += part.length
      at += part.length
      if (this.#filled === 64) this.#mix()
    }
  }

  digest(): string {
    const bits = BigInt(this.#length) * 8n
    this.#block.fill(0, this.#filled)
    this.#block[this.#filled] = 0x80
    if (this.#filled >= 56) {
      this.#mix()
      this.#block.fill(0)
    }
    new DataView(this.#block.buffer).setBigUint64(56, bits)
    this.#mix()
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
  }

  #mix(): void {
    const [view, w] = [new DataView(this.#block.buffer), this.#words]
    for (let i = 0; i < 16; i++) w[i] = view.getInt32(4 * i)
    for (let i = 16; i < 64; i++) {
      const [before, last] = [w[i - 15] ?? 0, w[i - 2] ?? 0]
      const first = rotated(before, 7) ^ rotated(before, 18) ^ (before >>> 3)
      const second = rotated(last, 17) ^ rotated(last, 19) ^ (last >>> 10)
      w[i] = (w[i - 16] ?? 0) + first + (w[i - 7] ?? 0) + second
    }
    let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = this.#state
    for (let i = 0; i < 64; i++) {
      const sum = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g)) + (MIXED[i] ?? 0) + (w[i] ?? 0)
      const other = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
      ;[a, b, c, d, e, f, g, h] = [(sum + other) | 0, a, b, c, (d + sum) | 0, e, f, g]
    }
    for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) this.#state[i] = (this.#state[i] ?? 0) + word
    this.#filled = 0
  }
}
