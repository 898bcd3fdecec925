// When a candidate counts as hanging. What counts is the processor time that it has used, since on a busy machine a candidate that works may take any time; a candidate
// that sleeps uses none, and is ended by the time that passes.

/** How long something has run. */
export interface Elapsed {
  /** Milliseconds that have passed. */
  readonly wallMs: number
  /** Milliseconds of processor time, in all threads; null where it cannot be measured (a worker of a page). */
  readonly cpuMs: number | null
}

/** A candidate sleeps if it has run for this many limits and used less than this part of the time. */
const SLEEPING_LIMITS = 5
const SLEEPING_PART = 0.01

/** However little processor time it gets, a candidate has this many limits. */
const MOST_LIMITS = 20

/** Why a candidate has hung; null if it may still answer. */
export function whyHung({ wallMs, cpuMs }: Elapsed, limitMs: number): string | null {
  // A candidate with many threads uses its processor time in a moment.
  if (wallMs < limitMs) return null
  if (cpuMs === null) return `no answer within ${limitMs} ms (an endless loop?)`
  if (cpuMs >= limitMs) return `no answer within ${limitMs} ms of processor time (an endless loop?)`
  if (wallMs >= limitMs * SLEEPING_LIMITS && cpuMs < wallMs * SLEEPING_PART)
    return `no answer within ${limitMs * SLEEPING_LIMITS} ms, nearly without processor time (does it wait for ever?)`
  return wallMs >= limitMs * MOST_LIMITS ? `no answer within ${limitMs * MOST_LIMITS} ms` : null
}

/** How often a candidate that may be out of time is checked. */
export const LOOK_MS = 50
