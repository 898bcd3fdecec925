// Node: one operation of a Graph. Its inputs are found in `args` and `kwargs`; setting those keeps the `users` of all nodes up to date.
import { checkNode } from '../../protocol/graphChecks.ts'
import {
  checkCallable,
  checkDepth,
  checkMethod,
  checkOptions,
  checkString,
  described,
  inspectAs,
  isPlainObject,
  setOwn,
  valueText,
} from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import { CapturedStack } from '../../provenance/index.ts'
import { GraphError, OPCODES, checkTarget, targetText } from './errors.ts'
import type { Opcode } from './errors.ts'
export { OPCODES, targetText }
export type { Opcode }
import { normalizeFunction } from './operatorSchemas.ts'
import type { NormalizeOptions, NormalizedCall } from './operatorSchemas.ts'
import type { NodeType } from '../../protocol/index.ts'
export type { NodeType } from '../../protocol/index.ts'
import { freezeArguments, isEmpty, isTuple, Slice } from './pythonValues.ts'
import { Distinct, UserSet } from './collections.ts'

/** What a node calls or reads: a function for call_function, otherwise a name or a dotted path. */
export type Target = TargetFunction | string

/** What a node's args and kwargs may hold: nodes, constants, and arrays, slices and plain objects of them. */
export type Argument =
  | Node
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined
  | Slice<Argument>
  | readonly Argument[]
  | { readonly [key: string]: Argument }
  | object
/** Arguments by name. */
export type Kwargs = Readonly<Record<string, Argument>>

/** What passes know about a node. They share keys such as `val`, `tensor_meta`, `nn_module_stack` and `stack_trace`. */
export type Meta = Record<string, unknown>

const NO_ARGS: readonly Argument[] = freezeArguments([])
const NO_KWARGS: Kwargs = Object.freeze({})

/** What a graph needs of the module that owns it. GraphModule implements it. */
export interface OwningModule {
  /** Called before an edit of the graph. @internal */
  beforeEdit(): void
  /** Tells the hooks that `user` is about to use a node named `name` instead of `old`. @internal */
  fireReplaceHooks(old: Node, name: string, user: Node): void
  /** Tells the hooks about a new node. @internal */
  fireCreateHooks(node: Node): void
  /** Tells the hooks that a node is about to be erased. @internal */
  fireEraseHooks(node: Node): void
  /** Whether calling the module at a dotted path has side effects. @internal */
  isImpureModule(path: string): boolean
  /** Whether the graph at a dotted path, which control flow may run, has side effects. @internal */
  isImpureBody(path: string): boolean
  /** The attribute at a dotted path; undefined if there is none. */
  attribute(path: string): unknown
}

/** The graph of a node. This interface lists what nodes call; graph.ts completes it with the members of class Graph. */
export interface NodeGraph {
  owningModule: OwningModule | null
  /** @internal */
  willChange(): void
  /** @internal */
  rename(node: Node, candidate: string): void
  /** @internal */
  relist(node: Node, change: () => void): void
  /** @internal */
  moveBefore(node: Node, point: Node | null): void
  /** @internal */
  isImpure(node: Node, impureRandom: boolean): boolean
  /** @internal */
  formatNode(node: Node): string
}

class BaseNode {
  /** The graph that the node was made in. */
  readonly graph: NodeGraph
  #name: string
  #op: Opcode
  #target: Target
  #args: readonly Argument[] = NO_ARGS
  #kwargs: Kwargs = NO_KWARGS
  /** Distinct nodes among args and kwargs, in order of first appearance. */
  #inputs: readonly Node[] = []
  /** The nodes that use this one's value, each once, in order of first use. */
  readonly users: UserSet<Node> = new UserSet<Node>()
  /** Type of the value; for `output`, of the returned value. */
  type: NodeType | null
  #meta: Meta | null = null
  /** The previous node in the graph, null for the first. An erased node keeps its old neighbours. Only the graph sets it. */
  prev: Node | null = null
  /** The next node in the graph, null for the last. An erased node keeps its old neighbours. Only the graph sets it. */
  next: Node | null = null
  /** Increases along the list; `a < b` and `isBefore` compare it. Only the graph sets it. @internal */
  sortKey = 0
  /** Index in the list as of the last `graph.numberNodes()`. @internal */
  position = 0
  /** Whether the node was removed from its graph. */
  erased = false

