// Interpreter: runs a graph node by node; every step can be overridden. Transformer (transformer.ts) is one whose values are proxies.
import type { Module } from '../module/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { GraphError } from './errors.ts'
import { claimError, setMessage } from './explain.ts'
import type { Graph } from './graph.ts'
import type { GraphModule } from './graphModule.ts'
import { mapArg } from './node.ts'
import type { Argument, Node, Target } from './node.ts'

export interface InterpreterOptions {
  /** Release values after their last use. Default true; false keeps all of them in `env`. */
  readonly garbageCollectValues?: boolean
  /** Run this graph instead of the module's own. */
  readonly graph?: Graph
}

export interface RunOptions {
  /** Values of nodes that need not run. */
  readonly initialEnv?: ReadonlyMap<Node, unknown>
}

/** Executes a graph node by node; PyTorch's torch.fx.Interpreter. */
export class Interpreter {
  readonly module: GraphModule
  readonly graph: Graph
  /** Values by node, as far as they are alive. */
  env: Map<Node, unknown> = new Map()
  readonly #collect: boolean
  readonly #lastUses = new Map<Node, Node[]>()
  #args: unknown[] = []

  constructor(module: GraphModule, options: InterpreterOptions = {}) {
    this.module = module
    this.graph = options.graph ?? module.graph
    this.#collect = options.garbageCollectValues ?? true
    if (this.#collect) this.#findLastUses()
  }

  #findLastUses(): void {
    const seen = new Set<Node>()
    for (const user of this.graph.nodes.reversed()) {
      for (const input of user.allInputNodes) {
        if (seen.has(input)) continue
        seen.add(input)
        const list = this.#lastUses.get(user)
        if (list === undefined) this.#lastUses.set(user, [input])
        else list.push(input)
      }
    }
  }

  /** Runs the graph on these inputs and returns its output. Errors name the node and the user's line. */
  run(...args: readonly unknown[]): unknown {
    return this.runWith(args)
  }

  /** As `run`, and takes the inputs out of the array, so that they can be collected as soon as they are used. */
  boxedRun(args: unknown[]): unknown {
    const taken = args.splice(0)
    return this.runWith(taken)
  }

  /** As `run`, starting from given values. */
  runWith(args: readonly unknown[], options: RunOptions = {}): unknown {
    this.env = new Map(options.initialEnv ?? [])
    this.#args = [...args]
    for (const node of this.graph.nodes) {
      if (this.env.has(node)) continue
      let value: unknown
      try {
        value = this.runNode(node)
      } catch (error) {
        explain(error, node)
        throw error
      }
      this.env.set(node, value)
      if (node.op === 'output') return value
      if (this.#collect) for (const dead of this.#lastUses.get(node) ?? []) this.env.delete(dead)
    }
    return undefined
  }

  /** Computes one node. */
  runNode(node: Node): unknown {
    const [args, kwargs] = this.fetchArgsKwargs(node)
    switch (node.op) {
      case 'placeholder':
        return this.placeholder(node.target as string, args, kwargs)
      case 'get_attr':
        return this.getAttr(node.target as string, args, kwargs)
      case 'call_function':
        return this.callFunction(node.target, args, kwargs)
      case 'call_method':
        return this.callMethod(node.target as string, args, kwargs)
      case 'call_module':
        return this.callModule(node.target as string, args, kwargs)
      default:
        return this.output(node.target as string, args, kwargs)
    }
  }

  placeholder(target: string, args: readonly unknown[], _kwargs: Readonly<Record<string, unknown>>): unknown {
    if (target.startsWith('*')) return this.#args.splice(0)
    if (this.#args.length > 0) return this.#args.shift()
    if (args.length > 0) return args[0]
    throw new GraphError(`Expected positional argument for parameter ${target}, but one was not passed in!`)
  }

  getAttr(target: string, _args: readonly unknown[], _kwargs: Readonly<Record<string, unknown>>): unknown {
    return this.fetchAttr(target)
  }

  callFunction(target: Target, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    return (target as TargetFunction)(...withOptions(args, kwargs))
  }

  callMethod(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const [self, ...rest] = args
    const method = (self as Record<string, unknown>)[target]
    if (typeof method !== 'function') throw new GraphError(`call_method: the value has no method '${target}'.`)
    return (method as (...a: readonly unknown[]) => unknown).apply(self, withOptions(rest, kwargs))
  }

  callModule(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const module = this.fetchAttr(target) as Module
    return (module.call as (...a: readonly unknown[]) => unknown).apply(module, withOptions(args, kwargs))
  }

  output(_target: string, args: readonly unknown[], _kwargs: Readonly<Record<string, unknown>>): unknown {
    return args[0]
  }

  /** The attribute of the module at a dotted path. */
  fetchAttr(path: string): unknown {
    const value = this.module.attribute(path)
    if (value === undefined) throw new GraphError(`Node referenced nonexistent target ${path}`)
    return value
  }

  /** The node's args and kwargs with values for nodes. */
  fetchArgsKwargs(node: Node): [readonly unknown[], Readonly<Record<string, unknown>>] {
    return [
      this.mapNodesToValues(node.args, node) as readonly unknown[],
      this.mapNodesToValues(node.kwargs, node) as Readonly<Record<string, unknown>>,
    ]
  }

  mapNodesToValues(args: Argument, node: Node): unknown {
    return mapArg(args, (input) => {
      if (!this.env.has(input))
        throw new GraphError(`Node ${node.name} referenced nonexistent value ${input.name}! Run Graph.lint() to diagnose such issues`)
      return this.env.get(input) as Argument
    })
  }
}

/** Keyword arguments travel as one trailing object. */
function withOptions(args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown[] {
  return Object.keys(kwargs).length === 0 ? [...args] : [...args, kwargs]
}

function explain(error: unknown, node: Node): void {
  if (!claimError(error)) return
  const trace = node.stackTrace
  const original = trace === null ? '' : `\nOriginal traceback:\n${String(trace)}`
  setMessage(error, `${error.message}\n\nWhile executing ${node.formatNode()}${original}`)
}
