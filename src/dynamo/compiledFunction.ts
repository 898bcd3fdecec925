// A compiled function or module: its trace trees by kinds of arguments, and what one call does.
import { hookState, isGradEnabled } from '../autograd/index.ts'
import { dispatchState, withMode } from '../dispatch/index.ts'
import { UnsupportedError, present } from '../errors/index.ts'
import { Module } from '../module/index.ts'
import { findOverride } from '../protocol/index.ts'
import { treeFlatten, treeLeaves } from '../pytree/index.ts'
import type { TreeSpec } from '../pytree/index.ts'
import { Tensor } from '../tensor/index.ts'
import { Capture } from './capture.ts'
import type { CaptureHost } from './capture.ts'
import { compileSegment } from './compileSegment.ts'
import type { BackendChoice, GraphRecord } from './compileSegment.ts'
import { config } from './config.ts'
import type { SegmentRequest } from './ending.ts'
import type { BreakReason } from './explain.ts'
import { placeholderNames } from './placeholderNames.ts'
import { Shortcut } from './shortcut.ts'
import { Step } from './traceTree.ts'
import type { CompiledSegment } from './traceTree.ts'

/** Anything that can be compiled. */
export type Callable = (...args: never[]) => unknown

/** Options of {@link CompiledFunction}. */
export interface CompiledFunctionOptions extends BackendChoice {
  readonly fullgraph: boolean
  readonly skipReplay: boolean
}

/** The paths taken by calls with arguments of one kind. */
class Tree {
  readonly root: Step = Step.root()
  /** How many paths were recorded after the first. */
  branches = 0
  /** Calls that can be answered without running the function, newest first; only with skipReplay. */
  shortcuts: Shortcut[] = []
}

export class CompiledFunction implements CaptureHost {
  readonly #target: Callable | Module
  readonly #run: (self: unknown, args: readonly unknown[]) => unknown
  readonly #options: CompiledFunctionOptions
  readonly #trees = new Map<string, Tree>()
  readonly records: GraphRecord[] = []
  readonly reasons: string[] = []
  #warned = false
  /** Arguments of the running call, and the names of outside tensors once they are needed. */
  #args: readonly unknown[] = []
  #names: Map<Tensor, string> | null = null
  #tree: Tree | null = null

  constructor(target: Callable | Module, options: CompiledFunctionOptions) {
    this.#target = target
    // `compile` promises that callers give the arguments that the target takes.
    this.#run = (self, args) => Reflect.apply(target, self, args)
    this.#options = options
  }

  get fullgraph(): boolean {
    return this.#options.fullgraph
  }

  reset(): void {
    this.#trees.clear()
    this.records.length = 0
    this.reasons.length = 0
    this.#warned = false
  }

  /** Runs one call. `self` is its `this`. */
  call(self: unknown, args: readonly unknown[]): unknown {
    // Inside another capture the code becomes part of that graph; under any other mode, and with proxies, it is not captured.
    if (dispatchState.mode !== null) return this.#run(self, args)
    const { leaves, spec } = treeFlatten(args)
    if (findOverride(leaves) !== null) return this.#run(self, args)
    const tree = this.#treeFor(leaves, spec, args.length)
    if (tree === null) return this.#run(self, args)
    for (const shortcut of tree.shortcuts) {
      const hit = shortcut.take(leaves)
      if (hit !== null) return hit.result
    }
    return this.#capture(tree, self, args, leaves)
  }

