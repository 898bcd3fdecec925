// Interpreter: runs a graph node by node; every step can be overridden. Transformer (transformer.ts) is one whose values are proxies.
import type { Module } from '../module/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { GraphError } from './errors.ts'
import { claimError, setMessage } from './explain.ts'
import type { Graph } from './graph.ts'
import type { GraphModule } from './graphModule.ts'
import { mapArg } from './node.ts'
import type { Argument, Node, Target } from './node.ts'
import { setCurrentMeta } from './traceback.ts'

export interface InterpreterOptions {
  /** Release values after their last use. Default true; false keeps all of them in `env`. */
  readonly garbageCollectValues?: boolean
  /** Run this graph instead of the module's own. */
  readonly graph?: Graph
}

/** Settings of one run. */
export interface RunOptions {
  /** Values of nodes that need not run. */
  readonly initialEnv?: ReadonlyMap<Node, unknown>
  /** What `env` holds after the run: 'live', the values that were not released; 'all' values; or those of these nodes. Default: as constructed. */
  readonly keep?: 'live' | 'all' | Iterable<Node>
  /** Take inputs and give outputs as the compiled function does, by the graph's code generator. Default true. PyTorch's enable_io_processing. */
  readonly processIo?: boolean
}

/** Looks on, or interferes, while a graph is interpreted; see {@link Interpreter.addHook}. */
export interface InterpreterHook {
  /** Before a node runs, with its values. */
  before?(node: Node, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): void
  /** After a node ran; a value that it returns (not undefined) takes the place of the node's. */
  after?(node: Node, value: unknown): unknown
  /** After a node threw; the error goes on. */
  failed?(node: Node, error: unknown): void
}

/** Executes a graph node by node; PyTorch's torch.fx.Interpreter. */
export class Interpreter {
  readonly module: GraphModule
  readonly graph: Graph
  /** Values by node, as far as they are alive. */
  env: Map<Node, unknown> = new Map()
  readonly #collect: boolean
  #lastUses: ReadonlyMap<Node, readonly Node[]> | null = null
  #args: unknown[] = []
  readonly #hooks = new Set<InterpreterHook>()

  constructor(module: GraphModule, options: InterpreterOptions = {}) {
    this.module = module
    this.graph = options.graph ?? module.graph
    this.#collect = options.garbageCollectValues ?? true
    if (this.#collect) this.#lastUses = lastUses(this.graph)
  }

  /** Calls the hook's functions around each node. Returns the function that removes it. */
  addHook(hook: InterpreterHook): () => void {
    this.#hooks.add(hook)
    return () => void this.#hooks.delete(hook)
  }

  /** Runs the graph on these inputs and returns its output. Errors name the node and the user's line. */
  run(...args: readonly unknown[]): unknown {
    return this.runWith(args)
  }

  /** As `run`, with settings: `runWith([x], { keep: 'all' })`. */
  runWith(args: readonly unknown[], options: RunOptions = {}): unknown {
    const processIo = options.processIo ?? true
    const output = this.#walk(processIo ? [...this.graph.processInputs(...args)] : [...args], options)
    return processIo ? this.graph.processOutputs(output) : output
  }

  /**
   * As `run`, and takes the inputs out of the array, so that they can be collected as soon as they were used last. The inputs are the values of
   * the placeholders, and the result is that of the output node. PyTorch's boxed_run.
   */
  boxedRun(args: unknown[]): unknown {
    return this.#walk(args.splice(0), {})
  }

  /**
   * As `runWith`, waiting for each node's value, and giving other work a turn between nodes when `yieldTurns` is set. An aborted signal ends it
   * before the next node.
   */
  async runAsync(
    args: readonly unknown[],
    options: RunOptions & { readonly signal?: AbortSignal; readonly yieldTurns?: boolean } = {},
  ): Promise<unknown> {
    const processIo = options.processIo ?? true
    this.#begin(processIo ? [...this.graph.processInputs(...args)] : [...args], options)
    const release = this.#releases(options)
    let output: unknown
    for (const node of this.graph.nodes) {
      if (this.env.has(node)) continue
      options.signal?.throwIfAborted()
      if (options.yieldTurns === true) await new Promise((resolve) => setTimeout(resolve))
      try {
        // oxlint-disable-next-line no-await-in-loop -- node after node is what this does
        output = this.#finished(node, await this.#started(node))
      } catch (error) {
        this.#failed(node, error)
      }
      this.env.set(node, output)
      release(node)
      if (node.op === 'output') break
    }
    return processIo ? this.graph.processOutputs(output) : output
  }

  #begin(args: unknown[], options: RunOptions): void {
    this.env = new Map(options.initialEnv ?? [])
    this.#args = args
  }

  #walk(args: unknown[], options: RunOptions): unknown {
    this.#begin(args, options)
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
    explain(error, node)
    throw error
  }

  /** What is forgotten after a node ran. */
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

  /** The next input; `args` holds the default. As in JavaScript, undefined stands for the default. */
  placeholder(target: string, args: readonly unknown[], _kwargs: Readonly<Record<string, unknown>>): unknown {
    if (isRest(target)) return this.#args.splice(0)
    const given = this.#args.length > 0
    const value = this.#args.shift()
    if (given && (value !== undefined || args.length === 0)) return value
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
    if (target === '__call__') return (self as TargetFunction)(...withOptions(rest, kwargs))
    const method = (self as Record<string, unknown>)[target]
    if (typeof method !== 'function') throw new GraphError(`call_method: the value has no method '${target}'.`)
    // Not `method.apply`: on a traced value that would be one more attribute.
    return Reflect.apply(method as (...a: readonly unknown[]) => unknown, self, withOptions(rest, kwargs))
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
    if (value === undefined) throw new GraphError(`Node referenced nonexistent target ${missingPart(path, (p) => this.module.attribute(p))}`)
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

/** `*args`, but not `**kwargs`. */
const isRest = (target: string): boolean => target.startsWith('*') && !target.startsWith('**')

/** The values that each node uses last. */
function lastUses(graph: Graph): Map<Node, Node[]> {
  const uses = new Map<Node, Node[]>()
  const seen = new Set<Node>()
  for (const user of graph.nodes.reversed()) {
    for (const input of user.allInputNodes) {
      if (seen.has(input)) continue
      seen.add(input)
      const list = uses.get(user)
      if (list === undefined) uses.set(user, [input])
      else list.push(input)
    }
  }
  return uses
}

/** The path up to its first part that is missing. */
function missingPart(path: string, attribute: (path: string) => unknown): string {
  const parts = path.split('.')
  for (let i = 1; i < parts.length; i++) {
    const prefix = parts.slice(0, i).join('.')
    if (attribute(prefix) === undefined) return prefix
  }
  return path
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
