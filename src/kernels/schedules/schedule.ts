// What a schedule is: a function from a problem and a tile to a kernel of the loop IR, which every engine translates. Schedules live beside this file and import no
// emitter (scripts/house/layers.mjs). How one is written: see the example at the start of ../ir/loopIr.ts.
import type { TileEngine } from '../engine/engine.ts'
import type { Kernel } from '../ir/loopIr.ts'

/**
 * A schedule for problems of one kind. `Problem` is what callers have (sizes, strides, buffers, an epilogue as expressions); `Spec` is the same in the schedule's own
 * terms, e.g. with the operand first that is walked along rows; `Tile` says how much of it is computed at once.
 */
export interface Schedule<Problem, Spec, Tile> {
  readonly name: string
  /** Whether it can compute the problem. */
  readonly match: (problem: Problem) => boolean
  readonly spec: (problem: Problem) => Spec
  /** The tiles to choose from, best first: measured, since what an engine makes of a tile does not follow from its number of registers. */
  readonly tiles: (engine: TileEngine) => readonly Tile[]
  readonly build: (spec: Spec, tile: Tile) => Kernel
}
