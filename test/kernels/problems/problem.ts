// A problem of a schedule as everySchedule.test.ts draws it: its kernels, what they get, and what plain loops compute.
import type { DType } from '../../../src/kernels/numbers/dtype.ts'
import type { TileEngine } from '../../../src/kernels/engine/engine.ts'
import type { Kernel } from '../../../src/kernels/ir/loopIr.ts'
import type { Schedule } from '../../../src/kernels/schedules/schedule.ts'
import type { Random } from '../../../scripts/fuzz/random.mjs'
import type { Args } from '../harness.ts'

/** A kernel and how it was built. */
export interface Built {
  readonly tile: string
  readonly kernel: Kernel
}

export interface Problem {
  /** What was drawn, for messages. */
  readonly what: string
  /** With every tile that there is for the engine. */
  readonly kernels: (engine: TileEngine) => readonly Built[]
  readonly args: Args
  /** The dtypes of buffers whose elements some kernels move as bits, and take for integers. */
  readonly dtypes?: Readonly<Record<string, DType>>
  /** What plain loops compute, by buffer. None where the schedule may let a NaN or an infinity reach further than they do. */
  readonly expected: Readonly<Record<string, ArrayLike<number | bigint>>>
  /** How far results may be from that, relative to 1 and to the result: 0, where sums are exact in every order. */
  readonly tolerance?: number
}

/** Draws a problem that the schedule takes. */
export type DrawProblem = (random: Random) => Problem

/** The kernels of a problem with every tile of a schedule, and with those that `more` makes of them. None where the schedule does not take the problem. */
export const builtWith = <P, S, T>(
  schedule: Schedule<P, S, T>,
  problem: P,
  more: (tile: T) => readonly T[] = () => [],
): ((engine: TileEngine) => readonly Built[]) =>
  schedule.match(problem)
    ? (engine) =>
        schedule
          .tiles(engine)
          .flatMap((tile) => [tile, ...more(tile)])
          .map((tile) => ({ tile: `${schedule.name} ${JSON.stringify(tile)}`, kernel: schedule.build(schedule.spec(problem), tile) }))
    : () => []

/** What `draw` gives, once that is a problem with kernels. */
export function untilTaken(draw: () => Problem | null): Problem {
  for (let tries = 0; tries < 1000; tries++) {
    const problem = draw()
    if (problem !== null && problem.kernels('wasm').length > 0) return problem
  }
  throw new Error('the schedule takes none of 1,000 problems')
}

/** Elements of operands: whole multiples of `unit`, whose sums are exact in every order, and for one problem of four also a few that are not usual. */
export interface Elements {
  readonly isOdd: boolean
  readonly whole: () => number
  /** Like `whole`, with unusual ones where the problem has some. */
  readonly any: () => number
}

const UNUSUAL = [NaN, Infinity, -Infinity, -0, 1e-45, -1e-39, 2 ** -126]

export function elementsOf({ int, pick, chance }: Random, { unit = 1, most = 8 }: { readonly unit?: number; readonly most?: number } = {}): Elements {
  const isOdd = chance(1 / 4)
  const whole = (): number => unit * (int(2 * most + 1) - most)
  return { isOdd, whole, any: () => (isOdd && chance(1 / 40) ? pick(UNUSUAL) : whole()) }
}

export const floats = (count: number, value: () => number): Float32Array => Float32Array.from({ length: Math.max(count, 0) }, value)
