// Which of Winograd's algorithms computes a convolution, by the accuracy that is asked for now, and the same with weights that were transformed before.
import { present } from '../../errors/index.ts'
import { accessesOf } from '../ir/analysis.ts'
import { currentAccuracy, currentComputing } from '../engine/computing.ts'
import { widestEngine } from '../engine/engine.ts'
import { constant } from '../ir/loopIr.ts'
import type { PackedKernel, PackedSource } from './scheduled.ts'
import type { ConvolutionProblem, ConvolutionSizes } from '../schedules/convolution.ts'
import { fastWinograd, packedWinograd, winograd } from '../schedules/winograd.ts'
import { takesFastWinograd, takesWinograd } from '../schedules/winogradSpec.ts'
import { keptWeightBytes } from '../schedules/winogradWeights.ts'
import type { WinogradSchedule } from '../schedules/winogradSpec.ts'

/** The schedule for a convolution of these sizes; null where the direct one is faster, and in strict code. */
export function winogradFor(sizes: ConvolutionSizes): WinogradSchedule | null {
  const accuracy = currentAccuracy()
  if (accuracy === 'strict') return null
  if (accuracy === 'fast' && takesFastWinograd(sizes)) return fastWinograd
  return takesWinograd(sizes) ? winograd : null
}

/** The convolution with weights that were transformed before. */
export function packedConvolutionSource(schedule: WinogradSchedule, problem: ConvolutionProblem): PackedSource {
  const { pack, scratchAt, convolution } = packedWinograd(schedule.spec(problem), present(schedule.tiles(widestEngine())[0], 'a tile'))
  return { kernel: convolution, pack, scratchAt }
}

/** The convolution where the weights were transformed before; null where that does not pay, or the epilogue reads them too. */
export function packedConvolution(schedule: WinogradSchedule, problem: ConvolutionProblem): PackedKernel | null {
  const { image, weight, epilogue, sizes } = problem
  const bytes = keptWeightBytes(schedule, sizes)
  const isReadOtherwise = weight.buffer === image.buffer || accessesOf(epilogue(constant('float32', 0))).some(([memory]) => memory === weight.buffer)
  if (bytes === null || isReadOtherwise) return null
  return { operand: weight.buffer, bytes, source: () => packedConvolutionSource(schedule, problem), computing: currentComputing() }
}
