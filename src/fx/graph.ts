// Graph: an ordered list of nodes, the body of one function. A doubly linked list, so that edits cost the same wherever they happen.
import { inspectAs, targetInfo } from '../protocol/index.ts'
import { GraphError } from './errors.ts'
import type { WriteOptions } from './codeWriter.ts'
import { CodeGen } from './codegen.ts'
import type { BodyTransformer } from './codegen.ts'
import { formatGraph, formatTabular } from './format.ts'
import type { TableColumn } from './format.ts'
import type { GeneratedCode } from './generatedCode.ts'
import { lintGraph } from './lint.ts'
import { Namespace, snakeCase } from './namespace.ts'
import { Node, mapArg } from './node.ts'
import type { Argument, Kwargs, Opcode, Target } from './node.ts'
import { giveKey } from './order.ts'
import { warnMissing } from './references.ts'

/** What a graph needs of the module that owns it. GraphModule implements it. */
export interface OwningModule {
  /** Tells hooks that `user` is about to use a node called `name` in the place of `old`. */
  fireReplaceHooks(old: Node, name: string, user: Node): void
  /** Tells hooks of a new node. */
  fireCreateHooks(node: Node): void
  /** Tells hooks that a node is about to be erased. */
  fireEraseHooks(node: Node): void
  /** Whether calling the module at a dotted path has effects. */
  isImpureModule(path: string): boolean
  /** Whether a graph that control flow may run, at this path, has effects. */
  isImpureBody(path: string): boolean
  /** The attribute at a dotted path; undefined when there is none. */
  attribute(path: string): unknown
}

/** A setting that lasts until it is disposed (`using _ = graph.insertingBefore(node)`). */
export interface Scope {
  [Symbol.dispose](): void
}

/** The nodes of a graph in order: a live view. */
export class NodeList implements Iterable<Node> {
  readonly #graph: Graph

  constructor(graph: Graph) {
    this.#graph = graph
  }

  /** How many there are. */
  get length(): number {
    return this.#graph.size
  }

