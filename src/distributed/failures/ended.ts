// Whether a collective can still end, now that other ranks have.
import type { Backend } from '../backend.ts'
import { DistributedError } from '../errors.ts'

/** A collective that this rank waits for. */
export interface Waiting {
  /** `barrier(), number 3 of group '0'` */
  readonly what: string
  readonly group: string
  /** World ranks of the group. */
  readonly ranks: readonly number[]
  /** 0 for messages, which have no number. */
  readonly sequence: number
  /** Whether a rank, counted within the group, has not come to the collective. Asked where its progress is not known. */
  isAbsent(rank: number): boolean
}

/** Throws DistributedError if a rank has failed, or has left without coming to a collective that this rank waits for. */
export function checkEnded(backend: Backend, waiting: Waiting): void {
  if (backend.ended === undefined) return
  for (let rank = 0; rank < backend.size; rank++) {
    const ended = rank === backend.rank ? null : backend.ended(rank)
    if (ended === null) continue
    if (ended.code !== 0)
      throw new DistributedError(`${waiting.what}, cannot end, since rank ${rank} has failed: ${ended.cause.split('\n')[0]}`, { endedRank: rank })
    const member = waiting.ranks.indexOf(rank)
    if (member < 0) continue
    const came =
      ended.progress === null ? !waiting.isAbsent(member) : waiting.sequence > 0 && (ended.progress[waiting.group] ?? 0) >= waiting.sequence
    if (!came) throw new DistributedError(`${waiting.what}, cannot end, since rank ${rank} has left before it: ${ended.cause}.`)
  }
}
