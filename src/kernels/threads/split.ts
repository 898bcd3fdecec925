// A kernel in parts that threads can share: each of its outermost loops whose iterations do not touch each other's elements takes a range as two more parameters. This is a rewriting of
// the loop IR, so that the same emitter writes the parts. A kernel whose outermost statements are not loops stays whole.
import { accessesOf, effectsOf, forEachStmt } from '../ir/analysis.ts'
import { bufferParam, forLoop, loopVar, sizeParam } from '../ir/loopIr.ts'
import type { BufferParam, ForStmt, Kernel, LoopVar, Memory, Param, Scratch, SizeParam, Stmt } from '../ir/loopIr.ts'
import { moved } from '../schedules/substitute.ts'
import type { Substitution } from '../schedules/substitute.ts'

/** A part that one thread runs. */
interface WholeStep {
  readonly kind: 'whole'
  readonly part: number
  readonly stmts: readonly ForStmt[]
}

/** A loop of which threads run ranges. */
export interface DividedStep {
  readonly kind: 'divided'
  readonly part: number
  readonly stmt: ForStmt
  /** Whether each thread must have the scratch memory that it accesses for itself, also what is one for a call: each iteration writes there what it reads. */
  readonly ownScratch: boolean
}

/** Steps that are repeated, one after the other, for each value of a loop variable, which is parameter `param`. */
export interface RepeatedStep {
  readonly kind: 'repeated'
  readonly stmt: ForStmt
  readonly param: number
  readonly steps: readonly Step[]
}

/** A loop that threads share, or that is repeated while they share the loops inside: which is better depends on how many iterations a call has. */
interface EitherStep {
  readonly kind: 'either'
  readonly outer: DividedStep
  readonly inner: RepeatedStep
}

export type Step = WholeStep | DividedStep | RepeatedStep | EitherStep

/** A kernel as steps. */
export interface Split {
  readonly steps: readonly Step[]
  /** The bodies of the parts. */
  readonly parts: readonly (readonly Stmt[])[]
  /** The parameters of every part: those of the kernel, its scratch memories, the variables of repeated loops, and the range: where it starts, and how far it goes. */
  readonly params: readonly Param[]
}

/** Loops of fewer iterations than that are not divided if there is a loop inside. */
const FEW = 4
/** Loops of that many iterations are enough for threads to share them, whatever is inside. */
const MANY = 8

const isFor = (stmt: Stmt): stmt is ForStmt => stmt.kind === 'for'

/** Whether threads could share the iterations, as far as that is seen without the values of sizes; see overlap.ts for the rest. A parallel loop says it of itself. `owned`: scratch memories of which each thread would have its own. */
function mayDivide({ loop, mode, body }: ForStmt, owned: ReadonlySet<Memory> = new Set()): boolean {
  if (mode === 'parallel') return true
  if (mode !== 'serial' && mode !== 'simd') return false
  const { changed, declared, stored } = effectsOf(body)
  for (const variable of changed.keys()) if (!declared.has(variable)) return false
  return accessesOf(body).every(([memory, { terms, dynamic }]) => {
    if (memory.kind === 'scratch') return owned.has(memory) || (memory.per === 'call' && !stored.has(memory.name))
    return !stored.has(memory.name) || (dynamic.length === 0 && terms.some((term) => term.loop === loop))
  })
}

/**
 * The scratch memories that a loop accesses, if no other loop does and each iteration accesses the same places: since the first one finds anything there, each one writes what it reads.
 * None if that is not so of all.
 */
function ownedBy({ loop, body }: ForStmt, kernel: readonly Stmt[]): ReadonlySet<Memory> {
  const inside = accessesOf(body).filter(([memory]) => memory.kind === 'scratch')
  const owned = new Set(inside.map(([memory]) => memory))
  const isSame = inside.every(([, { terms, dynamic }]) => dynamic.length === 0 && terms.every((term) => term.loop !== loop))
  const isAll = accessesOf(kernel).filter(([memory]) => owned.has(memory)).length === inside.length
  return isSame && isAll ? owned : new Set()
}

const accessesOwn = (body: readonly Stmt[], per: Scratch['per']): boolean =>
  accessesOf(body).some(([memory]) => memory.kind === 'scratch' && memory.per === per)

function hasParallel(body: readonly Stmt[]): boolean {
  let found = false
  forEachStmt(body, (stmt) => {
    if (stmt.kind === 'for' && stmt.mode === 'parallel') found = true
  })
  return found
}