  /** Front to back. Erasing or inserting nodes on the way is allowed. */
  *[Symbol.iterator](): Generator<Node> {
    for (let node = this.#graph.first; node !== null; node = node.next) if (!node.erased) yield node
  }

  /** Back to front. */
  *reversed(): Generator<Node> {
    for (let node = this.#graph.last; node !== null; node = node.prev) if (!node.erased) yield node
  }
}

let graphs = 0

/** The body of a function as data; PyTorch's torch.fx.Graph. */
export class Graph {
  /** For messages. */
  readonly label: string
  /** The GraphModule whose attributes the nodes refer to; null for none. */
  owningModule: OwningModule | null
  /** The Tracer class that made it, for re-tracing. */
  tracerClass: unknown
  /** Where the traced program stands, `model.ts:12 in Net.forward`; generated code is named after it. null when unknown. */
  sourceHint: string | null = null
  /** Ends of the list, and its length; `nodes` is the way to walk it. */
  /** The first node, null in an empty graph. */
  first: Node | null = null
  /** The last node, null in an empty graph. */
  last: Node | null = null
  /** How many nodes there are. */
  size = 0
  /** The nodes in order; PyTorch's `graph.nodes`. */
  /** The nodes in order, live. */
  readonly nodes: NodeList
  #names = new Namespace()
  /** Nodes by op, and by function called; made by the first findNodes, and kept up to date since. */
  #lookup: Map<Opcode | Target, Set<Node>> | null = null
  /** New nodes go before this one; null: at the end. */
  #insertBefore: Node | null = null
  #codegen = new CodeGen()

  constructor(owningModule: OwningModule | null = null, tracerClass: unknown = null) {
    this.label = `Graph ${graphs++}`
    this.owningModule = owningModule
    this.tracerClass = tracerClass
    this.nodes = new NodeList(this)
  }

  // ---- building ----

  /**
   * Adds a node at the insert point. `name` is a wish; the node's name is unique in the graph.
   * Throws GraphError for an unknown op or a target of the wrong kind.
   */
  createNode(
    op: Opcode,
    target: Target,
    args: readonly Argument[] = [],
    kwargs: Kwargs = {},
    name: string | null = null,
    type: string | null = null,
  ): Node {
    const wish = name ?? candidateName(target)
    const node = new Node(this, wish, op, target, args, kwargs, type)
    // Only now: a node that cannot be made takes no name.
    node.name = this.#names.create(wish)
    this.#link(node, this.#insertBefore)
    this.#list(node)
    try {
      this.owningModule?.fireCreateHooks(node)
    } catch (error) {
      this.#remove(node)
      throw error
    }
    return node
  }

  /** An input. `defaultValue`: omit it for a parameter without default (null and undefined are values). */
  placeholder(name: string, type: string | null = null, ...defaultValue: readonly [Argument?]): Node {
    return this.createNode('placeholder', name, defaultValue, {}, null, type)
  }

  /** Reads a parameter, buffer or constant of the owning module by its dotted path. Warns when the module has none there. */
  getAttr(path: string, type: string | null = null): Node {
    if (this.owningModule !== null) warnMissing(this.owningModule, 'get_attr', path)
    return this.createNode('get_attr', path, [], {}, null, type)
  }

  /** Calls a submodule of the owning module. Warns when the module has none there. */
  /** Calls the submodule at a dotted path of the owning module. PyTorch's call_module. */
  callModule(path: string, args: readonly Argument[] = [], kwargs: Kwargs = {}, type: string | null = null): Node {
    if (this.owningModule !== null) warnMissing(this.owningModule, 'call_module', path)
    return this.createNode('call_module', path, args, kwargs, null, type)
  }

  /** Calls a method of the first of `args`. */
  /** Calls the method of `args[0]`. PyTorch's call_method. */
  callMethod(name: string, args: readonly Argument[] = [], kwargs: Kwargs = {}, type: string | null = null): Node {
    return this.createNode('call_method', name, args, kwargs, null, type)
  }

  /** Calls a function. It is printed, saved and found again by its registered name (`fx.wrap`), if it has one. */
  /** Calls a function with these arguments. PyTorch's call_function. */
  callFunction(fn: Target, args: readonly Argument[] = [], kwargs: Kwargs = {}, type: string | null = null): Node {
    return this.createNode('call_function', fn, args, kwargs, null, type)
  }

  /** What the graph returns: a node, or any structure of nodes and constants. */
  output(value: Argument, type: string | null = null): Node {
    return this.createNode('output', 'output', [value], {}, null, type)
  }

  // ---- insert point ----

  /** New nodes go before `node` (null: to the front), while `fn` runs, or until the returned scope is disposed. */
  insertingBefore<T>(node: Node | null, fn: () => T): T
  insertingBefore(node?: Node | null): Scope
  insertingBefore<T>(node: Node | null = null, fn?: () => T): T | Scope {
    this.#check(node, 'before')
    return this.#inserting(node ?? this.first, fn)
  }

  /** New nodes go after `node` (null: to the end) in the order in which they are made, while `fn` runs, or until the returned scope is disposed. */
  insertingAfter<T>(node: Node | null, fn: () => T): T
  insertingAfter(node?: Node | null): Scope
  insertingAfter<T>(node: Node | null = null, fn?: () => T): T | Scope {
    this.#check(node, 'after')
    return this.#inserting(node === null ? null : node.next, fn)
  }

  #check(node: Node | null, where: string): void {
    if (node !== null && (node.graph !== this || node.erased)) throw new GraphError(`Node to insert ${where} is not in graph.`)
  }

  #inserting<T>(point: Node | null, fn: (() => T) | undefined): T | Scope {
    const before = this.#insertBefore
    this.#insertBefore = point
    const restore = (): void => {
      // The node may have been erased meanwhile; what stood behind it has its place.
      let at = before
      while (at?.erased === true) at = at.next
      this.#insertBefore = at
    }
    if (fn === undefined) return { [Symbol.dispose]: restore }
    try {
      return fn()
    } finally {
      restore()
    }
  }

  // ---- reading ----

  /** The output node. Throws GraphError when the graph does not end in one. */
  outputNode(): Node {
    if (this.last === null || this.last.op !== 'output') throw new GraphError('the graph has no output node at its end.')
    return this.last
  }

