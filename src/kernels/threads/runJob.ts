// The calling thread's side of the protocol in control.ts: it opens a job, takes chunks like the workers, closes it, and waits for the chunks that workers have taken.
import { CLOSED, MOST_ARGS, WORD } from './control.ts'
import type { Control } from './control.ts'

/** A loop in chunks, as it is written to the control memory. */
export interface OpenJob {
  /** The words of the job from {@link WORD}.kernel on. */
  readonly fields: readonly number[]
  /** The arguments of the first worker, and what each further worker's are apart. */
  readonly args: readonly number[]
  readonly apart: readonly number[]
  readonly chunks: number
  /** Runs a chunk on this thread. */
  readonly run: (chunk: number) => void
}

/** How the caller waits. */
export interface Waiting {
  /** Whether this thread may sleep: not the main thread of a page. */
  readonly maySleep: boolean
  /** How long a worker may take for a chunk at least, in milliseconds. */
  readonly patience: number
  readonly now: () => number
}

/** How a job ended: whether this thread failed in a chunk, whether the workers finished theirs, and how many those were. */
export interface JobEnd {
  readonly error: { readonly thrown: unknown } | null
  readonly ended: 'done' | 'failed' | 'unfinished'
  readonly byWorkers: number
}

/** How often the caller looks before it sleeps. */
const LOOKS = 2000
/** How many milliseconds it sleeps before it looks at the clock. */
const NAP = 5
/** How many times its own longest chunk it waits for another thread's. */
const SLOWER = 100

/** Runs a job. All of its chunks are finished where the workers are `done` and there is no error. */
export function runJob({ words, args: numbers, flags }: Control, generation: number, job: OpenJob, waiting: Waiting): JobEnd {
  const { chunks, run } = job
  const { now } = waiting
  words.set(job.fields, WORD.kernel)
  numbers.set(job.args, 0)
  numbers.set(job.apart, MOST_ARGS)
  Atomics.store(words, WORD.failed, 0)
  Atomics.store(words, WORD.done, generation << 12)
  Atomics.store(words, WORD.next, generation << 12)
  Atomics.add(words, WORD.bell, 1)
  if (Atomics.load(words, WORD.sleepers) > 0) Atomics.notify(words, WORD.bell)
  let mine = 0
  let longest = 0
  let error: JobEnd['error'] = null
  while (error === null) {
    const word = Atomics.load(words, WORD.next)
    const next = word & CLOSED
    if (next >= chunks) break
    if (Atomics.compareExchange(words, WORD.next, word, word + 1) !== word) continue
    mine++
    const start = now()
    try {
      run(next)
      Atomics.store(flags, next, generation)
    } catch (thrown) {
      error = { thrown }
    }
    longest = Math.max(longest, now() - start)
  }
  const taken = Atomics.exchange(words, WORD.next, (generation << 12) | CLOSED) & CLOSED
  const byWorkers = taken - mine
  const finished = (generation << 12) | byWorkers
  const limit = now() + Math.max(waiting.patience, SLOWER * longest)
  for (let looks = 1; ; looks++) {
    const done = Atomics.load(words, WORD.done)
    if (done === finished) break
    if (looks % LOOKS !== 0) continue
    if (now() > limit) return { error, ended: 'unfinished', byWorkers }
    if (!waiting.maySleep) continue
    Atomics.store(words, WORD.waiting, 1)
    Atomics.wait(words, WORD.done, done, NAP)
    Atomics.store(words, WORD.waiting, 0)
  }
  const failed = Atomics.load(words, WORD.failed)
  return { error, ended: failed !== 0 && failed >>> 12 === generation ? 'failed' : 'done', byWorkers }
}
