// Analyses of loop IR that the emitter, the verifier and the printer share. Expressions are DAGs; every walk visits a shared expression once.
import { dtypeInfo } from '../numbers/dtype.ts'
import type { DType } from '../numbers/dtype.ts'
import { KernelError } from './errors.ts'
import type { ArrayPlace, CallExpr, Combine, Expr, Index, LoopVar, Memory, Size, Stmt, Variable } from './loopIr.ts'
import { isExpensive, scalarOp } from '../scalars/scalarOps.ts'

/** The operands of an expression, in order of evaluation. */
export function operandsOf(expr: Expr): readonly Expr[] {
  if (expr.kind === 'call') return expr.args
  if (expr.kind === 'cast') return [expr.value]
  if (expr.kind === 'element' || expr.kind === 'reduceLanes') return expr.place.flatMap(valuesIn)
  if (expr.kind !== 'load') return []
  return expr.mask === null ? valuesIn(expr.index) : [...valuesIn(expr.index), expr.mask]
}

const NONE: readonly Expr[] = []

/** The values that an index computes with. */
const valuesIn = ({ dynamic }: Index): readonly Expr[] => (dynamic.length === 0 ? NONE : dynamic.map(({ value }) => value))

/** The most elements of a row of which one is chosen by a number that is computed: their bytes have numbers below 128. */
export const MOST_CHOSEN = 16

/** The number that chooses an element of a row while a kernel runs, from 0 up to the length of the row; null where elements are chosen when code is written. */
export function computedPlace(place: ArrayPlace): Expr | null {
  const value = place.at(-1)?.dynamic[0]?.value
  return value === undefined || value.kind === 'lookup' ? null : value
}

/** The dtype that a call computes in: that of its operands, except for conditions. */
export const operandDType = ({ op, args, dtype }: CallExpr): DType => args[scalarOp(op).conditions]?.dtype ?? dtype

/** The expressions that a statement itself evaluates (not those of a loop's body). */
export function expressionsOf(stmt: Stmt): readonly Expr[] {
  if (stmt.kind === 'for') return []
  if (stmt.kind === 'declare' || stmt.kind === 'declareArray') return [stmt.init]
  if (stmt.kind === 'store') return [...valuesIn(stmt.index), stmt.value]
  return [stmt.value]
}

/** Calls `visit` for each statement, including those in nested loops. */
export function forEachStmt(body: readonly Stmt[], visit: (stmt: Stmt) => void): void {
  for (const stmt of body) {
    visit(stmt)
    if (stmt.kind === 'for') forEachStmt(stmt.body, visit)
  }
}

/** Calls `visit` once for each distinct expression reachable from the roots, including the roots. */
function forEachOperand(roots: Iterable<Expr>, visit: (expr: Expr) => void): void {
  const seen = new Set<Expr>()
  const walk = (expr: Expr): void => {
    if (seen.has(expr)) return
    seen.add(expr)
    visit(expr)
    for (const operand of operandsOf(expr)) walk(operand)
  }
  for (const root of roots) walk(root)
}

/** Calls `visit` once for each distinct expression in the statements. */
export function forEachExpr(body: readonly Stmt[], visit: (expr: Expr) => void): void {
  const roots: Expr[] = []
  forEachStmt(body, (stmt) => roots.push(...expressionsOf(stmt)))
  forEachOperand(roots, visit)
}

/** Whether an expression is more expensive to compute than to store and load again. */
export function isCostly(root: Expr): boolean {
  let costly = false
  forEachOperand([root], (expr) => {
    if (expr.kind === 'call' && isExpensive(expr.op)) costly = true
  })
  return costly
}

/** Every element access in the statements, including those in nested loops. */
export function accessesOf(body: readonly Stmt[]): readonly (readonly [Memory, Index])[] {
  const accesses: (readonly [Memory, Index])[] = []
  forEachStmt(body, (stmt) => {
    if (stmt.kind === 'store') accesses.push([stmt.buffer, stmt.index])
  })
  forEachExpr(body, (expr) => {
    if (expr.kind === 'load') accesses.push([expr.buffer, expr.index])
  })
  return accesses
}

