// The lines of a resizing that are made together, and the elements that they are made of.
import { call, load, read } from '../ir/loopIr.ts'
import type { BufferParam, Expr, Index, Local, Memory } from '../ir/loopIr.ts'
import { from } from './notation.ts'
import type { Terms } from './notation.ts'

/** A row that a line is made of: where it begins, in elements, and the weight of its elements. */
export interface Row {
  readonly at: Local
  readonly weight: Local | null
}

/** A line of the result that is made of one row, or of the sum of a few. */
export interface Line {
  readonly rows: readonly Row[]
  /** The image of the rows. */
  readonly source: Terms
  readonly target: Memory
  /** The image of the line in the target. */
  readonly image: Terms
  /** Where the line begins in its image. */
  readonly at: Local
}

/** What groups are made of: the lines of the image, their weights if there are any, and the lines of the result. */
export interface Sources {
  readonly a: BufferParam
  readonly weights: BufferParam | null
  readonly lines: readonly Line[]
}

/** The elements of the rows at the places that loops and further indices name. */
export const elementsOf = ({ rows, source }: Line, a: BufferParam, along: Terms, ...further: Index['dynamic']): Expr =>
  rows
    .map(({ at, weight }) => {
      const part = load(a, { ...from(0, ...source, ...along), dynamic: [{ value: read(at), stride: 1 }, ...further] })
      return weight === null ? part : call('mul', part, read(weight))
    })
    .reduce((total, part) => call('add', total, part))
