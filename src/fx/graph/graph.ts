// Graph: an ordered list of nodes, the body of one function. The list is doubly linked, so that an edit takes the same time anywhere in it.
/// <reference lib="esnext.disposable" preserve="true" />
import { checkGraph, checkNode } from '../../protocol/graphChecks.ts'
import { checkArgument, checkCallable, checkCount, checkMethod, checkOptionNames, checkOptions, inspectAs, isFunction } from '../../protocol/index.ts'
import { GraphError } from './errors.ts'
import { graphText } from './graphText.ts'
import type { BodyTransformer, GeneratedCode, GraphCodegen, TableColumn, WriteOptions } from './graphText.ts'
import { lintGraph, warnMissing } from './lint.ts'
import { Namespace, candidateName } from './namespace.ts'
import { mapArg } from './mapArg.ts'
import { Node } from './node.ts'
import type { Argument, Kwargs, NodeType, Opcode, OutputNode, OwningModule, Target } from './node.ts'
import { areAllIn, NodeList, NodeTable } from './collections.ts'
import { giveKey } from './order.ts'
import { isEmpty } from './pythonValues.ts'
import { hasOp, isImpureNode } from './purity.ts'

/** A setting that is undone when it is disposed: `using _ = graph.insertingBefore(node)`. */
export interface Scope {
  [Symbol.dispose](): void
}

let graphs = 0

/** The body of a function as data; PyTorch's torch.fx.Graph. */
export class Graph {
  /** Identifies the graph in messages and in `from_node`. */
  readonly label: string
  /** The GraphModule whose attributes the nodes refer to; null if there is none. */
  owningModule: OwningModule | null
  /** The Tracer class that recorded the graph, for tracing it again. */
  tracerClass: unknown
  /** Where the traced program is defined, `model.ts:12 in Net.forward`; generated code is named after it. Null if unknown. */
  sourceHint: string | null = null
  /** The first node; null in an empty graph. */
  first: Node | null = null
  /** The last node; null in an empty graph. */
  last: Node | null = null
  /** The number of nodes. */
  size = 0
  /** The number of edits so far, by which a GraphModule knows whether its code is out of date. @internal */
  edits = 0
  /** The nodes in order: a live view. PyTorch's `graph.nodes`. */
  readonly nodes: NodeList<Node>
  #names = new Namespace()
  readonly #table: NodeTable<Node>
  /** New nodes go before this one, or at the end if it is null. */
  #insertBefore: Node | null = null
  #codegen: GraphCodegen | null = null

  constructor(owningModule: OwningModule | null = null, tracerClass: unknown = null) {
    checkCount('Graph', arguments, 2)
    this.label = `Graph ${graphs++}`
    this.owningModule = owningModule
    this.tracerClass = tracerClass
    this.nodes = new NodeList(this)
    this.#table = new NodeTable(this.nodes)
  }

  // ---- building ----

  /**
   * Adds a node at the insert point. `name` is a suggestion; a suffix is added if it is taken.
   * Throws GraphError for an unknown op or a target of the wrong type.
   */
  createNode(
    op: Opcode,
    target: Target,
    args: readonly Argument[] = [],
    kwargs: Kwargs = {},
    name: string | null = null,
    type: NodeType | null = null,
  ): Node {
    checkMethod(this, 'Graph.createNode', arguments, 6)
    const candidate = name ?? candidateName(target)
    const node = new Node(this, candidate, op, target, args, kwargs, type)
    // Only now, so that a node that could not be made takes no name.
    node.name = this.#names.create(candidate)
    this.#link(node, this.#insertBefore)
    this.#table.add(node)
    try {
      this.owningModule?.fireCreateHooks(node)
    } catch (error) {
      this.#remove(node)
      throw error
    }
    return node
  }

  /** Adds an input. Leave `defaultValue` out for a parameter without a default; null and undefined are defaults. */
  placeholder(name: string, type: NodeType | null = null, ...defaultValue: readonly [Argument?]): Node {
    checkMethod(this, 'Graph.placeholder', arguments, 3)
    return this.createNode('placeholder', name, defaultValue, {}, null, type)
  }

  /** Adds a read of the owning module's parameter, buffer or constant at a dotted path. Warns if there is none. PyTorch's get_attr. */
  getAttr(path: string, type: NodeType | null = null): Node {
    checkMethod(this, 'Graph.getAttr', arguments, 2)
    if (this.owningModule !== null) warnMissing(this.owningModule, 'get_attr', path)
    return this.createNode('get_attr', path, [], {}, null, type)
  }

