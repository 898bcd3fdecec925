// From a group of fused nodes to one kernel in the loop IR.
//
// The loops: kept dimensions outside, reduced dimensions inside. What must wait for a reduction's result runs in a later phase, in a second
// loop over the reduced dimensions (softmax: phase 0 finds the maximum, phase 1 sums the exponentials, phase 2 divides). Values pass between
// nodes in registers; a cheap value that a later phase needs again is recomputed, an expensive one is stored and read back.
import { InternalError } from '../errors/index.ts'
import {
  accumulate,
  bufferParam,
  cast,
  declare,
  forLoop,
  identityOf,
  iota,
  load,
  local,
  loopVar,
  read,
  scalar,
  scalarParam,
  store,
} from '../kernels/index.ts'
import type { BufferParam, Expr, Index, Kernel, LoopVar, Param, ScalarParam, Stmt } from '../kernels/index.ts'
import { accessStrides } from './scheduler.ts'
import type { Group, Level } from './scheduler.ts'
import type { Access, Buffer, IrNode, PointwiseNode, ReductionNode, ScalarInput } from './ir.ts'
import { splitAlong } from './spaces.ts'

/** A kernel and what each of its parameters stands for, in order. */
export interface GroupKernel {
  readonly kernel: Kernel
  readonly operands: readonly Operand[]
}

export type Operand =
  | { readonly kind: 'buffer'; readonly buffer: Buffer; readonly offset: number; readonly written: boolean }
  | { readonly kind: 'scalar'; readonly input: ScalarInput }

type LoopNode = PointwiseNode | ReductionNode

interface BufferOperand {
  readonly param: BufferParam
  readonly buffer: Buffer
  readonly offset: number
  written: boolean
}

/** Collects kernel parameters: one per buffer (and start element) and scalar, whoever asks first. */
export class Operands {
  readonly #buffers: BufferOperand[] = []
  readonly #scalars = new Map<string, { param: ScalarParam; input: ScalarInput }>()

  /** The parameter through which a buffer is read, starting `offset` elements in. */
  reading(buffer: Buffer, offset = 0): BufferParam {
    return this.#entry(buffer, offset).param
  }

  writing(buffer: Buffer): BufferParam {
    const entry = this.#entry(buffer, 0)
    entry.written = true
    return entry.param
  }

  scalar(input: ScalarInput, dtype: ScalarParam['dtype']): Expr {
    const key = `${input.placeholder}:${dtype}`
    let entry = this.#scalars.get(key)
    if (entry === undefined) {
      entry = { param: scalarParam(`s${this.#scalars.size}`, dtype), input }
      this.#scalars.set(key, entry)
    }
    return scalar(entry.param)
  }

