// Tracer: runs a module or function on traced values and records a Graph. Subclass it to change what is a leaf, or what nodes are made.
import { ArgumentError } from '../errors/index.ts'
import { Module, setModuleTracingHook } from '../module/index.ts'
import { LEAF_MODULE, isParameter, isTensorLike } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { patchObjects } from './autowrap.ts'
import type { AutowrapModules } from './autowrap.ts'
import { BodyStack } from './bodies.ts'
import type { BodySource, RecordedBodies } from './bodies.ts'
import { describeConstant } from './constants.ts'
import type { CapturedConstant } from './constants.ts'
import { Graph } from './graph.ts'
import { GraphModule } from './graphModule.ts'
import { makeGraphModule } from './lazyGraphModule.ts'
import { isProxyableInstance } from './instances.ts'
import { interceptTensors } from './moduleAccess.ts'
import { refuseMutation } from './mutation.ts'
import { knownProxy } from './knownProxy.ts'
import type { Node, Argument, Kwargs, Opcode, Target } from './node.ts'
import { placeOf } from './origin.ts'
import { standsFor } from './parameters.ts'
import { nodeOf } from './proxy.ts'
import type { Proxied } from './proxy.ts'
import { makeRootArgs } from './rootArgs.ts'
import type { ConcreteArgs, RootArgs } from './rootArgs.ts'
import { TraceError } from './traceError.ts'
import { hasPreservedNodeMeta } from './traceback.ts'
import { TracerBase } from './tracerBase.ts'
import { checkConditions } from './unusedConditions.ts'
import type { UnusedConditions } from './unusedConditions.ts'

/** What can be traced: a module, or a function whose parameter names are read from its source. */
// eslint-disable-next-line typescript/no-explicit-any -- any function
export type Traceable = Module | ((...args: any[]) => unknown)

/** Settings of a {@link Tracer}. */
export interface TracerOptions {
  /**
   * Objects whose functions are recorded when they meet a traced value, by name: `{ math: Math }` makes `Math.sqrt(x.size(0))` a call of math.sqrt.
   * They are patched while a trace runs. Default: none (PyTorch: its math module); `fx.math` needs no patching.
   */
  readonly autowrapModules?: AutowrapModules
  /** Answer questions about the shape and dtype of parameters and buffers by plain values. Default true (PyTorch: false). */
  readonly paramShapesConstant?: boolean
  /**
   * What to do about a comparison that nothing uses: mostly `if (x.gt(0))`, of which the trace took one side without knowing. `'warn'` (default) writes
   * the place and what to do to the console, `'error'` throws a TraceError. PyTorch need not ask: Python lets a tracer see conditions.
   */
  readonly unusedConditions?: UnusedConditions
}

/** The module that is being called: its path and class name. PyTorch's Scope. */
export interface ModuleScope {
  readonly modulePath: string
  readonly moduleType: string | null
}

const ROOT_SCOPE: ModuleScope = { modulePath: '', moduleType: null }

let tracing = 0

/** Whether a program is being traced right now. PyTorch's is_fx_tracing. */
export const isFxTracing = (): boolean => tracing > 0

/** Records a program as a graph; PyTorch's torch.fx.Tracer. */
export class Tracer extends TracerBase {
  graph: Graph = new Graph()
  /** What is traced; for a function, a module that holds its constants. */
  root: Module = new EmptyRoot()
  /** Record reads of buffers as get_attr, as for parameters. Default true (PyTorch: false, which bakes in what is computed from them). */
  proxyBufferAttributes = true
  /** Refuse functions and methods that write into their arguments. Default false. */
  checkMutableOperations = false
  /** Record `console.assert(condition, message)` on a traced condition as torch._assert. Default false. */
  traceAsserts = false
  /** The method of a traced module that is traced. */
  tracedFuncName = 'forward'
  /** Where each node was recorded: the innermost module call. */
  nodeNameToScope: Map<string, ModuleScope> = new Map()
  /** What the program used without getting it as an argument, and does not belong to the traced module's state: it is now part of the graph. */
  constants: CapturedConstant[] = []
  readonly #options: TracerOptions
  #paths: ReadonlyMap<Module, string> = new Map()
  /** Tensors and objects of the root: their paths. */
  #attributes = new Map<unknown, string>()
  #cache: Map<string, Proxied> = new Map()
  #scope = ROOT_SCOPE
  #calls = new Map<string, number>()
  #moduleStack: ReadonlyMap<string, readonly [string, string]> = new Map()
  #freshNames = new Map<string, number>()
  /** Paths of the child modules that this trace has made. */
  #children: string[] = []
  readonly #bodies: BodyStack = new BodyStack((input, outer) => this.bodyInput(input, outer))
  #paused = false

