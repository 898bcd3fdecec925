// What compile() makes of a function or module: its trace trees by kinds of arguments, and how one call goes.
import { hookState, isGradEnabled } from '../autograd/index.ts'
import { dispatchState, withMode } from '../dispatch/index.ts'
import { UnsupportedError } from '../errors/index.ts'
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

/** What {@link CompiledFunction} is told. */
export interface CompiledFunctionOptions extends BackendChoice {
  readonly fullgraph: boolean
  readonly skipReplay: boolean
}

/** The paths that calls with one kind of arguments took. */
class Tree {
  readonly root: Step = Step.root()
  /** Paths that were recorded next to others. */
  branches = 0
  /** Calls that need not run the function, newest first; skipReplay only. */
  shortcuts: Shortcut[] = []
}

export class CompiledFunction implements CaptureHost {
  readonly #target: Callable | Module
  readonly #options: CompiledFunctionOptions
  readonly #trees = new Map<string, Tree>()
  readonly records: GraphRecord[] = []
  readonly reasons: string[] = []
  #warned = false
  /** Arguments of the running call, and names of the outside tensors once somebody asks. */
  #args: readonly unknown[] = []
  #names: Map<Tensor, string> | null = null
  #tree: Tree | null = null

  constructor(target: Callable | Module, options: CompiledFunctionOptions) {
    this.#target = target
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

  #runTarget(self: unknown, args: readonly unknown[]): unknown {
    const target = this.#target
    return target instanceof Module
      ? (target.call as (...a: readonly unknown[]) => unknown).apply(target, [...args])
      : (target as (...a: readonly unknown[]) => unknown).apply(self, [...args])
  }

  /** One call. `self` is its `this`. */
  call(self: unknown, args: readonly unknown[]): unknown {
    // Inside another capture the code is part of that graph; under any other mode, or on proxies, it is not ours to capture.
    if (dispatchState.mode !== null) return this.#runTarget(self, args)
    const { leaves, spec } = treeFlatten(args)
    if (findOverride(leaves) !== null) return this.#runTarget(self, args)
    const tree = this.#treeFor(leaves, spec, args.length)
    if (tree === null) return this.#runTarget(self, args)
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
      const outputs = treeLeaves(result).filter((leaf): leaf is Tensor => leaf instanceof Tensor)
      // Hooks on inner gradients are code: then the tape stays, and they run as they would.
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
      result = withMode(capture, () => this.#runTarget(self, args))
    } catch (error) {
      // What the program wrote before it failed must stand, as it would eagerly.
      try {
        capture.finish([], false, false)
      } catch {
        capture.abandon()
      }
      throw error
    }
    if (!(result instanceof Promise)) return result
    capture.abandon()
    // Its outcome is of no use any more.
    result.catch(() => undefined)
    throw new UnsupportedError(
      'compile: the function returned a Promise. Compile the synchronous part that computes with tensors, and await around it.',
    )
  }

  /** The tree for calls with arguments of this structure; null when there are enough of them. */
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
    const tree = this.#tree as Tree
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
      `compile: config.recompileLimit (${config.recompileLimit}) reached for '${name === '' ? 'anonymous' : name}'. Calls that go another way than those recorded run eagerly from now on. Last reason: ${why}. ` +
        'All reasons: compiled.recompileReasons(). Raise config.recompileLimit, or keep what changes out of the compiled function.',
    )
  }

  compileSegment = (request: SegmentRequest): CompiledSegment | null => {
    const done = compileSegment(request, this.#options)
    if (done === null) return null
    this.records.push(done.record)
    return done.compiled
  }

  /** Every graph break met so far. */
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
