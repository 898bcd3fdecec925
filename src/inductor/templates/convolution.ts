// Convolutions of float32 images (NCHW, one group) and the gradient of their weight, as products with the im2col matrix of the images. If the sizes
// allow it, kernels that read the images directly are used instead.
import { present } from '../../errors/index.ts'
import {
  compileGemm,
  currentAccuracy,
  direct,
  directConvWeight,
  gemmScratchBytes,
  isStrict,
  loopVar,
  spareOf,
  winogradFor,
  winogradWeight,
  withAccuracy,
} from '../../kernels/index.ts'
import type {
  ConvGather,
  ConvolutionOperand,
  ConvolutionProblem,
  GemmSpec,
  SpareKernel,
  TemplateKernel,
  WeightGradientProblem,
} from '../../kernels/index.ts'
import { add, convolution as convolutionFunction, convolutionBackward, reshape, slice, view } from '../../ops/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { BufferView } from '../ir.ts'
import { four } from '../opCall.ts'
import type { OpCall } from '../opCall.ts'
import { isFloat32, productOf } from './gemm.ts'
import { defineTemplate } from './template.ts'
import type { Template } from './template.ts'

/** The im2col matrix with known sizes. */
type Im2col = { readonly [K in keyof ConvGather]: ConvGather[K] extends boolean ? boolean : number }

interface Convolution {
  readonly image: BufferView
  readonly weight: BufferView
  readonly bias: Tensor | null
  readonly batch: number
  readonly imageStride: number
  readonly features: number
  readonly gather: Im2col
}

/** Per image: the weight [O, C*KH*KW] times the im2col matrix [C*KH*KW, OH*OW]. */
export const convolution: Template = defineTemplate<Convolution>({
  name: 'convolution',
  ops: [convolutionFunction],
  match: (call, viewOf) => {
    const [input, weight] = [call.tensor('input'), call.tensor('weight')]
    if (!isFloat32(call) || call.number('groups') !== 1 || input.ndim !== 4 || !weight.contiguousLayout) return null
    const image = viewOf(input)
    const [batch] = four(image.shape)
    const [imageStride] = four(image.strides)
    const [features, , kernelHeight, kernelWidth] = four(weight.shape)
    const gather = im2col(call, image, kernelHeight, kernelWidth, false)
    return { image, weight: viewOf(weight), bias: call.optionalTensor('bias'), batch, imageStride, features, gather }
  },
  spec: ({ image, weight, bias, batch, features, gather }) => ({
    out: { shape: [batch, features, gather.outHeight, gather.outWidth], dtype: 'float32' },
    iter: [batch, features, gather.outHeight * gather.outWidth],
    reads: [weight, image],
    depth: windowSize(gather),
    finish: (result) => (bias === null ? result : add(result, reshape(bias, [1, features, 1, 1]))),
  }),
  emit: (convolved, io) => {
    const { imageStride, features, gather } = convolved
    const depth = windowSize(gather)
    const spec = productOf(io, {
      depth,
      a: { rowStride: depth, colStride: 1, batchStrides: [0] },
      b: { rowStride: 0, colStride: 0, batchStrides: [imageStride], gather },
    })
    const problem = problemOf(spec, convolved)
    const plain = { ...problem, transposed: false, groups: 1 }
    const winograd = winogradFor(problem.sizes)
    const scheduled = [...(winograd === null ? [] : [spareOf(winograd, problem)]), ...(direct.match(plain) ? [spareOf(direct, plain)] : [])]
    return firstOf(scheduled, gathered(spec, gemmScratchBytes(features, gather.outHeight * gather.outWidth, depth)))
  },
})

/** The convolution that a product with gathered images computes. */
function problemOf(spec: GemmSpec, { batch, imageStride, features, gather }: Convolution): ConvolutionProblem {
  const { name, rows, cols, a, epilogue } = spec
  const { channels, kernelHeight, kernelWidth } = gather
  const area = kernelHeight * kernelWidth
  return {
    name,
    sizes: { ...gather, batch, features },
    images: present(spec.batch[0], 'the loop over images'),
    features: rows,
    pixels: cols,
    image: imageOf(spec, gather, imageStride),
    weight: { buffer: a.buffer, start: 0, outer: channels * area, channel: area, row: kernelWidth, col: 1 },
    epilogue,
    params: ownParams(spec),
  }
}

const imageOf = ({ b }: GemmSpec, { channelStride, rowStride, colStride }: Im2col, imageStride: number): ConvolutionOperand => ({
  ...{ buffer: b.buffer, start: 0, outer: imageStride },
  ...{ channel: channelStride, row: rowStride, col: colStride },
})

/** The parameters without the scratch memory: schedules list theirs themselves. */
const ownParams = ({ params }: GemmSpec): GemmSpec['params'] => params.slice(0, -1)

/** The product with gathered images, which takes every size. */
const gathered = (spec: GemmSpec, scratchBytes: number): SpareKernel => ({ scratchBytes, compile: () => compileGemm(spec) })

