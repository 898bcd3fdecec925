// Which of Winograd's algorithms computes a convolution, by the accuracy that is asked for now, and the same with weights that were transformed before.
import { present } from '../../errors/index.ts'
import { accessesOf } from '../ir/analysis.ts'
import type { CompiledKernel } from './boundedCache.ts'
import { compileKernel } from './compile.ts'
import { currentAccuracy, currentComputing, withComputing } from '../engine/computing.ts'
import { widestEngine } from '../engine/engine.ts'
import { constant } from '../ir/loopIr.ts'
import type { PackedKernel } from './scheduled.ts'
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

/** A convolution with weights that were transformed before, compiled, and what transforms them: from one address to another. */
export interface PackedConvolution {
  readonly pack: (from: number, to: number) => void
  readonly convolution: CompiledKernel
}

/** Compiles it. */
export function compilePackedConvolution(schedule: WinogradSchedule, problem: ConvolutionProblem): PackedConvolution {
  const { pack, scratchAt, convolution } = packedWinograd(schedule.spec(problem), present(schedule.tiles(widestEngine())[0], 'a tile'))
  const { run } = compileKernel(pack)
  return { pack: (from, to) => run(from, to, to + scratchAt), convolution: compileKernel(convolution) }
}

/** The convolution where the weights were transformed before; null where that does not pay, or the epilogue reads them too. */
export function packedConvolution(schedule: WinogradSchedule, problem: ConvolutionProblem): PackedKernel | null {
  const { image, weight, epilogue, sizes } = problem
  const bytes = keptWeightBytes(schedule, sizes)
  const isReadOtherwise = weight.buffer === image.buffer || accessesOf(epilogue(constant('float32', 0))).some(([memory]) => memory === weight.buffer)
  if (bytes === null || isReadOtherwise) return null
  const computing = currentComputing()
  const compile: PackedKernel['compile'] = () =>
    withComputing(computing, () => {
      const { pack, convolution } = compilePackedConvolution(schedule, problem)
      return { pack, kernel: convolution }
    })
  return { operand: weight.buffer, bytes, compile }
}
