// `start:stop:step`, Python's slice: what indexing operators take in graphs.

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

  toString(): string {
    const text = (part: T | null): string => (part === null ? 'None' : String(part))
    return `slice(${text(this.start)}, ${text(this.stop)}, ${text(this.step)})`
  }
}
