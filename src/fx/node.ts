// Node: one operation of a Graph. Its inputs are found in `args` and `kwargs`; setting those keeps everybody's `users` right.
import { inspectAs } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { CapturedStack } from '../provenance/index.ts'
import { GraphError } from './errors.ts'
import { formatNode, targetText } from './format.ts'
import type { Graph } from './graph.ts'
import { normalizeFunction } from './operatorSchemas.ts'
import type { NormalizeOptions, NormalizedCall } from './operatorSchemas.ts'
import { nodeEffects } from './purity.ts'
import { Slice } from './slice.ts'
import { isTuple, markTuple } from './tuple.ts'
import { UserSet } from './userSet.ts'

/** What a node does; PyTorch's opcodes. */
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
/** What a node calls or reads: a function for call_function, otherwise a name or a dotted path. */
export type Target = TargetFunction | string
/** Arguments by name. */
export type Kwargs = Readonly<Record<string, Argument>>

/** Free notes on a node; passes agree on keys such as `val`, `tensor_meta`, `nn_module_stack`, `stack_trace`. */
export type Meta = Record<string, unknown>

const NO_ARGS: readonly Argument[] = Object.freeze([])
const NO_KWARGS: Kwargs = Object.freeze({})

/** One operation; PyTorch's torch.fx.Node. Make nodes with the Graph's builder methods. */
export class Node {
  /** The graph that it belongs to, for good. */
  /** The graph that the node was made in. */
  readonly graph: Graph
  #name: string
  #op: Opcode
  #target: Target
  #args: readonly Argument[] = NO_ARGS
  #kwargs: Kwargs = NO_KWARGS
  /** Distinct nodes among args and kwargs, in order of first appearance. */
  #inputs: readonly Node[] = []
  /** Nodes that use this one's value, in the order in which they began to; one entry each. */
  readonly users: UserSet = new UserSet()
  /** Type of the value, as text; for `output` that of the returned value. */
  type: string | null
  #meta: Meta | null = null
  /** Neighbours in the list, null at its ends; an erased node keeps those that it had. The Graph's business. */
  prev: Node | null = null
  next: Node | null = null
  /** Grows along the list; the Graph's business. `a < b` and `isBefore` compare it. */
  sortKey = 0
  /** Place in the list as of the last `graph.numberNodes()`. */
  position = 0
  /** It was taken out of its graph. */
  /** Whether the node was taken out of its graph. */
  erased = false

  constructor(graph: Graph, name: string, op: Opcode, target: Target, args: readonly Argument[], kwargs: Kwargs, type: string | null = null) {
    checkTarget(graph, name, op, target)
    this.graph = graph
    this.#name = name
    this.#op = op
    this.#target = target
    this.type = type
    this.#setArgs(args, kwargs)
  }

  /** Unique in the graph. Setting it renames: hooks of the owning module hear of it once per user. `rename` finds a name that is free. */
  /** Unique in the graph; the variable in generated code. Setting it renames, and hooks of the owning module hear of it. */
  get name(): string {
    return this.#name
  }

  set name(name: string) {
    const module = this.graph.owningModule
    if (module !== null) for (const user of this.users) module.fireReplaceHooks(this, name, user)
    this.#name = name
  }

  /** Takes a fresh name like `candidate`. PyTorch's _rename. */
  rename(candidate: string): void {
    this.graph.rename(this, candidate)
  }

  /** What kind of operation it is. */
  /** What the node does. */
  get op(): Opcode {
    return this.#op
  }

