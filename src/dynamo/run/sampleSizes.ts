// How the sizes that a graph has had depend on each other, and other sizes that depend on each other in the same way. That calls agree proves nothing: what is made from it is checked at each call.
import { primeAfter } from '../../aot/run/primes.ts'
import { Tensor } from '../../tensor/index.ts'
import type { InputSample } from '../backends/backend.ts'

/** For this many lists of sizes it is known how they depend on each other. */
const MOST_LISTS = 8

/** Where the primes of a choice begin, and what they are multiplied by where the graph needs a divisor. Large ones come first, which few constants of a program are near. */
export const BEGINNINGS: readonly (readonly [from: number, times: number])[] = [
  [1000, 1],
  [90, 1],
  [1000, 24],
  [10, 1],
]

/** A size: a constant times sizes before it, plus a constant. */
interface Relation {
  readonly times: number
  readonly of: readonly number[]
  readonly plus: number
}

/** The numbers of the inputs of a graph, as calls have had them. */
export class SeenSizes {
  /** Of each input: what it is. */
  readonly #inputs: readonly ('size' | 'scalar' | { readonly rank: number; readonly dtype: Tensor['dtype'] })[]
  readonly #scalars: readonly number[]
  readonly #lists: number[][] = []

  /** `isSize`: whether a number is a size. */
  constructor(inputs: readonly unknown[], isSize: (position: number) => boolean) {
    this.#inputs = inputs.map((input, i) => (input instanceof Tensor ? { rank: input.ndim, dtype: input.dtype } : isSize(i) ? 'size' : 'scalar'))
    this.#scalars = inputs.map((input) => (typeof input === 'number' ? input : 0))
  }

  /** How many different lists of sizes were noted. */
  get count(): number {
    return this.#lists.length
  }

  /** Notes the sizes of a call. */
  note(inputs: readonly unknown[]): void {
    const list = inputs.flatMap((input, i) =>
      input instanceof Tensor ? [...input.sizes, ...input.steps] : this.#inputs[i] === 'size' ? [Number(input)] : [],
    )
    if (this.#lists.length < MOST_LISTS && !this.#lists.some((known) => known.every((size, i) => size === list[i]))) this.#lists.push(list)
  }

  /** Two choices of sizes that depend on each other as those that were seen. All that is no constant differs. Null if from such a beginning numbers follow that are no sizes. */
  samples([from, times]: (typeof BEGINNINGS)[number]): readonly [readonly InputSample[], readonly InputSample[]] | null {
    const relations = this.#relations()
    let last = from
    const next = (): number => (last = primeAfter(last)) * times
    const choice = (): readonly number[] => {
      const values: number[] = []
      for (const relation of relations) values.push(relation === null ? next() : valueOf(relation, values))
      return values
    }
    const [a, b] = [choice(), choice()]
    return [...a, ...b].every((size) => Number.isSafeInteger(size) && size >= 0) ? [this.#inputsWith(a), this.#inputsWith(b)] : null
  }

  #inputsWith(values: readonly number[]): readonly InputSample[] {
    let at = 0
    return this.#inputs.map((input, i): InputSample => {
      if (input === 'scalar') return { kind: 'scalar', value: this.#scalars[i] ?? 0 }
      if (input === 'size') return { kind: 'size', value: values[at++] ?? 0 }
      const { rank, dtype } = input
      const [shape, strides] = [values.slice(at, at + rank), values.slice(at + rank, at + 2 * rank)]
      at += 2 * rank
      return { kind: 'tensor', spec: { shape, strides, dtype } }
    })
  }

  /** How each number follows from those before; null: it does not. */
  #relations(): readonly (Relation | null)[] {
    const free: number[] = []
    return (this.#lists[0] ?? []).map((_, at) => {
      const relation = this.#relationAt(at, free)
      if (relation === null) free.push(at)
      return relation
    })
  }

  #relationAt(at: number, free: readonly number[]): Relation | null {
    const [first = []] = this.#lists
    const value = first[at] ?? 0
    const holds = (relation: Relation): boolean => this.#lists.every((list) => valueOf(relation, list) === list[at])
    const constant = { times: 0, of: [], plus: value }
    if (holds(constant)) return constant
    const multiple = (of: readonly number[]): Relation => ({ times: value / of.reduce((product, i) => product * (first[i] ?? 0), 1), of, plus: 0 })
    const sums = free.map((one): Relation => ({ times: 1, of: [one], plus: value - (first[one] ?? 0) }))
    const products = free.flatMap((one) => free.filter((other) => other >= one).map((other) => multiple([one, other])))
    return [...free.map((one) => multiple([one])), ...sums, ...products].find(holds) ?? null
  }
}

const valueOf = ({ times, of, plus }: Relation, values: readonly number[]): number => {
  let product = times
  for (const i of of) product *= values[i] ?? NaN
  return product + plus
}
