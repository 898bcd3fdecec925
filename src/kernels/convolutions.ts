// Which of Winograd's algorithms computes a convolution, by the accuracy that is asked for now.
import { currentAccuracy } from './engine.ts'
import type { ConvolutionSizes } from './schedules/convolution.ts'
import { fastWinograd, takesFastWinograd, takesWinograd, winograd } from './schedules/winograd.ts'
import type { WinogradSchedule } from './schedules/winograd.ts'

/** The schedule for a convolution of these sizes; null where the direct one is faster, and in strict code. */
export function winogradFor(sizes: ConvolutionSizes): WinogradSchedule | null {
  const accuracy = currentAccuracy()
  if (accuracy === 'strict') return null
  if (accuracy === 'fast' && takesFastWinograd(sizes)) return fastWinograd
  return takesWinograd(sizes) ? winograd : null
}
