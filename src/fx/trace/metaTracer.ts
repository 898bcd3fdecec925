// MetaTracer: traces a program and at the same time runs it on values of the right shapes, so that sizes are numbers: `if (x.size(1) !== 3)` takes the right branch.
import { ArgumentError, messageOf } from '../../errors/index.ts'
import { attributeAt } from '../../module/index.ts'
import type { Module } from '../../module/index.ts'
import { isTensorLike } from '../../protocol/index.ts'
import { evaluateNode } from '../run/evaluate.ts'
import type { Graph } from '../graph/graph.ts'
import { recordOf, recordValue } from '../graph/nodeValue.ts'
import { targetText } from '../graph/node.ts'
import type { Node } from '../graph/node.ts'
import { isKnowable, knownProxy, nodeOf, tracerOf } from '../values/proxy.ts'
import type { Proxied } from '../values/proxy.ts'
import { TraceError } from '../graph/errors.ts'
import { Tracer } from './tracer.ts'
import type { Traceable, TracerOptions } from './tracer.ts'
import type { ConcreteArgs } from './concreteArgs.ts'

/** Options of {@link MetaTracer}. */
export interface MetaTracerOptions extends TracerOptions {
  /** Values of parameters by name: tensors of the shapes and dtypes that the program is traced for. The graph is valid only for these. */
  readonly metaArgs: Readonly<Record<string, unknown>>
  /** Wraps the computation on these values. With `(run) => withMode(new FakeTensorMode(), run)` it uses fake tensors, which need no data. Default: none. */
  readonly within?: (run: () => unknown) => unknown
}

/**
 * A tracer that knows the shapes of all values that can be computed from `metaArgs`; PyTorch's torch.fx.experimental.meta_tracer.MetaTracer. Its symbolic_trace is
 *
 *     const gm = symbolicTrace(model, { tracer: new MetaTracer({ metaArgs: { x: torch.ones([2, 3]) } }) })
 */
export class MetaTracer extends Tracer {
  readonly #metaArgs: Readonly<Record<string, unknown>>
  readonly #within: (run: () => unknown) => unknown
  readonly #stateless = new Map<Module, string>()
  readonly #values = new WeakMap<Node, { readonly value: unknown }>()

  constructor(options: MetaTracerOptions) {
    // For callers in JavaScript.
    if (typeof options?.metaArgs !== 'object')
      throw new ArgumentError(
        'MetaTracer: options.metaArgs must be an object from parameter name to example value, as in new MetaTracer({ metaArgs: { x: torch.ones([2, 3]) } }).',
      )
    const { metaArgs, within, ...rest } = options
    super(rest)
    this.#metaArgs = metaArgs
    this.#within = within ?? ((run) => run())
  }

  /** The value that was computed for a traced value; undefined if unknown. */
  metaOf(value: Proxied): unknown {
    return tracerOf(value) === this ? this.#values.get(nodeOf(value))?.value : undefined
  }

  override createNode(...call: Parameters<Tracer['createNode']>): Node {
    const node = super.createNode(...call)
    const known = this.#compute(node)
    if (known === null) return node
    this.#values.set(node, known)
    const { value } = known
    if (isTensorLike(value)) recordValue(node, recordOf(value))
    return node
  }

  override trace(root: Traceable, concreteArgs: ConcreteArgs = {}): Graph {
    this.#stateless.clear()
    try {
      return super.trace(root, concreteArgs)
    } catch (error) {
      for (const path of this.#stateless.values()) Reflect.deleteProperty(this.root, path)
      throw error
    }
  }

  /**
   * The path of a module. One without parameters and buffers that the program made (`new nn.ReLU().call(x)`) is added to the root as `relu_0`, `relu_1`, …
   * @throws ArgumentError for other modules that the root does not have.
   */
  override pathOfModule(module: Module): string {
    const known = this.#stateless.get(module)
    if (known !== undefined) return known
    try {
      return super.pathOfModule(module)
    } catch (error) {
      if ([...module.parameters(), ...module.buffers()].length > 0) throw error
      const path = this.getFreshQualname(`${module.getName().toLowerCase()}_`)
      // Not enumerable, because the trace must not change the traced module visibly.
      Object.defineProperty(this.root, path, { value: module, configurable: true, writable: true })
      this.#stateless.set(module, path)
      return path
    }
  }

  protected override bodyInput(input: Node, outer: Node): void {
    const known = this.#values.get(outer)
    if (known !== undefined) this.#values.set(input, known)
  }

  override proxy(node: Node): Proxied {
    const value = this.#values.get(node)?.value
    return isKnowable(value) ? knownProxy(node, this, value) : super.proxy(node)
  }

  /** Iterates over an array of known length to its end. */
  override iter(value: Proxied): Iterator<Proxied> {
    const known = this.metaOf(value)
    return Array.isArray(known) ? elementsOf(value, known.length) : super.iter(value)
  }

  /** The value of a node, computed from those of its inputs; null if one of them is unknown. */
  #compute(node: Node): { readonly value: unknown } | null {
    if (node.op === 'output') return null
    if (node.op === 'placeholder') return node.target in this.#metaArgs ? { value: this.#metaArgs[node.target] } : null
    if (node.allInputNodes.some((n) => !this.#values.has(n))) return null
    const valueOf = (n: Node): unknown => this.#values.get(n)?.value
    const root = { attribute: (path: string): unknown => attributeAt(this.root, path) }
    try {
      return { value: this.untraced(() => this.#within(() => evaluateNode(root, node, valueOf))) }
    } catch (error) {
      const message = messageOf(error)
      throw new TraceError(
        `Could not compute metadata for ${node.op} target ${targetText(node.target)}: ${message}`,
        'The shapes in metaArgs do not match the program.',
      )
    }
  }
}

function* elementsOf(value: Proxied, length: number): Generator<Proxied> {
  for (let i = 0; i < length; i++) yield value[i]
}
