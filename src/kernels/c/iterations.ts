// Which iterations code is written for: the counters of loops that run, the numbers of those that are written out, and the loop whose iterations run in lanes.
import { InternalError } from '../../errors/index.ts'
import type { ArrayPlace, Expr, Index, LoopVar } from '../ir/loopIr.ts'
import type { Width } from './cCode.ts'

export class Iterations {
  /** The variables of loops that run. */
  readonly counters: Map<LoopVar, string> = new Map()
  /** The values of loops that are written out. */
  readonly known: Map<LoopVar, number> = new Map()
  /** The loop whose iterations run in lanes, and how many at a time. */
  lanes: LoopVar | null = null
  width: Width = 1

  inLanes(loop: LoopVar, width: Width, body: () => void): void {
    const before = { lanes: this.lanes, width: this.width }
    this.lanes = loop
    this.width = width
    body()
    this.lanes = before.lanes
    this.width = before.width
  }

  /** The value of a loop's variable; in lanes that of the first. */
  first(loop: LoopVar): number | string {
    const value = this.known.get(loop) ?? this.counters.get(loop)
    if (value === undefined) throw new InternalError(`the loop variable ${loop.name} is used outside its loop`)
    return value
  }

  /** An index that is known when code is written, for a lane. */
  #knownIndex({ base, terms, dynamic }: Index, lane: number): number {
    const start = terms.reduce(
      (sum, { loop, stride }) => sum + ((this.known.get(loop) ?? NaN) + (loop === this.lanes ? lane : 0)) * Number(stride),
      Number(base),
    )
    return dynamic.reduce((sum, { value, stride }) => sum + this.numberOf(value, lane) * Number(stride), start)
  }

  /** A constant or a number of a table, for a lane. */
  numberOf(expr: Expr, lane: number): number {
    if (expr.kind === 'const') return Number(expr.value)
    return (expr.kind === 'lookup' ? expr.values[this.#knownIndex(expr.place, lane)] : undefined) ?? NaN
  }

  /** The numbers of a table for all lanes, if they differ; otherwise null. */
  numbersOf(expr: Expr): readonly number[] | null {
    if (this.width === 1) return null
    const numbers = Array.from({ length: this.width }, (_, lane) => this.numberOf(expr, lane))
    return numbers.every((number) => number === numbers[0]) ? null : numbers
  }

  /** The indices of the elements of a local array, for each lane if they differ. */
  indices(place: ArrayPlace): readonly (readonly number[])[] {
    const indicesOf = (lane: number): readonly number[] => place.map((index) => this.#knownIndex(index, lane))
    const first = indicesOf(0)
    if (this.width === 1) return [first]
    const lanes = Array.from({ length: this.width }, (_, lane) => indicesOf(lane))
    return lanes.every((indices) => indices.every((index, d) => index === first[d])) ? [first] : lanes
  }
}
