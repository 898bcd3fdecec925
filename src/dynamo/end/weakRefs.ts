// A list of objects that it does not keep alive, and that does not grow with those that are gone.

export class WeakRefs<T extends object> {
  readonly #refs = new Set<WeakRef<T>>()
  #sweepAt = 64

  add(object: T): void {
    this.#refs.add(new WeakRef(object))
    if (this.#refs.size < this.#sweepAt) return
    for (const ref of this.#refs) if (ref.deref() === undefined) this.#refs.delete(ref)
    // Twice what is left, so that the cost of sweeping stays constant for each object.
    this.#sweepAt = 2 * this.#refs.size + 64
  }

  /** How many references there are, those to objects that are gone included. */
  get size(): number {
    return this.#refs.size
  }

  /** The objects that are still there. */
  *[Symbol.iterator](): Generator<T> {
    for (const ref of this.#refs) {
      const object = ref.deref()
      if (object !== undefined) yield object
    }
  }
}