  /** Nodes of an op, in order; for call_function `target` is required. */
  findNodes(options: { readonly op: Opcode; readonly target?: Target; readonly sort?: boolean }): Node[] {
    const { op, target } = options
    const lookup = this.#table()
    if (op === 'call_function') {
      if (target === undefined) throw new GraphError("findNodes: op 'call_function' needs a target.")
      return this.#sorted(
        [...(lookup.get(target) ?? [])].filter((n) => n.op === op),
        options.sort,
      )
    }
    const all = [...(lookup.get(op) ?? [])]
    return this.#sorted(target === undefined ? all : all.filter((n) => n.target === target), options.sort)
  }

  #sorted(nodes: Node[], sort = true): Node[] {
    return sort ? nodes.sort((a, b) => a.sortKey - b.sortKey) : nodes
  }

  // ---- copying ----

  /** Copies a node of any graph to the insert point; `argTransform` translates its inputs. meta is copied shallowly. */
  nodeCopy(node: Node, argTransform: (n: Node) => Argument = (n) => n): Node {
    const args = mapArg(node.args, argTransform) as readonly Argument[]
    const kwargs = mapArg(node.kwargs, argTransform) as Kwargs
    const copy = this.createNode(node.op, node.target, args, kwargs, node.name, node.type)
    copy.copyMeta(node)
    return copy
  }

  /** Copies all nodes of `graph` but its output to the insert point; `valueMap` is read and filled. Returns the mapped output value, null without one. */
  graphCopy(graph: Graph, valueMap: Map<Node, Argument>): Argument {
    for (const node of graph.nodes) {
      if (valueMap.has(node)) continue
      const get = (n: Node): Argument => {
        const value = valueMap.get(n)
        if (value === undefined)
          throw new GraphError(`graphCopy: node '${n.name}' is used before it was copied; the graph is not in order (see lint).`)
        return value
      }
      if (node.op === 'output') return mapArg(node.args[0], get)
      valueMap.set(node, this.nodeCopy(node, get))
    }
    return null
  }

  /** A copy with nodes of its own; names, types and meta are kept. Linear, without recursion over the graph. */
  deepCopy(): Graph {
    const copy = new Graph()
    copy.tracerClass = this.tracerClass
    copy.sourceHint = this.sourceHint
    copy.#codegen = this.#codegen.clone()
    const map = new Map<Node, Argument>()
    const value = copy.graphCopy(this, map)
    if (this.last?.op === 'output') {
      const output = copy.output(value, this.last.type)
      output.copyMeta(this.last)
    }
    return copy
  }

  // ---- editing ----

  /** Removes a node that nobody uses. Throws GraphError when it has users or belongs to another graph. */
  eraseNode(node: Node): void {
    if (node.graph !== this) throw new GraphError(`Attempting to remove ${node.name} from wrong graph!`)
    if (node.users.size > 0) {
      const users = [...node.users].map((u) => `${u.name}: None`).join(', ')
      throw new GraphError(`Tried to erase Node ${node.name} but it still had ${node.users.size} users in the graph: {${users}}!`)
    }
    if (node.erased) {
      console.warn(`eraseNode(${node.name}) on an already erased node`)
      return
    }
    this.owningModule?.fireEraseHooks(node)
    this.#remove(node)
  }

  #remove(node: Node): void {
    this.#unlist(node)
    if (this.#insertBefore === node) this.#insertBefore = node.next
    this.#unlink(node)
    node.erased = true
    node.args = []
    node.kwargs = {}
  }

  /**
   * Removes nodes that nobody uses and that have no effect, and what only they used. Returns them, last first; PyTorch returns whether there were any. `isImpure`
   * decides what stays though unused. Throws GraphError for a graph that is not well formed (lint), or for which purity cannot be told (Node.isImpure); then, and
   * when `isImpure` throws, nothing was removed.
   */
  eliminateDeadCode(isImpure: (node: Node) => boolean = (n) => n.isImpure()): Node[] {
    this.lint()
    const dead = new Set<Node>()
    for (const node of this.nodes.reversed()) if (areAllIn(node.users, dead) && !isImpure(node)) dead.add(node)
    const removed = [...dead]
    for (const node of removed) this.eraseNode(node)
    return removed
  }

  /** Gives a node a fresh name like `candidate`. PyTorch's Node._rename. */
  rename(node: Node, candidate: string): void {
    if (candidate !== node.name) node.name = this.#names.create(candidate)
  }

  /** Checks that the graph is well formed. Throws GraphError on the first problem. */
  lint(): void {
    lintGraph(this)
  }

  /** Whether the node stands in this graph's side table, as far as there is one; for lint. */
  isListed(node: Node): boolean {
    return this.#lookup === null || this.#lookup.get(node.op)?.has(node) === true
  }

  /** The nodes as an array; `node.position` says where a node stands in it, until the next edit. */
  numberNodes(): Node[] {
    const nodes: Node[] = []
    for (let node = this.first; node !== null; node = node.next) node.position = nodes.push(node) - 1
    return nodes
  }

  /** Runs a change of op or target and keeps the side tables right. */
  relist(node: Node, change: () => void): void {
    const listed = this.isListed(node)
    if (listed) this.#unlist(node)
    change()
    if (listed) this.#list(node)
  }

  /** Moves a node; an erased one comes back. Throws GraphError when `point` was erased. */
  moveBefore(node: Node, point: Node | null): void {
    if (point === node) return
    if (point?.erased === true) throw new GraphError(`Attempting to move node '${node.name}' to '${point.name}', which was erased.`)
    if (node.erased) this.#list(node)
    else this.#unlink(node)
    node.erased = false
    this.#link(node, point)
  }

  #table(): Map<Opcode | Target, Set<Node>> {
    if (this.#lookup === null) {
      this.#lookup = new Map()
      for (const node of this.nodes) this.#list(node)
    }
    return this.#lookup
  }

  #list(node: Node): void {
    const lookup = this.#lookup
    if (lookup === null) return
    for (const key of node.op === 'call_function' ? [node.op, node.target] : [node.op]) {
      const set = lookup.get(key)
      if (set === undefined) lookup.set(key, new Set([node]))
      else set.add(node)
    }
  }

  #unlist(node: Node): void {
    this.#lookup?.get(node.op)?.delete(node)
    if (node.op === 'call_function') this.#lookup?.get(node.target)?.delete(node)
  }

  #link(node: Node, before: Node | null): void {
    const prev = before === null ? this.last : before.prev
    node.prev = prev
    node.next = before
    if (prev === null) this.first = node
    else prev.next = node
    if (before === null) this.last = node
    else before.prev = node
    this.size++
    giveKey(node)
  }

  /** The node keeps its own links, so that a walk that stands on it can go on. */
  #unlink(node: Node): void {
    if (node.prev === null) this.first = node.next
    else node.prev.next = node.next
    if (node.next === null) this.last = node.prev
    else node.next.prev = node.prev
    this.size--
  }

  // ---- code and text ----

  /** The graph as JavaScript. PyTorch's python_code. */
  generateCode(options: WriteOptions = {}): GeneratedCode {
    return this.#codegen.generate(this, options)
  }

  /** The inputs of the compiled function -> the values of the placeholders, as the code generator has it. */
  processInputs(...inputs: readonly unknown[]): readonly unknown[] {
    return this.#codegen.processInputs(inputs)
  }

  /** The value of the output node -> what the compiled function returns. */
  processOutputs(output: unknown): unknown {
    return this.#codegen.processOutputs(output)
  }

  /** What writes the code. */
  get codegen(): CodeGen {
    return this.#codegen
  }

  /** Uses another code generator; `recompile()` of the owning module shows it. Throws GraphError for what is none. */
  setCodegen(codegen: CodeGen): void {
    if (!(codegen instanceof CodeGen))
      throw new GraphError('setCodegen: expected a CodeGen; make a subclass of fx.CodeGen and pass an instance of it.')
    this.#codegen = codegen
  }

  /**
   * Registers a transformer of generated lines: `make` gets the current one (or null) and returns the new one. It stays until the returned
   * scope is disposed.
   */
  onGenerateCode(make: (current: BodyTransformer | null) => BodyTransformer): Scope {
    const codegen = this.#codegen
    const before = codegen.bodyTransformer
    const transformer: unknown = typeof make === 'function' ? make(before) : undefined
    if (typeof transformer !== 'function')
      throw new GraphError(
        'onGenerateCode: expected a function that takes the current transformer (or null) and returns the new one: onGenerateCode(() => (body) => [...body]).',
      )
    codegen.bodyTransformer = transformer as BodyTransformer
    return {
      [Symbol.dispose]: () => {
        codegen.bodyTransformer = before
      },
    }
  }

  /** Prints (unless `print` is false) and returns the table of nodes: opcode, name, target, args, kwargs, and the columns of `extra`. */
  printTabular(options: { readonly print?: boolean; readonly extra?: readonly TableColumn[] } = {}): string {
    const text = formatTabular(this, options.extra)
    if (options.print !== false) console.log(text)
    return text
  }

  /** The nodes, one to a line, as PyTorch prints them. */
  toString(): string {
    return formatGraph(this)
  }
}

inspectAs(Graph.prototype, String)
inspectAs(NodeList.prototype, (nodes) => `[${[...nodes].join(', ')}]`)

function areAllIn(users: Iterable<Node>, nodes: ReadonlySet<Node>): boolean {
  for (const user of users) if (!nodes.has(user)) return false
  return true
}

/** The wished-for name of a node: from the function's name, or the path. */
function candidateName(target: Target): string {
  if (typeof target === 'string')
    return snakeCase(target.startsWith('__') && target.endsWith('__') && target.length > 4 ? target.slice(2, -2) : target)
  return snakeCase(targetInfo(target)?.shortName ?? String(target?.name))
}
