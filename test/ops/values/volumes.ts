// Convolutions of volumes, patches of images, the bilinear form, normalizations without a mean.
import { Plain, build, sample, sumOf, t, total } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

type Triple = readonly [number, number, number]
const once: Triple = [1, 1, 1]
const volume = sample([1, 2, 4, 3, 3], 1)
const filter = sample([2, 2, 2, 2, 3], 2)
const bias = sample([2], 3)

/** The convolution: element i of the result along a dimension reads element i stride + k dilation - padding. */
function conv3d(x: Plain, w: Plain, b: Plain | null, out: Triple, stride = once, padding: Triple = [0, 0, 0], dilation = once, groups = 1): Plain {
  const [n = 0, , depth = 0, height = 0, width = 0] = x.shape
  const [features = 0, channels = 0, kd = 0, kh = 0, kw = 0] = w.shape
  const read = (batch: number, c: number, i: number, j: number, k: number): number =>
    i >= 0 && j >= 0 && k >= 0 && i < depth && j < height && k < width ? x.at(batch, c, i, j, k) : 0
  return build([n, features, ...out], (batch, o, i, j, k) => {
    const first = Math.floor(o / (features / groups)) * channels
    const place = (at: number, tap: number, d: 0 | 1 | 2): number => at * stride[d] + tap * dilation[d] - padding[d]
    return (
      (b?.at(o) ?? 0) +
      sumOf(channels, (c) =>
        sumOf(kd, (p) =>
          sumOf(kh, (q) => sumOf(kw, (r) => read(batch, first + c, place(i, p, 0), place(j, q, 1), place(k, r, 2)) * w.at(o, c, p, q, r))),
        ),
      )
    )
  })
}

const small = sample([1, 2, 2, 2, 2], 4)
const turning = sample([2, 1, 2, 2, 2], 5)
const images = sample([2, 2, 3, 4], 6)
/** Element [p, q] of the patch at [i, j]. */
const unfolded = (x: Plain, stride: number, padding: number, rows: number, columns: number): Plain => {
  const [n = 0, channels = 0, height = 0, width = 0] = x.shape
  return build([n, channels * 4, rows * columns], (b, tap, at) => {
    const [c, p, q] = [Math.floor(tap / 4), Math.floor(tap / 2) % 2, tap % 2]
    const [i, j] = [Math.floor(at / columns) * stride + p - padding, (at % columns) * stride + q - padding]
    return i >= 0 && j >= 0 && i < height && j < width ? x.at(b, c, i, j) : 0
  })
}
const columns = sample([1, 4, 6], 7)
const folded = (x: Plain): Plain =>
  build([1, 1, 3, 4], (b, _, i, j) =>
    sumOf(4, (tap) => {
      const [row, column] = [i - Math.floor(tap / 2), j - (tap % 2)]
      return row >= 0 && row < 2 && column >= 0 && column < 3 ? x.at(b, tap, row * 3 + column) : 0
    }),
  )

/** 1 / sqrt(mean of squares + eps) of the rows. */
const roots = (x: Plain, eps: number): Plain => {
  const line = x.shape.at(-1) ?? 1
  return build([...x.shape.slice(0, -1), 1], (...at) => 1 / Math.sqrt(sumOf(line, (k) => x.at(...at.slice(0, -1), k) ** 2) / line + eps))
}

/** The gradients of rows divided by their root mean square, whose inverses are `inverse`. */
function rmsBackward(g: Plain, x: Plain, _: unknown, inverse: Plain, weight: Plain | null): readonly [Plain, Plain] {
  const [rows = 0, line = 0] = x.shape
  const weighted = (i: number, j: number): number => g.at(i, j) * (weight?.at(j) ?? 1)
  const gi = build(x.shape, (i, j) => {
    const slope = sumOf(line, (k) => weighted(i, k) * x.at(i, k)) / line
    return inverse.at(i, 0) * weighted(i, j) - x.at(i, j) * inverse.at(i, 0) ** 3 * slope
  })
  return [gi, build([line], (j) => sumOf(rows, (i) => g.at(i, j) * x.at(i, j) * inverse.at(i, 0)))]
}

const rms = (x: Plain, weight: Plain | null, eps: number): Plain =>
  build(x.shape, (...at) => {
    const line = x.shape.at(-1) ?? 1
    const squares = sumOf(line, (k) => x.at(...at.slice(0, -1), k) ** 2) / line
    return (x.at(...at) / Math.sqrt(squares + eps)) * (weight?.at(at.at(-1) ?? 0) ?? 1)
  })

