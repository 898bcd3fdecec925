// Records what runs while a profile is taken, as spans that nest: modules, nodes of GraphModules, operators with those that they are composed of, and kernels of compiled functions.
// Whatever it does for a span counts as the program's time, so it only writes numbers (spans.ts); the rest is worked out when the profile is over.
import { backwardState, upcomingSeq } from '../../autograd/index.ts'
import { dispatchState, observed } from '../../dispatch/index.ts'
import type { ObservedKernel, OpDef } from '../../dispatch/index.ts'
import { budget, peakSince, watchPeak } from '../../kernels/memory/budget.ts'
import { currentEngine } from '../../kernels/index.ts'
import type { ProfileEvent } from './event.ts'
import { GraphRuns } from './graphRuns.ts'
import { ModuleCalls } from './moduleCalls.ts'
import { OperatorSignatures } from './signatures.ts'
import type { Signature } from './signatures.ts'
import { ALLOCATIONS, END, IN_USE, MEMORY, PARENT, PEAK, SEQUENCE, SIGNATURE, START, Spans, TAPE } from './spans.ts'
import type { Site, SiteFacts } from './spans.ts'

/** An operator, and what it was called with. */
interface OperatorSite extends Site {
  readonly signatures: OperatorSignatures
}

const inUse = (): number => budget.heap + budget.spilled

/** What only kernels have. */
const ONE_OPERATOR = { graph: null, nodes: [], flops: 0, bytes: 0 }

/** Records between `start`'s call and that of what it returns. */
export class Recorder {
  readonly #signatures: Signature[] = []
  readonly #spans = new Spans(this.#signatures)
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

  /** Forgets what was recorded, the run of a program, and makes room for `runs`. */
  restart(runs: number): void {
    this.#spans.clear(runs)
  }

  /** Records until the returned function is called. */
  start(): () => void {
    const graphs = new GraphRuns({
      enter: ({ name }) => this.#begin(this.#siteOf(this.#nodes, name, 'node', null)),
      leave: () => this.#end(),
    })
    const modules = new ModuleCalls({
      enter: ({ path }) => this.#begin(this.#siteOf(this.#modules, path, 'module', null)),
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
        const site = this.#computing[this.#depth]
        if (result !== null && site !== undefined) this.#spans.row[this.#spans.at + SIGNATURE] = site.signatures.of(args, result).index + 1
      },
      beginComposite: (qualname) => this.#begin(this.#siteOf(this.#composites, qualname, 'operator', 'composite')),
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
      const signatures = site?.signatures ?? new OperatorSignatures(op, this.#signatures)
      site = this.#spans.siteOf({ kind: 'operator', name: op.qualname, engine: 'eager', instructions, ...ONE_OPERATOR, signatures })
      this.#operators.set(op, site)
    }
    return site
  }

  #siteOf(sites: Map<string, Site>, name: string, kind: Site['kind'], engine: Site['engine']): Site {
    let site = sites.get(name)
    if (site === undefined) sites.set(name, (site = this.#spans.siteOf({ kind, name, engine, instructions: null, ...ONE_OPERATOR })))
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
      if (tapeNode !== this.#tapeNode) {
        this.#tapeNode = tapeNode
        this.#tapePlace = spans.placeOfTape(tapeNode.name)
      }
      row[at + SEQUENCE] = tapeNode.seq
      row[at + TAPE] = this.#tapePlace
    } else row[at + SEQUENCE] = site.kind === 'operator' && dispatchState.recording ? upcomingSeq() : -1
    row[at + ALLOCATIONS] = budget.allocations
    row[at + MEMORY] = inUse()
    row[at + PEAK] = watchPeak()
    row[at + START] = performance.now()
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
    if (site === undefined) this.#kernels.set(kernel, (site = this.#spans.siteOf(factsOf(kernel))))
    const spans = this.#spans
    spans.add(site)
    const { row, at } = spans
    const tapeNode = backwardState.node
    row[at + START] = start
    row[at + END] = end
    row[at + PARENT] = this.#depth === 0 ? -1 : (this.#open[this.#depth - 1] ?? -1)
    row[at + SEQUENCE] = -1
    row[at + TAPE] = tapeNode === null ? 0 : spans.placeOfTape(tapeNode.name)
    row[at + PEAK] = row[at + IN_USE] = inUse()
  }
}

const factsOf = ({ name, kind, engine, program, origins, flops, bytes }: ObservedKernel): SiteFacts => ({
  kind: 'kernel',
  name,
  engine: kind === 'extern' ? 'eager' : kind === 'template' ? 'template' : 'loops',
  instructions: engine,
  graph: program,
  nodes: origins,
  flops: flops ?? 0,
  // The operator inside of an eager kernel counts them.
  bytes: kind === 'extern' ? 0 : bytes,
})
