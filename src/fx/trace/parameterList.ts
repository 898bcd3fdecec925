// Reads the parameter list of a function from its source: names, patterns, and the defaults that are literals.
import { decodeEscapes, tokenize } from './tokens.ts'
import type { Token } from './tokens.ts'

/** What a parameter, or a part of a pattern, assigns to. */
export type Pattern =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'list'; readonly elements: readonly (Binding | null)[] }
  | { readonly kind: 'record'; readonly properties: readonly PropertyBinding[] }

/** A value in an array; `[]` if there is none, or if it is not known. */
export type Constant = readonly [unknown?]

/** A parameter, or an element of a pattern. */
export interface Binding {
  readonly pattern: Pattern
  /** Whether it takes all remaining values: `...rest`. */
  readonly isRest: boolean
  readonly hasDefault: boolean
  /** The value of the default, if it is a literal. */
  readonly default: Constant
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
export function parseFunction(source: string): FunctionSource | null {
  try {
    return new Reader(source).read()
  } catch (error) {
    if (error instanceof Mismatch) return null
    throw error
  }
}

/** The source is not that of a function. */
class Mismatch extends Error {}

const is = (token: Token | undefined, punctuator: string): boolean => token?.type === 'punctuator' && token.text === punctuator
const isName = (token: Token | undefined, name: string): boolean => token?.type === 'name' && token.text === name

class Reader {
  readonly #tokens: Generator<Token>
  readonly #ahead: Token[] = []

  constructor(source: string) {
    this.#tokens = tokenize(source)
  }

