// LazyGraphModule: a GraphModule that generates its code only when the module runs or its code is read, so that passes which recompile repeatedly are cheaper.
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { checkCallable, checkCount } from '../../protocol/index.ts'
import type { GeneratedCode } from '../graph/graphText.ts'
import { codeLater } from '../text/generatedCode.ts'
import { Graph } from '../graph/graph.ts'
import type { Scope } from '../graph/graph.ts'
import { GraphModule } from './graphModule.ts'
import type { Module } from '../../module/index.ts'

/** PyTorch's _LazyGraphModule. `recompile()` only marks the code as out of date; running the module or reading its code generates it. */
export class LazyGraphModule extends GraphModule {
  /** The module itself if it is lazy, else a lazy module that takes over its graph. PyTorch's from_graphmodule. */
  static fromGraphModule(gm: GraphModule): LazyGraphModule {
    checkCount('LazyGraphModule.fromGraphModule', arguments, 1)
    checkGraphModule('LazyGraphModule.fromGraphModule', gm)
    return gm instanceof LazyGraphModule ? gm : new LazyGraphModule(gm, gm.graph)
  }

  /** Generates the code of a lazy module now; does nothing for any other module. PyTorch's force_recompile. */
  static forceRecompile(gm: GraphModule): void {
    checkCount('forceRecompile', arguments, 1)
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

  /** Marks the code as out of date. The returned object generates the code when it is read. */
  override recompile(): GeneratedCode {
    this.forgetCode()
    return codeLater(() => this.generatedCode)
  }

  /** Before the code is generated there is no old code. @internal */
  override beforeEdit(): void {
    if (this.isGenerated) super.beforeEdit()
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
 * Sets whether tracing and transforming make lazy modules, while `fn` runs or until the returned scope is disposed. The default is false.
 * PyTorch's _use_lazy_graph_module.
 */
export function useLazyGraphModule<T>(value: boolean, fn: () => T): T
export function useLazyGraphModule(value: boolean): Scope
export function useLazyGraphModule<T>(value: boolean, fn?: () => T): T | Scope {
  if (fn !== undefined) checkCallable('useLazyGraphModule', 'fn', fn)
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

/** Makes a GraphModule, which is lazy if {@link useLazyGraphModule} says so. PyTorch's _make_graph_module. */
export function makeGraphModule(root: Module | Readonly<Record<string, unknown>>, graph: Graph, className?: string): GraphModule {
  return lazy ? new LazyGraphModule(root, graph, className) : new GraphModule(root, graph, className)
}
