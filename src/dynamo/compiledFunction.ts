// A compiled function or module, and what one call of it does, from top to bottom: choose the trace tree for these arguments; answer from a shortcut, if there is one; otherwise
// run the program under a Capture (capture.ts), which follows and records the tree; end the capture. What is worth a report happens as an event (events.ts).
import { hookState, isGradEnabled } from '../autograd/index.ts'
import { dispatchState, withMode } from '../dispatch/index.ts'
import { Module } from '../module/index.ts'
import { findOverride } from '../protocol/index.ts'
import { treeFlatten, treeLeaves } from '../pytree/index.ts'
import type { TreeSpec } from '../pytree/index.ts'
import { Tensor, getDefaultDtype } from '../tensor/index.ts'
import { Capture } from './capture.ts'
import type { CapturedCall, Tree } from './capture.ts'
import type { BackendChoice, GraphRecord } from './compileSegment.ts'
import { config } from './config.ts'
import type { CompileEvent, Report } from './events.ts'
import type { BreakReason } from './explain.ts'
import { placeholderNames } from './placeholderNames.ts'
import { Shortcut } from './shortcut.ts'
import { Step } from './traceTree.ts'

/** Anything that can be compiled. */
export type Callable = (...args: never[]) => unknown

/** Options of {@link CompiledFunction}. */
export interface CompiledFunctionOptions extends BackendChoice {
  readonly fullgraph: boolean
  readonly skipReplay: boolean
}

interface FunctionTree extends Tree {
  /** Calls that can be answered without running the function, newest first; only with skipReplay. */
  shortcuts: readonly Shortcut[]
}

export class CompiledFunction {
  readonly #target: Callable | Module
  readonly #options: CompiledFunctionOptions
  readonly #trees = new Map<string, FunctionTree>()
  /** What was compiled, why paths after the first were recorded, and all graph breaks. */
  readonly records: GraphRecord[] = []
  readonly reasons: string[] = []
  readonly breaks: BreakReason[] = []
  readonly #warned = new Set<string>()
  readonly #report: Report = (event) => this.#onEvent(event)

  constructor(target: Callable | Module, options: CompiledFunctionOptions) {
    this.#target = target
    this.#options = options
  }

  reset(): void {
    this.#trees.clear()
    this.records.length = 0
    this.reasons.length = 0
    this.breaks.length = 0
    this.#warned.clear()
  }

  /** Runs one call. `self` is its `this`. */
  call(self: unknown, args: readonly unknown[]): unknown {
    // Inside another capture the code becomes part of that graph; under any other mode, and with proxies, it is not captured.
    if (dispatchState.mode !== null) return this.#run(self, args)
    const isFlat = args.every((arg) => arg instanceof Tensor)
    const { leaves, spec } = isFlat ? { leaves: args, spec: null } : treeFlatten(args)
    if (!isFlat && findOverride(leaves) !== null) return this.#run(self, args)
    const tree = this.#treeFor(leaves, spec, args)
    if (tree === null) return this.#run(self, args)
    for (const shortcut of tree.shortcuts) {
      const hit = shortcut.take(leaves)
      if (hit !== null) return hit.result
    }
    return this.#capture(tree, self, args, leaves)
  }

  /** The function itself. `compile` promises that callers give the arguments that it takes. */
  #run(self: unknown, args: readonly unknown[]): unknown {
    return Reflect.apply(this.#target, self, args)
  }

