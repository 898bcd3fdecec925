// Which grids run in teams: a workgroup for each iteration, whose threads share the iteration's loops. A thread of its own for each iteration reads rows with large steps between threads, and adds up a whole tensor alone.
import { ExprFacts, accessesOf, effectsOf, expressionsOf, forEachStmt } from '../ir/analysis.ts'
import type { Grid } from '../ir/grid.ts'
import { dtypeInfo } from '../numbers/dtype.ts'
import type { DType } from '../numbers/dtype.ts'
import { wordsPer } from './shader.ts'
import type { Combine, ForStmt, Local, LoopVar, Stmt } from '../ir/loopIr.ts'

/** From how many steps on a loop is shared: where neighbours in memory are next to each other in it, and where they are not. */
const [SHORTEST, SHORTEST_APART] = [32, 256]
/** The steps of a loop, and those of all iterations, from which on sharing saves more time than threads take to wait for each other. */
const [SLOW, MUCH] = [256, 2 ** 15]
/** Up to how many iterations are fewer than a GPU has threads for. */
const FEW = 1024
/** The steps of a loop, and the iterations, from and to which a team is as large as WebGPU has it everywhere. */
const [LONG, FEWEST] = [4096, 16]

/** What a loop adds up, or takes the maximum of, in locals that are declared before it. */
export interface SharedSum {
  readonly local: Local
  readonly combine: Combine
}

/** A loop nest whose steps threads share. */
export interface SharedNest {
  /** The loop that is shared, the nest's first or one inside it. */
  readonly loop: LoopVar
  readonly stores: boolean
  readonly sums: readonly SharedSum[]
}

const stepsOf = ({ extent, step }: LoopVar): number => (typeof extent === 'number' ? Math.ceil(extent / step) : 0)

/** The loops that are nested in each other with nothing between them, the outermost first. */
function nestOf(stmt: ForStmt): readonly ForStmt[] {
  const [inner, ...others] = stmt.body
  return inner?.kind === 'for' && others.length === 0 ? [stmt, ...nestOf(inner)] : [stmt]
}

/** How the steps of a loop nest can be shared; null if they cannot. */
export function sharedNest(stmt: ForStmt): SharedNest | null {
  const { changed, declared, stored } = effectsOf([stmt])
  const facts = new ExprFacts()
  const sums: SharedSum[] = []
  let isShareable = true
  forEachStmt([stmt], (inner) => {
    if (inner.kind === 'assign' || inner.kind === 'declareArray' || inner.kind === 'setElement') isShareable = false
    if (inner.kind === 'accumulate' && !declared.has(inner.local)) {
      const known = sums.find(({ local }) => local === inner.local)
      if (known === undefined) sums.push(inner)
      else if (known.combine !== inner.combine) isShareable = false
    }
    for (const expr of expressionsOf(inner))
      for (const variable of facts.variablesOf(expr)) if (changed.has(variable) && !declared.has(variable)) isShareable = false
  })
  if (!isShareable) return null
  const nest = nestOf(stmt)
  // Steps that only combine values are independent; where they store, the mode of their loop says so.
  const free = nest.filter(({ mode }) => mode === 'simd' || mode === 'parallel' || stored.size === 0)
  const longest = free.reduce<ForStmt | null>((best, one) => (best === null || stepsOf(one.loop) > stepsOf(best.loop) ? one : best), null)
  return longest === null ? null : { loop: longest.loop, stores: stored.size > 0, sums: sums.map(({ local, combine }) => ({ local, combine })) }
}

/** Whether neighbours in memory are next to each other in a loop. */
const isDense = (body: readonly Stmt[], loop: LoopVar): boolean =>
  accessesOf(body).some(([, { terms }]) => terms.some((term) => term.loop === loop && (term.stride === 1 || term.stride === -1)))

/** How many threads an iteration of a grid should have if there are that many iterations, a power of two: 1, or a team that shares the loops of the iteration. */
export function teamOf({ body }: Grid, iterations: number): number {
  let longest = 0
  for (const stmt of body) {
    if (stmt.kind !== 'for') continue
    const nest = sharedNest(stmt)
    if (nest === null) return 1
    const steps = stepsOf(nest.loop)
    if (steps >= (isDense([stmt], nest.loop) ? SHORTEST : iterations <= FEW ? SHORTEST_APART : Infinity)) longest = Math.max(longest, steps)
  }
  if (longest < SHORTEST || (longest < SLOW && longest * iterations < MUCH)) return 1
  if (longest >= LONG && iterations <= FEWEST) return 256
  return longest < 64 ? 32 : 64
}

/** What a local of a thread begins with, other than the team's first one: what changes nothing. A minimum or maximum begins with the value before the loop everywhere. */
export const NEUTRAL: Readonly<Record<'add' | 'mul', (dtype: DType) => string>> = {
  add: (dtype) => (wordsPer(dtype) === 2 ? 'vec2<u32>(0u, 0u)' : '0u'),
  mul: (dtype) =>
    wordsPer(dtype) === 2 ? 'vec2<u32>(1u, 0u)' : dtype === 'bool' ? '0xffffffffu' : dtypeInfo[dtype].compute === 'float32' ? '0x3f800000u' : '1u',
}

/** The memory of a workgroup through which its threads give each other values of a type. */
export const exchange = (type: string): string => (type === 'u32' ? 'words' : 'pairs')
