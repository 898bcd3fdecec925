// SHA-1, which names data by its content: Node's own if there is one. In pages it is computed here, since theirs only answers later.
import { nodeModule } from '../common/node.ts'

/** The SHA-1 of the bytes, in hexadecimal digits. */
export function sha1(bytes: Uint8Array): string {
  const crypto = nodeModule('node:crypto')
  return crypto === null ? sha1Here(bytes) : crypto.createHash('sha1').update(bytes).digest('hex')
}

const rotate = (word: number, by: number): number => (word << by) | (word >>> (32 - by))

function sha1Here(bytes: Uint8Array): string {
  // The message, a one bit, zeros, and the number of bits in eight bytes.
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64)
  padded.set(bytes)
  padded[bytes.length] = 0x80
  const view = new DataView(padded.buffer)
  view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n)
  let [h0, h1, h2, h3, h4] = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0]
  const words = new Int32Array(80)
  for (let block = 0; block < padded.length; block += 64) {
    for (let i = 0; i < 80; i++)
      words[i] =
        i < 16 ? view.getInt32(block + 4 * i) : rotate((words[i - 3] ?? 0) ^ (words[i - 8] ?? 0) ^ (words[i - 14] ?? 0) ^ (words[i - 16] ?? 0), 1)
    let [a, b, c, d, e] = [h0, h1, h2, h3, h4]
    for (let i = 0; i < 80; i++) {
      const [mixed, constant] = round(i, b, c, d)
      const next = (rotate(a, 5) + mixed + e + constant + (words[i] ?? 0)) | 0
      ;[a, b, c, d, e] = [next, a, rotate(b, 30), c, d]
    }
    ;[h0, h1, h2, h3, h4] = [h0 + a, h1 + b, h2 + c, h3 + d, h4 + e]
  }
  return [h0, h1, h2, h3, h4].map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

function round(i: number, b: number, c: number, d: number): readonly [mixed: number, constant: number] {
  if (i < 20) return [(b & c) | (~b & d), 0x5a827999]
  if (i < 40) return [b ^ c ^ d, 0x6ed9eba1]
  if (i < 60) return [(b & c) | (b & d) | (c & d), 0x8f1bbcdc]
  return [b ^ c ^ d, 0xca62c1d6]
}
