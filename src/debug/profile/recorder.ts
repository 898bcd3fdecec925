// Records what runs while a profile is taken, as spans that nest: modules, nodes of GraphModules, operators with those that they are composed of, and kernels of compiled functions.
// Whatever it does for a span counts as the program's time, so it only writes numbers (spans.ts); the rest is worked out when the profile is over.
import { backwardState, upcomingSeq } from '../../autograd/index.ts'
import { dispatchState, isArgList, observed } from '../../dispatch/index.ts'
import type { Arg, ObservedKernel, OpDef, Result } from '../../dispatch/index.ts'
import { budget, peakSince, watchPeak } from '../../kernels/budget.ts'
import { currentEngine, dtypeInfo } from '../../kernels/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { ProfileEvent } from './event.ts'
import { formulaOf } from './flops.ts'
import type { Formula } from './flops.ts'
import { GraphRuns } from './graphRuns.ts'
import { ModuleCalls } from './moduleCalls.ts'
import { ALLOCATIONS, BYTES, END, FLOPS, IN_USE, MEMORY, PARENT, PEAK, SEQUENCE, START, Spans, TAPE } from './spans.ts'
import type { Site } from './spans.ts'

/** An operator, and what its calls are asked for. */
interface OperatorSite extends Site {
  readonly formula: Formula | null
  readonly isView: boolean
}

const inUse = (): number => budget.heap + budget.spilled

const NO_GRAPH = { graph: null, nodes: [] }

/** Records between `start`'s call and that of what it returns. */
export class Recorder {
  readonly #spans = new Spans()
  /** The positions of the spans that have not ended, outermost first. */
  readonly #open: number[] = []
  #depth = 0
  /** The operators among them, by their depths. */
  readonly #computing: OperatorSite[] = []
  readonly #operators = new Map<OpDef, OperatorSite>()
  readonly #composites = new Map<string, Site>()
  readonly #modules = new Map<string, Site>()
  readonly #nodes = new Map<string, Site>()
  readonly #kernels = new Map<ObservedKernel, Site>()
  /** The node of the tape that runs, and the place of its name. */
  #tapeNode: unknown = null
  #tapePlace = 0

  /** What was recorded. */
  events(): readonly ProfileEvent[] {
    return this.#spans.events()
  }

  /** Records until the returned function is called. */
  start(): () => void {
    const graphs = new GraphRuns({
      enter: ({ name }) => this.#begin(siteOf(this.#nodes, name, 'node', null)),
      leave: () => this.#end(),
    })
    const modules = new ModuleCalls({
      enter: ({ path }) => this.#begin(siteOf(this.#modules, path, 'module', null)),
      run: ({ module }, forward) => graphs.run(module, forward),
      leave: () => this.#end(),
    })
    const outer = observed.observer
    observed.observer = {
      begin: (op) => {
        const site = this.#operator(op)
        this.#computing[this.#depth] = site
        this.#begin(site)
      },
      end: (_op, args, result) => {
        const time = performance.now()
        this.#end(time)
        if (result !== null) this.#describe(args, result)
      },
      beginComposite: (qualname) => this.#begin(siteOf(this.#composites, qualname, 'operator', 'composite')),
      endComposite: () => this.#end(),
      launched: (kernel, start, end) => this.#launched(kernel, start, end),
    }
    const stop = modules.start()
    return () => {
      stop()
      observed.observer = outer
      // A program may end in the middle of something.
      while (this.#depth > 0) this.#end()
    }
  }

  #operator(op: OpDef): OperatorSite {
    const instructions = currentEngine()
    let site = this.#operators.get(op)
    if (site === undefined || site.instructions !== instructions) {
      site = { kind: 'operator', name: op.qualname, engine: 'eager', instructions, ...NO_GRAPH, formula: formulaOf(op), isView: op.tags.has('view') }
      this.#operators.set(op, site)
    }
    return site
  }

