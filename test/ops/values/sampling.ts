// Sampling of images, grids of places, bags of embeddings, names of joins.
import { Plain, build, longs, sample, sumOf, t } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const image = sample([2, 2, 3, 4], 1)
const grid = sample([2, 2, 3, 2], 2, -1.4, 1.4)
const volume = sample([1, 1, 3, 2, 3], 3)
const places = sample([1, 2, 1, 2, 3], 4, -1.4, 1.4)

type Padding = 'zeros' | 'border' | 'reflection'
const clip = (v: number, size: number): number => Math.min(Math.max(v, 0), size - 1)
function mirrored(v: number, size: number, align: boolean): number {
  const [low, span] = align ? [0, size - 1] : [-0.5, size]
  const turn = Math.abs(v - low) % (2 * span)
  return clip((turn <= span ? turn : 2 * span - turn) + low, size)
}
const placed = (v: number, size: number, padding: Padding, align: boolean): number =>
  padding === 'zeros' ? v : padding === 'border' ? clip(v, size) : mirrored(v, size, align)
const located = (g: number, size: number, align: boolean): number => (align ? ((g + 1) / 2) * (size - 1) : ((g + 1) * size - 1) / 2)
/** Keys' kernel with PyTorch's constant. */
function cubic(x: number): number {
  const d = Math.abs(x)
  if (d < 1) return 1.25 * d ** 3 - 2.25 * d ** 2 + 1
  return d < 2 ? -0.75 * d ** 3 + 3.75 * d ** 2 - 6 * d + 3 : 0
}
const hat = (x: number): number => Math.max(0, 1 - Math.abs(x))

/** One sample: the elements within reach of a place, weighted by the kernel along each dimension. */
function at(
  read: (...index: number[]) => number,
  sizes: readonly number[],
  g: readonly number[],
  kernel: (x: number) => number,
  padding: Padding,
  align: boolean,
): number {
  const own = sizes.map((size, d) => {
    const v = located(g[sizes.length - 1 - d] ?? 0, size, align)
    return kernel === cubic ? v : placed(v, size, padding, align)
  })
  const visit = (d: number, index: readonly number[], weight: number): number => {
    const size = sizes[d]
    if (size === undefined) return weight * read(...index)
    const v = own[d] ?? 0
    return sumOf(4, (k) => {
      const tap = Math.floor(v) + k - 1
      const position = kernel === cubic ? Math.round(placed(tap, size, padding, align)) : tap
      return position < 0 || position >= size ? 0 : visit(d + 1, [...index, position], weight * kernel(v - tap))
    })
  }
  return visit(0, [], 1)
}

const sampled =
  (kernel: (x: number) => number, padding: Padding, align: boolean) =>
  (x: Plain, g: Plain): Plain =>
    build([...x.shape.slice(0, 2), ...g.shape.slice(1, -1)], (n, c, ...place) =>
      at(
        (...index) => x.at(n, c, ...index),
        x.shape.slice(2),
        Array.from({ length: x.shape.length - 2 }, (_, k) => g.at(n, ...place, k)),
        kernel,
        padding,
        align,
      ),
    )
const inHalf = { notInHalf: 'places near an edge move to another element' }
const nearest = (x: Plain, g: Plain): Plain =>
  build([2, 2, 2, 3], (n, c, i, j) => {
    const [column, row] = [4, 3].map((size, k) => Math.round(clip(located(g.at(n, i, j, k), size, false), size)))
    return x.at(n, c, row ?? 0, column ?? 0)
  })

const theta = sample([2, 2, 3], 5)
const table = sample([5, 3], 6)
const bags = longs([
  [0, 2],
  [2, 4],
  [1, 1],
])
const vector = longs([0, 2, 4, 4, 1])
/** The rows of each bag of `vector` for the offsets 0, 1, 4, 4. */
const ragged: readonly (readonly number[])[] = [[0], [2, 4, 4], [], [1]]
const tableOf = (args: readonly unknown[]): Plain => args.find((arg): arg is Plain => arg instanceof Plain && arg.kind === 'float') ?? table
const inBags =
  (rows: readonly (readonly number[])[], fn: (values: readonly number[]) => number) =>
  (...args: never[]): Plain =>
    build([rows.length, 3], (b, d) => fn((rows[b] ?? []).map((r) => tableOf(args).at(r, d))))
const added = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0)
const averaged = (values: readonly number[]): number => added(values) / Math.max(1, values.length)
const greatest = (values: readonly number[]): number => (values.length === 0 ? 0 : Math.max(...values))
const byFrequency = 'the gradient is divided by the number of occurrences, so that it is not that of the result'

