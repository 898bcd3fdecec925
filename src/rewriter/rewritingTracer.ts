// RewritingTracer: a tracer that also sees what JavaScript hides from tracers. PyTorch's torch.fx.experimental.rewriter.
import { Tracer } from '../fx/index.ts'
import type { ConcreteArgs, Graph, Traceable, TracerOptions } from '../fx/index.ts'
import { Module, getAttribute, isLibraryLayer } from '../module/index.ts'
import * as nn from '../nn/index.ts'
import { isFunction } from '../protocol/index.ts'
import { rewriteFunction } from './rewriteFunction.ts'

/** Options of {@link RewritingTracer}. */
export interface RewritingTracerOptions extends TracerOptions {
  /** The values of the names that functions use and do not declare: imports, constants, helpers. */
  readonly scope?: Readonly<Record<string, unknown>>
}

/**
 * A tracer that rewrites the source of what it traces, so that it sees conditions: `if (x.sum().gt(0))` throws TraceError instead of taking one branch in silence,
 * `x.size(0) === 3` is recorded, and `console.assert(c, m)` and `if (!c) throw new Error(m)` become assertions of the graph. A function gets its free names from `scope`;
 * of a module it rewrites `forward`, and that of all modules in it that are not layers of nn. Helper functions that these call are not rewritten: for that, rewrite files
 * as they are loaded (`node --import tensorfx/register`, or a plugin), where closures stay and no scope is needed. PyTorch's RewritingTracer, which rewrites `assert`.
 *
 *     new RewritingTracer({ scope: { torch } }).trace(model)
 *
 * @throws ArgumentError for a name that `scope` lacks, and for a source that cannot be rewritten.
 */
export class RewritingTracer extends Tracer {
  readonly #scope: Readonly<Record<string, unknown>>

  constructor({ scope = {}, ...options }: RewritingTracerOptions = {}) {
    super(options)
    this.#scope = scope
  }

  override trace(root: Traceable, concreteArgs: ConcreteArgs = {}): Graph {
    if (!(root instanceof Module)) return super.trace(isFunction(root) ? rewriteFunction(root, this.#scope) : root, concreteArgs)
    const undo: (() => void)[] = []
    try {
      for (const [path, module] of root.namedModules()) if (module === root || !this.isLeafModule(module, path)) this.#install(module, undo)
      return super.trace(root, concreteArgs)
    } finally {
      for (const step of undo) step()
    }
  }

  /** Gives a module its rewritten forward until the trace has ended. */
  #install(module: Module, undo: (() => void)[]): void {
    const method = this.tracedFuncName
    const forward = getAttribute(module, method)
    if (!isFunction(forward) || isFromLibrary(module, forward)) return
    const before = Object.getOwnPropertyDescriptor(module, method)
    const rewritten = rewriteFunction(forward, this.#scope, Object.getPrototypeOf(Object.getPrototypeOf(module)))
    Object.defineProperty(module, method, { value: rewritten, configurable: true, writable: true, enumerable: false })
    undo.push(() => (before === undefined ? Reflect.deleteProperty(module, method) : Object.defineProperty(module, method, before)))
  }
}

let ofLibrary: ReadonlySet<unknown> | null = null

/** Whether a forward is one of the library's, which has no conditions on traced values. */
function isFromLibrary(module: Module, forward: unknown): boolean {
  ofLibrary ??= new Set(
    Object.values(nn).flatMap((value: unknown) =>
      isFunction(value) && value.prototype instanceof Module ? [Reflect.get(value.prototype, 'forward')] : [],
    ),
  )
  return isLibraryLayer(module) || ofLibrary.has(forward)
}
