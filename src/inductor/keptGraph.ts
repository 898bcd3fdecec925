// Compiled graphs as plain data, so that a later process need not lower, fuse, place and plan the same graph again: its kernels as loops, and what the program calls them with. The graph's text, the
// layouts of its inputs, how kernels compute and the code of the package say all that these follow from.
import { present } from '../errors/index.ts'
import { devices } from '../dispatch/index.ts'
import { eventState } from '../events/index.ts'
import { Node, operator } from '../fx/index.ts'
import {
  computingKey,
  currentComputing,
  currentEmitter,
  currentEngine,
  compileSource,
  machineEngine,
  sourceOf,
  withComputing,
} from '../kernels/index.ts'
import type { BufferParam, KernelSource, PackedSource, SpareKernel } from '../kernels/index.ts'
import { isOwnOp, opByName, opOf } from '../ops/index.ts'
import { isVerifying } from '../pipeline/index.ts'
import { isPlainObject, remembered, resultStore } from '../protocol/index.ts'
import { getDefaultDtype } from '../tensor/index.ts'
import type { Compilation } from './compilation.ts'
import type { KernelReport, Step } from './emit/kernels.ts'
import type { Operand } from './emit/operands.ts'
import type { Buffer, BufferView, ExternArg, IrOutput } from './ir.ts'
import { compileObservers } from './observers.ts'
import { buildProgram } from './program.ts'
import type { Program } from './callSequence.ts'
import { hasUsersTemplates } from './templates/index.ts'

/** What the stages of a compilation come to. */
export interface Assembled {
  readonly program: Program
  readonly reports: readonly KernelReport[]
  readonly arenaBytes: number
  readonly outputsInPlace: ReadonlySet<number>
  readonly isOneOperator: boolean
  /** How many random draws it makes. */
  readonly draws: number
}

/** A step of the program without functions. */
type KeptStep =
  | {
      readonly kind: 'kernel'
      readonly name: string
      readonly operands: readonly Operand[]
      readonly scratchBytes: number
      readonly source: KernelSource
      readonly spare: Omit<SpareKernel, 'computing'> | null
      readonly packed: KeptPacked | null
    }
  | { readonly kind: 'extern'; readonly operator: string; readonly args: readonly ExternArg[]; readonly outs: readonly Buffer[] }

interface KeptPacked {
  readonly position: number
  readonly operand: BufferParam
  readonly bytes: number
  readonly source: PackedSource
}

interface KeptGraph {
  readonly steps: readonly KeptStep[]
  readonly inputs: readonly (Buffer | null)[]
  readonly draws: number
  readonly outputs: readonly IrOutput[]
  readonly offsets: ReadonlyMap<Buffer, number>
  readonly inPlace: ReadonlyMap<Buffer, number>
  readonly arenaBytes: number
  readonly outputsInPlace: ReadonlySet<number>
  readonly isOneOperator: boolean
  /** Without the name of the program in front of their own, and of their text. */
  readonly reports: readonly KernelReport[]
}

const isKeptGraph = (found: unknown): found is KeptGraph => typeof found === 'object' && found !== null && 'steps' in found

/** What an earlier process has compiled the graph to, or else what `stages` make, which is kept where it can be. While someone looks at stages or listens to events, they run. */
export function assembledOnce(c: Compilation, stages: () => Assembled): Assembled {
  const store = resultStore()
  if (store === null || eventState.on || isVerifying() || compileObservers().length > 0 || hasUsersTemplates()) return stages()
  const text = textOf(c)
  if (text === null) return stages()
  const found = store.find('graph', text)
  if (isKeptGraph(found)) return assembledFrom(c.name, found)
  const made = stages()
  const computing = currentComputing()
  store.keepLater('graph', text, () => withComputing(computing, () => dataOf(c, made)))
  return made
}

/** All that the program follows from, as text; null for a graph with operators that are not tensorfx's own, whose rules are code that is not known here, and for one with arguments of other kinds. */
function textOf({ graph, inputs, writeBacks }: Compilation): string | null {
  // What code computes with beside its graph: guards/processState.ts has the same for what compile has recorded.
  const state = [computingKey(currentComputing()), getDefaultDtype(), devices.here]
  const lines = [...state, currentEngine(), currentEmitter(), machineEngine(), JSON.stringify([...writeBacks])].map(String)
  // Of a number that is given at each call, such as a learning rate or a seed, only the kind is known to the stages.
  for (const input of inputs)
    lines.push(
      typeof input === 'number'
        ? Number.isInteger(input)
          ? 'whole'
          : 'number'
        : `${input.dtype} ${input.shape.join()} ${input.strides?.join() ?? 'contiguous'}`,
    )
  try {
    for (const { op, name, target, args, kwargs } of graph.graph.nodes)
      lines.push(`${op} ${name} ${op === 'call_function' ? targetText(target) : ''} ${valueText(args)} ${valueText(kwargs)}`)
  } catch (error) {
    if (error instanceof NoText) return null
    throw error
  }
  return lines.join('\n')
}

/** A value that has no text. */
class NoText extends Error {}

