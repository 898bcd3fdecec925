// From a recorded segment to compiled code: its graph, the joint graph if a backward may follow, and the calls of the backend.
import { compileJoint } from '../../aot/index.ts'
import { announceGraph } from '../../aot/joint/graphEvent.ts'
import { writeBacksOf } from '../../aot/meta/compiled.ts'
import { recordSymbolicSizes } from '../../aot/run/symbolicSizes.ts'
import type { CompileGraph, CompiledCode, JointGraph, KernelSummary } from '../../aot/index.ts'
import { devices, fakeLike, withoutModes } from '../../dispatch/index.ts'
import { announce, emit, inScope, newId, wants } from '../../events/index.ts'
import { GraphModule } from '../../fx/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { resultsOf, runnable } from '../backends/backend.ts'
import type { Backend, BackendCode } from '../backends/backend.ts'
import { eagerBackend } from '../backends/builtIn.ts'
import { fusionOf } from '../backends/registry.ts'
import { intercepted } from '../backends/interceptors.ts'
import { Cost } from '../tree/budget.ts'
import type { Budget } from '../tree/budget.ts'
import { config } from '../../config.ts'
import { BackendCompilerFailed } from '../reports/errors.ts'
import type { BreakReason } from '../reports/breaks.ts'
import { announceFailure } from '../reports/failures.ts'
import type { Plan } from './plan.ts'
import type { Reports } from '../reports/reports.ts'
import { runWatch } from '../backends/runWatch.ts'
import type { WatchedGraph } from '../backends/runWatch.ts'
import type { Segment } from '../segment/segment.ts'
import { fusingOf } from './fuseGraph.ts'
import { graphProgram } from './graphProgram.ts'
import type { JointSizes } from './sizedJoint.ts'
import { segmentJoint } from './segmentJoint.ts'
import { buildGraph } from './segmentGraph.ts'
import type { SegmentGraph } from './segmentGraph.ts'
import { sizedInputs, stepProgram } from '../run/stepProgram.ts'
import { withoutLists } from '../tree/traceTree.ts'
import type { CompiledSegment } from '../tree/traceTree.ts'

/** What is to be compiled. */
export interface SegmentRequest extends Plan {
  readonly segment: Segment
  /** Whether the graph is for any sizes, which are inputs. Otherwise it is for those of the present walk. */
  readonly takesSizes: boolean
  /** Whether the compiled code may overwrite inputs, as `writeBacks` says. Otherwise it returns their new values. */
  readonly mayWriteInPlace: boolean
  /** The graph break that ends it; null at the end of a call. */
  readonly reason: BreakReason | null
}

/** The backend as the user gave it. */
export interface BackendChoice {
  readonly backend: Backend
  readonly label: string
  /** Whether it can have graphs with sizes among their inputs. */
  readonly takesSizes: boolean
  /** Called with each graph before the backend gets it. */
  readonly onGraph: ((gm: GraphModule, exampleInputs: readonly unknown[]) => void) | null
}

/** What compiles a segment: the backend, and who is told. */
export interface SegmentContext {
  readonly choice: BackendChoice
  readonly reports: Reports
  readonly budget: Budget
  /** How many calls with the sizes of this one the program has answered itself. */
  readonly programCalls: number
}

let graphCount = 0

/** Compiles a segment. Returns null if it has heads but no joint graph can be made. */
export function compileSegment(request: SegmentRequest, context: SegmentContext): CompiledSegment | null {
  const cost = new Cost(context.budget)
  return inScope({ fn: context.reports.fn, graph: newId('graph') }, () => cost.of(() => compileInScope(request, context, cost)))
}

