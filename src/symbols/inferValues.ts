// Values of symbols for which conditions hold. It starts from values for which they do not, and changes one symbol for each condition that fails.
import { checkArray, checkCount } from '../protocol/index.ts'
import { compileExpr, evaluate } from './evaluate.ts'
import { freeSymbols } from './expression.ts'
import type { Expr, SymbolExpr } from './expression.ts'
import type { ShapeEnv } from './shapeEnv.ts'
import { trySolve } from './solve.ts'
import type { SymBool } from './symValues.ts'

/** Sizes up to this one are tried where a condition cannot be solved for a symbol, such as that a size is a multiple of 32. */
const MOST_TRIED = 2 ** 16

type Values = ReadonlyMap<SymbolExpr, number>

const orderOf = ({ name }: SymbolExpr): number => Number(name.replace(/\D/g, ''))

/**
 * Sizes of at least 2 for which all of `conditions` hold: the symbols that conditions ask for, with their values. Where there is a choice, the symbol that was made last gets another value, and the smallest one that does.
 * Null if none are found. PyTorch's `infer_symbol_values`, which reads the conditions out of the messages of operators.
 */
export function inferSymbolValues(env: ShapeEnv, conditions: readonly SymBool[]): Values | null {
  checkCount('inferSymbolValues', arguments, 2)
  checkArray('inferSymbolValues', 'conditions', conditions)
  return valuesFor(
    env.values,
    conditions.map(({ expr }) => expr),
  )
}

/** {@link inferSymbolValues} of expressions. `start`: the values of all symbols. */
export function valuesFor(start: Values, conditions: readonly Expr[]): Values | null {
  const values = new Map(start)
  for (const [i, condition] of conditions.entries()) {
    if (evaluate(condition, values) === 1) continue
    const found = changeFor(condition, conditions.slice(0, i + 1), values)
    if (found === null) return null
    values.set(...found)
  }
  return new Map([...values].filter(([symbol]) => conditions.some((condition) => freeSymbols(condition).has(symbol))))
}

/** A symbol of `condition` and a value of it with which all of `conditions` hold. */
function changeFor(condition: Expr, conditions: readonly Expr[], values: Values): readonly [SymbolExpr, number] | null {
  for (const symbol of [...freeSymbols(condition)].toSorted((a, b) => orderOf(b) - orderOf(a))) {
    const names = [...values.keys()]
    const compiled = conditions.map((one) => compileExpr(one, names))
    const holds = (value: number): boolean => {
      const given = names.map((name) => (name === symbol ? value : (values.get(name) ?? NaN)))
      return compiled.every((one) => one(given) === 1)
    }
    const solution = trySolve(condition, symbol)
    const solved = solution?.relation.op === 'Eq' ? evaluate(solution.right, values) : NaN
    if (Number.isSafeInteger(solved) && solved >= 2 && holds(solved)) return [symbol, solved]
    for (let value = 2; value <= MOST_TRIED; value++) if (holds(value)) return [symbol, value]
  }
  return null
}
