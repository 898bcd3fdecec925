// The memory through which the calling thread and its workers agree. Its protocol:
//
//   word      written by                          read by            holds
//   next      caller: opens, closes, takes;       all                the generation of the job and its next chunk, or CLOSED
//             workers: take
//   job       caller, while no job is open        workers            what to run; believed only if `next` still has that generation and is open afterwards
//   done      caller: sets; workers: add          caller             the generation and how many chunks workers have finished
//   failed    caller: clears; workers             caller             the generation and one more than a chunk that failed
//   flags     whoever ran the chunk               caller             for each chunk, the last generation in which it was finished
//   bell      caller: adds one for each job       workers wait on it
//   sleepers  workers, around their wait          caller             whether the bell needs a notification
//   waiting   caller, around its wait on `done`   workers            whether `done` needs a notification
//   states    each worker its own                 caller             see STATE
//   refused   the first worker that cannot run    caller             see REFUSED; `reasonBytes` and the reason are written in between
//             machine code
//
// A chunk is taken by a compare-exchange on `next` as a whole, so a late worker takes nothing of a later job. Closing is an exchange, which says how many chunks were taken; the caller
// then waits until `done` has those of the workers. `done` and `failed` carry the generation, so a worker that was given up and still runs adds nothing to a later job.
//
// No wake-up is lost: the caller rings the bell before it reads `sleepers`, a worker counts itself among `sleepers` before its wait compares the bell; the same with `done` and `waiting`.
// All of these are sequentially consistent. The words of the job are ordinary reads and writes: a worker reads them between a load of `next` and an addition of 0 to it, whose value the
// closing exchange reads, directly or through others' exchanges; so what the caller writes after it has closed a job comes after those reads.
// test/kernels/threads/protocol.test.ts runs the code of both sides in every order for small jobs.

/** Words of 32 bits, on cache lines of their own where several threads write. */
export const WORD = {
  bell: 0,
  next: 16,
  done: 32,
  sleepers: 48,
  waiting: 64,
  failed: 80,
  // The job.
  kernel: 96,
  moduleAt: 97,
  moduleBytes: 98,
  part: 99,
  args: 100,
  chunks: 101,
  /** The distance of chunks, and the end of the last one, in values of the loop variable. */
  chunk: 102,
  extent: 103,
  /** How long workers look for the next job before they sleep, in microseconds. */
  spin: 104,
  /** Whether a worker cannot run machine code, and how many bytes its reason has. */
  refused: 105,
  reasonBytes: 106,
  /** Sixteen words for each worker; the first is its state. */
  states: 128,
} as const

/** The states of a worker; 0 while it starts. */
export const STATE = { ready: 1, busy: 2, useless: 3 } as const

/** Whether a worker cannot run machine code; 0 where all can. */
export const REFUSED = { writing: 1, told: 2 } as const

/** The place of the next chunk where there is none. */
export const CLOSED = 0xfff
/** The most chunks of a job. */
export const MOST_CHUNKS: number = CLOSED - 1
/** Generations begin again after that many. */
export const GENERATIONS: number = 2 ** 20
/** The most parameters of a part. */
export const MOST_ARGS = 64
const MOST_WORKERS = 255

export const FLAGS_AT: number = 4 * (WORD.states + 16 * MOST_WORKERS + 16)
export const ARGS_AT: number = FLAGS_AT + 4 * (CLOSED + 1)
export const MODULES_AT: number = ARGS_AT + 16 * MOST_ARGS
/** Modules lie in a ring of that many bytes. */
export const MODULES_BYTES: number = 2 ** 20

/** Why a worker cannot run machine code, as UTF-8. */
export const REASON_AT: number = MODULES_AT + MODULES_BYTES
export const REASON_BYTES = 512

/** The views on the control memory. */
export interface Control {
  readonly words: Int32Array
  /** For each chunk, the generation in which it was done last. */
  readonly flags: Int32Array
  /** Arguments of the first worker, and behind them what each further worker's are apart. */
  readonly args: Float64Array
  readonly modules: Uint8Array
  readonly reason: Uint8Array
  readonly buffer: SharedArrayBuffer
}

export function newControl(): Control {
  const buffer = new SharedArrayBuffer(REASON_AT + REASON_BYTES)
  return {
    buffer,
    words: new Int32Array(buffer, 0, FLAGS_AT / 4),
    flags: new Int32Array(buffer, FLAGS_AT, CLOSED + 1),
    args: new Float64Array(buffer, ARGS_AT, 2 * MOST_ARGS),
    modules: new Uint8Array(buffer, MODULES_AT, MODULES_BYTES),
    reason: new Uint8Array(buffer, REASON_AT),
  }
}
