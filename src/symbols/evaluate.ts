// Expressions as functions of numbers. They are put together from closures, so that they run under a policy that forbids generated code.
import { UnsupportedError } from '../errors/index.ts'
import type { Expr, Operator, SymbolExpr } from './expression.ts'
import { opaqueFunction, roundDecimal, roundHalfEven } from './functions.ts'
import { toNumber } from './rational.ts'

/** Computes an expression from the values of its symbols, given in the order of the list with which it was compiled. Truth values are 0 and 1 inside. */
export type Compiled = (values: readonly number[]) => number

type Compute = (...args: readonly number[]) => number

const pythonModulo = (a: number, b: number): number => {
  const rest = a % b
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest
}

const TWO: Readonly<Partial<Record<Operator, (a: number, b: number) => number>>> = {
  FloorDiv: (a, b) => Math.floor(a / b),
  CleanDiv: (a, b) => Math.floor(a / b),
  Mod: pythonModulo,
  PythonMod: pythonModulo,
  Pow: (a, b) => a ** b,
  PowByNatural: (a, b) => a ** b,
  FloatPow: (a, b) => a ** b,
  IntTrueDiv: (a, b) => a / b,
  FloatTrueDiv: (a, b) => a / b,
  RoundDecimal: roundDecimal,
  Eq: (a, b) => Number(a === b),
  Ne: (a, b) => Number(a !== b),
  Lt: (a, b) => Number(a < b),
  Le: (a, b) => Number(a <= b),
  Gt: (a, b) => Number(a > b),
  Ge: (a, b) => Number(a >= b),
}

const ONE: Readonly<Partial<Record<Operator, (a: number) => number>>> = {
  Abs: Math.abs,
  ToFloat: (a) => a,
  TruncToInt: Math.trunc,
  FloorToInt: Math.floor,
  CeilToInt: Math.ceil,
  RoundToInt: roundHalfEven,
  Not: (a) => 1 - a,
}

const MANY: Readonly<Partial<Record<Operator, Compute>>> = {
  Add: (...args) => args.reduce((a, b) => a + b, 0),
  Mul: (...args) => args.reduce((a, b) => a * b, 1),
  Max: Math.max,
  Min: Math.min,
  And: Math.min,
  Or: Math.max,
}

/**
 * A function that computes the expression.
 *
 *     const rows = compileExpr(floorDiv(s0, integer(2)), [s0])
 *     rows([7]) // 3
 *
 * @param symbols - the symbols, in the order in which their values will be given.
 * @throws UnsupportedError if the expression has another symbol.
 */
export function compileExpr(expr: Expr, symbols: readonly SymbolExpr[]): Compiled {
  switch (expr.op) {
    case 'number': {
      const value = toNumber(expr.value)
      return () => value
    }
    case 'float': {
      const { value } = expr
      return () => value
    }
    case 'boolean': {
      const value = Number(expr.value)
      return () => value
    }
    case 'symbol': {
      const at = symbols.indexOf(expr)
      if (at < 0)
        throw new UnsupportedError(
          `compileExpr: no value is given for '${expr.name}'; the symbols with values are ${symbols.map(({ name }) => name).join(', ') || 'none'}.`,
        )
      return (values) => values[at] ?? NaN
    }
    case 'Piecewise':
      return choice(expr.args.map((arg) => compileExpr(arg, symbols)))
    default:
  }
  const [first, second, ...rest] = expr.args.map((arg) => compileExpr(arg, symbols))
  const one = ONE[expr.op] ?? opaqueFunction(expr.op)
  if (one !== undefined && first !== undefined) return (values) => one(first(values))
  const two = TWO[expr.op]
  if (two !== undefined && first !== undefined && second !== undefined) return (values) => two(first(values), second(values))
  const many = MANY[expr.op]
  if (many === undefined || first === undefined || second === undefined) throw new UnsupportedError(`compileExpr: '${expr.op}' cannot be computed.`)
  if (rest.length === 0) return (values) => many(first(values), second(values))
  return (values) => many(first(values), second(values), ...rest.map((arg) => arg(values)))
}

function choice(args: readonly Compiled[]): Compiled {
  return (values) => {
    for (let i = 0; i + 1 < args.length; i += 2) if ((args[i + 1]?.(values) ?? 0) !== 0) return args[i]?.(values) ?? NaN
    return NaN
  }
}

/** The value of an expression for values of its symbols. */
export function evaluate(expr: Expr, values: ReadonlyMap<SymbolExpr, number>): number {
  const symbols = [...values.keys()]
  return compileExpr(expr, symbols)([...values.values()])
}
