// A set of small numbers, 32 to a word: unions and comparisons of large sets are fast.

export class BitSet {
  #words: Uint32Array

  constructor(words: Uint32Array = new Uint32Array(0)) {
    this.#words = words
  }

  copy(): BitSet {
    return new BitSet(this.#words.slice())
  }

  /** Whether the number is in the set; false for negative ones. */
  has(number: number): boolean {
    return number >= 0 && (((this.#words[number >>> 5] ?? 0) >>> (number & 31)) & 1) === 1
  }

  add(number: number): void {
    const at = number >>> 5
    if (at >= this.#words.length) this.#grow(at + 1)
    this.#words[at] = (this.#words[at] ?? 0) | (1 << (number & 31))
  }

  delete(number: number): void {
    const at = number >>> 5
    if (at < this.#words.length) this.#words[at] = (this.#words[at] ?? 0) & ~(1 << (number & 31))
  }

  addAll(other: BitSet): void {
    const added = other.#words
    if (added.length > this.#words.length) this.#grow(added.length)
    const words = this.#words
    for (let i = 0; i < added.length; i++) words[i] = (words[i] ?? 0) | (added[i] ?? 0)
  }

  /** Whether each number is in one of two sets. */
  isWithin({ direct, beyond }: { readonly direct: BitSet; readonly beyond: BitSet }): boolean {
    return this.#words.every((word, i) => (word & ~((direct.#words[i] ?? 0) | (beyond.#words[i] ?? 0))) === 0)
  }

  /** The first number from `from` on that `excluded` has not; -1 if there is none. */
  nextOutside(excluded: BitSet, from: number): number {
    let mask = -1 << (from & 31)
    for (let i = from >>> 5; i < this.#words.length; i++) {
      const word = (this.#words[i] ?? 0) & ~(excluded.#words[i] ?? 0) & mask
      if (word !== 0) return 32 * i + 31 - Math.clz32(word & -word)
      mask = -1
    }
    return -1
  }

  #grow(length: number): void {
    const words = new Uint32Array(length)
    words.set(this.#words)
    this.#words = words
  }
}
