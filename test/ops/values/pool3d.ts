// Pooling in one and three dimensions, adaptive and fractional pooling, pooling by powers, and the inverse of pooling by maximum.
import { Plain, build, longs, sample, total } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

/** The span of a window along one dimension: [first place, last place + 1, step]; places outside the input are left out by the reference. */
type Span = readonly [number, number, number]

const volume = sample([1, 2, 3, 4, 3], 1)
const image = sample([2, 5, 4], 2)
const line = sample([2, 7], 3)
const positive = sample([1, 1, 4, 4], 4, 0.2, 2)

/** The flat positions and the values of the places of `x` that lie in the spans. */
function inside(x: Plain, lead: readonly number[], spans: readonly Span[]): { readonly values: number[]; readonly positions: number[] } {
  const sizes = x.shape.slice(-spans.length)
  let places: readonly (readonly number[])[] = [[]]
  spans.forEach(([start, end, step], d) => {
    const own: number[] = []
    for (let at = start; at < end; at += step) if (at >= 0 && at < (sizes[d] ?? 0)) own.push(at)
    places = places.flatMap((place) => own.map((at) => [...place, at]))
  })
  return {
    values: places.map((place) => x.at(...lead, ...place)),
    positions: places.map((place) => place.reduce((flat, at, d) => flat * (sizes[d] ?? 1) + at, 0)),
  }
}

/** An output of the sizes `out`, whose element at i is `fn` of the window with the spans `spanOf(d, i)`. */
function pooled(
  x: Plain,
  out: readonly number[],
  spanOf: (d: number, i: number) => Span,
  fn: (values: number[], positions: number[]) => number,
  kind: Plain['kind'] = 'float',
): Plain {
  return build(
    [...x.shape.slice(0, -out.length), ...out],
    (...at) => {
      const { values, positions } = inside(
        x,
        at.slice(0, -out.length),
        at.slice(-out.length).map((i, d) => spanOf(d, i)),
      )
      return fn(values, positions)
    },
    kind,
  )
}

const greatest = (values: number[]): number => Math.max(...values)
const place = (values: number[], positions: number[]): number => positions[values.indexOf(Math.max(...values))] ?? NaN
const average = (values: number[]): number => total(values) / values.length
const norm = (p: number) => (values: number[]) => total(values.map((v) => v ** p)) ** (1 / p)
const steps =
  (kernel: number, stride: number, padding = 0, dilation = 1) =>
  (_: number, i: number): Span => [i * stride - padding, i * stride - padding + (kernel - 1) * dilation + 1, dilation]
const parts =
  (x: Plain, out: readonly number[]) =>
  (d: number, i: number): Span => {
    const [size, count] = [x.shape.slice(-out.length)[d] ?? 1, out[d] ?? 1]
    return [Math.floor((i * size) / count), Math.ceil(((i + 1) * size) / count), 1]
  }
const both = (x: Plain, out: readonly number[], spanOf: (d: number, i: number) => Span): readonly Plain[] => [
  pooled(x, out, spanOf, greatest),
  pooled(x, out, spanOf, place, 'int64'),
]
const UNEVEN = 'powers of rounded numbers'

