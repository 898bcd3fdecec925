// How much there is to do: an estimate from the loop IR, in units that take each kernel a time of its own, which is learnt.
import { expressionsOf, operandsOf } from '../ir/analysis.ts'
import type { Expr, Kernel, Param, Stmt } from '../ir/loopIr.ts'
import { sizeValue } from '../ir/sizes.ts'
import type { Size, SizeParam } from '../ir/sizes.ts'
import { scalarOp } from '../scalars/scalarOps.ts'

/** The value of a size in a call. */
export type SizeOf = (param: SizeParam) => number

/** The work of statements in a call. */
export type Work = (of: SizeOf) => number

function costOf(stmt: Stmt): number {
  const seen = new Set<Expr>()
  const visit = (expr: Expr): number => {
    if (seen.has(expr)) return 0
    seen.add(expr)
    const own = expr.kind === 'call' ? scalarOp(expr.op).cost : expr.kind === 'load' ? 1 : 0
    return operandsOf(expr).reduce((sum, operand) => sum + visit(operand), own)
  }
  return expressionsOf(stmt).reduce((sum, expr) => sum + visit(expr), 1)
}

/** How often a loop of that extent runs. */
export const tripsOf = (extent: Size, step: number, of: SizeOf): number => Math.max(0, Math.ceil(sizeValue(extent, of) / step))

/** The work of statements, as a function of the sizes of a call; what is known is summed up here. */
export function workOf(stmts: readonly Stmt[]): Work {
  let known = 0
  const loops: { readonly extent: Size; readonly step: number; readonly body: Work }[] = []
  for (const stmt of stmts) {
    if (stmt.kind === 'for') loops.push({ extent: stmt.loop.extent, step: stmt.loop.step, body: workOf(stmt.body) })
    else known += costOf(stmt)
  }
  return (of) => {
    let sum = known
    for (const { extent, step, body } of loops) sum += tripsOf(extent, step, of) * body(of)
    return sum
  }
}

/** The work of a kernel's calls, from their arguments: that of the last sizes is kept, since sizes seldom change from call to call. */
export class CallWork {
  readonly #work: Work
  readonly #positions: ReadonlyMap<Param, number>
  /** Where the sizes are among the arguments, and those of the last call. */
  readonly #sizesAt: readonly number[]
  readonly #sizes: number[]
  #last = -1

  constructor({ params, body }: Pick<Kernel, 'params' | 'body'>) {
    this.#work = workOf(body)
    this.#positions = new Map(params.map((param, i) => [param, i]))
    this.#sizesAt = params.flatMap(({ kind }, i) => (kind === 'size' ? [i] : []))
    this.#sizes = this.#sizesAt.map(() => NaN)
  }

  /** The sizes of a call. */
  sizesIn(args: readonly number[]): SizeOf {
    return (param) => args[this.#positions.get(param) ?? -1] ?? 0
  }

  in(args: readonly number[]): number {
    let isKnown = this.#last >= 0
    this.#sizesAt.forEach((at, i) => {
      const size = args[at] ?? 0
      if (this.#sizes[i] === size) return
      this.#sizes[i] = size
      isKnown = false
    })
    if (!isKnown) this.#last = this.#work(this.sizesIn(args))
    return this.#last
  }
}
