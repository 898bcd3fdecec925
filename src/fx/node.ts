// Node: one operation of a Graph. Its inputs are found in `args` and `kwargs`; setting those keeps everybody's `users` right.
import { targetInfo } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { CapturedStack } from '../provenance/index.ts'
import { GraphError } from './errors.ts'
import { formatNode } from './format.ts'
import type { Graph } from './graph.ts'
import { Slice } from './slice.ts'

export type Opcode = 'placeholder' | 'get_attr' | 'call_function' | 'call_module' | 'call_method' | 'output'
export const OPCODES: ReadonlySet<string> = new Set<Opcode>(['placeholder', 'get_attr', 'call_function', 'call_module', 'call_method', 'output'])

/** What may stand in a node's args and kwargs: nodes, constants, and arrays, slices and plain objects of them. */
export type Argument =
  | Node
  | string
  | number
  | boolean
  | null
  | undefined
  | Slice<unknown>
  | readonly Argument[]
  | { readonly [key: string]: Argument }
  | object
export type Target = TargetFunction | string
export type Kwargs = Readonly<Record<string, Argument>>

/** Free notes on a node; passes agree on keys such as `val`, `tensor_meta`, `nn_module_stack`, `stack_trace`. */
export type Meta = Record<string, unknown>

const NO_ARGS: readonly Argument[] = Object.freeze([])
const NO_KWARGS: Kwargs = Object.freeze({})

/** One operation; PyTorch's torch.fx.Node. Make nodes with the Graph's builder methods. */
export class Node {
  readonly graph: Graph
  #name: string
  #op: Opcode
  #target: Target
  #args: readonly Argument[] = NO_ARGS
  #kwargs: Kwargs = NO_KWARGS
  /** Distinct nodes among args and kwargs, in order of first appearance. */
  #inputs: readonly Node[] = []
  /** Nodes that use this one's value, in the order in which they began to; one entry each. */
  readonly users: Set<Node> = new Set()
  /** Type of the value, as text; for `output` that of the returned value. */
  type: string | null
  meta: Meta = {}
  /** List links and order; the Graph's business. */
  prev: Node | null = null
  next: Node | null = null
  sortKey = 0
  erased = false

  constructor(graph: Graph, name: string, op: Opcode, target: Target, args: readonly Argument[], kwargs: Kwargs, type: string | null = null) {
    if (!OPCODES.has(op)) throw new GraphError(`Node '${name}': unknown op '${String(op)}'; known are ${[...OPCODES].join(', ')}.`)
    if (op === 'call_function' ? typeof target !== 'function' : typeof target !== 'string') {
      throw new GraphError(
        `Node [graph = ${graph.label}, name = '${name}'] target ${String(target)} has type ${typeof target} but a ${op === 'call_function' ? 'function' : 'string'} is expected`,
      )
    }
    this.graph = graph
    this.#name = name
    this.#op = op
    this.#target = target
    this.type = type
    this.#setArgs(args, kwargs)
  }

  get name(): string {
    return this.#name
  }

  /** Renames; hooks of the owning module hear of it once per user. */
  set name(name: string) {
    const module = this.graph.owningModule
    if (module !== null) for (const user of this.users) module.fireReplaceHooks(this, name, user)
    this.#name = name
  }

  get op(): Opcode {
    return this.#op
  }

