// Generates the compiled program: a readable JavaScript function that calls the kernels in order with addresses in the heap. Temporaries live in one
// arena, so each call allocates only what it returns.
import { runKernel } from '../dispatch/index.ts'
import type { Arg, OpDef } from '../dispatch/index.ts'
import { InternalError } from '../errors/index.ts'
import { BlockCopies, dtypeInfo } from '../kernels/index.ts'
import { Tensor } from '../tensor/index.ts'
import { addressOf, arena, temporary } from './runtime.ts'
import type { EmittedGroup, Step } from './emit/kernels.ts'
import { coversBuffer } from './ir.ts'
import type { Buffer, BufferView, ExternArg, ExternNode, IrGraph, IrOutput } from './ir.ts'
import type { MemoryPlan } from './memoryPlan.ts'
import type { Placement } from './placement.ts'

export interface Program {
  /** Inputs in placeholder order (numbers for scalar placeholders); returns the graph's outputs. */
  readonly run: (inputs: readonly unknown[]) => unknown[]
  /** The source of `run`. */
  readonly source: string
}

/** Builds the program. Buffers that are not in `plan` are inputs, outputs, or results of eager kernels. */
export function buildProgram(name: string, graph: IrGraph, groups: readonly EmittedGroup[], plan: MemoryPlan, placement: Placement): Program {
  return new ProgramWriter(
    name,
    graph,
    groups.map((group) => group.step),
    plan,
    placement,
  ).build()
}

class ProgramWriter {
  readonly #name: string
  readonly #graph: IrGraph
  readonly #steps: readonly Step[]
  readonly #plan: MemoryPlan
  readonly #placement: Placement
  readonly #lines: string[] = []
  readonly #constants: unknown[] = []
  readonly #address = new Map<Buffer, string>()
  readonly #tensors = new Map<Buffer, string>()

  constructor(name: string, graph: IrGraph, steps: readonly Step[], plan: MemoryPlan, placement: Placement) {
    this.#name = name
    this.#graph = graph
    this.#steps = steps
    this.#plan = plan
    this.#placement = placement
  }

  build(): Program {
    const lines = this.#lines
    const scratch = Math.max(0, ...this.#steps.map((s) => (s.kind === 'kernel' ? s.scratchBytes : 0)))
    const scratchAt = Math.ceil(this.#plan.bytes / 64) * 64
    if (scratchAt + scratch > 0 || this.#plan.offsets.size > 0) lines.push(`const base = arena(${scratchAt + scratch})`)
    lines.push('const copies = new BlockCopies()')
    this.#graph.inputs.forEach((buffer, i) => {
      if (buffer === null) return
      this.#tensors.set(buffer, `inputs[${i}]`)
      this.#address.set(buffer, `i${i}`)
      lines.push(`const i${i} = addressOf(inputs[${i}], copies)`)
    })
    for (const [buffer, offset] of this.#plan.offsets) this.#address.set(buffer, `base + ${offset}`)
    for (const [buffer, input] of this.#placement.inPlace) this.#address.set(buffer, `i${input}`)
    for (const step of this.#steps) {
      if (step.kind === 'kernel') this.#kernel(step, scratchAt)
      else this.#extern(step.node)
    }
    lines.push('copies.finish()')
    const outputs = this.#graph.outputs.map((o, i) => this.#output(o, i))
    lines.push(`return [${outputs.join(', ')}]`)
    const source = `function ${this.#name}(inputs) {\n${lines.map((l) => `  ${l}`).join('\n')}\n}`
    const names = this.#constants.map((_, i) => `c${i}`)
    // eslint-disable-next-line no-implied-eval -- generated code, as in fx
    const make = new Function(
      'arena',
      'temporary',
      'addressOf',
      'BlockCopies',
      'empty',
      'view',
      'extern',
      ...names,
      `return ${source}\n//# sourceURL=tensorfx-generated/${this.#name}.js`,
    )
    const run: Program['run'] = make(arena, temporary, addressOf, BlockCopies, Tensor.empty, viewOf, extern, ...this.#constants)
    return { run, source }
  }

  #output(output: IrOutput, position: number): string {
    if (output.kind === 'scalarInput') return `inputs[${output.input.placeholder}]`
    if (output.kind === 'value') return this.#constant(output.value)
    // An output that was written in place is its input.
    return this.#placement.outputsInPlace.has(position) ? `inputs[${this.#placement.inPlace.get(output.view.buffer)}]` : this.#view(output.view)
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
    // The buffer is not a temporary: the call returns it, so it gets memory of its own.
    const variable = `t${this.#address.size}`
    this.#lines.push(`const ${variable} = empty(${this.#constant(buffer.shape)}, '${buffer.dtype}')`)
    this.#lines.push(`const a_${variable} = addressOf(${variable}, copies)`)
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

  /** If the buffer is off the heap, it must be copied back. */
  #markWritten(buffer: Buffer): string[] {
    const input = this.#placement.inPlace.get(buffer)
    const tensor = input === undefined ? this.#tensors.get(buffer) : `inputs[${input}]`
    return tensor === undefined ? [] : [`copies.written(${tensor}.storage.block)`]
  }

  #extern(node: ExternNode): void {
    const arg = (a: ExternArg): string => {
      if (a.kind === 'view') return this.#view(a.view)
      if (a.kind === 'scalarInput') return `inputs[${a.input.placeholder}]`
      if (a.kind === 'list') return `[${a.items.map(arg).join(', ')}]`
      return this.#constant(a.value)
    }
    const variable = `x${this.#address.size}`
    // Eager kernels make their own copies of spilled tensors.
    this.#lines.push('copies.writeBack()')
    this.#lines.push(`const ${variable} = extern(${this.#constant(node.def)}, [${node.args.map(arg).join(', ')}])`)
    node.outs.forEach((buffer, i) => {
      this.#tensors.set(buffer, `${variable}[${i}]`)
      this.#lines.push(`const a_${variable}_${i} = addressOf(${variable}[${i}], copies)`)
      this.#address.set(buffer, `a_${variable}_${i}`)
    })
  }

  /** An expression for a tensor over a window of a buffer. */
  #view(view: BufferView): string {
    const { buffer } = view
    const shape = this.#constant(view.shape)
    const strides = this.#constant(view.strides)
    const input = this.#placement.inPlace.get(buffer)
    const source = input === undefined ? this.#tensors.get(buffer) : `inputs[${input}]`
    if (source !== undefined) {
      if (buffer.input < 0 && input === undefined && coversBuffer(view) && view.shape === buffer.shape) return source
      return `view(${source}, ${shape}, ${strides}, ${view.offset})`
    }
    const offset = this.#plan.offsets.get(buffer)
    if (offset === undefined) throw new InternalError(`inductor: buffer ${buffer.name} has no memory`)
    return `temporary(base + ${offset}, ${shape}, '${view.dtype}', ${strides}, ${view.offset})`
  }
}

function viewOf(source: Tensor, shape: readonly number[], strides: readonly number[], offset: number): Tensor {
  return new Tensor(shape, source.dtype, source.realize(), strides, source.offset + offset)
}

/** Calls an eager kernel, whose results are contiguous. */
function extern(op: OpDef, args: readonly Arg[]): readonly Tensor[] {
  const result = runKernel(op, args)
  return result instanceof Tensor ? [result] : result
}
