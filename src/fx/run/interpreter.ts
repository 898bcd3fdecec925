// Interpreter: runs a graph node by node, and every step can be overridden. Transformer (trace/transformer.ts) is an Interpreter whose values are traced.
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { checkArgument, checkArray, checkCount, checkIterable, checkMethod, checkOptions } from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import { explainInterpreted } from '../text/explain.ts'
import type { Graph } from '../graph/graph.ts'
import { mapArg } from '../graph/mapArg.ts'
import { evaluateAttribute, evaluateFunction, evaluateMethod, evaluateModule, lastUses, takeInput, valuesFrom } from './evaluate.ts'
import type { GraphModule } from './graphModule.ts'
import type { Argument, Kwargs, Node } from '../graph/node.ts'
import { setCurrentMeta } from '../graph/traceback.ts'

/** Options of {@link Interpreter}. */
export interface InterpreterOptions {
  /** Release values after their last use. Default true; if false, all values stay in `env`. */
  readonly garbageCollectValues?: boolean
  /** The graph to run. Default: the module's own. */
  readonly graph?: Graph
}

/** Options of one run. */
export interface RunOptions {
  /** The values of nodes that need not run. */
  readonly initialEnv?: ReadonlyMap<Node, unknown>
  /** What stays in `env` after the run: 'live' for the values that were not released, 'all', or the values of these nodes. Default: see InterpreterOptions. */
  readonly keep?: 'live' | 'all' | Iterable<Node>
  /** Take inputs and return outputs as the compiled function does (see CodeGen). If false, they are those of the graph. Default true. PyTorch's enable_io_processing. */
  readonly processIo?: boolean
}

/** Functions that an Interpreter calls around each node; see {@link Interpreter.addHook}. */
export interface InterpreterHook {
  /** Called before a node runs, with the values of its arguments. */
  before?(node: Node, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): void
  /** Called after a node ran. A returned value, unless undefined, replaces that of the node. */
  after?(node: Node, value: unknown): unknown
  /** Called after a node threw. The error is then rethrown. */
  failed?(node: Node, error: unknown): void
}

/** Executes a graph node by node; PyTorch's torch.fx.Interpreter. */
export class Interpreter {
  readonly module: GraphModule
  readonly graph: Graph
  /** The values of live nodes. */
  env: Map<Node, unknown> = new Map()
  readonly #collect: boolean
  #lastUses: ReadonlyMap<Node, readonly Node[]> | null = null
  #args: unknown[] = []
  readonly #hooks = new Set<InterpreterHook>()

  constructor(module: GraphModule, options: InterpreterOptions = {}) {
    checkCount('Interpreter', arguments, 2)
    checkGraphModule('Interpreter', module, 'module')
    checkOptions('Interpreter', options, { garbageCollectValues: 'boolean', graph: true })
    this.module = module
    this.graph = options.graph ?? module.graph
    this.#collect = options.garbageCollectValues ?? true
    if (this.#collect) this.#lastUses = lastUses(this.graph)
  }

  /** Calls the hook's functions around each node. Returns a function that removes the hook. */
  addHook(hook: InterpreterHook): () => void {
    checkMethod(this, 'Interpreter.addHook', arguments, 1)
    this.#hooks.add(hook)
    return () => void this.#hooks.delete(hook)
  }

  /** Runs the graph on these inputs and returns its output. Errors say which node failed, and the user's line. */
  run(...args: readonly unknown[]): unknown {
    checkMethod(this, 'Interpreter.run', args, Infinity)
    return this.runWith(args)
  }

  /** Like `run`, with options: `runWith([x], { keep: 'all' })`. */
  runWith(args: readonly unknown[], options: RunOptions = {}): unknown {
    checkMethod(this, 'Interpreter.runWith', arguments, 2)
    checkOptions('Interpreter.runWith', options, { initialEnv: true, keep: true, processIo: 'boolean' })
    this.#begin('Interpreter.runWith', args, options)
    return this.#outcome(this.#walk(options), options)
  }

  /**
   * Like `run`, but removes the inputs from the array, so that they can be collected right after their last use. The inputs are the values of the placeholders,
   * and the result is the value of the output node. PyTorch's boxed_run.
   */
  boxedRun(args: unknown[]): unknown {
    checkMethod(this, 'Interpreter.boxedRun', arguments, 1)
    this.#begin('Interpreter.boxedRun', args, { processIo: false })
    args.length = 0
    return this.#walk({})
  }

  /**
   * Like `runWith`, but awaits the value of each node. With `yieldTurns`, other tasks get a turn between nodes. If the signal is aborted, it throws before the
   * next node.
   */
  async runAsync(
    args: readonly unknown[],
    options: RunOptions & { readonly signal?: AbortSignal; readonly yieldTurns?: boolean } = {},
  ): Promise<unknown> {
    checkMethod(this, 'Interpreter.runAsync', arguments, 2)
    checkOptions('Interpreter.runAsync', options, { initialEnv: true, keep: true, processIo: 'boolean', signal: true, yieldTurns: 'boolean' })
    this.#begin('Interpreter.runAsync', args, options)
    const release = this.#releases(options)
    let output: unknown
    for (const node of this.graph.nodes) {
      if (this.env.has(node)) continue
      options.signal?.throwIfAborted()
      if (options.yieldTurns === true) await new Promise((resolve) => setTimeout(resolve))
      try {
        // oxlint-disable-next-line no-await-in-loop -- nodes run one after the other
        output = this.#finished(node, await this.#started(node))
      } catch (error) {
        this.#failed(node, error)
      }
      this.env.set(node, output)
      release(node)
      if (node.op === 'output') break
    }
    return this.#outcome(output, options)
  }

  #begin(where: string, args: readonly unknown[], { initialEnv, keep, processIo }: RunOptions): void {
    checkArray(where, 'args', args)
    if (initialEnv !== undefined) checkArgument(initialEnv instanceof Map, where, 'options.initialEnv', 'a Map from Node to value', initialEnv)
    if (keep !== undefined && keep !== 'all' && keep !== 'live') checkIterable(where, 'options.keep', keep)
    this.env = new Map(initialEnv)
    this.#args = processIo === false ? [...args] : [...this.graph.processInputs(...args)]
  }

