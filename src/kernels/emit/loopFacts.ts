// What the emitter knows of a loop of the IR before it writes it. A loop inside loops that are written out is written many times, and these facts are the same each time.
import { ExprFacts, accessesOf, effectsOf, expressionsOf, forEachExpr, forEachStmt, operandsOf, strideAlong, touches64Bits } from '../ir/analysis.ts'
import type { Effects } from '../ir/analysis.ts'
import type { ElementExpr, Expr, ForStmt, Index, LoadExpr, LoopMode, LoopVar, Memory, ReduceLanesExpr, Stmt, StoreStmt } from '../ir/loopIr.ts'
import { scalarOp } from '../scalars/scalarOps.ts'
import { FUNCTION } from '../scalars/scalarOpRecord.ts'
import { isStrict } from '../engine/computing.ts'

/** What has one value in all iterations of a loop, in the order in which it is evaluated before the loop. */
export interface Invariants {
  /** The largest expressions that do not change. */
  readonly exprs: readonly Expr[]
  /** What is accessed at computed places, up to the first of them that changes. */
  readonly starts: readonly (readonly [Memory, Index])[]
}

export interface LoopFacts {
  readonly effects: Effects
  readonly invariants: Invariants
}

/** Whether the iterations of a loop are written out. */
export const isWrittenOut = (mode: LoopMode): boolean => mode === 'unroll' || mode === 'lanes'

/** The loops in statements whose iterations are written out. */
export function writtenOutLoops(body: readonly Stmt[]): ReadonlySet<LoopVar> {
  const loops = new Set<LoopVar>()
  forEachStmt(body, (stmt) => {
    if (stmt.kind === 'for' && isWrittenOut(stmt.mode)) loops.add(stmt.loop)
  })
  return loops
}

/** Whether statements access memory at places that are computed. */
export const computesPlaces = (body: readonly Stmt[]): boolean => accessesOf(body).some(([, { dynamic }]) => dynamic.length > 0)

/** The facts of a loop; `computes` is whether {@link computesPlaces} says so of the kernel. */
export function factsOf({ loop, mode, body }: ForStmt, computes: boolean): LoopFacts {
  const effects = effectsOf(body)
  const exprs: Expr[] = []
  const running = new Set<LoopVar>()
  forEachStmt(body, (inner) => {
    exprs.push(...expressionsOf(inner))
    if (inner.kind === 'for' && !isWrittenOut(inner.mode)) running.add(inner.loop)
  })
  if (!isWrittenOut(mode)) running.add(loop)
  // From pointers that do not move in the loop.
  const stays = ({ dynamic, terms }: Index): boolean => dynamic.length > 0 && !terms.some((term) => running.has(term.loop))
  const accesses = computes ? accessesOf(body).filter(([, index]) => stays(index)) : []
  const varying = { ...effects, loops: new Set([...effects.loops, loop]) }
  return { effects, invariants: invariantsOf(exprs, accesses, varying, mode !== 'serial' && mode !== 'unroll') }
}

/**
 * What does not change in a loop with these effects. Loads are moved only out of loops without stores, or out of loops whose iterations are independent, that do
 * not store to that buffer.
 */
function invariantsOf(exprs: readonly Expr[], accesses: Invariants['starts'], effects: Effects, isIndependent: boolean): Invariants {
  const invariant = new Map<Expr, boolean>()
  const isInvariant = (expr: Expr): boolean => {
    let result = invariant.get(expr)
    if (result === undefined) {
      result =
        !(expr.kind === 'iota' && effects.loops.has(expr.loop)) &&
        !(expr.kind === 'lookup' && expr.place.terms.some(({ loop }) => effects.loops.has(loop))) &&
        !((expr.kind === 'element' || expr.kind === 'reduceLanes') && !arrayStays(expr, effects)) &&
        !(expr.kind === 'local' && (effects.declared.has(expr.local) || effects.changed.has(expr.local))) &&
        !(expr.kind === 'load' && !loadStays(expr, effects, isIndependent)) &&
        operandsOf(expr).every(isInvariant)
      invariant.set(expr, result)
    }
    return result
  }
  const found: Expr[] = []
  const seen = new Set<Expr>()
  const visit = (expr: Expr): void => {
    if (seen.has(expr) || expr.kind === 'lookup') return
    seen.add(expr)
    if (isInvariant(expr)) found.push(expr)
    else operandsOf(expr).forEach(visit)
  }
  exprs.forEach(visit)
  const starts = accesses.flatMap(([memory, index]): [Memory, Index][] => {
    const changing = index.dynamic.findIndex(({ value }) => value.kind !== 'lookup' && !isInvariant(value))
    if (changing < 0) return [[memory, index]]
    return changing === 0 ? [] : [[memory, { ...index, dynamic: index.dynamic.slice(0, changing) }]]
  })
  return { exprs: found, starts }
}

