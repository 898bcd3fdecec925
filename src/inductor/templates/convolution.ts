// Convolutions of float32 images (NCHW) and the gradient of their weight, by Winograd's algorithm where it applies, else directly.
import { present } from '../../errors/index.ts'
import {
  compileSource,
  direct,
  directWeight,
  isStrict,
  packedConvolution,
  spareOf,
  strictOrder,
  takesDirect,
  takesDirectWeight,
  winogradFor,
  winogradWeight,
} from '../../kernels/index.ts'
import type {
  BufferParam,
  ConvolutionOperand,
  ConvolutionProblem,
  ConvolutionSizes,
  DirectProblem,
  LoopVar,
  SpareKernel,
  ScheduledKernel,
  WeightGradientProblem,
  WinogradSchedule,
} from '../../kernels/index.ts'
import { add, convolution as convolutionFunction, convolutionBackward, reshape, slice, view } from '../../ops/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { BufferView, TemplateIo, WindowLayout } from '../ir.ts'
import { four } from '../opCall.ts'
import type { OpCall } from '../opCall.ts'
import { isFloat32 } from './gemm.ts'
import { defineTemplate } from './template.ts'
import type { Template } from './template.ts'

interface Convolution {
  readonly image: BufferView
  readonly weight: BufferView
  readonly bias: Tensor | null
  readonly groups: number
  /** Those of one group. */
  readonly sizes: ConvolutionSizes
}

export const convolution: Template = defineTemplate<Convolution>({
  name: 'convolution',
  ops: [convolutionFunction],
  match: (call, viewOf) => {
    const [input, weight] = [call.tensor('input'), call.tensor('weight')]
    const groups = call.number('groups')
    if (!isFloat32(call) || input.ndim !== 4 || !takesLayout(weight, groups)) return null
    const image = viewOf(input)
    const sizes = sizesOf(call, image, weight.shape)
    return takesDirect(sizes, false) ? { image, weight: viewOf(weight), bias: call.optionalTensor('bias'), groups, sizes } : null
  },
  spec: ({ image, weight, bias, groups, sizes }) => {
    const { batch, outHeight, outWidth } = sizes
    const features = groups * sizes.features
    return {
      out: { shape: [batch, features, outHeight, outWidth], dtype: 'float32' },
      iter: [batch, features, outHeight * outWidth],
      reads: [weight, image],
      depth: windowSize(sizes),
      sum: { kind: 'windows', sizes, groups, transposed: false, first: layoutOf(weight.strides), second: layoutOf(image.strides) },
      finish: (result) => (bias === null ? result : add(result, reshape(bias, [1, features, 1, 1]))),
    }
  },
  emit: ({ image, weight, groups, sizes }, io) => {
    const [weights, pixels] = operandsOf(io)
    const operands = { image: operandOf(pixels, image.strides), weight: operandOf(weights, weight.strides) }
    return emitConvolution({ ...problemOf(io, sizes), ...operands, groups, transposed: false }, groups === 1 ? winogradFor(sizes) : null)
  },
})

interface InputGradient {
  readonly grad: BufferView
  readonly weight: BufferView
  readonly shape: readonly number[]
  readonly groups: number
  /** The sizes of one group as a convolution of the result's gradient, whose features are the image's channels. */
  readonly sizes: ConvolutionSizes
  /** Whether that is a transposed one; otherwise the weight is rotated by 180 degrees. */
  readonly transposed: boolean
}

