// Tracer: runs a module or function on proxies and records a Graph. Subclass it to change what is a leaf, or what nodes are made.
import { parseExpressionAt } from 'acorn'
import type { ArrowFunctionExpression, FunctionExpression, Pattern } from 'acorn'
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import { Module, setModuleTracingHook } from '../module/index.ts'
import { LEAF_MODULE, isParameter, isTensorLike } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { captureStack } from '../provenance/index.ts'
import { Graph } from './graph.ts'
import { Node } from './node.ts'
import type { Argument, Kwargs, Opcode, Target } from './node.ts'
import { isProxy, makeProxy, nodeOf, unpack } from './proxy.ts'
import type { ProxyTracer, Proxied } from './proxy.ts'
import { Slice } from './slice.ts'
import { TraceError } from './traceError.ts'
import { isTuple, markTuple } from './tuple.ts'

/** A function that can be traced; parameter names are read from its source. */
// eslint-disable-next-line typescript/no-explicit-any -- any function
export type Traceable = Module | ((...args: any[]) => unknown)

/** Shared by tracers: proxies for nodes, arguments from values. */
export abstract class TracerBase implements ProxyTracer {
  abstract readonly graph: Graph
  /** Keep the user's stack on each node. Default true. */
  recordStackTraces = true

  /** Adds a node. The override point for everything that is recorded. */
  createNode(op: Opcode, target: Target, args: readonly Argument[], kwargs: Kwargs, name: string | null = null, type: string | null = null): Node {
    const node = this.graph.createNode(op, target, args, kwargs, name, type)
    if (this.recordStackTraces) node.meta['stack_trace'] = captureStack()
    return node
  }

  createProxy(
    op: Opcode,
    target: Target,
    args: readonly unknown[],
    kwargs: Readonly<Record<string, unknown>>,
    name: string | null = null,
    type: string | null = null,
  ): Proxied {
    const nodeArgs = args.map((a) => this.createArg(a))
    const keys = Object.keys(kwargs)
    const nodeKwargs = keys.length === 0 ? {} : Object.fromEntries(keys.map((k) => [k, this.createArg(kwargs[k])]))
    return this.proxy(this.createNode(op, target, nodeArgs, nodeKwargs, name, type))
  }

  /** The traced value of a node. */
  proxy(node: Node): Proxied {
    return makeProxy(node, this)
  }

  /** What a value becomes as an argument of a node. Throws UnsupportedError for values that a graph cannot hold. */
  createArg(value: unknown): Argument {
    if (isProxy(value)) {
      const node = nodeOf(value)
      if (node.graph !== this.graph)
        throw new TraceError('a value of another trace was used here; a traced value must not leave the function that is traced', '')
      return node
    }
    if (
      value === null ||
      value === undefined ||
      typeof value === 'number' ||
      typeof value === 'string' ||
      typeof value === 'boolean' ||
      value instanceof Node
    )
      return value
    if (Array.isArray(value)) {
      const items = value.map((v) => this.createArg(v))
      return isTuple(value) ? markTuple(items) : items
    }
    if (value instanceof Slice) return new Slice<unknown>(this.createArg(value.start), this.createArg(value.stop), this.createArg(value.step))
    if (typeof value === 'function') return value
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === Object.prototype || prototype === null)
      return Object.fromEntries(Object.entries(value as object).map(([k, v]) => [k, this.createArg(v)]))
    throw new UnsupportedError(
      `argument of type ${(value as object).constructor.name} cannot stand in a graph: pass tensors, numbers, strings, booleans, null, or arrays and plain objects of them.`,
    )
  }

  toBool(_value: Proxied): boolean {
    throw new TraceError('symbolically traced variables cannot be used as inputs to control flow')
  }

  iter(value: Proxied): Iterator<Proxied> {
    return unpack(value)
  }

  keys(value: Proxied): unknown {
    return this.createProxy('call_method', 'keys', [value], {})
  }
}

/** Records what is done with proxies into an existing graph; for rewriting with `makeProxy(node, new GraphAppendingTracer(graph))`. */
export class GraphAppendingTracer extends TracerBase {
  readonly graph: Graph

  constructor(graph: Graph) {
    super()
    this.graph = graph
  }
}

