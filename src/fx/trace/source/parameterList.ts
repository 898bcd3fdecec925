// Reads the parameter list of a function from its source: names, patterns, and the defaults that are literals.
import { literalValue } from './literals.ts'
import type { KnownValue } from './literals.ts'
import { TokenCursor, demand, isName, isPunctuator, orNull } from './tokenCursor.ts'
import { tokenize } from './tokens.ts'
import type { Token } from './tokens.ts'

/** What a parameter, or a part of a pattern, assigns to. */
export type Pattern =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'list'; readonly elements: readonly (Binding | null)[] }
  | { readonly kind: 'record'; readonly properties: readonly PropertyBinding[] }

/** The default of a parameter or of a part of a pattern. */
interface Default {
  readonly hasDefault: boolean
  /** Its value; null if there is no default, or if it is not a literal. */
  readonly default: KnownValue | null
}

/** A parameter, or an element of a pattern. */
export interface Binding extends Default {
  readonly pattern: Pattern
  /** Whether it takes all remaining values: `...rest`. */
  readonly isRest: boolean
}

/** A property of a pattern. */
export interface PropertyBinding extends Binding {
  /** The name of the property; null for a computed, quoted or numeric key, and for the rest. */
  readonly key: string | null
}

/** A function without its name. */
export interface FunctionSource {
  readonly parameters: readonly Binding[]
  readonly isArrow: boolean
  /** The tokens of the body, without an opening brace. Can be iterated once. */
  readonly body: Iterable<Token>
}

/** Reads the source of a function; null if it is hidden (native, bound), or not that of a function. */
export const parseFunction = (source: string): FunctionSource | null => orNull(() => new FunctionParser(source).parse())

const NO_DEFAULT: Default = { hasDefault: false, default: null }

/** What can follow a default. */
const AFTER_DEFAULT: readonly string[] = [',', ')', ']', '}']

class FunctionParser {
  readonly #cursor: TokenCursor

  constructor(source: string) {
    this.#cursor = new TokenCursor(tokenize(source))
  }

  parse(): FunctionSource {
    const cursor = this.#cursor
    const parameters = this.#parameters()
    const isArrow = isPunctuator(cursor.peek(), '=>')
    cursor.expect(isArrow ? '=>' : '{')
    const isHidden = isName(cursor.peek(1), 'native') && isName(cursor.peek(2), 'code')
    demand(!isHidden)
    return { parameters, isArrow, body: cursor.rest() }
  }

  #parameters(): readonly Binding[] {
    const cursor = this.#cursor
    // An arrow function with one name and no parentheses: `x => …`, `async x => …`.
    if (isName(cursor.peek(), 'async') && isPunctuator(cursor.peek(2), '=>')) cursor.take()
    if (isPunctuator(cursor.peek(1), '=>')) return [{ pattern: this.#pattern(), isRest: false, ...NO_DEFAULT }]
    this.#skipName()
    return this.#bindings(')').filter((binding) => binding !== null)
  }

  /** Takes what is before the parameters, and their parenthesis: modifiers, and the name of a function or the key of a method. */
  #skipName(): void {
    const cursor = this.#cursor
    // A class has no parameters, but a method may be called `class`.
    demand(!isName(cursor.peek(), 'class') || isPunctuator(cursor.peek(1), '('))
    while (!cursor.takeIf('(')) {
      const token = cursor.take()
      if (isPunctuator(token, '[')) cursor.takeUntil([']'])
      else demand(token.type !== 'private' && (token.type !== 'punctuator' || token.text === '*' || token.text === ']'))
    }
  }

  /** The elements of a list up to its closing bracket; null for a hole. */
  #bindings(close: string): (Binding | null)[] {
    return this.#cursor.takeList(close, () => (isPunctuator(this.#cursor.peek(), ',') ? null : this.#binding()))
  }

  #binding(): Binding {
    const isRest = this.#cursor.takeIf('...')
    return { pattern: this.#pattern(), isRest, ...this.#default() }
  }

  #default(): Default {
    return this.#cursor.takeIf('=') ? { hasDefault: true, default: literalValue(this.#cursor.takeUntil(AFTER_DEFAULT)) } : NO_DEFAULT
  }

  #pattern(): Pattern {
    const token = this.#cursor.take()
    if (token.type === 'name') return { kind: 'name', name: token.text }
    if (isPunctuator(token, '[')) return { kind: 'list', elements: this.#bindings(']') }
    demand(isPunctuator(token, '{'))
    return { kind: 'record', properties: this.#cursor.takeList('}', () => this.#property()) }
  }

  #property(): PropertyBinding {
    const cursor = this.#cursor
    if (isPunctuator(cursor.peek(), '...')) return { key: null, ...this.#binding() }
    const token = cursor.take()
    if (isPunctuator(token, '[')) {
      cursor.takeUntil([']'])
      cursor.expect(']')
    }
    const key = token.type === 'name' ? token.text : null
    if (cursor.takeIf(':')) return { key, ...this.#binding() }
    demand(key !== null)
    return { key, pattern: { kind: 'name', name: key }, isRest: false, ...this.#default() }
  }
}
