// Tracer: runs a module or function on traced values and records a Graph. Subclass it to change which modules are leaves and which nodes are created.
import { ArgumentError } from '../../errors/index.ts'
import { Module, getAttribute, isLibraryLayer, setAttribute, setModuleTracingHook } from '../../module/index.ts'
import {
  checkArgument,
  checkCount,
  checkMethod,
  checkOptions,
  childPath,
  isClass,
  isFunction,
  isModule,
  isObject,
  isParameter,
  isTensorLike,
  remembered,
  valueText,
} from '../../protocol/index.ts'
import type { TensorLike } from '../../protocol/index.ts'
import { interceptTensors, patchObjects } from './patches.ts'
import type { AutowrapModules } from './patches.ts'
import { BodyStack } from './bodies.ts'
import type { BodySource, RecordedBodies } from './bodies.ts'
import { describeConstant } from '../run/constants.ts'
import type { CapturedConstant } from '../run/constants.ts'
import { Graph } from '../graph/graph.ts'
import { GraphModule, unbound } from '../run/graphModule.ts'
import { makeGraphModule } from '../run/lazyGraphModule.ts'
import { isProxyableInstance } from '../values/instances.ts'
import { refuseMutation } from '../graph/purity.ts'
import { targetText } from '../graph/node.ts'
import type { Node, Argument, Kwargs, Opcode, Target } from '../graph/node.ts'
import type { NodeType } from '../../protocol/index.ts'
import { placeOf } from '../graph/origin.ts'
import { standsFor, testedParameters } from './parameters.ts'
import { isProxy, knownProxy, nodeOf } from '../values/proxy.ts'
import type { Proxied } from '../values/proxy.ts'
import { makeRootArgs } from './rootArgs.ts'
import type { RootArgs } from './rootArgs.ts'
import type { ConcreteArgs } from './concreteArgs.ts'
import { TraceError } from '../graph/errors.ts'
import { hasPreservedNodeMeta } from '../graph/traceback.ts'
import { TracerBase } from './tracerBase.ts'
import { checkConditions, reportTested } from '../values/unusedConditions.ts'
import type { UnusedConditions } from '../values/unusedConditions.ts'

/** What can be traced: a module or a function. The parameter names are read from its source. */
// eslint-disable-next-line typescript/no-explicit-any -- any function
export type Traceable = Module | ((...args: any[]) => unknown)

/** Options of {@link Tracer}. */
export interface TracerOptions {
  /**
   * Objects, by name, whose functions are recorded if they get a traced value: with `{ math: Math }`, `Math.sqrt(x.size(0))` becomes a call of math.sqrt. The
   * objects are patched during a trace. Default: none (PyTorch: its math module). `fx.math` needs no patching.
   */
  readonly autowrapModules?: AutowrapModules
  /** Make the shape and dtype of parameters and buffers plain values during tracing. Default true (PyTorch: false). */
  readonly paramShapesConstant?: boolean
  /**
   * What to do about a comparison whose result is unused. Usually it is a condition, `if (x.gt(0))`, of which the graph has only one branch. `'warn'` (default)
   * prints where it is and what to do, `'error'` throws TraceError, `'ignore'` does nothing. PyTorch does not need this, because Python lets a tracer intercept
   * conditions.
   */
  readonly unusedConditions?: UnusedConditions
}

/** The module that was being called: its path and class name. PyTorch's Scope. */
export interface ModuleScope {
  readonly modulePath: string
  readonly moduleType: string | null
}

const ROOT_SCOPE: ModuleScope = { modulePath: '', moduleType: null }

let tracing = 0

/** Whether a trace is in progress. PyTorch's is_fx_tracing. */
export const isFxTracing = (): boolean => tracing > 0