  set op(op: Opcode) {
    this.graph.relist(this, () => (this.#op = op))
  }

  get target(): Target {
    return this.#target
  }

  set target(target: Target) {
    this.graph.relist(this, () => (this.#target = target))
  }

  get args(): readonly Argument[] {
    return this.#args
  }

  set args(args: readonly Argument[]) {
    this.#setArgs(args, this.#kwargs)
  }

  get kwargs(): Kwargs {
    return this.#kwargs
  }

  set kwargs(kwargs: Kwargs) {
    this.#setArgs(this.#args, kwargs)
  }

  /** Distinct nodes among args and kwargs, in order of first appearance. */
  get allInputNodes(): readonly Node[] {
    return this.#inputs
  }

  /** Where in the user's program the node came from, or null; `String(…)` gives PyTorch's text. */
  get stackTrace(): CapturedStack | string | null {
    return (this.meta['stack_trace'] as CapturedStack | string | undefined) ?? null
  }

  set stackTrace(trace: CapturedStack | string | null) {
    if (trace === null) delete this.meta['stack_trace']
    else this.meta['stack_trace'] = trace
  }

  #setArgs(args: readonly Argument[], kwargs: Kwargs): void {
    if (!Array.isArray(args)) throw new GraphError(`Node '${this.#name}': args must be an array.`)
    const inputs: Node[] = []
    const frozenArgs = args.length === 0 ? NO_ARGS : (freeze(args, inputs) as readonly Argument[])
    const frozenKwargs = kwargs === NO_KWARGS || Object.keys(kwargs).length === 0 ? NO_KWARGS : (freeze(kwargs, inputs) as Kwargs)
    for (const old of this.#inputs) old.users.delete(this)
    this.#args = frozenArgs
    this.#kwargs = frozenKwargs
    this.#inputs = inputs
    for (const input of inputs) input.users.add(this)
  }

  /** Replaces one positional argument. */
  updateArg(index: number, value: Argument): void {
    const args = [...this.#args]
    args[index] = value
    this.args = args
  }

  /** Replaces one keyword argument. */
  updateKwarg(key: string, value: Argument): void {
    this.kwargs = { ...this.#kwargs, [key]: value }
  }

  /** Inserts a positional argument before the one at `index`. */
  insertArg(index: number, value: Argument): void {
    if (!Number.isInteger(index) || index < 0 || index > this.#args.length)
      throw new GraphError(`insertArg: index must be between 0 and ${this.#args.length}, the number of args; got ${index}.`)
    this.args = [...this.#args.slice(0, index), value, ...this.#args.slice(index)]
  }

  /** Moves `node` to right before this one. */
  prepend(node: Node): void {
    if (node.graph !== this.graph) throw new GraphError('Attempting to move a Node into a different Graph')
    if (node === this) return
    this.graph.moveBefore(node, this)
  }

  /** Moves `node` to right after this one. */
  append(node: Node): void {
    if (node.graph !== this.graph) throw new GraphError('Attempting to move a Node into a different Graph')
    if (node === this) return
    this.graph.moveBefore(node, this.next === node ? node.next : this.next)
  }

  /** Whether this node stands before `other`. Constant time. */
  isBefore(other: Node): boolean {
    return this.sortKey < other.sortKey
  }

  /**
   * Makes users of this node use `replacement`; this node stays. `filter` chooses the users; `propagateMeta` copies this node's meta to a
   * replacement that has none. Returns the changed users.
   */
  replaceAllUsesWith(replacement: Node, filter: (user: Node) => boolean = () => true, options: { readonly propagateMeta?: boolean } = {}): Node[] {
    if (options.propagateMeta === true) {
      if (Object.keys(replacement.meta).length > 0)
        throw new GraphError(`replaceAllUsesWith: propagateMeta needs a replacement without meta, but '${replacement.name}' has some.`)
      Object.assign(replacement.meta, this.meta)
    }
    const changed: Node[] = []
    for (const user of [...this.users]) {
      if (!filter(user)) continue
      user.replaceInputWith(this, replacement)
      changed.push(user)
    }
    return changed
  }

  /** Uses `replacement` wherever this node used `old`. */
  replaceInputWith(old: Node, replacement: Node): void {
    this.graph.owningModule?.fireReplaceHooks(old, replacement.name, this)
    const swap = (n: Node): Argument => (n === old ? replacement : n)
    this.#setArgs(mapArg(this.#args, swap) as readonly Argument[], mapArg(this.#kwargs, swap) as Kwargs)
  }

  /** Whether removing the node when nobody uses it would change what the program does. */
  isImpure(): boolean {
    if (this.#op === 'placeholder' || this.#op === 'output') return true
    // In-place methods end in an underscore (x.add_(1)); PyTorch deletes those when unused.
    if (this.#op === 'call_method') return /[^_]_$/.test(this.#target as string)
    if (this.#op === 'call_function') return (targetInfo(this.#target)?.effects ?? 'pure') !== 'pure'
    if (this.#op === 'call_module') return this.graph.owningModule?.isImpureModule(this.#target as string) ?? false
    return false
  }

  /** PyTorch's line for the node, as in `String(graph)`. */
  formatNode(): string {
    return formatNode(this)
  }

  toString(): string {
    return this.#name
  }
}

/** A frozen copy of a structure of arguments; the distinct nodes in it are appended to `inputs`. */
function freeze(value: Argument, inputs: Node[]): Argument {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Node) {
    if (!inputs.includes(value)) inputs.push(value)
    return value
  }
  if (Array.isArray(value)) {
    const out = new Array<Argument>(value.length)
    for (let i = 0; i < value.length; i++) out[i] = freeze(value[i] as Argument, inputs)
    return Object.freeze(out)
  }
  if (value instanceof Slice) {
    return new Slice<unknown>(freeze(value.start as Argument, inputs), freeze(value.stop as Argument, inputs), freeze(value.step as Argument, inputs))
  }
  if (!isPlain(value)) return value
  const out: Record<string, Argument> = {}
  for (const key of Object.keys(value)) out[key] = freeze((value as Record<string, Argument>)[key], inputs)
  return Object.freeze(out)
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** The structure with `fn` applied to every node in it; PyTorch's map_arg. */
export function mapArg(value: Argument, fn: (node: Node) => Argument): Argument {
  return mapAggregate(value, (leaf) => (leaf instanceof Node ? fn(leaf) : leaf))
}

/** The structure with `fn` applied to every leaf; PyTorch's map_aggregate. */
export function mapAggregate(value: Argument, fn: (leaf: Argument) => Argument): Argument {
  if (typeof value !== 'object' || value === null || value instanceof Node) return fn(value)
  if (Array.isArray(value)) return value.map((v) => mapAggregate(v as Argument, fn))
  if (value instanceof Slice)
    return new Slice<unknown>(
      mapAggregate(value.start as Argument, fn),
      mapAggregate(value.stop as Argument, fn),
      mapAggregate(value.step as Argument, fn),
    )
  if (!isPlain(value)) return fn(value)
  const out: Record<string, Argument> = {}
  for (const key of Object.keys(value)) out[key] = mapAggregate((value as Record<string, Argument>)[key], fn)
  return out
}
