// float32 convolutions by Winograd's algorithm, where it applies, and their gradients. That of the input is such a convolution of the result's gradient: the weight is turned by 180 degrees,
// and its channels and features change places. Sizes are part of the kernels.
import {
  OutOfMemoryError,
  PerEngine,
  at,
  bufferParam,
  call,
  compileScheduled,
  isStrict,
  kernelBytes,
  kernelsByCall,
  knownScratchBytes,
  load,
  loopVar,
  store,
  takesWinograd,
  takesWinogradWeight,
  winograd,
  winogradWeight,
} from '../../kernels/index.ts'
import type { BufferParam, CompiledKernel, ConvolutionOperand, ConvolutionSizes } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { cacheKey, launch, scratchMemory } from '../eager/launch.ts'
import { quadrupleOf } from '../shapes.ts'
import type { ConvGeometry, ConvOperands } from './convShapes.ts'

/** What runs: the first tensor is written, the others are read. */
interface Run {
  readonly kernel: CompiledKernel
  readonly tensors: readonly Tensor[]
}

type Operands<D> = Extract<ConvOperands, { readonly direction: D }>
type Steps = readonly [number, number, number, number]

const [OUT, IMAGE, WEIGHT, BIAS, GRADIENT] = [
  bufferParam('out', 'float32', 'write'),
  bufferParam('image', 'float32'),
  bufferParam('weight', 'float32'),
  bufferParam('bias', 'float32'),
  bufferParam('gradient', 'float32'),
]

const owner = new PerEngine(cacheKey)

/** The kernel for sizes and a layout of images, built at the first call. */
function kernelFor(what: string, sizes: ConvolutionSizes, steps: Steps, build: () => CompiledKernel): CompiledKernel {
  const key = [owner.current, what, ...Object.values(sizes), ...steps].join(' ')
  let kernel = kernelsByCall.get(key)
  if (kernel === undefined) {
    kernel = build()
    kernelsByCall.set(key, kernel, kernelBytes(kernel))
  }
  return kernel
}

const operandOf = (buffer: BufferParam, [outer, channel, row, col]: Steps): ConvolutionOperand => ({ buffer, start: 0, outer, channel, row, col })
const stepsOf = (tensor: Tensor): Steps => quadrupleOf(tensor.steps)

/** The convolution of images with a contiguous weight, or with one that is turned. */
function convolutionKernel(sizes: ConvolutionSizes, steps: Steps, isTurned: boolean, hasBias: boolean): CompiledKernel {
  const { batch, channels, features: count, kernelHeight, kernelWidth } = sizes
  const [plane, area] = [sizes.outHeight * sizes.outWidth, kernelHeight * kernelWidth]
  const [images, features, pixels] = [loopVar('image', batch), loopVar('feature', count), loopVar('pixel', plane)]
  const plain = { buffer: WEIGHT, start: 0, outer: area * channels, channel: area, row: kernelWidth, col: 1 }
  const turned = { buffer: WEIGHT, start: area - 1, outer: area, channel: area * count, row: -kernelWidth, col: -1 }
  return compileScheduled(winograd, {
    ...{ name: 'conv_winograd', sizes, images, features, pixels, image: operandOf(IMAGE, steps), weight: isTurned ? turned : plain },
    epilogue: (sum) => [
      store(OUT, at([images, count * plane], [features, plane], [pixels, 1]), hasBias ? call('add', sum, load(BIAS, at([features, 1]))) : sum),
    ],
    params: [OUT, IMAGE, WEIGHT, ...(hasBias ? [BIAS] : [])],
  })
}

function weightKernel(sizes: ConvolutionSizes, steps: Steps): CompiledKernel {
  const { channels, features: count, outHeight, outWidth, kernelHeight, kernelWidth } = sizes
  const all = channels * kernelHeight * kernelWidth
  const [features, elements] = [loopVar('feature', count), loopVar('element', all)]
  return compileScheduled(winogradWeight, {
    ...{ name: 'conv_winograd_weight', sizes, features, elements, image: operandOf(IMAGE, steps) },
    gradient: operandOf(GRADIENT, [count * outHeight * outWidth, outHeight * outWidth, outWidth, 1]),
    epilogue: (sum) => [store(OUT, at([features, all], [elements, 1]), sum)],
    params: [OUT, IMAGE, GRADIENT],
  })
}

function forward(sizes: ConvolutionSizes, { out, input, weight, bias }: Operands<'forward'>): Run | null {
  if (!takesWinograd(sizes)) return null
  const steps = stepsOf(input)
  const kernel = kernelFor(bias === null ? 'forward' : 'biased', sizes, steps, () => convolutionKernel(sizes, steps, false, bias !== null))
  return { kernel, tensors: bias === null ? [out, input, weight] : [out, input, weight, bias] }
}

function inputGradient(g: ConvGeometry, { out, gradOut, weight }: Operands<'input'>): Run | null {
  const sizes: ConvolutionSizes = {
    ...g,
    ...{ channels: g.features, height: g.outHeight, width: g.outWidth, padH: g.kernelHeight - 1 - g.padH },
    ...{ features: g.channels, outHeight: g.height, outWidth: g.width, padW: g.kernelWidth - 1 - g.padW },
  }
  if (!takesWinograd(sizes) || sizes.padH < 0 || sizes.padW < 0) return null
  const steps = stepsOf(gradOut)
  return { kernel: kernelFor('input', sizes, steps, () => convolutionKernel(sizes, steps, true, false)), tensors: [out, gradOut, weight] }
}

function weightGradient(sizes: ConvolutionSizes, { out, input, gradOut }: Operands<'weight'>): Run | null {
  if (!takesWinogradWeight(sizes)) return null
  const steps = stepsOf(input)
  return { kernel: kernelFor('weight', sizes, steps, () => weightKernel(sizes, steps)), tensors: [out, input, gradOut] }
}

function runOf(g: ConvGeometry, operands: ConvOperands): Run | null {
  switch (operands.direction) {
    case 'forward':
      return forward(g, operands)
    case 'input':
      return inputGradient(g, operands)
    case 'weight':
      return weightGradient(g, operands)
  }
}

/** Runs one direction by Winograd's algorithm; returns false, and does nothing, where that does not apply, in strict code, and where there is no room for it. */
export function runWinograd(g: ConvGeometry, operands: ConvOperands): boolean {
  if (g.groups !== 1 || g.kernelHeight !== 3 || isStrict()) return false
  const run = runOf(g, operands)
  if (run === null) return false
  let scratch: number
  try {
    scratch = scratchMemory(knownScratchBytes(run.kernel))
  } catch (error) {
    if (error instanceof OutOfMemoryError) return false
    throw error
  }
  launch(run.kernel, run.tensors, [scratch])
  return true
}
