// One call of a compiled function: the mode under which it runs. Operators compute nothing; each is checked against the trace tree, or recorded in it.
// If the program needs a value, the segment ends: it is compiled (once) and run, and the program continues with the value.
import { isGradEnabled } from '../autograd/index.ts'
import { dispatchBelowAutograd, withoutModes } from '../dispatch/index.ts'
import type { Arg, DispatchMode, OpDef, Result } from '../dispatch/index.ts'
import { captureStack } from '../provenance/index.ts'
import { Tensor, asTensor } from '../tensor/index.ts'
import { EndedSegment, computeAll, endSegment } from './ending.ts'
import type { CompileSegment, Demand } from './ending.ts'
import { FullGraphError } from './errors.ts'
import type { BreakReason } from './explain.ts'
import { EndFirst, Segment } from './segment.ts'
import type { SegmentHost } from './segment.ts'
import { Step } from './traceTree.ts'

/** What a capture needs of the compiled function that it belongs to. */
export interface CaptureHost {
  readonly fullgraph: boolean
  readonly compileSegment: CompileSegment
  /** A name for an outside tensor. */
  nameOf(tensor: Tensor): string | null
  /** Asked before a new path is recorded next to others; `describe` says what differs. False if the limit is reached. */
  mayBranch(describe: () => string): boolean
}

/** The mode of one call. */
export class Capture implements DispatchMode, SegmentHost {
  readonly name = 'LazyMode'
  readonly staysActive = true
  readonly #host: CaptureHost
  #segment: Segment
  readonly #ended: EndedSegment[] = []
  /** The limit of paths is reached: the rest of this call runs operator by operator. */
  #eager = false

  constructor(host: CaptureHost, root: Step) {
    this.#host = host
    this.#segment = new Segment(this, root)
  }

  /** Segments that have ended so far. */
  get ended(): readonly EndedSegment[] {
    return this.#ended
  }

  handle(op: OpDef, args: readonly Arg[]): Result {
    if (this.#eager) return withoutModes(() => dispatchBelowAutograd(op, args))
    try {
      return this.#segment.call(op, args)
    } catch (signal) {
      if (!(signal instanceof EndFirst)) throw signal
      return this.#endFirst(signal, op, args)
    }
  }

  #endFirst(signal: EndFirst, op: OpDef, args: readonly Arg[]): Result {
    if (signal.next === 'eager') {
      this.#eager = true
      computeAll(this.#push())
      return withoutModes(() => dispatchBelowAutograd(op, args))
    }
    this.breakGraph(tensorsOf(args), signal.message)
    if (signal.next === 'record') return this.#segment.call(op, args)
    const { storage } = asTensor(args[0], `the first argument of ${op.qualname}`)
    for (const ended of this.#ended) if (ended.fresh) ended.keepInputs(storage)
    return withoutModes(() => dispatchBelowAutograd(op, args))
  }

  /** Ends the current segment because a value is needed; the program continues in a new one. Throws FullGraphError with fullgraph. */
  breakGraph(needed: readonly Tensor[], reason: string): void {
    if (this.#eager) return
    const brk: BreakReason = { reason, userStack: captureStack() }
    if (this.#host.fullgraph) {
      this.abandon()
      throw new FullGraphError(brk)
    }
    const ended = this.#push()
    const { end } = ended
    end.breakReason ??= brk
    end.after ??= Step.root()
    this.#segment = new Segment(this, end.after)
    this.#end(ended, { needed, gradients: false, keepTape: isGradEnabled() })
  }

  /** Breaks the graph before code that compile cannot see and that may write to any tensor. */
  breakForEagerCode(needed: readonly Tensor[], reason: string): void {
    this.breakGraph(needed, reason)
    for (const ended of this.#ended) if (ended.fresh) ended.keepInputs(null)
  }

  /** Ends the call: computes what is needed of its last segment. */
  finish(needed: readonly Tensor[], gradients: boolean, keepTape: boolean): void {
    if (this.#eager) return
    const ended = this.#push()
    this.#eager = true
    this.#end(ended, { needed, gradients, keepTape })
  }

  /** Ends the current segment without computing it; what it recorded can still be computed on demand. */
  abandon(): void {
    if (this.#eager) return
    this.#push().segment.restoreStorages()
    this.#eager = true
  }

  #push(): EndedSegment {
    const ended = new EndedSegment(this.#segment)
    this.#ended.push(ended)
    return ended
  }

  #end(ended: EndedSegment, demand: Demand): void {
    endSegment(ended, demand, this.#ended.slice(0, -1), this.#host.compileSegment)
  }

  nameOf(tensor: Tensor): string | null {
    return this.#host.nameOf(tensor)
  }

  mayBranch(describe: () => string): boolean {
    return this.#host.mayBranch(describe)
  }

  read(segment: Segment, tensor: Tensor): void {
    if (segment === this.#segment && !this.#eager) this.breakGraph([tensor], 'the value of a tensor is read (item(), toArray(), printing)')
    // There was a compile error, or the segment ended without computing this tensor.
    if (tensor.storage === null) this.#ended.find((e) => e.segment === segment)?.recompute(tensor)
  }
}

/** All tensors among arguments. */
function tensorsOf(args: readonly Arg[]): Tensor[] {
  return args.flatMap((arg) => (arg instanceof Tensor ? [arg] : Array.isArray(arg) ? tensorsOf(arg) : []))
}
