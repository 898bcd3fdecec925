// Random gradients of convolutions' weights, for the schedules that compute them: sizes around tiles, layouts, padding, epilogues.
import { at, bufferParam, call, cast, constant, iota, load, loopVar, store } from '../../../src/kernels/loopIr.ts'
import { winogradWeight } from '../../../src/kernels/schedules/winogradWeight.ts'
import type { WeightGradientProblem } from '../../../src/kernels/schedules/winogradWeight.ts'
import { sizesOf } from './convolutionSizes.ts'
import { builtWith, elementsOf, floats, untilTaken } from './problem.ts'
import type { DrawProblem } from './problem.ts'

/** out[o, e] = max(sum + bias[o], e - 20); images and gradients lie channel by channel with gaps, channels last, or over each other. */
export const winogradWeightProblem: DrawProblem = (random) =>
  untilTaken(() => {
    const { int, pick } = random
    const sizes = sizesOf({
      ...{ batch: pick([1, 1, 2, 3, 0]), height: 1 + int(11), width: 1 + int(13), padH: 1 + int(2), padW: 1 + int(2) },
      ...{ channels: pick([1, 3, 4, 5, 8, 9, 16, 19]), features: pick([1, 3, 4, 7, 8, 9, 15, 16, 17]) },
    })
    const { batch, channels, features, height, width, outHeight, outWidth, padH, padW } = sizes
    // The interpreter takes a second for a large one.
    if (batch * channels * features * height * width > 600) return null
    const [out, image, gradient, bias] = [
      bufferParam('out', 'float32', 'write'),
      bufferParam('image', 'float32'),
      bufferParam('gradient', 'float32'),
      bufferParam('bias', 'float32'),
    ]
    const [rows, elements] = [loopVar('o', features), loopVar('e', 9 * channels)]
    const placeOf = (count: number, h: number, w: number) => {
      const gap = int(3)
      const place = pick([
        { start: 0, outer: count * h * (w + gap), channel: h * (w + gap), row: w + gap, col: 1 },
        { start: gap, outer: count * h * w, channel: 1, row: w * count, col: count },
        { start: 1, outer: 3, channel: 5, row: gap, col: 1 },
      ])
      return {
        ...place,
        reach: place.start + (batch - 1) * place.outer + (count - 1) * place.channel + (h - 1) * place.row + (w - 1) * place.col + 1,
      }
    }
    const [x, g] = [placeOf(channels, height, width), placeOf(features, outHeight, outWidth)]
    const problem: WeightGradientProblem = {
      ...{ name: 'weights', sizes, features: rows, elements },
      image: { buffer: image, ...x },
      gradient: { buffer: gradient, ...g },
      epilogue: (sum) => [
        store(
          out,
          at([rows, 9 * channels], [elements, 1]),
          call('max', call('add', sum, load(bias, at([rows, 1]))), cast(call('sub', iota(elements), constant('int32', 20)), 'float32')),
        ),
      ],
      params: [out, image, gradient, bias],
    }
    // With multiples of 4 the transforms are exact.
    const { isOdd, any, whole } = elementsOf(random, { unit: 4, most: 3 })
    const [X, G, B] = [floats(x.reach, any), floats(g.reach, any), floats(features, whole)]
    const sumOf = (o: number, e: number): number => {
      const [c, ky, kx] = [Math.floor(e / 9), Math.floor((e % 9) / 3), e % 3]
      let sum = 0
      for (let n = 0; n < batch; n++)
        for (let oy = 0; oy < outHeight; oy++)
          for (let ox = 0; ox < outWidth; ox++) {
            const [iy, ix] = [oy + ky - padH, ox + kx - padW]
            if (iy < 0 || iy >= height || ix < 0 || ix >= width) continue
            const pixel = X[x.start + n * x.outer + c * x.channel + iy * x.row + ix * x.col] ?? NaN
            sum += pixel * (G[g.start + n * g.outer + o * g.channel + oy * g.row + ox * g.col] ?? NaN)
          }
      return sum
    }
    const expected = Array.from({ length: 9 * channels * features }, (_, i) => {
      const [o, e] = [Math.floor(i / (9 * channels)), i % (9 * channels)]
      return Math.max(sumOf(o, e) + (B[o] ?? NaN), e - 20)
    })
    return {
      what: JSON.stringify({ ...sizes, image: x, gradient: g }),
      args: { out: new Float32Array(expected.length), image: X, gradient: G, bias: B },
      expected: isOdd ? {} : { out: expected },
      kernels: builtWith({ ...winogradWeight, match: () => true }, problem, (tile) => [{ ...tile, blockBytes: 1 }]),
    }
  })
