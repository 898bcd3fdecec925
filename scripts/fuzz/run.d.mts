import type { FuzzApi } from './fuzz.mjs'
import type { Program } from './judge.mjs'
import type { Tracker } from './spread.mjs'

/** A value that was noted, as data. */
export interface Snapshot {
  readonly tensor?: boolean
  readonly dtype?: string
  readonly data?: readonly number[]
  readonly list?: readonly Snapshot[]
  /** What a tracker says of a tensor. */
  readonly taint?: readonly number[] | null
}

export interface Note {
  readonly label: string
  readonly value: Snapshot
}

type Fn = (...args: readonly unknown[]) => unknown

export function runProgram(
  api: FuzzApi,
  program: Program,
  options?: { readonly wrap?: (f: Fn) => Fn; readonly taint?: Tracker | null },
): { readonly notes: readonly Note[]; readonly invalid: boolean }
