// Images as the network wants them: [1, 3, height, width], normalized by the mean and deviation of ImageNet's pixels.
import { readFile } from 'node:fs/promises'
import { torch } from 'tensorfx'

const channels = (values) => torch.tensor(values).view(1, 3, 1, 1)
const MEAN = channels([0.485, 0.456, 0.406])
const DEVIATION = channels([0.229, 0.224, 0.225])

/** Pixels, row by row, each three bytes, red, green and blue. */
export function normalize(bytes, height, width) {
  const pixels = torch.tensor(Float32Array.from(bytes)).div(255)
  return pixels.view(1, height, width, 3).permute(0, 3, 1, 2).sub(MEAN).div(DEVIATION)
}

/** An image in the PPM format, which every converter writes: 'magick cat.jpg -resize 224x224^ -gravity center -extent 224x224 cat.ppm'. */
export async function readPpm(file) {
  const bytes = await readFile(file)
  const head = /^P6\s+(\d+)\s+(\d+)\s+255\s/.exec(bytes.toString('latin1', 0, 64))
  if (head === null) throw new Error(`${file} is not a PPM image with 8 bits a channel (P6)`)
  const [width, height] = [Number(head[1]), Number(head[2])]
  return normalize(bytes.subarray(head[0].length, head[0].length + 3 * width * height), height, width)
}

/** A picture that needs no file: rings of colour. */
export function rings(size) {
  const bytes = Uint8Array.from({ length: 3 * size * size }, (_, i) => {
    const [x, y] = [Math.floor(i / 3) % size, Math.floor(i / 3 / size)].map((v) => v - size / 2)
    return 127 + 127 * Math.sin(Math.hypot(x, y) / (4 + 2 * (i % 3)))
  })
  return normalize(bytes, size, size)
}