/** The first of the kernels, or `last` if there is none, and as its spare the one that needs the least scratch memory, if that is less. */
function firstOf(kernels: readonly SpareKernel[], last: SpareKernel): TemplateKernel {
  const [first = last] = kernels
  const { scratchBytes } = first
  const spare = [...kernels, last].reduce((least, other) => (other.scratchBytes < least.scratchBytes ? other : least))
  const kernel = { compiled: first.compile(), scratchBytes }
  if (spare === first) return kernel
  const accuracy = currentAccuracy()
  return { ...kernel, spare: { ...spare, compile: () => withAccuracy(accuracy, spare.compile) } }
}

interface WeightGradient {
  readonly grad: BufferView
  readonly image: BufferView
  readonly shape: readonly number[]
  readonly batch: number
  readonly features: number
  /** Elements from one image's gradient to the next, and from one feature to the next. */
  readonly gradStrides: readonly [number, number]
  readonly imageStride: number
  readonly gather: Im2col
}

/** convolution_backward where only the weight's gradient is asked for: summed over images, grad [O, OH*OW] times the transposed im2col matrix. */
export const weightGradient: Template = defineTemplate<WeightGradient>({
  name: 'weight gradient of a convolution',
  ops: [convolutionBackward],
  match: (call, viewOf) => {
    const [input, weight] = [call.tensor('input'), call.tensor('weight')]
    if (!isFloat32(call) || call.flag('needInput') || !call.flag('needWeight') || call.number('groups') !== 1 || input.ndim !== 4) return null
    const [grad, image] = [viewOf(call.tensor('grad')), viewOf(input)]
    const [batch, features, , outWidth] = four(grad.shape)
    const [perImage, perFeature, perRow, perPixel] = four(grad.strides)
    // The pixels of a feature must be contiguous.
    if (perPixel !== 1 || perRow !== outWidth) return null
    const [, , kernelHeight, kernelWidth] = four(weight.shape)
    const [imageStride] = four(image.strides)
    const gather = im2col(call, image, kernelHeight, kernelWidth, true)
    return { grad, image, shape: weight.shape, batch, features, gradStrides: [perImage, perFeature], imageStride, gather }
  },
  spec: ({ grad, image, shape, batch, features, gather }) => ({
    out: { shape, dtype: 'float32' },
    iter: [features, windowSize(gather)],
    reads: [grad, image],
    depth: batch * gather.outHeight * gather.outWidth,
    // The input's gradient was not requested.
    finish: (result) => [slice(view(result, [-1]), 0, 0, 0), result],
  }),
  emit: ({ batch, features, gradStrides: [perImage, perFeature], imageStride, gather }, io) => {
    const depth = gather.outHeight * gather.outWidth
    const spec = productOf(io, {
      depth,
      a: { rowStride: perFeature, colStride: 1, batchStrides: [perImage] },
      b: { rowStride: 0, colStride: 0, batchStrides: [imageStride], gather },
      summed: [loopVar('image', batch)],
    })
    const problem: WeightGradientProblem = {
      ...{ name: spec.name, sizes: { ...gather, batch, features }, features: spec.rows, elements: spec.cols, epilogue: spec.epilogue },
      image: imageOf(spec, gather, imageStride),
      gradient: { buffer: spec.a.buffer, start: 0, outer: perImage, channel: perFeature, row: gather.outWidth, col: 1 },
      params: ownParams(spec),
    }
    const plain = directConvWeight(spec)
    const scheduled = [
      ...(!isStrict() && winogradWeight.match(problem) ? [spareOf(winogradWeight, problem)] : []),
      ...(plain === null ? [] : [plain]),
    ]
    return firstOf(scheduled, gathered(spec, gemmScratchBytes(features, windowSize(gather), depth)))
  },
})

const windowSize = ({ channels, kernelHeight, kernelWidth }: Im2col): number => channels * kernelHeight * kernelWidth

function im2col(call: OpCall, image: BufferView, kernelHeight: number, kernelWidth: number, swapped: boolean): Im2col {
  const [strideH, strideW] = call.pair('stride')
  const [padH, padW] = call.pair('padding')
  const [dilationH, dilationW] = call.pair('dilation')
  const [, channels, height, width] = four(image.shape)
  const [, channelStride, rowStride, colStride] = four(image.strides)
  return {
    channels,
    height,
    width,
    kernelHeight,
    kernelWidth,
    outHeight: Math.floor((height + 2 * padH - dilationH * (kernelHeight - 1) - 1) / strideH) + 1,
    outWidth: Math.floor((width + 2 * padW - dilationW * (kernelWidth - 1) - 1) / strideW) + 1,
    strideH,
    strideW,
    padH,
    padW,
    dilationH,
    dilationW,
    channelStride,
    rowStride,
    colStride,
    transposed: false,
    swapped,
  }
}