export default {
  'torch.nn.functional.conv3d': [
    { args: [volume, filter, bias], gives: (x: Plain, w: Plain, b: Plain) => conv3d(x, w, b, [3, 2, 1]) },
    {
      args: [volume, filter, null, { stride: [2, 1, 2], padding: [1, 0, 1], dilation: [2, 1, 1] }],
      gives: (x: Plain, w: Plain) => conv3d(x, w, null, [2, 2, 2], [2, 1, 2], [1, 0, 1], [2, 1, 1]),
    },
    {
      args: [volume, sample([2, 1, 2, 2, 2], 8), bias, { groups: 2, padding: 'same' }],
      gives: (x: Plain, w: Plain, b: Plain) => conv3d(x, w, b, [4, 3, 3], once, [0, 0, 0], once, 2),
    },
    {
      args: [volume.reshape(2, 4, 3, 3), filter, null, 1, 'valid'],
      gives: (x: Plain, w: Plain) => conv3d(x.reshape(1, 2, 4, 3, 3), w, null, [3, 2, 1]).reshape(2, 3, 2, 1),
    },
  ],
  'torch.nn.functional.conv_transpose3d': [
    {
      args: [small, turning, null, { stride: 2, outputPadding: [1, 0, 0], groups: 2 }],
      gives: (x: Plain, w: Plain) =>
        build([1, 2, 5, 4, 4], (_, c, i, j, k) =>
          i > 3 ? 0 : x.at(0, c, Math.floor(i / 2), Math.floor(j / 2), Math.floor(k / 2)) * w.at(c, 0, i % 2, j % 2, k % 2),
        ),
    },
    {
      args: [small, turning, sample([1], 9), { padding: 1 }],
      gives: (x: Plain, w: Plain, b: Plain) =>
        build(
          [1, 1, 1, 1, 1],
          () =>
            b.at(0) +
            sumOf(2, (c) =>
              sumOf(8, (at) => x.at(0, c, at >> 2, (at >> 1) & 1, at & 1) * w.at(c, 0, 1 - (at >> 2), 1 - ((at >> 1) & 1), 1 - (at & 1))),
            ),
        ),
    },
  ],
  'torch.conv_tbc': [
    {
      args: [sample([4, 2, 3], 10), sample([2, 3, 2], 11), sample([2], 12), 1],
      gives: (x: Plain, w: Plain, b: Plain) =>
        build(
          [5, 2, 2],
          (time, n, o) => b.at(o) + sumOf(2, (k) => (time + k < 1 || time + k > 4 ? 0 : sumOf(3, (c) => x.at(time + k - 1, n, c) * w.at(k, c, o)))),
        ),
    },
  ],
  'torch.nn.functional.unfold': [
    { args: [images, 2], gives: (x: Plain) => unfolded(x, 1, 0, 2, 3) },
    { args: [images, [2, 2], { padding: 1, stride: 2 }], gives: (x: Plain) => unfolded(x, 2, 1, 2, 3) },
    { args: [images.reshape(4, 3, 4), 2], gives: (x: Plain) => unfolded(x.reshape(1, 4, 3, 4), 1, 0, 2, 3).reshape(16, 6) },
  ],
  'torch.nn.functional.fold': [
    { args: [columns, [3, 4], 2], gives: folded },
    { args: [columns.reshape(4, 6), [3, 4], 2], gives: (x: Plain) => folded(x.reshape(1, 4, 6)).reshape(1, 3, 4) },
    // Row 1 of the padded image is the lower row of patch 0 and the upper one of patch 1.
    {
      args: [
        t([
          [
            [1, 2],
            [3, 4],
            [5, 6],
            [7, 8],
          ],
        ]),
        [1, 2],
        2,
        { padding: [1, 0], stride: 1 },
      ],
      gives: t([[[[5 + 2, 7 + 4]]]]),
    },
  ],
  'torch.nn.functional.bilinear': [
    {
      args: [sample([2, 3], 13), sample([2, 4], 14), sample([2, 3, 4], 15), sample([2], 16)],
      gives: (a: Plain, c: Plain, w: Plain, b: Plain) =>
        build([2, 2], (n, o) => b.at(o) + sumOf(3, (i) => sumOf(4, (j) => a.at(n, i) * w.at(o, i, j) * c.at(n, j)))),
    },
    {
      args: [sample([2], 17), sample([1], 18), sample([3, 2, 1], 19)],
      gives: (a: Plain, c: Plain, w: Plain) => build([3], (o) => sumOf(2, (i) => a.at(i) * w.at(o, i, 0) * c.at(0))),
    },
  ],
  'torch.nn.functional.rms_norm': [
    { args: [sample([2, 3, 4], 20), [4], { eps: 0.1 }], gives: (x: Plain) => rms(x, null, 0.1) },
    { args: [sample([3, 4], 21), [4], sample([4], 22), 1e-3], gives: (x: Plain, _: unknown, w: Plain) => rms(x, w, 1e-3) },
  ],
  'torch.ops.tensorfx.fused_rms_norm': [
    {
      args: [sample([3, 4], 21), [4], sample([4], 22), 1e-3],
      gives: (x: Plain, _: unknown, w: Plain) => [rms(x, w, 1e-3), roots(x, 1e-3)],
      differentiable: 1,
    },
    { args: [sample([2, 3, 5], 20), [5], null, 0.1], gives: (x: Plain) => [rms(x, null, 0.1), roots(x, 0.1)], differentiable: 1 },
  ],
  'torch.ops.tensorfx.fused_rms_norm_backward': [
    {
      args: [sample([3, 4], 1), sample([3, 4], 21), [4], sample([3, 1], 2), sample([4], 22)],
      gives: rmsBackward,
      noGradient: 'it is never recorded',
    },
    { args: [sample([3, 4], 1), sample([3, 4], 21), [4], sample([3, 1], 2), null], gives: rmsBackward, noGradient: 'it is never recorded' },
  ],
  'torch.nn.functional.local_response_norm': [
    {
      args: [sample([2, 4, 2], 23), 3, { alpha: 0.3, beta: 0.5, k: 2 }],
      gives: (x: Plain) =>
        build(x.shape, (n, c, i) => {
          const around = [c - 1, c, c + 1].filter((at) => at >= 0 && at < 4).map((at) => x.at(n, at, i) ** 2)
          return x.at(n, c, i) / (2 + (0.3 * total(around)) / 3) ** 0.5
        }),
    },
  ],
} satisfies ValueCases