class Splitting {
  readonly parts: (readonly Stmt[])[] = []
  readonly repeated: SizeParam[] = []
  readonly first: SizeParam = sizeParam('$first')
  readonly count: SizeParam = sizeParam('$count')
  readonly memories: ReadonlyMap<Memory, BufferParam>
  readonly #repeatedAt: number
  readonly #body: readonly Stmt[]

  constructor({ params, scratch = [], body }: Kernel) {
    this.#body = body
    this.memories = new Map(scratch.map((part) => [part, bufferParam(part.name, part.dtype, 'readwrite')]))
    this.#repeatedAt = params.length + scratch.length
  }

  steps(stmts: readonly ForStmt[], around: Substitution): readonly Step[] {
    const steps: Step[] = []
    for (const stmt of stmts) {
      const step = this.#step(stmt, around)
      const last = steps.at(-1)
      if (step !== null) steps.push(step)
      else if (last?.kind === 'whole') {
        const joined = [...last.stmts, stmt]
        this.parts[last.part] = moved(joined, around, this.memories)
        steps[steps.length - 1] = { ...last, stmts: joined }
      } else steps.push({ kind: 'whole', part: this.#part([stmt], around), stmts: [stmt] })
    }
    return steps
  }

  /** The loop as a step of its own; null where it is better run with its neighbours. */
  #step(stmt: ForStmt, around: Substitution): Step | null {
    const { loop, mode, body } = stmt
    const trips = typeof loop.extent === 'number' ? Math.ceil(loop.extent / loop.step) : null
    const inner = body.filter(isFor)
    const isNest = inner.length === body.length
    const owned = mode === 'parallel' ? new Set<Memory>() : ownedBy(stmt, this.#body)
    const divides = mayDivide(stmt, owned)
    // A thread's scratch memory is for one iteration of a parallel loop: what is inside shares it.
    const descends = isNest && (mode === 'serial' || (mode === 'parallel' && !accessesOwn(body, 'thread')))
    const isShared = hasParallel(body) || (inner.length > 0 && inner.every((each) => mayDivide(each)))
    if (!descends || !isShared || (divides && trips !== null && trips >= MANY)) return divides ? this.#divide(stmt, around, owned.size > 0) : null
    const isFew = trips !== null && trips < FEW && inner.length === 1
    if (!divides) return hasParallel(body) || isFew ? this.#repeat(stmt, inner, around) : null
    if (trips === 1) return this.#repeat(stmt, inner, around)
    return { kind: 'either', outer: this.#divide(stmt, around, owned.size > 0), inner: this.#repeat(stmt, inner, around) }
  }

  #repeat(stmt: ForStmt, inner: readonly ForStmt[], around: Substitution): RepeatedStep {
    const value = sizeParam(`$${this.repeated.length}`)
    const param = this.#repeatedAt + this.repeated.length
    this.repeated.push(value)
    return { kind: 'repeated', stmt, param, steps: this.steps(inner, new Map([...around, [stmt.loop, { base: value, terms: [] }]])) }
  }

  #divide(stmt: ForStmt, around: Substitution, ownScratch: boolean): DividedStep {
    const { loop, mode, body } = stmt
    const range: LoopVar = loopVar(loop.name, this.count, loop.step)
    const by: Substitution = new Map([...around, [loop, { base: this.first, terms: [{ loop: range, stride: 1 }] }]])
    // A parallel loop is run as what it is for one thread.
    this.parts.push([forLoop(range, mode, moved(body, by, this.memories), stmt.grain)])
    return { kind: 'divided', part: this.parts.length - 1, stmt, ownScratch }
  }

  #part(stmts: readonly Stmt[], around: Substitution): number {
    this.parts.push(moved(stmts, around, this.memories))
    return this.parts.length - 1
  }
}

const dividesAny = (steps: readonly Step[]): boolean =>
  steps.some((step) => step.kind === 'divided' || step.kind === 'either' || (step.kind === 'repeated' && dividesAny(step.steps)))

/** The kernel in parts; null where no loop can be divided. */
export function splitKernel(kernel: Kernel): Split | null {
  const { params, scratch = [], body } = kernel
  const loops = body.filter(isFor)
  if (loops.length !== body.length) return null
  const splitting = new Splitting(kernel)
  const steps = splitting.steps(loops, new Map())
  if (!dividesAny(steps)) return null
  const own = scratch.map((part: Scratch) => splitting.memories.get(part)).filter((part) => part !== undefined)
  return {
    steps,
    parts: splitting.parts,
    params: [...params, ...own, ...splitting.repeated, splitting.first, splitting.count],
  }
}