  /** Adds a call of the owning module's submodule at a dotted path. Warns if there is none. PyTorch's call_module. */
  callModule(path: string, args: readonly Argument[] = [], kwargs: Kwargs = {}, type: NodeType | null = null): Node {
    checkMethod(this, 'Graph.callModule', arguments, 4)
    if (this.owningModule !== null) warnMissing(this.owningModule, 'call_module', path)
    return this.createNode('call_module', path, args, kwargs, null, type)
  }

  /** Adds a call of a method of `args[0]`. PyTorch's call_method. */
  callMethod(name: string, args: readonly Argument[] = [], kwargs: Kwargs = {}, type: NodeType | null = null): Node {
    checkMethod(this, 'Graph.callMethod', arguments, 4)
    return this.createNode('call_method', name, args, kwargs, null, type)
  }

  /** Adds a call of a function. A function is printed, saved and loaded by its registered name, which `fx.wrap` gives it. PyTorch's call_function. */
  callFunction(fn: Target, args: readonly Argument[] = [], kwargs: Kwargs = {}, type: NodeType | null = null, name: string | null = null): Node {
    checkMethod(this, 'Graph.callFunction', arguments, 5)
    return this.createNode('call_function', fn, args, kwargs, name, type)
  }

  /** Adds the output: a node, or any structure of nodes and constants. */
  output(value: Argument, type: NodeType | null = null): Node {
    checkMethod(this, 'Graph.output', arguments, 2)
    return this.createNode('output', 'output', [value], {}, null, type)
  }

  // ---- insert point ----

  /** Inserts new nodes before `node` (null: at the front) while `fn` runs, or until the returned scope is disposed. */
  insertingBefore<T>(node: Node | null, fn: () => T): T
  insertingBefore(node?: Node | null): Scope
  insertingBefore<T>(node: Node | null = null, fn?: () => T): T | Scope {
    checkMethod(this, 'Graph.insertingBefore', arguments, 2)
    this.#check(node, 'before')
    return this.#inserting(node ?? this.first, fn)
  }

  /** Inserts new nodes after `node` (null: at the end), in the order in which they are made, while `fn` runs, or until the returned scope is disposed. */
  insertingAfter<T>(node: Node | null, fn: () => T): T
  insertingAfter(node?: Node | null): Scope
  insertingAfter<T>(node: Node | null = null, fn?: () => T): T | Scope {
    checkMethod(this, 'Graph.insertingAfter', arguments, 2)
    this.#check(node, 'after')
    return this.#inserting(node === null ? null : node.next, fn)
  }

