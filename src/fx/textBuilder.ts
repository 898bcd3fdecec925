// One long text from many short lines. A string made with + is a tree of pieces until somebody reads it; hundreds of thousands of such trees, all
// alive, cost more than writing them did. Joined a few hundred at a time they are gone before the garbage collector moves them.

const BATCH = 256

/** Collects lines; `String(builder)` is the lines with newlines between them. */
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
