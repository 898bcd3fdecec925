// From a recorded segment to compiled code: its graph, the joint graph when a backward may follow, and the calls of the backend.
import { compileJoint, traceBackward, ProxyTensorMode } from '../aot/index.ts'
import type { CompileGraph, JointGraph } from '../aot/index.ts'
import { AutogradError, gradBetween } from '../autograd/index.ts'
import { withoutModes } from '../dispatch/index.ts'
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import type { GraphModule, Node } from '../fx/index.ts'
import { Tensor } from '../tensor/index.ts'
import { wrapAotCompiler, wrapBackend } from './backends.ts'
import type { Backend } from './backends.ts'
import { config } from './config.ts'
import { numbersOnTape } from './ending.ts'
import type { SegmentRequest } from './ending.ts'
import { BackendCompilerFailed } from './errors.ts'
import { buildGraph, openGraph, writeBackPositions } from './segmentGraph.ts'
import type { CompiledSegment } from './traceTree.ts'

/** A kernel of a compiled graph, as inductor reports it. */
export interface KernelSummary {
  readonly name: string
  /** Operators in it, in order. */
  readonly ops: readonly string[]
  /** Its loops as text. */
  readonly text: string
  readonly kind: string
}

/** What was compiled, for reports. */
export interface GraphRecord {
  readonly gm: GraphModule
  readonly kernels: readonly KernelSummary[]
  /** Time in the backend, in milliseconds. */
  readonly milliseconds: number
}

/** What compiled code may carry. */
interface CompiledPart {
  readonly kernels?: readonly KernelSummary[]
  readonly writtenInPlace?: ReadonlySet<number>
}

/** The backend as the user gave it. */
export interface BackendChoice {
  readonly backend: Backend
  readonly label: string
  /** Called with each graph before the backend gets it. */
  readonly onGraph: ((gm: GraphModule, exampleInputs: readonly unknown[]) => void) | null
}

let graphCount = 0

/** Compiles a segment. Null when it has heads and no joint graph can be made. Restores the storages of written tensors. */
export function compileSegment(
  request: SegmentRequest,
  choice: BackendChoice,
): { readonly compiled: CompiledSegment; readonly record: GraphRecord } | null {
  const { segment, outputs, writeBacks, heads } = request
  const end = segment.cursor
  const names = placeholderNames(request)
  const joint = heads.length === 0 ? null : withoutModes(() => jointGraph(request, names))
  if (heads.length > 0 && joint === null) return null
  segment.restoreStorages()
  const { gm, inputSlots } = buildGraph(end, outputs, names, writeBacks, `__compiled_fn_${graphCount++}`)
  const inputs = inputSlots.map((slot) => segment.bound[slot])
  choice.onGraph?.(gm, inputs)
  const start = performance.now()
  const kernels: KernelSummary[] = []
  const run = withoutModes(() => callBackend(gm, inputs, joint, choice, kernels))
  const record: GraphRecord = { gm, kernels, milliseconds: performance.now() - start }
  return {
    compiled: { gm, run, inputSlots, outputSlots: outputs, heads, writtenInPlace: (run as unknown as CompiledPart).writtenInPlace ?? new Set() },
    record,
  }
}

function placeholderNames({ segment }: SegmentRequest): (slot: number) => string | null {
  const names = new Map<number, string>()
  for (const step of segment.cursor.path())
    for (const arg of step.args.flatMap((a) => (a.kind === 'list' ? a.items : [a])))
      if (arg.kind === 'input' && arg.spec.name !== null) names.set(arg.slot, arg.spec.name)
  return (slot) => names.get(slot) ?? null
}

/**
 * The forward of a segment and its gradient, from the very tape that autograd recorded: what ran under noGrad, custom functions and detached values are
 * as the program had them. Null where that cannot be: the tape itself is kept then.
 */
