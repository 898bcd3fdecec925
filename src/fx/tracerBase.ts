// TracerBase: what all tracers share: nodes for calls, proxies for nodes, arguments from values.
import { UnsupportedError } from '../errors/index.ts'
import { captureStack } from '../provenance/index.ts'
import { mapOf } from './builtins.ts'
import type { Graph } from './graph.ts'
import { holdsTraced, instanceBuilder } from './instances.ts'
import { Node } from './node.ts'
import type { Argument, Kwargs, Opcode, Target } from './node.ts'
import { CONTROL_FLOW, isProxy, nodeOf, proxyOf, tracerOf, unpack } from './proxy.ts'
import type { ProxyTracer, Proxied } from './proxy.ts'
import { Slice } from './slice.ts'
import { TraceError } from './traceError.ts'
import { applyCurrentMeta } from './traceback.ts'
import { isTuple, markTuple } from './tuple.ts'

/** Key of a method by which an object says what it becomes as an argument of a node; PyTorch's `__fx_create_arg__`. It is given the tracer. */
export const FX_CREATE_ARG: unique symbol = Symbol.for('tensorfx.fx.createArg') as never

/** An object that knows what it becomes in a graph. */
export interface CreatesArg {
  [FX_CREATE_ARG](tracer: TracerBase): Argument
}

const NO_KWARGS: Kwargs = Object.freeze({})

/** Shared by tracers; PyTorch's torch.fx.proxy.TracerBase. */
export abstract class TracerBase implements ProxyTracer {
  abstract readonly graph: Graph
  /** Keep the user's stack on each node. Default true (PyTorch: false). */
  recordStackTraces = true
  /** What is being recorded, for messages. */
  #recording: Target | null = null

  /** Adds a node. The override point for everything that is recorded. PyTorch's create_node. */
  createNode(op: Opcode, target: Target, args: readonly Argument[], kwargs: Kwargs, name: string | null = null, type: string | null = null): Node {
    const node = this.graph.createNode(op, target, args, kwargs, name, type)
    if (this.recordStackTraces) node.meta['stack_trace'] = captureStack()
    applyCurrentMeta(node)
    return node
  }

  /** Adds a node for a call whose arguments are values, and returns its traced value. PyTorch's create_proxy. */
  createProxy(
    op: Opcode,
    target: Target,
    args: readonly unknown[],
    kwargs: Readonly<Record<string, unknown>>,
    name: string | null = null,
    type: string | null = null,
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

  /** The traced value of a node. The override point for values that know more than their node. */
  proxy(node: Node): Proxied {
    return proxyOf(node, this)
  }

  /** What a value becomes as an argument of a node. Throws UnsupportedError for values that a graph cannot hold. PyTorch's create_arg. */
  createArg(value: unknown): Argument {
    if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return scalarArg(value)
    if (isProxy(value)) return this.#nodeArg(value)
    if (value instanceof Node) return value
    if (typeof (value as Partial<CreatesArg>)[FX_CREATE_ARG] === 'function') return (value as CreatesArg)[FX_CREATE_ARG](this)
    if (typeof value === 'function') return value
    if (Array.isArray(value)) {
      const items = value.map((v) => this.createArg(v))
      return isTuple(value) ? markTuple(items) : items
    }
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === Object.prototype || prototype === null) return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, this.createArg(v)]))
    if (value instanceof Slice) return new Slice<unknown>(this.createArg(value.start), this.createArg(value.stop), this.createArg(value.step))
    if (value instanceof Map) return this.#mapArg(value)
    if (holdsTraced(value)) return nodeOf(this.createProxy('call_function', instanceBuilder(value), [], { ...value }))
    throw new UnsupportedError(
      `argument of type: ${value.constructor.name} cannot stand in a graph: pass tensors, numbers, strings, booleans, null, or arrays, plain objects and Maps of them; or give the class a method [fx.FX_CREATE_ARG](tracer).`,
    )
  }

  /** What stands in this graph for a node of another one; null (the default) when nothing does. For tracers of graphs inside of graphs. */
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
      'A traced value must not leave the function that is traced.',
    )
  }

  /** Maps are objects of their own kind: the graph builds them. */
  #mapArg(value: ReadonlyMap<unknown, unknown>): Argument {
    const entries = [...value].map(([key, item]): [unknown, unknown] => {
      if (isProxy(key) || key instanceof Node) {
        const name = isProxy(key) ? nodeOf(key).name : key.name
        throw new TraceError(
          `Keys for dictionaries used as an argument cannot contain a Node. Got key: ${name}`,
          'Use keys that are known while tracing.',
        )
      }
      return [key, item]
    })
    return nodeOf(this.createProxy('call_function', mapOf, [entries], {}))
  }

  /**
   * A condition on a traced value, as `fx.bool(x)` asks for it: JavaScript asks nobody about `if (x)`. Throws TraceError; a tracer that knows the
   * answer overrides it. PyTorch's to_bool.
   */
  toBool(_value: Proxied): boolean {
    throw new TraceError(CONTROL_FLOW)
  }

  /** Iteration over a traced value. Default: as many elements as a destructuring takes; a loop is a TraceError. PyTorch's iter. */
  iter(value: Proxied): Iterator<Proxied> {
    return unpack(value)
  }

  /** The keys of a traced value, for `Object.keys(x)`, `{ ...x }`, `for (const k in x)`. Default: a TraceError. PyTorch's keys. */
  keys(_value: Proxied): readonly string[] {
    throw new TraceError(
      'the keys of a traced value are not known while tracing (Object.keys, for … in, { ...x }): Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs function argument',
    )
  }
}

function scalarArg(value: unknown): Argument {
  if (typeof value === 'symbol') throw new UnsupportedError('argument of type: symbol cannot stand in a graph: pass a string.')
  return value as Argument
}

const nameOf = (target: Target): string => (typeof target === 'string' ? target : target.name)
