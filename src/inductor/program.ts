// Builds the compiled program: it calls the kernels in order with addresses in the heap. Temporaries live in one arena, so each call allocates only what it returns.
import { runKernel } from '../dispatch/index.ts'
import type { Arg, OpDef } from '../dispatch/index.ts'
import { InternalError, present } from '../errors/index.ts'
import { compileSource, dtypeInfo, isComplexDType } from '../kernels/index.ts'
import type { DType } from '../kernels/index.ts'
import { Tensor, sameShape } from '../tensor/index.ts'
import { programOf } from './callSequence.ts'
import type { Call, Program, Value } from './callSequence.ts'
import { PackedWeight, packed, wherePacked } from './packing.ts'
import { addressOf, arena, keep, temporary, whereRoom } from './runtime.ts'
import type { Step } from './emit/kernels.ts'
import { coversBuffer } from './ir.ts'
import type { Buffer, BufferView, ExternArg, ExternCall, IrGraph, IrOutput } from './ir.ts'
import type { MemoryPlan } from './memoryPlan.ts'
import type { Placement } from './placement.ts'

/** Builds the program. Buffers that are not in `plan` are inputs, outputs, or results of eager kernels. */
export function buildProgram(name: string, graph: Ends, steps: readonly Step[], plan: MemoryPlan, placement: InPlace): Program {
  return new ProgramWriter(name, graph, steps, plan, placement).build()
}

/** What goes in and comes out. */
type Ends = Pick<IrGraph, 'inputs' | 'outputs'>
type InPlace = Omit<Placement, 'stored'>

class ProgramWriter {
  readonly #name: string
  readonly #graph: Ends
  readonly #steps: readonly Step[]
  readonly #plan: MemoryPlan
  readonly #placement: InPlace
  readonly #calls: Call[] = []
  readonly #address = new Map<Buffer, Value>()
  readonly #tensors = new Map<Buffer, Value>()

  constructor(name: string, graph: Ends, steps: readonly Step[], plan: MemoryPlan, placement: InPlace) {
    this.#name = name
    this.#graph = graph
    this.#steps = steps
    this.#plan = plan
    this.#placement = placement
  }