  #capture(tree: FunctionTree, self: unknown, args: readonly unknown[], leaves: readonly unknown[]): unknown {
    const capture = new Capture(new Call(tree, this.#options, this.#report, this.#target, self, args))
    const hooks = hookState.inner
    let result: unknown
    try {
      result = withMode(capture, () => this.#run(self, args))
    } catch (error) {
      // Writes that happened before the failure must take effect, as in eager mode. If one of them fails, its error came first.
      capture.finish({ needed: [], gradients: false, keepTape: isGradEnabled() })
      throw error
    }
    if (result instanceof Promise) {
      this.#onEvent({ kind: 'async' })
      capture.finish({ needed: [], gradients: false, keepTape: isGradEnabled(), everything: true })
      return result
    }
    const outputs = result instanceof Tensor ? [result] : treeLeaves(result).filter((leaf) => leaf instanceof Tensor)
    // Hooks on inner gradients are user code: the tape is kept, so that they run as in eager mode.
    capture.finish({ needed: outputs, gradients: isGradEnabled(), keepTape: hookState.inner !== hooks })
    for (const { storage } of outputs) storage?.writer?.settle(storage)
    if (this.#options.skipReplay) {
      const shortcut = Shortcut.from(capture, leaves, result)
      if (shortcut !== null) tree.shortcuts = [shortcut, ...tree.shortcuts].slice(0, config.recompileLimit + 1)
    }
    return result
  }

  /** The tree for calls with arguments of this structure; null if the limit of trees is reached. */
  #treeFor(leaves: readonly unknown[], spec: TreeSpec | null, args: readonly unknown[]): FunctionTree | null {
    const isFlat = spec === null || (leaves.length === args.length && args.every((arg, i) => Object.is(arg, leaves[i])))
    let key = `${isGradEnabled() ? 'g' : ''}|${isFlat ? '' : JSON.stringify(spec)}`
    if (this.#options.skipReplay && this.#target instanceof Module) key += this.#target.training ? 't' : 'e'
    if (this.#options.skipReplay) key += getDefaultDtype()
    for (const leaf of leaves) {
      if (!(leaf instanceof Tensor)) {
        key += `|${typeof leaf}`
        continue
      }
      key += `|${leaf.dtype}[${leaf.shape.join()}]`
      if (!leaf.contiguousLayout) key += leaf.strides.join()
      if (leaf.requiresGrad) key += 'g'
    }
    let tree = this.#trees.get(key)
    if (tree !== undefined) return tree
    if (this.#trees.size > 0) {
      const isAllowed = this.#trees.size <= config.recompileLimit
      const why = `arguments of other shapes, dtypes or structure${isAllowed ? `: ${describeLeaves(leaves)}` : ''}`
      this.#onEvent({ kind: isAllowed ? 'new arguments' : 'limit', why })
      if (!isAllowed) return null
    }
    tree = { root: Step.root(), branches: 0, shortcuts: [] }
    this.#trees.set(key, tree)
    return tree
  }

  #onEvent(event: CompileEvent): void {
    switch (event.kind) {
      case 'new arguments':
      case 'new path':
        this.reasons.push(event.why)
        break
      case 'break':
        this.breaks.push(event.reason)
        break
      case 'compiled':
        this.records.push(event.record)
        break
      case 'limit':
        this.#warnOnce(
          'limit',
          `config.recompileLimit (${config.recompileLimit}) reached for '${this.#name}'. Calls that take a path that is not recorded run eagerly from now on. Last reason: ${event.why}. ` +
            'compiled.recompileReasons() lists all reasons. Raise config.recompileLimit, or move what changes out of the compiled function.',
        )
        break
      case 'async':
        this.#warnOnce(
          'async',
          `'${this.#name}' is async: it is captured up to its first await, and what follows runs eagerly. Compile the synchronous part, and await around it.`,
        )
    }
  }

  get #name(): string {
    const { name } = this.#target instanceof Module ? this.#target.constructor : this.#target
    return name === '' ? 'anonymous' : name
  }

  #warnOnce(kind: string, message: string): void {
    if (this.#warned.has(kind)) return
    this.#warned.add(kind)
    console.warn(`compile: ${message}`)
  }
}

/** A class, not an object literal: V8 allocates the functions of a literal among old objects, and they would keep alive what their call has computed. */
class Call implements CapturedCall {
  readonly tree: FunctionTree
  readonly fullgraph: boolean
  readonly choice: BackendChoice
  readonly report: Report
  readonly learns: boolean
  readonly #target: Callable | Module
  readonly #self: unknown
  readonly #args: readonly unknown[]
  #names: ReadonlyMap<Tensor, string> | null = null

  constructor(
    tree: FunctionTree,
    options: CompiledFunctionOptions,
    report: Report,
    target: Callable | Module,
    self: unknown,
    args: readonly unknown[],
  ) {
    this.tree = tree
    this.fullgraph = options.fullgraph
    this.choice = options
    this.report = report
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

const describeLeaves = (leaves: readonly unknown[]): string =>
  leaves.map((leaf) => (leaf instanceof Tensor ? `${leaf.dtype}[${leaf.shape.join(', ')}]` : typeof leaf)).join(', ')
