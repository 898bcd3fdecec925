// A compiled function or module, and what one call of it does, from top to bottom: choose the trace tree for these arguments; answer from a shortcut, if there is one; otherwise
// run the program under a Capture (capture.ts), which follows and records the tree; end the capture. What is worth a report goes to reports.ts.
import { hookState, isGradEnabled } from '../../autograd/index.ts'
import { dispatchState, withMode } from '../../dispatch/index.ts'
import { announce, count, eventState } from '../../events/index.ts'
import {
  agreesAsMet,
  callKey,
  callState,
  changeOf,
  keyOf,
  metKey,
  metStateOf,
  metTensorState,
  rankKey,
  readState,
  structureState,
  tensorState,
  watchingModules,
} from '../../guards/index.ts'
import type { MetState, StateKind } from '../../guards/index.ts'
import { Module } from '../../module/index.ts'
import { explainPromise, findOverride, isPromise } from '../../protocol/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { treeFlatten } from '../../pytree/index.ts'
import type { TreeSpec } from '../../pytree/index.ts'
import { Tensor, areTensors } from '../../tensor/index.ts'
import type { Mismatch } from '../reports/reports.ts'
import type { Outcome } from '../tree/budget.ts'
import { Budget } from '../tree/budget.ts'
import { Capture } from './capture.ts'
import type { CapturedCall } from './capture.ts'
import type { BackendChoice } from '../compile/compileSegment.ts'
import { config } from '../../config.ts'
import { placeholderNames } from './placeholderNames.ts'
import { fusionOf } from '../backends/registry.ts'
import { OperatorCalls, ProgramCalls } from './programCalls.ts'
import type { AnsweredCalls } from './programCalls.ts'
import { Reports } from '../reports/reports.ts'
import { Shortcut, Shortcuts } from './shortcut.ts'
import { hasDynamicMarks } from '../tree/marks.ts'
import { SizePolicy } from '../tree/sizes.ts'
import type { SizeRule } from '../tree/sizes.ts'
import { Step } from '../tree/traceTree.ts'
import type { TraceTree } from '../tree/traceTree.ts'
import { CallWatch, describeLeaves } from './watch.ts'

/** Anything that can be compiled. */
export type Callable = (...args: never[]) => unknown

/** Options of {@link CompiledFunction}. */
export interface CompiledFunctionOptions extends BackendChoice {
  readonly fullgraph: boolean
  readonly skipReplay: boolean
  /** Whether sizes may differ from call to call on one path; undefined: where a program has marked some. */
  readonly dynamic: boolean | undefined
}

interface FunctionTree extends TraceTree {
  /** Calls that can be answered without running the function; only with skipReplay. */
  readonly shortcuts: Shortcuts
  /** Calls that the program answers itself; null: none. */
  readonly program: AnsweredCalls | null
  /** Its number among those of the function. */
  readonly index: number
  /** The arguments that it is for. */
  readonly leavesText: string
  readonly state: CallState
}

/** What a tree is chosen by besides the structure of the arguments: the values of `callState`, and of `metTensorState` for each leaf (null: no tensor). */
interface CallState {
  readonly process: readonly unknown[]
  readonly leaves: readonly (readonly unknown[] | null)[]
}

/** The tree of the latest call whose arguments were tensors alone, without sizes that may differ: the next call mostly has such arguments, and its tree is found without a key. */
interface LastTree {
  readonly tree: FunctionTree
  /** The {@link callKey}. */
  readonly state: string
  readonly met: readonly MetState[]
}

export class CompiledFunction {
  readonly #target: Callable | Module
  readonly #options: CompiledFunctionOptions
  readonly #trees = new Map<string, FunctionTree>()
  readonly reports: Reports
  readonly #budget = new Budget()
  #last: LastTree | null = null

  constructor(target: Callable | Module, options: CompiledFunctionOptions) {
    this.#target = target
    this.#options = options
    const { name } = target instanceof Module ? target.constructor : target
    this.reports = new Reports(name)
  }

