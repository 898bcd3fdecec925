// `start:stop:step`, Python's slice: what indexing operators take in graphs.

/** A range of indices with a step; null leaves an end open. Frozen. Python's `slice(start, stop, step)`. */
export class Slice<T = number | null> {
  readonly start: T | null
  readonly stop: T | null
  readonly step: T | null

  constructor(start: T | null, stop: T | null, step: T | null = null) {
    this.start = start
    this.stop = stop
    this.step = step
    Object.freeze(this)
  }

  /** As Python prints it: `slice(None, 3, None)`. */
  toString(): string {
    const text = (part: T | null): string => (part === null ? 'None' : String(part))
    return `slice(${text(this.start)}, ${text(this.stop)}, ${text(this.step)})`
  }
}