  #outcome(output: unknown, { processIo }: RunOptions): unknown {
    return processIo === false ? output : this.graph.processOutputs(output)
  }

  #walk(options: RunOptions): unknown {
    const release = this.#releases(options)
    for (const node of this.graph.nodes) {
      if (this.env.has(node)) continue
      let value: unknown
      try {
        value = this.#finished(node, this.#started(node))
      } catch (error) {
        this.#failed(node, error)
      }
      this.env.set(node, value)
      release(node)
      if (node.op === 'output') return value
    }
    return undefined
  }

  #started(node: Node): unknown {
    if (this.#hooks.size > 0) {
      const [args, kwargs] = this.fetchArgsKwargs(node)
      for (const hook of this.#hooks) hook.before?.(node, args, kwargs)
    }
    return setCurrentMeta(node, `Interpreter_${this.constructor.name}`, () => this.runNode(node))
  }

  #finished(node: Node, value: unknown): unknown {
    let result = value
    for (const hook of this.#hooks) {
      const replaced = hook.after?.(node, result)
      if (replaced !== undefined) result = replaced
    }
    return result
  }

  #failed(node: Node, error: unknown): never {
    for (const hook of this.#hooks) hook.failed?.(node, error)
    explainInterpreted(error, node)
    throw error
  }

  /** The function that releases values after a node ran. */
  #releases({ keep }: RunOptions): (node: Node) => void {
    if (keep === 'all' || (keep === undefined && !this.#collect)) return () => {}
    const dead = (this.#lastUses ??= lastUses(this.graph))
    const kept = keep === undefined || keep === 'live' ? null : new Set(keep)
    return (node) => {
      for (const input of dead.get(node) ?? []) if (kept?.has(input) !== true) this.env.delete(input)
    }
  }

  /** Computes one node. */
  runNode(node: Node): unknown {
    const [args, kwargs] = this.fetchArgsKwargs(node)
    switch (node.op) {
      case 'placeholder':
        return this.placeholder(node.target, args, kwargs)
      case 'get_attr':
        return this.getAttr(node.target, args, kwargs)
      case 'call_function':
        return this.callFunction(node.target, args, kwargs)
      case 'call_method':
        return this.callMethod(node.target, args, kwargs)
      case 'call_module':
        return this.callModule(node.target, args, kwargs)
      default:
        return this.output(node.target, args, kwargs)
    }
  }

  /** The next input. `args` holds its default, which undefined stands for, as in JavaScript. */
  placeholder(target: string, args: readonly unknown[], _kwargs: Readonly<Record<string, unknown>>): unknown {
    return takeInput(target, args, this.#args)
  }

  getAttr(target: string, _args: readonly unknown[], _kwargs: Readonly<Record<string, unknown>>): unknown {
    return this.fetchAttr(target)
  }

  callFunction(target: TargetFunction, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    return evaluateFunction(target, args, kwargs)
  }

  callMethod(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    return evaluateMethod(target, args, kwargs)
  }

  callModule(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    return evaluateModule(target, this.fetchAttr(target), args, kwargs)
  }

  output(_target: string, args: readonly unknown[], _kwargs: Readonly<Record<string, unknown>>): unknown {
    return args[0]
  }

  /** The attribute of the module at a dotted path. Throws GraphError if there is none. */
  fetchAttr(path: string): unknown {
    return evaluateAttribute(this.module, path)
  }

  /** The args and kwargs of a node, with nodes replaced by their values. */
  fetchArgsKwargs(node: Node): [readonly unknown[], Readonly<Record<string, unknown>>] {
    return [this.mapNodesToValues(node.args, node), this.mapNodesToValues(node.kwargs, node)]
  }

  /** The arguments of `node` with nodes replaced by their values. Throws GraphError for a node without a value. PyTorch's map_nodes_to_values. */
  mapNodesToValues(args: readonly Argument[], node: Node): readonly unknown[]
  mapNodesToValues(args: Kwargs, node: Node): Readonly<Record<string, unknown>>
  mapNodesToValues(args: Argument, node: Node): unknown
  mapNodesToValues(args: Argument, node: Node): unknown {
    return mapArg(args, valuesFrom(this.env, node))
  }
}
