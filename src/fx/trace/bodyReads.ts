// What a function's body does with some of its inputs, read from its tokens: which elements of a rest parameter it reads, whether it uses `arguments`, and which variables it
// takes for conditions.
import { numberOf } from './parameterList.ts'
import { isClosing, isMember } from './tokens.ts'
import type { Enclosure, Token } from './tokens.ts'

/**
 * The number of leading elements of the array `name` that the body reads. Null if it does anything but read single elements, `rest[2]` or, as in generated code,
 * `operator.getitem(rest, 2)`. Assignments are ignored, because generated code releases an input with `rest = null`.
 */
export function elementsRead(name: string, tokens: Iterable<Token>): number | null {
  const body = readBody(tokens)
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
  const body = readBody(tokens)
  for (let i = 0; i < body.tokens.length; i++) {
    const end = body.endOfFunction(i)
    if (end !== null) i = end
    else if (body.isVariable(i, 'arguments')) return true
  }
  return false
}

/** What comes before an operand that is a condition, or a part of one, by itself; nothing at the start of a body. */
const BEFORE_CONDITION: ReadonlySet<string> = new Set(['', ...'( ! && || = : ? , ; { } [ => return'.split(' ')])

/** Those of the variables `names` that the body takes for conditions by themselves: `if (flag)`, `!flag`, `flag ? a : b`, `flag && a`. */
export function testedVariables(names: readonly string[], tokens: Iterable<Token>): readonly string[] {
  const body = readBody(tokens)
  return names.filter((name) => body.tokens.some((_, i) => body.isVariable(i, name) && body.isTested(i)))
}

const ASSIGNMENTS: ReadonlySet<string> = new Set('= += -= *= /= %= **= <<= >>= >>>= &= |= ^= &&= ||= ??='.split(' '))
const DECLARATIONS: ReadonlySet<string> = new Set(['let', 'const', 'var'])
/** Keywords with a head in parentheses and a block, which are not functions. */
const HEADS: ReadonlySet<string> = new Set(['if', 'for', 'while', 'switch', 'with', 'catch'])

/** The tokens of a body, and questions about them. */
interface Body {
  readonly tokens: readonly Token[]
  isVariable(i: number, name: string): boolean
  isAssigned(i: number): boolean
  isTested(i: number): boolean
  indexAt(i: number): number | null
  endOfFunction(i: number): number | null
}

function readBody(source: Iterable<Token>): Body {
  const tokens = [...source]
  /** For each token, the index of the innermost open bracket around it; -1 if there is none. */
  const around: number[] = []
  /** From opening to closing bracket. */
  const closing = new Map<number, number>()
  const open: number[] = []
  for (const [i, token] of tokens.entries()) {
    if (isClosing(token)) closing.set(open.pop() ?? -1, i)
    around.push(open.at(-1) ?? -1)
    if (token.opens !== null) open.push(i)
  }
  return { tokens, isVariable, isAssigned, isTested, indexAt, endOfFunction }

  function text(i: number): string {
    return tokens[i]?.text ?? ''
  }

  /** What encloses a token. */
  function enclosure(i: number): Enclosure {
    return tokens[around[i] ?? -1]?.opens ?? 'block'
  }

  /** Whether the token is the variable `name`, and not a property or a key of an object. */
  function isVariable(i: number, name: string): boolean {
    const token = tokens[i]
    return token?.type === 'name' && token.text === name && !isMember(tokens[i - 1]) && !isKey(i)
  }

  /** Whether a name is the key of a property or method in an object, or a modifier of a method. A shorthand property is a variable. */
  function isKey(i: number): boolean {
    if (enclosure(i) !== 'object') return false
    const isFirst = (k: number): boolean => k === (around[i] ?? -1) + 1 || text(k - 1) === ','
    if (isFirst(i)) return ![',', '}', '='].includes(text(i + 1))
    // `get key() {`, `async *key() {`
    let start = i
    if (text(start - 1) === '*') start--
    if (['get', 'set', 'async'].includes(text(start - 1))) start--
    return start < i && isFirst(start) && text(i + 1) === '('
  }

  /** Whether the variable is the target of an assignment. Declarations and defaults of patterns are not assignments. */
  function isAssigned(i: number): boolean {
    if (!ASSIGNMENTS.has(text(i + 1)) || DECLARATIONS.has(text(i - 1))) return false
    const outer = around[i] ?? -1
    const kind = enclosure(i)
    if (kind === 'block') return text(i - 1) !== ',' || !isDeclared(i)
    return kind === 'template' || (text(outer) === '(' && !isParameterList(outer))
  }

  /** Whether the variable alone decides what happens next. */
  function isTested(i: number): boolean {
    const [before, after] = [text(i - 1), text(i + 1)]
    const isHead = before === '(' && after === ')' && (text(i - 2) === 'if' || text(i - 2) === 'while')
    const isNegated = before === '!' && !['.', '?.', '(', '['].includes(after)
    return isHead || isNegated || (['&&', '||', '?'].includes(after) && BEFORE_CONDITION.has(before))
  }

  /** Whether the statement up to this token is a declaration. */
  function isDeclared(i: number): boolean {
    const outer = around[i]
    for (let k = i - 1; k >= 0 && text(k) !== ';'; k--) if (around[k] === outer && DECLARATIONS.has(text(k))) return true
    return false
  }

  function isParameterList(open: number): boolean {
    const after = text((closing.get(open) ?? -1) + 1)
    return after === '=>' || (after === '{' && !HEADS.has(text(open - 1)))
  }

  /** The index that is read at this variable: `rest[2]`, or `operator.getitem(rest, 2)`. Null for any other use. */
  function indexAt(i: number): number | null {
    const bracket = text(i + 1) === '?.' ? i + 2 : i + 1
    if (text(bracket) === '[') return text(bracket + 2) === ']' ? wholeNumber(bracket + 1) : null
    const isGetitem = text(i - 1) === '(' && text(i - 2) === 'getitem' && isMember(tokens[i - 3]) && text(i - 4) === 'operator'
    if (!isGetitem || isMember(tokens[i - 5]) || text(i + 1) !== ',') return null
    return text(i + 3) === ')' || text(i + 3) === ',' ? wholeNumber(i + 2) : null
  }

  function wholeNumber(i: number): number | null {
    const token = tokens[i]
    const value = token?.type === 'number' ? numberOf(token.text) : null
    return typeof value === 'number' && Number.isInteger(value) ? value : null
  }

  /** The last token of the function or method whose parameter list starts at this token, or whose keyword it is; null for other tokens. */
  function endOfFunction(i: number): number | null {
    let start = i
    if (isVariable(i, 'function')) {
      while (start < tokens.length && text(start) !== '(') start++
    } else if (text(i) !== '(' || !isParameterList(i)) return null
    const brace = (closing.get(start) ?? -1) + 1
    return text(brace) === '{' ? (closing.get(brace) ?? null) : null
  }
}
