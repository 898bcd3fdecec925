// Where the ranks of a machine wait for each other before calls of MPI that cannot be given up: the others would wait for ever for a rank that ended before.
import { CollectiveTimeoutError, DistributedError } from '../errors.ts'
import { boardOfJob } from '../failures/board.ts'
import type { Board } from '../failures/board.ts'
import { sleep } from '../failures/sync.ts'
import { launched } from './launched.ts'

/** Milliseconds between looks. */
const LOOK_EVERY = 5

/** Milliseconds that ranks have at least to join the world: processes of a job do not start at the same time. */
const START_UP = 20_000

/** The ranks, and where they leave word; null unless all of them are on one machine. */
function meeting(): { readonly own: number; readonly board: Board; absent(place: string): readonly number[] } | null {
  const [place, board] = [launched(), boardOfJob()]
  if (place === null || board === null || !place.isOneMachine) return null
  const ranks = Array.from({ length: place.size }, (_, rank) => rank)
  return { own: place.rank, board, absent: (where) => ranks.filter((rank) => !board.isAt(where, rank)) }
}

/** Waits until all ranks join the world. Throws DistributedError if one has left before, CollectiveTimeoutError after `given` milliseconds, but 20 seconds at least. */
export async function waitToJoin(given: number): Promise<void> {
  const timeout = Math.max(given, START_UP)
  const ranks = meeting()
  if (ranks === null) return
  const { own, board } = ranks
  board.come('joins', own)
  const deadline = performance.now() + timeout
  for (let absent = ranks.absent('joins'); absent.length > 0; absent = ranks.absent('joins')) {
    for (const rank of absent) {
      const ended = board.departure(rank)?.failure
      if (ended !== undefined) throw new DistributedError(`initProcessGroup() cannot end, since rank ${rank} has left before it: ${ended.cause}.`)
    }
    if (performance.now() > deadline)
      throw new CollectiveTimeoutError(
        `initProcessGroup() did not end within ${timeout} ms on rank ${own}. ${absent.length === 1 ? `Rank ${absent[0]} has` : `Ranks ${absent.join(', ')} have`} not come to it. Look at what it does instead, or raise 'timeout' in initProcessGroup.`,
      )
    await new Promise((resolve) => {
      setTimeout(resolve, LOOK_EVERY)
    })
  }
}

/** Waits until all ranks leave the world, at most `patience` milliseconds. Returns whether they do: not if one has failed. */
export function waitToLeave(patience: number): boolean {
  const ranks = meeting()
  if (ranks === null) return true
  const { own, board } = ranks
  board.come('leaves', own)
  const deadline = performance.now() + patience
  while (ranks.absent('leaves').length > 0) {
    if (performance.now() > deadline || board.first() !== null) {
      board.goBack('leaves', own)
      return false
    }
    sleep(LOOK_EVERY)
  }
  return true
}
