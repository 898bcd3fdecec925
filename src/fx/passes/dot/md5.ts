// MD5 (RFC 1321), which determines the colour of a node so that it is the same as in PyTorch. Not for security.

const SHIFTS = [
  [7, 12, 17, 22],
  [5, 9, 14, 20],
  [4, 11, 16, 23],
  [6, 10, 15, 21],
] as const
const TABLE = Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32))

/** The first eight hexadecimal digits of the digest as a number. */
export function md5Prefix(text: string): number {
  const bytes = new TextEncoder().encode(text)
  const blocks = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64)
  blocks.set(bytes)
  blocks[bytes.length] = 0x80
  const view = new DataView(blocks.buffer)
  view.setUint32(blocks.length - 8, bytes.length * 8, true)
  let sums: Sums = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476]
  for (let at = 0; at < blocks.length; at += 64) sums = addBlock(sums, view, at)
  const digest = new DataView(new ArrayBuffer(4))
  digest.setUint32(0, sums[0], true)
  return digest.getUint32(0)
}

type Sums = readonly [number, number, number, number]

function addBlock(sums: Sums, view: DataView, at: number): Sums {
  let [a, b, c, d] = sums
  for (const [i, constant] of TABLE.entries()) {
    const [mixed, word] = step(i, b, c, d)
    const sum = (a + mixed + constant + view.getUint32(at + (word % 16) * 4, true)) | 0
    const shift = SHIFTS[i >> 4]?.[i % 4] ?? 0
    ;[a, d, c, b] = [d, c, b, (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0]
  }
  return [(sums[0] + a) | 0, (sums[1] + b) | 0, (sums[2] + c) | 0, (sums[3] + d) | 0]
}

/** What step `i` mixes in, and the index of the word that it adds. */
function step(i: number, b: number, c: number, d: number): readonly [mixed: number, word: number] {
  if (i < 16) return [(b & c) | (~b & d), i]
  if (i < 32) return [(d & b) | (~d & c), 5 * i + 1]
  if (i < 48) return [b ^ c ^ d, 3 * i + 5]
  return [c ^ (b | ~d), 7 * i]
}