  #check(node: Node | null, where: string): void {
    if (node !== null) checkNode(`Graph.inserting${where === 'before' ? 'Before' : 'After'}`, node)
    if (node !== null && (node.graph !== this || node.erased)) throw new GraphError(`Node to insert ${where} is not in graph.`)
  }

  #inserting<T>(point: Node | null, fn: (() => T) | undefined): T | Scope {
    if (fn !== undefined) checkCallable('Graph.insertingBefore', 'fn', fn)
    const before = this.#insertBefore
    this.#insertBefore = point
    const restore = (): void => {
      // If the node was erased in the meantime, the next one takes its place.
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

  /** The output node. Throws GraphError if the graph does not end in one. */
  outputNode(): OutputNode {
    checkMethod(this, 'Graph.outputNode', arguments, 0)
    if (this.last === null || this.last.op !== 'output') throw new GraphError('the graph has no output node at its end.')
    return this.last
  }

  /** The nodes with an op, and with a target if given, in graph order unless `sort` is false. Throws GraphError for call_function without a target. */
  findNodes<O extends Opcode>(options: { readonly op: O; readonly target?: Target; readonly sort?: boolean }): Extract<Node, { readonly op: O }>[] {
    checkMethod(this, 'Graph.findNodes', arguments, 1)
    checkOptionNames('Graph.findNodes', options, ['op', 'target', 'sort'])
    const { op, target, sort = true } = options
    if (op === 'call_function' && target === undefined) throw new GraphError("findNodes: op 'call_function' needs a target.")
    const candidates = this.#table.get(op === 'call_function' ? (target ?? op) : op)
    const nodes: Extract<Node, { readonly op: O }>[] = []
    for (const node of candidates) if (hasOp(node, op) && (target === undefined || node.target === target)) nodes.push(node)
    return sort ? nodes.sort((a, b) => a.sortKey - b.sortKey) : nodes
  }

  // ---- copying ----

  /** Copies a node of any graph to the insert point. `argTransform` maps each of its inputs to an argument of the copy. `meta` is copied shallowly. */
  nodeCopy(node: Node, argTransform: (n: Node) => Argument = (n) => n): Node {
    checkMethod(this, 'Graph.nodeCopy', arguments, 2)
    checkNode('Graph.nodeCopy', node)
    const args = mapArg(node.args, argTransform)
    const kwargs = isEmpty(node.kwargs) ? node.kwargs : mapArg(node.kwargs, argTransform)
    const copy = this.createNode(node.op, node.target, args, kwargs, node.name, node.type)
    copy.copyMeta(node)
    return copy
  }

  /**
   * Copies the nodes of `graph`, except its output, to the insert point. Nodes that are already in `valueMap` are not copied; the copies are added to it. Returns
   * the mapped value of the output, null if there is no output; with `returnOutputNode`, that value and the output of `graph`. Throws GraphError if the graph is not in
   * order.
   */
  graphCopy(graph: Graph, valueMap: Map<Node, Argument>, returnOutputNode?: false): Argument
  graphCopy(graph: Graph, valueMap: Map<Node, Argument>, returnOutputNode: boolean): Argument | readonly [value: Argument, output: Node]
  graphCopy(graph: Graph, valueMap: Map<Node, Argument>, returnOutputNode = false): Argument | readonly [value: Argument, output: Node] {
    checkMethod(this, 'Graph.graphCopy', arguments, 3)
    checkGraph('Graph.graphCopy', graph)
    checkArgument(valueMap instanceof Map, 'Graph.graphCopy', 'valueMap', 'a Map', valueMap)
    const get = (n: Node): Argument => {
      const value = valueMap.get(n)
      if (value === undefined) throw new GraphError(`graphCopy: node '${n.name}' is used before it was copied; the graph is not in order (see lint).`)
      return value
    }
    for (const node of graph.nodes) {
      if (valueMap.has(node)) continue
      if (node.op === 'output') {
        const value = mapArg(node.args[0], get)
        return returnOutputNode ? [value, node] : value
      }
      valueMap.set(node, this.nodeCopy(node, get))
    }
    return null
  }

  /** A copy with its own nodes, which keep their names, types and meta. */
  deepCopy(): Graph {
    checkMethod(this, 'Graph.deepCopy', arguments, 0)
    const copy = new Graph()
    copy.tracerClass = this.tracerClass
    copy.sourceHint = this.sourceHint
    copy.#codegen = this.#codegen === null ? null : this.#codegen.clone()
    const map = new Map<Node, Argument>()
    const value = copy.graphCopy(this, map)
    if (this.last?.op === 'output') {
      const output = copy.output(value, this.last.type)
      output.copyMeta(this.last)
    }
    return copy
  }

  // ---- editing ----

  /** Must be called before every change of what the graph computes. @internal */
  willChange(): void {
    this.owningModule?.beforeEdit()
    this.edits++
  }

  /** Removes a node. Throws GraphError if it has users or belongs to another graph. */
  eraseNode(node: Node): void {
    checkMethod(this, 'Graph.eraseNode', arguments, 1)
    checkNode('Graph.eraseNode', node)
    if (node.graph !== this) throw new GraphError(`Attempting to remove ${node.name} from wrong graph!`)
    if (node.users.size > 0) {
      const users = [...node.users].map((u) => `${u.name}: None`).join(', ')
      throw new GraphError(
        `Tried to erase Node ${node.name} but it still had ${node.users.size} users in the graph: {${users}}! Give them another value first: node.replaceAllUsesWith(other).`,
      )
    }
    if (node.erased) {
      console.warn(`eraseNode(${node.name}) on an already erased node`)
      return
    }
    this.owningModule?.fireEraseHooks(node)
    this.#remove(node)
  }

  #remove(node: Node): void {
    this.willChange()
    this.#table.delete(node)
    if (this.#insertBefore === node) this.#insertBefore = node.next
    this.#unlink(node)
    node.erased = true
    node.args = []
    node.kwargs = {}
  }

  /**
   * Removes nodes that are unused and have no side effects, and whatever only they used. Returns whether there were any.
   * `isImpure` tells which unused nodes to keep. Throws GraphError if the graph is not well formed (see lint) or if purity cannot be determined (see
   * Node.isImpure). If anything throws, including `isImpure`, nothing is removed.
   */
  eliminateDeadCode(isImpure: (node: Node) => boolean = (n) => n.isImpure()): boolean {
    checkMethod(this, 'Graph.eliminateDeadCode', arguments, 1)
    checkCallable('Graph.eliminateDeadCode', 'isImpure', isImpure)
    this.lint()
    const dead = new Set<Node>()
    for (const node of this.nodes.reversed()) if (areAllIn(node.users, dead) && !isImpure(node)) dead.add(node)
    for (const node of dead) this.eraseNode(node)
    return dead.size > 0
  }

  /** See Node.rename. @internal */
  rename(node: Node, candidate: string): void {
    if (candidate !== node.name) node.name = this.#names.create(candidate)
  }

  /** Checks that the graph is well formed. Throws GraphError for the first problem. */
  lint(): void {
    checkMethod(this, 'Graph.lint', arguments, 0)
    lintGraph(this)
  }

  /** Whether the table behind findNodes, if it exists, has the node. For lint. @internal */
  isListed(node: Node): boolean {
    return this.#table.has(node)
  }

  /** See Node.isImpure. @internal */
  isImpure(node: Node, impureRandom: boolean): boolean {
    return isImpureNode(node, impureRandom)
  }

  /** See Node.formatNode. @internal */
  formatNode(node: Node): string {
    return graphText().formatNode(node)
  }

  /** The nodes as an array. Until the next edit, `node.position` is the index of a node in it. @internal */
  numberNodes(): Node[] {
    const nodes: Node[] = []
    for (let node = this.first; node !== null; node = node.next) node.position = nodes.push(node) - 1
    return nodes
  }

  /** Runs a change of a node's op or target, and updates the table behind findNodes. @internal */
  relist(node: Node, change: () => void): void {
    this.willChange()
    const listed = this.isListed(node)
    if (listed) this.#table.delete(node)
    change()
    if (listed) this.#table.add(node)
  }

  /** Moves a node before `point` (null: to the end). An erased node is added again. @internal */
  moveBefore(node: Node, point: Node | null): void {
    if (point === node) return
    this.willChange()
    if (node.erased) this.#table.add(node)
    else this.#unlink(node)
    node.erased = false
    this.#link(node, point)
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

  /** The node keeps its own links, so that an iteration that has reached it can continue. */
  #unlink(node: Node): void {
    if (node.prev === null) this.first = node.next
    else node.prev.next = node.next
    if (node.next === null) this.last = node.prev
    else node.next.prev = node.prev
    this.size--
  }

  // ---- code and text ----

  /** Generates JavaScript for the graph. PyTorch's python_code. */
  generateCode(options: WriteOptions = {}): GeneratedCode {
    return this.codegen.generate(this, options)
  }

  /** The values of the placeholders for these arguments of the compiled function; the code generator defines the mapping. */
  processInputs(...inputs: readonly unknown[]): readonly unknown[] {
    return this.codegen.processInputs(inputs)
  }

  /** What the compiled function returns for this value of the output node; the code generator defines the mapping. */
  processOutputs(output: unknown): unknown {
    return this.codegen.processOutputs(output)
  }

  /** The code generator of this graph. */
  get codegen(): GraphCodegen {
    return (this.#codegen ??= graphText().newCodegen())
  }

  /** Sets the code generator, which takes effect at the next `recompile()` of the owning module. Throws ArgumentError for anything but a CodeGen. */
  setCodegen(codegen: GraphCodegen): void {
    checkMethod(this, 'Graph.setCodegen', arguments, 1)
    checkArgument(graphText().isCodegen(codegen), 'Graph.setCodegen', 'codegen', 'a CodeGen', codegen)
    this.willChange()
    this.#codegen = codegen
  }

  /**
   * Registers a transformer of generated lines: `make` gets the current one (or null) and returns the new one. It stays registered until the returned scope is
   * disposed. Throws ArgumentError if `make` is not a function or returns anything but a function.
   */
  onGenerateCode(make: (current: BodyTransformer | null) => BodyTransformer): Scope {
    checkMethod(this, 'Graph.onGenerateCode', arguments, 1)
    const { codegen } = this
    const before = codegen.bodyTransformer
    const transformer = isFunction(make) ? make(before) : null
    checkArgument(isFunction(transformer), 'Graph.onGenerateCode', 'make', 'a function that returns one: () => (body) => [...body]', make)
    this.willChange()
    codegen.bodyTransformer = transformer
    return {
      [Symbol.dispose]: () => {
        // Not an edit that needs recompile(): what was generated with the transformer stays until then.
        this.owningModule?.beforeEdit()
        codegen.bodyTransformer = before
      },
    }
  }

  /** Returns a table of the nodes, and prints it unless `print` is false: opcode, name, target, args, kwargs, and the columns in `extra`. */
  printTabular(options: { readonly print?: boolean; readonly extra?: readonly TableColumn[] } = {}): string {
    checkMethod(this, 'Graph.printTabular', arguments, 1)
    checkOptions('Graph.printTabular', options, { print: 'boolean', extra: true })
    const text = graphText().formatTabular(this, options.extra)
    if (options.print !== false) console.log(text)
    return text
  }

  /** The nodes as PyTorch prints them, one per line. */
  toString(): string {
    return graphText().formatGraph(this)
  }
}

inspectAs(Graph.prototype, String)

type CompleteGraph = Graph
declare module './node.ts' {
  // oxlint-disable-next-line typescript/no-empty-object-type -- a node's graph is a Graph
  interface NodeGraph extends CompleteGraph {}
}