  read(): FunctionSource {
    const parameters = this.#parameters()
    const isArrow = is(this.#peek(), '=>')
    this.#take(isArrow ? '=>' : '{')
    if (isName(this.#peek(1), 'native') && isName(this.#peek(2), 'code')) throw new Mismatch()
    return { parameters, isArrow, body: this.#rest() }
  }

  #parameters(): readonly Binding[] {
    // An arrow function with a single name: `x => …`, `async x => …`.
    if (isName(this.#peek(), 'async') && is(this.#peek(2), '=>')) this.#next()
    if (is(this.#peek(1), '=>')) return [plain(this.#pattern())]
    if (isName(this.#peek(), 'class') && !is(this.#peek(1), '(')) throw new Mismatch()
    // Modifiers, and the name of a function or the key of a method.
    while (!is(this.#peek(), '(')) {
      const token = this.#next()
      if (is(token, '[')) this.#skip([']'])
      else if (token.type === 'private' || (token.type === 'punctuator' && token.text !== '*' && token.text !== ']')) throw new Mismatch()
    }
    this.#take('(')
    return this.#bindings(')').filter((binding) => binding !== null)
  }

  /** The elements of a list up to its closing bracket; null for a hole. */
  #bindings(close: string): (Binding | null)[] {
    const bindings: (Binding | null)[] = []
    while (!is(this.#peek(), close)) {
      const isHole = is(this.#peek(), ',')
      bindings.push(isHole ? null : this.#binding())
      if (!is(this.#peek(), close)) this.#take(',')
    }
    this.#take(close)
    return bindings
  }

  #binding(): Binding {
    const isRest = this.#skipIf('...')
    const pattern = this.#pattern()
    return { pattern, isRest, ...this.#default() }
  }

  #default(): { readonly hasDefault: boolean; readonly default: Constant } {
    return this.#skipIf('=') ? { hasDefault: true, default: constantOf(this.#skip([',', ')', ']', '}'])) } : { hasDefault: false, default: [] }
  }

  #pattern(): Pattern {
    const token = this.#next()
    if (token.type === 'name') return { kind: 'name', name: token.text }
    if (is(token, '[')) return { kind: 'list', elements: this.#bindings(']') }
    if (!is(token, '{')) throw new Mismatch()
    const properties: PropertyBinding[] = []
    while (!is(this.#peek(), '}')) {
      properties.push(this.#property())
      if (!is(this.#peek(), '}')) this.#take(',')
    }
    this.#take('}')
    return { kind: 'record', properties }
  }

  #property(): PropertyBinding {
    if (is(this.#peek(), '...')) return { key: null, ...this.#binding() }
    const token = this.#next()
    if (is(token, '[')) {
      this.#skip([']'])
      this.#take(']')
    }
    const key = token.type === 'name' ? token.text : null
    if (this.#skipIf(':')) return { key, ...this.#binding() }
    if (key === null) throw new Mismatch()
    return { key, pattern: { kind: 'name', name: key }, isRest: false, ...this.#default() }
  }

  /** Takes tokens up to one of these punctuators outside all brackets, and returns them. */
  #skip(ends: readonly string[]): Token[] {
    const skipped: Token[] = []
    let depth = 0
    for (let token = this.#peek(); token !== undefined; token = this.#peek()) {
      const isClosing = token.type === 'punctuator' && (token.text === ')' || token.text === ']' || token.text === '}')
      if (depth === 0 && token.type === 'punctuator' && ends.includes(token.text)) return skipped
      if (token.opens !== null) depth++
      else if (isClosing) depth--
      skipped.push(this.#next())
    }
    throw new Mismatch()
  }

  #peek(offset = 0): Token | undefined {
    while (this.#ahead.length <= offset) {
      const { value, done } = this.#tokens.next()
      if (done === true) return undefined
      this.#ahead.push(value)
    }
    return this.#ahead[offset]
  }

  #next(): Token {
    const token = this.#peek()
    if (token === undefined) throw new Mismatch()
    this.#ahead.shift()
    return token
  }

  #take(punctuator: string): void {
    if (!is(this.#next(), punctuator)) throw new Mismatch()
  }

  #skipIf(punctuator: string): boolean {
    const found = is(this.#peek(), punctuator)
    if (found) this.#next()
    return found
  }

  *#rest(): Generator<Token> {
    yield* this.#ahead
    yield* this.#tokens
  }
}

const plain = (pattern: Pattern): Binding => ({ pattern, isRest: false, hasDefault: false, default: [] })

/** The value of an expression of literals, arrays and objects; `[]` for any other expression. */
function constantOf(tokens: readonly Token[]): Constant {
  const literals = new Literals(tokens)
  try {
    const value = literals.value()
    return literals.isAtEnd ? [value] : []
  } catch (error) {
    if (error instanceof Mismatch) return []
    throw error
  }
}

/** Reads literals. Throws Mismatch for any other expression. */
class Literals {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  get isAtEnd(): boolean {
    return this.#at === this.#tokens.length
  }

  value(): unknown {
    const token = this.#tokens[this.#at++]
    if (token === undefined) throw new Mismatch()
    switch (token.type) {
      case 'number':
        return numberOf(token.text)
      case 'string':
        return decodeEscapes(token.text.slice(1, -1))
      case 'template':
        if (!/^`[^]*`$/.test(token.text)) throw new Mismatch()
        return decodeEscapes(token.text.slice(1, -1).replace(/\r\n?/g, '\n'))
      case 'name':
        return named(token.text, NAMED)
      case 'punctuator':
        return this.#compound(token.text)
      default:
        throw new Mismatch()
    }
  }

  #compound(text: string): unknown {
    switch (text) {
      case '-': {
        const value = this.value()
        return typeof value === 'bigint' ? -value : -Number(value)
      }
      case '!':
        return !this.value()
      case '(':
        return this.#parenthesized()
      case '[':
        return this.#array()
      case '{':
        return this.#object()
      default:
        throw new Mismatch()
    }
  }

  #parenthesized(): unknown {
    const value = this.value()
    if (!this.#skipIf(')')) throw new Mismatch()
    return value
  }

  #array(): unknown[] {
    const items: unknown[] = []
    while (!this.#skipIf(']')) {
      items.push(this.value())
      if (!is(this.#tokens[this.#at], ']') && !this.#skipIf(',')) throw new Mismatch()
    }
    return items
  }

  #object(): Record<string, unknown> {
    const made: Record<string, unknown> = {}
    while (!this.#skipIf('}')) {
      const key = this.#tokens[this.#at++]
      if (key?.type !== 'name') throw new Mismatch()
      made[key.text] = this.#skipIf(':') ? this.value() : named(key.text, GLOBALS)
      if (!is(this.#tokens[this.#at], '}') && !this.#skipIf(',')) throw new Mismatch()
    }
    return made
  }

  #skipIf(punctuator: string): boolean {
    const found = is(this.#tokens[this.#at], punctuator)
    if (found) this.#at++
    return found
  }
}

const GLOBALS: ReadonlyMap<string, unknown> = new Map([
  ['undefined', undefined],
  ['Infinity', Infinity],
  ['NaN', NaN],
])
const NAMED: ReadonlyMap<string, unknown> = new Map<string, unknown>([...GLOBALS, ['null', null], ['true', true], ['false', false]])

function named(name: string, values: ReadonlyMap<string, unknown>): unknown {
  if (!values.has(name)) throw new Mismatch()
  return values.get(name)
}

/** The value of a numeric literal. */
export function numberOf(text: string): number | bigint {
  const digits = text.replaceAll('_', '')
  if (digits.endsWith('n')) return BigInt(digits.slice(0, -1))
  return /^0[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : Number(digits)
}
