// Transformer: an Interpreter whose values are proxies; running it builds a new graph.
import { Graph } from './graph.ts'
import { GraphModule } from './graphModule.ts'
import { Interpreter } from './interpreter.ts'
import { mapArg } from './node.ts'
import type { Argument, Node, Target } from './node.ts'
import { GraphAppendingTracer } from './tracer.ts'

/** Rewrites a module by overriding methods such as `callFunction`; PyTorch's torch.fx.Transformer. */
export class Transformer extends Interpreter {
  readonly newGraph: Graph
  readonly tracer: GraphAppendingTracer
  #current: Node | null = null

  constructor(module: GraphModule) {
    super(module, { garbageCollectValues: false })
    this.newGraph = new Graph()
    this.tracer = new GraphAppendingTracer(this.newGraph)
    this.tracer.recordStackTraces = false
  }

  /** The rewritten module; it shares parameters and submodules with the original. */
  transform(): GraphModule {
    let result: Argument = null
    for (const node of this.graph.nodes) {
      this.#current = node
      const before = this.newGraph.last
      const value = this.runNode(node)
      this.env.set(node, value)
      this.#inheritMeta(before, node)
      if (node.op === 'output') {
        result = mapArg(value as Argument, (n) => n)
        const output = this.newGraph.output(this.tracer.createArg(result), node.type)
        output.meta = { ...node.meta }
      }
    }
    return new GraphModule(this.module, this.newGraph)
  }

  /** New nodes know where the node that they came from stood in the user's program. */
  #inheritMeta(before: Node | null, from: Node): void {
    for (let node = before === null ? this.newGraph.first : before.next; node !== null; node = node.next) {
      for (const key of ['stack_trace', 'nn_module_stack'])
        if (from.meta[key] !== undefined && node.meta[key] === undefined) node.meta[key] = from.meta[key]
    }
  }

  override placeholder(target: string, args: readonly unknown[]): unknown {
    return this.tracer.createProxy('placeholder', target, args, {}, this.#current?.name ?? null, this.#current?.type ?? null)
  }

  override getAttr(target: string): unknown {
    return this.tracer.createProxy('get_attr', target, [], {}, this.#current?.name ?? null)
  }

  override callModule(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    return this.tracer.createProxy('call_module', target, args, kwargs)
  }

  override callFunction(target: Target, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    return this.tracer.createProxy('call_function', target, args, kwargs)
  }
}
