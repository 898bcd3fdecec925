// MD5 (RFC 1321) of a text: not for secrets, only so that a node has the colour that PyTorch gives it.

const SHIFTS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21] as const
const TABLE = Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32))

/** The first 32 bits of the digest as PyTorch reads them: the first eight hexadecimal digits as a number. */
export function md5Prefix(text: string): number {
  const bytes = new TextEncoder().encode(text)
  const blocks = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64)
  blocks.set(bytes)
  blocks[bytes.length] = 0x80
  const view = new DataView(blocks.buffer)
  view.setUint32(blocks.length - 8, bytes.length * 8, true)
  const sums = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476] as [number, number, number, number]
  for (let at = 0; at < blocks.length; at += 64) addBlock(sums, view, at)
  const digest = new DataView(new ArrayBuffer(4))
  digest.setUint32(0, sums[0], true)
  return digest.getUint32(0)
}

function addBlock(sums: [number, number, number, number], view: DataView, at: number): void {
  let [a, b, c, d] = sums
  for (let i = 0; i < 64; i++) {
    const round = i >> 4
    const mixed = [(b & c) | (~b & d), (d & b) | (~d & c), b ^ c ^ d, c ^ (b | ~d)][round] as number
    const word = [i, 5 * i + 1, 3 * i + 5, 7 * i][round] as number
    const sum = (a + mixed + (TABLE[i] as number) + view.getUint32(at + (word % 16) * 4, true)) | 0
    const shift = SHIFTS[round * 4 + (i % 4)] as number
    ;[a, d, c, b] = [d, c, b, (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0]
  }
  sums[0] = (sums[0] + a) | 0
  sums[1] = (sums[1] + b) | 0
  sums[2] = (sums[2] + c) | 0
  sums[3] = (sums[3] + d) | 0
}
