// Traced values whose shape is known: it is answered by the tensor itself, so that conditions on it are ordinary ones.
import type { TensorLike } from '../protocol/index.ts'
import type { Node } from './node.ts'
import { TracedHandler, proxyWith } from './proxy.ts'
import type { ProxyTracer, Proxied } from './proxy.ts'

/** What is answered by the tensor: numbers and arrays of them, and the dtype. */
const KNOWN = new Set<PropertyKey>(['shape', 'size', 'dim', 'ndim', 'numel', 'nelement', 'dtype'])

class KnownShapeHandler extends TracedHandler {
  readonly #value: Readonly<Record<string, unknown>>

  constructor(node: Node, tracer: ProxyTracer, value: TensorLike) {
    super({ node, tracer })
    this.#value = value as unknown as Readonly<Record<string, unknown>>
  }

  override get(target: () => void, key: PropertyKey): unknown {
    if (!KNOWN.has(key)) return super.get(target, key)
    const known = this.#value[key as string]
    return typeof known === 'function' ? (known as (...args: unknown[]) => unknown).bind(this.#value) : known
  }
}

/** A traced value of the shape and dtype of `value`; PyTorch's ParameterProxy. */
export function proxyLike(node: Node, tracer: ProxyTracer, value: TensorLike): Proxied {
  return proxyWith(new KnownShapeHandler(node, tracer, value))
}
