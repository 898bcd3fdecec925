// Padding by copies, transposed convolutions, resizing.
import { Plain, build, ints, sample, sumOf, t } from '../plain.ts'
import type { ValueCases } from '../valueCases.ts'

const image = sample([1, 2, 3, 2], 1)
const signal = sample([2, 2, 3], 2)
const lerp = (a: number, b: number, part: number): number => a + (b - a) * part

/** 1, 2, 3, 4 at half the size: triangles of twice the width as weights. */
const antialiased = [(1 * 0.75 + 2 * 0.75 + 3 * 0.25) / 1.75, (2 * 0.25 + 3 * 0.75 + 4 * 0.75) / 1.75]

export default {
  'torch.nn.functional.pad': [
    { args: [t([[1, 2, 3]]), [2, 1], { mode: 'reflect' }], gives: t([[3, 2, 1, 2, 3, 2]]) },
    { args: [t([[1, 2, 3]]), [2, -1], { mode: 'replicate' }], gives: t([[1, 1, 1, 2]]) },
    {
      args: [t([[1, 2, 3]]), [2, 1, 1, 0], { mode: 'circular' }],
      gives: t([
        [2, 3, 1, 2, 3, 1],
        [2, 3, 1, 2, 3, 1],
      ]),
    },
  ],
  'torch.nn.functional.conv_transpose1d': [
    {
      args: [signal, sample([2, 3, 2], 3), sample([3], 4), { stride: 2, padding: 1, outputPadding: 1 }],
      // Element l of the input reaches element 2 l + k - 1 of the result.
      gives: (x: Plain, w: Plain, b: Plain) =>
        build(
          [2, 3, 5],
          (n, o, l) => b.at(o) + sumOf(2, (c) => sumOf(3, (i) => sumOf(2, (k) => (2 * i + k - 1 === l ? x.at(n, c, i) * w.at(c, o, k) : 0)))),
        ),
    },
  ],
  'torch.nn.functional.conv_transpose2d': [
    {
      args: [image, sample([2, 1, 2, 2], 5), null, { groups: 2, dilation: [2, 1] }],
      gives: (x: Plain, w: Plain) =>
        build([1, 2, 5, 3], (n, c, r, s) =>
          sumOf(3, (i) =>
            sumOf(2, (j) => sumOf(2, (p) => sumOf(2, (q) => (i + 2 * p === r && j + q === s ? x.at(n, c, i, j) * w.at(c, 0, p, q) : 0)))),
          ),
        ),
    },
    {
      args: [image, sample([2, 3, 2, 2], 6), null, { stride: 2 }],
      gives: (x: Plain, w: Plain) =>
        build([1, 3, 6, 4], (n, o, r, s) => sumOf(2, (c) => x.at(n, c, Math.floor(r / 2), Math.floor(s / 2)) * w.at(c, o, r % 2, s % 2))),
    },
  ],
  'torch.nn.functional.interpolate': [
    { args: [signal, { scaleFactor: 2 }], gives: (x: Plain) => build([2, 2, 6], (n, c, i) => x.at(n, c, Math.floor(i / 2))) },
    { args: [signal, { size: 2, mode: 'nearest-exact' }], gives: (x: Plain) => build([2, 2, 2], (n, c, i) => x.at(n, c, i === 0 ? 0 : 2)) },
    { args: [t([[[1, 3]]]), { size: 3, mode: 'linear', alignCorners: true }], gives: t([[[1, 2, 3]]]) },
    { args: [t([[[1, 3]]]), { scaleFactor: 2, mode: 'linear' }], gives: t([[[1, 1.5, 2.5, 3]]]) },
    {
      args: [
        t([
          [
            [
              [1, 3],
              [5, 7],
            ],
          ],
        ]),
        { size: [3, 2], mode: 'bilinear', alignCorners: true },
      ],
      gives: t([
        [
          [
            [1, 3],
            [3, 5],
            [5, 7],
          ],
        ],
      ]),
    },
    { args: [t([[[1, 2, 3, 4, 5, 6]]]), { size: 3, mode: 'area' }], gives: t([[[1.5, 3.5, 5.5]]]) },
    // Linear functions stay linear in the middle, and a constant is a constant.
    {
      args: [
        t([
          [
            [
              [2, 2],
              [2, 2],
            ],
          ],
        ]),
        { size: 3, mode: 'bicubic' },
      ],
      gives: t([
        [
          [
            [2, 2, 2],
            [2, 2, 2],
            [2, 2, 2],
          ],
        ],
      ]),
    },
    {
      args: [
        t([
          [
            [
              [1, 2, 3, 4],
              [1, 2, 3, 4],
            ],
          ],
        ]),
        { size: 2, mode: 'bilinear', antialias: true },
      ],
      gives: t([
        [
          [
            [(1 * 0.75 + 2 * 0.75 + 3 * 0.25) / 1.75, (2 * 0.25 + 3 * 0.75 + 4 * 0.75) / 1.75],
            [(1 * 0.75 + 2 * 0.75 + 3 * 0.25) / 1.75, (2 * 0.25 + 3 * 0.75 + 4 * 0.75) / 1.75],
          ],
        ],
      ]),
    },
  ],
  'torch.nn.functional.upsample_nearest': [
    { args: [signal, { scaleFactor: 2 }], gives: (x: Plain) => build([2, 2, 6], (n, c, i) => x.at(n, c, Math.floor(i / 2))) },
    { args: [signal, 6], gives: (x: Plain) => build([2, 2, 6], (n, c, i) => x.at(n, c, Math.floor(i / 2))) },
  ],
  'torch.nn.functional.upsample_bilinear': [{ args: [t([[[[1, 3]]]]), [1, 3]], gives: t([[[[1, 2, 3]]]]) }],
  'torch._upsample_bilinear2d_aa': [
    { args: [t([[[[1, 2, 3, 4]]]]), [1, 2], false], gives: t([[[antialiased]]]) },
    { args: [t([[[[1, 2, 3, 4]]]]), null, false, [1, 0.5]], gives: t([[[antialiased]]]) },
    { args: [t([[[[1, 2, 3, 4]]]]), { outputSize: [1, 2], alignCorners: false, scalesH: 1, scalesW: 0.5 }], gives: t([[[antialiased]]]) },
    { args: [t([[[[1, 2, 3, 4]]]]), [1, 2], false, 1, 0.5], gives: t([[[antialiased]]]) },
  ],
  'torch.ops.tensorfx.resample': [
    { args: [signal, [2], [6], 'nearest', [0.5], false, false], gives: (x: Plain) => build([2, 2, 6], (n, c, i) => x.at(n, c, Math.floor(i / 2))) },
    {
      args: [signal, [0], [3], 'linear', [0.5], true, false],
      gives: (x: Plain) => build([3, 2, 3], (n, c, i) => lerp(x.at(0, c, i), x.at(1, c, i), n / 2)),
    },
    { args: [ints([4, 6, 8]), [0], [2], 'nearest-exact', [1.5], false, false], gives: ints([4, 8]) },
    {
      args: [sample([2, 9], 5), [1], [3], 'area', [3], false, false],
      gives: (x: Plain) => build([2, 3], (n, i) => sumOf(3, (k) => x.at(n, 3 * i + k)) / 3),
    },
  ],
  'torch.ops.tensorfx.resample_backward': [
    {
      args: [sample([2, 6], 5), [1], [3], 'nearest', [0.5], false, false],
      gives: (g: Plain) => build([2, 3], (n, i) => g.at(n, 2 * i) + g.at(n, 2 * i + 1)),
    },
    {
      args: [sample([3, 2], 5), [0], [2], 'linear', [0.5], true, false],
      gives: (g: Plain) => build([2, 2], (n, i) => g.at(2 * n, i) + g.at(1, i) / 2),
    },
    {
      args: [sample([2, 3], 5), [1], [9], 'area', [3], false, false],
      gives: (g: Plain) => build([2, 9], (n, i) => g.at(n, Math.floor(i / 3)) / 3),
    },
  ],
} satisfies ValueCases