export default {
  'torch.nn.functional.max_pool1d': [
    { args: [line, 2], gives: (x: Plain) => pooled(x, [3], steps(2, 2), greatest) },
    { args: [line, 3, 2, 1], gives: (x: Plain) => pooled(x, [4], steps(3, 2, 1), greatest) },
    { args: [line, 2, { dilation: 2, stride: 1, returnIndices: true }], gives: (x: Plain) => both(x, [5], steps(2, 1, 0, 2)), differentiable: 1 },
  ],
  'torch.nn.functional.max_pool3d': [
    { args: [volume, 2], gives: (x: Plain) => pooled(x, [1, 2, 1], steps(2, 2), greatest) },
    { args: [volume, 3, 2, 1], gives: (x: Plain) => pooled(x, [2, 2, 2], steps(3, 2, 1), greatest) },
    { args: [volume, 2, { stride: 1, returnIndices: true }], gives: (x: Plain) => both(x, [2, 3, 2], steps(2, 1)), differentiable: 1 },
  ],
  'torch.nn.functional.avg_pool1d': [
    { args: [line, 2], gives: (x: Plain) => pooled(x, [3], steps(2, 2), average) },
    { args: [line, 3, { stride: 2, padding: 1, countIncludePad: false }], gives: (x: Plain) => pooled(x, [4], steps(3, 2, 1), average) },
  ],
  'torch.nn.functional.avg_pool3d': [
    { args: [volume, 2], gives: (x: Plain) => pooled(x, [1, 2, 1], steps(2, 2), average) },
    { args: [volume, 3, 2, 1], gives: (x: Plain) => pooled(x, [2, 2, 2], steps(3, 2, 1), (values) => total(values) / 27) },
    { args: [volume, 2, { stride: 2, divisorOverride: 3 }], gives: (x: Plain) => pooled(x, [1, 2, 1], steps(2, 2), (values) => total(values) / 3) },
    { args: [volume, 2, { ceilMode: true }], gives: (x: Plain) => pooled(x, [2, 2, 2], steps(2, 2), average) },
  ],
  'torch.nn.functional.adaptive_avg_pool1d': [{ args: [line, 3], gives: (x: Plain) => pooled(x, [3], parts(x, [3]), average) }],
  'torch.nn.functional.adaptive_avg_pool3d': [
    { args: [volume, [2, null, 2]], gives: (x: Plain) => pooled(x, [2, 4, 2], parts(x, [2, 4, 2]), average) },
    { args: [volume, 1], gives: (x: Plain) => pooled(x, [1, 1, 1], parts(x, [1, 1, 1]), average) },
  ],
  'torch.nn.functional.adaptive_max_pool1d': [
    { args: [line, 3], gives: (x: Plain) => pooled(x, [3], parts(x, [3]), greatest) },
    { args: [line, 3, true], gives: (x: Plain) => both(x, [3], parts(x, [3])), differentiable: 1 },
  ],
  'torch.nn.functional.adaptive_max_pool2d': [
    { args: [image, [3, 2]], gives: (x: Plain) => pooled(x, [3, 2], parts(x, [3, 2]), greatest) },
    { args: [image, [null, 3], { returnIndices: true }], gives: (x: Plain) => both(x, [5, 3], parts(x, [5, 3])), differentiable: 1 },
  ],
  'torch.nn.functional.adaptive_max_pool3d': [{ args: [volume, 2], gives: (x: Plain) => pooled(x, [2, 2, 2], parts(x, [2, 2, 2]), greatest) }],
  'torch.nn.functional.lp_pool1d': [
    { args: [sample([2, 7], 3, 0.2, 2), 3, 3, { stride: 2 }], gives: (x: Plain) => pooled(x, [3], steps(3, 2), norm(3)), notInHalf: UNEVEN },
  ],
  'torch.nn.functional.lp_pool2d': [{ args: [positive, 2, 2], gives: (x: Plain) => pooled(x, [2, 2], steps(2, 2), norm(2)), notInHalf: UNEVEN }],
  'torch.nn.functional.lp_pool3d': [
    { args: [sample([1, 2, 2, 2], 5, 0.2, 2), 2, 2], gives: (x: Plain) => pooled(x, [1, 1, 1], steps(2, 2), norm(2)), notInHalf: UNEVEN },
  ],
  'torch.nn.functional.max_unpool1d': [
    {
      args: [sample([1, 2], 6), longs([[3, 0]]), 2],
      gives: (x: Plain) => new Plain([1, 4], [x.data[1] ?? NaN, 0, 0, x.data[0] ?? NaN]),
    },
    {
      args: [sample([1, 2], 6), longs([[4, 1]]), 2, { outputSize: [5] }],
      gives: (x: Plain) => new Plain([1, 5], [0, x.data[1] ?? NaN, 0, 0, x.data[0] ?? NaN]),
    },
  ],
  'torch.nn.functional.max_unpool2d': [
    { args: [sample([1, 1, 1], 7), longs([[[2]]]), 2], gives: (x: Plain) => new Plain([1, 2, 2], [0, 0, x.data[0] ?? NaN, 0]) },
  ],
  'torch.nn.functional.max_unpool3d': [
    { args: [sample([1, 1, 1, 1], 7), longs([[[[5]]]]), 2], gives: (x: Plain) => new Plain([1, 2, 2, 2], [0, 0, 0, 0, 0, x.data[0] ?? NaN, 0, 0]) },
  ],
  // One window per dimension, which is all of the input: nothing is random.
  'torch.nn.functional.fractional_max_pool2d': [
    { args: [image, [5, 4], { outputSize: 1 }], gives: (x: Plain) => pooled(x, [1, 1], parts(x, [1, 1]), greatest), readsValues: true },
  ],
  'torch.nn.functional.fractional_max_pool3d': [
    {
      args: [volume, [3, 4, 3], { outputSize: 1, returnIndices: true }],
      gives: (x: Plain) => both(x, [1, 1, 1], parts(x, [1, 1, 1])),
      differentiable: 1,
      readsValues: true,
    },
  ],
} satisfies ValueCases
