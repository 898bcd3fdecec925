// Sizes as expressions of variables: sums of variables and of `floor(…)`, with rational factors. They print as sympy does: `floor(~1/2 - 1/2) + 1`.
import { checkArgument } from '../../../protocol/index.ts'
import type { Dimension } from './tensorType.ts'
import { isVar } from '../unification/variable.ts'
import type { Var } from '../unification/variable.ts'

/** A fraction in lowest terms; the denominator is positive. */
interface Fraction {
  readonly over: number
  readonly under: number
}

function gcd(a: number, b: number): number {
  let [x, y] = [Math.abs(a), Math.abs(b)]
  while (y > 0) [x, y] = [y, x % y]
  return x
}

function fraction(over: number, under: number): Fraction {
  const common = gcd(over, under) * Math.sign(under)
  return { over: over / common, under: under / common }
}

const sum = (a: Fraction, b: Fraction): Fraction => fraction(a.over * b.under + b.over * a.under, a.under * b.under)
const isInteger = (value: Fraction): boolean => value.under === 1

/** What a sum adds up: a variable, or the floor of a sum. */
type Atom = Var | SizeExpression

interface Term {
  readonly atom: Atom
  readonly factor: Fraction
}

const sameAtom = (a: Atom, b: Atom): boolean => (isVar(a) || isVar(b) ? a === b : a.equals(b))

/** `2*~1/3`, or `2*floor(~1)/3`. */
function termText({ atom, factor }: Term): string {
  const name = isVar(atom) ? String(atom) : `floor(${String(atom)})`
  const size = Math.abs(factor.over)
  return `${size === 1 ? '' : `${size}*`}${name}${isInteger(factor) ? '' : `/${factor.under}`}`
}

/** The sum of terms and a constant. Immutable. */
export class SizeExpression {
  readonly terms: readonly Term[]
  readonly constant: Fraction

  private constructor(terms: readonly Term[], constant: Fraction) {
    this.terms = terms
    this.constant = constant
  }

  /** A size as an expression. @throws ArgumentError for Dyn and other unknown sizes. */
  static of(size: Dimension): SizeExpression {
    if (size instanceof SizeExpression) return size
    if (isVar(size)) return new SizeExpression([{ atom: size, factor: { over: 1, under: 1 } }], { over: 0, under: 1 })
    checkArgument(Number.isSafeInteger(size), 'SizeExpression.of', 'size', 'an integer, a variable or an expression', size)
    return new SizeExpression([], { over: Number(size), under: 1 })
  }

  /** This plus an integer. */
  plus(value: number): SizeExpression {
    checkArgument(Number.isSafeInteger(value), 'SizeExpression.plus', 'value', 'an integer', value)
    return new SizeExpression(this.terms, sum(this.constant, { over: value, under: 1 }))
  }

  #scaled(by: Fraction): SizeExpression {
    const times = (value: Fraction): Fraction => fraction(value.over * by.over, value.under * by.under)
    return new SizeExpression(
      this.terms.map(({ atom, factor }) => ({ atom, factor: times(factor) })),
      times(this.constant),
    )
  }

  /** The largest integer that is at most this divided by a positive integer. Parts that are integers anyway stand outside the `floor`. */
  floorDivide(by: number): SizeExpression {
    checkArgument(Number.isSafeInteger(by) && by > 0, 'SizeExpression.floorDivide', 'by', 'a positive integer', by)
    const { terms, constant } = this.#scaled({ over: 1, under: by })
    const outside = terms.filter(({ atom, factor }) => atom instanceof SizeExpression && isInteger(factor))
    const inside = terms.filter((term) => !outside.includes(term))
    const whole = isInteger(constant) ? constant : { over: 0, under: 1 }
    if (inside.length === 0) return new SizeExpression(outside, { over: Math.floor(constant.over / constant.under), under: 1 })
    const floor = new SizeExpression(inside, isInteger(constant) ? { over: 0, under: 1 } : constant)
    const same = outside.findIndex(({ atom }) => sameAtom(atom, floor))
    const one = { over: 1, under: 1 }
    const all =
      same < 0
        ? [...outside, { atom: floor, factor: one }]
        : outside.map((term, i) => (i === same ? { atom: term.atom, factor: sum(term.factor, one) } : term))
    return new SizeExpression(all, whole)
  }

  /** The value as a plain size, if the expression is only that: a number or a variable. */
  simplified(): Dimension {
    const [term] = this.terms
    if (term === undefined && isInteger(this.constant)) return this.constant.over
    if (
      this.terms.length === 1 &&
      term !== undefined &&
      isVar(term.atom) &&
      this.constant.over === 0 &&
      term.factor.over === 1 &&
      isInteger(term.factor)
    )
      return term.atom
    return this
  }

  /** The value for values of the variables. */
  evaluate(valueOf: (variable: Var) => number): number {
    const total = this.terms.reduce(
      (all, { atom, factor }) =>
        sum(all, { over: (isVar(atom) ? valueOf(atom) : Math.floor(atom.evaluate(valueOf))) * factor.over, under: factor.under }),
      this.constant,
    )
    return total.over / total.under
  }

  equals(other: unknown): boolean {
    if (!(other instanceof SizeExpression)) return false
    const { over, under } = other.constant
    if (over !== this.constant.over || under !== this.constant.under || other.terms.length !== this.terms.length) return false
    return this.terms.every(({ atom, factor }) =>
      other.terms.some((term) => term.factor.over === factor.over && term.factor.under === factor.under && sameAtom(term.atom, atom)),
    )
  }

  toString(): string {
    const { over, under } = this.constant
    const constant = over === 0 && this.terms.length > 0 ? [] : [[over < 0, `${Math.abs(over)}${under === 1 ? '' : `/${under}`}`] as const]
    const parts = [...this.terms.map((term) => [term.factor.over < 0, termText(term)] as const), ...constant]
    return parts.map(([negative, text], i) => (i === 0 ? `${negative ? '-' : ''}${text}` : ` ${negative ? '-' : '+'} ${text}`)).join('')
  }
}
