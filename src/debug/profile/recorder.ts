// Records what runs while a profile is taken, as spans that nest: modules, nodes of GraphModules, operators with those that they are composed of, and kernels of compiled functions.
// Whatever it does for a span counts as the program's time, so it makes one object for each, and no other.
import { backwardState, upcomingSeq } from '../../autograd/index.ts'
import { dispatchState, isArgList, observed } from '../../dispatch/index.ts'
import type { Arg, ObservedKernel, OpDef, Result } from '../../dispatch/index.ts'
import { budget, peakSince, watchPeak } from '../../kernels/budget.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { ProfileEngine, ProfileEvent, ProfileKind } from './event.ts'
import { flopsOf } from './flops.ts'
import { GraphRuns } from './graphRuns.ts'
import { ModuleCalls } from './moduleCalls.ts'

type Span = { -readonly [K in keyof ProfileEvent]: ProfileEvent[K] }

/** A span that has not ended. The list of them is reused. */
interface Open {
  span: Span
  position: number
  /** Whether it, or a span around it, has a number on the tape. */
  isOnTape: boolean
  /** The peak of memory before it began, which its end restores. */
  peakBefore: number
}

const inUse = (): number => budget.heap + budget.spilled

const NONE: readonly never[] = []

/** Records between `start`'s call and that of what it returns. */
export class Recorder {
  readonly events: ProfileEvent[] = []
  readonly #open: Open[] = []
  #depth = 0
  /** The modules whose forward made the nodes of the tape. */
  readonly #makers = new Map<number, string | null>()
  /** The node of the tape that runs, and its name. */
  #tapeNode: unknown = null
  #tapeName: string | null = null

  /** Records until the returned function is called. */
  start(): () => void {
    const graphs = new GraphRuns({
      enter: ({ name }) => {
        const span = this.#begin('node', name, null)
        span.graph = span.module
      },
      leave: () => this.#end(),
    })
    const modules = new ModuleCalls({
      enter: ({ path }) => void this.#begin('module', path, null),
      run: ({ module }, forward) => graphs.run(module, forward),
      leave: () => this.#end(),
    })
    const outer = observed.observer
    observed.observer = {
      kernel: (op, args, run) => this.#operator(op, args, run),
      composite: (qualname, run) => this.#composite(qualname, run),
      launched: (kernel, start, end) => this.#launched(kernel, start, end),
    }
    const stop = modules.start()
    return () => {
      stop()
      observed.observer = outer
    }
  }