  constructor(graph: NodeGraph, name: string, op: Opcode, target: Target, args: readonly Argument[], kwargs: Kwargs, type: NodeType | null = null) {
    checkTarget(graph, name, op, target)
    this.graph = graph
    this.#name = name
    this.#op = op
    this.#target = target
    this.type = type
    this.#setArgs(args, kwargs)
  }

  /**
   * Unique in the graph; the name of the variable in generated code. Setting it renames the node without checking that the name is free, and calls the owning
   * module's replace hooks once per user; `rename` finds a free name.
   */
  get name(): string {
    return this.#name
  }

  set name(name: string) {
    this.graph.willChange()
    const module = this.graph.owningModule
    if (module !== null) for (const user of this.users) module.fireReplaceHooks(this as Node, name, user)
    this.#name = name
  }

  /** Renames the node to `candidate`, with a suffix if that is taken. PyTorch's _rename. */
  rename(this: Node, candidate: string): void {
    this.graph.rename(this, candidate)
  }

  /** What the node does. */
  get op(): Opcode {
    return this.#op
  }

  set op(op: Opcode) {
    this.graph.relist(this as Node, () => (this.#op = op))
  }

  /** What it calls or reads: a function for call_function, the name of a method or a parameter, or a dotted path of the owning module. */
  get target(): Target {
    return this.#target
  }

  set target(target: Target) {
    this.graph.relist(this as Node, () => (this.#target = target))
  }

  /** Positional arguments, frozen. To change them assign a new array, which also updates the users of all inputs. */
  get args(): readonly Argument[] {
    return this.#args
  }

  set args(args: readonly Argument[]) {
    this.#setArgs(args, this.#kwargs)
  }

  /** Keyword arguments, frozen like `args`. To change them assign a new object. */
  get kwargs(): Kwargs {
    return this.#kwargs
  }

  set kwargs(kwargs: Kwargs) {
    this.#setArgs(this.#args, kwargs)
  }

  /** What passes know about the node. The object is created on first access, because most nodes of hand-made graphs never need one. */
  get meta(): Meta {
    return (this.#meta ??= {})
  }

  set meta(meta: Meta) {
    this.#meta = meta
  }

  /** Replaces `meta` with a shallow copy of another node's, if that has one. */
  copyMeta(from: Node): void {
    checkNode('Node.copyMeta', from, 'from')
    if (from.#meta !== null) this.#meta = { ...from.#meta }
  }

  /** Distinct nodes among args and kwargs, in order of first appearance. */
  get allInputNodes(): readonly Node[] {
    return this.#inputs
  }

  /** Where in the user's program the node came from, null if unknown. `String(node.stackTrace)` gives PyTorch's text. */
  get stackTrace(): CapturedStack | string | null {
    const trace = this.#meta?.['stack_trace']
    return trace instanceof CapturedStack || typeof trace === 'string' ? trace : null
  }

  set stackTrace(trace: CapturedStack | string | null) {
    if (trace === null) delete this.meta['stack_trace']
    else this.meta['stack_trace'] = trace
  }

  #setArgs(args: readonly Argument[], kwargs: Kwargs, from: Node | null = null, to: Node | null = null): void {
    if (!Array.isArray(args))
      throw new GraphError(`Node '${this.#name}': args must be an array, got ${described(args)}. Put a single argument into an array: [x].`)
    if (!isPlainObject(kwargs)) throw new GraphError(`Node '${this.#name}': kwargs must be a plain object, got ${described(kwargs)}.`)
    const inputs = new Distinct<Node>(from, to)
    const frozenArgs = args.length === 0 ? NO_ARGS : freezeList(args, inputs, 0)
    const frozenKwargs = kwargs === NO_KWARGS || isEmpty(kwargs) ? NO_KWARGS : freezeRecord(kwargs, inputs, 0)
    const self = this as Node
    this.graph.willChange()
    for (const old of this.#inputs) old.users.delete(self)
    this.#args = frozenArgs
    this.#kwargs = frozenKwargs
    this.#inputs = inputs.list
    for (const input of inputs.list) input.users.add(self)
  }

  /** Replaces one positional argument. Throws GraphError if there is none at `index`. */
  updateArg(index: number, value: Argument): void {
    checkMethod(this, 'Node.updateArg', arguments, 2)
    if (!Number.isInteger(index) || index < 0 || index >= this.#args.length) {
      throw new GraphError(
        `updateArg: node '${this.#name}' has ${this.#args.length} args, so there is none at index ${valueText(index)}; use insertArg to add one.`,
      )
    }
    this.args = this.#args.map((old, i) => (i === index ? value : old))
  }

  /** Replaces or adds one keyword argument. */
  updateKwarg(key: string, value: Argument): void {
    checkMethod(this, 'Node.updateKwarg', arguments, 2)
    checkString('Node.updateKwarg', 'key', key)
    this.kwargs = { ...this.#kwargs, [key]: value }
  }

  /** Inserts a positional argument before the one at `index`. Throws GraphError if `index` is out of range. */
  insertArg(index: number, value: Argument): void {
    checkMethod(this, 'Node.insertArg', arguments, 2)
    if (!Number.isInteger(index) || index < 0 || index > this.#args.length)
      throw new GraphError(`insertArg: index must be between 0 and ${this.#args.length}, the number of args; got ${valueText(index)}.`)
    this.args = [...this.#args.slice(0, index), value, ...this.#args.slice(index)]
  }

  /** Moves `node` directly before this one. Throws GraphError if it belongs to another graph, or if this node was erased. */
  prepend(this: Node, node: Node): void {
    checkMethod(this, 'Node.prepend', arguments, 1)
    this.#checkMove('Node.prepend', node)
    if (node === this) {
      console.warn(`Trying to prepend a node to itself. This behavior has no effect on the graph (node '${this.#name}').`)
      return
    }
    this.graph.moveBefore(node, this)
  }

  /** Moves `node` directly after this one. Throws GraphError if it belongs to another graph, or if this node was erased. */
  append(node: Node): void {
    checkMethod(this, 'Node.append', arguments, 1)
    this.#checkMove('Node.append', node)
    if (node === this) return
    this.graph.moveBefore(node, this.next === node ? node.next : this.next)
  }

  #checkMove(where: string, node: Node): void {
    checkNode(where, node)
    if (node.graph !== this.graph) throw new GraphError('Attempting to move a Node into a different Graph')
    if (this.erased && node !== this) throw new GraphError(`Attempting to move node '${node.name}' to '${this.#name}', which was erased.`)
  }

  /** Whether this node comes before `other` in the graph. Constant time. */
  isBefore(other: Node): boolean {
    checkMethod(this, 'Node.isBefore', arguments, 1)
    return this.compareTo(other) < 0
  }

  /** Negative if this node comes before `other`, positive if after it, 0 for the node itself: `nodes.sort((a, b) => a.compareTo(b))`. Constant time. */
  compareTo(other: Node): number {
    checkMethod(this, 'Node.compareTo', arguments, 1)
    checkNode('Node.compareTo', other, 'other')
    return this.sortKey - other.sortKey
  }

  /** `a < b` tells whether `a` comes before `b` in their graph, as in PyTorch. As text, a node is its name. */
  [Symbol.toPrimitive](hint: string): string | number {
    return hint === 'number' ? this.sortKey : this.#name
  }

  /**
   * Makes the users of this node use `replacement` instead; this node stays in the graph. `filter` selects the users to change. `propagateMeta` copies this
   * node's meta to the replacement, which must have none (GraphError otherwise). Returns the changed users.
   */
  replaceAllUsesWith(
    this: Node,
    replacement: Node,
    filter: (user: Node) => boolean = () => true,
    options: { readonly propagateMeta?: boolean } = {},
  ): Node[] {
    checkMethod(this, 'Node.replaceAllUsesWith', arguments, 3)
    checkNode('Node.replaceAllUsesWith', replacement, 'replacement')
    checkCallable('Node.replaceAllUsesWith', 'filter', filter)
    checkOptions('Node.replaceAllUsesWith', options, { propagateMeta: 'boolean' })
    if (options.propagateMeta === true && Object.keys(replacement.meta).length > 0)
      throw new GraphError(`replaceAllUsesWith: propagateMeta needs a replacement without meta, but '${replacement.name}' has some.`)
    const changed = [...this.users].filter((user) => filter(user))
    if (options.propagateMeta === true) Object.assign(replacement.meta, this.meta)
    for (const user of changed) user.replaceInputWith(this, replacement)
    return changed
  }

  /** Replaces `old` with `replacement` in this node's args and kwargs. */
  replaceInputWith(this: Node, old: Node, replacement: Node): void {
    checkMethod(this, 'Node.replaceInputWith', arguments, 2)
    for (const node of [old, replacement]) checkNode('Node.replaceInputWith', node)
    this.graph.owningModule?.fireReplaceHooks(old, replacement.name, this)
    this.#setArgs(this.#args, this.#kwargs, old, replacement)
  }

  /**
   * Whether removing this node, if unused, would change what the program does. True for inputs and outputs, random operators, and whatever writes, asserts or
   * has other side effects (`hasSideEffect`, a module's `isImpure`). With `impureRandom: false`, given by position, random operators do not count. Throws GraphError for a
   * call_module in a graph that no module owns.
   */
  isImpure(this: Node, impureRandom = true): boolean {
    checkMethod(this, 'Node.isImpure', arguments, 1)
    return this.graph.isImpure(this, impureRandom)
  }

  /**
   * The arguments of a call_function, normalized by its function's schema, with defaults filled in. Null for other nodes, for functions without a schema, and for
   * arguments that do not match it. PyTorch's normalized_arguments.
   */
  normalizedArguments(options: NormalizeOptions = {}): NormalizedCall | null {
    checkMethod(this, 'Node.normalizedArguments', arguments, 1)
    return this.#op === 'call_function' ? normalizeFunction(this.#target, this.#args, this.#kwargs, options) : null
  }

  /** The node as PyTorch prints it: one line of `String(graph)`. */
  formatNode(this: Node): string {
    checkMethod(this, 'Node.formatNode', arguments, 0)
    return this.graph.formatNode(this)
  }

  /** The node's name. */
  toString(): string {
    return this.#name
  }
}

inspectAs(BaseNode.prototype, String)

/** A node with a known op. After `node.op === 'call_function'`, `node.target` is a function. */
interface NodeOf<O extends Opcode, T extends Target> extends BaseNode {
  get op(): O
  set op(op: Opcode)
  get target(): T
  set target(target: Target)
}

/** An input; `target` is the parameter's name, `args` its default. */
export type PlaceholderNode = NodeOf<'placeholder', string>
/** Reads the attribute at the dotted path `target`. */
export type GetAttrNode = NodeOf<'get_attr', string>
/** Calls the function `target`. */
export type CallFunctionNode = NodeOf<'call_function', TargetFunction>
/** Calls the submodule at the dotted path `target`. */
export type CallModuleNode = NodeOf<'call_module', string>
/** Calls the method `target` of `args[0]`. */
export type CallMethodNode = NodeOf<'call_method', string>
/** Returns `args[0]`. */
export type OutputNode = NodeOf<'output', string>

/** One operation of a graph; PyTorch's torch.fx.Node. A union by `op`: checking `node.op` narrows `node.target`. Create nodes with the methods of Graph. */
export type Node = PlaceholderNode | GetAttrNode | CallFunctionNode | CallModuleNode | CallMethodNode | OutputNode

/** The class of nodes, for `instanceof`. */
export const Node: {
  new (graph: NodeGraph, name: string, op: Opcode, target: Target, args: readonly Argument[], kwargs: Kwargs, type?: NodeType | null): Node
  readonly prototype: Node
} = BaseNode as never

/** A frozen copy of a structure of arguments. Each node in it goes through `inputs`. */
function freeze(value: Argument, inputs: Distinct<Node>, depth = 0): Argument {
  checkDepth(depth)
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Node) return inputs.use(value)
  if (Array.isArray(value)) return freezeList(value, inputs, depth)
  if (value instanceof Slice) return new Slice<Argument>(freeze(value.start, inputs), freeze(value.stop, inputs), freeze(value.step, inputs))
  return isRecord(value) ? freezeRecord(value, inputs, depth) : value
}

function freezeList(values: readonly Argument[], inputs: Distinct<Node>, depth: number): readonly Argument[] {
  // `slice` is slow on lists that were frozen, which have a prototype of their own.
  const out = new Array<Argument>(values.length)
  for (let i = 0; i < out.length; i++) out[i] = freeze(values[i], inputs, depth + 1)
  return freezeArguments(out, isTuple(values))
}

function freezeRecord(values: Kwargs, inputs: Distinct<Node>, depth: number): Kwargs {
  const out: Record<string, Argument> = {}
  for (const key of Object.keys(values)) setOwn(out, key, freeze(values[key], inputs, depth + 1))
  return Object.freeze(out)
}

/** Whether an argument is a plain object, whose values are arguments. */
export const isRecord = (value: Argument): value is Kwargs => isPlainObject(value)
