import type { Tensor } from 'tensorfx'
import type { FuzzApi } from './fuzz.mjs'

/** Follows a run, and says something of its tensors. */
export interface Tracker {
  around(run: () => void): void
  of(tensor: Tensor): readonly number[] | null
}

export function spreadTracker(api: FuzzApi): Tracker