function targetText(target: unknown): string {
  if (target === operator.getitem) return 'getitem'
  const op = opOf(target)
  if (op === undefined || !isOwnOp(op)) throw new NoText()
  return op.qualname
}

const numberText = (value: number): string => (Object.is(value, -0) ? '-0' : String(value))

function valueText(value: unknown): string {
  if (value === null || value === undefined || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') return numberText(value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'string') return JSON.stringify(value)
  if (value instanceof Node) return `%${value.name}`
  if (Array.isArray(value)) return `[${value.map(valueText).join()}]`
  if (isPlainObject(value))
    return `{${Object.entries(value)
      .map(([key, entry]) => `${JSON.stringify(key)}:${valueText(entry)}`)
      .join()}}`
  throw new NoText()
}

/** The program as data; null where something in it is made by code that is not known here. */
function dataOf(c: Compilation, { reports, arenaBytes, outputsInPlace, isOneOperator, draws }: Assembled): KeptGraph | null {
  const buffers = new Map<Buffer, Buffer>()
  const bare = (buffer: Buffer): Buffer => remembered(buffers, buffer, () => ({ ...buffer, producer: null }))
  const ir = c.get('ir')
  const steps = c.get('kernels').map(({ step }) => stepData(step, bare))
  if (steps.includes(null)) return null
  const moved = <V>(map: ReadonlyMap<Buffer, V>): ReadonlyMap<Buffer, V> => new Map([...map].map(([buffer, value]) => [bare(buffer), value]))
  return {
    steps: steps.filter((step) => step !== null),
    inputs: ir.inputs.map((buffer) => (buffer === null ? null : bare(buffer))),
    outputs: ir.outputs.map((output) => (output.kind === 'view' ? { ...output, view: viewData(output.view, bare) } : output)),
    ...{ offsets: moved(c.get('plan').offsets), inPlace: moved(c.get('placement').inPlace) },
    ...{ arenaBytes, outputsInPlace, isOneOperator, draws },
    reports: reports.map((report) => ({ ...report, name: '', text: withoutName(report.text, report.name) })),
  }
}

type Bare = (buffer: Buffer) => Buffer

const viewData = ({ buffer, shape, strides, offset, dtype }: BufferView, bare: Bare): BufferView => ({
  buffer: bare(buffer),
  shape,
  strides,
  offset,
  dtype,
})

function stepData(step: Step, bare: Bare): KeptStep | null {
  if (step.kind === 'extern') {
    const { def, args, outs } = step.node
    const argData = (arg: ExternArg): ExternArg =>
      arg.kind === 'view' ? { ...arg, view: viewData(arg.view, bare) } : arg.kind === 'list' ? { ...arg, items: arg.items.map(argData) } : arg
    return opByName(def.qualname) === def && isOwnOp(def)
      ? { kind: 'extern', operator: def.qualname, args: args.map(argData), outs: outs.map(bare) }
      : null
  }
  const { name, scratchBytes, compiled, spare, packed } = step
  const source = sourceOf(compiled)
  if (source === undefined) return null
  const operands = step.operands.map((operand) => (operand.kind === 'buffer' ? { ...operand, buffer: bare(operand.buffer) } : operand))
  return {
    ...{ kind: 'kernel', name, operands, scratchBytes, source },
    spare: spare === null ? null : { kernel: spare.kernel, wide: spare.wide, scratchBytes: spare.scratchBytes },
    packed:
      packed === null
        ? null
        : { position: packed.position, operand: packed.kernel.operand, bytes: packed.kernel.bytes, source: packed.kernel.source() },
  }
}

/** Builds the program that an earlier process has left. */
function assembledFrom(name: string, graph: KeptGraph): Assembled {
  const { inputs, outputs, offsets, inPlace, arenaBytes, outputsInPlace, isOneOperator } = graph
  const reports = graph.reports.map((report, i) => ({ ...report, name: `${name}_k${i}`, text: withName(report.text, `${name}_k${i}`) }))
  const steps = graph.steps.map((step, i) => stepFrom(step, `${name}_k${i}`))
  const program = buildProgram(name, { inputs, outputs }, steps, { offsets, bytes: arenaBytes }, { inPlace, outputsInPlace })
  return { program, reports, arenaBytes, outputsInPlace, isOneOperator, draws: graph.draws }
}

function stepFrom(step: KeptStep, id: string): Step {
  if (step.kind === 'extern')
    return { kind: 'extern', node: { def: present(opByName(step.operator), step.operator), args: step.args, outs: step.outs }, id }
  const { kind, name, operands, scratchBytes, source, spare, packed } = step
  const computing = currentComputing()
  return {
    ...{ kind, name, id, operands, scratchBytes, compiled: compileSource(source, computing) },
    spare: spare === null ? null : { ...spare, computing },
    packed:
      packed === null
        ? null
        : { position: packed.position, kernel: { operand: packed.operand, bytes: packed.bytes, source: () => packed.source, computing } },
  }
}

/** The text of a template's kernel begins with its name in the program. */
const withoutName = (text: string, name: string): string => (text.startsWith(`${name}:`) ? text.slice(name.length) : text)
const withName = (text: string, name: string): string => (text.startsWith(':') ? `${name}${text}` : text)
