// float32 convolutions as kernels of schedules, whose sizes are part of them: by Winograd's algorithm where it applies, else directly, and their gradients. That of the input is for Winograd a convolution
// of the result's gradient, with the weight turned by 180 degrees, and else a transposed one; channels and features change places.
import {
  OutOfMemoryError,
  PerEngine,
  at,
  bufferParam,
  call,
  compileScheduled,
  direct,
  directWeight,
  isStrict,
  kernelBytes,
  kernelsByCall,
  knownScratchBytes,
  load,
  loopVar,
  store,
  takesDirect,
  takesDirectWeight,
  takesWinogradWeight,
  winogradFor,
  winogradWeight,
} from '../../kernels/index.ts'
import type {
  BufferParam,
  CompiledKernel,
  ConvolutionOperand,
  ConvolutionSizes,
  Expr,
  WeightGradientProblem,
  WinogradSchedule,
} from '../../kernels/index.ts'
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

/** Products for which a kernel of their own is worth being compiled: smaller ones take one that all sizes share. */
const LEAST_PRODUCTS = 2 ** 18

/** Whether a convolution has at least {@link LEAST_PRODUCTS}; `plane` is that of the result of the forward convolution. */
const isWorthIt = ({ batch, groups, channels, features, kernelHeight, kernelWidth }: ConvGeometry, plane: number): boolean =>
  batch * groups * channels * features * kernelHeight * kernelWidth * plane >= LEAST_PRODUCTS

/** Whether the convolution is computed directly. */
const isDirect = (sizes: ConvGeometry, transposed: boolean, plane: number): boolean => takesDirect(sizes, transposed) && isWorthIt(sizes, plane)

/** The schedule of one of Winograd's algorithms; null is the direct one. */
type Way = WinogradSchedule | null

const nameOf = (way: Way): string => way?.name ?? 'direct'

/** The convolution of images with a contiguous weight, or the gradient of images: with a weight that is turned, or as a transposed convolution. */
function convolutionKernel(way: Way, sizes: ConvGeometry, steps: Steps, isGradient: boolean, hasBias: boolean): CompiledKernel {
  const { batch, groups, channels, features: count, kernelHeight, kernelWidth } = sizes
  const [plane, area] = [sizes.outHeight * sizes.outWidth, kernelHeight * kernelWidth]
  const [images, features, pixels] = [loopVar('image', batch), loopVar('feature', groups * count), loopVar('pixel', plane)]
  const plain = { buffer: WEIGHT, start: 0, outer: area * channels, channel: area, row: kernelWidth, col: 1 }
  const swapped = { buffer: WEIGHT, start: 0, outer: area, channel: area * count, row: kernelWidth, col: 1 }
  const turned = { ...swapped, start: area - 1, row: -kernelWidth, col: -1 }
  const problem = {
    ...{ name: `conv_${nameOf(way)}`, sizes, images, features, pixels, image: operandOf(IMAGE, steps) },
    weight: !isGradient ? plain : way === null ? swapped : turned,
    epilogue: (sum: Expr) => [
      store(
        OUT,
        at([images, groups * count * plane], [features, plane], [pixels, 1]),
        hasBias ? call('add', sum, load(BIAS, at([features, 1]))) : sum,
      ),
    ],
    params: [OUT, IMAGE, WEIGHT, ...(hasBias ? [BIAS] : [])],
  }
  return way === null ? compileScheduled(direct, { ...problem, groups, transposed: isGradient }) : compileScheduled(way, problem)
}

/** The gradient of a weight: of strict code, in the order of the images. */
function weightKernel(way: 'winograd' | 'direct', sizes: ConvGeometry, steps: Steps): CompiledKernel {
  const { groups, channels, features: count, outHeight, outWidth, kernelHeight, kernelWidth } = sizes
  const [all, plane] = [channels * kernelHeight * kernelWidth, outHeight * outWidth]
  const [features, elements] = [loopVar('feature', groups * count), loopVar('element', all)]
  const problem: WeightGradientProblem = {
    ...{ name: `conv_${way}_weight`, sizes, features, elements, image: operandOf(IMAGE, steps) },
    gradient: operandOf(GRADIENT, [groups * count * plane, plane, outWidth, 1]),
    epilogue: (sum) => [store(OUT, at([features, all], [elements, 1]), sum)],
    params: [OUT, IMAGE, GRADIENT],
  }
  if (way === 'winograd') return compileScheduled(winogradWeight, problem)
  return compileScheduled(directWeight, { ...problem, groups, order: isStrict() ? { images: 1, lanes: 1 } : null })
}

function forward(sizes: ConvGeometry, { out, input, weight, bias }: Operands<'forward'>): Run | null {
  const way = sizes.groups === 1 ? winogradFor(sizes) : null
  if (way === null && !isDirect(sizes, false, sizes.outHeight * sizes.outWidth)) return null
  const steps = stepsOf(input)
  const build = (): CompiledKernel => convolutionKernel(way, sizes, steps, false, bias !== null)
  return {
    kernel: kernelFor(bias === null ? nameOf(way) : `biased ${nameOf(way)}`, sizes, steps, build),
    tensors: bias === null ? [out, input, weight] : [out, input, weight, bias],
  }
}

function inputGradient(g: ConvGeometry, { out, gradOut, weight }: Operands<'input'>): Run | null {
  const sizes: ConvGeometry = {
    ...g,
    ...{ channels: g.features, height: g.outHeight, width: g.outWidth },
    ...{ features: g.channels, outHeight: g.height, outWidth: g.width },
  }
  const turned = { ...sizes, padH: g.kernelHeight - 1 - g.padH, padW: g.kernelWidth - 1 - g.padW }
  const way = g.groups === 1 && turned.padH >= 0 && turned.padW >= 0 ? winogradFor(turned) : null
  if (way === null && !isDirect(sizes, true, g.outHeight * g.outWidth)) return null
  const steps = stepsOf(gradOut)
  const build = (): CompiledKernel => convolutionKernel(way, way === null ? sizes : turned, steps, true, false)
  return { kernel: kernelFor(`input ${nameOf(way)}`, sizes, steps, build), tensors: [out, gradOut, weight] }
}

function weightGradient(sizes: ConvGeometry, { out, input, gradOut }: Operands<'weight'>): Run | null {
  const way = !isStrict() && sizes.groups === 1 && takesWinogradWeight(sizes) ? 'winograd' : 'direct'
  if (way === 'direct' && !(takesDirectWeight(sizes) && isWorthIt(sizes, sizes.outHeight * sizes.outWidth))) return null
  const steps = stepsOf(input)
  return { kernel: kernelFor(`weight ${way}`, sizes, steps, () => weightKernel(way, sizes, steps)), tensors: [out, input, gradOut] }
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

/** Runs one direction by a schedule; returns false, and does nothing, where none takes it, and where there is no room for its memory. */
export function runScheduled(g: ConvGeometry, operands: ConvOperands): boolean {
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
