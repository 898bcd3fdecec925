// Convolutions.
import { Plain, build, ints, sample, sumOf } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

type Pair = readonly [number, number]
interface Window {
  readonly stride?: Pair
  readonly padding?: Pair
  readonly dilation?: Pair
  readonly groups?: number
  /** Further zeros at the end. */
  readonly extra?: Pair
}

const outSize = (size: number, kernel: number, stride: number, padding: number, dilation: number): number =>
  Math.floor((size + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1

/** Visits each (output, input, weight) index triple of a convolution whose input index is inside the image. */
function visit(
  x: readonly number[],
  w: readonly number[],
  window: Window,
  fn: (out: number[], input: number[], weight: number[]) => void,
): readonly number[] {
  const [n = 0, , height = 0, width = 0] = x
  const [features = 0, channels = 0, kh = 0, kw = 0] = w
  const { stride = [1, 1], padding = [0, 0], dilation = [1, 1], groups = 1, extra = [0, 0] } = window
  const oh = outSize(height + extra[0], kh, stride[0], padding[0], dilation[0])
  const ow = outSize(width + extra[1], kw, stride[1], padding[1], dilation[1])
  for (let b = 0; b < n; b++)
    for (let f = 0; f < features; f++)
      for (let i = 0; i < oh; i++)
        for (let j = 0; j < ow; j++)
          for (let c = 0; c < channels; c++)
            for (let p = 0; p < kh; p++)
              for (let q = 0; q < kw; q++) {
                const row = i * stride[0] + p * dilation[0] - padding[0]
                const column = j * stride[1] + q * dilation[1] - padding[1]
                const channel = Math.floor(f / (features / groups)) * channels + c
                if (row >= 0 && row < height && column >= 0 && column < width) fn([b, f, i, j], [b, channel, row, column], [f, c, p, q])
              }
  return [n, features, oh, ow]
}

const flat = (shape: readonly number[], index: readonly number[]): number => shape.reduce((n, size, d) => n * size + (index[d] ?? 0), 0)

export function conv2d(x: Plain, w: Plain, bias: Plain | null, window: Window = {}): Plain {
  const sums = new Map<string, number>()
  const shape = visit(x.shape, w.shape, window, (out, input, weight) =>
    sums.set(out.join(), (sums.get(out.join()) ?? 0) + x.at(...input) * w.at(...weight)),
  )
  return build(shape, (...at) => (sums.get(at.join()) ?? 0) + (bias?.at(at[1] ?? 0) ?? 0))
}

function gradients(g: Plain, x: Plain, w: Plain, window: Window): readonly [Plain, Plain] {
  const [gi, gw] = [x.data.map(() => 0), w.data.map(() => 0)]
  visit(x.shape, w.shape, window, (out, input, weight) => {
    gi[flat(x.shape, input)] = (gi[flat(x.shape, input)] ?? 0) + g.at(...out) * w.at(...weight)
    gw[flat(w.shape, weight)] = (gw[flat(w.shape, weight)] ?? 0) + g.at(...out) * x.at(...input)
  })
  return [new Plain(x.shape, gi), new Plain(w.shape, gw)]
}

const image = sample([2, 2, 5, 4], 1)
const filter = sample([3, 2, 3, 2], 2)
const bias = sample([3], 3)
const grouped = { groups: 2, dilation: [2, 1], padding: [2, 1] } as const
const strided = { stride: [2, 1], padding: [1, 1] } as const
const nothing = build([0], () => 0)
const line = (x: Plain): Plain => x.reshape(...x.shape.slice(0, -1), 1, ...x.shape.slice(-1))
const conv1d = (x: Plain, w: Plain, b: Plain | null, window: Window = {}): Plain => {
  const out = conv2d(line(x), line(w), b, window)
  return out.reshape(...out.shape.slice(0, 2), ...out.shape.slice(3))
}
const gradOut = sample([2, 3, 3, 5], 4)

export default {
  'torch.ops.tensorfx.convolution': [
    { args: [image, filter, bias, [1, 1], [0, 0], [1, 1], 1], gives: (x: Plain, w: Plain, b: Plain) => conv2d(x, w, b) },
    { args: [image, filter, null, [2, 1], [1, 1], [1, 1], 1], gives: (x: Plain, w: Plain) => conv2d(x, w, null, strided) },
    {
      args: [sample([1, 4, 5, 4], 1), sample([4, 2, 2, 2], 2), null, [1, 1], [2, 1], [2, 1], 2],
      gives: (x: Plain, w: Plain) => conv2d(x, w, null, grouped),
    },
  ],
  'torch.ops.tensorfx.convolution_backward': [
    { args: [gradOut, image, filter, [2, 1], [1, 1], [1, 1], 1, true, true], gives: (g: Plain, x: Plain, w: Plain) => gradients(g, x, w, strided) },
    {
      args: [gradOut, image, filter, [2, 1], [1, 1], [1, 1], 1, true, false],
      gives: (g: Plain, x: Plain, w: Plain) => [gradients(g, x, w, strided)[0], nothing],
    },
    {
      args: [gradOut, image, filter, [2, 1], [1, 1], [1, 1], 1, false, true],
      gives: (g: Plain, x: Plain, w: Plain) => [nothing, gradients(g, x, w, strided)[1]],
    },
    {
      args: [sample([1, 4, 7, 5], 5), sample([1, 4, 5, 4], 1), sample([4, 2, 2, 2], 2), [1, 1], [2, 1], [2, 1], 2, true, true],
      gives: (g: Plain, x: Plain, w: Plain) => gradients(g, x, w, grouped),
    },
  ],
  'torch.nn.functional.conv2d': [
    { args: [image, filter, bias], gives: (x: Plain, w: Plain, b: Plain) => conv2d(x, w, b) },
    { args: [image, filter, null, { stride: [2, 1], padding: 1 }], gives: (x: Plain, w: Plain) => conv2d(x, w, null, strided) },
    {
      args: [image, filter, { bias, padding: 'valid', stride: 2 }],
      gives: (x: Plain, w: Plain, options: { bias: Plain }) => conv2d(x, w, options.bias, { stride: [2, 2] }),
    },
    { args: [image, filter, null, 1, 'same'], gives: (x: Plain, w: Plain) => conv2d(x, w, null, { padding: [1, 0], extra: [0, 1] }) },
    { args: [sample([2, 5, 4], 1), filter], gives: (x: Plain, w: Plain) => conv2d(x.reshape(1, 2, 5, 4), w, null).reshape(3, 3, 3) },
    {
      args: [sample([1, 4, 5, 4], 1), sample([4, 2, 2, 2], 2), null, 1, [2, 1], [2, 1], 2],
      gives: (x: Plain, w: Plain) => conv2d(x, w, null, grouped),
    },
    {
      args: [
        ints([
          [
            [
              [1, 2],
              [3, 4],
            ],
          ],
        ]),
        ints([[[[1, 10]]]]),
      ],
      gives: ints([[[[21], [43]]]]),
    },
  ],
  'torch.nn.functional.conv1d': [
    { args: [sample([2, 2, 6], 1), sample([3, 2, 3], 2), bias], gives: (x: Plain, w: Plain, b: Plain) => conv1d(x, w, b) },
    {
      args: [sample([2, 2, 6], 1), sample([3, 2, 3], 2), null, { stride: [2], padding: 1, dilation: 2 }],
      gives: (x: Plain, w: Plain) => conv1d(x, w, null, { stride: [1, 2], padding: [0, 1], dilation: [1, 2] }),
    },
    {
      args: [sample([2, 2, 6], 1), sample([3, 2, 2], 2), null, { padding: 'same' }],
      gives: (x: Plain, w: Plain) => conv1d(x, w, null, { extra: [0, 1] }),
    },
    { args: [sample([2, 6], 1), sample([3, 2, 3], 2)], gives: (x: Plain, w: Plain) => conv1d(x.reshape(1, 2, 6), w, null).reshape(3, 4) },
    {
      args: [sample([1, 1, 4], 1), sample([1, 1, 2], 2)],
      gives: (x: Plain, w: Plain) => build([1, 1, 3], (_n, _c, i) => sumOf(2, (k) => x.at(0, 0, i + k) * w.at(0, 0, k))),
    },
  ],
} satisfies ValueCases