  reset(): void {
    this.#trees.clear()
    this.#last = null
    this.reports.reset()
    this.#budget.reset()
  }

  /** Runs one call. `self` is its `this`. */
  call(self: unknown, args: readonly unknown[]): unknown {
    // Inside another capture the code becomes part of that graph; under any other mode, and with proxies, it is not captured.
    if (dispatchState.mode !== null) return this.#run(self, args)
    return eventState.on ? this.#watched(self, args) : this.#answer(self, args, null)
  }

  /** A call while someone listens to events. */
  #watched(self: unknown, args: readonly unknown[]): unknown {
    const { fn, name } = this.reports
    const watch = new CallWatch(fn, name, this.#target, flatten(args).leaves)
    let error: readonly [unknown] | null = null
    try {
      return this.#answer(self, args, watch)
    } catch (thrown) {
      error = [thrown]
      throw thrown
    } finally {
      watch.end(error)
    }
  }

  #answer(self: unknown, args: readonly unknown[], watch: CallWatch | null): unknown {
    let leaves = args
    let spec: TreeSpec | null = null
    if (!areTensors(args)) {
      ;({ leaves, spec } = flatten(args))
      if (spec !== null && findOverride(leaves) !== null) return this.#run(self, args)
    }
    const tree = this.#treeFor(leaves, spec, args)
    if (tree === null) return this.#run(self, args)
    for (const shortcut of tree.shortcuts.for(leaves)) {
      const hit = shortcut.take(leaves)
      if (hit === null) continue
      watch?.answered('shortcut', tree.index)
      return hit.result
    }
    if (!this.#budget.mayCapture) return this.#budget.eagerly(() => this.#run(self, args))
    const timed = watch === null && tree.program !== null ? tree.program.meet(leaves) : null
    if (timed !== null) {
      const result = timed.isProgram ? this.#run(self, args) : this.#capture(tree, self, args, null)
      timed.end()
      return result
    }
    return this.#options.skipReplay ? this.#remember(tree, self, args, leaves, watch) : this.#capture(tree, self, args, watch)
  }

  /** The function itself. `compile` promises that callers give the arguments that it takes. */
  #run(self: unknown, args: readonly unknown[]): unknown {
    return Reflect.apply(this.#target, self, args)
  }

