// The ranks that save or load together: what one cannot do, all hear of.
import { messageOf } from '../../errors/index.ts'
import { DistributedError } from '../errors.ts'
import { allGatherObject, broadcastObject } from '../objects.ts'
import { groupOr, isInitialized } from '../processGroup.ts'
import type { ProcessGroup } from '../processGroup.ts'

/** The ranks that work together; a program without a process group is alone. */
export interface Team {
  readonly rank: number
  readonly size: number
  /** Every rank's value. */
  gather(value: unknown): readonly unknown[]
  /** The first rank's value. */
  share<T>(value: T): T
}

export function teamOf(group: ProcessGroup | undefined): Team {
  if (group === undefined && !isInitialized()) return { rank: 0, size: 1, gather: (value) => [value], share: (value) => value }
  const members = groupOr(group)
  const { rank, size } = members
  return { rank, size, gather: (value) => allGatherObject(value, members), share: (value) => broadcastObject(value, 0, members) }
}

/** What work came to, or why it failed. */
interface Outcome<T> {
  readonly value: T | null
  /** Empty if it did not fail. */
  readonly problem: string
}

function attempt<T>(work: () => T): Outcome<T> {
  try {
    return { value: work(), problem: '' }
  } catch (error) {
    return { value: null, problem: messageOf(error) }
  }
}

/** Work that each rank does for itself. Throws DistributedError on all ranks if one fails: the others would wait for it later. */
export function onEach<T>(where: string, what: string, team: Team, work: () => T): T {
  const { value, problem } = attempt(work)
  const problems = team.gather(problem)
  const rank = problems.findIndex((text) => text !== '')
  if (rank >= 0 || value === null) throw new DistributedError(`${where}: rank ${rank} cannot ${what}: ${String(problems[rank])}`)
  return value
}

/** Work that only the first rank does, and whose result, which JSON can hold, all get. Throws DistributedError on all ranks if it fails. */
export function onFirst<T>(where: string, what: string, team: Team, work: () => T): T | null {
  const { value, problem } = team.share(team.rank === 0 ? attempt(work) : { value: null, problem: '' })
  if (problem !== '') throw new DistributedError(`${where}: rank 0 cannot ${what}: ${problem}`)
  return value
}
