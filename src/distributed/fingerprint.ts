// Before a collective, all ranks of a group make sure that they are about to run the same one: a mismatch would otherwise give wrong data, or hang.
import { Tensor } from '../tensor/index.ts'
import { tensorBytes } from './bytes.ts'
import { descriptionText } from './collective.ts'
import type { Collective, Description } from './collective.ts'
import { CollectiveMismatchError } from './errors.ts'

/** Runs a collective that is not checked itself, and waits for it. */
export type RunUnchecked = (collective: Collective) => void

/** How many collectives of a group are checked from its start on; then every power of two, unless the debug level is 'detail'. */
const CHECKED_FROM_START = 1000

/** Whether a group's collective of this number is checked. All ranks must come to the same answer. */
export const isChecked = (sequence: number, always: boolean): boolean => always || sequence <= CHECKED_FROM_START || (sequence & (sequence - 1)) === 0

const PRIME = 0x01000193

/** FNV-1a of what has to agree, as a number that a float64 holds exactly. */
function hashOf(sequence: number, description: Description): number {
  let hash = 0x811c9dc5
  const text = `${sequence} ${descriptionText(description)}`
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), PRIME)
  return hash >>> 0
}

const words = Tensor.empty([2], 'float64')

/**
 * Compares what the ranks are about to do. Throws CollectiveMismatchError on all of them if it differs.
 *
 * The maximum of a number over all ranks, and that of its negative, are opposites only if the number is the same everywhere.
 */
export function checkAgreement(group: string, size: number, sequence: number, description: Description, run: RunUnchecked): void {
  const hash = hashOf(sequence, description)
  const values = (): Float64Array => {
    const bytes = tensorBytes(words)
    return new Float64Array(bytes.buffer, bytes.byteOffset, 2)
  }
  values().set([hash, -hash])
  run({ kind: 'allreduce', op: 'max', data: words })
  const [highest = 0, negated = 0] = values()
  if (highest === -negated) return
  const texts = gatherTexts(descriptionText(description), size, run)
  const counts = new Map<string, number[]>()
  texts.forEach((text, rank) => counts.set(text, [...(counts.get(text) ?? []), rank]))
  const lists = [...counts].map(([text, ranks]) => `${ranks.length === 1 ? `rank ${ranks[0]} calls` : `ranks ${ranks.join(', ')} call`} ${text}`)
  throw new CollectiveMismatchError(
    `the ranks of group '${group}' are about to run different collectives as number ${sequence}: ${lists.join('; ')}. ` +
      'All ranks must call the same collectives in the same order, with the same dtypes and sizes. Look for a branch on the rank or on data.',
  )
}

/** Characters of a description that are exchanged. */
const TEXT_BYTES = 256

function gatherTexts(text: string, size: number, run: RunUnchecked): string[] {
  const input = Tensor.empty([TEXT_BYTES], 'uint8')
  tensorBytes(input).fill(0).set(new TextEncoder().encode(text).subarray(0, TEXT_BYTES))
  const output = Tensor.empty([TEXT_BYTES * size], 'uint8')
  run({ kind: 'allgather', input, output })
  const all = tensorBytes(output)
  return Array.from({ length: size }, (_, rank) =>
    new TextDecoder().decode(all.slice(rank * TEXT_BYTES, (rank + 1) * TEXT_BYTES)).replaceAll('\0', ''),
  )
}
