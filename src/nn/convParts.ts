// What convolutions and transposed convolutions share: the check of their channels, and the initial values.
import { ArgumentError } from '../errors/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { calculateFanInAndFanOut, kaimingUniform_, uniform_ } from './init.ts'
import { checkInteger } from './options.ts'

/** Throws ArgumentError unless the channels can be divided into groups. */
export function checkChannels(where: string, inChannels: number, outChannels: number, groups: number): void {
  checkInteger(where, 'inChannels', inChannels)
  checkInteger(where, 'outChannels', outChannels)
  checkInteger(where, 'groups', groups)
  if (inChannels % groups !== 0 || outChannels % groups !== 0)
    throw new ArgumentError(`${where}: inChannels and outChannels must be divisible by groups, got ${inChannels}, ${outChannels} and ${groups}.`)
}

/** Gives a weight and a bias new random values, uniform within 1 / sqrt(fan in). */
export function resetByFanIn(weight: Tensor, bias: Tensor | null): void {
  kaimingUniform_(weight, { a: Math.sqrt(5) })
  if (bias === null) return
  const [fanIn] = calculateFanInAndFanOut(weight)
  const bound = fanIn > 0 ? 1 / Math.sqrt(fanIn) : 0
  uniform_(bias, -bound, bound)
}
