// Digits as colour images of 32x32 pixels, a little different each time they are read. DataLoader's worker threads import this module, so it imports only what it needs: all of
// 'tensorfx' has half as many modules more to read.
import { readFile } from 'node:fs/promises'
import { tensor } from 'tensorfx/core'
import { ColorJitter, Compose, Normalize, RandomCrop, RandomErasing, Resize } from 'tensorfx/vision'
import { readDigits } from '../data/digits.mjs'

const normalize = new Normalize([0.5, 0.5, 0.5], [0.25, 0.25, 0.25])
const enlarge = new Resize(32)
const varied = new Compose([
  new RandomCrop(32, { padding: 3 }),
  new ColorJitter({ brightness: 0.3, contrast: 0.3 }),
  normalize,
  new RandomErasing({ p: 0.3, scale: [0.02, 0.1] }),
])

/** The digits of `part`, 'train' or 'test', as a dataset: `[image, digit]`, an image is [3, 32, 32]. */
export default async function digits(part) {
  const { images, labels, count } = (await readDigits(await readFile(new URL('../data/digits.csv.gz', import.meta.url))))[part]
  const transform = part === 'train' ? varied : normalize
  // What is the same each time is done once, for all images.
  const pixels = enlarge(tensor(images).view(count, 1, 8, 8))
  return { length: count, get: (index) => [transform(pixels.select(0, index).expand(3, 32, 32)), labels[index]] }
}
