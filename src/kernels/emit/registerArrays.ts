// Local arrays of the loop IR in registers: along the last dimension as many whole vectors as there are, and the elements that are left one by one, each in all
// lanes of a register. Which element code accesses is known when it is written.
import { InternalError } from '../../errors/index.ts'
import type { LocalArray } from '../ir/loopIr.ts'
import type { Val, VectorCode } from '../wasm/vectorCode.ts'

/** An element: its indices, and the dimension along which lanes run (the index is that of the first lane); null if all lanes have the same element. */
export interface ArrayElement {
  readonly indices: readonly number[]
  readonly lanes: number | null
  /** The indices for each lane, where lanes choose elements that are no neighbours; otherwise null. */
  readonly chosen: readonly (readonly number[])[] | null
}

interface Registers {
  /** Of each row: its vectors, then its single elements. */
  readonly rows: readonly (readonly number[])[]
  readonly vectors: number
  /** Columns of blocks that were transposed, by the place of the block. */
  readonly transposed: Map<string, readonly number[]>
}

export class RegisterArrays {
  readonly #code: VectorCode
  readonly #arrays = new Map<LocalArray, Registers>()
  /** The arrays some of whose blocks were transposed. */
  readonly #turned = new Set<LocalArray>()

  constructor(code: VectorCode) {
    this.#code = code
  }

