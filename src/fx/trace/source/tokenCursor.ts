// TokenCursor: the tokens of a source, read one by one by the small parsers of this folder.
import { isClosing } from './tokens.ts'
import type { Token } from './tokens.ts'

/** Thrown where a source is not what a parser reads, which {@link orNull} catches. */
class Mismatch extends Error {}

/** What `parse` returns; null if the source is not what it reads. */
export function orNull<T>(parse: () => T): T | null {
  try {
    return parse()
  } catch (error) {
    if (error instanceof Mismatch) return null
    throw error
  }
}

/** Ends the parse under way. */
export function mismatch(): never {
  throw new Mismatch()
}

/** Ends the parse under way unless a condition holds. */
export function demand(condition: boolean): asserts condition {
  if (!condition) mismatch()
}

export const isPunctuator = (token: Token | undefined, text: string): boolean => token?.type === 'punctuator' && token.text === text

export const isName = (token: Token | undefined, text: string): boolean => token?.type === 'name' && token.text === text

/** Tokens with a place among them. Methods that demand a token end the parse where there is another one. */
export class TokenCursor {
  readonly #tokens: Iterator<Token, unknown>
  /** Tokens that were looked at and not taken. */
  readonly #ahead: Token[] = []

  constructor(tokens: Iterator<Token, unknown>) {
    this.#tokens = tokens
  }

  /** A token that is not taken: the next one, or one that comes `offset` tokens later. Undefined after the last one. */
  peek(offset = 0): Token | undefined {
    while (this.#ahead.length <= offset) {
      const { value, done } = this.#tokens.next()
      if (done === true) return undefined
      this.#ahead.push(value)
    }
    return this.#ahead[offset]
  }

  /** Takes the next token, which must exist. */
  take(): Token {
    const token = this.peek()
    demand(token !== undefined)
    this.#ahead.shift()
    return token
  }

  /** Takes the next token if it is this punctuator. Returns whether it was. */
  takeIf(punctuator: string): boolean {
    const isNext = isPunctuator(this.peek(), punctuator)
    if (isNext) this.take()
    return isNext
  }

  /** Takes this punctuator, which must be next. */
  expect(punctuator: string): void {
    demand(this.takeIf(punctuator))
  }

  /** Takes the elements of a list, with commas between them, and its closing bracket. */
  takeList<T>(close: string, takeElement: () => T): T[] {
    const elements: T[] = []
    while (!this.takeIf(close)) {
      elements.push(takeElement())
      if (!isPunctuator(this.peek(), close)) this.expect(',')
    }
    return elements
  }

  /** Takes tokens up to the first of these punctuators that no bracket encloses, which must come. */
  takeUntil(ends: readonly string[]): Token[] {
    const taken: Token[] = []
    let depth = 0
    for (let token = this.peek(); token !== undefined; token = this.peek()) {
      if (depth === 0 && token.type === 'punctuator' && ends.includes(token.text)) return taken
      if (token.opens !== null) depth++
      else if (isClosing(token)) depth--
      taken.push(this.take())
    }
    return mismatch()
  }

  /** All further tokens. They can be iterated once. */
  *rest(): Generator<Token> {
    for (let token = this.peek(); token !== undefined; token = this.peek()) yield this.take()
  }
}
