// Gradients of the weights of float32 convolutions as kernels of schedules: by Winograd's algorithm where it applies, else directly. A file of its own, since inference does not need it.
import {
  bufferParam,
  compileScheduled,
  directWeight,
  isStrict,
  loopVar,
  at,
  store,
  takesDirectWeight,
  takesWinogradWeight,
  winogradWeight,
} from '../../../kernels/index.ts'
import type { CompiledKernel, WeightGradientProblem } from '../../../kernels/index.ts'
import { IMAGE, OUT, isWorthIt, kernelFor, operandOf, runKernel, stepsOf } from './convScheduled.ts'
import type { Operands, Run, Steps } from './convScheduled.ts'
import type { ConvGeometry } from './convShapes.ts'

const GRADIENT = bufferParam('gradient', 'float32')

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

function weightGradient(sizes: ConvGeometry, { out, input, gradOut }: Operands<'weight'>): Run | null {
  const way = !isStrict() && sizes.groups === 1 && takesWinogradWeight(sizes) ? 'winograd' : 'direct'
  if (way === 'direct' && !(takesDirectWeight(sizes) && isWorthIt(sizes, sizes.outHeight * sizes.outWidth))) return null
  const steps = stepsOf(input)
  return { kernel: kernelFor(`weight ${way}`, sizes, steps, () => weightKernel(way, sizes, steps)), tensors: [out, input, gradOut] }
}

/** Computes the gradient of a weight by a schedule; returns false, and does nothing, where none takes it. */
export const runScheduledWeight = (sizes: ConvGeometry, operands: Operands<'weight'>): boolean => runKernel(weightGradient(sizes, operands))
