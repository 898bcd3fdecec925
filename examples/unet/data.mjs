// The digits as tensors, and as pictures for a terminal.
import { readFile } from 'node:fs/promises'
import { torch } from 'tensorfx'
import { readDigits } from '../data/digits.mjs'

/** Training and test images, [count, 1, 8, 8], of values from 0 to 1. */
export async function loadImages() {
  const { train, test } = await readDigits(await readFile(new URL('../data/digits.csv.gz', import.meta.url)))
  return [train, test].map(({ images, count }) => torch.tensor(images).reshape([count, 1, 8, 8]))
}

const INK = ' .:-=+*#%@'

/** Images of one row, side by side: two characters for each pixel. */
export function draw(images) {
  const shade = (value) => INK[Math.min(9, Math.max(0, Math.floor(value * 10)))].repeat(2)
  const rows = images.squeeze(1).transpose(0, 1).toArray()
  return rows.map((row) => row.map((pixels) => pixels.map(shade).join('')).join('  |  ')).join('\n')
}
