// Builds one long text from many short lines. A string made with + is a tree of pieces until it is read, and keeping hundreds of thousands of such trees alive
// is slow to collect. Joining a few hundred lines at a time frees them while they are young.

const BATCH = 256

/** Collects lines; `String(builder)` joins them with newlines. */
export class TextBuilder {
  readonly #batches: string[] = []
  #lines: string[] = []

  add(line: string): void {
    if (this.#lines.push(line) < BATCH) return
    this.#batches.push(this.#lines.join('\n'))
    this.#lines = []
  }

  toString(): string {
    return [...this.#batches, ...this.#lines].join('\n')
  }
}
