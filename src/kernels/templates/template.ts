// What the kernel templates share: the function that a template writes, how its epilogue is written, and the cache of compiled ones.
import { touches64Bits } from '../analysis.ts'
import { kernelBytes, kernelsByProblem } from '../boundedCache.ts'
import type { CompiledKernel } from '../boundedCache.ts'
import { compiledKernel } from '../compile.ts'
import { currentEngine } from '../engine.ts'
import { InternalError } from '../../errors/index.ts'
import { local, read } from '../loopIr.ts'
import type { BufferParam, Local, LoopVar, Param, Size, Stmt } from '../loopIr.ts'
import { printKernel } from '../print.ts'
import { sizeText } from '../sizes.ts'
import { ModuleBuilder } from '../wasm/assembler.ts'
import type { FunctionBuilder } from '../wasm/assembler.ts'
import { StatementEmitter } from '../wasm/emit.ts'
import { paramType } from '../wasm/expressions.ts'
import { functionsFor } from '../wasm/operations.ts'
import type { Val } from '../wasm/vectorCode.ts'
import type { GemmSpec, MatrixOperand } from '../gemmSpec.ts'
import { LoopWriter } from './loopWriter.ts'
import type { Count } from './loopWriter.ts'

/** A kernel made from a template, and the bytes of scratch memory that its last argument must point to. */
export interface TemplateKernel {
  readonly compiled: CompiledKernel
  readonly scratchBytes: number
  /** What runs instead where there is no room for the scratch memory: a kernel with the same operands that needs less. */
  readonly spare?: SpareKernel
  /** What runs instead where an operand was packed before. */
  readonly packed?: PackedKernel | null
}

/** A kernel that is compiled when it is first needed, and the scratch memory that it will take. */
export interface SpareKernel {
  readonly scratchBytes: number
  readonly compile: () => CompiledKernel
}

/** The same kernel where an operand was packed before. */
export interface PackedKernel {
  /** The operand. Its parameter of `run` points to the packed elements. */
  readonly operand: BufferParam
  /** What these take. */
  readonly bytes: number
  /** Compiles it, and the kernel that packs: it takes the address of the operand, and that of the packed elements. */
  readonly compile: () => { readonly pack: CompiledKernel; readonly run: CompiledKernel['run'] }
}

/** A loop that a template runs, with the local of its counter. */
export interface Counter {
  readonly loop: LoopVar
  readonly counter: number
}

const epilogueOf = (spec: GemmSpec): { acc: Local; body: readonly Stmt[] } => {
  const acc = local('acc', 'float32')
  return { acc, body: spec.epilogue(read(acc)) }
}

/** Whether the epilogue can run on vectors: float64 and int64 have no vectors of four. */
export const hasWideEpilogue = (spec: GemmSpec): boolean => !touches64Bits(epilogueOf(spec).body)

/** The function of a template: `run` with the spec's parameters, the last of which is the scratch memory. */
export class TemplateWriter {
  readonly spec: GemmSpec
  readonly f: FunctionBuilder
  readonly w: LoopWriter
  readonly #module = new ModuleBuilder()
  readonly #emitter: StatementEmitter
  readonly #acc: Local
  readonly #body: readonly Stmt[]

  constructor(spec: GemmSpec) {
    this.spec = spec
    const { acc, body } = epilogueOf(spec)
    if (body.length === 0) throw new InternalError(`template '${spec.name}': the epilogue stores nothing`)
    this.#acc = acc
    this.#body = body
    this.#module.importMemory()
    const functions = functionsFor(this.#module, body)
    this.f = this.#module.function(spec.params.map(paramType), [], 'run')
    this.w = new LoopWriter(this.f)
    this.#emitter = new StatementEmitter(functions, this.f, spec.params, body)
  }

  finish(): Uint8Array<ArrayBuffer> {
    return this.#module.finish()
  }

  /** The local of a parameter. */
  param(param: Param): number {
    const at = this.spec.params.findIndex((p) => p === param || p.name === param.name)
    if (at < 0) throw new InternalError(`template '${this.spec.name}': ${param.name} is not among its parameters`)
    return at
  }

  size(size: Size): Count {
    if (typeof size === 'number') return size
    if (size.kind === 'derived')
      throw new InternalError(`template '${this.spec.name}': the size ${sizeText(size)} is derived; templates take parameters`)
    return { local: this.param(size) }
  }

  /** A new local with the address of the scratch memory, aligned to cache lines. */
  scratch(): number {
    const { f } = this
    return this.w.let(() => {
      f.get(this.spec.params.length - 1)
      f.i32Const(63)
      f.op('i32.add')
      f.i32Const(-64)
      f.op('i32.and')
    })
  }

  /**
   * The epilogue for computed elements: `vectors` are v128 locals with neighbouring columns from `col` on (wide), or one local with a single element in
   * all lanes. `loops` are the batch loops that are not summed over.
   */
  epilogue(loops: readonly Counter[], row: number, col: number, vectors: Val, wide: boolean): void {
    const { rows, cols } = this.spec
    this.#emitter.epilogue(this.#body, {
      loops: [...loops, { loop: rows, counter: row }, { loop: cols, counter: col }],
      lanes: cols,
      wide,
      values: [{ local: this.#acc, vectors }],
    })
  }
}

/** The kernel of a template for a problem. The same problem is written and compiled only once. */
export function compileTemplate(template: string, spec: GemmSpec, write: () => Uint8Array<ArrayBuffer>): CompiledKernel {
  const key = `${currentEngine()} ${template} ${specText(spec)}`
  let known = kernelsByProblem.get(key)
  if (known === undefined) {
    known = compiledKernel({ name: spec.name, params: spec.params, body: null }, write())
    kernelsByProblem.set(key, known, kernelBytes(known))
  }
  return known
}

/** The problem as text, for the cache: sizes, strides, names of parameters, and the epilogue. */
function specText(spec: GemmSpec): string {
  const loop = ({ name, extent }: LoopVar): string => `${name}<${sizeText(extent)}`
  const operand = ({ buffer, rowStride, colStride, batchStrides, gather }: MatrixOperand): string => {
    const image = Object.entries(gather ?? {}).map(
      ([name, value]: [string, Size | boolean]) => `${name}=${typeof value === 'boolean' ? value : sizeText(value)}`,
    )
    return [buffer.name, ...[rowStride, colStride, ...batchStrides].map((size) => sizeText(size)), ...image].join(' ')
  }
  const { batch, rows, cols, depth, a, b, reduceBatch } = spec
  const epilogue = printKernel({ name: 'epilogue', params: spec.params, body: epilogueOf(spec).body })
  return [...batch.map(loop), loop(rows), loop(cols), sizeText(depth), operand(a), operand(b), reduceBatch, epilogue].join('\n')
}
