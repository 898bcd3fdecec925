// Logic variables: what unification finds values for. PyTorch's torch.fx.experimental.unification.variable.
import type { TypeValue } from '../../../protocol/index.ts'

/** A logic variable. It prints as `~token`. Two variables with the same token are the same object, so `===` and Map work. */
export interface Var extends TypeValue {
  readonly token: unknown
}

class Variable implements Var {
  readonly isTypeValue = true
  readonly typescript = 'unknown'
  readonly token: unknown

  constructor(token: unknown) {
    this.token = token
    Object.freeze(this)
  }

  toString(): string {
    return `~${String(this.token)}`
  }
}

const variablesByToken = new Map<unknown, Var>()
let unnamed = 0

/**
 * The variable with a token; without one, a variable that no other call has given: `_1`, `_2`, … PyTorch's Var.
 *
 *     const x = Var('x')
 *     unify([x, 2], [1, 2])  // {~x: 1}
 */
export function Var(...token: readonly [token?: unknown]): Var {
  const [name] = token.length === 0 ? [`_${++unnamed}`] : token
  let known = variablesByToken.get(name)
  if (known === undefined) variablesByToken.set(name, (known = new Variable(name)))
  return known
}

/** A function that makes variables: `variable()('q')` is `Var('q')`. PyTorch's var. */
export const variable =
  (): typeof Var =>
  (...token) =>
    Var(...token)

/** As many new variables as asked for. PyTorch's vars. */
export const vars = (count: number): Var[] => Array.from({ length: count }, () => Var())

/** Values that count as variables at the moment. */
let scope: ReadonlySet<unknown> = new Set()

/** Whether a value is a variable: made by {@link Var}, or named by {@link variables}. PyTorch's isvar. */
export const isvar = (value: unknown): boolean => value instanceof Variable || scope.has(value)

/** Whether a value was made by {@link Var}. */
export const isVar = (value: unknown): value is Var => value instanceof Variable

/**
 * Calls `run` while the given values count as variables, and returns its result. PyTorch's variables, a context manager.
 *
 *     variables(['a'], () => unify('a', 1))  // {a: 1}
 */
export function variables<R>(values: readonly unknown[], run: () => R): R {
  const before = scope
  scope = new Set([...before, ...values])
  try {
    return run()
  } finally {
    scope = before
  }
}
