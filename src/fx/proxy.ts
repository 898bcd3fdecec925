// Proxy: a value during symbolic tracing. Whatever is done with it becomes a node: functions of the operator table find it through the override
// protocol, methods and properties through the JavaScript Proxy around it. What cannot be recorded throws a TraceError.
import { OVERRIDE } from '../protocol/index.ts'
import type { OverrideKind, TargetFunction } from '../protocol/index.ts'
import { isTensorLike } from '../protocol/index.ts'
import type { Argument, Node, Opcode, Target } from './node.ts'
import { getattr, operator } from './operator.ts'
import { TraceError } from './traceError.ts'

/** What a proxy needs of its tracer. */
export interface ProxyTracer {
  createProxy(
    op: Opcode,
    target: Target,
    args: readonly unknown[],
    kwargs: Readonly<Record<string, unknown>>,
    name?: string | null,
    type?: string | null,
  ): Proxied
  createArg(value: unknown): Argument
  /** The traced value of a node. */
  proxy(node: Node): Proxied
  /** A condition on a traced value. Throws unless a tracer knows better. */
  toBool(value: Proxied): boolean
  /** Iteration over a traced value. */
  iter(value: Proxied): Iterator<Proxied>
  /** The keys of a traced value, for `Object.keys(x)` and `{ ...x }`. Throws unless a tracer knows them. */
  keys(value: Proxied): readonly string[]
}

/** Symbol under which a traced value gives its {@link ProxyCore}. */
const CORE: unique symbol = Symbol('tensorfx.fx.proxy')

/** What Node's console shows a value by. */
const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom') as never

/** The inside of a traced value. */
export interface ProxyCore {
  readonly node: Node
  readonly tracer: ProxyTracer
}

/** A traced value as user code sees it: anything at all. */
export type Proxied = {
  readonly [CORE]: ProxyCore
  /** As {@link nodeOf}. */
  readonly node: Node
  /** As {@link tracerOf}. */
  readonly tracer: ProxyTracer
  // eslint-disable-next-line typescript/no-explicit-any -- user code treats it as the tensor that it stands for
  readonly [name: string]: any
}

/** Whether `value` is a traced value. */
export function isProxy(value: unknown): value is Proxied {
  return (typeof value === 'object' || typeof value === 'function') && value !== null && CORE in value
}

/** The node behind a traced value; PyTorch's `proxy.node`. An attribute that was never used becomes a node now. */
export function nodeOf(value: Proxied): Node {
  return value[CORE].node
}

/** The tracer that a traced value belongs to; PyTorch's `proxy.tracer`. */
export function tracerOf(value: Proxied): ProxyTracer {
  return value[CORE].tracer
}

/** A bound on how many elements destructuring may take. */
const MAX_UNPACK = 64

/** Control flow on values: PyTorch's text. */
export const CONTROL_FLOW = 'symbolically traced variables cannot be used as inputs to control flow'

/** Properties that JavaScript itself looks for; a traced value has none of them. */
const ABSENT = new Set<PropertyKey>(['then', 'constructor', 'prototype'])

/** Asks for data. */
const READS = new Set<PropertyKey>(['item', 'toArray', 'toTypedArray', 'tolist'])

/** Turns a value into a primitive. */
const COERCIONS = new Set<PropertyKey>([Symbol.toPrimitive, 'valueOf', 'toString', 'toJSON'])

const INDEX = /^\d+$/

/** What a JavaScript Proxy wraps: it can be called, and Node's console prints it by its node. */
type ProxyTarget = (() => void) & { [CORE]?: ProxyCore; [INSPECT]?: typeof inspect }

function inspect(this: ProxyTarget): string {
  return `Proxy(${String(this[CORE]?.node.name)})`
}

/** The traps of a traced value. Subclasses know properties that need no node. */
export class TracedHandler implements ProxyHandler<ProxyTarget> {
  readonly core: ProxyCore

  constructor(core: ProxyCore) {
    this.core = core
  }

