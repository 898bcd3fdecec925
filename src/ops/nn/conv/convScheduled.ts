// float32 convolutions as kernels of schedules, whose sizes are part of them: by Winograd's algorithm where it applies, else directly, and the gradients of images (those of weights: convWeightScheduled.ts). Such a gradient is for Winograd a convolution
// of the result's gradient, with the weight turned by 180 degrees, and else a transposed one; channels and features change places.
import {
  OutOfMemoryError,
  PerEngine,
  at,
  bufferParam,
  call,
  compilePackedSource,
  packedConvolutionSource,
  compileScheduled,
  direct,
  kernelBytes,
  keptWeightBytes,
  kernelsByCall,
  knownScratchBytes,
  load,
  loopVar,
  store,
  takesDirect,
  winogradFor,
} from '../../../kernels/index.ts'
import type {
  BufferParam,
  CompiledKernel,
  ConvolutionOperand,
  ConvolutionProblem,
  Expr,
  ConvolutionSizes,
  CompiledPacked,
  WinogradSchedule,
} from '../../../kernels/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import { cacheKey, launch, scratchMemory } from '../../eager/launch.ts'
import { launchOnCopy, packedCopy } from '../../eager/packedWeights.ts'
import type { PackedForm } from '../../eager/packedWeights.ts'
import { quadrupleOf } from '../../shared/shapes.ts'
import type { ConvGeometry, ConvOperands } from './convShapes.ts'

/** What runs: the first tensor is written, the others are read. */
export interface Run {
  readonly kernel: CompiledKernel
  readonly tensors: readonly Tensor[]
  readonly kept?: Kept | null
}

/** The same with weights that are kept transformed. */
export interface Kept {
  readonly weight: Tensor
  readonly form: PackedForm
  readonly pack: (from: number, to: number) => void
  readonly convolution: () => CompiledKernel
}

export type Operands<D extends ConvOperands['direction']> = D extends unknown ? Extract<ConvOperands, { readonly direction: D }> : never
export type Steps = readonly [number, number, number, number]

export const OUT: BufferParam = bufferParam('out', 'float32', 'write')
export const IMAGE: BufferParam = bufferParam('image', 'float32')
const WEIGHT = bufferParam('weight', 'float32')
const BIAS = bufferParam('bias', 'float32')

const owner = new PerEngine(cacheKey)

/** The kernel for sizes and a layout of images, built at the first call. */
export function kernelFor(what: string, sizes: ConvolutionSizes, steps: Steps, build: () => CompiledKernel): CompiledKernel {
  const key = [owner.current, what, ...Object.values(sizes), ...steps].join(' ')
  let kernel = kernelsByCall.get(key)
  if (kernel === undefined) {
    kernel = build()
    kernelsByCall.set(key, kernel, kernelBytes(kernel))
  }
  return kernel
}

export const operandOf = (buffer: BufferParam, [outer, channel, row, col]: Steps): ConvolutionOperand => ({
  buffer,
  start: 0,
  outer,
  channel,
  row,
  col,
})
export const stepsOf = (tensor: Tensor): Steps => quadrupleOf(tensor.steps)

/** Products for which a kernel of their own is worth being compiled: smaller ones take one that all sizes share. */
const LEAST_PRODUCTS = 2 ** 18

/** Whether a convolution has at least {@link LEAST_PRODUCTS}; `plane` is that of the result of the forward convolution. */
export const isWorthIt = ({ batch, groups, channels, features, kernelHeight, kernelWidth }: ConvGeometry, plane: number): boolean =>
  batch * groups * channels * features * kernelHeight * kernelWidth * plane >= LEAST_PRODUCTS

/** Whether the convolution is computed directly. */
const isDirect = (sizes: ConvGeometry, transposed: boolean, plane: number): boolean => takesDirect(sizes, transposed) && isWorthIt(sizes, plane)

/** The schedule of one of Winograd's algorithms; null is the direct one. */
type Way = WinogradSchedule | null

const nameOf = (way: Way): string => way?.name ?? 'direct'

/** A convolution: of images with a contiguous weight, or the gradient of images, with a weight that is turned, or as a transposed convolution. */
interface Convolution {
  readonly way: Way
  readonly sizes: ConvGeometry
  readonly steps: Steps
  readonly isGradient: boolean
  readonly hasBias: boolean
}