/** Whether any value or buffer element is float64 or int64. Vectors of such kernels have two elements. */
export function touches64Bits(body: readonly Stmt[]): boolean {
  let found = false
  const look = (dtype: DType): void => {
    if (dtypeInfo[dtype].size === 8) found = true
  }
  forEachExpr(body, (expr) => look(expr.dtype))
  forEachStmt(body, (stmt) => {
    if (stmt.kind === 'store') look(stmt.buffer.dtype)
    else if (stmt.kind === 'declareArray' || stmt.kind === 'setElement') look(stmt.array.dtype)
    else if (stmt.kind !== 'for') look(stmt.local.dtype)
  })
  return found
}

/** What a loop's body declares, changes and stores. */
export interface Effects {
  /** Locals and arrays declared in it. */
  readonly declared: ReadonlySet<Variable>
  /** Locals that it assigns or accumulates into, and arrays that it sets elements of; for accumulations, how values combine. */
  readonly changed: ReadonlyMap<Variable, Combine | 'assign'>
  /** Names of the buffers stored to. */
  readonly stored: ReadonlySet<string>
  /** The loops in it. */
  readonly loops: ReadonlySet<LoopVar>
}

export function effectsOf(body: readonly Stmt[]): Effects {
  const declared = new Set<Variable>()
  const changed = new Map<Variable, Combine | 'assign'>()
  const stored = new Set<string>()
  const loops = new Set<LoopVar>()
  forEachStmt(body, (stmt) => {
    if (stmt.kind === 'for') loops.add(stmt.loop)
    else if (stmt.kind === 'declare') declared.add(stmt.local)
    else if (stmt.kind === 'declareArray') declared.add(stmt.array)
    else if (stmt.kind === 'setElement') changed.set(stmt.array, 'assign')
    else if (stmt.kind === 'store') stored.add(stmt.buffer.name)
    else changed.set(stmt.local, stmt.kind === 'assign' ? 'assign' : stmt.combine)
  })
  return { declared, changed, stored, loops }
}

/** The indices in an expression itself: of memory or of a local array. */
function indicesOf(expr: Expr): readonly Index[] {
  if (expr.kind === 'load') return [expr.index]
  if (expr.kind === 'lookup') return [expr.place]
  return expr.kind === 'element' || expr.kind === 'reduceLanes' ? expr.place : []
}

/** Facts about expressions that are derived from their operands, each computed once. */
export class ExprFacts {
  private readonly variables = new Map<Expr, ReadonlySet<Variable>>()
  private readonly loops = new Map<Expr, ReadonlySet<LoopVar>>()

  /** The loops whose variables an expression reads. */
  loopsOf(expr: Expr): ReadonlySet<LoopVar> {
    let found = this.loops.get(expr)
    if (found === undefined) {
      const all = new Set<LoopVar>()
      if (expr.kind === 'iota') all.add(expr.loop)
      for (const { terms } of indicesOf(expr)) for (const { loop } of terms) all.add(loop)
      for (const operand of operandsOf(expr)) for (const loop of this.loopsOf(operand)) all.add(loop)
      found = all
      this.loops.set(expr, found)
    }
    return found
  }

  /** The locals and local arrays that an expression reads. */
  variablesOf(expr: Expr): ReadonlySet<Variable> {
    let found = this.variables.get(expr)
    if (found === undefined) {
      const all = new Set<Variable>(expr.kind === 'local' ? [expr.local] : expr.kind === 'element' || expr.kind === 'reduceLanes' ? [expr.array] : [])
      for (const operand of operandsOf(expr)) for (const variable of this.variablesOf(operand)) all.add(variable)
      found = all
      this.variables.set(expr, found)
    }
    return found
  }
}

/** The stride of an index along a loop: a number where it is known, otherwise the terms of a sum (sizes and at most one number). */
export function strideAlong(terms: readonly { readonly loop: LoopVar; readonly stride: Size }[], loop: LoopVar): number | readonly Size[] {
  let known = 0
  const sizes: Size[] = []
  for (const term of terms) {
    if (term.loop !== loop) continue
    if (typeof term.stride === 'number') known += term.stride
    else sizes.push(term.stride)
  }
  if (sizes.length === 0) return known
  return known === 0 ? sizes : [...sizes, known]
}

/** For the end of an emitter's `switch` over the kinds of statements: it does not compile where one has no case. Throws KernelError if one comes all the same. */
export function unknownStatement(stmt: never, emitter: string): never {
  throw new KernelError(`the ${emitter} emitter does not know the statement ${JSON.stringify(stmt)}`)
}