  #begin(site: Site): void {
    const spans = this.#spans
    const depth = this.#depth++
    const position = spans.add(site)
    const { row, at } = spans
    row[at + PARENT] = depth === 0 ? -1 : (this.#open[depth - 1] ?? -1)
    this.#open[depth] = position
    const tapeNode = backwardState.node
    if (tapeNode !== null) {
      if (tapeNode !== this.#tapeNode) [this.#tapeNode, this.#tapePlace] = [tapeNode, spans.placeOfTape(tapeNode.name)]
      row[at + SEQUENCE] = tapeNode.seq
      row[at + TAPE] = this.#tapePlace
    } else row[at + SEQUENCE] = site.kind === 'operator' && dispatchState.recording ? upcomingSeq() : -1
    row[at + ALLOCATIONS] = budget.allocations
    row[at + MEMORY] = inUse()
    row[at + PEAK] = watchPeak()
    row[at + START] = performance.now()
  }

  /** What the operator computed whose span was ended last, which is the current row. */
  #describe(args: readonly Arg[], result: Result): void {
    const spans = this.#spans
    const site = this.#computing[this.#depth]
    if (site === undefined) return
    const { formula, isView } = site
    spans.beginShapes()
    const given = this.#addArgs(args)
    if (!isView)
      spans.row[spans.at + BYTES] = given + (result instanceof Tensor ? bytesIn(result) : result.reduce((sum, tensor) => sum + bytesIn(tensor), 0))
    if (formula === null) return
    const first = result instanceof Tensor ? result : result[0]
    if (first !== undefined) spans.row[spans.at + FLOPS] = formula(args, first)
  }

  /** Adds the shapes of the tensors among arguments, and returns their bytes. */
  #addArgs(args: readonly Arg[]): number {
    let bytes = 0
    for (let i = 0; i < args.length; i++) {
      const arg = args[i]
      if (arg instanceof Tensor) {
        this.#spans.addShape(arg.sizes)
        bytes += bytesIn(arg)
      } else if (isArgList(arg)) bytes += this.#addArgs(arg)
    }
    return bytes
  }

  /** Ends the span that was begun last. */
  #end(time: number = performance.now()): void {
    const spans = this.#spans
    const position = this.#open[--this.#depth]
    if (position === undefined) return
    spans.find(position)
    const { row, at } = spans
    const now = inUse()
    row[at + END] = time
    row[at + PEAK] = peakSince(row[at + PEAK] ?? 0)
    row[at + IN_USE] = now
    row[at + MEMORY] = now - (row[at + MEMORY] ?? 0)
    row[at + ALLOCATIONS] = budget.allocations - (row[at + ALLOCATIONS] ?? 0)
  }

  /** A kernel of a compiled function has run. If it is an eager kernel, the operator has been recorded already. */
  #launched(kernel: ObservedKernel, start: number, end: number): void {
    let site = this.#kernels.get(kernel)
    if (site === undefined) this.#kernels.set(kernel, (site = kernelSite(kernel)))
    const spans = this.#spans
    spans.add(site)
    const { row, at } = spans
    const tapeNode = backwardState.node
    row[at + START] = start
    row[at + END] = end
    row[at + PARENT] = this.#depth === 0 ? -1 : (this.#open[this.#depth - 1] ?? -1)
    row[at + SEQUENCE] = -1
    row[at + TAPE] = tapeNode === null ? 0 : spans.placeOfTape(tapeNode.name)
    row[at + FLOPS] = kernel.flops ?? 0
    // The operator inside of an eager kernel counts them.
    row[at + BYTES] = site.engine === 'eager' ? 0 : kernel.bytes
    row[at + PEAK] = row[at + IN_USE] = inUse()
  }
}

function siteOf(sites: Map<string, Site>, name: string, kind: Site['kind'], engine: Site['engine']): Site {
  let site = sites.get(name)
  if (site === undefined) sites.set(name, (site = { kind, name, engine, instructions: null, ...NO_GRAPH }))
  return site
}

const kernelSite = ({ name, kind, engine, program, origins }: ObservedKernel): Site => ({
  kind: 'kernel',
  name,
  engine: kind === 'extern' ? 'eager' : kind === 'template' ? 'template' : 'loops',
  instructions: engine,
  graph: program,
  nodes: origins,
})

const bytesIn = ({ numel, dtype }: Tensor): number => numel * dtypeInfo[dtype].size
