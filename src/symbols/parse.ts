// Reads expressions from the text that print.ts writes. What is read is brought into canonical form, so the text of an expression leads back to the same object.
import { ArgumentError } from '../errors/index.ts'
import { add, mul, negate } from './arithmetic.ts'
import { build } from './build.ts'
import { boolean, float, integer, number } from './expression.ts'
import type { Expr } from './expression.ts'
import { INFINITE } from './rational.ts'

const TOKEN = /\s*(?:(\d+(?:\.\d+)?(?:e[+-]?\d+)?)|([A-Za-z_]\w*)|(\*\*|\/\/|<=|>=|[-+*/(),<>&|~]))/gy

/** Nested deeper than this, a text is refused. */
const DEEPEST = 500

/** Reads one text from left to right; each method reads what binds more tightly than the one before. */
class Reader {
  readonly #text: string
  readonly #symbolOf: (name: string) => Expr
  readonly #tokens: readonly string[]
  #at = 0
  #depth = 0

  constructor(text: string, symbolOf: (name: string) => Expr) {
    this.#text = text
    this.#symbolOf = symbolOf
    const tokens: string[] = []
    let end = 0
    for (const match of text.matchAll(TOKEN)) {
      tokens.push(match[0].trim())
      end = match.index + match[0].length
    }
    this.#tokens = tokens
    if (text.slice(end).trim() !== '') throw this.#error(`'${text.slice(end).trim()}' is no part of an expression`)
  }

  whole(): Expr {
    const expr = this.#or()
    if (this.#at < this.#tokens.length) throw this.#error(`'${this.#next()}' was not expected`)
    return expr
  }

  #error(what: string): ArgumentError {
    return new ArgumentError(`parseExpr: ${what}, in '${this.#text}'.`)
  }
  #next(): string {
    return this.#tokens[this.#at] ?? 'the end'
  }
  #takes(token: string): boolean {
    if (this.#next() !== token) return false
    this.#at++
    return true
  }
  #expects(token: string): void {
    if (!this.#takes(token)) throw this.#error(`expected '${token}', got '${this.#next()}'`)
  }

  #or(): Expr {
    if (++this.#depth > DEEPEST) throw this.#error('it is nested too deeply')
    const args = [this.#and()]
    while (this.#takes('|')) args.push(this.#and())
    this.#depth--
    return args.length === 1 ? (args[0] ?? boolean(false)) : build('Or', args)
  }

  #and(): Expr {
    const args = [this.#relation()]
    while (this.#takes('&')) args.push(this.#relation())
    return args.length === 1 ? (args[0] ?? boolean(true)) : build('And', args)
  }

  #relation(): Expr {
    const left = this.#sum()
    for (const [sign, op] of [
      ['<=', 'Le'],
      ['>=', 'Ge'],
      ['<', 'Lt'],
      ['>', 'Gt'],
    ] as const)
      if (this.#takes(sign)) return build(op, [left, this.#sum()])
    return left
  }

  #sum(): Expr {
    const terms = [this.#takes('-') ? negate(this.#product()) : this.#product()]
    for (;;) {
      if (this.#takes('+')) terms.push(this.#product())
      else if (this.#takes('-')) terms.push(negate(this.#product()))
      else return add(...terms)
    }
  }

  /** All factors at once: a number would be multiplied out into a sum that stands next to it. */
  #product(): Expr {
    let factors = [this.#power()]
    for (;;) {
      if (this.#takes('*')) factors.push(this.#power())
      else if (this.#takes('//')) factors = [build('FloorDiv', [mul(...factors), this.#power()])]
      else if (this.#takes('/')) factors.push(build('Pow', [this.#power(), integer(-1)]))
      else return mul(...factors)
    }
  }

  #power(): Expr {
    const base = this.#atom()
    return this.#takes('**') ? build('Pow', [base, this.#atom()]) : base
  }

  #atom(): Expr {
    if (this.#takes('-')) return negate(this.#atom())
    if (this.#takes('~')) return build('Not', [this.#atom()])
    if (this.#takes('(')) {
      const inner = this.#or()
      this.#expects(')')
      return inner
    }
    const token = this.#next()
    this.#at++
    if (/^\d/.test(token)) return /^\d+$/.test(token) ? integer(BigInt(token)) : float(Number(token))
    if (!/^[A-Za-z_]/.test(token) || this.#at > this.#tokens.length) throw this.#error(`expected a number, a name or '(', got '${token}'`)
    if (this.#takes('(')) return build(token, this.#arguments(token === 'Piecewise'))
    if (token === 'True' || token === 'False') return boolean(token === 'True')
    return token === 'int_oo' ? number(INFINITE) : token === 'oo' ? float(Infinity) : this.#symbolOf(token)
  }

  /** Arguments up to the closing parenthesis. Those of a Piecewise are pairs. */
  #arguments(pairs: boolean): readonly Expr[] {
    const args: Expr[] = []
    do {
      if (pairs) this.#expects('(')
      args.push(this.#or())
      if (!pairs) continue
      this.#expects(',')
      args.push(this.#or())
      this.#expects(')')
    } while (this.#takes(','))
    this.#expects(')')
    return args
  }
}

/**
 * The expression that a text says, as `textOf` writes it.
 *
 *     parseExpr('((s0 + 1)//2)', (name) => symbol(name, { positive: true }))
 *
 * @param symbolOf - the symbol of a name, with what is assumed of it.
 * @throws ArgumentError for a text that is no expression, with the part that was not understood.
 */
export const parseExpr = (text: string, symbolOf: (name: string) => Expr): Expr => new Reader(text, symbolOf).whole()