  #composite(qualname: string, run: () => Result): Result {
    this.#begin('operator', qualname, 'composite')
    try {
      return run()
    } finally {
      this.#end()
    }
  }

  #operator(op: OpDef, args: readonly Arg[], run: () => Result): Result {
    const span = this.#begin('operator', op.qualname, 'eager')
    try {
      const result = run()
      span.flops = flopsOf(op, args, result)
      const shapes: (readonly number[])[] = []
      const given = addArgs(args, shapes)
      span.shapes = shapes
      if (!op.tags.has('view'))
        span.bytes = given + (result instanceof Tensor ? bytesIn(result) : result.reduce((sum, tensor) => sum + bytesIn(tensor), 0))
      return result
    } finally {
      this.#end()
    }
  }

  #begin(kind: ProfileKind, name: string, engine: ProfileEngine | null): Span {
    const depth = this.#depth
    const around = depth === 0 ? undefined : this.#open[depth - 1]
    const tapeNode = backwardState.node
    const caller = around === undefined ? null : around.span.module
    const isInside = around !== undefined && around.isOnTape
    let sequence: number | null = null
    let module = kind === 'module' ? name : caller
    let backward: string | null = null
    if (tapeNode !== null) {
      sequence = tapeNode.seq
      // Nodes put their names together each time.
      if (tapeNode !== this.#tapeNode) [this.#tapeNode, this.#tapeName] = [tapeNode, tapeNode.name]
      backward = this.#tapeName
      if (kind !== 'module' && caller === null) module = this.#makers.get(sequence) ?? null
    } else if (kind === 'operator' && !isInside && dispatchState.recording) {
      // An operator that runs in another one makes no node of its own.
      sequence = upcomingSeq()
      this.#makers.set(sequence, caller)
    }
    const span: Span = {
      kind,
      name,
      start: 0,
      end: 0,
      self: 0,
      parent: around === undefined ? null : around.position,
      module,
      graph: null,
      nodes: NONE,
      engine,
      shapes: NONE,
      backward,
      sequence,
      flops: 0,
      bytes: 0,
      allocations: budget.allocations,
      memory: inUse(),
      peak: 0,
      inUse: 0,
    }
    const position = this.events.push(span) - 1
    const isOnTape = isInside || sequence !== null
    const own = this.#open[depth]
    if (own === undefined) this.#open.push({ span, position, isOnTape, peakBefore: watchPeak() })
    else {
      own.span = span
      own.position = position
      own.isOnTape = isOnTape
      own.peakBefore = watchPeak()
    }
    this.#depth = depth + 1
    span.start = performance.now()
    return span
  }

  #end(): void {
    const end = performance.now()
    const open = this.#open[--this.#depth]
    if (open === undefined) return
    const { span, peakBefore } = open
    const time = end - span.start
    const now = inUse()
    span.end = end
    span.self += time
    span.peak = peakSince(peakBefore)
    span.inUse = now
    span.memory = now - span.memory
    span.allocations = budget.allocations - span.allocations
    this.#takeFromAround(span.kind, time)
  }

  /** Time is no longer that of the span of its kind around it, which for a kernel is an operator. */
  #takeFromAround(kind: ProfileKind, time: number): void {
    const wanted = kind === 'kernel' ? 'operator' : kind
    for (let at = this.#depth - 1; at >= 0; at--) {
      const span = this.#open[at]?.span
      if (span === undefined || span.kind !== wanted) continue
      span.self -= time
      return
    }
  }

  /** A kernel of a compiled function has run. If it is an eager kernel, the operator has been recorded already: it is inside. */
  #launched({ name, program, kind, origins, flops, bytes }: ObservedKernel, start: number, end: number): void {
    const around = this.#depth === 0 ? undefined : this.#open[this.#depth - 1]
    const parent = around === undefined ? null : around.position
    const position = this.events.length
    const isEager = kind === 'extern'
    const inside = isEager ? this.#moveInside(position, parent, start) : 0
    const now = inUse()
    this.events.push({
      kind: 'kernel',
      name,
      start,
      end,
      self: end - start - inside,
      parent,
      module: around === undefined ? null : around.span.module,
      graph: program,
      nodes: origins,
      engine: isEager ? 'eager' : kind === 'template' ? 'template' : 'loops',
      shapes: NONE,
      backward: backwardState.node?.name ?? null,
      sequence: null,
      flops: flops ?? 0,
      // The operator inside of it counts them.
      bytes: isEager ? 0 : bytes,
      allocations: 0,
      memory: 0,
      peak: now,
      inUse: now,
    })
    this.#takeFromAround('kernel', end - start - inside)
  }

  /** Makes the events since `start` in `parent` those of the event at `position`, and returns their time. */
  #moveInside(position: number, parent: number | null, start: number): number {
    let time = 0
    for (let i = position - 1; i >= 0 && i !== parent; i--) {
      const event: Span | undefined = this.events[i]
      if (event === undefined || event.start < start) break
      if (event.parent !== parent) continue
      event.parent = position
      time += event.end - event.start
    }
    return time
  }
}

const bytesIn = ({ numel, dtype }: Tensor): number => numel * dtypeInfo[dtype].size

/** Adds the shapes of the tensors among arguments to a list, and returns their bytes. */
function addArgs(args: readonly Arg[], shapes: (readonly number[])[]): number {
  let bytes = 0
  for (const arg of args)
    if (arg instanceof Tensor) {
      shapes.push(arg.sizes)
      bytes += bytesIn(arg)
    } else if (isArgList(arg)) bytes += addArgs(arg, shapes)
  return bytes
}