function arrayStays({ array, place }: ElementExpr | ReduceLanesExpr, { declared, changed, loops }: Effects): boolean {
  return !declared.has(array) && !changed.has(array) && !place.some(({ terms }) => terms.some((term) => loops.has(term.loop)))
}

function loadStays(expr: LoadExpr, effects: Effects, isIndependent: boolean): boolean {
  if (expr.index.terms.some((term) => effects.loops.has(term.loop))) return false
  return effects.stored.size === 0 || (isIndependent && !effects.stored.has(expr.buffer.name))
}

/** What an iteration costs, about; Infinity where elements are gathered one by one. */
export function costOf(stmt: ForStmt): number {
  let cost = 0
  const facts = new ExprFacts()
  const { declared } = effectsOf(stmt.body)
  const varies = (value: Expr): boolean =>
    facts.loopsOf(value).has(stmt.loop) || [...facts.variablesOf(value)].some((variable) => declared.has(variable))
  for (const [, index] of accessesOf(stmt.body)) {
    const stride = strideAlong(index.terms, stmt.loop)
    if (index.dynamic.some(({ value }) => varies(value)) || (stride !== 0 && stride !== 1 && stride !== 2)) cost = Infinity
  }
  forEachExpr(stmt.body, (expr) => {
    if (expr.kind === 'call') cost += scalarOp(expr.op).cost
    if (expr.kind === 'load' && expr.mask !== null) cost = Infinity
  })
  return cost
}

/** Vectors in flight, where more than one is faster. */
const UNROLL = 4
/** Above this cost, several vectors in flight gain nothing: one chain is long enough to keep the processor busy, and the code grows. */
const UNROLL_LIMIT = 80

/**
 * How a simd loop runs in vectors of `elements`: how many at a time, and whether sums have one vector all the same, since what functions need of registers leaves few. The order of sums
 * follows from it, so that every emitter asks here.
 */
export function flightOf(stmt: ForStmt, elements: number): { readonly vectors: number; readonly isOne: boolean } {
  const { extent } = stmt.loop
  const cost = costOf(stmt)
  const isLong = typeof extent !== 'number' || extent >= elements * UNROLL
  return { vectors: isLong && cost <= UNROLL_LIMIT ? UNROLL : 1, isOne: cost >= FUNCTION && !isStrict() }
}

/** Whether a loop has no 64-bit dtypes and no variables of the code around it. */
export function standsAlone({ body }: ForStmt): boolean {
  if (touches64Bits(body)) return false
  const { declared, changed } = effectsOf(body)
  let alone = [...changed.keys()].every((variable) => declared.has(variable))
  forEachExpr(body, (expr) => {
    const variable = expr.kind === 'local' ? expr.local : expr.kind === 'element' || expr.kind === 'reduceLanes' ? expr.array : null
    if (variable !== null && !declared.has(variable)) alone = false
  })
  return alone
}

/** Whether two stores write neighbours, and the second value does not come from the memory that is written. */
export function arePairs(first: StoreStmt, second: StoreStmt): boolean {
  const { buffer, combine, index } = first
  const { base, terms, dynamic } = second.index
  if (second.buffer !== buffer || combine !== null || second.combine !== null || index.dynamic.length > 0 || dynamic.length > 0) return false
  if (typeof base !== 'number' || typeof index.base !== 'number' || base !== index.base + 1 || terms.length !== index.terms.length) return false
  if (!terms.every(({ loop, stride }, i) => index.terms[i]?.loop === loop && index.terms[i].stride === stride)) return false
  let reads = false
  forEachExpr([second], (expr) => {
    if (expr.kind === 'load' && expr.buffer === buffer) reads = true
  })
  return !reads
}
