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
  /** A condition on a traced value. Throws unless a tracer knows better. */
  toBool(value: Proxied): boolean
  /** Iteration over a traced value. */
  iter(value: Proxied): Iterator<Proxied>
  keys(value: Proxied): unknown
}

/** Symbol under which a traced value gives its {@link ProxyCore}. */
const CORE: unique symbol = Symbol('tensorfx.fx.proxy')

/** The inside of a traced value. */
export interface ProxyCore {
  readonly node: Node
  readonly tracer: ProxyTracer
}

/** A traced value as user code sees it: anything at all. */
export type Proxied = {
  readonly [CORE]: ProxyCore
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

export function tracerOf(value: Proxied): ProxyTracer {
  return value[CORE].tracer
}

/** A bound on how many elements destructuring may take. */
const MAX_UNPACK = 64

const PASS_THROUGH = new Set<PropertyKey>(['then', 'constructor', 'prototype', Symbol.toStringTag, Symbol.unscopables, Symbol.isConcatSpreadable])

abstract class Handler implements ProxyHandler<() => void> {
  abstract readonly core: ProxyCore

  get(_target: () => void, key: PropertyKey): unknown {
    if (key === CORE) return this.core
    if (key === OVERRIDE) return this.override
    if (key === Symbol.iterator) return () => this.core.tracer.iter(makeProxy(this.core.node, this.core.tracer))
    if (key === Symbol.for('nodejs.util.inspect.custom')) return () => `Proxy(${this.core.node.name})`
    if (key === Symbol.toPrimitive || key === 'valueOf' || key === 'toString' || key === 'toJSON') return () => this.#coerced(String(key))
    if (PASS_THROUGH.has(key) || typeof key === 'symbol') return undefined
    if (key === 'item' || key === 'toArray' || key === 'toTypedArray') {
      return () => {
        throw new TraceError(
          `${String(key)}() asks for the value of a traced tensor: symbolically traced variables cannot be used as inputs to control flow`,
        )
      }
    }
    if (/^\d+$/.test(key as string))
      return this.core.tracer.createProxy(
        'call_function',
        operator.getitem as TargetFunction,
        [makeProxy(this.core.node, this.core.tracer), Number(key)],
        {},
      )
    return attributeProxy(this.core, key as string)
  }

  has(_target: () => void, key: PropertyKey): boolean {
    return key === CORE || key === OVERRIDE
  }

  apply(_target: () => void, _self: unknown, args: readonly unknown[]): unknown {
    return this.core.tracer.createProxy('call_method', '__call__', [makeProxy(this.core.node, this.core.tracer), ...args], {})
  }

  set(_target: () => void, key: PropertyKey): boolean {
    throw new TraceError(`assigning the property '${String(key)}' of a traced value cannot be recorded`)
  }

  #coerced(how: string): never {
    throw new TraceError(
      `a traced value was used as a plain value (${how}): symbolically traced variables cannot be used as inputs to control flow. Comparisons are methods: x.gt(0), not x > 0`,
    )
  }

  readonly override = (kind: OverrideKind, target: TargetFunction, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown => {
    const { tracer } = this.core
    if (kind === 'method') return tracer.createProxy('call_method', target.name, args, kwargs)
    return tracer.createProxy('call_function', target, args, kwargs)
  }
}

class ValueHandler extends Handler {
  readonly core: ProxyCore

  constructor(core: ProxyCore) {
    super()
    this.core = core
  }
}

/** `p.name`: a method call if it is called, else a getattr node, made when it is first used. */
class AttributeHandler extends Handler {
  readonly core: ProxyCore
  readonly #owner: ProxyCore
  readonly #name: string

  constructor(owner: ProxyCore, name: string) {
    super()
    this.#owner = owner
    this.#name = name
    let node: Node | null = null
    this.core = {
      tracer: owner.tracer,
      get node(): Node {
        node ??= nodeOf(
          owner.tracer.createProxy('call_function', getattr as unknown as TargetFunction, [makeProxy(owner.node, owner.tracer), name], {}),
        )
        return node
      },
    }
  }

  override apply(_target: () => void, _self: unknown, args: readonly unknown[]): unknown {
    const [positional, kwargs] = splitKwargs(args)
    return this.#owner.tracer.createProxy('call_method', this.#name, [makeProxy(this.#owner.node, this.#owner.tracer), ...positional], kwargs)
  }
}

/** A trailing plain object of a method call holds keyword arguments. */
export function splitKwargs(args: readonly unknown[]): [readonly unknown[], Readonly<Record<string, unknown>>] {
  const last = args.at(-1)
  if (typeof last !== 'object' || last === null || isProxy(last) || isTensorLike(last)) return [args, {}]
  const prototype: unknown = Object.getPrototypeOf(last)
  return prototype === Object.prototype || prototype === null ? [args.slice(0, -1), last as Readonly<Record<string, unknown>>] : [args, {}]
}

/** A traced value for a node; PyTorch's `Proxy(node, tracer)`. */
export function makeProxy(node: Node, tracer: ProxyTracer): Proxied {
  return new Proxy(() => {}, new ValueHandler({ node, tracer })) as unknown as Proxied
}

function attributeProxy(owner: ProxyCore, name: string): Proxied {
  return new Proxy(() => {}, new AttributeHandler(owner, name)) as unknown as Proxied
}

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
