// Traced values: what a program computes with during symbolic tracing. Operations on them become nodes: the functions of the operator table recognise them by the
// override protocol, and a JavaScript Proxy intercepts methods and properties. Anything that cannot be recorded throws a TraceError.
import { checkArgument, INSPECT, isCallable, isFunction, isObject, isPlainObject, isTensorLike, OVERRIDE } from '../../protocol/index.ts'
import type { OverrideKind, TargetFunction } from '../../protocol/index.ts'
import { Node } from '../graph/node.ts'
import type { Argument, Opcode, Target } from '../graph/node.ts'
import type { NodeType } from '../../protocol/index.ts'
import { getattr, operator } from '../graph/operator.ts'
import { TraceError } from '../graph/errors.ts'
import { answered } from './unusedConditions.ts'

/** What a proxy needs of its tracer. */
export interface ProxyTracer {
  createProxy(
    op: Opcode,
    target: Target,
    args: readonly unknown[],
    kwargs: Readonly<Record<string, unknown>>,
    name?: string | null,
    type?: NodeType | null,
  ): Proxied
  createArg(value: unknown): Argument
  /** The traced value of a node. */
  proxy(node: Node): Proxied
  /** Whether a traced condition holds. Throws unless the tracer knows. */
  toBool(value: Proxied): boolean
  /** Iterates over a traced value. */
  iter(value: Proxied): Iterator<Proxied>
  /** The keys of a traced value, for `Object.keys(x)` and `{ ...x }`. Throws unless the tracer knows them. */
  keys(value: Proxied): readonly string[]
}

/** The property by which a traced value gives access to its {@link ProxyCore}. */
const CORE: unique symbol = Symbol('tensorfx.fx.proxy')

/** What a traced value consists of. */
interface ProxyCore {
  readonly node: Node
  readonly tracer: ProxyTracer
}

/** A traced value as user code sees it: it has any property and any method. */
export type Proxied = {
  readonly [CORE]: ProxyCore
  /** See {@link nodeOf}. */
  readonly node: Node
  /** See {@link tracerOf}. */
  readonly tracer: ProxyTracer
  // eslint-disable-next-line typescript/no-explicit-any -- user code treats it like the tensor that it stands for
  readonly [name: string]: any
}

/** Whether `value` is a traced value. */
export function isProxy(value: unknown): value is Proxied {
  return (isObject(value) || isCallable(value)) && CORE in value
}

/** The node of a traced value; PyTorch's `proxy.node`. An attribute that has not been used yet becomes a node now. */
export function nodeOf(value: Proxied): Node {
  checkArgument(isProxy(value), 'nodeOf', 'value', 'a traced value (a Proxy)', value)
  return value[CORE].node
}

/** The tracer that a traced value belongs to; PyTorch's `proxy.tracer`. */
export function tracerOf(value: Proxied): ProxyTracer {
  checkArgument(isProxy(value), 'tracerOf', 'value', 'a traced value (a Proxy)', value)
  return value[CORE].tracer
}

/** The largest number of elements that destructuring may take. */
const MAX_UNPACK = 64

/** PyTorch's message for control flow that depends on values. */
export const CONTROL_FLOW = 'symbolically traced variables cannot be used as inputs to control flow'

/** Properties that JavaScript itself reads; a traced value does not have them. */
const ABSENT = new Set<PropertyKey>(['then', 'constructor', 'prototype'])

/** Methods that read data. */
const READS = new Set<PropertyKey>([
  'item',
  'toArray',
  'toTypedArray',
  'itemAsync',
  'toArrayAsync',
  'toTypedArrayAsync',
  'toBigIntArrayAsync',
  'tolist',
])

/** Methods that convert a value to a primitive. */
const COERCIONS = new Set<PropertyKey>([Symbol.toPrimitive, 'valueOf', 'toString', 'toJSON'])

/** `x[0]`, and Python's `x[-1]`. */
const INDEX = /^-?\d+$/

/** Whether a node is the size of a tensor in one dimension: `x.shape[0]`, `x.size(0)`. */
function isSize({ op, target, args }: Node): boolean {
  if (op === 'call_method' && target === 'size') return args.length > 1
  const [owner] = args
  return target === operator.getitem && owner instanceof Node && (isShape(owner) || (owner.op === 'call_method' && owner.target === 'size'))
}

const isShape = (node: Node): boolean => node.target === getattr && node.args[1] === 'shape'

