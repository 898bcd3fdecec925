// Convolutions of float32 images (NCHW) and the gradient of their weight, by Winograd's algorithm where it applies, else directly.
import { present } from '../../errors/index.ts'
import {
  currentAccuracy,
  direct,
  directWeight,
  isStrict,
  spareOf,
  strictOrder,
  takesDirect,
  takesDirectWeight,
  winogradFor,
  winogradWeight,
  withAccuracy,
} from '../../kernels/index.ts'
import type {
  BufferParam,
  ConvolutionOperand,
  ConvolutionProblem,
  ConvolutionSizes,
  LoopVar,
  SpareKernel,
  ScheduledKernel,
  WeightGradientProblem,
} from '../../kernels/index.ts'
import { add, convolution as convolutionFunction, convolutionBackward, reshape, slice, view } from '../../ops/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { BufferView, TemplateIo } from '../ir.ts'
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
    if (!isFloat32(call) || input.ndim !== 4 || !weight.contiguousLayout) return null
    const image = viewOf(input)
    const sizes = sizesOf(call, image, weight.shape)
    return takesDirect(sizes, false)
      ? { image, weight: viewOf(weight), bias: call.optionalTensor('bias'), groups: call.number('groups'), sizes }
      : null
  },
  spec: ({ image, weight, bias, groups, sizes }) => {
    const { batch, outHeight, outWidth } = sizes
    const features = groups * sizes.features
    return {
      out: { shape: [batch, features, outHeight, outWidth], dtype: 'float32' },
      iter: [batch, features, outHeight * outWidth],
      reads: [weight, image],
      depth: windowSize(sizes),
      finish: (result) => (bias === null ? result : add(result, reshape(bias, [1, features, 1, 1]))),
    }
  },
  emit: ({ image, groups, sizes }, io) => {
    const { channels, kernelHeight, kernelWidth } = sizes
    const area = kernelHeight * kernelWidth
    const [weight, pixels] = operandsOf(io)
    const problem: ConvolutionProblem = {
      ...{ name: io.name, sizes, epilogue: io.epilogue, params: io.params },
      ...{ images: loopOf(io, 0), features: loopOf(io, 1), pixels: loopOf(io, 2) },
      image: operandOf(pixels, image.strides),
      weight: { buffer: weight, start: 0, outer: channels * area, channel: area, row: kernelWidth, col: 1 },
    }
    const plain = spareOf(direct, { ...problem, transposed: false, groups })
    const winograd = groups === 1 ? winogradFor(sizes) : null
    return winograd === null ? { ...plain, compiled: plain.compile() } : withSpare(spareOf(winograd, problem), plain)
  },
})

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
      : { ...plain, compiled: plain.compile() }
  },
})

/** The kernel, and instead of it the other one where there is no room for its scratch memory, if that needs less. */
function withSpare(kernel: SpareKernel, other: SpareKernel): ScheduledKernel {
  const { scratchBytes } = kernel
  const compiled = { compiled: kernel.compile(), scratchBytes }
  if (other.scratchBytes >= scratchBytes) return compiled
  const accuracy = currentAccuracy()
  return { ...compiled, spare: { ...other, compile: () => withAccuracy(accuracy, other.compile) } }
}

const windowSize = ({ channels, kernelHeight, kernelWidth }: ConvolutionSizes): number => channels * kernelHeight * kernelWidth

const operandsOf = ({ buffers: [first, second] }: TemplateIo): readonly [BufferParam, BufferParam] => [
  present(first, 'the first operand'),
  present(second, 'the second operand'),
]
const loopOf = ({ loops }: TemplateIo, at: number): LoopVar => present(loops[at], 'a loop over the result')

function operandOf(buffer: BufferParam, strides: readonly number[]): ConvolutionOperand {
  const [outer, channel, row, col] = four(strides)
  return { buffer, start: 0, outer, channel, row, col }
}

/** The sizes of one group. */
function sizesOf(call: OpCall, image: BufferView, weight: readonly number[]): ConvolutionSizes {
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