function problemOf({ way, sizes, steps, isGradient, hasBias }: Convolution): ConvolutionProblem {
  const { batch, groups, channels, features: count, kernelHeight, kernelWidth } = sizes
  const [plane, area] = [sizes.outHeight * sizes.outWidth, kernelHeight * kernelWidth]
  const [images, features, pixels] = [loopVar('image', batch), loopVar('feature', groups * count), loopVar('pixel', plane)]
  const plain = { buffer: WEIGHT, start: 0, outer: area * channels, channel: area, row: kernelWidth, col: 1 }
  const swapped = { buffer: WEIGHT, start: 0, outer: area, channel: area * count, row: kernelWidth, col: 1 }
  const turned = { ...swapped, start: area - 1, row: -kernelWidth, col: -1 }
  return {
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
}

/** What kernels of the same sizes differ by. */
const whatOf = ({ way, isGradient, hasBias }: Convolution): string => `${isGradient ? 'input' : hasBias ? 'biased' : ''} ${nameOf(way)}`

/** The kernel of a convolution. */
function convolutionKernel(of: Convolution): CompiledKernel {
  const { way, sizes, steps, isGradient } = of
  const compile = (): CompiledKernel => {
    const problem = problemOf(of)
    return way === null ? compileScheduled(direct, { ...problem, groups: sizes.groups, transposed: isGradient }) : compileScheduled(way, problem)
  }
  return kernelFor(whatOf(of), sizes, steps, compile)
}

/** What reads transformed weights in this file. */
const READER = {}

/** The convolution with weights that are kept transformed; null where that does not pay. */
function keptOf(of: Convolution, weight: Tensor): Kept | null {
  const { way, sizes, isGradient } = of
  const bytes = way === null ? null : keptWeightBytes(way, sizes)
  if (way === null || bytes === null) return null
  const numbers = [sizes.features, sizes.channels, way.algorithm.products, isGradient ? 1 : 0]
  const compile = (): CompiledPacked => compilePackedSource(packedConvolutionSource(way, problemOf(of)))
  return {
    ...{ weight, form: { reader: READER, numbers, bytes } },
    pack: (from, to) => compile().pack(from, to),
    convolution: () => kernelFor(`kept ${whatOf(of)}`, sizes, of.steps, () => compile().kernel),
  }
}

function forward(sizes: ConvGeometry, { out, input, weight, bias }: Operands<'forward'>): Run | null {
  const way = sizes.groups === 1 ? winogradFor(sizes) : null
  if (way === null && !isDirect(sizes, false, sizes.outHeight * sizes.outWidth)) return null
  const of = { way, sizes, steps: stepsOf(input), isGradient: false, hasBias: bias !== null }
  return {
    kernel: convolutionKernel(of),
    tensors: bias === null ? [out, input, weight] : [out, input, weight, bias],
    kept: keptOf(of, weight),
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
  const of = { way, sizes: way === null ? sizes : turned, steps: stepsOf(gradOut), isGradient: true, hasBias: false }
  return { kernel: convolutionKernel(of), tensors: [out, gradOut, weight], kept: keptOf(of, weight) }
}

/** The place of the weight among the tensors. */
const WEIGHT_AT = 2

/** Runs a convolution on weights that were transformed in an earlier call, or are in this one; returns false where they are not. */
function runKept({ weight, form, pack, convolution }: Kept, tensors: readonly Tensor[]): boolean {
  const copy = packedCopy(weight, form, pack)
  if (copy === null) return false
  const kernel = convolution()
  return launchOnCopy(kernel, tensors, [], { copy, position: WEIGHT_AT }, knownScratchBytes(kernel))
}

/** Runs a kernel of a schedule; returns false, and does nothing, where there is no kernel, and where there is no room for its memory. */
export function runKernel(run: Run | null): boolean {
  if (run === null) return false
  const { kept = null } = run
  if (kept !== null && runKept(kept, run.tensors)) return true
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

/** Computes a convolution or the gradient of its input by a schedule; returns false, and does nothing, where none takes it. */
export const runScheduled = (g: ConvGeometry, operands: Operands<'forward' | 'input'>): boolean =>
  runKernel(operands.direction === 'forward' ? forward(g, operands) : inputGradient(g, operands))
