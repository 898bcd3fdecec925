// What was made last, by its key.

/** Keeps the values that were asked for last. */
export class Recent<V> {
  readonly #most: number
  readonly #dropped: (value: V) => void
  /** In the order of last use. */
  readonly #values = new Map<string, V>()

  /** `dropped` gets each value that is not kept any more. */
  constructor(most: number, dropped: (value: V) => void) {
    this.#most = most
    this.#dropped = dropped
  }

  /** The value of a key, made now if it is not known. */
  of(key: string, make: () => V): V {
    const known = this.#values.get(key)
    const value = known === undefined ? make() : known
    this.#values.delete(key)
    this.#values.set(key, value)
    const [oldest] = this.#values
    if (this.#values.size <= this.#most || oldest === undefined) return value
    this.#values.delete(oldest[0])
    this.#dropped(oldest[1])
    return value
  }
}
