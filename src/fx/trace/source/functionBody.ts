// What the body of a function does with some of its inputs, found in its tokens: which elements of a rest parameter it reads, whether it uses `arguments`, and which
// variables it uses as conditions.
import { numberOf } from './literals.ts'
import { isClosing, isMember } from './tokens.ts'
import type { Enclosure, Token } from './tokens.ts'

/**
 * The number of leading elements of the array `name` that the body reads. Null if it does anything but read single elements, `rest[2]` or, as in generated code,
 * `operator.getitem(rest, 2)`. Assignments are ignored, because generated code releases an input with `rest = null`.
 */
export function elementsRead(name: string, tokens: Iterable<Token>): number | null {
  const body = new FunctionBody(tokens)
  let count = 0
  for (let i = 0; i < body.length; i++) {
    if (!body.isVariable(i, name) || body.isAssigned(i)) continue
    const index = body.indexReadAt(i)
    if (index === null) return null
    count = Math.max(count, index + 1)
  }
  return count
}

/** Whether the body uses `arguments`. Inner functions have their own, except arrow functions. */
export function readsArguments(tokens: Iterable<Token>): boolean {
  const body = new FunctionBody(tokens)
  for (let i = 0; i < body.length; i++) {
    const end = body.endOfFunction(i)
    if (end !== null) i = end
    else if (body.isVariable(i, 'arguments')) return true
  }
  return false
}

/** Those of the variables `names` that the body uses as conditions by themselves: `if (flag)`, `!flag`, `flag ? a : b`, `flag && a`. */
export function testedVariables(names: readonly string[], tokens: Iterable<Token>): readonly string[] {
  const body = new FunctionBody(tokens)
  return names.filter((name) => body.some((i) => body.isVariable(i, name) && body.isCondition(i)))
}

const ASSIGNMENTS: ReadonlySet<string> = new Set([
  ...['=', '+=', '-=', '*=', '/=', '%=', '**='],
  ...['<<=', '>>=', '>>>=', '&=', '|=', '^='],
  ...['&&=', '||=', '??='],
])
const DECLARATIONS: ReadonlySet<string> = new Set(['let', 'const', 'var'])
/** Keywords with a head in parentheses and a block, which are not functions. */
const HEADS: ReadonlySet<string> = new Set(['if', 'for', 'while', 'switch', 'with', 'catch'])
/** What comes before an operand that is a condition, or a part of one, by itself; '' at the start of a body. */
const BEFORE_CONDITION: ReadonlySet<string> = new Set(['', '(', '!', '&&', '||', '=', ':', '?', ',', ';', '{', '}', '[', '=>', 'return'])
const MODIFIERS: ReadonlySet<string> = new Set(['get', 'set', 'async'])

/** The tokens of a body with their brackets. Tokens are named by their position. */
class FunctionBody {
  readonly #tokens: readonly Token[]
  /** For each token, the position of the innermost bracket that is open around it; -1 if there is none. */
  readonly #outerBracket: number[] = []
  /** The closing bracket of each opening one. */
  readonly #closing = new Map<number, number>()

  constructor(tokens: Iterable<Token>) {
    this.#tokens = [...tokens]
    const open: number[] = []
    for (const [i, token] of this.#tokens.entries()) {
      if (isClosing(token)) this.#closing.set(open.pop() ?? -1, i)
      this.#outerBracket.push(open.at(-1) ?? -1)
      if (token.opens !== null) open.push(i)
    }
  }

  get length(): number {
    return this.#tokens.length
  }

  /** Whether a question holds for one of the tokens. */
  some(question: (i: number) => boolean): boolean {
    return this.#tokens.some((_, i) => question(i))
  }

  /** Whether the token is the variable `name`, and not a property or a key of an object. */
  isVariable(i: number, name: string): boolean {
    const token = this.#tokens[i]
    return token?.type === 'name' && token.text === name && !this.#isMember(i) && !this.#isKey(i)
  }

