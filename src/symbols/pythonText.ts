// Expressions as Python, with names of the caller's for the symbols: the spelling of guards, `2 <= L['x'].size()[0]`. Arguments keep the order in which they are stored.
import type { Expr, SymbolExpr } from './expression.ts'
import { operands } from './expression.ts'
import { BELOW_ATOM, PRECEDENCE, precedence } from './precedence.ts'
import { floatText, textOf } from './print.ts'
import { toNumber } from './rational.ts'

/** The expression in Python's spelling. */
export function pythonTextOf(expr: Expr, nameOf: (symbol: SymbolExpr) => string): string {
  const print = (part: Expr): string => pythonTextOf(part, nameOf)
  const joined = (args: readonly Expr[], between: string, level: number): string =>
    args.map((arg) => (precedence(arg) <= level ? `(${print(arg)})` : print(arg))).join(between)
  const call = (name: string): string => `${name}(${expr.args.map(print).join(', ')})`
  switch (expr.op) {
    case 'symbol':
      return nameOf(expr)
    case 'float':
      return floatText(expr.value)
    case 'number':
    case 'boolean':
      return textOf(expr)
    case 'Add':
      return joined(expr.args, ' + ', PRECEDENCE.sum)
    case 'Mul':
      return joined(expr.args, '*', precedence(expr))
    case 'Pow': {
      const [base, exponent] = operands(expr)
      const count = exponent.op === 'number' ? toNumber(exponent.value) : 0
      return count > 0 ? joined(new Array<Expr>(count).fill(base), '*', PRECEDENCE.product) : `1/${joined([base], '', PRECEDENCE.product)}`
    }
    case 'Eq':
    case 'Ne':
      return joined(expr.args, expr.op === 'Eq' ? ' == ' : ' != ', PRECEDENCE.product)
    case 'Lt':
    case 'Le':
    case 'Gt':
    case 'Ge':
      return joined(expr.args, { Lt: ' < ', Le: ' <= ', Gt: ' > ', Ge: ' >= ' }[expr.op], PRECEDENCE.relation)
    case 'And':
      return joined(expr.args, ' and ', PRECEDENCE.and)
    case 'Or':
      return joined(expr.args, ' or ', PRECEDENCE.or)
    case 'Not':
      return `not ${joined(expr.args, '', PRECEDENCE.not)}`
    case 'Mod':
    case 'PythonMod':
      return joined(expr.args, ' % ', BELOW_ATOM)
    case 'FloorDiv':
    case 'CleanDiv':
      return joined(expr.args, ' // ', BELOW_ATOM)
    case 'IntTrueDiv':
    case 'FloatTrueDiv':
      return joined(expr.args, ' / ', BELOW_ATOM)
    case 'PowByNatural':
    case 'FloatPow':
      return joined(expr.args, ' ** ', PRECEDENCE.power)
    case 'Piecewise':
      return choiceText(expr.args, print)
    default:
      return call(PYTHON_NAMES[expr.op] ?? expr.op.replace('OpaqueUnaryFn_', 'math.'))
  }
}

const PYTHON_NAMES: Readonly<Record<string, string>> = {
  ToFloat: 'float',
  Max: 'max',
  Min: 'min',
  Abs: 'abs',
  TruncToInt: 'math.trunc',
  FloorToInt: 'math.floor',
  CeilToInt: 'math.ceil',
  RoundToInt: 'round',
  RoundDecimal: 'round',
}

function choiceText([value, condition, ...rest]: readonly Expr[], print: (expr: Expr) => string): string {
  if (value === undefined || condition === undefined) return ''
  return rest.length === 0 ? print(value) : `(${print(value)} if ${print(condition)} else ${choiceText(rest, print)})`
}
