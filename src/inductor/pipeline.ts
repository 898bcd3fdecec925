// Inductor from start to end. `compileFx` is the backend function that dynamo calls.
import { writeBacksOf } from '../aot/meta/compiled.ts'
import { checkGraphModule } from '../protocol/graphChecks.ts'
import { checkArray } from '../protocol/index.ts'
import { observed } from '../dispatch/index.ts'
import { currentScope, emit, eventState, inScope, wants } from '../events/index.ts'
import type { GraphModule } from '../fx/index.ts'
import { runPasses } from '../pipeline/index.ts'
import type { Pass, PassRun } from '../pipeline/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { OnLaunch } from './callSequence.ts'
import { Compilation } from './compilation.ts'
import { verifyEmitted } from './emit/kernels.ts'
import type { KernelReport } from './emit/kernels.ts'
import { withDraws, withoutDeadNodes } from './ir.ts'
import type { IrGraph } from './ir.ts'
import { assembledOnce } from './keptGraph.ts'
import type { Assembled } from './keptGraph.ts'
import { lower } from './lowering.ts'
import { lifetimesOf, planMemory, verifyPlan } from './memoryPlan.ts'
import type { Lifetime } from './memoryPlan.ts'
import { compileObservers } from './observers.ts'
import { emitTimed, tellingStages } from './stageEvents.ts'
import { placeBuffers } from './placement.ts'
import { buildProgram } from './program.ts'
import { schedule } from './scheduler.ts'
import { verifyGroups, verifyIr } from './verifyIr.ts'

const lifetimes = (c: Compilation): Lifetime[] => lifetimesOf(c.get('ir'), c.get('groups'), c.get('placement'))

/** The stages of a compilation. Each makes one result from the results before it. */
const stages: readonly Pass<Compilation>[] = [
  {
    name: 'lower',
    run: (c) => c.set('ir', lower(c.graph, c.inputs)),
    verifies: (c) => {
      c.graph.graph.lint()
      verifyIr(c.get('ir'))
    },
  },
  {
    name: 'removeDeadNodes',
    requires: ['lower'],
    run: (c) => {
      const all = c.get('ir')
      const live = withoutDeadNodes(all)
      return c.set('ir', live) && live.nodes.length < all.nodes.length
    },
    verifies: (c) => verifyIr(c.get('ir')),
  },
  {
    name: 'fuse',
    requires: ['lower'],
    run: (c) => c.set('groups', schedule(c.get('ir'), wants('fuse') ? c.refused : null)),
    verifies: (c) => verifyGroups(c.get('ir'), c.get('groups')),
  },
  {
    name: 'place',
    requires: ['fuse'],
    run: (c) => c.set('placement', placeBuffers(c.get('ir'), c.get('groups'), c.writeBacks, c.inputs)),
  },
  {
    name: 'planMemory',
    requires: ['place'],
    run: (c) => c.set('plan', planMemory(lifetimes(c))),
    verifies: (c) => verifyPlan(lifetimes(c), c.get('plan')),
  },
  {
    name: 'emit',
    requires: ['place'],
    run: (c) =>
      c.set(
        'kernels',
        c.get('groups').map((group, i) => emitTimed(`${c.name}_k${i}`, group, c.get('placement'))),
      ),
    verifies: (c) => verifyEmitted(c.get('kernels')),
  },
  {
    name: 'assemble',
    requires: ['planMemory', 'emit'],
    run: (c) => {
      const steps = c.get('kernels').map(({ step }) => step)
      return c.set('program', buildProgram(c.name, c.get('ir'), steps, c.get('plan'), c.get('placement')))
    },
  },
]

/** A compiled graph: call it with one value per placeholder; it returns the graph's outputs as an array. */
export interface CompiledGraph {
  (...inputs: unknown[]): unknown[]
  readonly kernels: readonly KernelReport[]
  /** The generated JavaScript that calls the kernels. */
  readonly source: string
  /** The size in bytes of the arena that its temporaries share. */
  readonly arenaBytes: number
  /** The positions of outputs that are written directly to the memory of their input (see `meta.writeBacks` of the graph module). */
  readonly writtenInPlace: ReadonlySet<number>
  /** Whether it is one operator, of which an eager kernel computes the same bits. */
  readonly isProgram?: () => boolean
  /** The stages that compiled it, with the time that each took; none where an earlier process has. */
  readonly stages: readonly PassRun[]
}

