// PNG files of a test: 8 bits per channel, no filter.
import { crc32, deflateSync } from 'node:zlib'

function chunk(type: string, data: Uint8Array): Uint8Array {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  check.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, check])
}

/** A PNG file of pixels row by row, with 1, 2, 3 or 4 channels. */
export function pngOf(width: number, height: number, channels: 1 | 2 | 3 | 4, pixels: Uint8Array): Uint8Array<ArrayBuffer> {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width)
  header.writeUInt32BE(height, 4)
  header.set([8, [0, 0, 4, 2, 6][channels] ?? 0, 0, 0, 0], 8)
  const rows = Array.from({ length: height }, (_, y) =>
    Buffer.concat([Buffer.from([0]), pixels.subarray(y * width * channels, (y + 1) * width * channels)]),
  )
  const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10])
  const all = [signature, chunk('IHDR', header), chunk('IDAT', deflateSync(Buffer.concat(rows))), chunk('IEND', new Uint8Array())]
  return new Uint8Array(Buffer.concat(all))
}
