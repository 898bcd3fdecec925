// The values of literals in a source: numbers, strings, templates without `${}`, and the arrays and objects made of them.
import { TokenCursor, demand, mismatch, orNull } from './tokenCursor.ts'
import { decodeEscapes } from './tokens.ts'
import type { Token } from './tokens.ts'

/** A value that is known from the source. The value itself may be null or undefined. */
export interface KnownValue {
  readonly value: unknown
}

/** The value of an expression of literals, arrays and objects; null for any other expression. */
export const literalValue = (tokens: readonly Token[]): KnownValue | null => orNull(() => new LiteralParser(tokens).parse())

const GLOBALS: ReadonlyMap<string, unknown> = new Map([
  ['undefined', undefined],
  ['Infinity', Infinity],
  ['NaN', NaN],
])
const GLOBALS_AND_KEYWORDS: ReadonlyMap<string, unknown> = new Map<string, unknown>([...GLOBALS, ['null', null], ['true', true], ['false', false]])

class LiteralParser {
  readonly #cursor: TokenCursor

  constructor(tokens: readonly Token[]) {
    this.#cursor = new TokenCursor(tokens.values())
  }

  parse(): KnownValue {
    const value = this.#value()
    demand(this.#cursor.peek() === undefined)
    return { value }
  }

  #value(): unknown {
    const { type, text } = this.#cursor.take()
    switch (type) {
      case 'number':
        return numberOf(text)
      case 'string':
        return decodeEscapes(text.slice(1, -1))
      case 'template':
        demand(/^`[^]*`$/.test(text))
        return decodeEscapes(text.slice(1, -1).replace(/\r\n?/g, '\n'))
      case 'name':
        return named(text, GLOBALS_AND_KEYWORDS)
      case 'punctuator':
        return this.#compound(text)
      default:
        return mismatch()
    }
  }

  /** The value of an expression that begins with a punctuator. */
  #compound(punctuator: string): unknown {
    switch (punctuator) {
      case '-':
        return negated(this.#value())
      case '!':
        return !this.#value()
      case '(': {
        const inner = this.#value()
        this.#cursor.expect(')')
        return inner
      }
      case '[':
        return this.#cursor.takeList(']', () => this.#value())
      case '{':
        return Object.fromEntries(this.#cursor.takeList('}', () => this.#entry()))
      default:
        return mismatch()
    }
  }

  /** `key: value`, or `undefined`, which stands for `undefined: undefined`. */
  #entry(): [key: string, value: unknown] {
    const { type, text } = this.#cursor.take()
    demand(type === 'name')
    return [text, this.#cursor.takeIf(':') ? this.#value() : named(text, GLOBALS)]
  }
}

const negated = (value: unknown): number | bigint => (typeof value === 'bigint' ? -value : -Number(value))

function named(name: string, values: ReadonlyMap<string, unknown>): unknown {
  demand(values.has(name))
  return values.get(name)
}

/** The value of a numeric literal. */
export function numberOf(text: string): number | bigint {
  const digits = text.replaceAll('_', '')
  if (digits.endsWith('n')) return BigInt(digits.slice(0, -1))
  // A number with a leading zero and no 8 or 9 is octal.
  return /^0[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : Number(digits)
}
