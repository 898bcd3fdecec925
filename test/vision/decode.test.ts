// Files of images as tensors, in Node by the package sharp; scripts/pages/imagePages.mjs decodes the same files in Chromium.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import { DataLoader, ImageFolder } from 'tensorfx/data'
import { Compose, Resize, ToDtype, decodeImage, functional, toImage, toPixels } from 'tensorfx/vision'
import { pngOf } from './png.ts'

const folder = mkdtempSync(join(tmpdir(), 'tensorfx-images-'))
afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
  // sharp's library sets it.
  delete process.env['VIPSHOME']
})

/** Pixels of 2 x 3: red, green, blue; white, half transparent black, gray. */
const PIXELS = new Uint8Array([255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 255, 255, 255, 255, 0, 0, 0, 128, 100, 100, 100, 255])
const png = pngOf(3, 2, 4, PIXELS)
const COLORS = [
  [
    [255, 0, 0],
    [255, 0, 100],
  ],
  [
    [0, 255, 0],
    [255, 0, 100],
  ],
  [
    [0, 0, 255],
    [255, 0, 100],
  ],
]
const OPACITY = [
  [255, 255, 255],
  [255, 128, 255],
]
const GRAY = [
  [76, 150, 29],
  [255, 0, 100],
]

describe('decodeImage', () => {
  it('reads PNG files: bytes, a Blob and a path, with the channels of the mode', async () => {
    const path = join(folder, 'a.png')
    writeFileSync(path, png)
    for (const source of [png, png.buffer, new Blob([png]), path, new URL(`file://${path}`)]) {
      const image = await decodeImage(source)
      expect([image.dtype, image.toArray()]).toEqual(['uint8', COLORS])
    }
    expect((await decodeImage(png, { mode: 'RGB_ALPHA' })).toArray()).toEqual([...COLORS, OPACITY])
    expect((await decodeImage(png, { mode: 'GRAY' })).toArray()).toEqual([GRAY])
    expect((await decodeImage(png, { mode: 'GRAY_ALPHA' })).toArray()).toEqual([GRAY, OPACITY])
  })

  it('reads gray PNG files as three channels that are alike (difference: images-rgb)', async () => {
    for (const [channels, pixels] of [
      [1, [7, 200]],
      [2, [7, 255, 200, 9]],
    ] as const)
      expect((await decodeImage(pngOf(2, 1, channels, new Uint8Array(pixels)))).toArray()).toEqual([[[7, 200]], [[7, 200]], [[7, 200]]])
  })

  it('reads JPEG files upright, as their EXIF data say (difference: images-upright)', async () => {
    const image = await decodeImage(fileURLToPath(new URL('../goldens/vision/turned.jpg', import.meta.url)))
    // What scripts/vision/record.py drew, 24 x 32, was turned by a quarter.
    expect(image.shape).toEqual([3, 32, 24])
    const [y, x] = [torch.arange(32).view(32, 1), torch.arange(23, -1, -1).view(1, 24)]
    const drawn = torch.stack([y.mul(7).expand(32, 24), x.mul(9).expand(32, 24), y.mul(-4).add(255).expand(32, 24)])
    const distance = image.to('float32').sub(drawn).abs()
    expect(distance.mean().item()).toBeLessThan(2)
    expect(distance.max().item()).toBeLessThan(16)
  })

  it('names the file that is not an image, and one that is not there', async () => {
    await expect(decodeImage(new Uint8Array([1, 2, 3]))).rejects.toThrow('decodeImage: a file of 3 bytes cannot be decoded as an image')
    await expect(decodeImage(png.subarray(0, 60))).rejects.toThrow('cannot be decoded as an image')
    await expect(decodeImage(join(folder, 'missing.png'))).rejects.toThrow("missing.png' could not be read")
    await expect(decodeImage(png, { mode: 'CMYK' as never })).rejects.toThrow('one of RGB, RGB_ALPHA, GRAY, GRAY_ALPHA')
  })
})

describe('pixels', () => {
  it('go to a tensor and back', () => {
    const image = toImage({ width: 3, height: 2, data: PIXELS }, { mode: 'RGB_ALPHA' })
    expect(image.toArray()).toEqual([...COLORS, OPACITY])
    expect([...toPixels(image).data]).toEqual([...PIXELS])
    expect([...toPixels(functional.toDtype(image, 'float32', { scale: true })).data]).toEqual([...PIXELS])
    expect([...toPixels(torch.tensor([[[0, 0.5, 2]]])).data]).toEqual([0, 0, 0, 255, 127, 127, 127, 255, 255, 255, 255, 255])
    expect([...toPixels(image.narrow(0, 0, 3)).data].filter((_, i) => i % 4 === 3)).toEqual([255, 255, 255, 255, 255, 255])
  })

  it('are refused where they have another form', () => {
    expect(() => toImage({ width: 2, height: 2, data: PIXELS })).toThrow('four bytes for each pixel')
    expect(() => toImage('x' as never)).toThrow('must be ImageData, a canvas, an image or a video')
    expect(() => toImage({ width: 2, height: 2 } as never)).toThrow('there is no OffscreenCanvas here')
    expect(() => toPixels(torch.ones([2, 3, 3]))).toThrow('[1, 3 or 4 channels, height, width], got shape [2, 3, 3]')
  })
})

it('images in folders are decoded and transformed', async () => {
  for (const name of ['pets/cat/a.png', 'pets/dog/b.png']) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), png)
  }
  const transform = new Compose([new Resize([4, 6]), new ToDtype('float32', { scale: true })])
  const pets = new ImageFolder(join(folder, 'pets'), { transform })
  for await (const [images, labels] of new DataLoader(pets, { batchSize: 2 })) {
    expect([images.shape, images.dtype, labels.toArray()]).toEqual([[2, 3, 4, 6], 'float32', [0, 1]])
    expect(torch.equal(images.select(0, 1), transform(torch.tensor(COLORS, { dtype: 'uint8' })))).toBe(true)
  }
  expect((await new ImageFolder(join(folder, 'pets')).get(1))[0].toArray()).toEqual(COLORS)
  expect(() => new ImageFolder(join(folder, 'pets'), { transform, decode: () => torch.ones([1]) })).toThrow("give 'transform' or 'decode', not both")
})
