// Pooling.
import { Plain, build, sample, t, total } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

interface Pool {
  readonly kernel: readonly [number, number]
  readonly stride?: readonly [number, number]
  readonly padding?: readonly [number, number]
  readonly dilation?: readonly [number, number]
  readonly ceil?: boolean
  readonly countPadding?: boolean
  readonly divisor?: number
}

function count(size: number, kernel: number, stride: number, padding: number, dilation: number, ceil: boolean): number {
  const span = (size + 2 * padding - dilation * (kernel - 1) - 1) / stride
  const windows = (ceil ? Math.ceil(span) : Math.floor(span)) + 1
  return ceil && (windows - 1) * stride >= size + padding ? windows - 1 : windows
}

/** For each output element, the positions in the plane that its window covers, and how many taps lie in the padded image. */
function windows(x: Plain, { kernel, stride = kernel, padding = [0, 0], dilation = [1, 1], ceil = false }: Pool) {
  const [height = 0, width = 0] = x.shape.slice(-2)
  const rows = count(height, kernel[0], stride[0], padding[0], dilation[0], ceil)
  const columns = count(width, kernel[1], stride[1], padding[1], dilation[1], ceil)
  const window = (i: number, j: number) => {
    const inside: number[] = []
    let padded = 0
    for (let p = 0; p < kernel[0]; p++)
      for (let q = 0; q < kernel[1]; q++) {
        const [r, c] = [i * stride[0] + p * dilation[0] - padding[0], j * stride[1] + q * dilation[1] - padding[1]]
        if (r >= 0 && r < height && c >= 0 && c < width) inside.push(r * width + c)
        if (r < height + padding[0] && c < width + padding[1]) padded++
      }
    return { inside, padded }
  }
  return {
    shape: [...x.shape.slice(0, -2), rows, columns],
    window,
    valueAt: (lead: readonly number[], position: number) => x.at(...lead, Math.floor(position / width), position % width),
  }
}

/** Builds an output from the window of each element. */
function pooled(
  x: Plain,
  pool: Pool,
  fn: (values: readonly number[], positions: readonly number[], padded: number) => number,
  kind: Plain['kind'] = x.kind,
): Plain {
  const { shape, window, valueAt } = windows(x, pool)
  return build(
    shape,
    (...at) => {
      const [lead, [i = 0, j = 0]] = [at.slice(0, -2), at.slice(-2)]
      const { inside, padded } = window(i, j)
      return fn(
        inside.map((position) => valueAt(lead, position)),
        inside,
        padded,
      )
    },
    kind,
  )
}

const maxOf = (x: Plain, pool: Pool): readonly [Plain, Plain] => [
  pooled(x, pool, (values) => Math.max(...values)),
  pooled(x, pool, (values, positions) => positions[values.indexOf(Math.max(...values))] ?? NaN, 'int64'),
]
const divisorOf = ({ countPadding = true, divisor }: Pool, values: readonly unknown[], padded: number): number =>
  divisor ?? (countPadding ? padded : values.length)
const avgOf = (x: Plain, pool: Pool): Plain => pooled(x, pool, (values, _, padded) => total(values) / divisorOf(pool, values, padded))

function avgBackward(g: Plain, x: Plain, pool: Pool): Plain {
  const { window, shape } = windows(x, pool)
  const [rows = 0, columns = 0] = shape.slice(-2)
  const [, width = 0] = x.shape.slice(-2)
  return build(x.shape, (...at) => {
    const [lead, [r = 0, c = 0]] = [at.slice(0, -2), at.slice(-2)]
    let sum = 0
    for (let i = 0; i < rows; i++)
      for (let j = 0; j < columns; j++) {
        const { inside, padded } = window(i, j)
        if (inside.includes(r * width + c)) sum += g.at(...lead, i, j) / divisorOf(pool, inside, padded)
      }
    return sum
  })
}

/** Means over stretches from floor(i * n / count) to ceil((i + 1) * n / count). */
function adaptive(x: Plain, rows: number, columns: number): Plain {
  const [height = 0, width = 0] = x.shape.slice(-2)
  const stretch = (i: number, n: number, counts: number): number[] =>
    Array.from({ length: n }, (_, k) => k).filter((k) => k >= Math.floor((i * n) / counts) && k < Math.ceil(((i + 1) * n) / counts))
  return build([...x.shape.slice(0, -2), rows, columns], (...at) => {
    const [lead, [i = 0, j = 0]] = [at.slice(0, -2), at.slice(-2)]
    const values = stretch(i, height, rows).flatMap((r) => stretch(j, width, columns).map((c) => x.at(...lead, r, c)))
    return total(values) / values.length
  })
}

