// LazyGraphModule: a GraphModule that does not generate code before somebody runs or reads it. Passes that recompile again and again cost less.
import { GeneratedCode } from './generatedCode.ts'
import { Graph } from './graph.ts'
import type { Scope } from './graph.ts'
import { GraphModule } from './graphModule.ts'
import type { Module } from '../module/index.ts'

/** PyTorch's _LazyGraphModule. `recompile()` only notes that the code is out of date; running the module, or reading its code, generates it. */
export class LazyGraphModule extends GraphModule {
  /** The module itself when it is lazy already, else a lazy one over the same graph, which then belongs to it. PyTorch's from_graphmodule. */
  static fromGraphModule(gm: GraphModule): LazyGraphModule {
    return gm instanceof LazyGraphModule ? gm : new LazyGraphModule(gm, gm.graph)
  }

  /** Generates the code of a lazy module now; any other has its code. PyTorch's force_recompile. */
  static forceRecompile(gm: GraphModule): void {
    if (gm instanceof LazyGraphModule) gm.realRecompile()
  }

  /** Whether the code is out of date. PyTorch's _needs_recompile. */
  get needsRecompile(): boolean {
    return !this.isGenerated
  }

  /** Generates the code if it is out of date. */
  realRecompile(): GeneratedCode {
    return this.generatedCode
  }

  /** Notes that the code is out of date. What it returns generates the code when it is read. */
  override recompile(): GeneratedCode {
    this.forgetCode()
    return GeneratedCode.later(() => this.generatedCode)
  }

  protected override makeLike(graph: Graph): GraphModule {
    return new LazyGraphModule(this, graph, this.className)
  }

  protected override makeEmpty(): GraphModule {
    return new LazyGraphModule({}, new Graph(), this.className)
  }
}

let lazy = false

/**
 * While `fn` runs, or until the returned scope is disposed, tracing and transforming give lazy modules (or, with false, plain ones). The default is false.
 * PyTorch's _use_lazy_graph_module.
 */
export function useLazyGraphModule<T>(value: boolean, fn: () => T): T
export function useLazyGraphModule(value: boolean): Scope
export function useLazyGraphModule<T>(value: boolean, fn?: () => T): T | Scope {
  const before = lazy
  lazy = value
  const restore = (): void => {
    lazy = before
  }
  if (fn === undefined) return { [Symbol.dispose]: restore }
  try {
    return fn()
  } finally {
    restore()
  }
}

/** A GraphModule, lazy or not as {@link useLazyGraphModule} says. PyTorch's _make_graph_module. */
export function makeGraphModule(root: Module | Readonly<Record<string, unknown>>, graph: Graph, className?: string): GraphModule {
  return lazy ? new LazyGraphModule(root, graph, className) : new GraphModule(root, graph, className)
}