  set op(op: Opcode) {
    this.graph.relist(this, () => (this.#op = op))
  }

  /** What is called or read: a function for call_function, the name of a method or a parameter, a dotted path of the owning module. */
  /** What it calls or reads. */
  get target(): Target {
    return this.#target
  }

  set target(target: Target) {
    this.graph.relist(this, () => (this.#target = target))
  }

  /** Positional arguments, frozen: assign new ones to change them, and the users of all nodes follow. */
  /** Positional arguments, frozen: assign a new array, and the users of all inputs follow. */
  get args(): readonly Argument[] {
    return this.#args
  }

  set args(args: readonly Argument[]) {
    this.#setArgs(args, this.#kwargs)
  }

  /** Keyword arguments, frozen as `args` are. */
  /** Arguments by name, frozen: assign a new object. */
  get kwargs(): Kwargs {
    return this.#kwargs
  }

  set kwargs(kwargs: Kwargs) {
    this.#setArgs(this.#args, kwargs)
  }

  /** Free notes; most nodes of hand-made graphs have none, so the object is made when somebody asks. */
  get meta(): Meta {
    return (this.#meta ??= {})
  }

  set meta(meta: Meta) {
    this.#meta = meta
  }

  /** Takes over another node's notes: a shallow copy. */
  copyMeta(from: Node): void {
    if (from.#meta !== null) this.#meta = { ...from.#meta }
  }

  /** Distinct nodes among args and kwargs, in order of first appearance. */
  get allInputNodes(): readonly Node[] {
    return this.#inputs
  }

  /** Where in the user's program the node came from, or null; `String(…)` gives PyTorch's text. */
  get stackTrace(): CapturedStack | string | null {
    return (this.#meta?.['stack_trace'] as CapturedStack | string | undefined) ?? null
  }

  set stackTrace(trace: CapturedStack | string | null) {
    if (trace === null) delete this.meta['stack_trace']
    else this.meta['stack_trace'] = trace
  }

  #setArgs(args: readonly Argument[], kwargs: Kwargs): void {
    if (!Array.isArray(args)) throw new GraphError(`Node '${this.#name}': args must be an array, got ${describe(args)}.`)
    if (typeof kwargs !== 'object' || kwargs === null || !isPlain(kwargs))
      throw new GraphError(`Node '${this.#name}': kwargs must be a plain object, got ${describe(kwargs)}.`)
    const inputs = new Inputs()
    const frozenArgs = args.length === 0 ? NO_ARGS : (freeze(args, inputs) as readonly Argument[])
    const frozenKwargs = kwargs === NO_KWARGS || isEmpty(kwargs) ? NO_KWARGS : (freeze(kwargs, inputs) as Kwargs)
    for (const old of this.#inputs) old.users.delete(this)
    this.#args = frozenArgs
    this.#kwargs = frozenKwargs
    this.#inputs = inputs.list
    for (const input of inputs.list) input.users.add(this)
  }

  /** Replaces one positional argument. Throws GraphError when there is none at `index`. */
  updateArg(index: number, value: Argument): void {
    if (!Number.isInteger(index) || index < 0 || index >= this.#args.length) {
      throw new GraphError(
        `updateArg: node '${this.#name}' has ${this.#args.length} args, so there is none at index ${index}; use insertArg to add one.`,
      )
    }
    this.args = this.#args.map((old, i) => (i === index ? value : old))
  }

  /** Replaces or adds one keyword argument. */
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
    if (node === this) {
      console.warn(`Trying to prepend a node to itself. This behavior has no effect on the graph (node '${this.#name}').`)
      return
    }
    this.graph.moveBefore(node, this)
  }

  /** Moves `node` to right after this one. */
  append(node: Node): void {
    if (node.graph !== this.graph) throw new GraphError('Attempting to move a Node into a different Graph')
    if (node === this) return
    if (this.erased) throw new GraphError(`Attempting to move node '${node.name}' to '${this.#name}', which was erased.`)
    this.graph.moveBefore(node, this.next === node ? node.next : this.next)
  }

  /** Whether this node stands before `other`. Constant time. */
  isBefore(other: Node): boolean {
    return this.sortKey < other.sortKey
  }

  /** Negative when this node stands before `other`, positive after it, 0 for the node itself: `nodes.sort((a, b) => a.compareTo(b))`. Constant time. */
  compareTo(other: Node): number {
    return this.sortKey - other.sortKey
  }

  /** `a < b` says whether `a` stands before `b` in their graph, as in PyTorch; as text a node is its name. */
  [Symbol.toPrimitive](hint: string): string | number {
    return hint === 'number' ? this.sortKey : this.#name
  }

  /**
   * Makes users of this node use `replacement`; this node stays. `filter` chooses the users; `propagateMeta` copies this node's meta to a
   * replacement that has none. Returns the changed users.
   */
  replaceAllUsesWith(replacement: Node, filter: (user: Node) => boolean = () => true, options: { readonly propagateMeta?: boolean } = {}): Node[] {
    if (options.propagateMeta === true && Object.keys(replacement.meta).length > 0)
      throw new GraphError(`replaceAllUsesWith: propagateMeta needs a replacement without meta, but '${replacement.name}' has some.`)
    const changed = [...this.users].filter((user) => filter(user))
    if (options.propagateMeta === true) Object.assign(replacement.meta, this.meta)
    for (const user of changed) user.replaceInputWith(this, replacement)
    return changed
  }

  /** Uses `replacement` wherever this node used `old`. */
  replaceInputWith(old: Node, replacement: Node): void {
    this.graph.owningModule?.fireReplaceHooks(old, replacement.name, this)
    const swap = (n: Node): Argument => (n === old ? replacement : n)
    this.#setArgs(mapArg(this.#args, swap) as readonly Argument[], mapArg(this.#kwargs, swap) as Kwargs)
  }

  /**
   * Whether removing the node when nobody uses it would change what the program does: inputs and outputs, random operators, and everything that writes, asserts
   * or has effects of its own (`hasSideEffect`, `isImpure` of a module). Throws GraphError for a call_module in a graph that no module owns.
   */
  isImpure(): boolean {
    if (this.#op === 'call_module' && this.graph.owningModule === null)
      throw new GraphError(`node '${this.#name}': graph.owningModule not set for purity check; give the graph to a GraphModule first.`)
    return nodeEffects(this) !== 'pure'
  }

  /**
   * The call's arguments in one form, by the schema of its function, defaults filled in; null for other nodes, for functions without a schema, and for arguments
   * that do not fit it. PyTorch's normalized_arguments.
   */
  normalizedArguments(options: NormalizeOptions = {}): NormalizedCall | null {
    return this.#op === 'call_function' ? normalizeFunction(this.#target, this.#args, this.#kwargs, options) : null
  }

  /** PyTorch's line for the node, as in `String(graph)`. */
  formatNode(): string {
    return formatNode(this)
  }

  /** Its name. */
  toString(): string {
    return this.#name
  }
}

inspectAs(Node.prototype, String)

const NO_NODES: readonly Node[] = Object.freeze([])

/** The distinct nodes of a structure, in order of first appearance. Most nodes have one or two: their lists are exactly that long. */
class Inputs {
  list: readonly Node[] = NO_NODES
  #set: Set<Node> | null = null

  add(node: Node): void {
    const { list } = this
    // A set only pays for itself when there are many.
    if (this.#set === null) {
      if (list.includes(node)) return
      if (list.length < 4) {
        this.list = list.length === 0 ? [node] : [...list, node]
        return
      }
      this.#set = new Set(list)
    } else if (this.#set.has(node)) return
    this.#set.add(node)
    ;(list as Node[]).push(node)
  }
}

/** A frozen copy of a structure of arguments; the nodes in it are added to `inputs`. */
function freeze(value: Argument, inputs: Inputs): Argument {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Node) {
    inputs.add(value)
    return value
  }
  if (Array.isArray(value)) {
    const out = value.slice() as Argument[]
    for (let i = 0; i < out.length; i++) out[i] = freeze(out[i] as Argument, inputs)
    return isTuple(value) ? markTuple(out) : Object.freeze(out)
  }
  if (value instanceof Slice) {
    return new Slice<unknown>(freeze(value.start as Argument, inputs), freeze(value.stop as Argument, inputs), freeze(value.step as Argument, inputs))
  }
  if (!isPlain(value)) return value
  const out: Record<string, Argument> = {}
  for (const key of Object.keys(value)) setOwn(out, key, freeze((value as Record<string, Argument>)[key], inputs))
  return Object.freeze(out)
}

/** As `out[key] = value`, also for the key `__proto__`. */
function setOwn(out: Record<string, Argument>, key: string, value: Argument): void {
  if (key === '__proto__') Object.defineProperty(out, key, { value, enumerable: true, configurable: true, writable: true })
  else out[key] = value
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function isEmpty(value: object): boolean {
  for (const _ in value) return false
  return true
}

const describe = (value: unknown): string =>
  value === null ? 'null' : typeof value === 'object' ? `an object of class ${value.constructor.name}` : `${typeof value} ${String(value)}`

function checkTarget(graph: Graph, name: string, op: Opcode, target: Target): void {
  if (!OPCODES.has(op)) throw new GraphError(`op '${String(op)}' is not in the legal ops: ${[...OPCODES].join(', ')}`)
  const expected = op === 'call_function' ? 'function' : 'string'
  if (typeof target === expected) return
  const shown = typeof target === 'function' ? targetText(target) : String(target)
  throw new GraphError(`Node [graph = ${String(graph)}, name = '${name}'] target ${shown} has type ${typeof target} but a ${expected} is expected`)
}

/** The structure with `fn` applied to every node in it; PyTorch's map_arg. Throws GraphError when `fn` is no function. */
export function mapArg(value: Argument, fn: (node: Node) => Argument): Argument {
  if (typeof fn !== 'function') throw new GraphError(`mapArg: expected a function of a node, got ${describe(fn)}.`)
  return mapAggregate(value, (leaf) => (leaf instanceof Node ? fn(leaf) : leaf))
}

/** The structure with `fn` applied to every leaf; PyTorch's map_aggregate. */
export function mapAggregate(value: Argument, fn: (leaf: Argument) => Argument): Argument {
  if (typeof value !== 'object' || value === null || value instanceof Node) return fn(value)
  if (Array.isArray(value)) {
    const out: Argument[] = []
    for (let i = 0; i < value.length; i++) out.push(mapAggregate(value[i] as Argument, fn))
    return isTuple(value) ? markTuple(out) : out
  }
  if (value instanceof Slice) {
    return new Slice<unknown>(
      mapAggregate(value.start as Argument, fn),
      mapAggregate(value.stop as Argument, fn),
      mapAggregate(value.step as Argument, fn),
    )
  }
  if (!isPlain(value)) return fn(value)
  const out: Record<string, Argument> = {}
  for (const key of Object.keys(value)) setOwn(out, key, mapAggregate((value as Record<string, Argument>)[key], fn))
  return out
}
