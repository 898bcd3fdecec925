// A call of a compiled function, told to those who listen to events: its start and end, the operators that it records, and the modules and functions that it passes through. There is one
// only while someone listens.
import { dispatchState, isArgList } from '../../dispatch/index.ts'
import type { Arg } from '../../dispatch/index.ts'
import { currentScope, emit, enterScope, leaveScope, newId, wants } from '../../events/index.ts'
import type { CallOutcome, InlineEvent, Scope } from '../../events/index.ts'
import { Module, setModuleCallHook } from '../../module/index.ts'
import type { ModuleCallHook } from '../../module/index.ts'
import { valueText } from '../../protocol/index.ts'
import { captureStack } from '../../provenance/index.ts'
import type { Frame } from '../../provenance/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { EndedSegment } from '../end/endedSegment.ts'
import type { Step } from '../tree/traceTree.ts'

/** A tensor as text. */
export const specText = ({ dtype, shape }: Pick<Tensor, 'dtype' | 'shape'>): string => `${dtype}[${shape.join(', ')}]`

/** Leaves of arguments as text: what a trace tree is chosen by. */
export const describeLeaves = (leaves: readonly unknown[]): string[] => leaves.map((leaf) => (leaf instanceof Tensor ? specText(leaf) : typeof leaf))

/** An argument of an operator as text. */
function argText(arg: Arg): string {
  if (arg instanceof Tensor) return specText(arg)
  return isArgList(arg) ? `[${arg.map(argText).join(', ')}]` : valueText(arg)
}

/** A module or function that capture is inside of. `key` tells one call of a function from the next. */
interface Open extends Pick<InlineEvent, 'what' | 'name' | 'type' | 'user'> {
  readonly key: string | null
}

const placeOf = ({ file, line, column }: Frame): string => `${file}:${line}:${column}`

export class CallWatch {
  readonly #name: string
  readonly #paths: ReadonlyMap<Module, string>
  readonly #start = performance.now()
  readonly #before: Scope
  /** The frames outside of the compiled function. */
  readonly #outside: readonly Frame[]
  readonly #inlines = wants('inline')
  readonly #hooked: ModuleCallHook | null = null
  #open: readonly Open[] = []
  #outcome: CallOutcome = 'eager'
  #path: string | null = null

  /** Begins to watch a call. {@link end} must follow. */
  constructor(fn: number, name: string, target: unknown, leaves: readonly unknown[]) {
    this.#name = name
    this.#outside = captureStack().frames
    this.#paths = new Map(this.#inlines && target instanceof Module ? [...target.namedModules()].map(([path, module]) => [module, path]) : [])
    const { call: outer } = currentScope()
    this.#before = enterScope({ fn, call: newId('call'), graph: null })
    const user = this.#outside.at(-1) ?? null
    emit({ kind: 'call', phase: 'start', name, args: describeLeaves(leaves), outer, user })
    if (this.#inlines) this.#hooked = setModuleCallHook({ callModule: (module, forward) => this.#callModule(module, forward) })
  }

  /** How the call was answered. `tree`: the number of its trace tree; `ended`: the segments that it ran. */
  answered(outcome: CallOutcome, tree: number, ended: readonly EndedSegment[] = []): void {
    this.#outcome = outcome
    this.#path = [String(tree), ...ended.map(({ end }) => branchesTo(end))].join('/').replace(/\/+$/, '')
  }

  /** The call is over; `error` is what it threw, in an array. */
  end(error: readonly [unknown] | null): void {
    if (this.#inlines) {
      setModuleCallHook(this.#hooked)
      this.#leaveTo(0)
    }
    const [thrown] = error ?? []
    emit({
      kind: 'call',
      phase: 'end',
      name: this.#name,
      outcome: error === null ? this.#outcome : 'failed',
      path: this.#path,
      milliseconds: performance.now() - this.#start,
      error: error === null ? null : thrown instanceof Error ? thrown.name : typeof thrown,
    })
    leaveScope(this.#before)
  }

  /** An operator was recorded. */
  recorded(step: Step, args: readonly Arg[]): void {
    if (this.#inlines) this.#follow(this.#inside(step.stack?.frames ?? []))
    if (!wants('record')) return
    emit({
      kind: 'record',
      operator: step.operator.qualname,
      args: args.map(argText),
      results: step.results.map(specText),
      stack: step.stack?.frames ?? [],
    })
  }

  // ---- modules and functions ----

  #callModule(module: Module, forward: () => unknown): unknown {
    // Backends and other modes call modules of their own.
    if (dispatchState.mode?.name !== 'LazyMode') return forward()
    const frames = this.#inside(captureStack().frames)
    this.#follow(frames)
    const depth = this.#open.length
    const type = module.constructor.name
    const path = this.#paths.get(module)
    this.#enter({ what: 'module', name: path === undefined || path === '' ? type : path, type, user: frames.at(-1) ?? null, key: null })
    try {
      return forward()
    } finally {
      this.#leaveTo(depth)
    }
  }

  /** The frames from the compiled function on: those outside of it stand before them. (The outermost ones may be missing: engines record only some.) */
  #inside(frames: readonly Frame[]): readonly Frame[] {
    const places = this.#outside.map(placeOf)
    for (let from = 0; from < places.length; from++) {
      const rest = places.slice(from)
      if (rest.length <= frames.length && rest.every((place, i) => frames[i] !== undefined && placeOf(frames[i]) === place))
        return frames.slice(rest.length)
    }
    return frames
  }

  /**
   * Enters and leaves functions until those of `frames` are open, as far as they are inside of the module that was entered last. Frames of a forward are modules, which are seen when they
   * are called.
   */
  #follow(frames: readonly Frame[]): void {
    const base = this.#open.findLastIndex(({ what }) => what === 'module') + 1
    const site = this.#open[base - 1]?.user ?? null
    const from = site === null ? 1 : frames.findLastIndex((frame) => placeOf(frame) === placeOf(site)) + 1
    const wanted = frames.slice(from).flatMap(({ fn, file }, i): Open[] => {
      const caller = frames[from + i - 1]
      if (caller === undefined || /(?:^|\.)forward$/.test(fn)) return []
      return [{ what: 'function', name: fn, type: null, user: caller, key: `${fn} ${file} ${placeOf(caller)}` }]
    })
    const open = this.#open.slice(base)
    const parting = open.findIndex(({ key }, i) => key !== wanted[i]?.key)
    const same = parting < 0 ? open.length : parting
    this.#leaveTo(base + same)
    for (const entered of wanted.slice(same)) this.#enter(entered)
  }

  #enter(open: Open): void {
    this.#open = [...this.#open, open]
    this.#tell('enter', open, this.#open.length)
  }

  #leaveTo(depth: number): void {
    for (const [i, open] of [...this.#open.entries()].slice(depth).reverse()) this.#tell('exit', open, i + 1)
    this.#open = this.#open.slice(0, depth)
  }

  #tell(phase: InlineEvent['phase'], { what, name, type, user }: Open, depth: number): void {
    emit({ kind: 'inline', phase, what, name, type, depth, user })
  }
}

/** The number of the branch at each step before `end` after which recorded paths part. */
function branchesTo(end: Step): string {
  const branches: number[] = []
  for (let step = end; step.parent !== null; step = step.parent)
    if (step.parent.children.length > 1) branches.push(step.parent.children.indexOf(step))
  return branches.reverse().join('.')
}