  /** Whether the variable is the target of an assignment. Declarations and defaults of patterns are not assignments. */
  isAssigned(i: number): boolean {
    if (!ASSIGNMENTS.has(this.#text(i + 1)) || DECLARATIONS.has(this.#text(i - 1))) return false
    switch (this.#enclosure(i)) {
      case 'block':
        return this.#text(i - 1) !== ',' || !this.#isDeclared(i)
      case 'template':
        return true
      case 'group': {
        const bracket = this.#bracketAround(i)
        return this.#text(bracket) === '(' && !this.#isParameterList(bracket)
      }
      case 'object':
        return false
    }
  }

  /** Whether the variable is a condition by itself. */
  isCondition(i: number): boolean {
    const [before, after] = [this.#text(i - 1), this.#text(i + 1)]
    const keyword = this.#text(i - 2)
    const isHead = before === '(' && after === ')' && (keyword === 'if' || keyword === 'while')
    const isNegated = before === '!' && !['.', '?.', '(', '['].includes(after)
    const isOperand = ['&&', '||', '?'].includes(after) && BEFORE_CONDITION.has(before)
    return isHead || isNegated || isOperand
  }

  /** The index that is read of this variable: `rest[2]`, or `operator.getitem(rest, 2)`. Null for any other use. */
  indexReadAt(i: number): number | null {
    const bracket = this.#text(i + 1) === '?.' ? i + 2 : i + 1
    if (this.#text(bracket) === '[') return this.#text(bracket + 2) === ']' ? this.#wholeNumber(bracket + 1) : null
    if (!this.#isFirstOfGetitem(i) || this.#text(i + 1) !== ',') return null
    return this.#text(i + 3) === ')' || this.#text(i + 3) === ',' ? this.#wholeNumber(i + 2) : null
  }

  /** The last token of the function or method whose parameter list starts at this token, or whose keyword it is; null for other tokens. */
  endOfFunction(i: number): number | null {
    let start = i
    if (this.isVariable(i, 'function')) {
      while (start < this.length && this.#text(start) !== '(') start++
    } else if (this.#text(i) !== '(' || !this.#isParameterList(i)) return null
    const brace = this.#closingOf(start) + 1
    return this.#text(brace) === '{' ? (this.#closing.get(brace) ?? null) : null
  }

  #text(i: number): string {
    return this.#tokens[i]?.text ?? ''
  }

  #isMember(i: number): boolean {
    return isMember(this.#tokens[i - 1])
  }

  #bracketAround(i: number): number {
    return this.#outerBracket[i] ?? -1
  }

  #closingOf(bracket: number): number {
    return this.#closing.get(bracket) ?? -1
  }

  /** What encloses a token. */
  #enclosure(i: number): Enclosure {
    return this.#tokens[this.#bracketAround(i)]?.opens ?? 'block'
  }

  /** Whether a name is the key of a property or method in an object, or a modifier of a method. A shorthand property is a variable. */
  #isKey(i: number): boolean {
    if (this.#enclosure(i) !== 'object') return false
    const isFirst = (k: number): boolean => k === this.#bracketAround(i) + 1 || this.#text(k - 1) === ','
    if (isFirst(i)) return ![',', '}', '='].includes(this.#text(i + 1))
    // `get key() {`, `async *key() {`
    let start = i
    if (this.#text(start - 1) === '*') start--
    if (MODIFIERS.has(this.#text(start - 1))) start--
    return start < i && isFirst(start) && this.#text(i + 1) === '('
  }

  /** Whether the statement up to this token is a declaration. */
  #isDeclared(i: number): boolean {
    const bracket = this.#bracketAround(i)
    for (let k = i - 1; k >= 0 && this.#text(k) !== ';'; k--) if (this.#outerBracket[k] === bracket && DECLARATIONS.has(this.#text(k))) return true
    return false
  }

  #isParameterList(open: number): boolean {
    const after = this.#text(this.#closingOf(open) + 1)
    return after === '=>' || (after === '{' && !HEADS.has(this.#text(open - 1)))
  }

  /** Whether the token is the first argument of a call of `operator.getitem`. */
  #isFirstOfGetitem(i: number): boolean {
    const isCall = this.#text(i - 1) === '(' && this.#text(i - 2) === 'getitem'
    return isCall && this.#isMember(i - 2) && this.#text(i - 4) === 'operator' && !this.#isMember(i - 4)
  }

  #wholeNumber(i: number): number | null {
    const token = this.#tokens[i]
    const value = token?.type === 'number' ? numberOf(token.text) : null
    return typeof value === 'number' && Number.isInteger(value) ? value : null
  }
}
