// Operators of eager mode on tensors that are on the GPU: each is a graph of one node, planned once for its dtypes, shapes, strides and constants, which runs in the memory of its tensors.
import { dispatchState, isArgList, numberKind } from '../../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../../dispatch/index.ts'
import { UnsupportedError, present } from '../../errors/index.ts'
import { Graph, GraphModule } from '../../fx/index.ts'
import type { Argument, Node } from '../../fx/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { Storage, Tensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import type { Buffer, BufferView } from '../ir.ts'
import { HeapProgram, placeOf } from './calls.ts'
import type { Placed } from './calls.ts'
import { heapNow } from './memory.ts'
import type { DeviceMemory } from './memory.ts'
import { planCopy, planGraph } from './plan.ts'
import { Recent } from './recent.ts'

/** How many calls stay planned: a program whose shapes differ at each call must not grow for ever. */
const PLANS = 1024

/** What became of planning a call. */
type Planned = { readonly program: HeapProgram } | { readonly refused: UnsupportedError }

/** What is planned for calls, those that differ in their numbers included; null where that is not possible. */
const plans = new Recent<Planned | null>(PLANS, (planned) => {
  if (planned !== null && 'program' in planned) planned.program.release()
})
const copies = new Recent<HeapProgram>(PLANS, (program) => program.release())

const layoutText = ({ dtype, sizes, steps }: Tensor): string => `${dtype}[${sizes.join()}|${steps.join()}]`

/** What a call is planned for: everything but where its tensors lie, and numbers that may differ. */
function keyOf(op: OpDef, args: readonly Arg[]): string {
  const text = (arg: Arg, i: number): string => {
    if (arg instanceof Tensor) return layoutText(arg)
    if (isArgList(arg)) return `(${arg.map((item) => text(item, -1)).join(';')})`
    if (typeof arg === 'number' && i >= 0 && numberKind(op, args, i) !== null) return Number.isInteger(arg) ? 'whole' : 'number'
    return Object.is(arg, -0) ? '-0' : `${typeof arg} ${String(arg)}`
  }
  return `${op.id} ${args.map(text).join(';')}`
}

/** The tensors and, with `numbers`, the numbers of a call that are inputs of its graph, in order. */
function inputsOf(op: OpDef, args: readonly Arg[], numbers: boolean): readonly (Tensor | number)[] {
  return args.flatMap((arg, i): readonly (Tensor | number)[] => {
    if (arg instanceof Tensor) return [arg]
    if (isArgList(arg)) return arg.filter((item) => item instanceof Tensor)
    return numbers && typeof arg === 'number' && numberKind(op, args, i) !== null ? [arg] : []
  })
}

/** Graphs hold what operators take. */
const constantOf = (arg: Arg): Argument => arg as Argument

/** The call as a graph. */
function graphOf(op: OpDef, args: readonly Arg[], numbers: boolean): GraphModule {
  const graph = new Graph()
  const count = inputsOf(op, args, numbers).length
  const placeholders = Array.from({ length: count }, (_, i) => graph.placeholder(`x${i}`))
  let at = 0
  const next = (): Node => present(placeholders[at++], 'a placeholder')
  const given = args.map((arg, i): Argument => {
    if (arg instanceof Tensor) return next()
    if (isArgList(arg)) return arg.map((item) => (item instanceof Tensor ? next() : constantOf(item)))
    return numbers && typeof arg === 'number' && numberKind(op, args, i) !== null ? next() : constantOf(arg)
  })
  graph.output(graph.callFunction(op.fn, given))
  return new GraphModule({}, graph, op.name)
}

const specOf = (input: Tensor | number): TensorSpec | number =>
  input instanceof Tensor ? { shape: input.shape, dtype: input.dtype, strides: input.strides } : input

function plan(op: OpDef, args: readonly Arg[], numbers: boolean): Planned {
  const { autocast } = dispatchState
  dispatchState.autocast = null
  try {
    const gm = graphOf(op, args, numbers)
    return { program: new HeapProgram(planGraph(gm, inputsOf(op, args, numbers).map(specOf), 'error', new Map())) }
  } catch (error) {
    if (error instanceof UnsupportedError) return { refused: error }
    // Some operators look at their numbers.
    if (numbers) return { refused: new UnsupportedError(`${op.qualname} looks at its numbers`, { cause: error }) }
    throw error
  } finally {
    dispatchState.autocast = autocast
  }
}