/** The backend of a graph: eager kernels, and the kernels for any sizes that the backend finds, for one that takes sizes, if that of the program cannot have it. */
function backendFor(
  { takesSizes, segment, outputs }: SegmentRequest,
  choice: BackendChoice,
  built: SegmentGraph,
  sized: JointSizes | null,
): BackendChoice {
  if (!takesSizes || (choice.takesSizes && choice.backend !== eagerBackend)) return choice
  const { gm, inputSlots } = built
  const { code } = gm
  const end = segment.cursor
  // Kernels for any sizes compute in the program's memory.
  const fuseForSizes = devices.here === 'cpu' ? fusionOf(choice.backend) : null
  if (sized !== null)
    return {
      ...choice,
      backend: (graph, examples) => graphProgram(graph, fuseForSizes, (size) => sized.hintOf(size)) ?? eagerBackend(graph, examples),
      label: 'eager',
    }
  const fuse = fuseForSizes === null ? null : fusingOf({ ...built, end, outputs }, fuseForSizes)
  // Whoever sees the graph before may call the backend with another one, or have changed this one.
  const backend: Backend = (graph, examples) =>
    graph === gm && graph.code === code
      ? stepProgram(end, { inputSlots, outputs, writeBacks: writeBacksOf(graph) }, fuse)
      : eagerBackend(graph, examples)
  return { ...choice, backend, label: 'eager' }
}

function compileInScope(request: SegmentRequest, { choice: chosen, reports }: SegmentContext, cost: Cost): CompiledSegment | null {
  const { segment, outputs, heads, reason, takesSizes } = request
  const writeBacks = request.mayWriteInPlace ? request.writeBacks : new Map<number, number>()
  const names = placeholderNames(request)
  const traced = heads.length === 0 ? null : withoutModes(() => segmentJoint(request, names))
  if (typeof traced === 'string') {
    announce({ kind: 'joint', ok: false }, () => ({ kind: 'joint', ok: false, why: traced, nodes: [] }))
    return null
  }
  const built = buildGraph(segment, outputs, { names, takesSizes }, writeBacks, `__compiled_fn_${graphCount++}`)
  const { gm, inputSlots } = built
  const sized = traced?.sizes ?? null
  const choice = backendFor(request, chosen, built, sized)
  const inputs = inputSlots.map((slot) => segment.bound[slot])
  let recordSizes = takesSizes ? sizesRecorder(request, built, inputs) : null
  if (isRead(choice)) {
    recordSizes?.()
    recordSizes = null
  }
  announceGraph(gm, { role: 'captured', parent: null, reason: reason?.reason ?? 'return', isJoint: traced !== null }, reason?.userStack)
  choice.onGraph?.(gm, inputs)
  const start = performance.now()
  const kernels: KernelSummary[] = []
  const found = sized?.for(segment)
  const sizes = Array.isArray(found) ? found : []
  const run = withoutModes(() => callBackend(gm, inputs, { joint: traced?.joint ?? null, sizes }, choice, { kernels, cost }))
  const milliseconds = performance.now() - start
  reports.records.push({ gm, kernels, milliseconds, recordSizes })
  emit({ kind: 'compiled', name: gm.className, backend: choice.label, milliseconds })
  return {
    gm,
    run,
    inputSlots,
    outputSlots: outputs,
    heads,
    tape: request.tape,
    joint: traced?.joint ?? null,
    nodeOf: (slot) => traced?.nodes.get(slot),
    writtenInPlace: run.writtenInPlace ?? new Set(),
    mayOverwrite: new Set([...(run.writtenInPlace ?? []), ...(takesSizes ? writeBacksOf(gm).keys() : [])]),
    sizesFor: sized === null ? null : (walk) => sized.for(walk),
    isProgram: run.isProgram ?? (() => false),
    cost,
  }
}

/** Whether a graph has readers when it is compiled: a backend of the program, a listener, the debugger, or who verifies sizes. */
const isRead = ({ label, onGraph }: BackendChoice): boolean =>
  label !== 'eager' || onGraph !== null || config.reproAfter !== null || config.verifySizes || wants('graph')

/** What records the sizes of a graph as symbols. A wrong rule for symbols changes nothing but what is printed. */
function sizesRecorder({ segment }: SegmentRequest, { gm, inputSlots }: SegmentGraph, inputs: readonly unknown[]): () => void {
  // Not the tensors themselves, which would live as long as the graph.
  const examples = inputs.map((input) => (input instanceof Tensor ? fakeLike(input) : input))
  const sized = sizedInputs(segment.cursor, inputSlots)
  return () => {
    const found = withoutModes(() => recordSymbolicSizes(gm, examples, sized))
    if (!('problem' in found) || !found.isFault) return
    announce({ kind: 'limit', what: 'verifySizes' }, () => ({ kind: 'limit', what: 'verifySizes', name: gm.className, reason: found.problem }))
  }
}