/** Records a program as a graph; PyTorch's torch.fx.Tracer. */
export class Tracer extends TracerBase {
  graph: Graph = new Graph()
  /** The traced module; for a function, a module that holds its constants. */
  root: Module = new EmptyRoot()
  /** Record reads of buffers as get_attr nodes, as for parameters. Default true (PyTorch: false, which makes values computed from them constants). */
  proxyBufferAttributes = true
  /** Throw TraceError for functions and methods that write into their arguments. Default false. */
  checkMutableOperations = false
  /** Record `console.assert(condition, message)` on a traced condition as torch._assert. Default false. */
  traceAsserts = false
  /** The name of the method to trace. Default 'forward'. */
  tracedFuncName = 'forward'
  /** The innermost module call in which each node was recorded, by the node's name. */
  nodeNameToScope: Map<string, ModuleScope> = new Map()
  /** Values that the program used although they are neither arguments nor part of the module's state. They are now part of the graph. */
  constants: CapturedConstant[] = []
  readonly #options: TracerOptions
  #paths: ReadonlyMap<Module, string> = new Map()
  /** The paths of the root's tensors and objects. */
  #attributes = new Map<unknown, string>()
  #cache: Map<string, Proxied> = new Map()
  #scope = ROOT_SCOPE
  #calls = new Map<string, number>()
  #moduleStack: ReadonlyMap<string, readonly [string, string]> = new Map()
  #freshNames = new Map<string, number>()
  /** The arguments that were reported as conditions. */
  readonly #tested = new Set<string>()
  /** The paths of the child modules that this trace has made. */
  #children: string[] = []
  readonly #bodies: BodyStack = new BodyStack((input, outer) => this.bodyInput(input, outer))
  #paused = false
  /** The graph of the last trace, once that has ended. */
  #ended: Graph | null = null

  constructor(options: TracerOptions = {}) {
    checkCount('Tracer', arguments, 1)
    super()
    checkOptions(`new ${new.target.name}`, options, { autowrapModules: true, paramShapesConstant: 'boolean', unusedConditions: true })
    this.#options = options
  }

  /** Whether a call of `module` is recorded as one call_module node. Default: true for the layers of nn except containers. PyTorch's is_leaf_module. */
  isLeafModule(module: Module, _path: string): boolean {
    return isLibraryLayer(module)
  }

  /** The path of a module in the root. Throws ArgumentError if it is not there. PyTorch's path_of_module. */
  pathOfModule(module: Module): string {
    checkArgument(isModule(module), 'Tracer.pathOfModule', 'module', 'a Module', module)
    const path = this.#paths.get(module)
    if (path === undefined)
      throw new ArgumentError(
        `module ${module.constructor.name} is not installed as a submodule: assign it to a property of the traced module, or put it into an nn.ModuleList (not into an array).`,
      )
    return path
  }

