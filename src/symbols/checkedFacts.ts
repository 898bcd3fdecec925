// What is compared with other inputs before a trace is used for them, as truth values: ranges, equal sizes, and the guards that these do not imply.
import type { Expr } from './expression.ts'
import { eq } from './relations.ts'
import { runtimeBounds } from './runtimeBounds.ts'
import type { ShapeEnv } from './shapeEnv.ts'

/** The facts that `produceGuards` writes about the inputs of an environment. */
export function checkedFacts(env: ShapeEnv): readonly Expr[] {
  return [
    ...[...env.ranges].flatMap(([of, range]) => runtimeBounds(of, range).map(({ expr }) => expr)),
    ...[...env.replacements].filter(([of, target]) => of !== target).map(([of, target]) => eq(of, target)),
    ...env.guards.filter((guard) => !env.isImpliedByRanges(guard)).map(({ expr }) => env.simplify(expr)),
  ]
}
