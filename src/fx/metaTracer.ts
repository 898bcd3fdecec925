// MetaTracer: traces a program while values of the right shapes run along, so that sizes are numbers: `if (x.size(1) !== 3)` takes the right branch.
import { ArgumentError } from '../errors/index.ts'
import type { Module } from '../module/index.ts'
import { isTensorLike } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { isKnowable, knownProxy } from './knownProxy.ts'
import { mapArg } from './node.ts'
import type { Argument, Kwargs, Node, Opcode, Target } from './node.ts'
import { nodeOf, tracerOf } from './proxy.ts'
import type { Proxied } from './proxy.ts'
import { TraceError } from './traceError.ts'
import { Tracer } from './tracer.ts'
import type { TracerOptions } from './tracer.ts'

/** Settings of a {@link MetaTracer}. */
export interface MetaTracerOptions extends TracerOptions {
  /** Values for parameters, by name: tensors of the shapes and dtypes that the program is traced for. The graph is good for those only. */
  readonly metaArgs: Readonly<Record<string, unknown>>
  /** Runs what is computed with them: `(run) => withMode(new FakeTensorMode(), run)` for fake tensors, which cost nothing. Default: as it is. */
  readonly within?: (run: () => unknown) => unknown
}

/** Knows the shapes of all values that follow from its metaArgs; PyTorch's torch.fx.experimental.meta_tracer.MetaTracer. */
export class MetaTracer extends Tracer {
  readonly #metaArgs: Readonly<Record<string, unknown>>
  readonly #within: (run: () => unknown) => unknown
  readonly #values = new WeakMap<Node, { readonly value: unknown }>()

  constructor(options: MetaTracerOptions) {
    // Callers in JavaScript: without values there is nothing to know.
    if (typeof (options as Partial<MetaTracerOptions> | undefined)?.metaArgs !== 'object')
      throw new ArgumentError(
        'MetaTracer: options.metaArgs must be an object from parameter name to example value, as in new MetaTracer({ metaArgs: { x: torch.ones([2, 3]) } }).',
      )
    super(options)
    this.#metaArgs = options.metaArgs
    this.#within = options.within ?? ((run) => run())
  }

  /** What ran along for a traced value; undefined when nothing is known. */
  metaOf(value: Proxied): unknown {
    return tracerOf(value) === this ? this.#values.get(nodeOf(value))?.value : undefined
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
    const known = this.#compute(node)
    if (known === null) return node
    this.#values.set(node, known)
    const { value } = known
    if (isTensorLike(value)) node.meta['val'] = { shape: value.shape, dtype: value.dtype, strides: (value as { strides?: unknown }).strides }
    return node
  }

  protected override bodyInput(input: Node, outer: Node): void {
    const known = this.#values.get(outer)
    if (known !== undefined) this.#values.set(input, known)
  }

  override proxy(node: Node): Proxied {
    const value = this.#values.get(node)?.value
    return isKnowable(value) ? knownProxy(node, this, value) : super.proxy(node)
  }

  /** An array of known length is iterated to its end. */
  override *iter(value: Proxied): Iterator<Proxied> & Generator<Proxied> {
    const known = this.metaOf(value)
    if (!Array.isArray(known)) return yield* super.iter(value) as Generator<Proxied>
    for (let i = 0; i < known.length; i++) yield value[i] as Proxied
  }

  /** The node's value from those of its inputs; null when one is not known. */
  #compute(node: Node): { readonly value: unknown } | null {
    if (node.op === 'output') return null
    if (node.op === 'placeholder') {
      const name = node.target as string
      return name in this.#metaArgs ? { value: this.#metaArgs[name] } : null
    }
    if (node.allInputNodes.some((n) => !this.#values.has(n))) return null
    const get = (n: Node): Argument => this.#values.get(n)?.value as Argument
    const args = mapArg(node.args, get) as readonly unknown[]
    const options = Object.keys(node.kwargs).length === 0 ? [] : [mapArg(node.kwargs, get)]
    try {
      return { value: this.untraced(() => this.#within(() => this.#call(node, [...args, ...options]))) }
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      const target = typeof node.target === 'string' ? node.target : node.target.name
      throw new TraceError(`Could not compute metadata for ${node.op} target ${target}: ${message}`, 'The shapes of metaArgs do not fit the program.')
    }
  }

  #call({ op, target }: Node, args: readonly unknown[]): unknown {
    if (op === 'call_function') return (target as TargetFunction)(...args)
    const path = target as string
    if (op === 'get_attr') return attributeAt(this.root, path)
    if (op === 'call_module') return ((attributeAt(this.root, path) as Module).call as TargetFunction).apply(attributeAt(this.root, path), [...args])
    const [self, ...rest] = args
    const method = path === '__call__' ? self : (self as Readonly<Record<string, unknown>>)[path]
    return Reflect.apply(method as TargetFunction, self, rest)
  }
}

function attributeAt(root: Module, path: string): unknown {
  let value: unknown = root
  for (const part of path.split('.')) value = (value as Readonly<Record<string, unknown>>)[part]
  return value
}
