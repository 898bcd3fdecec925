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
}

/** Steps that are repeated, one after the other, for each value of a loop variable, which is parameter `param`. */
interface RepeatedStep {
  readonly kind: 'repeated'
  readonly stmt: ForStmt
  readonly param: number
  readonly steps: readonly Step[]
}

export type Step = WholeStep | DividedStep | RepeatedStep

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

const isFor = (stmt: Stmt): stmt is ForStmt => stmt.kind === 'for'

/** Whether threads could share the iterations, as far as that is seen without the values of sizes; see overlap.ts for the rest. A parallel loop says it of itself. */
function mayDivide({ loop, mode, body }: ForStmt): boolean {
  if (mode === 'parallel') return true
  if (mode !== 'serial' && mode !== 'simd') return false
  const { changed, declared, stored } = effectsOf(body)
  for (const variable of changed.keys()) if (!declared.has(variable)) return false
  return accessesOf(body).every(([memory, { terms, dynamic }]) => {
    if (!stored.has(memory.name)) return true
    return memory.kind === 'buffer' && dynamic.length === 0 && terms.some((term) => term.loop === loop)
  })
}

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

  constructor({ params, scratch = [] }: Kernel) {
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
    const isSmall = typeof loop.extent === 'number' && loop.extent < FEW * loop.step
    const inner = body.filter(isFor)
    const divides = mayDivide(stmt)
    const descends = mode === 'serial' && inner.length === body.length
    if (descends && (hasParallel(body) || (isSmall && inner.length === 1 && inner.some(mayDivide)))) return this.#repeat(stmt, inner, around)
    return divides ? this.#divide(stmt, around) : null
  }

  #repeat(stmt: ForStmt, inner: readonly ForStmt[], around: Substitution): Step {
    const value = sizeParam(`$${this.repeated.length}`)
    const param = this.#repeatedAt + this.repeated.length
    this.repeated.push(value)
    return { kind: 'repeated', stmt, param, steps: this.steps(inner, new Map([...around, [stmt.loop, { base: value, terms: [] }]])) }
  }

  #divide(stmt: ForStmt, around: Substitution): Step {
    const { loop, mode, body } = stmt
    const range: LoopVar = loopVar(loop.name, this.count, loop.step)
    const by: Substitution = new Map([...around, [loop, { base: this.first, terms: [{ loop: range, stride: 1 }] }]])
    // A parallel loop is run as what it is for one thread.
    this.parts.push([forLoop(range, mode, moved(body, by, this.memories), stmt.grain)])
    return { kind: 'divided', part: this.parts.length - 1, stmt }
  }

  #part(stmts: readonly Stmt[], around: Substitution): number {
    this.parts.push(moved(stmts, around, this.memories))
    return this.parts.length - 1
  }
}

const dividesAny = (steps: readonly Step[]): boolean =>
  steps.some((step) => step.kind === 'divided' || (step.kind === 'repeated' && dividesAny(step.steps)))

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
