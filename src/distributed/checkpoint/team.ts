// The ranks of a process group that save or load a checkpoint together: what one cannot do, all hear of.
import type { Team } from '../../checkpoint/team.ts'
import { messageOf } from '../../errors/index.ts'
import { DistributedError } from '../errors.ts'
import { allGatherObject, broadcastObject } from '../objects.ts'
import type { ProcessGroup } from '../processGroup.ts'

/** What work came to: its value, or what was wrong, which JSON can hold, and this rank's error, which it cannot. */
type Outcome<T> = { readonly value: T; readonly problem: null } | { readonly problem: string; readonly error?: unknown }

function attempt<T>(work: () => T): Outcome<T> {
  try {
    return { value: work(), problem: null }
  } catch (error) {
    return { problem: messageOf(error), error }
  }
}

/** The value of work. Throws this rank's own error, or DistributedError for that of another one. */
function valueOf<T>(outcome: Outcome<T>, rank: number, task: string): T {
  if (outcome.problem === null) return outcome.value
  if (outcome.error instanceof Error) throw outcome.error
  throw new DistributedError(`${task.replace('RANK', String(rank))}: ${outcome.problem}`)
}

export function teamOf(members: ProcessGroup): Team {
  const { rank, size } = members
  const gather = (value: unknown): readonly unknown[] => allGatherObject(value, members)
  return {
    rank,
    size,
    gather,
    each(where, what, work) {
      const own = attempt(work)
      const problems = gather(own.problem)
      const failed = problems.findIndex((problem) => problem !== null)
      return valueOf(failed < 0 || own.problem !== null ? own : { problem: String(problems[failed]) }, failed, `${where}: rank RANK cannot ${what}`)
    },
    first<T>(where: string, what: string, work: () => T): T {
      const own: Outcome<T> = rank === 0 ? attempt(work) : { problem: 'rank 0 has said nothing' }
      const said = broadcastObject(own, members.ranks[0] ?? 0, members)
      // What came as JSON has no error of its own.
      return valueOf(rank === 0 ? own : said, 0, `${where}: rank RANK cannot ${what}`)
    },
  }
}
