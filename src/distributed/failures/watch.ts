// Sees how the program of this rank ends, whatever the way: an error that nothing catches, a rejected promise, process.exit.
import { boardOfJob } from './board.ts'
import type { Progress } from '../backend.ts'
import { errorFailure, exitFailure, failureLine, failureText } from './report.ts'
import { sleep, writeNow } from './sync.ts'
import type { RankFailure } from './report.ts'

/** A rank whose end is watched. */
export interface WatchedRank {
  readonly rank: number
  readonly size: number
  /** Ends the rank after a failure: other ranks hear of it, and the user. It need not return. */
  fail(failure: RankFailure): void
  /** The process exits with code 0. `failure` says how, for ranks that still wait for this one. */
  leave(failure: RankFailure): void
}

let watched: WatchedRank | null = null
let isOver = false
let isListening = false
/** What a program's own handler of uncaught errors got: the reason if it exits. */
let handled: unknown = null

function end(failure: RankFailure): void {
  if (isOver || watched === null) return
  isOver = true
  if (failure.code === 0) watched.leave(failure)
  else watched.fail(failure)
}

/** Reports an error that ended the program of this rank. */
export function failRank(error: unknown): void {
  if (watched !== null) end(errorFailure(watched.rank, watched.size, error))
}

/** Watches this rank from now on, in place of what was watched before. No effect in a browser. */
export function watchRank(rank: WatchedRank): void {
  const host = globalThis.process
  watched = rank
  if (isListening || host?.on === undefined) return
  isListening = true
  host.on('uncaughtException', (error: unknown) => {
    // A program with a handler of its own may go on.
    if (host.listenerCount('uncaughtException') > 1) {
      handled = error
      return
    }
    failRank(error)
    host.exit(1)
  })
  host.on('exit', (given: number) => {
    if (watched === null) return
    const { rank: number, size } = watched
    // Node says in exitCode that the program still waits for something: after it has called the listeners with 0.
    const code = given === 0 ? Number(host.exitCode ?? 0) : given
    const exit = exitFailure(number, size, code, new Error('exit').stack ?? '')
    end(handled === null || code === 0 ? exit : { ...errorFailure(number, size, handled), code })
  })
}

/** Milliseconds that a rank gives to others: to the first to be read before them, and to all to say where they were before the job ends. */
const [READ_FIRST, LAST_WORDS] = [100, 500]

/**
 * The last words of a rank that is a process: in full from the rank that failed first, in one line from others, whose failure is usually its consequence. Then the others get a
 * moment for theirs.
 */
export function lastWords(failure: RankFailure, progress: Progress): void {
  const board = boardOfJob()
  if (board === null) {
    writeNow(2, `${failureText(failure)}\n`)
    return
  }
  const isFirst = board.claim(failure)
  if (!isFirst) sleep(READ_FIRST)
  writeNow(2, `${isFirst ? failureText(failure) : failureLine(failure)}\n`)
  board.leave(failure.rank, { failure, progress })
  const hasEnded = (rank: number): boolean => rank === failure.rank || board.departure(rank) !== null
  const ranks = Array.from({ length: failure.size }, (_, rank) => rank)
  // Only the first ends the job, unless it cannot any more.
  if (isFirst) for (let waited = 0; waited < LAST_WORDS && !ranks.every(hasEnded); waited += 20) sleep(20)
  else sleep(2 * LAST_WORDS)
}