/** Whether a graph is one operator that an eager kernel computes with the same bits: pointwise, or left to that kernel. Sums may be taken in another order. */
function isOneOperatorOf({ graph }: GraphModule, { nodes }: IrGraph): boolean {
  const [only] = nodes
  const calls = [...graph.nodes].filter(({ op }) => op !== 'placeholder' && op !== 'output')
  return calls.length === 1 && nodes.length === 1 && (only?.kind === 'pointwise' || only?.kind === 'extern')
}

const assembled = (c: Compilation): Assembled => ({
  program: c.get('program'),
  reports: c.get('kernels').map(({ report }) => report),
  arenaBytes: c.get('plan').bytes,
  outputsInPlace: c.get('placement').outputsInPlace,
  isOneOperator: isOneOperatorOf(c.graph, c.get('ir')),
  draws: c.get('ir').draws,
})

let compiledGraphs = 0

/** Compiles graphs whose tensors are on a device, and returns null for others; null until a device was loaded. */
export const deviceCompiler: {
  compile: ((gm: GraphModule, exampleInputs: readonly unknown[], writeBacks: ReadonlyMap<number, number>) => CompiledGraph | null) | null
} = { compile: null }

/**
 * Compiles a functional graph to fused WebAssembly kernels; the backend 'inductor'.
 * `exampleInputs` give the specs of the placeholders (tensors, real or fake, or numbers); they are not read.
 * `gm.meta.writeBacks` (output position -> placeholder position) lists outputs that the caller stores into an input. They are written in place where that
 * makes no difference to any reader. Where the inputs are on a device, the graph is compiled for that.
 */
export function compileFx(gm: GraphModule, exampleInputs: readonly unknown[]): CompiledGraph {
  checkGraphModule('compileFx', gm)
  checkArray('compileFx', 'exampleInputs', exampleInputs)
  const onDevice = deviceCompiler.compile?.(gm, exampleInputs, writeBacksOf(gm)) ?? null
  if (onDevice !== null) return onDevice
  const specs = exampleInputs.map((input) =>
    input instanceof Tensor ? { shape: input.shape, dtype: input.dtype, strides: input.strides } : Number(input),
  )
  const compilation = new Compilation(`compiled_graph_${compiledGraphs++}`, gm, specs, writeBacksOf(gm))
  let runs: readonly PassRun[] = []
  const { program, reports, arenaBytes, outputsInPlace, isOneOperator, draws } = assembledOnce(compilation, () => {
    const observers = [tellingStages, ...compileObservers()]
    runs = runPasses(stages, compilation, { observers }, { nodes: (c) => c.nodes, text: (c) => c.text }).runs
    return assembled(compilation)
  })
  const { fn, graph } = currentScope()
  const kernels = reports.map((report): KernelReport => {
    const computedBy = program.computedBy.get(report.name)
    return computedBy === undefined ? report : { ...report, computedBy }
  })
  const { name } = compilation
  const observedKernels = new Map(kernels.map((report) => [report.name, { ...report, program: name }]))
  const tell: OnLaunch = (kernel, start, end) => {
    const report = observedKernels.get(kernel)
    if (report === undefined) return
    observed.observer?.launched(report, start, end)
    if (!wants('launch')) return
    const { kind: type, origins, flops, bytes } = report
    const { engine, threads } = report.computedBy?.() ?? { engine: 'eager', threads: 1 }
    emit({ kind: 'launch', program: name, kernel, type, engine, threads, origins, flops, bytes, milliseconds: end - start })
  }
  const timed = (inputs: readonly unknown[]): unknown[] => inScope({ fn, graph }, () => program.timed(inputs, tell))
  const call = (...given: unknown[]): unknown[] => {
    const inputs = withDraws(draws, specs.length, given)
    if (eventState.on && wants('launch')) return timed(inputs)
    return observed.observer === null ? program.run(inputs) : program.timed(inputs, tell)
  }
  return Object.assign(call, {
    kernels,
    source: program.source,
    arenaBytes,
    writtenInPlace: outputsInPlace,
    isProgram: () => isOneOperator,
    stages: runs,
  })
}