  /** A call from which later ones may be answered. */
  #remember(tree: FunctionTree, self: unknown, args: readonly unknown[], leaves: readonly unknown[], watch: CallWatch | null): unknown {
    const before = tensorStates(leaves)
    let capture: Capture | null = null
    const { result, modules } = watchingModules([this.#target, ...leaves], () => this.#capture(tree, self, args, watch, (made) => (capture = made)))
    const shortcut = capture === null ? null : Shortcut.from(capture, { leaves, before, modules }, result)
    if (shortcut !== null) tree.shortcuts.add(leaves, shortcut, config.recompileLimit + 1)
    return result
  }

  /** `onEnd` gets the capture when the call has returned all that it will. */
  #capture(tree: FunctionTree, self: unknown, args: readonly unknown[], watch: CallWatch | null, onEnd?: (capture: Capture) => void): unknown {
    const capture = new Capture(new Call(tree, this.#options, { reports: this.reports, budget: this.#budget, watch }, this.#target, self, args))
    const start = this.#budget.begin()
    const hooks = hookState.inner
    let result: unknown
    try {
      result = withMode(capture, () => this.#run(self, args))
    } catch (error) {
      // Writes that happened before the failure must take effect, as in eager mode. If one of them fails, its error came first.
      capture.finish({ needed: [], gradients: false, keepTape: isGradEnabled() })
      if (capture.isFresh) count({ kind: 'path', ok: false })
      throw error
    }
    if (isPromise(result)) {
      this.reports.isAsync()
      capture.finish({ needed: [], gradients: false, keepTape: isGradEnabled(), everything: true })
      if (watch !== null || capture.isFresh) this.#answered(capture, tree, watch)
      return explainPromise(result, `'${this.reports.name}'`, args)
    }
    const outputs = result instanceof Tensor ? [result] : flatten([result]).leaves.filter((leaf) => leaf instanceof Tensor)
    // Hooks on inner gradients are user code: the tape is kept, so that they run as in eager mode.
    capture.finish({ needed: outputs, gradients: isGradEnabled(), keepTape: hookState.inner !== hooks })
    for (const { storage } of outputs) storage?.writer?.settle(storage)
    this.#budget.end(start, outcomeOf(capture))
    tree.program?.note(capture.work)
    if (watch !== null || capture.isFresh) this.#answered(capture, tree, watch)
    onEnd?.(capture)
    return result
  }

  #answered(capture: Capture, { index }: FunctionTree, watch: CallWatch | null): void {
    const { isFresh, isEager, ended } = capture
    if (isFresh) count({ kind: 'path', ok: true })
    watch?.answered(isEager ? 'eager' : isFresh ? 'recorded' : 'replayed', index, ended)
  }

  /** When sizes of a call with these arguments become sizes of its path; null: never. */
  #ruleFor(leaves: readonly unknown[]): SizeRule | null {
    const { dynamic, takesSizes } = this.#options
    if (dynamic ?? !config.assumeStaticByDefault) return 'all'
    return dynamic === undefined && (takesSizes || hasDynamicMarks(leaves)) ? 'second' : null
  }

  /** The tree for calls with arguments of this structure; null if the limit of trees is reached. */
  #treeFor(leaves: readonly unknown[], spec: TreeSpec | null, args: readonly unknown[]): FunctionTree | null {
    const rule = this.#ruleFor(leaves)
    const last = this.#last
    if (last !== null && spec === null && rule === null && last.state === callKey() && areAsMet(leaves, last.met)) return last.tree
    const tree = this.#treeByKey(leaves, spec, args, rule)
    if (tree !== null && spec === null && rule === null && areTensors(leaves))
      this.#last = { tree, state: callKey(), met: leaves.map((leaf) => metStateOf(leaf)) }
    return tree
  }

  /** The function answers its calls, since that takes less time than the graph of one operator. */
  #answersItself({ program, captured }: { readonly program: number; readonly captured: number }): void {
    const reason = `the graph is one operator: calls take ${microseconds(program)} without it, ${microseconds(captured)} with it`
    announce({ kind: 'limit', what: 'oneOperator' }, () => ({ kind: 'limit', what: 'oneOperator', name: this.reports.name, reason }))
  }

  #treeByKey(leaves: readonly unknown[], spec: TreeSpec | null, args: readonly unknown[], rule: SizeRule | null): FunctionTree | null {
    const isFlat = spec === null || (leaves.length === args.length && args.every((arg, i) => Object.is(arg, leaves[i])))
    let key = `${rule ?? ''}${callKey()}|${isFlat ? '' : keyOf(structureState, spec)}`
    for (const leaf of leaves) key += leaf instanceof Tensor ? `|${rule === null ? metKey(leaf) : rankKey(leaf)}` : `|${typeof leaf}`
    let tree = this.#trees.get(key)
    if (tree !== undefined) return tree
    const index = this.#trees.size
    const leavesText = describeLeaves(leaves).join(', ')
    const state: CallState = { process: readState(callState, null), leaves: tensorStates(leaves, metTensorState) }
    const latest = [...this.#trees.values()].at(-1)
    if (latest !== undefined) {
      const isAllowed = index <= config.recompileLimit
      this.reports.missed('arguments', newArguments(latest, leaves, leavesText, isAllowed), isAllowed)
      if (!isAllowed) return null
    }
    const policy = rule === null ? null : new SizePolicy(rule)
    const { fullgraph, skipReplay, backend } = this.#options
    let program: AnsweredCalls | null = null
    if (!fullgraph && !skipReplay) {
      if (policy === null) program = new OperatorCalls((ms) => this.#answersItself(ms))
      // Without kernels for any sizes a backend of the program, or eager kernels, were asked for.
      else if (fusionOf(backend) !== null) program = new ProgramCalls()
    }
    tree = { root: Step.root(), branches: 0, policy, shortcuts: new Shortcuts(policy !== null), program, index, leavesText, state }
    this.#trees.set(key, tree)
    return tree
  }
}

