// Channels as pixels and back: pixelShuffle, pixelUnshuffle, channelShuffle.
import { ShapeError } from '../../../errors/index.ts'
import { formatShape, sizeEq, sizeFloorDiv, sizeMod, sizeMul } from '../../../tensor/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import { defineOp } from '../../define/defineOp.ts'
import type { Op } from '../../generated/signatures.ts'
import { sizeAt } from '../../shared/shapes.ts'
import { permute } from '../../view/permute.ts'
import { reshape } from '../../view/reshape.ts'

function check(op: string, self: Tensor, fits: boolean, needed: string): void {
  if (self.ndim < 3 || !fits) throw new ShapeError(`${op}: expected ${needed}, got shape ${formatShape(self.symSizes)}.`)
}

/**
 * Groups of r^2 channels become squares of r times r pixels. PyTorch's `F.pixel_shuffle`.
 *
 * Shapes: [.., C r^2, H, W] gives [.., C, H r, W r].
 *
 * @throws ShapeError if the channels are not a multiple of r^2.
 * @example F.pixelShuffle(torch.arange(4).view(4, 1, 1), 2).toArray() // [[[0, 1], [2, 3]]]
 */
export const pixelShuffle: Op['pixelShuffle'] = defineOp({
  schema: 'pixel_shuffle(Tensor self, int upscale_factor) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (self, r) => {
    const op = 'torch.nn.functional.pixel_shuffle'
    check(op, self, self.ndim > 2 && sizeEq(sizeMod(sizeAt(self.symSizes, -3), r * r), 0), `[.., C * ${r * r}, H, W]`)
    const [lead, c, h, w] = [
      self.symSizes.slice(0, -3),
      sizeFloorDiv(sizeAt(self.symSizes, -3), r * r),
      sizeAt(self.symSizes, -2),
      sizeAt(self.symSizes, -1),
    ]
    const n = lead.length
    const split = reshape(self, [...lead, c, r, r, h, w])
    return reshape(permute(split, [...lead.map((_, d) => d), n, n + 3, n + 1, n + 4, n + 2]), [...lead, c, sizeMul(h, r), sizeMul(w, r)])
  },
})

/**
 * Squares of r times r pixels become r^2 channels: the inverse of {@link pixelShuffle}. PyTorch's `F.pixel_unshuffle`.
 *
 * Shapes: [.., C, H r, W r] gives [.., C r^2, H, W].
 *
 * @throws ShapeError if height or width is not a multiple of r.
 * @example F.pixelUnshuffle(torch.arange(4).view(1, 2, 2), 2).toArray() // [[[0]], [[1]], [[2]], [[3]]]
 */
export const pixelUnshuffle: Op['pixelUnshuffle'] = defineOp({
  schema: 'pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (self, r) => {
    const op = 'torch.nn.functional.pixel_unshuffle'
    check(op, self, self.ndim > 2 && [-2, -1].every((dim) => sizeEq(sizeMod(sizeAt(self.symSizes, dim), r), 0)), `[.., C, H * ${r}, W * ${r}]`)
    const [lead, c, h, w] = [
      self.symSizes.slice(0, -3),
      sizeAt(self.symSizes, -3),
      sizeFloorDiv(sizeAt(self.symSizes, -2), r),
      sizeFloorDiv(sizeAt(self.symSizes, -1), r),
    ]
    const n = lead.length
    const split = reshape(self, [...lead, c, h, r, w, r])
    return reshape(permute(split, [...lead.map((_, d) => d), n, n + 2, n + 4, n + 1, n + 3]), [...lead, sizeMul(c, r * r), h, w])
  },
})

/**
 * Takes one channel of each group after the other. PyTorch's `F.channel_shuffle`.
 *
 * Shape: that of `self`, [N, C, ..].
 *
 * @throws ShapeError unless there are at least 3 dimensions, and the channels are a multiple of `groups`.
 * @example F.channelShuffle(torch.arange(4).view(1, 4, 1), 2).view(4).toArray() // [0, 2, 1, 3]
 */
export const channelShuffle: Op['channelShuffle'] = defineOp({
  schema: 'channel_shuffle(Tensor self, int groups) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (self, groups) => {
    const [n = 0, c = 0, ...rest] = self.symSizes
    check(
      'torch.nn.functional.channel_shuffle',
      self,
      rest.length > 0 && groups > 0 && sizeEq(sizeMod(c, groups), 0),
      `[N, C, ..] with C a multiple of ${groups} groups`,
    )
    const split = reshape(self, [n, groups, sizeFloorDiv(c, groups), ...rest])
    return reshape(permute(split, [0, 2, 1, ...rest.map((_, d) => d + 3)]), self.symSizes)
  },
})