  /** Handles a module call in the traced program: records one node for a leaf, otherwise calls `forward`. PyTorch's call_module. */
  callModule(module: Module, forward: (...args: readonly unknown[]) => unknown, args: readonly unknown[]): unknown {
    const path = this.pathOfModule(module)
    const before = [this.#scope, this.#moduleStack] as const
    const calls = this.#calls.get(path) ?? 0
    this.#calls.set(path, calls + 1)
    const moduleType = module.constructor.name
    this.#scope = { modulePath: path, moduleType }
    this.#moduleStack = new Map(this.#moduleStack).set(calls === 0 ? path : `${path}@${calls}`, [path, moduleType])
    try {
      if (this.isLeafModule(module, path)) return this.createProxy('call_module', path, args, {})
      const result = forward(...args)
      if (!(module instanceof GraphModule)) this.#noteTested(module.forward, `${moduleType}.forward`, args)
      return result
    } finally {
      ;[this.#scope, this.#moduleStack] = before
    }
  }

  /** Reports traced values that a function uses as conditions. */
  #noteTested(fn: (...args: never[]) => unknown, name: string, args: readonly unknown[]): void {
    for (const [i, argument] of testedParameters(fn).entries()) {
      const key = `${name} ${argument}`
      if (argument === null || !isProxy(args[i]) || this.#tested.has(key)) continue
      this.#tested.add(key)
      reportTested(argument, name, this.#options.unusedConditions ?? 'warn')
    }
  }

  /**
   * The value that reading a tensor from a module of the root gives. By default a traced value, the same for every read; `cache` has those made so far.
   * PyTorch's getattr.
   */
  getattr(path: string, value: TensorLike, cache: Map<string, Proxied>): unknown {
    return remembered(cache, path, () => {
      const proxy = this.#outsideOfBodies(() => this.createProxy('get_attr', path, [], {}))
      return this.#options.paramShapesConstant === false ? proxy : knownProxy(nodeOf(proxy), this, value)
    })
  }

  override createNode(
    op: Opcode,
    target: Target,
    args: readonly Argument[],
    kwargs: Kwargs,
    name: string | null = null,
    type: NodeType | null = null,
  ): Node {
    if (this.checkMutableOperations) refuseMutation(op, target)
    const node = super.createNode(op, target, args, kwargs, name, type)
    if (this.#moduleStack.size > 0 && !hasPreservedNodeMeta()) node.meta['nn_module_stack'] = this.#moduleStack
    this.nodeNameToScope.set(node.name, this.#scope)
    return node
  }

  override createProxy(
    op: Opcode,
    target: Target,
    args: readonly unknown[],
    kwargs: Readonly<Record<string, unknown>>,
    name: string | null = null,
    type: NodeType | null = null,
  ): Proxied {
    if (this.graph === this.#ended)
      throw new TraceError(
        `a traced value was used after its trace had ended (${targetText(target)})`,
        'A traced value stands for a value only while the program is traced. Return it from the program instead of keeping it in a variable or a property.',
      )
    return super.createProxy(op, target, args, kwargs, name, type)
  }

  override createArg(value: unknown): Argument {
    if (!isObject(value)) return super.createArg(value)
    if (isTensorLike(value)) return this.#tensorArg(value)
    if (value instanceof Module) return this.createNode('get_attr', this.pathOfModule(value), [], {})
    if (isProxyableInstance(value)) return this.#constant(value, `_${value.constructor.name}_constant_`)
    return super.createArg(value)
  }

  /** As in PyTorch, each use of a tensor that was not read from its module gets its own get_attr node. */
  #tensorArg(value: TensorLike): Node {
    const path = this.#attributes.get(value)
    if (path !== undefined) return this.createNode('get_attr', path, [], {})
    if (isParameter(value)) throw new ArgumentError('parameter is not a member of this module: assign it to a property of the traced module.')
    return this.#constant(value, '_tensor_constant')
  }

  /** Makes a value from outside the program an attribute of the root. */
  #constant(value: object, prefix: string): Node {
    let path = this.#attributes.get(value)
    if (path !== undefined) return this.createNode('get_attr', path, [], {})
    path = this.getFreshQualname(prefix)
    if (isTensorLike(value)) this.root.registerBuffer(path, value)
    else setAttribute(this.root, path, value)
    this.#attributes.set(value, path)
    const node = this.createNode('get_attr', path, [], {})
    this.constants.push(describeConstant(path, value, node))
    return node
  }

  protected override foreignNode(node: Node): Node | null {
    return this.#bodies.capture(node)
  }

  /** Called with an input of a control flow body that stands for the value of `outer`, a node outside the body. For tracers that know values. */
  protected bodyInput(_input: Node, _outer: Node): void {}

  /**
   * Records functions as child graphs of the root, for control flow. Outer values that they use, including parameters, become inputs; modules that they call are
   * shared with the root. This is how the branches of torch.cond are captured.
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
      const path = this.getFreshQualname(sources[i]?.prefix ?? '')
      // Not enumerable, because the trace must not change the traced module visibly. The GraphModule gets it as an ordinary child.
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

  /** Records in the graph outside all bodies: parameters are read there, once, and passed to the bodies. */
  #outsideOfBodies<T>(fn: () => T): T {
    const { graph } = this
    this.graph = this.#bodies.outermost ?? graph
    try {
      return fn()
    } finally {
      this.graph = graph
    }
  }

  /** A name that the root does not use yet: the prefix with a number. PyTorch's get_fresh_qualname. */
  getFreshQualname(prefix: string): string {
    let number = this.#freshNames.get(prefix) ?? 0
    while (`${prefix}${number}` in this.root) number++
    this.#freshNames.set(prefix, number + 1)
    return `${prefix}${number}`
  }

  /**
   * Runs `root` on traced values and returns the graph. `concreteArgs` fixes parameters to plain values. Throws TraceError if the program does something that
   * cannot be recorded, and then leaves the root unchanged.
   */
  trace(root: Traceable, concreteArgs: ConcreteArgs = {}): Graph {
    checkMethod(this, 'Tracer.trace', arguments, 2)
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
      if (!(root instanceof GraphModule))
        this.#noteTested(fn, root instanceof Module ? `${root.constructor.name}.${this.tracedFuncName}` : root.name || 'the function', values)
    } catch (error) {
      for (const path of [...this.constants.map((c) => c.path), ...this.#children]) Reflect.deleteProperty(this.root, path)
      throw error
    } finally {
      tracing--
      this.#ended = this.graph
      for (const step of undo.reverse()) step()
    }
    const name = root instanceof Module ? `${root.constructor.name}.${this.tracedFuncName}` : root.name
    this.graph.sourceHint = root instanceof GraphModule ? root.graph.sourceHint : placeOf(this.graph.nodes, name)
    return this.graph
  }

  /** Resets the state, because a tracer can trace several programs. Returns the function to run. */
  #begin(root: Traceable): (...args: readonly unknown[]) => unknown {
    const isModule = root instanceof Module
    if (!isModule && !isFunction(root)) throw new ArgumentError(`trace: argument 'root' must be a function or a Module, got ${valueText(root)}.`)
    if (!isModule && isClass(root)) throw new ArgumentError(`trace: got the class ${root.name}; pass an instance of it: new ${root.name}(…).`)
    const fn = isModule ? this.#method(root) : root
    if (!isFunction(fn))
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
    this.#tested.clear()
    for (const [path, module] of this.root.namedModules()) {
      for (const [name, value] of Object.entries(module))
        if (isTensorLike(value) && !this.#attributes.has(value)) this.#attributes.set(value, childPath(path, name))
    }
    return fn
  }

  /** Runs `fn` on real values during a trace: reads of tensors and calls of modules are not recorded. For tracers that also compute values. */
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
    const fn = unbound(getAttribute(root, this.tracedFuncName))
    if (!(root instanceof GraphModule) || fn !== GraphModule.prototype.forward) return fn
    // Its parameters are those of the generated code, not of GraphModule.forward.
    return standsFor((...args: readonly unknown[]): unknown => root.forward(...args), root.code)
  }

  #read(path: string, value: TensorLike, kind: 'parameter' | 'buffer' | 'constant'): unknown {
    if (this.#paused || (kind === 'buffer' && !this.proxyBufferAttributes)) return value
    return this.getattr(this.#attributes.get(value) ?? path, value, this.#cache)
  }

  /** Creates the placeholders for the parameters, and the values to call the function with. PyTorch's create_args_for_root. */
  createArgsForRoot(fn: (...args: readonly unknown[]) => unknown, concreteArgs: ConcreteArgs): RootArgs {
    return makeRootArgs(this, fn, concreteArgs)
  }
}

function checkedResult(result: unknown): unknown {
  if (result instanceof Promise) {
    // What the function does after its first await fails, as the trace has ended; that is not an error of its own.
    result.catch(() => {})
    throw new TraceError('an async function cannot be traced symbolically', 'Trace the synchronous part, and await around it, or use compile().')
  }
  if (typeof result === 'object' && result !== null && Symbol.iterator in result && 'next' in result && isFunction(result.next))
    throw new TraceError('a generator cannot be traced symbolically', 'Collect the values that it yields in an array, and return that.')
  return result
}

/** The root of the trace of a function. It holds the function's constants. */
class EmptyRoot extends Module {
  override forward(): never {
    throw new ArgumentError('this module only holds the constants of a traced function.')
  }
}