  #capture(tree: Tree, self: unknown, args: readonly unknown[], leaves: readonly unknown[]): unknown {
    const outer = { args: this.#args, names: this.#names, tree: this.#tree }
    this.#args = args
    this.#names = null
    this.#tree = tree
    const hooks = hookState.inner
    const capture = new Capture(this, tree.root)
    try {
      const result = this.#runCaptured(capture, self, args)
      const outputs = treeLeaves(result).filter((leaf) => leaf instanceof Tensor)
      // Hooks on inner gradients are user code: the tape is kept, so that they run as in eager mode.
      capture.finish(outputs, isGradEnabled(), hookState.inner !== hooks)
      for (const tensor of outputs) if (tensor.storage === null && !tensor.isFake) tensor.realize()
      if (this.#options.skipReplay) {
        const shortcut = Shortcut.from(capture, leaves, result)
        if (shortcut !== null) tree.shortcuts = [shortcut, ...tree.shortcuts].slice(0, config.recompileLimit + 1)
      }
      return result
    } finally {
      this.#args = outer.args
      this.#names = outer.names
      this.#tree = outer.tree
    }
  }

  #runCaptured(capture: Capture, self: unknown, args: readonly unknown[]): unknown {
    let result: unknown
    try {
      result = withMode(capture, () => this.#run(self, args))
    } catch (error) {
      // Writes that happened before the failure must take effect, as in eager mode.
      try {
        capture.finish([], false, false)
      } catch {
        capture.abandon()
      }
      throw error
    }
    if (!(result instanceof Promise)) return result
    capture.abandon()
    // The promise is dropped here, and an unhandled rejection would end the process.
    result.catch(() => undefined)
    throw new UnsupportedError(
      'compile: the function returned a Promise. Compile the synchronous part that computes with tensors, and await around it.',
    )
  }

  /** The tree for calls with arguments of this structure; null if the limit of trees is reached. */
  #treeFor(leaves: readonly unknown[], spec: TreeSpec, count: number): Tree | null {
    let key = `${isGradEnabled() ? 'g' : ''}|${leaves.length === count ? '' : JSON.stringify(spec)}`
    if (this.#options.skipReplay && this.#target instanceof Module) key += this.#target.training ? 't' : 'e'
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
      if (this.#trees.size > config.recompileLimit) {
        this.#warnOnce('arguments of other shapes, dtypes or structure')
        return null
      }
      this.reasons.push(`arguments of other shapes, dtypes or structure: ${describeLeaves(leaves)}`)
    }
    tree = new Tree()
    this.#trees.set(key, tree)
    return tree
  }

  nameOf(tensor: Tensor): string | null {
    this.#names ??= placeholderNames(this.#target, this.#args)
    return this.#names.get(tensor) ?? null
  }

  mayBranch(describe: () => string): boolean {
    const tree = present(this.#tree, 'the tree of the running call')
    const why = describe()
    if (tree.branches >= config.recompileLimit) {
      this.#warnOnce(why)
      return false
    }
    tree.branches++
    this.reasons.push(why)
    return true
  }

  #warnOnce(why: string): void {
    if (this.#warned) return
    this.#warned = true
    const { name } = this.#target instanceof Module ? this.#target.constructor : this.#target
    console.warn(
      `compile: config.recompileLimit (${config.recompileLimit}) reached for '${name === '' ? 'anonymous' : name}'. Calls that take a path that is not recorded run eagerly from now on. Last reason: ${why}. ` +
        'compiled.recompileReasons() lists all reasons. Raise config.recompileLimit, or move what changes out of the compiled function.',
    )
  }

  compileSegment = (request: SegmentRequest): CompiledSegment | null => {
    const done = compileSegment(request, this.#options)
    if (done === null) return null
    this.records.push(done.record)
    return done.compiled
  }

  /** All graph breaks so far. */
  breaks(): BreakReason[] {
    const found: BreakReason[] = []
    const stack = [...this.#trees.values()].map((t) => t.root).reverse()
    for (let step = stack.pop(); step !== undefined; step = stack.pop()) {
      if (step.breakReason !== null) found.push(step.breakReason)
      if (step.after !== null) stack.push(step.after)
      stack.push(...step.children.toReversed())
    }
    return found
  }
}

const describeLeaves = (leaves: readonly unknown[]): string =>
  leaves.map((leaf) => (leaf instanceof Tensor ? `${leaf.dtype}[${leaf.shape.join(', ')}]` : typeof leaf)).join(', ')