  /** New registers. `push` pushes the value of every element. */
  declare(array: LocalArray, push: () => void): void {
    const { f, elements } = this.#code
    const columns = array.shape.at(-1) ?? 1
    const vectors = Math.floor(columns / elements)
    const rows = array.shape.slice(0, -1).reduce((product, size) => product * size, 1)
    let last: number | null = null
    const register = (): number => {
      if (last === null) push()
      else f.get(last)
      last = this.#code.pop()
      return last
    }
    const perRow = vectors + (columns % elements)
    this.#arrays.set(array, {
      rows: Array.from({ length: rows }, () => Array.from({ length: perRow }, register)),
      vectors,
      transposed: new Map(),
    })
  }

  element(array: LocalArray, place: ArrayElement): Val {
    if (place.chosen !== null) return this.#chosen(array, place.chosen)
    const { elements } = this.#code
    const { vectors, rows } = this.#registers(array)
    const { row, column } = this.#at(array, place.indices)
    const vector = Math.floor(column / elements)
    const last = array.shape.length - 1
    if (place.lanes !== null && place.lanes !== last) return [this.#transposed(array, place.lanes, row, column)]
    const register = this.#register(rows, row, vector < vectors ? vector : vectors + column - vectors * elements)
    return place.lanes === last || vector >= vectors ? [register] : this.#spread(register, column % elements)
  }

  set(array: LocalArray, place: ArrayElement, value: Val): void {
    const { f, elements } = this.#code
    const { vectors, rows } = this.#registers(array)
    const { row, column } = this.#at(array, place.indices)
    const vector = Math.floor(column / elements)
    const register = this.#register(rows, row, vector < vectors ? vector : vectors + column - vectors * elements)
    if (place.lanes === null && vector < vectors) {
      const lane = column % elements
      f.get(register)
      f.get(value[0])
      f.shuffle32(...this.#lanes((at) => (at === lane ? elements + at : at)))
    } else f.get(value[0])
    f.set(register)
  }

  /** The elements of a row, combined: vectors in pairs, then the lanes of the last one, then single elements. */
  reduced(array: LocalArray, place: ArrayElement, combine: (a: Val, b: Val) => Val): Val {
    const { elements } = this.#code
    const { vectors, rows } = this.#registers(array)
    const { row } = this.#at(array, place.indices)
    const inPairs = (from: number, to: number): Val => {
      if (to - from === 1) return [this.#register(rows, row, from)]
      const middle = (from + to) >> 1
      return combine(inPairs(from, middle), inPairs(middle, to))
    }
    let sum = vectors === 0 ? null : inPairs(0, vectors)
    for (let width = elements / 2; sum !== null && width >= 1; width /= 2) {
      const { [0]: all } = sum
      sum = combine(
        sum,
        this.#shuffled(all, all, (at) => at ^ width),
      )
    }
    for (let slot = vectors; slot < (rows[row]?.length ?? 0); slot++) {
      const single: Val = [this.#register(rows, row, slot)]
      sum = sum === null ? single : combine(sum, single)
    }
    if (sum === null) throw new InternalError(`the array ${array.name} has no elements`)
    return sum
  }

  /** Forgets which blocks were transposed: of an array that changes, or of all where code begins that may run without that before it. */
  forget(array: LocalArray | null): void {
    for (const other of array === null ? this.#turned : [array]) if (this.#turned.delete(other)) this.#registers(other).transposed.clear()
  }

  #registers(array: LocalArray): Registers {
    const registers = this.#arrays.get(array)
    if (registers === undefined) throw new InternalError(`the array ${array.name} is used where it is not declared`)
    return registers
  }

  #register(rows: Registers['rows'], row: number, slot: number): number {
    const register = rows[row]?.[slot]
    if (register === undefined) throw new InternalError('an element outside its local array')
    return register
  }

  #at({ shape }: LocalArray, indices: readonly number[]): { readonly row: number; readonly column: number } {
    const rows = shape.slice(0, -1)
    return { row: rows.reduce((at, size, d) => at * size + (indices[d] ?? 0), 0), column: indices[rows.length] ?? 0 }
  }

  /** Elements in the same column of rows that are neighbours along another dimension than the last. */
  #transposed(array: LocalArray, dimension: number, row: number, column: number): number {
    const { elements } = this.#code
    const { rows, vectors, transposed } = this.#registers(array)
    const step = array.shape.slice(dimension + 1, -1).reduce((product, size) => product * size, 1)
    const vector = Math.floor(column / elements)
    const single = vector >= vectors
    const slot = single ? vectors + column - vectors * elements : vector
    const key = `${row} ${step} ${slot}`
    let columns = transposed.get(key)
    if (columns === undefined) {
      const block = Array.from({ length: elements }, (_, lane) => this.#register(rows, row + lane * step, slot))
      columns = this.#transpose(block)
      transposed.set(key, columns)
      this.#turned.add(array)
    }
    const result = columns[single ? 0 : column % elements]
    if (result === undefined) throw new InternalError('a column outside its block')
    return result
  }

  /** As many registers as there are lanes, transposed: each step interleaves the first half of them with the second. */
  #transpose(block: readonly number[]): readonly number[] {
    const { elements } = this.#code
    const half = elements / 2
    let rows = block
    for (let width = 1; width < elements; width *= 2) {
      rows = rows.slice(0, half).flatMap((row, r) => {
        const other = rows[r + half] ?? row
        const interleaved = (from: number): number => this.#shuffled(row, other, (at) => from + (at >> 1) + (at % 2) * elements)[0]
        return [interleaved(0), interleaved(half)]
      })
    }
    return rows
  }

  /** One element for each lane: a shuffle of two registers, and one more for each other register that there is. */
  #chosen(array: LocalArray, lanes: readonly (readonly number[])[]): Val {
    const { elements } = this.#code
    const { vectors, rows } = this.#registers(array)
    const sources = lanes.map((indices) => {
      const { row, column } = this.#at(array, indices)
      const vector = Math.floor(column / elements)
      const isSingle = vector >= vectors
      return {
        register: this.#register(rows, row, isSingle ? vectors + column - vectors * elements : vector),
        element: isSingle ? 0 : column % elements,
      }
    })
    const [first = 0, second = first, ...others] = new Set(sources.map(({ register }) => register))
    const elementOf = (lane: number): number => sources[lane]?.element ?? 0
    const isOf = (register: number, lane: number): boolean => sources[lane]?.register === register
    if (second === first && lanes.every((_, lane) => elementOf(lane) === lane)) return [first]
    const start = this.#shuffled(first, second, (lane) => elementOf(lane) + (isOf(first, lane) ? 0 : elements))
    return others.reduce<Val>(
      (made, other) => this.#shuffled(made[0], other, (lane) => (isOf(other, lane) ? elements + elementOf(lane) : lane)),
      start,
    )
  }

  /**
   * Of the row at `place`, for each lane the element with the number in `numbers`: bytes of each vector, which are 0 where they are those of another one. `bytes` are the
   * numbers of their bytes.
   */
  computed(array: LocalArray, place: ArrayElement, numbers: Val, bytes: Val): Val {
    const code = this.#code
    const { vectors, rows } = this.#registers(array)
    const registers = rows[this.#at(array, place.indices).row] ?? []
    const [first, ...others] = registers.slice(0, vectors).map((register): Val => [register])
    const singles = registers.slice(vectors)
    if (first !== undefined && registers.length === 1) return code.chosenBytes(first, bytes)
    const start = first === undefined ? code.i32(0) : code.op2('i8x16.swizzle', first, bytes)
    const ofVectors = others.reduce<Val>((made, vector, v) => {
      const within = code.op2('i8x16.sub', bytes, code.i32(16 * (v + 1) * 0x01010101))
      return code.op2('v128.or', made, code.op2('i8x16.swizzle', vector, within))
    }, start)
    return singles.reduce<Val>(
      (made, single, s) => code.select(code.op2('i32x4.eq', numbers, code.i32(vectors * code.elements + s)), [single], made),
      ofVectors,
    )
  }

  #spread(register: number, lane: number): Val {
    return this.#shuffled(register, register, () => lane)
  }

  /** A new register with elements of two: `from` gives for each lane the element of the first, or of the second from `elements` on. */
  #shuffled(a: number, b: number, from: (lane: number) => number): Val {
    const { f } = this.#code
    const result = f.local('v128')
    f.get(a)
    f.get(b)
    f.shuffle32(...this.#lanes(from))
    f.set(result)
    return [result]
  }

  /** The 32-bit lanes for elements: each has one, or two in vectors of two elements. */
  #lanes(from: (element: number) => number): [number, number, number, number] {
    const two = this.#code.elements === 2
    const lane = (at: number): number => (two ? from(at >> 1) * 2 + (at & 1) : from(at))
    return [lane(0), lane(1), lane(2), lane(3)]
  }
}
