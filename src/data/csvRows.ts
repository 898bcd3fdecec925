// Rows of CSV text that comes in parts (RFC 4180). Values may be quoted, and then have delimiters, ends of lines, and quotes as "".
import { ArgumentError } from '../errors/index.ts'

export class CsvRows {
  readonly #where: string
  readonly #delimiter: string
  #row: string[] = []
  #value = ''
  /** Whether the value began with a quote. */
  #isQuoted = false
  /** Whether its closing quote has not come. */
  #isOpen = false
  /** Whether the last character was a quote in a quoted value: it ends the value, or another follows. */
  #afterQuote = false
  #afterReturn = false
  #line = 1
  #openedAt = 1
  #isStart = true

  constructor(where: string, delimiter: string) {
    this.#where = where
    this.#delimiter = delimiter
  }

  /** The rows that end in this part of the text. */
  *add(part: string): Generator<readonly string[], void, undefined> {
    // A byte order mark is no part of the first name.
    const text = this.#isStart && part.startsWith('\ufeff') ? part.slice(1) : part
    if (part !== '') this.#isStart = false
    for (const char of text) {
      if (char === '\n') this.#line++
      if (this.#isOpen && !this.#afterQuote) {
        if (char === '"') this.#afterQuote = true
        else this.#value += char
        continue
      }
      if (this.#afterQuote && char === '"') {
        this.#value += char
        this.#afterQuote = false
        continue
      }
      if (this.#afterQuote) [this.#isOpen, this.#afterQuote] = [false, false]
      const isSecondOfReturn = this.#afterReturn && char === '\n'
      this.#afterReturn = char === '\r'
      if (isSecondOfReturn) continue
      if (char === this.#delimiter) this.#endValue()
      else if (char === '\n' || char === '\r') yield* this.#endRow()
      else if (char === '"' && this.#value === '' && !this.#isQuoted) {
        ;[this.#isQuoted, this.#isOpen] = [true, true]
        this.#openedAt = this.#line
      } else if (this.#isQuoted)
        throw new ArgumentError(`${this.#where}: in line ${this.#line}, '${char}' follows the end of a quoted value; write quotes within it as "".`)
      else this.#value += char
    }
  }

  /** The last row, if no end of line follows it. */
  *end(): Generator<readonly string[], void, undefined> {
    if (this.#isOpen && !this.#afterQuote) throw new ArgumentError(`${this.#where}: the quote that opens in line ${this.#openedAt} does not end.`)
    yield* this.#endRow()
  }

  #endValue(): void {
    this.#row.push(this.#value)
    this.#value = ''
    this.#isQuoted = false
  }

  *#endRow(): Generator<readonly string[], void, undefined> {
    // An empty line is no row.
    if (this.#row.length === 0 && this.#value === '' && !this.#isQuoted) return
    this.#endValue()
    yield this.#row
    this.#row = []
  }
}
