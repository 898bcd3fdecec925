// Records what runs while a profile is taken, as spans that nest: modules, operators with those that they are composed of, and kernels of compiled functions.
import { backwardState, upcomingSeq } from '../../autograd/index.ts'
import { dispatchState, isArgList, observed } from '../../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../../dispatch/index.ts'
import { onEvent } from '../../events/index.ts'
import { budget } from '../../kernels/budget.ts'
import { Tensor } from '../../tensor/index.ts'
import { flopsOf } from './flops.ts'
import { ModuleCalls } from './moduleCalls.ts'
import { bytesOf } from './units.ts'

/** What a span is: an operator, a kernel of a compiled function, or the call of a module. */
export type ProfileKind = 'operator' | 'kernel' | 'module'

/** Something that ran. Times are in milliseconds, as `performance.now()` counts them. */
export interface ProfileEvent {
  readonly kind: ProfileKind
  /** The operator's qualified name, the kernel's name, or the path of the module: `torch.mm`, `Net.fc1`. */
  readonly name: string
  readonly start: number
  readonly end: number
  /** The time without that of the events inside. In a module only modules count as inside, so its own operators are its own time. */
  readonly self: number
  /** The position among the events of the one that it ran in; null for none. */
  readonly parent: number | null
  /** The module that it belongs to: in a backward, the one whose forward called the operator. Null outside of modules. */
  readonly module: string | null
  /** The operator whose gradient is computed, by the name of its node on the tape; null outside of backward. */
  readonly backward: string | null
  /** The number of the tape's node that the operator made, or whose gradient it computes. */
  readonly sequence: number | null
  /** Floating-point operations of the operator itself; null for a kernel, of which they are not known. */
  readonly flops: number | null
  /** Bytes of the tensors that the operator got and returned; null for a kernel. A view moves none. */
  readonly bytes: number | null
  /** Blocks of memory that were allocated while it ran. */
  readonly allocations: number
  /** Bytes in use at its end minus those at its start. */
  readonly memory: number
  /** Bytes in use at its end. */
  readonly inUse: number
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

const inUse = (): number => budget.heap + budget.spilled

/** Records between `during`'s start and end. */
export class Recorder {
  readonly events: ProfileEvent[] = []
  readonly #open: number[] = []
  /** The modules whose forward made the nodes of the tape. */
  readonly #makers = new Map<number, string | null>()

  /** Runs `fn` and records it. What it throws is thrown on; nothing is recorded afterwards. */
  during(fn: () => void): void {
    const modules = new ModuleCalls({
      enter: ({ path }) => void this.#begin('module', path),
      leave: () => this.#end(),
    })
    const outer = observed.observer
    observed.observer = {
      kernel: (op, args, run) => this.#operator(op.qualname, op, args, run),
      composite: (qualname, run) => this.#operator(qualname, null, [], run),
    }
    const listening = onEvent(({ kernel, time, milliseconds }) => this.#launched(kernel, time, milliseconds), { kinds: ['launch'] })
    try {
      modules.during(fn)
    } finally {
      listening()
      observed.observer = outer
    }
  }

  #operator(name: string, op: OpDef | null, args: readonly Arg[], run: () => Result): Result {
    const event = this.#begin('operator', name)
    try {
      const result = run()
      if (op !== null) {
        event.flops = flopsOf(op, args, result)
        event.bytes = op.tags.has('view') ? 0 : bytesOf(tensorsIn([args, result].flat()))
      }
      return result
    } finally {
      this.#end()
    }
  }

  #begin(kind: ProfileKind, name: string): Mutable<ProfileEvent> {
    const parent = this.#open.at(-1) ?? null
    const node = backwardState.node
    const caller = this.#calling(parent)
    // An operator that runs in another one makes no node of its own.
    const makes = kind === 'operator' && dispatchState.recording && this.#around(parent, (event) => event.sequence !== null) === undefined
    const sequence = node?.seq ?? (makes ? upcomingSeq() : null)
    if (makes && node === null && sequence !== null) this.#makers.set(sequence, caller)
    const module = kind === 'module' ? name : node === null ? caller : (caller ?? this.#makers.get(node.seq) ?? null)
    const [flops, bytes] = [0, 0]
    const [allocations, memory] = [budget.allocations, inUse()]
    const event: Mutable<ProfileEvent> = {
      ...{ kind, name, parent, module, sequence, flops, bytes, allocations, memory },
      ...{ backward: node?.name ?? null, start: 0, end: 0, self: 0, inUse: 0 },
    }
    this.#open.push(this.events.push(event) - 1)
    event.start = performance.now()
    return event
  }

  #end(): void {
    const end = performance.now()
    const event: Mutable<ProfileEvent> | undefined = this.events[this.#open.pop() ?? -1]
    if (event === undefined) return
    event.end = end
    event.self += end - event.start
    event.inUse = inUse()
    event.memory = event.inUse - event.memory
    event.allocations = budget.allocations - event.allocations
    this.#takeFrom(event, end - event.start)
  }

  /** The time of an event is no longer that of the one around it: for a module the next module around it, for others the next operator or kernel. */
  #takeFrom({ kind, parent }: ProfileEvent, milliseconds: number): void {
    const around = this.#around(parent, (event) => (event.kind === 'module') === (kind === 'module'))
    if (around !== undefined) around.self -= milliseconds
  }

  /** The innermost event around that fits. */
  #around(from: number | null, fits: (event: ProfileEvent) => boolean): Mutable<ProfileEvent> | undefined {
    for (let at = from; at !== null;) {
      const event = this.events[at]
      if (event === undefined || fits(event)) return event
      at = event.parent
    }
    return undefined
  }

  #calling(from: number | null): string | null {
    const event = from === null ? undefined : this.events[from]
    return event?.module ?? null
  }

  /** A kernel of a compiled function has run, and took so long until now. If it is an eager kernel, the operator has been recorded already: it is inside. */
  #launched(name: string, end: number, milliseconds: number): void {
    const start = end - milliseconds
    const parent = this.#open.at(-1) ?? null
    const at = this.events.length
    let inside = 0
    for (let i = at - 1; i >= 0 && i !== parent; i--) {
      const event: Mutable<ProfileEvent> | undefined = this.events[i]
      if (event === undefined || event.end <= start) break
      if (event.parent !== parent) continue
      event.parent = at
      inside += event.end - event.start
    }
    const event: ProfileEvent = {
      ...{ kind: 'kernel', name, start, end, parent, self: milliseconds - inside, flops: null, bytes: null, sequence: null },
      ...{ module: this.#calling(parent), backward: backwardState.node?.name ?? null, allocations: 0, memory: 0, inUse: inUse() },
    }
    this.events.push(event)
    this.#takeFrom(event, milliseconds - inside)
  }
}

const tensorsIn = (args: readonly Arg[]): readonly Tensor[] =>
  args.flatMap((arg) => (arg instanceof Tensor ? [arg] : isArgList(arg) ? tensorsIn(arg) : []))
