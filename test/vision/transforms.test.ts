// Random transforms: what they do with the numbers that they draw, how these are distributed, and that compiled ones draw too.
import { describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import * as vision from 'tensorfx/vision'
import { functional } from 'tensorfx/vision'

const image = (shape: readonly number[] = [3, 20, 24]): Tensor => torch.rand([...shape], { generator: new torch.Generator(2) })
const bytes = (shape?: readonly number[]): Tensor => functional.toDtype(image(shape), 'uint8', { scale: true })
const number = (x: Tensor): number => Number(x.item())

const TRANSFORMS: Readonly<Record<string, () => (image: Tensor) => Tensor>> = {
  RandomCrop: () => new vision.RandomCrop(8, { padding: 2 }),
  RandomResizedCrop: () => new vision.RandomResizedCrop(11),
  'RandomResizedCrop, bicubic': () => new vision.RandomResizedCrop([6, 9], { interpolation: 'bicubic' }),
  'RandomResizedCrop, nearest': () => new vision.RandomResizedCrop(11, { interpolation: 'nearest' }),
  RandomHorizontalFlip: () => new vision.RandomHorizontalFlip(),
  RandomVerticalFlip: () => new vision.RandomVerticalFlip(0.4),
  RandomGrayscale: () => new vision.RandomGrayscale({ p: 0.5 }),
  ColorJitter: () => new vision.ColorJitter({ brightness: 0.4, contrast: 0.4, saturation: [0.5, 2], hue: 0.2 }),
  'ColorJitter of one property': () => new vision.ColorJitter({ contrast: 0.3 }),
  RandomErasing: () => new vision.RandomErasing({ value: 'random' }),
  Compose: () =>
    new vision.Compose([
      new vision.RandomResizedCrop(16),
      new vision.RandomHorizontalFlip(),
      new vision.ColorJitter(0.4, 0.4, 0.4, 0.1),
      new vision.ToDtype('float32', { scale: true }),
      new vision.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
      new vision.RandomErasing({ p: 1 }),
    ]),
}

describe('random transforms', () => {
  it.each(Object.keys(TRANSFORMS))('%s, compiled without a break, draws the numbers that it draws eagerly (difference: image-draws)', (name) => {
    const x = name === 'Compose' ? bytes() : image()
    const transform = TRANSFORMS[name]?.() ?? ((same: Tensor) => same)
    const state = torch.getRngState()
    const run = (fn: (x: Tensor) => Tensor): readonly Tensor[] => {
      torch.manualSeed(5)
      return Array.from({ length: 8 }, () => fn(x))
    }
    const eager = run((y) => transform(y))
    const compiled = run(compile((y: Tensor) => transform(y), { fullgraph: true }))
    torch.setRngState(state)
    expect(new Set(eager.map((y) => String(y.toArray()))).size, 'calls differ').toBeGreaterThan(1)
    for (const [i, y] of eager.entries()) torch.testing.assertClose(compiled[i], y, { atol: 1e-5, rtol: 1e-5 })
  })

  it('RandomResizedCrop gives what the function gives for the same rectangle', () => {
    for (const x of [image(), image([2, 3, 9, 31])])
      for (const how of [
        { interpolation: 'bilinear', antialias: true },
        { interpolation: 'bilinear', antialias: false },
        { interpolation: 'bicubic', antialias: true },
        { interpolation: 'nearest' },
        { interpolation: 'nearest-exact' },
      ] as const) {
        const transform = new vision.RandomResizedCrop([7, 12], { scale: [0.05, 1], ratio: [0.3, 3], ...how })
        for (let i = 0; i < 4; i++) {
          const params = transform.makeParams(x)
          const { top, left, height, width } = params
          const expected = functional.resizedCrop(x, number(top), number(left), number(height), number(width), [7, 12], how)
          torch.testing.assertClose(transform.transform(x, params), expected, { atol: 2e-5, rtol: 1e-5 })
        }
      }
  })

  it('RandomCrop and RandomErasing give what the functions give for the same places', () => {
    const x = image()
    const crop = new vision.RandomCrop([5, 30], { padding: [1, 2], padIfNeeded: true, fill: 0.5 })
    const place = crop.makeParams(x)
    const around = functional.pad(x, [5, 2], { fill: 0.5 })
    expect(torch.equal(crop.transform(x, place), functional.crop(around, number(place.top), number(place.left), 5, 30))).toBe(true)
    const erasing = new vision.RandomErasing({ p: 1, value: [1, 2, 3] })
    const erased = erasing.makeParams(x)
    const sizes = [erased.top, erased.left, erased.height, erased.width].map(number)
    const expected = x.clone()
    const [top = 0, left = 0, height = 0, width = 0] = sizes
    expect(height * width).toBeGreaterThan(0)
    for (let c = 0; c < 3; c++)
      expected
        .select(0, c)
        .narrow(0, top, height)
        .narrow(1, left, width)
        .fill_(c + 1)
    expect(torch.equal(erasing.transform(x, erased), expected)).toBe(true)
  })

  it('ColorJitter gives what its functions give in the order of the ranks', () => {
    const jitter = new vision.ColorJitter({ brightness: 0.5, contrast: [0.2, 3], saturation: 0.7, hue: 0.4 })
    const { adjustBrightness, adjustContrast, adjustSaturation, adjustHue } = functional
    const functions = { brightness: adjustBrightness, contrast: adjustContrast, saturation: adjustSaturation, hue: adjustHue }
    const names = ['brightness', 'contrast', 'saturation', 'hue'] as const
    const orders = new Set<string>()
    for (const x of [image(), image([2, 1, 5, 5]), bytes()])
      for (let i = 0; i < 12; i++) {
        const params = jitter.makeParams(x)
        const order = names.toSorted((a, b) => number(params.ranks[a] ?? torch.zeros([])) - number(params.ranks[b] ?? torch.zeros([])))
        orders.add(order.join())
        // Bytes are cut off after each function, so that the last bits of a factor count.
        const factorOf = (name: (typeof names)[number]): Tensor | number => {
          const factor = params.factors[name] ?? torch.zeros([])
          return x.dtype === 'uint8' ? factor : number(factor)
        }
        const expected = order.reduce((y, name) => functions[name](y, factorOf(name)), x)
        torch.testing.assertClose(jitter.transform(x, params), expected, { atol: 1e-5, rtol: 1e-5 })
      }
    expect(orders.size).toBeGreaterThan(6)
  })

  it('rectangles have the wanted areas and proportions, and lie in the image', () => {
    const x = image([3, 40, 60])
    const transform = new vision.RandomResizedCrop(8, { scale: [0.2, 0.6], ratio: [0.5, 2] })
    const rows: number[] = []
    for (let i = 0; i < 100; i++) {
      const { top, left, height, width } = transform.makeParams(x)
      const [t, l, h, w] = [top, left, height, width].map(number) as [number, number, number, number]
      expect(t >= 0 && l >= 0 && t + h <= 40 && l + w <= 60, `${t} ${l} ${h} ${w}`).toBe(true)
      expect(h * w).toBeGreaterThan(0.17 * 2400)
      expect(h * w).toBeLessThan(0.65 * 2400)
      expect(w / h).toBeGreaterThan(0.45)
      expect(w / h).toBeLessThan(2.2)
      rows.push(t)
    }
    expect(Math.min(...rows)).toBeLessThan(8)
    expect(new Set(rows).size).toBeGreaterThan(8)
  })

  it('RandomResizedCrop takes the middle if no rectangle fits', () => {
    const numbers = (shape: readonly number[], ratio: readonly number[]): readonly number[] => {
      const { top, left, height, width } = new vision.RandomResizedCrop(4, { scale: [4, 5], ratio }).makeParams(image(shape))
      return [top, left, height, width].map(number)
    }
    expect(numbers([3, 20, 24], [3 / 4, 4 / 3])).toEqual([0, 0, 20, 24])
    expect(numbers([3, 30, 9], [0.9, 1.5])).toEqual([10, 0, 10, 9])
    expect(numbers([3, 8, 30], [0.5, 1.5])).toEqual([0, 9, 8, 12])
  })

  it('p is how often something happens, 0 and 1 among them', () => {
    const x = torch.tensor([[[1, 2]]])
    const often = (transform: (x: Tensor) => Tensor): number =>
      Array.from({ length: 200 }, () => Number(!torch.equal(transform(x), x))).reduce((a, b) => a + b)
    expect(often(new vision.RandomHorizontalFlip(0))).toBe(0)
    expect(often(new vision.RandomHorizontalFlip(1))).toBe(200)
    const state = torch.getRngState()
    torch.manualSeed(1)
    const some = often(new vision.RandomHorizontalFlip(0.25))
    torch.setRngState(state)
    expect(some).toBeGreaterThan(25)
    expect(some).toBeLessThan(80)
  })

  it('ColorJitter without properties changes nothing', () => {
    const x = image()
    expect(new vision.ColorJitter()(x)).toBe(x)
  })

  it('change an image and its mask alike by the same numbers (difference: one-image)', () => {
    const flip = new vision.RandomHorizontalFlip()
    const [x, mask] = [image(), image().gt(0.5)]
    const params = flip.makeParams(x)
    expect(torch.equal(flip.transform(mask, params), flip.transform(x, params).gt(0.5))).toBe(true)
  })

  it('print their options', () => {
    expect(String(new vision.RandomResizedCrop(8))).toBe(
      'RandomResizedCrop(size=[8, 8], scale=[0.08, 1], ratio=[0.75, 1.3333333333333333], interpolation=bilinear, antialias=true)',
    )
    expect(String(new vision.ColorJitter({ hue: 0.1 }))).toBe('ColorJitter(hue=[-0.1, 0.1])')
    expect(String(new vision.Compose([new vision.Resize(4), new vision.RandomErasing()]))).toContain('Resize(size=4')
  })

  it.each<[string, () => unknown, string]>([
    ['an image that is too small', () => new vision.RandomCrop(30)(image()), 'a part of 30x30 pixels is larger than the image'],
    ['an interval turned round', () => new vision.RandomResizedCrop(4, { scale: [1, 0.5] }), "argument 'scale' must be an interval [low, high]"],
    ['a proportion of 0', () => new vision.RandomErasing({ ratio: [0, 1] }), "argument 'ratio' must be an interval [low, high] of positive numbers"],
    [
      'bicubic without antialias',
      () => new vision.RandomResizedCrop(4, { interpolation: 'bicubic', antialias: false }),
      "'bicubic' works with antialias only",
    ],
    ['a hue beyond half the wheel', () => new vision.ColorJitter({ hue: 0.7 }), "argument 'hue' must be between 0 and 0.5"],
    ['a probability of 2', () => new vision.RandomVerticalFlip(2), "argument 'p' must be a probability between 0 and 1, got 2"],
    ['another value', () => new vision.RandomErasing({ value: 'white' as never }), "a number, an array of numbers or 'random'"],
    ['no transforms', () => new vision.Compose([]), "argument 'transforms' must be an array of transforms or functions"],
    ['an unknown option', () => new vision.Resize(4, { antiAlias: true } as never), 'antialias'],
  ])('%s is an error', (_, call, message) => {
    expect(call).toThrow(message)
  })
})
