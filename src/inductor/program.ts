// The compiled program: a JavaScript function, generated and readable, that calls the kernels in order on addresses in the heap.
// Temporaries live in one arena; each call allocates only what it returns.
import { runKernel } from '../dispatch/index.ts'
import type { Arg, OpDef } from '../dispatch/index.ts'
import { InternalError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import type { CompiledKernel, DType } from '../kernels/index.ts'
import { Tensor } from '../tensor/index.ts'
import { arena, addressOf, Staging } from './runtime.ts'
import { coversBuffer } from './lowering.ts'
import type { Operand } from './codegen.ts'
import type { Buffer, BufferView, ExternArg, ExternNode, IrGraph, IrOutput } from './ir.ts'
import type { MemoryPlan } from './memoryPlan.ts'
import type { InPlace } from './writeBacks.ts'

/** One step of the program. */
export type Step =
  | {
      readonly kind: 'kernel'
      readonly name: string
      readonly compiled: CompiledKernel
      readonly operands: readonly Operand[]
      /** Bytes of scratch after the operands; 0 for none. */ readonly scratchBytes: number
    }
  | { readonly kind: 'extern'; readonly node: ExternNode }

export interface Program {
  /** Inputs in placeholder order (numbers for scalar placeholders); returns the graph's outputs. */
  readonly run: (inputs: readonly unknown[]) => unknown[]
  /** Source of `run`, for people. */
  readonly source: string
}

/** Which placeholder's memory an output is written back to, by output position: the mutations of the captured function. */
export type WriteBacks = ReadonlyMap<number, number>

/** Builds the callable. `plan` has the temporaries; every other buffer is an input, an output of the call or made by an extern step. */
export function buildProgram(name: string, graph: IrGraph, steps: readonly Step[], plan: MemoryPlan, inPlace: InPlace): Program {
  return new ProgramWriter(name, graph, steps, plan, inPlace).build()
}

class ProgramWriter {
  readonly #name: string
  readonly #graph: IrGraph
  readonly #steps: readonly Step[]
  readonly #plan: MemoryPlan
  readonly #inPlace: InPlace
  readonly #lines: string[] = []
  readonly #constants: unknown[] = []
  readonly #address = new Map<Buffer, string>()
  readonly #tensors = new Map<Buffer, string>()

  constructor(name: string, graph: IrGraph, steps: readonly Step[], plan: MemoryPlan, inPlace: InPlace) {
    this.#name = name
    this.#graph = graph
    this.#steps = steps
    this.#plan = plan
    this.#inPlace = inPlace
  }

  build(): Program {
    const lines = this.#lines
    const scratch = Math.max(0, ...this.#steps.map((s) => (s.kind === 'kernel' ? s.scratchBytes : 0)))
    const scratchAt = Math.ceil(this.#plan.bytes / 64) * 64
    if (scratchAt + scratch > 0) lines.push(`const base = arena(${scratchAt + scratch})`)
    lines.push('const staging = new Staging()')
    this.#graph.inputs.forEach((buffer, i) => {
      if (buffer === null) return
      this.#tensors.set(buffer, `inputs[${i}]`)
      this.#address.set(buffer, `i${i}`)
      lines.push(`const i${i} = addressOf(inputs[${i}], staging)`)
    })
    for (const [buffer, offset] of this.#plan.offsets) this.#address.set(buffer, `base + ${offset}`)
    for (const [buffer, input] of this.#inPlace.buffers) this.#address.set(buffer, `i${input}`)
    for (const step of this.#steps) {
      if (step.kind === 'kernel') this.#kernel(step, scratchAt)
      else this.#extern(step.node)
    }
    lines.push('staging.finish()')
    const outputs = this.#graph.outputs.map((o, i) => this.#output(o, i))
    lines.push(`return [${outputs.join(', ')}]`)
    const source = `function ${this.#name}(inputs) {\n${lines.map((l) => `  ${l}`).join('\n')}\n}`
    const names = this.#constants.map((_, i) => `c${i}`)
    // eslint-disable-next-line no-implied-eval -- generated code, as in fx
    const make = new Function(
      'arena',
      'addressOf',
      'Staging',
      'empty',
      'view',
      'extern',
      ...names,
      `return ${source}\n//# sourceURL=tensorfx-generated/${this.#name}.js`,
    )
    return { run: make(arena, addressOf, Staging, Tensor.empty, viewOf, extern, ...this.#constants) as Program['run'], source }
  }

  #output(output: IrOutput, position: number): string {
    if (output.kind === 'scalarInput') return `inputs[${output.input.placeholder}]`
    if (output.kind === 'value') return this.#constant(output.value)
    // What was written in place is its input.
    return this.#inPlace.outputs.has(position) ? `inputs[${this.#inPlace.buffers.get(output.view.buffer)}]` : this.#view(output.view)
  }

  #constant(value: unknown): string {
    if (value === null || typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string')
      return Object.is(value, -0) ? '-0' : typeof value === 'number' ? String(value) : JSON.stringify(value)
    let at = this.#constants.indexOf(value)
    if (at < 0) at = this.#constants.push(value) - 1
    return `c${at}`
  }

  #addressFor(buffer: Buffer): string {
    const known = this.#address.get(buffer)
    if (known !== undefined) return known
    // Not a temporary: the call returns it, so it gets memory of its own.
    const variable = `t${this.#address.size}`
    this.#lines.push(`const ${variable} = empty(${this.#constant(buffer.shape)}, '${buffer.dtype}')`)
    this.#lines.push(`const a_${variable} = addressOf(${variable}, staging)`)
    this.#tensors.set(buffer, variable)
    this.#address.set(buffer, `a_${variable}`)
    return `a_${variable}`
  }

  #kernel(step: Extract<Step, { kind: 'kernel' }>, scratchAt: number): void {
    const args = step.operands.map((operand) => {
      if (operand.kind === 'scalar') return `inputs[${operand.input.placeholder}]`
      const address = this.#addressFor(operand.buffer)
      if (operand.written) this.#lines.push(...this.#markWritten(operand.buffer))
      return operand.offset === 0 ? address : `${address} + ${operand.offset * dtypeInfo[operand.buffer.dtype].size}`
    })
    if (step.compiled.kernel.params.length > args.length) args.push(`base + ${scratchAt}`)
    this.#lines.push(`${this.#constant(step.compiled.run)}(${args.join(', ')}) // ${step.name}`)
  }

  /** What is written off the heap must be copied back. */
  #markWritten(buffer: Buffer): string[] {
    const input = this.#inPlace.buffers.get(buffer)
    const tensor = input === undefined ? this.#tensors.get(buffer) : `inputs[${input}]`
    return tensor === undefined ? [] : [`if (${tensor}.storage.block.ptr === 0) staging.written(${tensor})`]
  }

  #extern(node: ExternNode): void {
    const arg = (a: ExternArg): string => {
      if (a.kind === 'view') return this.#view(a.view)
      if (a.kind === 'scalarInput') return `inputs[${a.input.placeholder}]`
      if (a.kind === 'list') return `[${a.items.map(arg).join(', ')}]`
      return this.#constant(a.value)
    }
    const variable = `x${this.#address.size}`
    this.#lines.push(`const ${variable} = extern(${this.#constant(node.def)}, [${node.args.map(arg).join(', ')}])`)
    node.outs.forEach((buffer, i) => {
      this.#tensors.set(buffer, `${variable}[${i}]`)
      this.#lines.push(`const a_${variable}_${i} = addressOf(${variable}[${i}], staging)`)
      this.#address.set(buffer, `a_${variable}_${i}`)
    })
  }

  /** An expression for a tensor over a window of a buffer. */
  #view(view: BufferView): string {
    const { buffer } = view
    const shape = this.#constant(view.shape)
    const strides = this.#constant(view.strides)
    const input = this.#inPlace.buffers.get(buffer)
    const source = input === undefined ? this.#tensors.get(buffer) : `inputs[${input}]`
    if (source !== undefined) {
      if (buffer.input < 0 && input === undefined && coversBuffer(view) && view.shape === buffer.shape) return source
      return `view(${source}, ${shape}, ${strides}, ${view.offset})`
    }
    const offset = this.#plan.offsets.get(buffer)
    if (offset === undefined) throw new InternalError(`inductor: buffer ${buffer.name} has no memory`)
    return `arena.tensor(base + ${offset}, ${shape}, '${view.dtype}', ${strides}, ${view.offset})`
  }
}

function viewOf(source: Tensor, shape: readonly number[], strides: readonly number[], offset: number): Tensor {
  return new Tensor(shape, source.dtype, source.realize(), strides, source.offset + offset)
}

/** Calls an eager kernel; its results are contiguous tensors. */
function extern(op: OpDef, args: readonly Arg[]): readonly Tensor[] {
  const result = runKernel(op, args)
  return Array.isArray(result) ? (result as readonly Tensor[]) : [result as Tensor]
}

export type { DType }