/** The target of the JavaScript Proxy: callable, and printed as its node by Node's console. */
type ProxyTarget = (() => void) & { [CORE]?: ProxyCore; [INSPECT]?: typeof inspect }

function inspect(this: ProxyTarget): string {
  return `Proxy(${String(this[CORE]?.node.name)})`
}

/** The traps of a traced value. Subclasses answer some properties without a node. */
class TracedHandler implements ProxyHandler<ProxyTarget> {
  readonly core: ProxyCore

  constructor(core: ProxyCore) {
    this.core = core
  }

  /** The traced value itself, whose node exists. */
  #self(): Proxied {
    return this.core.tracer.proxy(this.core.node)
  }

  get(_target: ProxyTarget, key: string | symbol): unknown {
    if (key === CORE) return this.core
    if (key === OVERRIDE) return record
    if (typeof key === 'symbol') {
      if (key === Symbol.iterator) return () => this.core.tracer.iter(this.#self())
      return COERCIONS.has(key) ? () => this.#coerced(key) : undefined
    }
    if (INDEX.test(key)) return this.core.tracer.createProxy('call_function', operator.getitem, [this.#self(), Number(key)], {})
    if (ABSENT.has(key)) return undefined
    if (COERCIONS.has(key)) return () => this.#coerced(key)
    if (READS.has(key)) return () => this.#read(key)
    if (key === 'length') this.#length()
    // As in PyTorch, these two belong to the proxy, even if the value has properties of these names.
    if (key === 'node' || key === 'tracer') return this.core[key]
    return attributeProxy(this.core, key)
  }

  has(_target: ProxyTarget, key: string | symbol): boolean {
    if (key === CORE || key === OVERRIDE) return true
    if (typeof key === 'symbol') return false
    throw new TraceError(`'${key}' in x: the properties of a traced value are not known while tracing`)
  }

  apply(_target: ProxyTarget, _self: unknown, args: readonly unknown[]): unknown {
    return this.core.tracer.createProxy('call_method', '__call__', [this.#self(), ...args], {})
  }

  set(_target: ProxyTarget, key: string | symbol): boolean {
    throw new TraceError(
      `assigning ${keyText(key)} of a traced value cannot be recorded`,
      'Call operator.setitem(x, index, value), which is recorded, or compute a new value: torch.where, torch.cat, or an in-place operator such as x.copy_(y).',
    )
  }

  deleteProperty(_target: ProxyTarget, key: string | symbol): boolean {
    throw new TraceError(`deleting ${keyText(key)} of a traced value cannot be recorded`)
  }

  defineProperty(_target: ProxyTarget, key: string | symbol): boolean {
    throw new TraceError(`defining ${keyText(key)} of a traced value cannot be recorded`)
  }

  ownKeys(): string[] {
    return [...this.core.tracer.keys(this.#self())]
  }

  getOwnPropertyDescriptor(_target: ProxyTarget, key: string | symbol): PropertyDescriptor | undefined {
    if (typeof key === 'symbol') return undefined
    return { configurable: true, enumerable: true, writable: false, value: attributeProxy(this.core, key) }
  }

  #coerced(how: PropertyKey): never {
    if (isSize(this.core.node))
      throw new TraceError(
        `a size of a traced tensor was used as a number, which it is not while tracing: ${CONTROL_FLOW}`,
        `Let -1 stand for the size that follows from the others, x.view([B, T, heads, -1]), compute with it by functions that are recorded, operator.floordiv(C, heads), or trace for given shapes: symbolicTrace(model, { tracer: new MetaTracer({ metaArgs }) }) with the MetaTracer of tensorfx/fx/experimental. compile(model) needs none of this: there, sizes are numbers.`,
      )
    throw new TraceError(
      `a traced value was used as a plain value (${String(how)}): ${CONTROL_FLOW}. Write comparisons and arithmetic as methods: x.gt(0) instead of x > 0, x.add(y) instead of x + y`,
    )
  }

  #read(name: string): never {
    throw new TraceError(`${name}() asks for the value of a traced tensor: ${CONTROL_FLOW}`)
  }

  #length(): never {
    throw new TraceError(
      "'length' is not supported in symbolic tracing by default: it is not known while tracing",
      'To record it, call fx.len(x); for a tensor, use x.shape[0] or x.ndim.',
    )
  }
}

/** Records a call that has a traced value among its arguments. One function for all values, because each value has its own handler. */
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

/** `p.name`: a method call if it is called, otherwise a getattr node, which is created at its first use. */
class AttributeHandler extends TracedHandler {
  readonly #owner: ProxyCore
  readonly #name: string

  constructor(owner: ProxyCore, name: string) {
    super(lazyCore(owner.tracer, () => owner.tracer.createProxy('call_function', getattr, [owner.tracer.proxy(owner.node), name], {})))
    this.#owner = owner
    this.#name = name
  }

  override apply(_target: ProxyTarget, _self: unknown, args: readonly unknown[]): unknown {
    const { tracer, node } = this.#owner
    const [positional, kwargs] = splitKwargs(args)
    return tracer.createProxy('call_method', this.#name, [tracer.proxy(node), ...positional], kwargs)
  }
}

/** A core whose node is created when it is first read. */
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

/** The positional and the keyword arguments of a call, whose trailing plain object holds the latter. */
export function splitKwargs(args: readonly unknown[]): [readonly unknown[], Readonly<Record<string, unknown>>] {
  const last = args.at(-1)
  return isPlainObject(last) && !isTensorLike(last) ? [args.slice(0, -1), last] : [args, {}]
}

/** A traced value with these traps. */
function proxyWith(handler: TracedHandler): Proxied {
  const target: ProxyTarget = () => {}
  target[CORE] = handler.core
  target[INSPECT] = inspect
  return new Proxy(target, handler) as unknown as Proxied
}

/** A traced value for a node; PyTorch's `Proxy(node, tracer)`. */
export function proxyOf(node: Node, tracer: ProxyTracer): Proxied {
  return proxyWith(new TracedHandler({ node, tracer }))
}

/** A traced value whose node is created at its first use. */
export function lazyProxy(tracer: ProxyTracer, make: () => Proxied): Proxied {
  return proxyWith(new TracedHandler(lazyCore(tracer, make)))
}

function attributeProxy(owner: ProxyCore, name: string): Proxied {
  return proxyWith(new AttributeHandler(owner, name))
}

/** What is known about a tensor: its shape and dtype. */
const OF_TENSORS = new Set<PropertyKey>(['shape', 'size', 'dim', 'ndim', 'numel', 'nelement', 'dtype'])
const OF_ARRAYS = new Set<PropertyKey>(['length'])

/** Answers the known properties with plain values, so that conditions on them are ordinary conditions. */
class KnownHandler extends TracedHandler {
  readonly #value: object
  readonly #known: ReadonlySet<PropertyKey>

  constructor(node: Node, tracer: ProxyTracer, value: object) {
    super({ node, tracer })
    this.#value = value
    this.#known = Array.isArray(value) ? OF_ARRAYS : OF_TENSORS
  }

  override get(target: ProxyTarget, key: string | symbol): unknown {
    if (!this.#known.has(key) || !(key in this.#value)) return super.get(target, key)
    // A tensor whose shape is read has a use, even if it is not a node's input.
    answered(this.core.node)
    const known: unknown = Reflect.get(this.#value, key)
    return isFunction(known) ? known.bind(this.#value) : known
  }
}

/** Whether a {@link knownProxy} can be made for this value. */
export const isKnowable = (value: unknown): value is object => isTensorLike(value) || Array.isArray(value)

/** A traced value whose shape and dtype (for a tensor) or length (for an array) are known; PyTorch's ParameterProxy and MetaProxy. */
export function knownProxy(node: Node, tracer: ProxyTracer, value: object): Proxied {
  return proxyWith(new KnownHandler(node, tracer, value))
}

const keyText = (key: PropertyKey): string => (typeof key === 'string' && INDEX.test(key) ? `the element [${key}]` : `the property '${String(key)}'`)

/** What PyTorch says of a loop over a Proxy. */
export const NOT_ITERABLE =
  'Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs function argument'

/**
 * Iterates for destructuring: `const [a, b] = p.chunk(2)`. Destructuring closes the iterator once it has enough elements. A loop does not, so it reaches the
 * limit and throws.
 */
export function* unpack(value: Proxied): Generator<Proxied> {
  for (let i = 0; i < MAX_UNPACK; i++) yield value[String(i)]
  throw new TraceError(`${NOT_ITERABLE}. Loop over a known number of elements and index them (x[0]), or use torch.unbind with a known length`)
}
