// The functions of images compute what torchvision computed: test/goldens/vision, recorded by scripts/vision/record.py.
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { gradcheck } from 'tensorfx/autograd'
import { functional } from 'tensorfx/vision'

interface Stored {
  readonly shape: readonly number[]
  readonly dtype: DType
  readonly values: readonly number[]
}

interface Case {
  readonly name: keyof typeof functional
  readonly args: readonly unknown[]
  readonly options: object | null
  readonly image: string
  readonly result: Stored
}

const stored: { readonly images: Readonly<Record<string, Stored>>; readonly cases: readonly Case[] } = JSON.parse(
  gunzipSync(readFileSync(new URL('../goldens/vision/functional.json.gz', import.meta.url))).toString('utf8'),
)
const tensorOf = ({ shape, dtype, values }: Stored): Tensor => torch.tensor([...values], { dtype }).reshape([...shape])

const callOf = ({ name, args, options }: Case): ((image: Tensor) => Tensor) => {
  const fn: (...all: never[]) => Tensor = functional[name]
  return (image) => Reflect.apply(fn, undefined, [image, ...args, ...(options === null ? [] : [options])])
}

/** By how much a result may be another one. Bytes are rounded: resized ones by floats whose last bits differ. torchvision 0.14 cuts off the bytes of hues; its v2 transforms scale them. */
const allowed = ({ name, image, result: { dtype, values } }: Case): number => {
  if (dtype.startsWith('float')) return 3e-6 * Math.max(1, ...values.map(Math.abs))
  return image === 'bytes' && (name === 'resize' || name === 'resizedCrop' || name === 'adjustHue') ? 1 : 0
}

describe('functions of images', () => {
  it.each([...new Set(stored.cases.map(({ name }) => name))])('%s computes what torchvision computed', (name) => {
    for (const one of stored.cases.filter((other) => other.name === name)) {
      const where = JSON.stringify([one.args, one.options, one.image])
      const image = tensorOf(stored.images[one.image] ?? one.result)
      const before = image.clone()
      const result = callOf(one)(image)
      expect([result.dtype, result.shape], where).toEqual([one.result.dtype, one.result.shape])
      const distance = result.to('float64').sub(tensorOf(one.result).to('float64')).abs()
      expect(distance.max().item(), where).toBeLessThanOrEqual(allowed(one))
      if (name === 'resize') expect(distance.gt(0.5).to('float32').mean().item(), where).toBeLessThan(0.1)
      expect(torch.equal(image, before), where).toBe(true)
    }
  })

  it('are compiled without a break, with the same results', () => {
    const chosen = stored.cases.filter(({ name }, i) => stored.cases.findIndex((other) => other.name === name) === i)
    expect(chosen.length).toBeGreaterThan(12)
    for (const one of chosen) {
      const image = tensorOf(stored.images[one.image] ?? one.result)
      torch.testing.assertClose(compile(callOf(one), { fullgraph: true })(image), callOf(one)(image))
    }
  })

  it('take batches of any dimensions', () => {
    const batch = torch.rand([2, 1, 2, 3, 6, 8])
    for (const fn of [
      (x: Tensor) => functional.resize(x, [4, 5]),
      (x: Tensor) => functional.pad(x, 2, { paddingMode: 'reflect' }),
      (x: Tensor) => functional.adjustContrast(x, 0.3),
      (x: Tensor) => functional.adjustHue(x, 0.2),
      (x: Tensor) => functional.centerCrop(x, 7),
    ])
      torch.testing.assertClose(fn(batch).select(0, 1).select(0, 0).select(0, 1), fn(batch.select(0, 1).select(0, 0).select(0, 1)))
  })

  it('have gradients where their results are floats', () => {
    const image = torch.rand([3, 5, 6], { dtype: 'float64' }).mul(0.8).add(0.1)
    for (const fn of [
      (x: Tensor) => functional.resize(x, [3, 4]),
      (x: Tensor) => functional.normalize(x, [0.5], [0.25]),
      (x: Tensor) => functional.adjustSaturation(x, 0.5),
      (x: Tensor) => functional.crop(x, -1, 2, 4, 3),
    ])
      expect(gradcheck(fn, [image.clone().requiresGrad_()])).toBe(true)
  })
})

describe('mistakes', () => {
  const image = torch.rand([3, 4, 5])
  it.each<[string, () => unknown, string]>([
    ['an image without channels', () => functional.resize(torch.rand([4, 5]), 2), 'an image is [..., channels, height, width], got shape [4, 5]'],
    ['no image', () => functional.horizontalFlip('x' as never), "argument 'image' must be a Tensor"],
    ['a size of 0', () => functional.resize(image, 0), "argument 'size' must be whole positive numbers, a number or [height, width], got 0"],
    ['three sizes', () => functional.centerCrop(image, [1, 2, 3]), "argument 'size' must be a number or [height, width]"],
    [
      'an unknown interpolation',
      () => functional.resize(image, 2, { interpolation: 'lanczos' as never }),
      'one of nearest, nearest-exact, bilinear, bicubic',
    ],
    ['maxSize beside two sizes', () => functional.resize(image, [2, 2], { maxSize: 3 }), "option 'maxSize' goes with one size"],
    ['maxSize below the size', () => functional.resize(image, 4, { maxSize: 4 }), 'must be more than the size of the shorter side, 4, got 4'],
    ['another padding mode', () => functional.pad(image, 1, { paddingMode: 'wrap' as never }), 'one of constant, edge, reflect, symmetric'],
    ['three amounts', () => functional.pad(image, [1, 2, 3]), "argument 'padding' must be a whole number, or an array of 1, 2 or 4"],
    ['a mirror that is too far', () => functional.pad(image, 6, { paddingMode: 'symmetric' }), 'a side of 5 pixels cannot be mirrored 6 pixels far'],
    ['a negative factor', () => functional.adjustContrast(image, -1), "argument 'factor' must be a number of at least 0, or a Tensor, got -1"],
    ['a hue beyond half the wheel', () => functional.adjustHue(image, 0.6), "argument 'factor' must be a number between -0.5 and 0.5"],
    ['four channels', () => functional.adjustHue(torch.rand([4, 2, 2]), 0), 'Leave out the opacity: image.narrow(-3, 0, 3)'],
    [
      'integers of another range',
      () => functional.adjustBrightness(torch.ones([3, 2, 2], { dtype: 'int32' }), 1),
      "toDtype(image, 'float32', { scale: true })",
    ],
    [
      'bytes to normalize',
      () => functional.normalize(torch.ones([3, 2, 2], { dtype: 'uint8' }), [0], [1]),
      "toDtype(image, 'float32', { scale: true })",
    ],
    ['a deviation of 0', () => functional.normalize(image, [0], [0]), "argument 'std' must not have a 0"],
    ['two means', () => functional.normalize(image, [0, 1], [1]), 'mean must have 1 or 3 numbers'],
    ['two values', () => functional.erase(image, 0, 0, 1, 1, [1, 2]), 'value must be 1 or 3 numbers'],
    ['floats to int64', () => functional.toDtype(image, 'int64', { scale: true }), 'float32 cannot be scaled to int64 without loss'],
  ])('%s', (_, call, message) => {
    expect(call).toThrow(message)
  })
})
