// Max and Min: flat, without arguments that another one makes needless. As in PyTorch, only numbers are compared, so `Max(s0, s0 + 1)` stays.
import { integer, isNumber, operation } from './expression.ts'
import type { Expr } from './expression.ts'
import { factsOf } from './facts.ts'
import { compareNumbers } from './functions.ts'
import { compareSizes } from './order.ts'

type Extreme = 'Max' | 'Min'

export const max = (...args: readonly Expr[]): Expr => extreme('Max', args)
export const min = (...args: readonly Expr[]): Expr => extreme('Min', args)

const other = (op: Extreme): Extreme => (op === 'Max' ? 'Min' : 'Max')

function extreme(op: Extreme, given: readonly Expr[]): Expr {
  const flat = [...new Set(given.flatMap((arg) => (arg.op === op ? arg.args : [arg])))]
  const args = withoutZeros(op, collapse(op, flat))
  const [only] = args
  if (only !== undefined && args.length === 1) return only
  return operation(op, args.toSorted(compareSizes))
}

/** Arguments that occur in a later argument make that one needless, or a part of it. */
function collapse(op: Extreme, given: readonly Expr[]): readonly Expr[] {
  const args = [...given].toSorted(compareSizes)
  for (const [i, arg] of args.entries()) for (let k = i + 1; k < args.length; k++) args[k] = without(op, args[k] ?? arg, arg)
  const kept = [...new Set(args)]
  return factored(op, kept)
}

/** `Max(a, Min(a, b))` is a, and `Max(a, Min(b, Max(a, c)))` is `Max(a, Min(b, c))`. */
function without(op: Extreme, expr: Expr, arg: Expr): Expr {
  if (expr.op !== 'Max' && expr.op !== 'Min') return expr
  if (!expr.args.includes(arg)) {
    const args = expr.args.map((part) => without(op, part, arg))
    return args.every((part, i) => part === expr.args[i]) ? expr : extreme(expr.op, args)
  }
  return expr.op === op
    ? extreme(
        op,
        expr.args.filter((part) => part !== arg).map((part) => without(op, part, arg)),
      )
    : arg
}

/** `Max(Min(a, b), Min(a, c))` is `Min(a, Max(b, c))`. */
function factored(op: Extreme, args: readonly Expr[]): readonly Expr[] {
  const [first] = args
  if (first === undefined || args.length < 2 || !args.every((arg) => arg.op === other(op))) return args
  const lists: readonly (readonly Expr[])[] = args.map((arg) => arg.args)
  const shared = (lists[0] ?? []).filter((part) => lists.every((list) => list.includes(part)))
  if (shared.length === 0) return args
  const rests = lists.map((list) => list.filter((part) => !shared.includes(part)))
  if (rests.some((rest) => rest.length === 0)) return [extreme(other(op), shared)]
  return [
    extreme(other(op), [
      ...shared,
      extreme(
        op,
        rests.map((rest) => extreme(other(op), rest)),
      ),
    ]),
  ]
}

/** The most extreme of the numbers, and the rest; of one other argument whose sign is known, 0 and 1 decide. */
function withoutZeros(op: Extreme, args: readonly Expr[]): readonly Expr[] {
  const numbers = args.filter(isNumber)
  const rest = args.filter((arg) => !isNumber(arg))
  const wanted = op === 'Max' ? 1 : -1
  const [first, ...more] = numbers
  if (first === undefined) return rest
  const best = more.reduce<Expr>((a, b) => (compareNumbers(b, a) === wanted ? b : a), first)
  const [only] = rest
  if (only === undefined) return [best]
  if (best.op === 'number' && best.value.q === 0n) return best.value.p > 0n === (op === 'Max') ? [best] : rest
  if (rest.length === 1) {
    const { nonnegative, positive } = factsOf(only)
    if ((compareNumbers(best, integer(0)) === 0 && nonnegative) || (compareNumbers(best, integer(1)) === 0 && positive))
      return op === 'Max' ? rest : [best]
  }
  return [...rest, best]
}
