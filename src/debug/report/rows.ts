// The rows of a timeline, while they are made.
import { NONE } from './data.ts'
import type { Kind, Row } from './data.ts'

/** Something that is put together step by step. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** A row before it has a time: its kind and title, and what it has besides. */
export interface NewRow extends Partial<Omit<Row, 'kind' | 'title' | 'time'>> {
  readonly kind: Kind
  readonly title: string
}

/** A line below the title of a row. */
export const detail = (name: string, text: string): Row['details'][number] => [name, text]

export class Rows {
  readonly list: Mutable<Row>[] = []
  readonly #start: number

  /** `start`: when the trace began. */
  constructor(start: number) {
    this.#start = start
  }

  /** Adds a row for something that happened at a time. Returns its number. */
  add(time: number, row: NewRow): number {
    const usual = { depth: 0, details: [], place: NONE, stack: [], milliseconds: null, count: 1, graph: NONE } as const
    return this.list.push({ ...usual, ...row, time: time - this.#start }) - 1
  }
}
