// TracerBase: what all tracers have in common: creating nodes for calls, traced values for nodes, and arguments from values.
import { UnsupportedError } from '../../errors/index.ts'
import { isPlainObject, isCallable, isFunction, isObject } from '../../protocol/index.ts'
import { captureStack } from '../../provenance/index.ts'
import { mapOf } from '../values/builtins.ts'
import type { Graph } from '../graph/graph.ts'
import { holdsTraced, instanceBuilder } from '../values/instances.ts'
import { Node } from '../graph/node.ts'
import type { Argument, Kwargs, Opcode, Target } from '../graph/node.ts'
import type { NodeType } from '../../protocol/index.ts'
import { CONTROL_FLOW, isProxy, nodeOf, NOT_ITERABLE, proxyOf, tracerOf, unpack } from '../values/proxy.ts'
import type { ProxyTracer, Proxied } from '../values/proxy.ts'
import { Slice, isTuple, markTuple } from '../graph/pythonValues.ts'
import { TraceError } from '../graph/errors.ts'
import { applyCurrentMeta } from '../graph/traceback.ts'

/** The method by which an object determines what it becomes as an argument of a node; PyTorch's `__fx_create_arg__`. It gets the tracer. */
export const FX_CREATE_ARG: unique symbol = Symbol.for('tensorfx.fx.createArg')

/** An object that determines what it becomes as an argument of a node. */
export interface CreatesArg {
  [FX_CREATE_ARG](tracer: TracerBase): Argument
}

const createsArg = (value: object): value is CreatesArg => FX_CREATE_ARG in value && isFunction(value[FX_CREATE_ARG])

const NO_KWARGS: Kwargs = Object.freeze({})

/** The base class of tracers; PyTorch's torch.fx.proxy.TracerBase. */
export abstract class TracerBase implements ProxyTracer {
  abstract readonly graph: Graph
  /** Capture the user's stack trace for each node. Default true (PyTorch: false). */
  recordStackTraces = true
  /** The target that is being recorded, for messages. */
  #recording: Target | null = null

  /** Adds a node. Everything that is recorded goes through it, so subclasses can override it. PyTorch's create_node. */
  createNode(op: Opcode, target: Target, args: readonly Argument[], kwargs: Kwargs, name: string | null = null, type: NodeType | null = null): Node {
    const node = this.graph.createNode(op, target, args, kwargs, name, type)
    if (this.recordStackTraces) node.meta['stack_trace'] = captureStack()
    applyCurrentMeta(node)
    return node
  }

  /** Adds a node for a call with these values as arguments, and returns its traced value. PyTorch's create_proxy. */
  createProxy(
    op: Opcode,
    target: Target,
    args: readonly unknown[],
    kwargs: Readonly<Record<string, unknown>>,
    name: string | null = null,
    type: NodeType | null = null,
  ): Proxied {
    const outer = this.#recording
    this.#recording = target
    const nodeArgs: Argument[] = []
    for (let i = 0; i < args.length; i++) nodeArgs.push(this.createArg(args[i]))
    const keys = Object.keys(kwargs)
    const nodeKwargs = keys.length === 0 ? NO_KWARGS : Object.fromEntries(keys.map((k) => [k, this.createArg(kwargs[k])]))
    this.#recording = outer
    return this.proxy(this.createNode(op, target, nodeArgs, nodeKwargs, name, type))
  }

  /** The traced value of a node. Subclasses can override it to make values that know more. */
  proxy(node: Node): Proxied {
    return proxyOf(node, this)
  }

  /** The argument of a node for a value. Throws UnsupportedError for values that a graph cannot contain. PyTorch's create_arg. */
  createArg(value: unknown): Argument {
    if (isScalar(value)) return value
    if (!isObject(value) && !isCallable(value))
      throw new UnsupportedError(`argument of type: ${typeof value} cannot be part of a graph: pass a string.`)
    if (isProxy(value)) return this.#nodeArg(value)
    if (value instanceof Node) return value
    if (createsArg(value)) return value[FX_CREATE_ARG](this)
    if (isFunction(value)) return value
    if (Array.isArray(value)) {
      const items = value.map((v) => this.createArg(v))
      return isTuple(value) ? markTuple(items) : items
    }
    if (isPlainObject(value)) return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, this.createArg(v)]))
    if (value instanceof Slice) return new Slice<Argument>(this.createArg(value.start), this.createArg(value.stop), this.createArg(value.step))
    if (value instanceof Map) return this.#mapArg(value)
    if (holdsTraced(value)) return nodeOf(this.createProxy('call_function', instanceBuilder(value), [], { ...value }))
    throw new UnsupportedError(
      `argument of type: ${value.constructor.name} cannot be part of a graph: pass tensors, numbers, strings, booleans, null, or arrays, plain objects and Maps of them; or give the class a method [fx.FX_CREATE_ARG](tracer).`,
    )
  }

  /** The node that represents a node of another graph in this one; null (the default) if there is none. For tracers of nested graphs. */
  protected foreignNode(_node: Node): Node | null {
    return null
  }

  #nodeArg(value: Proxied): Node {
    const node = nodeOf(value)
    if (node.graph === this.graph) return node
    const here = this.foreignNode(node)
    if (here !== null) return here
    const operation = this.#recording === null ? '' : ` while trying to trace operations ${nameOf(this.#recording)}`
    throw new TraceError(
      `Found multiple different tracers [${tracerOf(value).constructor.name}, ${this.constructor.name}]${operation}: a value of another trace was used here`,
      'Do not use a traced value outside the function that is being traced.',
    )
  }

  /** A Map is built by the graph, because arguments have no Maps. */
  #mapArg(value: ReadonlyMap<unknown, unknown>): Argument {
    const entries = [...value].map(([key, item]): [unknown, unknown] => {
      if (isProxy(key) || key instanceof Node) {
        const name = isProxy(key) ? nodeOf(key).name : key.name
        throw new TraceError(
          `Keys for dictionaries used as an argument cannot contain a Node. Got key: ${name}`,
          'Use keys that are not traced values.',
        )
      }
      return [key, item]
    })
    return nodeOf(this.createProxy('call_function', mapOf, [entries], {}))
  }

  /**
   * Decides a condition on a traced value, for `fx.bool(x)`; a plain `if (x)` cannot be intercepted. Throws TraceError, unless a subclass knows the answer and
   * overrides it. PyTorch's to_bool.
   */
  toBool(_value: Proxied): boolean {
    throw new TraceError(CONTROL_FLOW)
  }

  /** Iterates over a traced value. By default destructuring works, and a loop throws TraceError. PyTorch's iter. */
  iter(value: Proxied): Iterator<Proxied> {
    return unpack(value)
  }

  /** The keys of a traced value, for `Object.keys(x)`, `{ ...x }` and `for (const k in x)`. Throws TraceError by default. PyTorch's keys. */
  keys(_value: Proxied): readonly string[] {
    throw new TraceError(`the keys of a traced value are not known while tracing (Object.keys, for … in, { ...x }): ${NOT_ITERABLE}`)
  }
}

function isScalar(value: unknown): value is string | number | boolean | bigint | null | undefined {
  return !isObject(value) && !isCallable(value) && typeof value !== 'symbol'
}

const nameOf = (target: Target): string => (typeof target === 'string' ? target : target.name)