  #entry(buffer: Buffer, offset: number): BufferOperand {
    let entry = this.#buffers.find((e) => e.buffer === buffer && e.offset === offset)
    if (entry === undefined) {
      // Names are positional, so that the same computation on other buffers is the same kernel in the cache.
      entry = { param: bufferParam(`b${this.#buffers.length}`, buffer.dtype, 'readwrite'), buffer, offset, written: false }
      this.#buffers.push(entry)
    }
    return entry
  }

  params(): Param[] {
    return [...this.#buffers.map((e) => e.param), ...[...this.#scalars.values()].map((e) => e.param)]
  }

  operands(): Operand[] {
    return [
      ...this.#buffers.map((e): Operand => ({ kind: 'buffer', buffer: e.buffer, offset: e.offset, written: e.written })),
      ...[...this.#scalars.values()].map((e): Operand => ({ kind: 'scalar', input: e.input })),
    ]
  }
}

interface Loops {
  readonly vars: readonly LoopVar[]
  readonly reduced: readonly boolean[]
}

/** Merges neighbouring dimensions that every access walks as one, so that inner loops are long. Returns the loops and the strides by key. */
function collapse<K>(
  dims: readonly number[],
  reduced: readonly boolean[],
  strides: ReadonlyMap<K, readonly number[]>,
): { dims: number[]; reduced: boolean[]; strides: Map<K, number[]> } {
  const outDims: number[] = []
  const outReduced: boolean[] = []
  const out = new Map([...strides.keys()].map((key): [K, number[]] => [key, []]))
  for (let i = dims.length - 1; i >= 0; i--) {
    const size = dims[i] as number
    const flag = reduced[i] as boolean
    const inner = outDims[0]
    const joins =
      inner !== undefined && outReduced[0] === flag && [...strides].every(([key, s]) => s[i] === ((out.get(key) as number[])[0] as number) * inner)
    if (joins) {
      outDims[0] = inner * size
      continue
    }
    outDims.unshift(size)
    outReduced.unshift(flag)
    for (const [key, s] of strides) (out.get(key) as number[]).unshift(s[i] as number)
  }
  return { dims: outDims, reduced: outReduced, strides: out }
}

/** Lanes of a vector; loops shorter than this do not fill one. */
const LANES = 4

/** Elements further apart than this share no cache line: gathering lanes from them costs more than it brings. */
const NEAR = 16

/** Where the innermost dimension is too short for vectors, a longer near one goes inside; lanes are then loaded one by one, but computed together. */
function moveLongLoopInside<K>(c: { dims: number[]; reduced: boolean[]; strides: Map<K, number[]> }): void {
  const last = c.dims.length - 1
  if (last < 1 || (c.dims[last] as number) >= LANES) return
  const fits = (i: number): boolean =>
    c.reduced[i] === c.reduced[last] && (c.dims[i] as number) >= LANES && [...c.strides.values()].every((s) => Math.abs(s[i] as number) <= NEAR)
  const best = c.dims.findLastIndex((_, i) => i < last && fits(i))
  if (best < 0) return
  const move = <T>(list: T[]): void => void list.push(...list.splice(best, 1))
  move(c.dims)
  move(c.reduced)
  for (const strides of c.strides.values()) move(strides)
}

/** Whether any node asks for its own index (arange, random numbers): its dimensions then must stay apart. */
const usesIndices = (node: IrNode): boolean => node.kind === 'pointwise' && node.compute.length > 2

/**
 * Emits a `loops` group. `stored` are the buffers that somebody outside the group reads; `inPlace` those whose memory is an input's:
 * they are written last in each iteration, when every old value has been read.
 */
export function emitLoops(name: string, group: Group, stored: ReadonlySet<Buffer>, inPlace: ReadonlyMap<Buffer, number>): GroupKernel {
  return new LoopEmitter(name, group, stored, inPlace).emit()
}

class LoopEmitter {
  readonly #name: string
  readonly #group: Group
  readonly #nodes: readonly LoopNode[]
  readonly #stored: ReadonlySet<Buffer>
  readonly #inPlace: ReadonlyMap<Buffer, number>
  readonly #operands = new Operands()
  readonly #producer = new Map<Buffer, LoopNode>()
  readonly #phase = new Map<LoopNode, number>()
  readonly #materialized = new Set<LoopNode>()
  readonly #results = new Map<LoopNode, Expr>()
  #loops: Loops = { vars: [], reduced: [] }
  #strides = new Map<Access | LoopNode, number[]>()
  #locals = 0
  readonly #outerLoads = new Map<string, Expr>()
  readonly #deferred: Stmt[] = []

  constructor(name: string, group: Group, stored: ReadonlySet<Buffer>, inPlace: ReadonlyMap<Buffer, number>) {
    this.#name = name
    this.#group = group
    this.#nodes = group.nodes as readonly LoopNode[]
    this.#stored = stored
    this.#inPlace = inPlace
    for (const node of this.#nodes) this.#producer.set(node.out, node)
  }

  emit(): GroupKernel {
    this.#assignPhases()
    this.#layOutLoops()
    const body = this.#nest(this.#outerBody())
    return { kernel: { name: this.#name, params: this.#operands.params(), body }, operands: this.#operands.operands() }
  }

  #level(node: LoopNode): Level {
    return this.#group.levels.get(node) as Level
  }

  #assignPhases(): void {
    for (const node of this.#nodes) {
      let phase = 0
      for (const { buffer } of node.reads) {
        const dep = this.#producer.get(buffer)
        if (dep === undefined) continue
        phase = Math.max(phase, (this.#phase.get(dep) as number) + (this.#level(dep) === 'reduce' ? 1 : 0))
      }
      this.#phase.set(node, phase)
    }
    // An expensive inner value that a later phase reads is stored in its own phase and loaded there.
    for (const node of this.#nodes) {
      for (const { buffer } of node.reads) {
        const dep = this.#producer.get(buffer)
        if (dep === undefined || this.#level(dep) !== 'inner' || (this.#phase.get(dep) as number) >= (this.#phase.get(node) as number)) continue
        if ((dep as PointwiseNode).expensive) this.#materialized.add(dep)
      }
    }
  }

  #layOutLoops(): void {
    const { dims, reduced } = this.#group
    const strides = new Map<Access | LoopNode, readonly number[]>()
    for (const node of this.#nodes) {
      const level = this.#level(node)
      for (const access of node.reads) {
        const over = accessStrides(this.#group, node, level, access.strides)
        if (over === null) throw new InternalError(`inductor: node ${node.origin} does not fit its group's loops`)
        strides.set(access, over)
      }
      strides.set(node, this.#outStrides(node))
    }
    const collapsible = !this.#nodes.some(usesIndices)
    const c = collapsible
      ? collapse(dims, reduced, strides)
      : { dims: [...dims], reduced: [...reduced], strides: new Map([...strides].map(([k, s]) => [k, [...s]])) }
    if (collapsible) moveLongLoopInside(c)
    this.#loops = { vars: c.dims.map((size, i) => loopVar(`${(c.reduced[i] as boolean) ? 'r' : 'i'}${i}`, size)), reduced: c.reduced }
    this.#strides = c.strides
  }

  /** Strides of the node's own (contiguous) result over the group's dimensions. */
  #outStrides(node: LoopNode): number[] {
    const inner = this.#level(node) === 'inner'
    const { dims, reduced } = this.#group
    const strides = new Array<number>(dims.length).fill(0)
    let step = 1
    for (let i = dims.length - 1; i >= 0; i--) {
      if (!inner && (reduced[i] as boolean)) continue
      strides[i] = step
      step *= dims[i] as number
    }
    return strides
  }

  #index(key: Access | LoopNode, offset: number): Index {
    const strides = this.#strides.get(key) as number[]
    const terms = this.#loops.vars.map((loop, i) => ({ loop, stride: strides[i] as number })).filter((t) => t.stride !== 0)
    return { base: offset, terms, dynamic: [] }
  }

  #isStored(node: LoopNode): boolean {
    return this.#stored.has(node.out) || this.#materialized.has(node)
  }

  /** The loops over kept dimensions around `body`; the last of them in lanes unless a reduced loop inside takes the lanes. */
  #nest(body: readonly Stmt[]): readonly Stmt[] {
    const outer = this.#loops.vars.filter((_, i) => !(this.#loops.reduced[i] as boolean))
    const lanesInside = this.#loops.vars.length > 0 && (this.#loops.reduced.at(-1) as boolean)
    let stmts = body
    for (let i = outer.length - 1; i >= 0; i--)
      stmts = [forLoop(outer[i] as LoopVar, i === outer.length - 1 && !lanesInside ? 'simd' : 'serial', stmts)]
    return stmts
  }

  #outerBody(): Stmt[] {
    const stmts: Stmt[] = []
    const last = Math.max(...this.#nodes.map((n) => this.#phase.get(n) as number))
    for (let phase = 0; phase <= last; phase++) {
      const here = this.#nodes.filter((n) => this.#phase.get(n) === phase)
      for (const node of here) if (this.#level(node) === 'outer') this.#emitOuter(node as PointwiseNode, stmts)
      const inner = here.filter((n) => this.#level(n) !== 'outer')
      if (inner.some((n) => n.kind === 'reduction' || this.#isStored(n))) this.#emitInner(inner, phase, stmts)
    }
    stmts.push(...this.#deferred)
    return stmts
  }

  #emitOuter(node: PointwiseNode, stmts: Stmt[]): void {
    const value = this.#compute(node, (access) => this.#outerRead(access))
    const writesInput = this.#inPlace.has(node.out)
    if (writesInput || this.#group.reduced.includes(true)) {
      // Used inside loops, or stored after everything was read: evaluate here, once.
      const variable = local(`v${this.#locals++}`, value.dtype)
      stmts.push(declare(variable, value))
      this.#results.set(node, read(variable))
    } else this.#results.set(node, value)
    if (!this.#isStored(node)) return
    const stmt = store(this.#operands.writing(node.out), this.#index(node, 0), this.#results.get(node) as Expr)
    if (writesInput) this.#deferred.push(stmt)
    else stmts.push(stmt)
  }

  #outerRead(access: Access): Expr {
    const dep = this.#producer.get(access.buffer)
    if (dep !== undefined) return this.#results.get(dep) as Expr
    return this.#sharedLoad(access, this.#outerLoads)
  }

  /** One load expression per distinct element, so that it is read once an iteration. */
  #sharedLoad(access: Access, loads: Map<string, Expr>): Expr {
    const param = this.#operands.reading(access.buffer)
    const key = `${param.name}:${access.offset}:${(this.#strides.get(access) as number[]).join()}`
    let value = loads.get(key)
    if (value === undefined) {
      value = load(param, this.#index(access, access.offset))
      loads.set(key, value)
    }
    return value
  }

  /** One pass over the reduced dimensions: the reductions and stores of this phase. */
  #emitInner(nodes: readonly LoopNode[], phase: number, stmts: Stmt[]): void {
    const values = new Map<LoopNode, Expr>()
    const hoisted = new Map<string, Expr>()
    const loads = new Map<string, Expr>()
    const body: Stmt[] = []
    const readIn = (access: Access): Expr => {
      const dep = this.#producer.get(access.buffer)
      if (dep === undefined) {
        const index = this.#index(access, access.offset)
        const varies = index.terms.some((t) => this.#loops.reduced[this.#loops.vars.indexOf(t.loop)] as boolean)
        if (varies) return this.#sharedLoad(access, loads)
        // The same for the whole inner loop: read once.
        const key = `${access.buffer.name}:${access.offset}:${(this.#strides.get(access) as number[]).join()}`
        let value = hoisted.get(key)
        if (value === undefined) {
          const variable = local(`v${this.#locals++}`, access.buffer.dtype)
          stmts.push(declare(variable, load(this.#operands.reading(access.buffer), index)))
          value = read(variable)
          hoisted.set(key, value)
        }
        return value
      }
      return this.#level(dep) === 'inner' ? valueOf(dep as PointwiseNode) : (this.#results.get(dep) as Expr)
    }
    const valueOf = (node: PointwiseNode): Expr => {
      let value = values.get(node)
      if (value === undefined) {
        const reload = this.#materialized.has(node) && (this.#phase.get(node) as number) < phase
        value = reload ? load(this.#operands.reading(node.out), this.#index(node, 0)) : this.#compute(node, readIn)
        values.set(node, value)
      }
      return value
    }
    const finish: Stmt[] = []
    for (const node of nodes) {
      if (node.kind === 'reduction') {
        const acc = local(`a${this.#locals++}`, node.dtype)
        stmts.push(declare(acc, identityOf(node.combine, node.dtype)))
        body.push(accumulate(acc, node.combine, node.map(cast(readIn(node.reads[0]), node.dtype))))
        const result = local(`v${this.#locals++}`, node.out.dtype)
        finish.push(declare(result, node.finish(read(acc))))
        this.#results.set(node, read(result))
        if (this.#isStored(node)) finish.push(store(this.#operands.writing(node.out), this.#index(node, 0), read(result)))
      } else if (this.#isStored(node)) body.push(store(this.#operands.writing(node.out), this.#index(node, 0), valueOf(node)))
    }
    const inner = this.#loops.vars.filter((_, i) => this.#loops.reduced[i] as boolean)
    const lanes = this.#loops.reduced.at(-1) as boolean
    let loop: readonly Stmt[] = body
    for (let i = inner.length - 1; i >= 0; i--) loop = [forLoop(inner[i] as LoopVar, i === inner.length - 1 && lanes ? 'simd' : 'serial', loop)]
    stmts.push(...loop, ...finish)
  }

  #compute(node: PointwiseNode, readAccess: (access: Access) => Expr): Expr {
    const scalars = node.scalars.map((s) => this.#operands.scalar(s.input, s.dtype))
    return node.compute(node.reads.map(readAccess), scalars, usesIndices(node) ? this.#indices(node) : [])
  }

  /** The node's own index in each of its dimensions, as i32 expressions. */
  #indices(node: PointwiseNode): Expr[] {
    const dims = this.#loops.vars.map((v) => v.extent as number)
    return indicesOf(node.iter, dims, this.#loops.vars)
  }
}

/** The index in each dimension of `iter`, from loops over a refinement of it. */
export function indicesOf(iter: readonly number[], dims: readonly number[], vars: readonly LoopVar[]): Expr[] {
  const owner = splitAlong(iter, dims)
  return iter.map((_, d) => {
    let value: Expr = { kind: 'const', dtype: 'int32', value: 0 }
    let step = 1
    for (let f = dims.length - 1; f >= 0; f--) {
      if (owner[f] !== d) continue
      const term: Expr =
        step === 1
          ? iota(vars[f] as LoopVar)
          : { kind: 'call', dtype: 'int32', op: 'mul', args: [iota(vars[f] as LoopVar), { kind: 'const', dtype: 'int32', value: step }] }
      value = value.kind === 'const' ? term : { kind: 'call', dtype: 'int32', op: 'add', args: [value, term] }
      step *= dims[f] as number
    }
    return value
  })
}