  constructor(options: TracerOptions = {}) {
    super()
    this.#options = options
  }

  /** Whether calls of `module` become one call_module node. Default: the layers of nn, but not containers. PyTorch's is_leaf_module. */
  isLeafModule(module: Module, _path: string): boolean {
    return (module as { [LEAF_MODULE]?: boolean })[LEAF_MODULE] === true
  }

  /** The path of a module of the root. Throws ArgumentError for a foreign one. PyTorch's path_of_module. */
  pathOfModule(module: Module): string {
    const path = this.#paths.get(module)
    if (path === undefined)
      throw new ArgumentError(`module ${module.constructor.name} is not installed as a submodule: assign it to a property of the traced module.`)
    return path
  }

  /** A module call inside the traced program: one node for a leaf, otherwise what `forward` does. PyTorch's call_module. */
  callModule(module: Module, forward: (...args: readonly unknown[]) => unknown, args: readonly unknown[]): unknown {
    const path = this.pathOfModule(module)
    const before = [this.#scope, this.#moduleStack] as const
    const calls = this.#calls.get(path) ?? 0
    this.#calls.set(path, calls + 1)
    const moduleType = module.constructor.name
    this.#scope = { modulePath: path, moduleType }
    this.#moduleStack = new Map(this.#moduleStack).set(calls === 0 ? path : `${path}@${calls}`, [path, moduleType])
    try {
      return this.isLeafModule(module, path) ? this.createProxy('call_module', path, args, {}) : forward(...args)
    } finally {
      ;[this.#scope, this.#moduleStack] = before
    }
  }

  /**
   * What reading a tensor from a module of the root gives: a traced value, the same one each time (`cache` holds those made so far), or the tensor
   * itself. PyTorch's getattr.
   */
  getattr(path: string, value: TensorLike, cache: Map<string, Proxied>): unknown {
    let proxy = cache.get(path)
    if (proxy === undefined) {
      proxy = this.#outsideOfBodies(() => this.createProxy('get_attr', path, [], {}))
      if (this.#options.paramShapesConstant !== false) proxy = knownProxy(nodeOf(proxy), this, value)
      cache.set(path, proxy)
    }
    return proxy
  }

  override createNode(
    op: Opcode,
    target: Target,
    args: readonly Argument[],
    kwargs: Kwargs,
    name: string | null = null,
    type: string | null = null,
  ): Node {
    if (this.checkMutableOperations) refuseMutation(op, target)
    const node = super.createNode(op, target, args, kwargs, name, type)
    if (this.#moduleStack.size > 0 && !hasPreservedNodeMeta()) node.meta['nn_module_stack'] = this.#moduleStack
    this.nodeNameToScope.set(node.name, this.#scope)
    return node
  }

  override createArg(value: unknown): Argument {
    if (typeof value !== 'object' || value === null) return super.createArg(value)
    if (isTensorLike(value)) return this.#tensorArg(value)
    if (value instanceof Module) return this.createNode('get_attr', this.pathOfModule(value), [], {})
    if (isProxyableInstance(value)) return this.#constant(value, `_${value.constructor.name}_constant_`)
    return super.createArg(value)
  }

  /** As in PyTorch, each use of a tensor that was not read from its module is a read of its own. */
  #tensorArg(value: TensorLike): Node {
    const path = this.#attributes.get(value)
    if (path !== undefined) return this.createNode('get_attr', path, [], {})
    if (isParameter(value)) throw new ArgumentError('parameter is not a member of this module: assign it to a property of the traced module.')
    return this.#constant(value, '_tensor_constant')
  }

  /** A value from outside becomes an attribute of the root, once. */
  #constant(value: object, prefix: string): Node {
    let path = this.#attributes.get(value)
    if (path !== undefined) return this.createNode('get_attr', path, [], {})
    path = this.getFreshQualname(prefix)
    if (isTensorLike(value)) this.root.registerBuffer(path, value)
    else (this.root as unknown as Record<string, unknown>)[path] = value
    this.#attributes.set(value, path)
    const node = this.createNode('get_attr', path, [], {})
    this.constants.push(describeConstant(path, value, node))
    return node
  }

  protected override foreignNode(node: Node): Node | null {
    return this.#bodies.capture(node)
  }

  /** Hears of an input of a control flow body that stands for the value of `outer`, a node around the body. For tracers that know more than nodes. */
  protected bodyInput(_input: Node, _outer: Node): void {}

  /**
   * Records functions as child graphs of the root, for control flow. Values of the program around that they use, parameters among them, become inputs;
   * modules that they call are shared with the root. Where PyTorch captures the branches of torch.cond.
   */
  traceBodies(sources: readonly BodySource[]): RecordedBodies {
    const around = this.graph
    const names = this.nodeNameToScope
    const frames = sources.map((source) => {
      this.graph = new Graph()
      this.nodeNameToScope = new Map()
      try {
        return this.#bodies.within(this.graph, around, () => this.#recordBody(source))
      } finally {
        this.graph = around
        this.nodeNameToScope = names
      }
    })
    const captured = this.#bodies.align(frames)
    const modules = frames.map(({ graph }, i) => {
      const path = this.getFreshQualname((sources[i] as BodySource).prefix)
      // Not to be seen in the traced module itself, which is not this trace's to change; the GraphModule gets it as an ordinary child.
      this.#children.push(path)
      Object.defineProperty(this.root, path, { value: makeGraphModule(this.root, graph, path), configurable: true, writable: true })
      return this.createNode('get_attr', path, [], {})
    })
    return { modules, captured }
  }

  #recordBody({ inputs, run }: BodySource): void {
    const { graph } = this
    const values = inputs.map(({ name, outer }) => {
      const input = graph.placeholder(name)
      if (outer !== null) this.bodyInput(input, outer)
      return this.proxy(input)
    })
    const results = run(values)
    this.createNode('output', 'output', [results.map((value) => this.createArg(value))], {})
    checkConditions(graph, this.#options.unusedConditions ?? 'warn')
  }

  /** Parameters are read by the program around the bodies, once, and handed to them. */
  #outsideOfBodies<T>(fn: () => T): T {
    const { graph } = this
    this.graph = this.#bodies.outermost ?? graph
    try {
      return fn()
    } finally {
      this.graph = graph
    }
  }

  /** A name that the root does not use yet. PyTorch's get_fresh_qualname. */
  getFreshQualname(prefix: string): string {
    let number = this.#freshNames.get(prefix) ?? 0
    while (`${prefix}${number}` in this.root) number++
    this.#freshNames.set(prefix, number + 1)
    return `${prefix}${number}`
  }

  /**
   * Runs `root` on traced values and returns the graph. `concreteArgs` fixes parameters to plain values.
   * Throws TraceError where the program does what cannot be recorded; then the root is as it was.
   */
  trace(root: Traceable, concreteArgs: ConcreteArgs = {}): Graph {
    const fn = this.#begin(root)
    const undo: (() => void)[] = []
    tracing++
    try {
      const { values, finish } = this.createArgsForRoot(fn, concreteArgs)
      undo.push(interceptTensors(this.root, (path, value, kind) => this.#read(path, value, kind)))
      undo.push(patchObjects(this.#options.autowrapModules ?? {}, this.traceAsserts))
      const outer = setModuleTracingHook({
        callModule: (m, forward, given) => (m === root || this.#paused ? forward(...given) : this.callModule(m, forward, given)),
      })
      undo.push(() => void setModuleTracingHook(outer))
      const result = finish(checkedResult(fn.apply(root instanceof Module ? root : undefined, [...values])))
      this.createNode('output', 'output', [this.createArg(result)], {})
      checkConditions(this.graph, this.#options.unusedConditions ?? 'warn')
    } catch (error) {
      for (const path of [...this.constants.map((c) => c.path), ...this.#children]) delete (this.root as unknown as Record<string, unknown>)[path]
      throw error
    } finally {
      tracing--
      for (const step of undo.reverse()) step()
    }
    const name = root instanceof Module ? `${root.constructor.name}.${this.tracedFuncName}` : root.name
    this.graph.sourceHint = root instanceof GraphModule ? root.graph.sourceHint : placeOf(this.graph.nodes, name)
    return this.graph
  }

  /** A fresh start: a tracer may trace many programs. Returns the function to run. */
  #begin(root: Traceable): (...args: readonly unknown[]) => unknown {
    const isModule = root instanceof Module
    if (!isModule && typeof root !== 'function')
      throw new ArgumentError(`trace: Expected a function or a Module, got ${root === null ? 'null' : typeof root}.`)
    if (!isModule && /^class\b/.test(String(root)))
      throw new ArgumentError(`trace: got the class ${root.name}; pass an instance of it: new ${root.name}(…).`)
    const fn = isModule ? this.#method(root) : root
    if (typeof fn !== 'function')
      throw new ArgumentError(
        `traced_func_name=${this.tracedFuncName} doesn't exist in ${root.constructor.name}: set tracedFuncName to one of its methods.`,
      )
    this.root = isModule ? root : new EmptyRoot()
    this.graph = new Graph()
    this.graph.tracerClass = this.constructor
    this.#paths = new Map([...this.root.namedModules()].map(([path, module]) => [module, path]))
    this.#attributes = new Map()
    this.#cache = new Map()
    this.#calls = new Map()
    this.#freshNames = new Map()
    this.nodeNameToScope = new Map()
    this.constants = []
    this.#children = []
    for (const [path, module] of this.root.namedModules()) {
      for (const [name, value] of Object.entries(module))
        if (isTensorLike(value) && !this.#attributes.has(value)) this.#attributes.set(value, path === '' ? name : `${path}.${name}`)
    }
    return fn as (...args: readonly unknown[]) => unknown
  }

  /** Runs `fn` on real values during a trace: modules give their own tensors, and their calls are plain calls. For tracers that compute along. */
  protected untraced<T>(fn: () => T): T {
    const before = this.#paused
    this.#paused = true
    try {
      return fn()
    } finally {
      this.#paused = before
    }
  }

  #method(root: Module): unknown {
    const fn = (root as unknown as Record<string, unknown>)[this.tracedFuncName]
    if (!(root instanceof GraphModule) || fn !== GraphModule.prototype.forward) return fn
    // Its parameters are those of the generated code.
    return standsFor((...args: readonly unknown[]): unknown => root.forward(...args), root.code)
  }

  #read(path: string, value: TensorLike, kind: 'parameter' | 'buffer' | 'constant'): unknown {
    if (this.#paused || (kind === 'buffer' && !this.proxyBufferAttributes)) return value
    return this.getattr(this.#attributes.get(value) ?? path, value, this.#cache)
  }

  /** Placeholders for the parameters, and the values that the function is called with. PyTorch's create_args_for_root. */
  createArgsForRoot(fn: (...args: readonly unknown[]) => unknown, concreteArgs: ConcreteArgs): RootArgs {
    return makeRootArgs(this, fn, concreteArgs)
  }
}

function checkedResult(result: unknown): unknown {
  if (result instanceof Promise)
    throw new TraceError('an async function cannot be traced symbolically', 'Trace the synchronous part, or use compile().')
  if (typeof result === 'object' && result !== null && Symbol.iterator in result && typeof (result as Partial<Iterator<unknown>>).next === 'function')
    throw new TraceError('a generator cannot be traced symbolically', 'Collect what it yields into an array, and return that.')
  return result
}

/** Stands for the module when a plain function is traced; it holds the function's tensor constants. */
class EmptyRoot extends Module {
  override forward(): never {
    throw new ArgumentError('this module only holds the constants of a traced function.')
  }
}