/** The program of a call, and its inputs. Throws UnsupportedError if it has no shader. */
function plannedCall(op: OpDef, args: readonly Arg[]): { readonly program: HeapProgram; readonly inputs: readonly (Tensor | number)[] } {
  const key = keyOf(op, args)
  const inputs = inputsOf(op, args, true)
  const numbers = inputs.filter((input) => typeof input === 'number')
  if (numbers.length > 0) {
    const forNumbers = plans.of(`${key} numbers`, () => {
      const planned = plan(op, args, true)
      return 'program' in planned ? planned : null
    })
    if (forNumbers !== null && 'program' in forNumbers) return { program: forNumbers.program, inputs }
  }
  const planned = plans.of(`${key} ${numbers.join(' ')}`, () => plan(op, args, false))
  if (planned === null || 'refused' in planned) throw planned?.refused ?? new UnsupportedError(`${op.qualname} has no plan`)
  return { program: planned.program, inputs: inputs.filter((input) => typeof input !== 'number') }
}

/** Runs a functional operator, all of whose tensors are on the GPU. Throws UnsupportedError if it has no shader. */
export function runPlanned(op: OpDef, args: readonly Arg[]): Result {
  const { program, inputs } = plannedCall(op, args)
  const { graph } = program.plan
  const outs = new Set(graph.outputs.flatMap((output) => (output.kind === 'view' && output.view.buffer.input < 0 ? [output.view.buffer] : [])))
  const places = inputs.map((input): Placed | number => (input instanceof Tensor ? placeOf(input) : input))
  const made = program.run(heapNow(), places, [...outs])
  const storages = new Map(
    [...made].map(([buffer, memory]): [Buffer, Storage] => [buffer, Storage.late(buffer.numel * dtypeInfo[buffer.dtype].size, memory)]),
  )
  const results = graph.outputs.map((output) => {
    if (output.kind !== 'view') throw new UnsupportedError(`${op.qualname} on webgpu: a result is no tensor.`)
    return tensorOf(output.view, storages, inputs)
  })
  const [only] = results
  return op.schema.returns.length === 1 && results.length === 1 && only !== undefined ? only : results
}

/** A result: a view of new memory, or of an input. */
export function tensorOf(
  { buffer, shape, strides, offset, dtype }: BufferView,
  storages: ReadonlyMap<Buffer, Storage>,
  inputs: readonly (Tensor | number)[],
): Tensor {
  if (dtype !== buffer.dtype || buffer.isComplex === true)
    throw new UnsupportedError(`a view of ${buffer.dtype} elements as ${dtype} is not possible on webgpu.`)
  const storage = storages.get(buffer)
  if (storage !== undefined) return new Tensor(shape, dtype, storage, strides, offset)
  const source = inputs[buffer.input]
  if (!(source instanceof Tensor)) throw new UnsupportedError('a result has no memory on webgpu.')
  return new Tensor(shape, dtype, source.realize(), strides, source.offset + offset)
}

/** The tensor's memory, if the tensor has all of it in order; otherwise null. */
function wholeOf(tensor: Tensor): DeviceMemory | null {
  const { memory } = placeOf(tensor)
  return tensor.contiguousLayout && tensor.offset === 0 && tensor.numel === memory.numel ? memory : null
}

/** Writes the elements of `source`, a result that nothing else has, to `target`, a tensor of the same shape and dtype: both are on the GPU. Where it can, it gives its memory away. */
export function giveOnDevice(source: Tensor, target: Tensor): void {
  const storage = target.realize()
  const [given, old] = [wholeOf(source), wholeOf(target)]
  if (given === null || old === null || source.viewBase !== null || source.realize() === storage) return copyOnDevice(source, target)
  storage.replaceLate(given)
  old.free()
  storage.noteWrite()
}

/** Writes the elements of `source` to `target`, a tensor of the same shape and dtype: both are on the GPU. */
export function copyOnDevice(source: Tensor, target: Tensor): void {
  const storage = target.realize()
  if (target.numel > 0) {
    const key = `${layoutText(source)} ${layoutText(target)}`
    const program = copies.of(key, () => {
      const buffer = (name: string, input: number, tensor: Tensor): Buffer => ({
        name,
        shape: tensor.shape,
        dtype: tensor.dtype,
        numel: tensor.numel,
        input,
        producer: null,
      })
      const from: BufferView = { buffer: buffer('from', 0, source), shape: source.shape, strides: source.strides, offset: 0, dtype: source.dtype }
      return new HeapProgram(planCopy(from, buffer('to', 1, target), target.strides))
    })
    program.run(heapNow(), [placeOf(source), placeOf(target)], [], [placeOf(target).memory])
  }
  storage.noteWrite()
}
