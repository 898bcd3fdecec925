// Before a collective, all ranks of a group make sure that they are about to run the same one: a mismatch would otherwise give wrong data, or hang.
import { Tensor } from '../tensor/index.ts'
import type { Task } from './backend.ts'
import { tensorBytes } from './bytes.ts'
import { descriptionText } from './collective.ts'
import type { Collective, Description } from './collective.ts'
import { CollectiveMismatchError } from './errors.ts'

/** Starts a collective that is not checked itself. */
export type StartUnchecked = (collective: Collective) => Task

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

/**
 * Starts to compare what the ranks are about to do. The task is over when they agree; polling it throws CollectiveMismatchError on all ranks if they do not.
 *
 * `difference` is what is known beside that, as further lines.
 *
 * The maximum of a number over all ranks, and that of its negative, are opposites only if the number is the same everywhere.
 */
export function startCheck(
  group: string,
  size: number,
  sequence: number,
  description: Description,
  start: StartUnchecked,
  difference: () => string,
): Task {
  const hash = hashOf(sequence, description)
  const words = Tensor.empty([2], 'float64')
  const values = (): Float64Array => {
    const bytes = tensorBytes(words)
    return new Float64Array(bytes.buffer, bytes.byteOffset, 2)
  }
  values().set([hash, -hash])
  const comparison = start({ kind: 'allreduce', op: 'max', data: words })
  let texts: Texts | null = null
  return {
    poll() {
      if (texts === null) {
        if (!comparison.poll()) return false
        const [highest = 0, negated = 0] = values()
        if (highest === -negated) return true
        texts = gatherTexts(descriptionText(description), size, start)
      }
      if (!texts.task.poll()) return false
      throw new CollectiveMismatchError(`${mismatchText(group, sequence, texts.read())}${difference()}`)
    },
  }
}

function mismatchText(group: string, sequence: number, texts: readonly string[]): string {
  const callers = new Map<string, number[]>()
  texts.forEach((text, rank) => callers.set(text, [...(callers.get(text) ?? []), rank]))
  const lists = [...callers].map(([text, ranks]) => `${ranks.length === 1 ? `rank ${ranks[0]} calls` : `ranks ${ranks.join(', ')} call`} ${text}`)
  return (
    `the ranks of group '${group}' are about to run different collectives as number ${sequence}: ${lists.join('; ')}. ` +
    'All ranks must call the same collectives in the same order, with the same dtypes and sizes. Look for a branch on the rank or on data.'
  )
}

/** What every rank is about to do, when it has come. */
interface Texts {
  readonly task: Task
  read(): readonly string[]
}

/** Characters of a description that are exchanged. */
const TEXT_BYTES = 256

function gatherTexts(text: string, size: number, start: StartUnchecked): Texts {
  const input = Tensor.empty([TEXT_BYTES], 'uint8')
  tensorBytes(input).fill(0).set(new TextEncoder().encode(text).subarray(0, TEXT_BYTES))
  const output = Tensor.empty([TEXT_BYTES * size], 'uint8')
  return {
    task: start({ kind: 'allgather', input, output }),
    read: () =>
      Array.from({ length: size }, (_, rank) => {
        const bytes = tensorBytes(output).slice(rank * TEXT_BYTES, (rank + 1) * TEXT_BYTES)
        return new TextDecoder().decode(bytes).replaceAll('\0', '')
      }),
  }
}
