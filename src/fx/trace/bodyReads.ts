// What a function's body does with some of its inputs, read from its tokens: which elements of a rest parameter it reads, and whether it uses `arguments`.
import { numberOf } from './parameterList.ts'
import { isMember } from './tokens.ts'
import type { Enclosure, Token } from './tokens.ts'

/**
 * The number of leading elements of the array `name` that the body reads. Null if it does anything but read single elements, `rest[2]` or, as in generated code,
 * `operator.getitem(rest, 2)`. Assignments are ignored, because generated code releases an input with `rest = null`.
 */
export function elementsRead(name: string, tokens: Iterable<Token>): number | null {
  const body = new Body(tokens)
  let count = 0
  for (let i = 0; i < body.tokens.length; i++) {
    if (!body.isVariable(i, name) || body.isAssigned(i)) continue
    const index = body.indexAt(i)
    if (index === null) return null
    count = Math.max(count, index + 1)
  }
  return count
}

/** Whether the body uses `arguments`. Inner functions have their own, except arrow functions. */
export function readsArguments(tokens: Iterable<Token>): boolean {
  const body = new Body(tokens)
  for (let i = 0; i < body.tokens.length; i++) {
    const end = body.endOfFunction(i)
    if (end !== null) i = end
    else if (body.isVariable(i, 'arguments')) return true
  }
  return false
}

const ASSIGNMENTS: ReadonlySet<string> = new Set('= += -= *= /= %= **= <<= >>= >>>= &= |= ^= &&= ||= ??='.split(' '))
const DECLARATIONS: ReadonlySet<string> = new Set(['let', 'const', 'var'])
/** Keywords with a head in parentheses and a block, which are not functions. */
const HEADS: ReadonlySet<string> = new Set(['if', 'for', 'while', 'switch', 'with', 'catch'])

class Body {
  readonly tokens: readonly Token[]
  /** For each token, the index of the innermost open bracket around it; -1 if there is none. */
  readonly #around: number[] = []
  /** From opening to closing bracket. */
  readonly #closing = new Map<number, number>()

  constructor(tokens: Iterable<Token>) {
    this.tokens = [...tokens]
    const open: number[] = []
    for (const [i, token] of this.tokens.entries()) {
      if (token.type === 'punctuator' && (token.text === ')' || token.text === ']' || token.text === '}')) this.#closing.set(open.pop() ?? -1, i)
      this.#around.push(open.at(-1) ?? -1)
      if (token.opens !== null) open.push(i)
    }
  }

  #text(i: number): string {
    return this.tokens[i]?.text ?? ''
  }

  /** What encloses a token. */
  #enclosure(i: number): Enclosure {
    return this.tokens[this.#around[i] ?? -1]?.opens ?? 'block'
  }

  /** Whether the token is the variable `name`, and not a property or a key of an object. */
  isVariable(i: number, name: string): boolean {
    const token = this.tokens[i]
    return token?.type === 'name' && token.text === name && !isMember(this.tokens[i - 1]) && !this.#isKey(i)
  }

  /** Whether a name is the key of a property or method in an object, or a modifier of a method. A shorthand property is a variable. */
  #isKey(i: number): boolean {
    if (this.#enclosure(i) !== 'object') return false
    const isFirst = (k: number): boolean => k === (this.#around[i] ?? -1) + 1 || this.#text(k - 1) === ','
    if (isFirst(i)) return ![',', '}', '='].includes(this.#text(i + 1))
    // `get key() {`, `async *key() {`
    let start = i
    if (this.#text(start - 1) === '*') start--
    if (['get', 'set', 'async'].includes(this.#text(start - 1))) start--
    return start < i && isFirst(start) && this.#text(i + 1) === '('
  }

  /** Whether the variable is the target of an assignment. Declarations and defaults of patterns are not assignments. */
  isAssigned(i: number): boolean {
    if (!ASSIGNMENTS.has(this.#text(i + 1)) || DECLARATIONS.has(this.#text(i - 1))) return false
    const around = this.#around[i] ?? -1
    const enclosure = this.#enclosure(i)
    if (enclosure === 'block') return this.#text(i - 1) !== ',' || !this.#isDeclared(i)
    return enclosure === 'template' || (this.#text(around) === '(' && !this.#isParameterList(around))
  }

  /** Whether the statement up to this token is a declaration. */
  #isDeclared(i: number): boolean {
    const around = this.#around[i]
    for (let k = i - 1; k >= 0 && this.#text(k) !== ';'; k--) if (this.#around[k] === around && DECLARATIONS.has(this.#text(k))) return true
    return false
  }

  #isParameterList(open: number): boolean {
    const after = this.#text((this.#closing.get(open) ?? -1) + 1)
    return after === '=>' || (after === '{' && !HEADS.has(this.#text(open - 1)))
  }

  /** The index that is read at this variable: `rest[2]`, or `operator.getitem(rest, 2)`. Null for any other use. */
  indexAt(i: number): number | null {
    const bracket = this.#text(i + 1) === '?.' ? i + 2 : i + 1
    if (this.#text(bracket) === '[') return this.#text(bracket + 2) === ']' ? this.#wholeNumber(bracket + 1) : null
    const isGetitem = this.#text(i - 1) === '(' && this.#text(i - 2) === 'getitem' && isMember(this.tokens[i - 3]) && this.#text(i - 4) === 'operator'
    if (!isGetitem || isMember(this.tokens[i - 5]) || this.#text(i + 1) !== ',') return null
    return this.#text(i + 3) === ')' || this.#text(i + 3) === ',' ? this.#wholeNumber(i + 2) : null
  }

  #wholeNumber(i: number): number | null {
    const token = this.tokens[i]
    const value = token?.type === 'number' ? numberOf(token.text) : null
    return typeof value === 'number' && Number.isInteger(value) ? value : null
  }

  /** The last token of the function or method whose parameter list starts at this token, or whose keyword it is; null for other tokens. */
  endOfFunction(i: number): number | null {
    let open = i
    if (this.isVariable(i, 'function')) {
      while (open < this.tokens.length && this.#text(open) !== '(') open++
    } else if (this.#text(i) !== '(' || !this.#isParameterList(i)) return null
    const brace = (this.#closing.get(open) ?? -1) + 1
    return this.#text(brace) === '{' ? (this.#closing.get(brace) ?? null) : null
  }
}
