// Reads the parameter list of a function from its source: names, patterns, and the defaults that are literals.
import { decodeEscapes, isClosing, tokenize } from './tokens.ts'
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
interface PropertyBinding extends Binding {
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
export const parseFunction = (source: string): FunctionSource | null => ifMatching(() => readFunction(source))

/** The source is not that of a function, or the expression not one of literals. */
class Mismatch extends Error {}

/** What `read` returns; null for a Mismatch. */
function ifMatching<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof Mismatch) return null
    throw error
  }
}

function demand(condition: boolean): asserts condition {
  if (!condition) throw new Mismatch()
}

const is = (token: Token | undefined, punctuator: string): boolean => token?.type === 'punctuator' && token.text === punctuator
const isName = (token: Token | undefined, name: string): boolean => token?.type === 'name' && token.text === name

/** Tokens that are read one by one, with a look ahead. */
interface Cursor {
  peek(offset?: number): Token | undefined
  next(): Token
  take(punctuator: string): void
  /** Takes the token if it is this punctuator, and says whether it was. */
  skipIf(punctuator: string): boolean
  /** The elements of a list up to its closing bracket, with commas between them. */
  list<T>(close: string, element: () => T): T[]
  rest(): Iterable<Token>
}

function cursorOver(tokens: Iterator<Token, unknown>): Cursor {
  const ahead: Token[] = []
  const peek = (offset = 0): Token | undefined => {
    while (ahead.length <= offset) {
      const { value, done } = tokens.next()
      if (done === true) return undefined
      ahead.push(value)
    }
    return ahead[offset]
  }
  const next = (): Token => {
    const token = peek()
    demand(token !== undefined)
    ahead.shift()
    return token
  }
  const skipIf = (punctuator: string): boolean => {
    const found = is(peek(), punctuator)
    if (found) next()
    return found
  }
  const take = (punctuator: string): void => demand(skipIf(punctuator))
  const list = <T>(close: string, element: () => T): T[] => {
    const elements: T[] = []
    while (!skipIf(close)) {
      elements.push(element())
      if (!is(peek(), close)) take(',')
    }
    return elements
  }
  function* rest(): Generator<Token> {
    for (let token = peek(); token !== undefined; token = peek()) yield next()
  }
  return { peek, next, take, skipIf, list, rest }
}

function readFunction(source: string): FunctionSource {
  const { peek, next, take, skipIf, list, rest } = cursorOver(tokenize(source))
  const read = parameters()
  const isArrow = is(peek(), '=>')
  take(isArrow ? '=>' : '{')
  demand(!(isName(peek(1), 'native') && isName(peek(2), 'code')))
  return { parameters: read, isArrow, body: rest() }

  function parameters(): readonly Binding[] {
    // An arrow function with a single name: `x => …`, `async x => …`.
    if (isName(peek(), 'async') && is(peek(2), '=>')) next()
    if (is(peek(1), '=>')) return [{ pattern: pattern(), isRest: false, hasDefault: false, default: [] }]
    demand(!isName(peek(), 'class') || is(peek(1), '('))
    // Modifiers, and the name of a function or the key of a method.
    while (!skipIf('(')) {
      const token = next()
      if (is(token, '[')) skip([']'])
      else demand(token.type !== 'private' && (token.type !== 'punctuator' || token.text === '*' || token.text === ']'))
    }
    return bindings(')').filter((one) => one !== null)
  }

  /** The elements of a list up to its closing bracket; null for a hole. */
  function bindings(close: string): (Binding | null)[] {
    return list(close, () => (is(peek(), ',') ? null : binding()))
  }

  function binding(): Binding {
    const isRest = skipIf('...')
    return { pattern: pattern(), isRest, ...fallback() }
  }

  function fallback(): { readonly hasDefault: boolean; readonly default: Constant } {
    return skipIf('=') ? { hasDefault: true, default: constantOf(skip([',', ')', ']', '}'])) } : { hasDefault: false, default: [] }
  }

  function pattern(): Pattern {
    const token = next()
    if (token.type === 'name') return { kind: 'name', name: token.text }
    if (is(token, '[')) return { kind: 'list', elements: bindings(']') }
    demand(is(token, '{'))
    return { kind: 'record', properties: list('}', property) }
  }

  function property(): PropertyBinding {
    if (is(peek(), '...')) return { key: null, ...binding() }
    const token = next()
    if (is(token, '[')) {
      skip([']'])
      take(']')
    }
    const key = token.type === 'name' ? token.text : null
    if (skipIf(':')) return { key, ...binding() }
    demand(key !== null)
    return { key, pattern: { kind: 'name', name: key }, isRest: false, ...fallback() }
  }

  /** Takes tokens up to one of these punctuators outside all brackets, and returns them. */
  function skip(ends: readonly string[]): Token[] {
    const skipped: Token[] = []
    let depth = 0
    for (let token = peek(); token !== undefined; token = peek()) {
      if (depth === 0 && token.type === 'punctuator' && ends.includes(token.text)) return skipped
      if (token.opens !== null) depth++
      else if (isClosing(token)) depth--
      skipped.push(next())
    }
    throw new Mismatch()
  }
}

/** The value of an expression of literals, arrays and objects; `[]` for any other expression. */
const constantOf = (tokens: readonly Token[]): Constant => ifMatching(() => readLiterals(tokens)) ?? []

function readLiterals(tokens: readonly Token[]): Constant {
  const { peek, next, take, skipIf, list } = cursorOver(tokens.values())
  const read = value()
  return peek() === undefined ? [read] : []

  function value(): unknown {
    const { type, text } = next()
    switch (type) {
      case 'number':
        return numberOf(text)
      case 'string':
        return decodeEscapes(text.slice(1, -1))
      case 'template':
        demand(/^`[^]*`$/.test(text))
        return decodeEscapes(text.slice(1, -1).replace(/\r\n?/g, '\n'))
      case 'name':
        return named(text, NAMED)
      case 'punctuator':
        return compound(text)
      default:
        throw new Mismatch()
    }
  }

  function compound(text: string): unknown {
    switch (text) {
      case '-': {
        const number = value()
        return typeof number === 'bigint' ? -number : -Number(number)
      }
      case '!':
        return !value()
      case '(': {
        const inner = value()
        take(')')
        return inner
      }
      case '[':
        return list(']', value)
      case '{':
        return Object.fromEntries(list('}', entry))
      default:
        throw new Mismatch()
    }
  }

  function entry(): [key: string, value: unknown] {
    const { type, text } = next()
    demand(type === 'name')
    return [text, skipIf(':') ? value() : named(text, GLOBALS)]
  }
}

const GLOBALS: ReadonlyMap<string, unknown> = new Map([
  ['undefined', undefined],
  ['Infinity', Infinity],
  ['NaN', NaN],
])
const NAMED: ReadonlyMap<string, unknown> = new Map<string, unknown>([...GLOBALS, ['null', null], ['true', true], ['false', false]])

function named(name: string, values: ReadonlyMap<string, unknown>): unknown {
  demand(values.has(name))
  return values.get(name)
}

/** The value of a numeric literal. */
export function numberOf(text: string): number | bigint {
  const digits = text.replaceAll('_', '')
  if (digits.endsWith('n')) return BigInt(digits.slice(0, -1))
  return /^0[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : Number(digits)
}