export default {
  'torch.nn.functional.grid_sample': [
    { args: [image, grid], gives: sampled(hat, 'zeros', false), ...inHalf },
    { args: [image, grid, 'bilinear', 'border', true], gives: sampled(hat, 'border', true), ...inHalf },
    { args: [image, grid, { paddingMode: 'reflection', alignCorners: false }], gives: sampled(hat, 'reflection', false), ...inHalf },
    { args: [image, grid, { mode: 'nearest', paddingMode: 'border' }], gives: nearest, ...inHalf },
    { args: [image, grid, { mode: 'bicubic' }], gives: sampled(cubic, 'zeros', false), ...inHalf },
    { args: [image, grid, { mode: 'bicubic', paddingMode: 'reflection', alignCorners: true }], gives: sampled(cubic, 'reflection', true), ...inHalf },
    { args: [volume, places, { alignCorners: true }], gives: sampled(hat, 'zeros', true), ...inHalf },
    { args: [volume, places, { paddingMode: 'reflection' }], gives: sampled(hat, 'reflection', false), ...inHalf },
  ],
  'torch.grid_sampler': [
    { args: [image, grid, 0, 1, true], gives: sampled(hat, 'border', true), ...inHalf },
    { args: [image, grid, 2, 2, true], gives: sampled(cubic, 'reflection', true), ...inHalf },
  ],
  'torch.grid_sampler_2d': [{ args: [image, grid, 1, 1, false], gives: nearest, ...inHalf }],
  'torch.grid_sampler_3d': [{ args: [volume, places, 0, 2, false], gives: sampled(hat, 'reflection', false), ...inHalf }],
  'torch.nn.functional.affine_grid': [
    {
      args: [theta, [2, 1, 3, 4]],
      gives: (m: Plain) =>
        build([2, 3, 4, 2], (n, i, j, k) => m.at(n, k, 0) * ((2 * j + 1) / 4 - 1) + m.at(n, k, 1) * ((2 * i + 1) / 3 - 1) + m.at(n, k, 2)),
    },
    {
      args: [sample([1, 3, 4], 7), [1, 2, 2, 1, 3], { alignCorners: true }],
      gives: (m: Plain) => build([1, 2, 1, 3, 3], (n, z, _, x, k) => m.at(n, k, 0) * (x - 1) + m.at(n, k, 2) * (2 * z - 1) + m.at(n, k, 3)),
    },
  ],
  'torch.nn.functional.embedding': [
    {
      args: [longs([2, 0, 2]), table, { scaleGradByFreq: true }],
      gives: (i: Plain, w: Plain) => build([3, 3], (n, d) => w.at(i.at(n), d)),
      noGradient: byFrequency,
    },
  ],
  'torch.nn.functional.embedding_bag': [
    {
      args: [bags, table],
      gives: inBags(
        [
          [0, 2],
          [2, 4],
          [1, 1],
        ],
        averaged,
      ),
    },
    {
      args: [bags, table, { mode: 'sum', paddingIdx: 2 }],
      gives: inBags([[0], [4], [1, 1]], added),
      gradient: (_: Plain, w: Plain) => build(w.shape, (row) => [1, 2, 0, 0, 1][row] ?? 0),
    },
    {
      args: [bags, table, { mode: 'max', paddingIdx: -1 }],
      gives: inBags([[0, 2], [2], [1, 1]], greatest),
      noGradient: 'rows of the padding get none',
    },
    { args: [vector, table, longs([0, 1, 4, 4])], gives: inBags(ragged, averaged) },
    { args: [vector, table, longs([0, 1, 4, 4]), { mode: 'max' }], gives: inBags(ragged, greatest) },
    { args: [vector, table, { offsets: longs([0, 1, 4]), mode: 'sum', includeLastOffset: true }], gives: inBags(ragged.slice(0, 2), added) },
    {
      args: [bags, table, { mode: 'sum', perSampleWeights: sample([3, 2], 8) }],
      gives: (i: Plain, w: Plain, { perSampleWeights: f }: { perSampleWeights: Plain }) =>
        build([3, 3], (b, d) => sumOf(2, (k) => f.at(b, k) * w.at(i.at(b, k), d))),
    },
  ],
  'torch.concat': [{ args: [[t([1, 2]), t([3])]], gives: t([1, 2, 3]) }],
  'torch.concatenate': [
    {
      args: [[t([[1], [2]]), t([[3], [4]])], { dim: 1 }],
      gives: t([
        [1, 3],
        [2, 4],
      ]),
    },
  ],
} satisfies ValueCases
