// Emits a group of fused nodes as one kernel in the loop IR.
//
// Loops over kept dimensions are outside, loops over reduced dimensions inside. Nodes that need a reduction's result run in a later phase, in another
// loop over the reduced dimensions (softmax: phase 0 finds the maximum, phase 1 sums the exponentials, phase 2 divides). Values pass between nodes in
// registers. A cheap value that a later phase needs again is recomputed. An expensive one is kept: where it is in memory anyway, or where the result will be that
// is computed from it (exponentials become probabilities in place), or in scratch memory for the length of an iteration.
import { InternalError } from '../../errors/index.ts'
import {
  LANES,
  accumulate,
  cast,
  declare,
  forLoop,
  identityOf,
  load,
  local,
  loopVar,
  pointwiseKernel,
  read,
  scratch,
  store,
} from '../../kernels/index.ts'
import type { Expr, Grid, Index, Kernel, Memory, Scratch, Size, SizeParam, Stmt } from '../../kernels/index.ts'
import { collapseDims, contiguousStrides } from '../../tensor/index.ts'
import type { Collapsed } from '../../tensor/index.ts'
import { accessStrides } from '../groups.ts'
import type { LoopGroup, LoopMember } from '../groups.ts'
import type { Access, Buffer, PointwiseNode } from '../ir.ts'
import { known as present, nth } from '../known.ts'
import type { Placement } from '../placement.ts'
import { product, sizesOf } from '../spaces.ts'
import { Operands, indexOver, indicesOf } from './operands.ts'
import type { Loop, Operand } from './operands.ts'

/** A kernel, and what each of its parameters stands for, in order. */
export interface LoopKernel {
  readonly kernel: Kernel
  readonly operands: readonly Operand[]
}

/** What the sizes of a group are to its kernel. */
export interface KernelSizes {
  of(size: number): Size
  /** The parameters among those that were asked for. */
  params(): readonly SizeParam[]
}

/** A kernel for the sizes of its group. */
const known: KernelSizes = { of: (size) => size, params: () => [] }

/** Emits a group of loops. */
export const emitLoops = (name: string, group: LoopGroup, placement: Placement, sizes: KernelSizes = known): LoopKernel =>
  new LoopEmitter(name, group, placement, { isGrid: false, sizes }).emit()

/** A group as a grid, whose loops are independent, and what each of its parameters stands for, in order. */
export interface GroupGrid {
  readonly grid: Grid
  readonly operands: readonly Operand[]
}

/** A group of loops as a grid: its kept loops are independent, and one iteration of theirs computes everything inside. */
export const loopGrid = (name: string, group: LoopGroup, placement: Placement): GroupGrid =>
  new LoopEmitter(name, group, placement, { isGrid: true, sizes: known }).grid()

/** Elements further apart than this share no cache line: gathering lanes from them costs more than it gains. */
const NEAR = 16

/** If the innermost dimension is too short for vectors, moves a longer, near one inside: its lanes are loaded one by one, but computed together. */
function longLoopInside(layout: Collapsed): Collapsed {
  const { dims, strides, reduced } = layout
  const last = dims.length - 1
  if (last < 1 || nth(dims, last) >= LANES) return layout
  const fits = (i: number): boolean =>
    reduced[i] === reduced[last] && nth(dims, i) >= LANES && strides.every((operand) => Math.abs(nth(operand, i)) <= NEAR)
  const best = dims.findLastIndex((_, i) => i < last && fits(i))
  if (best < 0) return layout
  const moved = <T>(list: readonly T[]): T[] => [...list.slice(0, best), ...list.slice(best + 1), ...list.slice(best, best + 1)]
  return { dims: moved(dims), strides: strides.map(moved), reduced: moved(reduced) }
}

/** A member of the group, with what has been decided and computed for it. */
interface Planned {
  readonly member: LoopMember
  /** The length of the longest chain of reductions that it depends on. */
  readonly phase: number
  /** The last phase in which it may be needed: cheap values that are computed from it are computed again where they are read. */
  lastRead: number
  /** Whether a later phase reads its value back, which is expensive to compute. */
  readBack: boolean
  /** The member in whose memory it is kept until then, if it has none of its own. */
  host: Planned | null
  /** The value that later statements use; null before it is computed, and for values inside the reduced loops. */
  result: Expr | null
}

