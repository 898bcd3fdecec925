// Local arrays of the loop IR in C: along the last dimension as few vectors as there can be, each a variable, which the compiler keeps in registers.
import { InternalError } from '../../errors/index.ts'
import type { LocalArray } from '../ir/loopIr.ts'
import { WIDTHS } from './cCode.ts'
import type { CCode, CVal, Width } from './cCode.ts'
import { kindOf } from './scalars.ts'

/** The vectors that `count` elements are computed in: their first elements and their widths, none wider than `most`. */
export function vectorsFor(count: number, most: Width): readonly { readonly from: number; readonly width: Width }[] {
  const found: { from: number; width: Width }[] = []
  for (let from = 0; from < count;) {
    const width = WIDTHS.find((candidate) => candidate <= most && candidate <= count - from) ?? 1
    found.push({ from, width })
    from += width
  }
  return found
}

/** The variables of a row. */
type Row = readonly { readonly from: number; readonly value: CVal }[]

export class LocalArrays {
  readonly #code: CCode
  readonly #most: Width
  readonly #arrays = new Map<LocalArray, readonly Row[]>()

  /** `most`: the widest vector. */
  constructor(code: CCode, most: Width) {
    this.#code = code
    this.#most = most
  }

  declare(array: LocalArray, start: CVal): void {
    const rows = array.shape.slice(0, -1).reduce((product, size) => product * size, 1)
    const vectors = vectorsFor(array.shape.at(-1) ?? 1, this.#most)
    const kind = kindOf(array.dtype)
    const row = (): Row =>
      vectors.map(({ from, width }) => {
        const value = this.#code.variable(kind, width, start)
        if (kind === 'i') this.#code.line(`OPAQUE_${width}(${value.text});`)
        return { from, value }
      })
    this.#arrays.set(array, Array.from({ length: rows }, row))
  }

  /** The elements at these indices, one for each lane. */
  elements(array: LocalArray, lanes: readonly (readonly number[])[]): CVal {
    const code = this.#code
    const places = lanes.map((indices) => this.#at(array, indices))
    const [first] = places
    if (first === undefined) throw new InternalError(`no element of ${array.name} is read`)
    if (places.length === 1) return this.#element(first.row, first.column)
    if (places.every(({ row, column }, lane) => row === first.row && column === first.column + lane)) {
      const found = this.#vector(first.row, first.column, places.length)
      if (found !== null) return found
    }
    return code.vector(
      kindOf(array.dtype),
      places.map(({ row, column }) => this.#element(row, column).text),
    )
  }

  set(array: LocalArray, lanes: readonly (readonly number[])[], value: CVal): void {
    const places = lanes.map((indices) => this.#at(array, indices))
    const [first] = places
    if (first === undefined) return
    const whole = first.row.find(({ from, value: variable }) => from === first.column && variable.width === places.length)
    if (whole !== undefined) return this.#code.assign(whole.value, value)
    places.forEach(({ row, column }, lane) => this.#code.line(`${this.#element(row, column).text} = ${this.#code.element(value, lane)};`))
  }

  /** All elements of a row. */
  rowOf(array: LocalArray, indices: readonly number[]): readonly CVal[] {
    const { row } = this.#at(array, indices)
    return Array.from({ length: array.shape.at(-1) ?? 1 }, (_, column) => this.#element(row, column))
  }

  /** Neighbours of a row as one vector. */
  neighbours(array: LocalArray, indices: readonly number[], from: number, width: Width): CVal {
    const last = array.shape.length - 1
    const lanes = Array.from({ length: width }, (_, lane) => [...indices.slice(0, last), from + lane])
    return this.elements(array, lanes)
  }

  #at(array: LocalArray, indices: readonly number[]): { readonly row: Row; readonly column: number } {
    const rows = array.shape.slice(0, -1)
    const row = this.#arrays.get(array)?.[rows.reduce((at, size, d) => at * size + (indices[d] ?? 0), 0)]
    if (row === undefined) throw new InternalError(`the array ${array.name} is used where it is not declared`)
    return { row, column: indices[rows.length] ?? 0 }
  }

  #element(row: Row, column: number): CVal {
    const found = row.findLast(({ from }) => from <= column)
    if (found === undefined || column >= found.from + found.value.width) throw new InternalError('an element outside its local array')
    return { text: this.#code.element(found.value, column - found.from), kind: found.value.kind, width: 1 }
  }

  #vector(row: Row, column: number, width: number): CVal | null {
    const found = row.findLast(({ from }) => from <= column)
    if (found === undefined || column + width > found.from + found.value.width) return null
    return found.value.width === width ? found.value : this.#code.part(found.value, column - found.from, width)
  }
}