/** convolution_backward where only the gradient of the images is asked for. */
export const inputGradient: Template = defineTemplate<InputGradient>({
  name: 'input gradient of a convolution',
  ops: [convolutionBackward],
  match: (call, viewOf) => {
    const [input, weight] = [call.tensor('input'), call.tensor('weight')]
    const groups = call.number('groups')
    if (!isFloat32(call) || !call.flag('needInput') || call.flag('needWeight') || input.ndim !== 4 || !takesLayout(weight, groups)) return null
    const s = sizesOf(call, input, weight.shape)
    const turned = { padH: s.kernelHeight - 1 - s.padH, padW: s.kernelWidth - 1 - s.padW }
    const isPlain = [groups, s.strideH, s.strideW, s.dilationH, s.dilationW].every((size) => size === 1) && turned.padH >= 0 && turned.padW >= 0
    const sizes: ConvolutionSizes = {
      ...{ ...s, channels: s.features, height: s.outHeight, width: s.outWidth },
      ...{ features: s.channels, outHeight: s.height, outWidth: s.width },
      ...(isPlain ? turned : {}),
    }
    const transposed = !isPlain
    return takesDirect(sizes, transposed)
      ? { grad: viewOf(call.tensor('grad')), weight: viewOf(weight), shape: input.shape, groups, sizes, transposed }
      : null
  },
  spec: ({ grad, weight, shape, groups, sizes, transposed }) => {
    const { batch, features, outHeight, outWidth, channels, height, width } = sizes
    const ofPixel = (height * width * windowSize({ ...sizes, channels })) / (outHeight * outWidth)
    return {
      out: { shape, dtype: 'float32' },
      iter: [batch, groups * features, outHeight * outWidth],
      reads: [weight, grad],
      depth: Math.round(ofPixel),
      sum: { kind: 'windows', sizes, groups, transposed, first: gradientWeight(weight, sizes, transposed), second: layoutOf(grad.strides) },
      // The weight's gradient was not requested.
      finish: (result) => [result, slice(view(result, [-1]), 0, 0, 0)],
    }
  },
  emit: ({ grad, weight, groups, sizes, transposed }, io) => {
    const [weights, pixels] = operandsOf(io)
    const operands = { image: operandOf(pixels, grad.strides), weight: { buffer: weights, ...gradientWeight(weight, sizes, transposed) } }
    return emitConvolution({ ...problemOf(io, sizes), ...operands, groups, transposed }, transposed ? null : winogradFor(sizes))
  },
})

/** The weight that a convolution of the gradient has: its features are the channels, and it is rotated unless the convolution is transposed. */
function gradientWeight({ strides }: BufferView, { kernelHeight, kernelWidth }: ConvolutionSizes, transposed: boolean): WindowLayout {
  const { outer, channel, row, col } = layoutOf(strides)
  if (transposed) return { start: 0, outer: channel, channel: outer, row, col }
  return { start: (kernelHeight - 1) * row + (kernelWidth - 1) * col, outer: channel, channel: outer, row: -row, col: -col }
}

/** Whether weights may lie like this: those of several groups follow each other. */
const takesLayout = (weight: Tensor, groups: number): boolean => groups === 1 || weight.contiguousLayout

const problemOf = (io: TemplateIo, sizes: ConvolutionSizes): Omit<ConvolutionProblem, 'image' | 'weight'> => ({
  ...{ name: io.name, sizes, epilogue: io.epilogue, params: io.params },
  ...{ images: loopOf(io, 0), features: loopOf(io, 1), pixels: loopOf(io, 2) },
})

/** The kernel of a schedule, and the direct one where there is no room for its scratch memory; the direct one alone if there is no other. */
function emitConvolution(problem: DirectProblem, schedule: WinogradSchedule | null): ScheduledKernel {
  const plain = spareOf(direct, problem)
  if (schedule === null) return { ...plain, compiled: compileSource(plain, plain.computing) }
  return { ...withSpare(spareOf(schedule, problem), plain), packed: packedConvolution(schedule, problem) }
}

interface WeightGradient {
  readonly grad: BufferView
  readonly image: BufferView
  readonly shape: readonly number[]
  readonly groups: number
  /** Those of one group. */
  readonly sizes: ConvolutionSizes
}

