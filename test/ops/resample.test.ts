// Resizing against sums written out, for every mode: odd and even sizes, up and down, lines too short for vectors, views with strides, every floating dtype, and gradients.
import { describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { tenth } from '../helpers/rotation.ts'
import { gradcheck } from './gradcheck.ts'

const F = torch.nn.functional
type Options = Parameters<typeof F.interpolate>[1]

/** The weight of Keys' kernel with a = -0.75. */
function keys(x: number): number {
  const d = Math.abs(x)
  return d < 1 ? 1.25 * d ** 3 - 2.25 * d ** 2 + 1 : d < 2 ? -0.75 * d ** 3 + 3.75 * d ** 2 - 6 * d + 3 : 0
}

/** Element `i` of a line that is resized to `out` elements. */
function elementOf(line: readonly number[], i: number, out: number, mode: string, align: boolean): number {
  const n = line.length
  const at = (k: number): number => line[Math.min(Math.max(k, 0), n - 1)] ?? NaN
  if (mode === 'nearest') return at(Math.floor((i * n) / out))
  if (mode === 'area') {
    const part = line.slice(Math.floor((i * n) / out), Math.ceil(((i + 1) * n) / out))
    return part.reduce((a, b) => a + b, 0) / part.length
  }
  const center = align ? (out > 1 ? (i * (n - 1)) / (out - 1) : 0) : ((i + 0.5) * n) / out - 0.5
  if (mode === 'bicubic') {
    const first = Math.floor(center)
    return [-1, 0, 1, 2].reduce((sum, k) => sum + at(first + k) * keys(center - first - k), 0)
  }
  const place = Math.max(center, 0)
  const first = Math.floor(place)
  return at(first) * (1 - (place - first)) + (place > first ? at(first + 1) * (place - first) : 0)
}

/** Images resized along one dimension after the other, in numbers of JavaScript. */
function expected(x: Tensor, sizes: readonly [number, number], mode: string, align: boolean): number[] {
  const [n = 0, c = 0, h = 0, w = 0] = x.shape
  const data = Array.from(x.double().contiguous().toTypedArray())
  const result: number[] = []
  for (let plane = 0; plane < n * c; plane++) {
    const rows = Array.from({ length: h }, (_, y) => {
      const line = data.slice((plane * h + y) * w, (plane * h + y + 1) * w)
      return Array.from({ length: sizes[1] }, (_, i) => elementOf(line, i, sizes[1], mode, align))
    })
    for (let y = 0; y < sizes[0]; y++)
      for (let i = 0; i < sizes[1]; i++)
        result.push(
          elementOf(
            rows.map((row) => row[i] ?? NaN),
            y,
            sizes[0],
            mode,
            align,
          ),
        )
  }
  return result
}

const MODES: readonly (readonly [string, Options])[] = [
  ['nearest', { mode: 'nearest' }],
  ['bilinear', { mode: 'bilinear' }],
  ['bilinear with aligned corners', { mode: 'bilinear', alignCorners: true }],
  ['bicubic', { mode: 'bicubic' }],
  ['area', { mode: 'area' }],
]
const TOLERANCE: Readonly<Partial<Record<DType, number>>> = { float64: 1e-12, float32: 2e-6, float16: 4e-3, bfloat16: 3e-2 }

function check(x: Tensor, sizes: readonly [number, number], options: Options): void {
  const result = F.interpolate(x, { size: sizes, ...options })
  expect(result.shape).toEqual([...x.shape.slice(0, 2), ...sizes])
  const wanted = expected(x, sizes, options.mode ?? 'nearest', options.alignCorners === true)
  const off = Array.from(result.double().toTypedArray(), (v, i) => Math.abs(v - (wanted[i] ?? NaN)))
  expect(off.length).toBe(wanted.length)
  expect(Math.max(...off), `${x.shape.join('x')} to ${sizes.join('x')}`).toBeLessThanOrEqual(TOLERANCE[x.dtype] ?? 0)
}

/** Sizes of images, and what they are resized to. */
const SIZES = (
  [
    [1, 1],
    [3, 2],
    [4, 5],
    [7, 9],
    [16, 33],
  ] as const
).flatMap(([h, w]) =>
  (
    [
      [1, 1],
      [2, 3],
      [5, 4],
      [9, 17],
      [32, 66],
      [h, w],
    ] as const
  ).map((sizes) => [[h, w], sizes] as const),
)
/** Lengths and what they shrink to. */
const SHRUNK = [4, 5, 7, 8, 11, 16, 23, 33].flatMap((n) =>
  [1.1, 1.3, 1.5, 1.75, 2, 2.4, 2.7, 3].map((scale) => [n, Math.max(1, Math.round(n / scale))] as const).filter(([, out]) => out !== n),
)
/** Lengths and what they grow to. */
const GROWN = [4, 7, 8, 13, 20].flatMap((w) => [2, 3, 4, 8].map((factor) => [w, factor * w] as const))

describe.each(MODES)('%s', (mode, options) => {
  test.each(['float32', 'float64', 'float16', 'bfloat16'] as const)('%s: larger, smaller, of one element, and of the same size', (dtype) => {
    torch.manualSeed(3)
    for (const [from, to] of tenth(SIZES, (sizes) => `${mode} ${dtype} ${sizes.join()}`)) check(torch.rand([2, 3, ...from]).to(dtype), to, options)
  })

  test('rows that grow by whole numbers, of every length', () => {
    torch.manualSeed(6)
    for (const [w, grown] of tenth(GROWN, (sizes) => `${mode} ${sizes.join()}`)) check(torch.rand([1, 5, 4, w]), [8, grown], options)
  })

  test('views whose elements do not lie in a row, and an expanded one', () => {
    torch.manualSeed(4)
    check(torch.rand([2, 9, 3, 7]).transpose(1, 3), [11, 5], options)
    check(torch.rand([2, 3, 12, 7]).slice(2, 1, 12, 2), [8, 14], options)
    check(torch.rand([1, 1, 6, 1]).expand([2, 1, 6, 5]), [4, 10], options)
  })

  test('no images', () => {
    expect(F.interpolate(torch.zeros([0, 2, 3, 4]), { size: [5, 6], ...options }).shape).toEqual([0, 2, 5, 6])
    expect(() => F.interpolate(torch.zeros([1, 2, 0, 4]), { size: [5, 6], ...options })).toThrow(/0 .*cannot become 5/)
  })

  test('gradients of larger and smaller results', () => {
    torch.manualSeed(5)
    for (const size of [
      [9, 5],
      [2, 3],
      [3, 8],
    ]) {
      const x = torch.rand([1, 2, 4, 5], { dtype: 'float64' })
      gradcheck((t) => F.interpolate(t, { size, ...options }), [x])
    }
  })

  test('compiled as eager, and its gradient too', () => {
    const x = torch.rand([2, 2, 6, 7])
    const f = (t: Tensor): Tensor => F.interpolate(t.relu(), { size: [13, 4], ...options }).mul(2)
    const [a, b] = [x.clone().requiresGrad_(), x.clone().requiresGrad_()]
    const [eager, compiled] = [f(a), compile(f)(b)]
    expect(compiled.toArray()).toEqual(eager.toArray())
    eager.sum().backward()
    compiled.sum().backward()
    expect(
      b.grad
        ?.sub(a.grad ?? 0)
        .abs()
        .max()
        .item(),
    ).toBeLessThan(1e-6)
  })
})

describe('linear modes that shrink', () => {
  /** The sums of the two parts of each element in float32, in the order in which single elements are fetched. */
  const shrunk = (x: Tensor, dim: number, out: number, align: boolean): Tensor => {
    const n = x.shape[dim] ?? 0
    const places = Array.from({ length: out }, (_, i) =>
      align ? (out > 1 ? i * ((n - 1) / (out - 1)) : 0) : Math.max((i + 0.5) * (n / out) - 0.5, 0),
    )
    const along = x.shape.map((_, d) => (d === dim ? out : 1))
    const part = (t: number): Tensor => {
      const chosen = torch.tensor(
        places.map((place) => Math.min(Math.floor(place) + t, n - 1)),
        { dtype: 'int64' },
      )
      const weights = torch.tensor(places.map((place) => (t === 0 ? 1 - (place - Math.floor(place)) : place - Math.floor(place))))
      return x.indexSelect(dim, chosen).mul(weights.reshape(along))
    }
    return part(0).add(part(1))
  }
  /** {@link shrunk} for both dimensions of an image, in the order of interpolate: what shrinks first, and of that the height. */
  const shrunkImage = (image: Tensor, sizes: readonly [number, number], align: boolean): Tensor => {
    const [height, width] = image.shape.slice(2)
    const order = sizes[0] > (height ?? 0) ? ([3, 2] as const) : ([2, 3] as const)
    return order.reduce((x, dim) => {
      const [own, wanted] = dim === 2 ? [height, sizes[0]] : [width, sizes[1]]
      return own === wanted ? x : shrunk(x, dim, wanted, align)
    }, image)
  }
  const bits = (x: Tensor): number[] => Array.from(new Int32Array(Float32Array.from(x.contiguous().toTypedArray(), Number).buffer))

  test.each([false, true])('every length, by 1.1 to 3, is the sum of its parts bit for bit; aligned corners: %s', (align) => {
    torch.manualSeed(8)
    for (const [n, out] of tenth(SHRUNK, (sizes) => `${align} ${sizes.join()}`)) {
      const line = torch.randn([3, 5, n])
      const options = { size: out, alignCorners: align }
      expect(bits(F.interpolate(line, { ...options, mode: 'linear' })), `${n} to ${out}`).toEqual(bits(shrunk(line, 2, out, align)))
      for (const [h, height] of [
        [9, 5],
        [n, out],
        [6, 11],
        [7, 7],
        [5, 1],
      ] as const) {
        const image = torch.randn([2, 3, h, n])
        const wanted = shrunkImage(image, [height, out], align)
        const result = F.interpolate(image, { size: [height, out], alignCorners: align, mode: 'bilinear' })
        expect(bits(result), `${h}x${n} to ${height}x${out}`).toEqual(bits(wanted))
      }
    }
  })

  test.each([false, true])('wide images too, with rows that are written into more than one kernel; aligned corners: %s', (align) => {
    torch.manualSeed(9)
    for (const [sizes, height, width] of [
      [[3, 255], 7, 701],
      [[4, 256], 6, 333],
      [[3, 257], 7, 701],
      [[4, 300], 6, 600],
      [[7, 300], 7, 701],
      [[1, 300], 5, 701],
    ] as const) {
      const image = torch.randn([2, 1, height, width])
      const result = F.interpolate(image, { size: sizes, alignCorners: align, mode: 'bilinear' })
      expect(bits(result), `${height}x${width} to ${sizes.join('x')}`).toEqual(bits(shrunkImage(image, sizes, align)))
    }
  })

  test('an infinity reaches only the elements that it is a part of', () => {
    for (let at = 0; at < 21; at++) {
      const line = torch.zeros([1, 1, 21])
      line.select(2, at).fill_(Infinity)
      const result = F.interpolate(line, { size: 9, mode: 'linear' })
      const isPart = Array.from({ length: 9 }, (_, i) => [0, 1].includes(at - Math.floor((i + 0.5) * (21 / 9) - 0.5)))
      expect(Array.from(result.toTypedArray(), (v) => v !== 0)).toEqual(isPart)
    }
  })
})

test('an infinite gradient reaches only the elements that it belongs to', () => {
  const x = torch.rand([1, 1, 2, 5], { requiresGrad: true })
  const g = torch.zeros([1, 1, 2, 10])
  g.select(3, 4).fill_(Infinity)
  F.interpolate(x, { size: [2, 10] }).backward(g)
  expect(x.grad?.toArray()).toEqual([
    [
      [
        [0, 0, Infinity, 0, 0],
        [0, 0, Infinity, 0, 0],
      ],
    ],
  ])
})

test('integers and truth values have their nearest neighbours', () => {
  for (const dtype of ['bool', 'uint8', 'int8', 'int16', 'int32', 'int64'] as const)
    expect(
      F.interpolate(torch.tensor([[[1, 0, 1]]], { dtype }), { size: 6 })
        .int()
        .toArray(),
    ).toEqual([[[1, 1, 0, 0, 1, 1]]])
})
