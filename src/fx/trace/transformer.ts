// Transformer: an Interpreter whose values are traced, so that running it records a new graph.
import { checkCount, checkMethod } from '../../protocol/index.ts'
import { Graph } from '../graph/graph.ts'
import { GraphAppendingTracer } from './graphAppendingTracer.ts'
import type { GraphModule } from '../run/graphModule.ts'
import { Interpreter } from '../run/interpreter.ts'
import { makeGraphModule } from '../run/lazyGraphModule.ts'
import type { Node, Target } from '../graph/node.ts'
import { preserveNodeMeta } from '../graph/traceback.ts'

/** Rewrites a module. Subclasses override methods such as `callFunction`. PyTorch's torch.fx.Transformer. */
export class Transformer extends Interpreter {
  readonly newGraph: Graph
  readonly tracer: GraphAppendingTracer
  #current: Node | null = null

  constructor(module: GraphModule) {
    checkCount('Transformer', arguments, 1)
    super(module, { garbageCollectValues: false })
    this.newGraph = new Graph()
    this.newGraph.setCodegen(this.graph.codegen)
    this.newGraph.tracerClass = this.graph.tracerClass
    this.newGraph.sourceHint = this.graph.sourceHint
    this.tracer = new GraphAppendingTracer(this.newGraph)
    // New nodes inherit the stack trace of the node that they were made for.
    this.tracer.recordStackTraces = false
  }

  /** The rewritten module, which shares parameters and submodules with the original. New nodes inherit stack trace and module path. */
  transform(): GraphModule {
    checkMethod(this, 'Transformer.transform', arguments, 0)
    const value = preserveNodeMeta(() => this.runWith([], { processIo: false }))
    const { last } = this.graph
    if (last?.op === 'output') {
      const output = this.newGraph.output(this.tracer.createArg(value), last.type)
      output.meta = { ...last.meta }
    }
    return makeGraphModule(this.module, this.newGraph)
  }

  override runNode(node: Node): unknown {
    this.#current = node
    return super.runNode(node)
  }

  override placeholder(target: string, args: readonly unknown[], _kwargs: Readonly<Record<string, unknown>>): unknown {
    return this.tracer.createProxy('placeholder', target, args, {}, this.#current?.name ?? null, this.#current?.type ?? null)
  }

  override getAttr(target: string, _args: readonly unknown[], _kwargs: Readonly<Record<string, unknown>>): unknown {
    return this.tracer.createProxy('get_attr', target, [], {}, this.#current?.name ?? null, this.#current?.type ?? null)
  }

  override callModule(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    return this.tracer.createProxy('call_module', target, args, kwargs)
  }

  override callFunction(target: Target, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    return this.tracer.createProxy('call_function', target, args, kwargs)
  }
}