/** convolution_backward where only the weight's gradient is asked for. */
export const weightGradient: Template = defineTemplate<WeightGradient>({
  name: 'weight gradient of a convolution',
  ops: [convolutionBackward],
  // The kernel stores a few elements of each feature at a time: an optimizer's step in it would read and write the weights so too, which takes longer than a pass of its own.
  fuses: false,
  match: (call, viewOf) => {
    const [input, weight] = [call.tensor('input'), call.tensor('weight')]
    if (!isFloat32(call) || call.flag('needInput') || !call.flag('needWeight') || input.ndim !== 4) return null
    const [grad, image] = [viewOf(call.tensor('grad')), viewOf(input)]
    const sizes = sizesOf(call, image, weight.shape)
    return takesDirectWeight(sizes) ? { grad, image, shape: weight.shape, groups: call.number('groups'), sizes } : null
  },
  spec: ({ grad, image, shape, groups, sizes }) => ({
    out: { shape, dtype: 'float32' },
    iter: [groups * sizes.features, windowSize(sizes)],
    reads: [grad, image],
    depth: sizes.batch * sizes.outHeight * sizes.outWidth,
    sum: { kind: 'weights', sizes, groups, transposed: false, first: layoutOf(grad.strides), second: layoutOf(image.strides) },
    // The input's gradient was not requested.
    finish: (result) => [slice(view(result, [-1]), 0, 0, 0), result],
  }),
  emit: ({ grad, image, groups, sizes }, io) => {
    const [gradients, pixels] = operandsOf(io)
    const problem: WeightGradientProblem = {
      ...{ name: io.name, sizes, features: loopOf(io, 0), elements: loopOf(io, 1), epilogue: io.epilogue, params: io.params },
      ...{ image: operandOf(pixels, image.strides), gradient: operandOf(gradients, grad.strides) },
    }
    const plain = spareOf(directWeight, { ...problem, groups, order: isStrict() ? strictOrder({ ...problem, groups }) : null })
    return groups === 1 && !isStrict() && winogradWeight.match(problem)
      ? withSpare(spareOf(winogradWeight, problem), plain)
      : { ...plain, compiled: compileSource(plain, plain.computing) }
  },
})

/** The kernel, and instead of it the other one where there is no room for its scratch memory, if that needs less. */
function withSpare(kernel: SpareKernel, spare: SpareKernel): ScheduledKernel {
  const { scratchBytes } = kernel
  const scheduled = { compiled: compileSource(kernel, kernel.computing), scratchBytes }
  return spare.scratchBytes >= scratchBytes ? scheduled : { ...scheduled, spare }
}

const windowSize = ({ channels, kernelHeight, kernelWidth }: ConvolutionSizes): number => channels * kernelHeight * kernelWidth

const operandsOf = ({ buffers: [first, second] }: TemplateIo): readonly [BufferParam, BufferParam] => [
  present(first, 'the first operand'),
  present(second, 'the second operand'),
]
const loopOf = ({ loops }: TemplateIo, at: number): LoopVar => present(loops[at], 'a loop over the result')

function layoutOf(strides: readonly number[]): WindowLayout {
  const [outer, channel, row, col] = four(strides)
  return { start: 0, outer, channel, row, col }
}

const operandOf = (buffer: BufferParam, strides: readonly number[]): ConvolutionOperand => ({ buffer, ...layoutOf(strides) })

/** The sizes of one group. */
function sizesOf(call: OpCall, image: Pick<BufferView, 'shape'>, weight: readonly number[]): ConvolutionSizes {
  const [[strideH, strideW], [padH, padW], [dilationH, dilationW]] = [call.pair('stride'), call.pair('padding'), call.pair('dilation')]
  const [batch, , height, width] = four(image.shape)
  const [features, channels, kernelHeight, kernelWidth] = four(weight)
  return {
    ...{ batch, channels, features: features / call.number('groups'), height, width },
    outHeight: Math.floor((height + 2 * padH - dilationH * (kernelHeight - 1) - 1) / strideH) + 1,
    outWidth: Math.floor((width + 2 * padW - dilationW * (kernelWidth - 1) - 1) / strideW) + 1,
    ...{ kernelHeight, kernelWidth, strideH, strideW, padH, padW, dilationH, dilationW },
  }
}