/** Whether the leaves are tensors with these states, which {@link metKey} puts in words. */
function areAsMet(leaves: readonly unknown[], states: readonly MetState[]): boolean {
  if (leaves.length !== states.length) return false
  for (let i = 0; i < states.length; i++) {
    const leaf = leaves[i]
    const state = states[i]
    if (!(leaf instanceof Tensor) || state === undefined || !agreesAsMet(leaf, state)) return false
  }
  return true
}

const microseconds = (milliseconds: number): string => `${(1000 * milliseconds).toFixed(1)} µs`

const outcomeOf = ({ isEager, isFresh }: Capture): Outcome => (isEager ? 'left' : isFresh ? 'recorded' : 'replayed')

/** The state of the tensors among leaves; null for other values. */
const tensorStates = (leaves: readonly unknown[], kinds: readonly StateKind<Tensor>[] = tensorState): readonly (readonly unknown[] | null)[] =>
  leaves.map((leaf) => (leaf instanceof Tensor ? readState(kinds, leaf) : null))

/** How arguments differ from those of the latest tree. */
function newArguments({ leavesText: expected, state }: FunctionTree, leaves: readonly unknown[], actual: string, isAllowed: boolean): Mismatch {
  const text = `arguments of other shapes, dtypes or structure${isAllowed ? `: ${actual}` : ''}`
  if (expected !== actual) return { expected, actual, text }
  const change = changeOf(callState, null, state.process)
  if (change !== null) return change
  for (const [i, leaf] of leaves.entries()) {
    const known = state.leaves[i] ?? null
    const found = leaf instanceof Tensor && known !== null ? changeOf(metTensorState, leaf, known) : null
    if (found !== null) return { ...found, text: `argument ${i} ${found.text}` }
  }
  return { expected, actual, text }
}

/** The tensors and other leaves of values, and their structure. Values that contain themselves have none, and are leaves as they are. */
function flatten(values: readonly unknown[]): { readonly leaves: readonly unknown[]; readonly spec: TreeSpec | null } {
  try {
    return treeFlatten(values)
  } catch (error) {
    if (error instanceof ArgumentError) return { leaves: values, spec: null }
    throw error
  }
}

/** A class, not an object literal: V8 allocates the functions of a literal among old objects, and they would keep alive what their call has computed. */
class Call implements CapturedCall {
  readonly tree: FunctionTree
  readonly fullgraph: boolean
  readonly choice: BackendChoice
  readonly reports: Reports
  readonly budget: Budget
  readonly watch: CallWatch | null
  readonly programCalls: number
  readonly learns: boolean
  readonly #target: Callable | Module
  readonly #self: unknown
  readonly #args: readonly unknown[]
  #names: ReadonlyMap<Tensor, string> | null = null

  constructor(
    tree: FunctionTree,
    options: CompiledFunctionOptions,
    { reports, budget, watch }: Pick<CapturedCall, 'reports' | 'budget' | 'watch'>,
    target: Callable | Module,
    self: unknown,
    args: readonly unknown[],
  ) {
    this.tree = tree
    this.fullgraph = options.fullgraph
    this.choice = options
    this.reports = reports
    this.budget = budget
    this.watch = watch
    this.programCalls = tree.program?.answeredBefore ?? 0
    this.learns = !options.skipReplay
    this.#target = target
    this.#self = self
    this.#args = args
  }

  get holders(): readonly unknown[] {
    return [this.#target, this.#self, ...this.#args]
  }

  nameOf(tensor: Tensor): string | null {
    this.#names ??= placeholderNames(this.#target, this.#args)
    return this.#names.get(tensor) ?? null
  }
}