class LoopEmitter {
  readonly #name: string
  readonly #group: LoopGroup
  readonly #placement: Placement
  /** Whether each iteration of the kept loops runs on its own, and not in lanes of the innermost one. */
  readonly #isGrid: boolean
  readonly #sizes: KernelSizes
  readonly #operands = new Operands()
  readonly #plan: readonly Planned[]
  readonly #byBuffer = new Map<Buffer, Planned>()
  readonly #loops: readonly Loop[]
  /** Strides over the loops, of each access and each result. */
  readonly #strides: ReadonlyMap<Access | Buffer, readonly number[]>
  /** Values that are read back in the iteration in which they are computed, and nowhere else. */
  readonly #rows = new Map<Buffer, Scratch>()
  #locals = 0
  readonly #outerLoads = new Map<string, Expr>()
  /** Stores to the memory of inputs, which come last. */
  readonly #deferred: Stmt[] = []

  constructor(name: string, group: LoopGroup, placement: Placement, { isGrid, sizes }: { readonly isGrid: boolean; readonly sizes: KernelSizes }) {
    this.#name = name
    this.#group = group
    this.#placement = placement
    this.#isGrid = isGrid
    this.#sizes = sizes
    this.#plan = group.members.map((member) => this.#planned(member))
    this.#findLastReads()
    for (const planned of this.#plan) if (planned.readBack && !placement.stored.has(planned.member.node.out)) planned.host = this.#hostOf(planned)
    const walks = this.#walks()
    const reduced = group.space.map((dim) => dim.reduced)
    const operandStrides = [...walks.values()]
    const needsIndices = group.members.some(({ node }) => node.kind === 'pointwise' && node.usesIndices)
    const dims = sizesOf(group.space)
    const layout = needsIndices ? { dims, strides: operandStrides, reduced } : this.#collapsed(collapseDims(dims, operandStrides, reduced))
    this.#loops = layout.dims.map((size, i) => {
      const isReduced = layout.reduced[i] === true
      return { variable: loopVar(`${isReduced ? 'r' : 'i'}${i}`, sizes.of(size)), size, reduced: isReduced }
    })
    this.#strides = new Map([...walks.keys()].map((key, i) => [key, nth(layout.strides, i)]))
  }

  #collapsed(layout: Collapsed): Collapsed {
    return this.#isGrid ? layout : longLoopInside(layout)
  }

  emit(): LoopKernel {
    const body = this.#outerBody()
    const [name, operands] = [this.#name, this.#operands.operands()]
    const params = [...this.#operands.params(), ...this.#sizes.params()]
    if (this.#loops.length > 0 && !this.#loops.some((loop) => loop.reduced)) {
      const loops = this.#loops.map((loop) => loop.variable)
      return { kernel: pointwiseKernel({ name, params, loops, body }, true), operands }
    }
    return { kernel: { name, params, scratch: [...this.#rows.values()], body: this.#nest(body) }, operands }
  }

  grid(): GroupGrid {
    const body = this.#outerBody()
    const loops = this.#loops.filter((loop) => !loop.reduced).map((loop) => loop.variable)
    const grid = { name: this.#name, params: this.#operands.params(), scratch: [...this.#rows.values()], loops, body }
    return { grid, operands: this.#operands.operands() }
  }

  /** Plans a member whose producers are already planned. */
  #planned(member: LoopMember): Planned {
    const producers = member.node.reads.flatMap(({ buffer }) => this.#byBuffer.get(buffer) ?? [])
    const phase = Math.max(0, ...producers.map((p) => p.phase + (p.member.level === 'reduce' ? 1 : 0)))
    // An expensive inner value that a later phase reads is kept in its own phase and loaded there.
    for (const producer of producers)
      if (producer.member.level === 'inner' && producer.phase < phase && producer.member.node.expensive) producer.readBack = true
    const planned: Planned = { member, phase, lastRead: phase, readBack: false, host: null, result: null }
    this.#byBuffer.set(member.node.out, planned)
    return planned
  }

  #findLastReads(): void {
    for (const { member, phase, lastRead } of this.#plan.toReversed())
      for (const { buffer } of member.node.reads) {
        const producer = this.#byBuffer.get(buffer)
        if (producer !== undefined) producer.lastRead = Math.max(producer.lastRead, member.level === 'inner' ? lastRead : phase)
      }
  }

  /**
   * The member whose memory can hold the value until its own is stored there: it is stored in the last phase that reads the value, from which it is computed. So the
   * element is loaded before it is overwritten, and what else needs it in that iteration has it in a register.
   */
  #hostOf(kept: Planned): Planned | null {
    const isTaken = (planned: Planned): boolean => this.#plan.some((other) => other.host === planned)
    const dtype = kept.member.node.out.dtype
    const host = this.#plan.find(
      (planned) =>
        planned.member.level === 'inner' &&
        planned.phase === kept.lastRead &&
        this.#placement.stored.has(planned.member.node.out) &&
        planned.member.node.out.dtype === dtype &&
        !isTaken(planned) &&
        this.#isComputedFrom(planned, kept),
    )
    return host ?? null
  }

  /** Whether the value of a member is computed from another one in the same iteration of its phase. */
  #isComputedFrom(planned: Planned, from: Planned): boolean {
    return planned.member.node.reads.some(({ buffer }) => {
      const producer = this.#byBuffer.get(buffer)
      if (producer === undefined || producer.member.level !== 'inner') return false
      return producer === from || (!(producer.readBack && producer.phase < planned.phase) && this.#isComputedFrom(producer, from))
    })
  }

  /** How each access and each result walks the group's space. */
  #walks(): Map<Access | Buffer, readonly number[]> {
    const walks = new Map<Access | Buffer, readonly number[]>()
    for (const member of this.#group.members) {
      for (const access of member.node.reads) {
        const over = accessStrides(this.#group.space, member, access.strides)
        if (over === null) throw new InternalError(`inductor: node ${member.node.origin} does not fit its group's loops`)
        walks.set(access, over)
      }
      walks.set(member.node.out, this.#outStrides(member))
    }
    return walks
  }

  /** Strides of the member's own (contiguous) result over the group's dimensions. */
  #outStrides({ level }: LoopMember): number[] {
    const isWalked = this.#group.space.map((dim) => level === 'inner' || !dim.reduced)
    const strides = [...contiguousStrides(sizesOf(this.#group.space.filter((_, i) => isWalked[i])))]
    return isWalked.map((walked) => (walked ? (strides.shift() ?? 0) : 0))
  }

  #stridesOf(key: Access | Buffer): readonly number[] {
    return present(this.#strides, key, 'the strides of an access')
  }

  #isStored({ member, readBack }: Planned): boolean {
    return readBack || this.#placement.stored.has(member.node.out)
  }

  /** The value of a member that has been computed. */
  #resultOf({ member, result }: Planned): Expr {
    if (result === null) throw new InternalError(`inductor: the value of node ${member.node.origin} is used before it is computed`)
    return result
  }

  #store(planned: Planned, value: Expr): Stmt {
    const [memory, index] = this.#homeOf(planned, true)
    return store(memory, index, value)
  }

  /** Where the value of a member is in an iteration: in its buffer, in that of its host, or in scratch memory for what is inside the kept loops. */
  #homeOf({ member, host }: Planned, isWritten: boolean): readonly [Memory, Index] {
    const { out } = (host ?? { member }).member.node
    if (this.#placement.stored.has(out)) {
      const param = isWritten ? this.#operands.writing(out) : this.#operands.reading(out)
      return [param, this.#index(this.#loops, this.#stridesOf(out), 0)]
    }
    // Lanes run over the innermost loop: if it is a kept one, each of its iterations has values of its own.
    const inside = this.#loops.filter((loop, i) => loop.reduced || (!this.#isGrid && i === this.#loops.length - 1))
    const sizes = inside.map((loop) => loop.size)
    const row = this.#rows.get(out) ?? scratch(`row${this.#rows.size}`, out.dtype, this.#sizes.of(product(sizes)))
    this.#rows.set(out, row)
    return [row, this.#index(inside, contiguousStrides(sizes), 0)]
  }

  #index(loops: readonly Loop[], strides: readonly number[], base: number): Index {
    return indexOver(
      loops,
      strides.map((stride) => this.#sizes.of(stride)),
      this.#sizes.of(base),
    )
  }

  /** Declares a local with the value, and returns a read of it. */
  #keep(value: Expr, stmts: Stmt[]): Expr {
    const variable = local(`v${this.#locals++}`, value.dtype)
    stmts.push(declare(variable, value))
    return read(variable)
  }

  /** The loops over kept dimensions around `body`. The last of them is a simd loop, unless the innermost loop is a reduced one. */
  #nest(body: readonly Stmt[]): readonly Stmt[] {
    return nested(
      this.#loops.filter((loop) => !loop.reduced),
      this.#loops.at(-1)?.reduced !== true,
      body,
    )
  }

  #outerBody(): Stmt[] {
    const stmts: Stmt[] = []
    const last = Math.max(...this.#plan.map((planned) => planned.phase))
    for (let phase = 0; phase <= last; phase++) {
      const here = this.#plan.filter((planned) => planned.phase === phase)
      for (const planned of here) if (planned.member.level === 'outer') this.#emitOuter(planned, planned.member.node, stmts)
      const inner = here.filter(({ member }) => member.level !== 'outer')
      if (inner.some((planned) => planned.member.level === 'reduce' || this.#isStored(planned))) this.#emitInner(inner, phase, stmts)
    }
    return [...stmts, ...this.#deferred]
  }

  #emitOuter(planned: Planned, node: PointwiseNode, stmts: Stmt[]): void {
    const value = this.#compute(node, (access) => this.#outerRead(access))
    const writesInput = this.#placement.inPlace.has(node.out)
    // The value is used inside loops, or stored after all reads: it is evaluated once, here.
    const result = writesInput || this.#group.space.some((dim) => dim.reduced) ? this.#keep(value, stmts) : value
    planned.result = result
    if (!this.#isStored(planned)) return
    const target = writesInput ? this.#deferred : stmts
    target.push(this.#store(planned, result))
  }

  #outerRead(access: Access): Expr {
    const producer = this.#byBuffer.get(access.buffer)
    return producer === undefined ? this.#sharedLoad(access, this.#outerLoads) : this.#resultOf(producer)
  }

  /** One load expression per distinct element, so that it is loaded once per iteration. */
  #sharedLoad(access: Access, loads: Map<string, Expr>): Expr {
    const key = this.#keyOf(access)
    const value = loads.get(key) ?? this.#load(access)
    loads.set(key, value)
    return value
  }

  #load(access: Access): Expr {
    return load(this.#operands.reading(access.buffer), this.#index(this.#loops, this.#stridesOf(access), access.offset))
  }

  #keyOf(access: Access): string {
    return `${this.#operands.reading(access.buffer).name}:${access.offset}:${this.#stridesOf(access).join()}`
  }

  /** One pass over the reduced dimensions: the reductions and stores of this phase. */
  #emitInner(plan: readonly Planned[], phase: number, stmts: Stmt[]): void {
    const values = new Map<Buffer, Expr>()
    const hoisted = new Map<string, Expr>()
    const loads = new Map<string, Expr>()
    const body: Stmt[] = []
    const readIn = (access: Access): Expr => {
      const producer = this.#byBuffer.get(access.buffer)
      if (producer !== undefined) return producer.member.level === 'inner' ? valueOf(producer, producer.member.node) : this.#resultOf(producer)
      const strides = this.#stridesOf(access)
      if (this.#loops.some((loop, i) => loop.reduced && strides[i] !== 0)) return this.#sharedLoad(access, loads)
      // The element is the same for the whole inner loop: it is read once, before it.
      const key = this.#keyOf(access)
      const value = hoisted.get(key) ?? this.#keep(this.#load(access), stmts)
      hoisted.set(key, value)
      return value
    }
    const valueOf = (planned: Planned, node: PointwiseNode): Expr => {
      let value = values.get(node.out)
      if (value === undefined) {
        value = planned.readBack && planned.phase < phase ? load(...this.#homeOf(planned, false)) : this.#compute(node, readIn)
        values.set(node.out, value)
      }
      return value
    }
    const finish: Stmt[] = []
    for (const planned of plan) {
      const { member } = planned
      if (member.level === 'reduce') {
        const { node } = member
        const acc = local(`a${this.#locals++}`, node.dtype)
        stmts.push(declare(acc, identityOf(node.combine, node.dtype)))
        body.push(accumulate(acc, node.combine, node.map(cast(readIn(node.reads[0]), node.dtype))))
        const result = this.#keep(node.finish(read(acc)), finish)
        planned.result = result
        if (this.#isStored(planned)) finish.push(this.#store(planned, result))
      } else if (this.#isStored(planned)) body.push(this.#store(planned, valueOf(planned, member.node)))
    }
    const reducedLoops = this.#loops.filter((loop) => loop.reduced)
    stmts.push(...nested(reducedLoops, this.#loops.at(-1)?.reduced === true, body), ...finish)
  }

  #compute(node: PointwiseNode, readAccess: (access: Access) => Expr): Expr {
    const scalars = node.scalars.map((s) => this.#operands.scalar(s.input, s.dtype))
    return node.compute(node.reads.map(readAccess), scalars, node.usesIndices ? this.#indices(node) : [])
  }

  /** The node's own index in each of its dimensions. */
  #indices(node: PointwiseNode): Expr[] {
    const isInner = this.#byBuffer.get(node.out)?.member.level === 'inner'
    return indicesOf(
      node.iter,
      this.#loops.filter((loop) => isInner || !loop.reduced),
      (size) => this.#sizes.of(size),
    )
  }
}

/** Loops around `body`, outermost first; with `inLanes` the innermost is a simd loop. */
function nested(loops: readonly Loop[], inLanes: boolean, body: readonly Stmt[]): readonly Stmt[] {
  const innermost = loops.at(-1)
  return loops.reduceRight<readonly Stmt[]>((inner, loop) => [forLoop(loop.variable, loop === innermost && inLanes ? 'simd' : 'serial', inner)], body)
}
