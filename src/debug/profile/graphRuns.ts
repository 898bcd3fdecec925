// Runs GraphModules node by node while a profile is taken, so that their nodes are seen.
import { dispatchState } from '../../dispatch/index.ts'
import { GraphModule, Interpreter } from '../../fx/index.ts'
import type { Node } from '../../fx/index.ts'
import { unbound } from '../../fx/run/graphModule.ts'
import type { Module } from '../../module/index.ts'

/** Is told of the nodes. */
export interface NodeListener {
  enter(node: Node): void
  leave(): void
}

/** The ops of nodes that compute. */
const COMPUTING: ReadonlySet<string> = new Set(['call_function', 'call_method', 'call_module'])

/** Tells the listener of the nodes of GraphModules that run. */
export class GraphRuns {
  readonly #listener: NodeListener
  /** Null for a module that does not do what its graph says. */
  readonly #interpreters = new WeakMap<GraphModule, Interpreter | null>()

  constructor(listener: NodeListener) {
    this.#listener = listener
  }

  /** Runs `forward`, the call of a module: node by node if it is a GraphModule whose code computes what its graph says. */
  run(module: Module, forward: () => unknown): unknown {
    // What captures or traces sees the code that the program calls.
    if (!(module instanceof GraphModule) || dispatchState.mode !== null) return forward()
    const interpreter = this.#interpreterOf(module)
    if (interpreter === null) return forward()
    const own = Object.getOwnPropertyDescriptor(module, 'forward')
    Object.defineProperty(module, 'forward', {
      ...own,
      configurable: true,
      value: (...args: readonly unknown[]): unknown => interpreter.runWith(args),
    })
    try {
      return forward()
    } finally {
      if (own === undefined) Reflect.deleteProperty(module, 'forward')
      else Object.defineProperty(module, 'forward', own)
    }
  }

  #interpreterOf(gm: GraphModule): Interpreter | null {
    let interpreter = this.#interpreters.get(gm)
    if (interpreter === undefined) this.#interpreters.set(gm, (interpreter = isItsGraph(gm) ? this.#newInterpreter(gm) : null))
    return interpreter
  }

  #newInterpreter(gm: GraphModule): Interpreter {
    const interpreter = new Interpreter(gm)
    const tells = ({ op }: Node): boolean => COMPUTING.has(op)
    interpreter.addHook({
      before: (node) => (tells(node) ? this.#listener.enter(node) : undefined),
      after: (node) => (tells(node) ? this.#listener.leave() : undefined),
      failed: (node) => (tells(node) ? this.#listener.leave() : undefined),
    })
    return interpreter
  }
}

/** Whether the code of a GraphModule is that of its graph: the program has neither changed the code, nor edited the graph since, nor overridden `forward`. */
const isItsGraph = (gm: GraphModule): boolean =>
  unbound(gm.forward) === GraphModule.prototype.forward && gm.graph.codegen.bodyTransformer === null && gm.graph.generateCode().source === gm.code
