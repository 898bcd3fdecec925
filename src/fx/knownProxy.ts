// Traced values of which something is known: the shape and dtype of a tensor, the length of an array. Those are answered by plain values, so that
// conditions on them are ordinary ones.
import { isTensorLike } from '../protocol/index.ts'
import type { Node } from './node.ts'
import { TracedHandler, proxyWith } from './proxy.ts'
import type { ProxyTracer, Proxied } from './proxy.ts'

/** What a tensor answers: numbers and arrays of them, and the dtype. */
const OF_TENSORS = new Set<PropertyKey>(['shape', 'size', 'dim', 'ndim', 'numel', 'nelement', 'dtype'])
const OF_ARRAYS = new Set<PropertyKey>(['length'])

class KnownHandler extends TracedHandler {
  readonly #value: Readonly<Record<PropertyKey, unknown>>
  readonly #known: ReadonlySet<PropertyKey>

  constructor(node: Node, tracer: ProxyTracer, value: object) {
    super({ node, tracer })
    this.#value = value as Readonly<Record<PropertyKey, unknown>>
    this.#known = Array.isArray(value) ? OF_ARRAYS : OF_TENSORS
  }

  override get(target: () => void, key: PropertyKey): unknown {
    if (!this.#known.has(key) || !(key in this.#value)) return super.get(target, key)
    const known = this.#value[key]
    return typeof known === 'function' ? (known as (...args: unknown[]) => unknown).bind(this.#value) : known
  }
}

/** Whether a {@link knownProxy} for this value would know anything. */
export const isKnowable = (value: unknown): value is object => isTensorLike(value) || Array.isArray(value)

/** A traced value of the shape and dtype of a tensor, or the length of an array; PyTorch's ParameterProxy and MetaProxy. */
export function knownProxy(node: Node, tracer: ProxyTracer, value: object): Proxied {
  return proxyWith(new KnownHandler(node, tracer, value))
}
