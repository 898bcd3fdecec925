// Origins and heirs: of the bad elements that a run computes, where each comes from. An operator whose result is bad although its arguments are not is an origin; what is computed
// from that is an heir. An infinity that the program asked for, such as the -Infinity of a mask, is no fault; a NaN that is computed from it is.
import type { Storage, Tensor } from '../../tensor/index.ts'
import { elementAt, indexOf, isBad } from './badness.ts'
import type { BadKind, Badness } from './badness.ts'

/** Where bad elements of one kind come from. `W` says what happened there. */
export interface Origin<W> {
  /** Origins are numbered in the order of execution. */
  readonly order: number
  readonly bad: BadKind
  /** The program asked for it. */
  readonly isIntended: boolean
  readonly where: W
  /** Which result it is, the index of the element in it, and the element. */
  readonly output: number
  readonly index: readonly number[]
  readonly element: number
}

/** A tensor that an operator takes or gives, and its bad elements. Those of an argument are looked for before the operator runs, which may write to it. */
export interface Argument {
  readonly tensor: Tensor
  readonly badness: Badness
}

type Labels<W> = { -readonly [kind in BadKind]: Origin<W> | null }

const KINDS: readonly BadKind[] = ['nan', 'infinite']

/** Follows bad elements through the operators of a run. */
export class Origins<W> {
  readonly #labels = new WeakMap<Storage, Labels<W>>()
  #order = 0

  /** The origin of the bad elements of a kind in a tensor; null if nothing is known of them. */
  of(tensor: Tensor, bad: BadKind): Origin<W> | null {
    return tensor.storage === null ? null : (this.#labels.get(tensor.storage)?.[bad] ?? null)
  }

  /** Tells of a tensor from outside, before its first use. `where` is only asked if it is bad. */
  enters(tensor: Tensor, badness: Badness, isIntended: (bad: BadKind) => boolean, where: () => W): void {
    for (const bad of KINDS) if (badness[bad] !== null) this.#set(tensor, bad, this.#origin(tensor, badness, bad, 0, isIntended(bad), where()))
  }

  /** Tells of an operator that ran. `numbers` are those among its arguments; `where` is asked if it is an origin. */
  computed(args: readonly Argument[], numbers: readonly number[], results: readonly Argument[], where: () => W): void {
    for (const [i, { tensor: result, badness }] of results.entries()) {
      if (!isBad(badness)) {
        this.#clear(result)
        continue
      }
      for (const bad of KINDS) {
        if (badness[bad] === null) continue
        const cause = this.#cause(bad, args)
        const intended = bad === 'infinite' && numbers.some((n) => Math.abs(n) === Infinity)
        if (cause !== null && (!cause.isIntended || bad === 'infinite')) this.#set(result, bad, cause)
        else this.#set(result, bad, this.#origin(result, badness, bad, i, intended, where()))
      }
    }
  }

  /** What is computed in several steps counts as one: the origin of a bad result, if it is one of those for which `isPart` holds, is told anew, by the result itself. */
  summarize(
    results: readonly (Argument | null)[],
    isPart: (where: W) => boolean,
    where: (result: Tensor, index: readonly number[], part: W) => W,
  ): void {
    for (const [output, result] of results.entries()) {
      if (result === null) continue
      const { tensor, badness } = result
      for (const bad of KINDS) {
        const part = badness[bad] === null ? null : this.of(tensor, bad)
        if (part === null || !isPart(part.where)) continue
        const index = indexOf(tensor.shape, badness[bad] ?? 0)
        this.#set(tensor, bad, { ...part, bad, output, index, element: elementAt(tensor, index), where: where(tensor, index, part.where) })
      }
    }
  }

  /** The earliest origin among arguments: of NaN, then of infinities, where those that the program asked for come last. */
  #cause(bad: BadKind, args: readonly Argument[]): Origin<W> | null {
    const known = (kind: BadKind): readonly Origin<W>[] =>
      args.flatMap(({ tensor, badness }) => {
        const origin = badness[kind] === null ? null : this.of(tensor, kind)
        return origin === null ? [] : [origin]
      })
    const [nans, infinities] = [known('nan'), known('infinite')]
    const faults = infinities.filter((origin) => !origin.isIntended)
    const order = bad === 'nan' ? [nans, faults] : [faults, nans]
    return earliest(order[0] ?? []) ?? earliest(order[1] ?? []) ?? earliest(infinities)
  }

  #origin(tensor: Tensor, badness: Badness, bad: BadKind, output: number, isIntended: boolean, where: W): Origin<W> {
    const index = indexOf(tensor.shape, badness[bad] ?? 0)
    return { order: this.#order++, bad, isIntended, where, output, index, element: elementAt(tensor, index) }
  }

  #set(tensor: Tensor, bad: BadKind, origin: Origin<W>): void {
    const { storage } = tensor
    if (storage === null) return
    const labels = this.#labels.get(storage) ?? { nan: null, infinite: null }
    labels[bad] = origin
    this.#labels.set(storage, labels)
  }

  /** The tensor is good. That says nothing about other parts of its memory. */
  #clear(tensor: Tensor): void {
    if (tensor.storage !== null && tensor.viewBase === null) this.#labels.delete(tensor.storage)
  }
}

/** The first in the order of execution; null if there are none. */
export function earliest<W>(origins: readonly Origin<W>[]): Origin<W> | null {
  let first: Origin<W> | null = null
  for (const origin of origins) if (first === null || origin.order < first.order) first = origin
  return first
}