  build(): Program {
    const scratch = Math.max(0, ...this.#steps.map((s) => (s.kind === 'kernel' ? s.scratchBytes : 0)))
    const least = Math.max(0, ...this.#steps.map((s) => (s.kind === 'kernel' ? (s.spare ?? s).scratchBytes : 0)))
    const scratchAt = Math.ceil(this.#plan.bytes / 64) * 64
    if (scratchAt + scratch > 0 || this.#plan.offsets.size > 0)
      this.#let('base', call('arena', arena, constant(scratchAt + scratch), ...(least < scratch ? [constant(scratchAt + least)] : [])))
    this.#graph.inputs.forEach((buffer, i) => {
      if (buffer === null) return
      this.#tensors.set(buffer, inputAt(i))
      this.#address.set(buffer, this.#let(`i${i}`, addressOfValue(inputAt(i))))
    })
    for (const [buffer, offset] of this.#plan.offsets) this.#address.set(buffer, sum(BASE, offset))
    for (const [buffer, at] of this.#placement.inPlace) this.#address.set(buffer, variable(`i${at}`))
    // All memory first: what fails has written nothing.
    for (const step of this.#steps) if (step.kind === 'kernel') this.#allocate(step)
    for (const step of this.#steps) {
      if (step.kind === 'kernel') this.#kernel(step, scratchAt)
      else this.#extern(step.node, step.id)
    }
    this.#calls.push({ kind: 'finish' })
    const results = this.#graph.outputs.map((o, i) => this.#output(o, i))
    return programOf({ name: this.#name, calls: this.#calls, results })
  }

  /** Sets a variable, and returns it. */
  #let(name: string, value: Value): Value {
    this.#calls.push({ kind: 'let', name, value })
    return variable(name)
  }

  #output(output: IrOutput, position: number): Value {
    if (output.kind === 'scalarInput') return inputAt(output.input.placeholder)
    if (output.kind === 'value') return constant(output.value)
    // An output that was written in place is its input.
    if (!this.#placement.outputsInPlace.has(position)) return this.#view(output.view)
    return inputAt(present(this.#placement.inPlace.get(output.view.buffer), `the input in which output ${position} is written`))
  }

  #addressFor(buffer: Buffer): Value {
    const known = this.#address.get(buffer)
    if (known !== undefined) return known
    // The buffer is not a temporary: the call returns it, so it gets memory of its own.
    const name = `t${this.#address.size}`
    const tensor = this.#let(name, call('empty', Tensor.empty, constant(buffer.shape), constant(buffer.dtype)))
    const address = this.#let(`a_${name}`, addressOfValue(tensor))
    this.#tensors.set(buffer, tensor)
    this.#address.set(buffer, address)
    return address
  }

  #allocate(step: Extract<Step, { kind: 'kernel' }>): void {
    for (const operand of step.operands) if (operand.kind === 'buffer' && operand.written) this.#addressFor(operand.buffer)
  }

  #kernel(step: Extract<Step, { kind: 'kernel' }>, scratchAt: number): void {
    const weight = this.#packedOf(step, scratchAt)
    const args = step.operands.map((operand, position) => {
      if (operand.kind === 'scalar') return inputAt(operand.input.placeholder)
      const address = this.#addressFor(operand.buffer)
      if (operand.written) this.#markWritten(operand.buffer)
      const first = operand.offset === 0 ? address : sum(address, operand.offset * dtypeInfo[operand.buffer.dtype].size)
      return weight !== null && position === step.packed?.position
        ? call('packed', packed, constant(weight), inputAt(operand.buffer.input), first)
        : first
    })
    if (step.scratchBytes > 0) args.push(sum(BASE, scratchAt))
    const { spare } = step
    const usual =
      spare === null ? step.compiled : whereRoom(scratchAt + step.scratchBytes, step.compiled, () => compileSource(spare, spare.computing))
    const kernel = weight === null ? usual : wherePacked(weight, usual)
    this.#calls.push({ kind: 'run', kernel, args, label: step.name, id: step.id })
  }

  /** The weight that the kernel can take packed; null if there is none, or if the program itself writes to it. */
  #packedOf({ packed: of, operands, scratchBytes }: Extract<Step, { kind: 'kernel' }>, scratchAt: number): PackedWeight | null {
    const operand = of === null ? undefined : operands[of.position]
    if (of === null || operand?.kind !== 'buffer' || operand.buffer.input < 0) return null
    return [...this.#placement.inPlace.values()].includes(operand.buffer.input) ? null : new PackedWeight(of.kernel, scratchAt + scratchBytes)
  }

  /** If the buffer is off the heap, it must be copied back. */
  #markWritten(buffer: Buffer): void {
    const at = this.#placement.inPlace.get(buffer)
    const tensor = at === undefined ? this.#tensors.get(buffer) : inputAt(at)
    if (tensor !== undefined) this.#calls.push({ kind: 'written', tensor })
  }

  #extern(node: ExternCall, id: string): void {
    const arg = (a: ExternArg): Value => {
      if (a.kind === 'view') return this.#view(a.view)
      if (a.kind === 'scalarInput') return inputAt(a.input.placeholder)
      if (a.kind === 'list') return { kind: 'list', items: a.items.map(arg) }
      return constant(a.value)
    }
    const name = `x${this.#address.size}`
    // Eager kernels make their own copies of spilled tensors.
    this.#calls.push({ kind: 'writeBack' })
    this.#calls.push({ kind: 'let', name, value: call('extern', extern, constant(node.def), { kind: 'list', items: node.args.map(arg) }), id })
    node.outs.forEach((buffer, i) => {
      const out = variable(name, i)
      this.#tensors.set(buffer, out)
      this.#address.set(buffer, this.#let(`a_${name}_${i}`, addressOfValue(out)))
    })
  }

  /** A tensor over a window of a buffer. */
  #view(view: BufferView): Value {
    const { buffer } = view
    const [shape, strides, at] = [constant([...view.shape]), constant([...view.strides]), constant(view.offset)]
    const inPlace = this.#placement.inPlace.get(buffer)
    const source = inPlace === undefined ? this.#tensors.get(buffer) : inputAt(inPlace)
    if (source !== undefined) {
      const isItself = buffer.isComplex !== true && buffer.input < 0 && inPlace === undefined
      if (isItself && coversBuffer(view) && sameShape(view.shape, buffer.shape)) return source
      return call(
        'view',
        viewOf,
        source,
        shape,
        strides,
        at,
        ...(buffer.isComplex === true || isComplexDType(view.dtype) ? [constant(view.dtype)] : []),
      )
    }
    const offset = this.#plan.offsets.get(buffer)
    if (offset === undefined) throw new InternalError(`inductor: buffer ${buffer.name} has no memory`)
    return call('temporary', temporary, sum(BASE, offset), shape, constant(view.dtype), strides, at)
  }
}

const inputAt = (index: number): Value => ({ kind: 'input', index })
const constant = (value: unknown): Value => ({ kind: 'constant', value })
const variable = (name: string, item?: number): Value => (item === undefined ? { kind: 'variable', name } : { kind: 'variable', name, item })
const sum = (address: Value, bytes: number): Value => ({ kind: 'sum', address, bytes })
const call = (name: string, make: (...args: never[]) => unknown, ...args: readonly Value[]): Value => ({ kind: 'call', name, make, args })
const addressOfValue = (tensor: Value): Value => call('addressOf', addressOf, tensor, variable('copies'))

/** The address of the arena. */
const BASE = variable('base')

function viewOf(source: Tensor, shape: readonly number[], strides: readonly number[], offset: number, dtype: DType = source.dtype): Tensor {
  const start = dtype === source.dtype ? source.offset : (source.offset * dtypeInfo[source.dtype].size) / dtypeInfo[dtype].size
  return new Tensor(shape, dtype, source.realize(), strides, start + offset)
}

/** Calls an eager kernel, whose results are contiguous and stay until the program ends. */
function extern(op: OpDef, args: readonly Arg[]): readonly Tensor[] {
  const result = runKernel(op, args)
  return keep(result instanceof Tensor ? [result] : result)
}
