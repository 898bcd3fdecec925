// The ranks that save or load a checkpoint together. One process works alone unless `distributed/checkpoint` says otherwise.
import type { Module } from '../module/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { valueText } from '../protocol/index.ts'
import type { HasState, Part } from './part.ts'

/** The ranks of a process group, as checkpoints know them: a `ProcessGroup` of `tensorfx/distributed`. */
export interface RankGroup {
  readonly rank: number
  readonly size: number
  readonly ranks: readonly number[]
}

/** The ranks that save or load together. */
export interface Team {
  readonly rank: number
  readonly size: number
  /** Every rank's value, by rank. It travels as JSON. */
  gather(value: unknown): readonly unknown[]
  /** Work that each rank does. If it fails on one, all throw: the others would wait for that one later. `what` follows "cannot". */
  each<T>(where: string, what: string, work: () => T): T
  /** Work that the first rank does, and whose result, which JSON can hold, all get. All throw if it fails. */
  first<T>(where: string, what: string, work: () => T): T
}

/** How ranks save and load together. */
export interface Ranks {
  /**
   * The ranks that save or load these models together: those of `group`; all ranks if a model is one of DistributedDataParallel or FSDP; otherwise null, since this process works alone.
   * Throws ArgumentError if `group` is no ProcessGroup.
   */
  teamOf(where: string, models: readonly Module[], group: RankGroup | undefined): Team | null
  /** A model whose state is the same on any number of ranks. All ranks read and load it together. */
  modelPart(name: string, model: Module): Part
  /** The same of the optimizer of one of these models; null for an object that is no optimizer of parameters. */
  optimizerPart(where: string, name: string, optimizer: HasState, models: readonly Module[]): Part | null
}

/** A process without others. */
export const ALONE: Team = {
  rank: 0,
  size: 1,
  gather: (value) => [value],
  each: (_where, _what, work) => work(),
  first: (_where, _what, work) => work(),
}

let registered: Ranks | null = null

/** Lets checkpoints know of ranks. */
export function registerRanks(ranks: Ranks): void {
  registered = ranks
}

/** How ranks save and load together; null in a program without `tensorfx/distributed`. */
export const ranksOrNull = (): Ranks | null => registered

/** The ranks that save or load these models together; null if this process does so alone. Throws ArgumentError for a group without `tensorfx/distributed`. */
export function teamOrNull(where: string, models: readonly Module[], group: RankGroup | undefined): Team | null {
  if (registered !== null) return registered.teamOf(where, models, group)
  if (group !== undefined)
    throw new ArgumentError(`${where}: option 'group' must be a ProcessGroup of 'tensorfx/distributed', got ${valueText(group)}.`)
  return null
}