function jointGraph({ segment, outputs, writeBacks, heads }: SegmentRequest, names: (slot: number) => string | null): JointGraph | null {
  if (numbersOnTape(segment, heads)) return null
  const { graph, nodes, inputSlots } = openGraph(segment.cursor, outputs, names)
  const resolve = (tensor: Tensor): Node | undefined => (tensor.captureStamp === segment.stamp ? nodes.get(tensor.captureSlot) : undefined)
  const mode = new ProxyTensorMode({ graph, resolve })
  const gradInputs = inputSlots.flatMap((slot, i) =>
    segment.bound[slot] instanceof Tensor && (segment.bound[slot] as Tensor).requiresGrad ? [i] : [],
  )
  const wanted = gradInputs.map((i) => segment.bound[inputSlots[i] as number] as Tensor)
  try {
    const backward = traceBackward(
      mode,
      heads.map((slot) => segment.lazies[slot] as Tensor),
      (tangents, roots) => gradBetween(roots, wanted, tangents),
    )
    return {
      graph,
      inputs: inputSlots.map((slot) => nodes.get(slot) as Node),
      outputs: outputs.map((slot) => nodes.get(slot) as Node),
      heads: heads.map((slot) => outputs.indexOf(slot)),
      gradInputs,
      writeBacks: writeBackPositions(writeBacks, inputSlots),
      ...backward,
    }
  } catch (error) {
    // No derivative, an overwritten value, a tensor from elsewhere: eager code learns of it in backward, if there is one.
    if (error instanceof AutogradError || error instanceof UnsupportedError) return null
    throw error
  }
}

/** Calls the backend under the debugger's eyes: around the whole (reproAfter 'dynamo'), and around the forward and the backward graph ('aot'). */
function callBackend(
  gm: GraphModule,
  inputs: readonly unknown[],
  joint: JointGraph | null,
  choice: BackendChoice,
  kernels: KernelSummary[],
): ReturnType<CompileGraph> {
  const { backend, label } = choice
  const inner = wrapAotCompiler(backend, label)
  const part: CompileGraph = (graph, examples) => {
    const compiled = asFunction(inner(graph, examples))
    kernels.push(...((compiled as unknown as CompiledPart).kernels ?? []))
    return compiled
  }
  const whole: Backend = (graph, examples) => {
    if (joint === null) return part(graph, examples)
    const guarded: CompileGraph = (g, e) => orEager(label, g, () => part(g, e))
    const { run, compiledForward } = compileJoint(joint, examples, graph.className, { fwCompiler: part, bwCompiler: guarded })
    return Object.assign(run, { writtenInPlace: (compiledForward as unknown as CompiledPart).writtenInPlace ?? new Set<number>() })
  }
  const eagerly = (): ReturnType<CompileGraph> => {
    const plain: CompileGraph =
      (g) =>
      (...values) =>
        g.forward(...values) as readonly unknown[]
    return joint === null ? plain(gm, inputs) : compileJoint(joint, inputs, gm.className, { fwCompiler: plain }).run
  }
  return orEager(label, gm, () => asFunction(wrapBackend(whole, label)(gm, inputs)), eagerly)
}

/** A failure is a BackendCompilerFailed, or, with suppressErrors, a warning and eager kernels. */
function orEager(
  label: string,
  gm: GraphModule,
  compile: () => ReturnType<CompileGraph>,
  eagerly?: () => ReturnType<CompileGraph>,
): ReturnType<CompileGraph> {
  try {
    return compile()
  } catch (error) {
    if (!config.suppressErrors) throw error instanceof BackendCompilerFailed ? error : new BackendCompilerFailed(label, error)
    console.warn(`compile: backend '${label}' failed and config.suppressErrors is set: running eagerly. ${String(error)}`)
    return eagerly?.() ?? ((...values) => gm.forward(...values) as readonly unknown[])
  }
}

/** What a backend returned, checked; its result as an array. */
function asFunction(compiled: unknown): ReturnType<CompileGraph> {
  if (typeof compiled !== 'function') throw new ArgumentError('compiler_fn did not return callable')
  const call = (...values: readonly unknown[]): readonly unknown[] => {
    const out = (compiled as (...v: readonly unknown[]) => unknown)(...values)
    return Array.isArray(out) ? (out as readonly unknown[]) : [out]
  }
  const { kernels, writtenInPlace } = compiled as unknown as CompiledPart
  return Object.assign(call, kernels === undefined ? {} : { kernels }, writtenInPlace === undefined ? {} : { writtenInPlace })
}