/** Records a program as a graph; PyTorch's torch.fx.Tracer. */
export class Tracer extends TracerBase {
  graph: Graph = new Graph()
  root: Module = new EmptyRoot()
  /** Record reads of buffers as get_attr, as for parameters. Default true: PyTorch's proxy_buffer_attributes is off, and bakes them in. */
  proxyBufferAttributes = true
  readonly #paths = new Map<Module, string>()
  readonly #attributes = new Map<unknown, string>()
  readonly #attributeProxies = new Map<string, Proxied>()
  readonly #moduleStack = new Map<string, readonly [string, string]>()
  #constants = 0

  /** Whether calls of `module` become one call_module node. Default: the layers of nn, but not containers. */
  isLeafModule(module: Module, _path: string): boolean {
    return (module as { [LEAF_MODULE]?: boolean })[LEAF_MODULE] === true
  }

  /** The path of a module of the root. Throws ArgumentError for a foreign one. */
  pathOfModule(module: Module): string {
    const path = this.#paths.get(module)
    if (path === undefined)
      throw new ArgumentError(`module ${module.constructor.name} is not installed as a submodule: assign it to a property of the traced module.`)
    return path
  }

  /** A module call inside the traced program. */
  callModule(module: Module, forward: (...args: readonly unknown[]) => unknown, args: readonly unknown[]): unknown {
    const path = this.pathOfModule(module)
    let key = path
    for (let n = 1; this.#moduleStack.has(key); n++) key = `${path}@${n}`
    this.#moduleStack.set(key, [path, module.constructor.name])
    try {
      return this.isLeafModule(module, path) ? this.createProxy('call_module', path, args, {}) : forward(...args)
    } finally {
      this.#moduleStack.delete(key)
    }
  }

  override createNode(
    op: Opcode,
    target: Target,
    args: readonly Argument[],
    kwargs: Kwargs,
    name: string | null = null,
    type: string | null = null,
  ): Node {
    const node = super.createNode(op, target, args, kwargs, name, type)
    if (this.#moduleStack.size > 0) node.meta['nn_module_stack'] = new Map(this.#moduleStack)
    return node
  }

  override createArg(value: unknown): Argument {
    if (isTensorLike(value)) return this.#tensorArg(value)
    return super.createArg(value)
  }

  #tensorArg(value: TensorLike): Node {
    const path = this.#attributes.get(value)
    if (path !== undefined) return nodeOf(this.#attribute(path))
    if (isParameter(value)) throw new ArgumentError('parameter is not a member of this module: assign it to a property of the traced module.')
    const name = this.getFreshQualname('_tensor_constant')
    this.root.registerBuffer(name, value)
    this.#attributes.set(value, name)
    return this.createNode('get_attr', name, [], {})
  }

  /** A name that the root does not use yet. */
  getFreshQualname(prefix: string): string {
    let name = `${prefix}${this.#constants++}`
    while (name in this.root) name = `${prefix}${this.#constants++}`
    return name
  }

  #attribute(path: string): Proxied {
    let proxy = this.#attributeProxies.get(path)
    if (proxy === undefined) {
      proxy = this.createProxy('get_attr', path, [], {})
      this.#attributeProxies.set(path, proxy)
    }
    return proxy
  }

  /**
   * Runs `root` on proxies and returns the graph. `concreteArgs` fixes parameters by name to plain values.
   * Throws TraceError where the program does what cannot be recorded.
   */
  trace(root: Traceable, concreteArgs: Readonly<Record<string, unknown>> = {}): Graph {
    const module = root instanceof Module ? root : new EmptyRoot()
    const fn = (root instanceof Module ? root.forward : root) as (...args: readonly unknown[]) => unknown
    this.root = module
    this.graph = new Graph()
    this.graph.tracerClass = this.constructor
    for (const [path, child] of module.namedModules()) this.#paths.set(child, path)
    const args = this.createArgsForRoot(fn, concreteArgs)
    const restoreAttributes = this.#interceptAttributes(module)
    const outer = setModuleTracingHook({ callModule: (m, forward, given) => (m === module ? forward(...given) : this.callModule(m, forward, given)) })
    try {
      const result = fn.apply(module, args)
      if (result instanceof Promise)
        throw new TraceError('an async function cannot be traced symbolically', 'Trace the synchronous part, or use compile().')
      this.createNode('output', 'output', [this.createArg(result)], {})
    } finally {
      setModuleTracingHook(outer)
      restoreAttributes()
    }
    return this.graph
  }

  /** Placeholders for the parameters, and the values that the function is called with. */
  createArgsForRoot(fn: (...args: readonly unknown[]) => unknown, concreteArgs: Readonly<Record<string, unknown>>): unknown[] {
    const parameters = parametersOf(fn)
    const unknown = Object.keys(concreteArgs).filter((name) => !parameters.some((p) => p.name === name))
    if (unknown.length > 0)
      throw new ArgumentError(
        `concreteArgs: the function has no parameter '${unknown[0] as string}'; its parameters are ${parameters.map((p) => p.name).join(', ')}.`,
      )
    return parameters.flatMap((parameter): unknown[] => {
      if (parameter.name in concreteArgs) return [concreteArgs[parameter.name]]
      if (parameter.rest) return [this.createProxy('placeholder', `*${parameter.name}`, [], {})]
      return [this.createProxy('placeholder', parameter.name, parameter.hasDefault ? [parameter.defaultValue] : [], {}, parameter.name)]
    })
  }

  /** While tracing, reading a parameter or buffer from its module gives a get_attr proxy. Returns the function that undoes it. */
  #interceptAttributes(root: Module): () => void {
    const undo: (() => void)[] = []
    // The list first: walking the tree reads the very properties that are replaced here.
    for (const [path, module] of [...root.namedModules()]) {
      const buffers = new Set([...module.ownBuffers()].map(([name]) => name))
      for (const [name, value] of Object.entries(module)) {
        if (!isTensorLike(value)) continue
        const full = path === '' ? name : `${path}.${name}`
        if (!this.#attributes.has(value)) this.#attributes.set(value, full)
        if (!isParameter(value) && buffers.has(name) && !this.proxyBufferAttributes) continue
        let current: unknown = value
        Object.defineProperty(module, name, {
          configurable: true,
          enumerable: true,
          get: () => (current === value ? this.#attribute(this.#attributes.get(value) as string) : current),
          set: (next: unknown) => {
            current = next
          },
        })
        undo.push(() => Object.defineProperty(module, name, { configurable: true, enumerable: true, writable: true, value }))
      }
    }
    return () => {
      for (const step of undo) step()
    }
  }
}

/** Stands for the module when a plain function is traced; it holds the function's tensor constants. */
class EmptyRoot extends Module {
  override forward(): never {
    throw new ArgumentError('this module only holds the constants of a traced function.')
  }
}

interface Parameter {
  readonly name: string
  readonly rest: boolean
  readonly hasDefault: boolean
  readonly defaultValue: unknown
}

/** Parameter names, read from the function's source. */
function parametersOf(fn: (...args: readonly unknown[]) => unknown): Parameter[] {
  const source = String(fn)
  const parsed = parseFunction(source)
  if (parsed === null)
    return Array.from({ length: fn.length }, (_, i) => ({ name: `arg${i}`, rest: false, hasDefault: false, defaultValue: undefined }))
  return parsed.params.map((pattern, i) => parameterOf(pattern, i))
}

function parseFunction(source: string): FunctionExpression | ArrowFunctionExpression | null {
  // Methods (`forward(x) {…}`) only parse inside an object; functions and arrows as they are.
  for (const [text, method] of [
    [`(${source})`, false],
    [`({${source}})`, true],
  ] as const) {
    try {
      const expression = parseExpressionAt(text, 0, { ecmaVersion: 'latest' })
      if (!method && (expression.type === 'FunctionExpression' || expression.type === 'ArrowFunctionExpression')) return expression
      if (method && expression.type === 'ObjectExpression') {
        const [property] = expression.properties
        if (property?.type === 'Property' && property.value.type === 'FunctionExpression') return property.value
      }
    } catch {
      // Not of this form.
    }
  }
  return null
}

function parameterOf(pattern: Pattern, index: number): Parameter {
  if (pattern.type === 'Identifier') return { name: pattern.name, rest: false, hasDefault: false, defaultValue: undefined }
  if (pattern.type === 'RestElement')
    return {
      name: pattern.argument.type === 'Identifier' ? pattern.argument.name : `arg${index}`,
      rest: true,
      hasDefault: false,
      defaultValue: undefined,
    }
  if (pattern.type === 'AssignmentPattern') {
    const inner = parameterOf(pattern.left, index)
    const literal =
      pattern.right.type === 'Literal'
        ? pattern.right.value
        : pattern.right.type === 'UnaryExpression' && pattern.right.argument.type === 'Literal'
          ? -Number(pattern.right.argument.value)
          : undefined
    return { ...inner, hasDefault: true, defaultValue: literal ?? null }
  }
  return { name: `arg${index}`, rest: false, hasDefault: false, defaultValue: undefined }
}
