// What counts as trouble at the end of a step: NaN or an infinity in the loss, a gradient or a weight, or a loss that jumps.
import { isObject } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { badnessOf, badnessOfBytes, indexOf } from './badness.ts'
import type { Badness } from './badness.ts'
import type { Snapshot, StateKind, StateTensor } from './state.ts'

/** What a recorder looks at after each step. */
export type Check = 'loss' | 'gradients' | 'weights'

/** What was seen. */
export interface Trigger {
  /** 'jump': a loss that is far above the losses before it. */
  readonly kind: 'loss' | 'jump' | StateKind
  /** The name of the parameter or buffer; null for a loss. */
  readonly name: string | null
  /** The bad element, or the loss. */
  readonly value: number
  /** The index of the element; empty for a loss. */
  readonly index: readonly number[]
}

/** A bad tensor of the state. */
export interface BadTensor extends StateTensor {
  readonly badness: Badness
}

/** How many losses must have been seen before one can be a jump. */
const FEWEST = 5

export const median = (numbers: readonly number[]): number => {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? (sorted[middle] ?? NaN) : ((sorted[middle - 1] ?? NaN) + (sorted[middle] ?? NaN)) / 2
}

/** The losses of a training. One is a jump if it is more than `factor` times the running median, and higher than at the beginning. */
export class Losses {
  readonly #factor: number | null
  readonly #window: number
  readonly #recent: number[] = []
  readonly #first: number[] = []

  constructor(factor: number | null, window: number) {
    this.#factor = factor
    this.#window = Math.max(window, FEWEST)
  }

  /** Notes a loss. Returns whether it is a jump; later losses are then compared with those before it. */
  isJump(loss: number): boolean {
    const recent = this.#recent
    if (!Number.isFinite(loss)) return false
    if (this.#factor !== null && recent.length >= FEWEST) {
      const usual = median(recent)
      // Losses of small batches, and losses around 0, differ by large factors all the time: the scale is also how far they have spread.
      const spread = Math.max(...recent.map((one) => Math.abs(one - usual)))
      const limit = usual + (this.#factor - 1) * Math.max(Math.abs(usual), spread)
      if (loss > limit && loss > median(this.#first)) return true
    }
    if (this.#first.length < FEWEST) this.#first.push(loss)
    recent.push(loss)
    if (recent.length > this.#window) recent.shift()
    return false
  }
}

/** How deep in a result a loss is looked for. A result may contain itself. */
const DEEPEST = 10

/** The loss that a step returned: a tensor of one element or a number, itself, first in a list, or as the property `loss`. Null if there is none. */
export function lossOf(result: unknown): Tensor | number | null {
  let part = result
  for (let depth = 0; depth < DEEPEST; depth++) {
    if (part instanceof Tensor) return part.numel === 1 ? part : null
    if (typeof part === 'number') return part
    if (!isObject(part)) return null
    part = Array.isArray(part) ? part[0] : Reflect.get(part, 'loss')
  }
  return null
}

/** The number of a loss; null if there is none, or a compiled function has not computed it yet. */
export function lossValue(loss: Tensor | number | null): number | null {
  if (loss === null || typeof loss === 'number') return loss
  return loss.storage === null || loss.storage.writer !== null ? null : Number(loss.item())
}

/** The bad tensors of the state after a step, in the order of the state. Weights that the step did not change are not read, and infinities that were there before it are no trouble. */
export function badTensors(state: readonly StateTensor[], before: Snapshot, checks: ReadonlySet<Check>): readonly BadTensor[] {
  return state.flatMap((one) => {
    const { kind, tensor } = one
    if (kind === 'input' || !checks.has(kind === 'gradient' ? 'gradients' : 'weights')) return []
    const known = kind === 'gradient' ? undefined : before.tensors.get(tensor)?.copy
    if (known !== undefined && known.bytes === null) return []
    const badness = badnessOf(tensor)
    const isNew = badness.infinite !== null && (!known?.bytes || badnessOfBytes(tensor, known.bytes).infinite === null)
    if (badness.nan === null && !isNew) return []
    return [{ ...one, badness }]
  })
}

/** What a bad tensor triggers. */
export function triggerOf({ kind, name, tensor, badness }: BadTensor): Trigger {
  const { nan, infinite, isPositive } = badness
  const value = nan !== null ? NaN : isPositive ? Infinity : -Infinity
  return { kind, name, value, index: indexOf(tensor.shape, nan ?? infinite ?? 0) }
}
