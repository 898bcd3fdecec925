import type { Tensor } from 'tensorfx'
import type { FuzzApi } from './fuzz.mjs'

/** Follows a run, and says something of its tensors. */
export interface Tracker {
  around(run: () => void): void
  of(tensor: Tensor): readonly number[] | null
}

/** Functions of scalars that two runs may compute otherwise, and by how many units in the last place. */
export interface OtherFunctions {
  readonly names: readonly string[]
  readonly ulps: number
}

export function spreadTracker(api: FuzzApi, functions?: OtherFunctions | null): Tracker
