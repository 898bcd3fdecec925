// Collects the parameters of a kernel while it is written, and what each of them stands for in the program.
import { bufferParam, call, constant, iota, scalar, scalarParam, sizeOf } from '../../kernels/index.ts'
import type { BufferParam, DType, Expr, Index, LoopVar, Param, ScalarParam, Size } from '../../kernels/index.ts'
import { contiguousStrides } from '../../tensor/index.ts'
import type { Buffer, ScalarInput } from '../ir.ts'
import { split } from '../spaces.ts'

/** What a parameter stands for. */
export type Operand =
  | { readonly kind: 'buffer'; readonly buffer: Buffer; readonly offset: number; readonly written: boolean }
  | { readonly kind: 'scalar'; readonly input: ScalarInput }

interface BufferOperand {
  readonly param: BufferParam
  readonly buffer: Buffer
  readonly offset: number
  written: boolean
}

/** Collects kernel parameters: one per buffer (and start element) and per scalar, in the order of their first use. */
export class Operands {
  readonly #buffers: BufferOperand[] = []
  readonly #scalars = new Map<string, { readonly param: ScalarParam; readonly input: ScalarInput }>()

  /** The parameter through which a buffer is read, starting `offset` elements in. */
  reading(buffer: Buffer, offset = 0): BufferParam {
    return this.#entry(buffer, offset).param
  }

  /** The parameter through which a buffer is written. */
  writing(buffer: Buffer): BufferParam {
    const entry = this.#entry(buffer, 0)
    entry.written = true
    return entry.param
  }

  /** The value of a scalar input in a dtype. */
  scalar(input: ScalarInput, dtype: DType): Expr {
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
      // Names are positional, so that the same computation on other buffers is found in the kernel cache.
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
      ...this.#buffers.map(({ buffer, offset, written }): Operand => ({ kind: 'buffer', buffer, offset, written })),
      ...[...this.#scalars.values()].map(({ input }): Operand => ({ kind: 'scalar', input })),
    ]
  }
}

/** A loop of known extent. */
export interface Loop {
  readonly variable: LoopVar
  readonly size: number
  readonly reduced: boolean
}

/** The index of an access, from its strides over the loops. */
export function indexOver(loops: readonly Loop[], strides: readonly Size[], base: Size): Index {
  const terms = loops.map(({ variable }, i) => ({ loop: variable, stride: strides[i] ?? 0 }))
  return { base, terms: terms.filter((term) => term.stride !== 0), dynamic: [] }
}

/** The index in each dimension of `iter`, as int32 values. The loops must refine `iter`. `sizeIn`: what a size is in the kernel. */
export function indicesOf(iter: readonly number[], loops: readonly Loop[], sizeIn: (size: number) => Size = (size) => size): Expr[] {
  const rest = [...loops]
  const parts = split(
    iter,
    loops.map((loop) => loop.size),
  )
  return parts.map((sizes) => {
    const steps = contiguousStrides(sizes)
    const terms = rest.splice(0, sizes.length).map(({ variable }, i) => call('mul', iota(variable), sizeOf(sizeIn(steps[i] ?? 1))))
    return terms.reduceRight<Expr | null>((sum, term) => (sum === null ? term : call('add', sum, term)), null) ?? constant('int32', 0)
  })
}
