// What the mean over a window is divided by.
import { ArgumentError } from '../../../errors/index.ts'

/** A number, or how many places of the window lie inside the input ('inside'), or inside the input and its padding ('covered'). */
export type Divisor = number | 'inside' | 'covered'

/** The divisor that the arguments of an average pool ask for. Throws ArgumentError, which names `op`, if `divisorOverride` is 0 or not an integer. */
export function divisorOf(op: string, countIncludePad: boolean, divisorOverride: number | null): Divisor {
  if (divisorOverride === null) return countIncludePad ? 'covered' : 'inside'
  if (Number.isInteger(divisorOverride) && divisorOverride !== 0) return divisorOverride
  throw new ArgumentError(`${op}: divisor_override must be an integer other than 0, got ${divisorOverride}.`)
}