const image = sample([2, 2, 5, 6], 1)
const [two, padded, ceiled]: Pool[] = [
  { kernel: [2, 2] },
  { kernel: [3, 2], stride: [2, 1], padding: [1, 1] },
  { kernel: [3, 3], stride: [2, 2], ceil: true },
]
const dilated: Pool = { kernel: [2, 2], stride: [1, 2], dilation: [2, 3] }
const unpadded: Pool = { kernel: [3, 2], stride: [2, 1], padding: [1, 1], ceil: true, countPadding: false }
const fixed: Pool = { kernel: [2, 2], divisor: 3 }
const max = (pool: Pool | undefined) => (x: Plain) => maxOf(x, pool as Pool)
const onlyMax = (pool: Pool | undefined) => (x: Plain) => maxOf(x, pool as Pool)[0]
const avg = (pool: Pool | undefined) => (x: Plain) => avgOf(x, pool as Pool)

export default {
  'torch.ops.tensorfx.max_pool2d_with_indices': [
    { args: [image, 2, null, 0, 1, false], gives: max(two) },
    { args: [image, [3, 2], [2, 1], 1, 1, false], gives: max(padded) },
    { args: [image, 3, 2, 0, 1, true], gives: max(ceiled) },
    { args: [image, 2, [1, 2], 0, [2, 3], false], gives: max(dilated) },
  ],
  'torch.nn.functional.max_pool2d': [
    { args: [image, 2], gives: onlyMax(two) },
    { args: [image, [3, 2], { stride: [2, 1], padding: [1], returnIndices: true }], gives: max(padded) },
    { args: [sample([2, 5, 6], 1), [3], 2, { ceilMode: true }], gives: onlyMax(ceiled) },
    { args: [image, 2, [], 0], gives: onlyMax(two) },
  ],
  'torch.ops.tensorfx.max_pool2d_backward': [
    {
      args: [
        t([
          [
            [5, 6],
            [7, 8],
          ],
        ]),
        t([
          [
            [0, 3],
            [3, 8],
          ],
        ]).as('int64'),
        3,
        3,
      ],
      gives: t([
        [
          [5, 0, 0],
          [13, 0, 0],
          [0, 0, 8],
        ],
      ]),
    },
  ],
  'torch.nn.functional.avg_pool2d': [
    { args: [image, 2], gives: avg(two) },
    { args: [image, [3, 2], [2, 1], 1], gives: avg(padded) },
    { args: [image, [3, 2], [2, 1], 1, { ceilMode: true, countIncludePad: false }], gives: avg(unpadded) },
    { args: [image, 3, { stride: 2, ceilMode: true }], gives: avg(ceiled) },
    { args: [image, 2, { divisorOverride: 3 }], gives: avg(fixed) },
    { args: [sample([2, 5, 6], 1), 2], gives: avg(two) },
  ],
  'torch.ops.tensorfx.avg_pool2d_backward': [
    { args: [sample([2, 2, 2, 3], 2), image, 2, null, 0, false, true, null], gives: (g: Plain, x: Plain) => avgBackward(g, x, two as Pool) },
    {
      args: [sample([2, 2, 3, 7], 2), image, [3, 2], [2, 1], 1, false, true, null],
      gives: (g: Plain, x: Plain) => avgBackward(g, x, padded as Pool),
    },
    { args: [sample([2, 2, 3, 7], 2), image, [3, 2], [2, 1], 1, true, false, null], gives: (g: Plain, x: Plain) => avgBackward(g, x, unpadded) },
    { args: [sample([2, 2, 2, 3], 2), image, 2, null, 0, false, true, 3], gives: (g: Plain, x: Plain) => avgBackward(g, x, fixed) },
  ],
  'torch.nn.functional.adaptive_avg_pool2d': [
    { args: [image, 1], gives: (x: Plain) => adaptive(x, 1, 1) },
    { args: [image, [5, 3]], gives: (x: Plain) => adaptive(x, 5, 3) },
    { args: [image, [3, 4]], gives: (x: Plain) => adaptive(x, 3, 4) },
    { args: [image, [null, 6]], gives: (x: Plain) => x },
    { args: [image, [1, 4]], gives: (x: Plain) => adaptive(x, 1, 4) },
  ],
} satisfies ValueCases