  /** The traced value itself, with its node made. */
  #self(): Proxied {
    return this.core.tracer.proxy(this.core.node)
  }

  get(_target: ProxyTarget, key: PropertyKey): unknown {
    if (key === CORE) return this.core
    if (key === OVERRIDE) return record
    if (typeof key === 'symbol') {
      if (key === Symbol.iterator) return () => this.core.tracer.iter(this.#self())
      return COERCIONS.has(key) ? () => this.#coerced(key) : undefined
    }
    const name = key as string
    if (INDEX.test(name)) return this.core.tracer.createProxy('call_function', operator.getitem as TargetFunction, [this.#self(), Number(name)], {})
    if (ABSENT.has(name)) return undefined
    if (COERCIONS.has(name)) return () => this.#coerced(name)
    if (READS.has(name)) return () => this.#read(name)
    if (name === 'length') this.#length()
    // As in PyTorch, these two are the proxy's own, whatever the value has.
    if (name === 'node' || name === 'tracer') return this.core[name]
    return attributeProxy(this.core, name)
  }

  has(_target: ProxyTarget, key: PropertyKey): boolean {
    if (key === CORE || key === OVERRIDE) return true
    if (typeof key === 'symbol') return false
    throw new TraceError(`'${key}' in x asks what a traced value holds, which is not known while tracing`)
  }

  apply(_target: ProxyTarget, _self: unknown, args: readonly unknown[]): unknown {
    return this.core.tracer.createProxy('call_method', '__call__', [this.#self(), ...args], {})
  }

  set(_target: ProxyTarget, key: PropertyKey): boolean {
    throw new TraceError(
      `assigning ${keyText(key)} of a traced value cannot be recorded`,
      'Write operator.setitem(x, index, value), which is recorded; or compute a new value: torch.where, torch.cat, or an in-place operator such as x.copy_(y).',
    )
  }

  deleteProperty(_target: ProxyTarget, key: PropertyKey): boolean {
    throw new TraceError(`deleting ${keyText(key)} of a traced value cannot be recorded`)
  }

  defineProperty(_target: ProxyTarget, key: PropertyKey): boolean {
    throw new TraceError(`defining ${keyText(key)} of a traced value cannot be recorded`)
  }

  ownKeys(): string[] {
    return [...this.core.tracer.keys(this.#self())]
  }

  getOwnPropertyDescriptor(_target: ProxyTarget, key: PropertyKey): PropertyDescriptor | undefined {
    if (typeof key === 'symbol') return undefined
    return { configurable: true, enumerable: true, writable: false, value: attributeProxy(this.core, key as string) }
  }

  #coerced(how: PropertyKey): never {
    throw new TraceError(
      `a traced value was used as a plain value (${String(how)}): ${CONTROL_FLOW}. Comparisons are methods: x.gt(0), not x > 0; so is arithmetic: x.add(y), not x + y`,
    )
  }

  #read(name: string): never {
    throw new TraceError(`${name}() asks for the value of a traced tensor: ${CONTROL_FLOW}`)
  }

  #length(): never {
    throw new TraceError(
      "'length' is not supported in symbolic tracing by default: it is not known while tracing",
      'If you want the call to be recorded, write fx.len(x) (PyTorch: torch.fx.wrap("len")); for a tensor, x.shape[0] or x.ndim.',
    )
  }
}

/** What a traced value does with a call that it takes over; the same function for all, as there is a handler for each value. */
function record(
  this: Proxied,
  kind: OverrideKind,
  target: TargetFunction,
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>>,
): unknown {
  const { tracer } = this[CORE]
  if (kind === 'method') return tracer.createProxy('call_method', target.name, args, kwargs)
  return tracer.createProxy('call_function', target, args, kwargs)
}

/** `p.name`: a method call if it is called, else a getattr node, made when it is first used. */
class AttributeHandler extends TracedHandler {
  readonly #owner: ProxyCore
  readonly #name: string

  constructor(owner: ProxyCore, name: string) {
    super(lazyCore(owner.tracer, () => owner.tracer.createProxy('call_function', GETATTR, [owner.tracer.proxy(owner.node), name], {})))
    this.#owner = owner
    this.#name = name
  }

  override apply(_target: ProxyTarget, _self: unknown, args: readonly unknown[]): unknown {
    const { tracer, node } = this.#owner
    const [positional, kwargs] = splitKwargs(args)
    return tracer.createProxy('call_method', this.#name, [tracer.proxy(node), ...positional], kwargs)
  }
}

const GETATTR = getattr as unknown as TargetFunction

/** A core whose node is made when it is first asked for. */
function lazyCore(tracer: ProxyTracer, make: () => Proxied): ProxyCore {
  let node: Node | null = null
  return {
    tracer,
    get node(): Node {
      node ??= nodeOf(make())
      return node
    },
  }
}

/** A trailing plain object of a method call holds keyword arguments. */
export function splitKwargs(args: readonly unknown[]): [readonly unknown[], Readonly<Record<string, unknown>>] {
  const last = args.at(-1)
  if (typeof last !== 'object' || last === null || isProxy(last) || isTensorLike(last)) return [args, {}]
  const prototype: unknown = Object.getPrototypeOf(last)
  return prototype === Object.prototype || prototype === null ? [args.slice(0, -1), last as Readonly<Record<string, unknown>>] : [args, {}]
}

/** A traced value with these traps. */
export function proxyWith(handler: TracedHandler): Proxied {
  const target: ProxyTarget = () => {}
  target[CORE] = handler.core
  target[INSPECT] = inspect
  return new Proxy(target, handler) as unknown as Proxied
}

/** A traced value for a node; PyTorch's `Proxy(node, tracer)`. */
export function proxyOf(node: Node, tracer: ProxyTracer): Proxied {
  return proxyWith(new TracedHandler({ node, tracer }))
}

/** A traced value whose node is made when it is first used. */
export function lazyProxy(tracer: ProxyTracer, make: () => Proxied): Proxied {
  return proxyWith(new TracedHandler(lazyCore(tracer, make)))
}

function attributeProxy(owner: ProxyCore, name: string): Proxied {
  return proxyWith(new AttributeHandler(owner, name))
}

const keyText = (key: PropertyKey): string => (typeof key === 'string' && INDEX.test(key) ? `the element [${key}]` : `the property '${String(key)}'`)

/**
 * Iteration for destructuring: `const [a, b] = p.chunk(2)`. The iterator is closed as soon as the names are filled, which tells
 * destructuring from a loop; a loop runs into the bound and throws.
 */
export function* unpack(value: Proxied): Generator<Proxied> {
  for (let i = 0; i < MAX_UNPACK; i++) yield value[String(i)] as Proxied
  throw new TraceError(
    'Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs function argument. Loop over a known number of elements and index them (x[0]), or use torch.unbind with a known length',
  )
}
