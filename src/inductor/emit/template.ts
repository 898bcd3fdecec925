// Emits a template group: the template's kernel, with the pointwise nodes of the group as its epilogue.
import { InternalError } from '../../errors/index.ts'
import { bufferParam, constant, declare, load, local, loopVar, read, serialLoops, store } from '../../kernels/index.ts'
import type { CompiledKernel, Expr, Kernel, PackedKernel, SpareKernel, Stmt } from '../../kernels/index.ts'
import { contiguousStrides } from '../../tensor/index.ts'
import type { TemplateGroup } from '../groups.ts'
import type { Access, Buffer, TemplateIo } from '../ir.ts'
import type { Placement } from '../placement.ts'
import { squeezed, stridesOver } from '../spaces.ts'
import { Operands, indexOver, indicesOf } from './operands.ts'
import type { Loop, Operand } from './operands.ts'

/** An operand that may be packed before the kernel runs. */
export interface PackedOperand {
  readonly kernel: PackedKernel
  /** Which of the operands. */
  readonly position: number
}

export interface EmittedTemplate {
  readonly compiled: CompiledKernel
  /** What each parameter of the kernel stands for, in order; the scratch pointer comes last and is not listed. */
  readonly operands: readonly Operand[]
  readonly scratchBytes: number
  readonly spare: SpareKernel | null
  readonly packed: PackedOperand | null
  /** The epilogue inside its loops, as a kernel, so that it can be verified. */
  readonly epilogue: () => Kernel
}

/** A template group before its kernel is made. */
export interface PreparedTemplate extends Omit<TemplateIo, 'name' | 'scratch'> {
  /** What each of `params` stands for. */
  readonly operands: readonly Operand[]
}

/** The loops, parameters and epilogue of a template group. */
export function prepareTemplate(group: TemplateGroup, placement: Placement): PreparedTemplate {
  const { template } = group
  const operands = new Operands()
  const buffers = template.reads.map((access) => operands.reading(access.buffer, access.offset))
  const loops = loopsOf(template.iter)
  const writer = new EpilogueWriter(group, placement, operands, loops)
  const epilogue = (value: Expr): readonly Stmt[] => writer.write(value)
  // The first run collects all operands, so that the parameters can be listed.
  epilogue(constant(template.out.dtype, 0))
  return { loops: loops.map((loop) => loop.variable), buffers, epilogue, params: operands.params(), operands: operands.operands() }
}

/** Emits a template group. */
export function emitTemplate(name: string, group: TemplateGroup, placement: Placement): EmittedTemplate {
  const { template } = group
  const { operands, ...prepared } = prepareTemplate(group, placement)
  const { loops, params, epilogue } = prepared
  const scratch = bufferParam('scratch', 'float32', 'readwrite')
  const { compiled, scratchBytes, spare = null, packed = null } = template.emit({ name, ...prepared, scratch })
  const inLoops = (): Kernel => {
    const result = local('result', template.out.dtype)
    const body = [declare(result, constant(result.dtype, 0)), ...epilogue(read(result))]
    return { name, params, body: serialLoops(loops, body) }
  }
  const byPosition = packed === null ? null : { kernel: packed, position: params.indexOf(packed.operand) }
  return { compiled, operands, scratchBytes, spare, packed: byPosition, epilogue: inLoops }
}

/** The last two loops are called m and n, those before b0, b1, … */
const loopsOf = (iter: readonly number[]): Loop[] =>
  iter.map((size, i) => ({ variable: loopVar(['n', 'm'][iter.length - 1 - i] ?? `b${i}`, size), size, reduced: false }))

class EpilogueWriter {
  readonly #group: TemplateGroup
  readonly #placement: Placement
  readonly #operands: Operands
  /** The loops of the epilogue's space. */
  readonly #loops: readonly Loop[]
  readonly #dims: readonly number[]

  constructor(group: TemplateGroup, placement: Placement, operands: Operands, loops: readonly Loop[]) {
    this.#group = group
    this.#placement = placement
    this.#operands = operands
    this.#loops = loops.filter((loop) => loop.size !== 1)
    this.#dims = squeezed(group.template.iter)
  }

  write(result: Expr): readonly Stmt[] {
    const { template, epilogue } = this.#group
    const stmts: Stmt[] = []
    /** Stores to the memory of inputs, which come after all reads of the old values. */
    const deferred: Stmt[] = []
    const values = new Map<Buffer, Expr>()
    const keep = (out: Buffer, value: Expr): void => {
      values.set(out, value)
      if (!this.#placement.stored.has(out)) return
      const place = this.#index(template.iter, { buffer: out, strides: contiguousStrides(template.iter), offset: 0 })
      if (!this.#placement.inPlace.has(out)) {
        stmts.push(store(this.#operands.writing(out), place, value))
        return
      }
      const variable = local(`v${deferred.length}`, value.dtype)
      stmts.push(declare(variable, value))
      values.set(out, read(variable))
      deferred.push(store(this.#operands.writing(out), place, read(variable)))
    }
    keep(template.out, result)
    for (const node of epilogue) {
      const readAccess = (access: Access): Expr =>
        values.get(access.buffer) ?? load(this.#operands.reading(access.buffer), this.#index(node.iter, access))
      const scalars = node.scalars.map((s) => this.#operands.scalar(s.input, s.dtype))
      const indices = node.usesIndices ? indicesOf(node.iter, this.#loops) : []
      keep(node.out, node.compute(node.reads.map(readAccess), scalars, indices))
    }
    return [...stmts, ...deferred]
  }

  #index(iter: readonly number[], { strides, offset }: Access): ReturnType<typeof indexOver> {
    const over = stridesOver(iter, strides, this.#dims)
    if (over === null) throw new InternalError(`inductor: a node does not fit the loops of template ${this.#group.template.template}`)
    return indexOver(this.#loops, over, offset)
  }
}