function placeholderNames({ segment }: SegmentRequest): (slot: number) => string | null {
  const names = new Map<number, string | null>()
  for (const step of segment.cursor.path()) for (const arg of withoutLists(step.args)) if (arg.kind === 'input') names.set(arg.slot, arg.spec.name)
  return (slot) => names.get(slot) ?? null
}

/** Calls the backend, wrapped by the debugger: as a whole (reproAfter 'dynamo'), and for the forward and the backward graph each ('aot'). */
function callBackend(
  gm: GraphModule,
  inputs: readonly unknown[],
  { joint, sizes }: { readonly joint: JointGraph | null; readonly sizes: readonly number[] },
  choice: BackendChoice,
  { kernels, cost }: { readonly kernels: KernelSummary[]; readonly cost: Cost },
): CompiledCode {
  const { backend, label } = choice
  const inner = intercepted('aot', backend, label)
  const part: CompileGraph = (graph, examples) => {
    const compiled = asFunction(inner(graph, examples), { gm: graph, backend, label })
    kernels.push(...(compiled.kernels ?? []))
    return compiled
  }
  const whole: Backend = (graph, examples) => {
    if (joint === null) return part(graph, examples)
    // The backward is compiled when it first runs.
    const guarded: CompileGraph = (g, e) => cost.of(() => orEager(label, g, () => part(g, e)))
    const { run, compiledForward } = compileJoint(joint, [...examples, ...sizes], graph.className, { fwCompiler: part, bwCompiler: guarded })
    return Object.assign(run, { writtenInPlace: compiledForward.writtenInPlace ?? new Set<number>() })
  }
  const eagerly = (): CompiledCode => {
    return joint === null ? uncompiled(gm) : compileJoint(joint, [...inputs, ...sizes], gm.className, { fwCompiler: uncompiled }).run
  }
  return orEager(label, gm, () => asFunction(intercepted('dynamo', whole, label)(gm, inputs)), eagerly)
}

/** Runs `compile`. A failure throws BackendCompilerFailed or, with suppressErrors, is a warning, and the graph runs on eager kernels. */
function orEager(label: string, gm: GraphModule, compile: () => CompiledCode, eagerly?: () => CompiledCode): CompiledCode {
  try {
    return compile()
  } catch (error) {
    // A failure of a backward that was reported where it happened comes through here again.
    if (!(error instanceof BackendCompilerFailed)) announceFailure('compile', error, label)
    if (!config.suppressErrors) throw error instanceof BackendCompilerFailed ? error : new BackendCompilerFailed(label, error)
    announce({ kind: 'limit', what: 'suppressErrors' }, () => ({
      kind: 'limit',
      what: 'suppressErrors',
      name: gm.className,
      reason: `the backend '${label}' failed`,
    }))
    console.warn(`compile: backend '${label}' failed and config.suppressErrors is set: running eagerly. ${String(error)}`)
    return eagerly?.() ?? uncompiled(gm)
  }
}

/** The graph itself, run by eager kernels. */
const uncompiled = (gm: GraphModule): CompiledCode => asFunction((...values: readonly unknown[]) => gm.forward(...values))

/** What a backend returned, checked; its result as an array. Runs of `graph` may be watched. */
function asFunction(compiled: BackendCode, graph: WatchedGraph | null = null): CompiledCode {
  const run = runnable(compiled)
  const plain: CompiledCode = (...values) => resultsOf(run(...values))
  // Not a function around the plain one: this is called at every run.
  const watched = (of: WatchedGraph): CompiledCode => {
    return (...values) => {
      if (runWatch.current !== null) return runWatch.current({ ...of, inputs: values, code: plain })
      return resultsOf(run(...values))
    }
  }
  const call = graph === null ? plain : watched(graph)
  if (compiled instanceof GraphModule) return call
  const { kernels, writtenInPlace, isProgram } = compiled
  return Object.assign(call, kernels && { kernels }, writtenInPlace && { writtenInPlace }, isProgram && { isProgram })
}
