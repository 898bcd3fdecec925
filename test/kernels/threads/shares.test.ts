// What two threads can share of a convolution and of its gradients, for the layers of a small residual network in training and of its like: a kernel whose work lies outside of loops that are divided gains nothing.
import { expect, test } from 'vitest'
import { at, bufferParam, loopVar, store } from '../../../src/kernels/ir/loopIr.ts'
import type { Kernel } from '../../../src/kernels/ir/loopIr.ts'
import type { ConvolutionOperand, ConvolutionSizes } from '../../../src/kernels/schedules/convolution.ts'
import { direct } from '../../../src/kernels/schedules/direct.ts'
import { directWeight } from '../../../src/kernels/schedules/directWeight.ts'
import type { Schedule } from '../../../src/kernels/schedules/schedule.ts'
import { winograd } from '../../../src/kernels/schedules/winograd.ts'
import { winogradWeight } from '../../../src/kernels/schedules/winogradWeight.ts'
import { splitKernel } from '../../../src/kernels/threads/split.ts'
import type { Step } from '../../../src/kernels/threads/split.ts'
import { tripsOf, workOf } from '../../../src/kernels/threads/work.ts'
import { sizesOf } from '../problems/convolutionSizes.ts'

const known = (): number => NaN

/** The work that the slower of two threads has, where each takes half of the iterations of what is divided. */
function workOfSteps(steps: readonly Step[]): number {
  return steps.reduce((sum, step) => {
    if (step.kind === 'whole') return sum + workOf(step.stmts)(known)
    if (step.kind === 'either') return sum + Math.min(workOfSteps([step.outer]), workOfSteps([step.inner]))
    const trips = tripsOf(step.stmt.loop.extent, step.stmt.loop.step, known)
    if (step.kind === 'repeated') return sum + trips * workOfSteps(step.steps)
    return sum + (workOf([step.stmt])(known) * Math.ceil(trips / 2)) / trips
  }, 0)
}

/** How many times as fast two threads are, by the work that each has. */
function gainOf(kernel: Kernel): number {
  const split = splitKernel(kernel)
  return split === null ? 1 : workOf(kernel.body)(known) / workOfSteps(split.steps)
}

const image = (name: string, channels: number, height: number, width: number): ConvolutionOperand => ({
  ...{ buffer: bufferParam(name, 'float32'), start: 0, outer: channels * height * width, channel: height * width, row: width, col: 1 },
})

/** The kernels of a convolution and of its gradients. */
function kernelsOf(sizes: ConvolutionSizes): Readonly<Record<string, Kernel>> {
  const { batch, channels, features, height, width, outHeight, outWidth, kernelHeight, kernelWidth } = sizes
  const out = bufferParam('out', 'float32', 'write')
  const weight = image('weight', channels, kernelHeight, kernelWidth)
  const kernel = <P, S, T>(schedule: Schedule<P, S, T>, problem: P): Kernel => {
    const [tile] = schedule.tiles('wasm')
    if (tile === undefined) throw new Error('no tile')
    return schedule.build(schedule.spec(problem), tile)
  }
  const pass = (of: ConvolutionSizes, from: ConvolutionOperand, transposed: boolean) => {
    const [images, rows, pixels] = [loopVar('image', batch), loopVar('row', of.features), loopVar('pixel', of.outHeight * of.outWidth)]
    const plane = of.outHeight * of.outWidth
    return {
      ...{ name: 'conv', sizes: of, images, features: rows, pixels, image: from, params: [out, from.buffer, weight.buffer], transposed, groups: 1 },
      weight: transposed ? { ...weight, outer: weight.channel, channel: weight.outer } : weight,
      epilogue: (sum: Parameters<typeof store>[2]) => [store(out, at([images, of.features * plane], [rows, plane], [pixels, 1]), sum)],
    }
  }
  const [x, g] = [image('x', channels, height, width), image('g', features, outHeight, outWidth)]
  const forward = pass(sizes, x, false)
  const turned = { ...sizes, channels: features, features: channels, height: outHeight, width: outWidth, outHeight: height, outWidth: width }
  const [rows, elements] = [loopVar('feature', features), loopVar('element', channels * kernelHeight * kernelWidth)]
  const ofWeight = {
    ...{ name: 'weight', sizes, features: rows, elements, image: x, gradient: g, params: [out, x.buffer, g.buffer], groups: 1, order: null },
    epilogue: (sum: Parameters<typeof store>[2]) => [store(out, at([rows, channels * kernelHeight * kernelWidth], [elements, 1]), sum)],
  }
  return {
    ...(winograd.match(forward) ? { forward: kernel(winograd, forward) } : { forward: kernel(direct, forward) }),
    ...(winograd.match(forward) ? {} : { image: kernel(direct, pass(turned, g, true)) }),
    ...(winogradWeight.match(ofWeight) ? { weight: kernel(winogradWeight, ofWeight) } : { weight: kernel(directWeight, ofWeight) }),
  }
}

test.each([
  { channels: 3, features: 64, size: 64, window: 7, stride: 2 },
  { channels: 64, features: 64, size: 16, window: 3, stride: 1 },
  { channels: 64, features: 128, size: 16, window: 3, stride: 2 },
  { channels: 128, features: 128, size: 8, window: 3, stride: 1 },
  { channels: 128, features: 256, size: 8, window: 3, stride: 2 },
  { channels: 256, features: 256, size: 4, window: 3, stride: 1 },
  { channels: 256, features: 512, size: 4, window: 3, stride: 2 },
  { channels: 512, features: 512, size: 2, window: 3, stride: 1 },
  { channels: 128, features: 128, size: 28, window: 1, stride: 1 },
  { channels: 1, features: 32, size: 28, window: 3, stride: 1 },
])('two threads have at most 0.56 of the work of a convolution of %o, and of its gradients', ({ size, window, stride, ...rest }) => {
  const pad = (window - 1) / 2
  const out = Math.floor((size + 2 * pad - window) / stride) + 1
  const sizes = sizesOf({
    ...{ ...rest, batch: 4, height: size, width: size, padH: pad, padW: pad, strideH: stride, strideW: stride },
    ...{ kernelHeight: window, kernelWidth: window, outHeight: out, outWidth: out },
  })
  for (const [what, kernel] of Object.entries(kernelsOf(sizes))) expect(gainOf(kernel), what).toBeGreaterThan(1 / 0.56)
})
