// splitModule: splits a graph into submodules, one per partition. PyTorch's torch.fx.passes.split_module.
import { checkNode, checkGraphModule } from '../../../protocol/graphChecks.ts'
import { ArgumentError } from '../../../errors/index.ts'
import { checkCount, isFunction, checkOptions } from '../../../protocol/index.ts'
import { GraphError } from '../../graph/errors.ts'
import { Graph } from '../../graph/graph.ts'
import { freePath } from '../../run/attributes.ts'
import { GraphModule } from '../../run/graphModule.ts'
import { Dependencies, LastReady } from '../nodes/order.ts'
import { mapArg } from '../../graph/mapArg.ts'
import { Node } from '../../graph/node.ts'
import type { Argument, CallModuleNode, GetAttrNode } from '../../graph/node.ts'
import { operator } from '../../graph/operator.ts'
import { tuple } from '../../graph/pythonValues.ts'

/** Options of {@link splitModule}. */
export interface SplitOptions {
  /** Filled with the old path of each submodule that moved, by its new path. */
  readonly qualnameMap?: Map<string, string>
  /** Call the submodules in the order of their first nodes instead of in topological order. Default false. */
  readonly keepOriginalOrder?: boolean
  /** Keep the names of nodes. Default false: they get new names, as in PyTorch. */
  readonly keepOriginalNodeName?: boolean
  /** Name the parameters of submodules after the values that they take; if false, arg_0, arg_1, … Default true. */
  readonly keepOriginalInputName?: boolean
  /** Name the submodules `submod_AFFIX_0` instead of `submod_0`. */
  readonly partitionAffix?: string
}

/** A submodule under construction. */
class Partition {
  readonly name: string
  readonly graph = new Graph()
  readonly inputs = new Set<Node>()
  readonly outputs = new Set<Node>()
  /** From node of the original graph to node of this one. */
  readonly environment = new Map<Node, Node>()
  /** The modules that it calls, by path. */
  readonly targets: Record<string, unknown> = {}

  constructor(name: string) {
    this.name = name
  }

  get path(): string {
    return `submod_${this.name}`
  }
}

/**
 * Splits `gm` into submodules. `partitionOf` returns the number or name of a node's part; it is not called for placeholders, attributes and the output. The result
 * calls the parts in turn: `submod_0`, `submod_1`, … Attributes that a part needs are read outside and passed to it. Nodes keep their meta. `gm` does not change.
 * Throws GraphError if parts would need each other's results. PyTorch's split_module. Throws ArgumentError if `gm` is no GraphModule, or `partitionOf` no function.
 */
export function splitModule(gm: GraphModule, partitionOf: (node: Node) => number | string, options: SplitOptions = {}): GraphModule {
  checkCount('splitModule', arguments, 3)
  checkGraphModule('splitModule', gm)
  if (!isFunction(partitionOf))
    throw new ArgumentError(
      `splitModule: the second argument must be a function that returns the part of a node, got ${partitionOf === null ? 'null' : typeof partitionOf}. There is no argument for a root module: PyTorch's split_module(m, root, callback) is splitModule(m, callback).`,
    )
  checkOptions('splitModule', options, {
    qualnameMap: true,
    keepOriginalOrder: 'boolean',
    keepOriginalNodeName: 'boolean',
    keepOriginalInputName: 'boolean',
    partitionAffix: true,
  })
  return new Splitter(gm, partitionOf, options).split()
}

class Splitter {
  readonly #gm: GraphModule
  readonly #options: SplitOptions
  readonly #partitions = new Map<string, Partition>()
  readonly #partitionOf = new Map<Node, Partition>()
  readonly #dependencies: Dependencies<Partition>
  readonly #base = new Graph()
  readonly #values = new Map<Node, Node>()
  readonly #attributes: Record<string, unknown> = {}

  constructor(gm: GraphModule, partitionOf: (node: Node) => number | string, options: SplitOptions) {
    this.#gm = gm
    this.#options = options
    for (const node of gm.graph.nodes) {
      if (node.op === 'placeholder' || node.op === 'get_attr' || node.op === 'output') continue
      const key = [options.partitionAffix, partitionOf(node)].filter((part) => part !== undefined).join('_')
      let partition = this.#partitions.get(key)
      if (partition === undefined) this.#partitions.set(key, (partition = new Partition(key)))
      this.#partitionOf.set(node, partition)
    }
    this.#dependencies = new Dependencies(this.#partitions.values())
  }

  split(): GraphModule {
    const { nodes } = this.#gm.graph
    for (const node of nodes) for (const input of node.allInputNodes) this.#recordUse(input, node)
    const order = this.#topologicalOrder()
    for (const partition of order) this.#makeInputs(partition)
    for (const node of nodes) this.#copyInto(node)
    const keep = this.#options.keepOriginalOrder === true
    if (keep) for (const node of nodes) if (node.op === 'placeholder') this.#copyToBase(node)
    if (!keep) for (const node of nodes) if (node.op === 'placeholder' || node.op === 'get_attr') this.#copyToBase(node)
    for (const partition of keep ? this.#partitions.values() : order) this.#emitCall(partition)
    for (const node of nodes) {
      if (node.op !== 'output') continue
      for (const input of node.allInputNodes) if (!this.#values.has(input)) this.#copyToBase(input)
      this.#base.output(mapArg(node.args[0], (n) => this.#values.get(n))).copyMeta(node)
    }
    // Nested inputs and options objects stay as they were.
    this.#base.setCodegen(this.#gm.graph.codegen.clone())
    return new GraphModule(this.#attributes, this.#base)
  }

  #recordUse(definition: Node, user: Node): void {
    const from = this.#partitionOf.get(definition)
    const to = this.#partitionOf.get(user)
    if (from === to) return
    from?.outputs.add(definition)
    to?.inputs.add(definition)
    if (from !== undefined && to !== undefined) this.#dependencies.require(to, from)
  }

  #topologicalOrder(): readonly Partition[] {
    const { order, cyclic } = this.#dependencies.order(new LastReady())
    if (cyclic.length === 0) return order
    throw new GraphError(
      `cycle exists between partitions! The parts ${cyclic.map((part) => part.name).join(', ')} need each other's results; put the nodes between them into one part.`,
    )
  }

  #makeInputs(partition: Partition): void {
    let count = 0
    for (const input of partition.inputs) {
      const name = this.#options.keepOriginalInputName === false ? `arg_${count++}` : input.name
      const placeholder = partition.graph.placeholder(name, input.type)
      placeholder.copyMeta(input)
      partition.environment.set(input, placeholder)
    }
  }

  #copyInto(node: Node): void {
    const partition = this.#partitionOf.get(node)
    if (partition === undefined) return
    const { environment, graph, path, targets } = partition
    const inside = (n: Node): Argument => environment.get(n)
    const name = this.#options.keepOriginalNodeName === true ? node.name : null
    const target = node.op === 'call_module' ? node.target.replaceAll('.', '_') : node.target
    if (node.op === 'call_module') {
      targets[node.target.replaceAll('.', '_')] = this.#gm.attribute(node.target)
      this.#options.qualnameMap?.set(`${path}.${String(target)}`, node.target)
    }
    const copy = graph.createNode(node.op, target, mapArg(node.args, inside), mapArg(node.kwargs, inside), name, node.type)
    copy.copyMeta(node)
    environment.set(node, copy)
  }

  #copyToBase(node: Node): void {
    if (this.#values.has(node)) return
    const name = this.#options.keepOriginalNodeName === true ? node.name : null
    const copy = this.#base.createNode(node.op, node.target, node.op === 'placeholder' ? node.args : [], {}, name, node.type)
    copy.copyMeta(node)
    this.#values.set(node, copy)
    if (node.op === 'get_attr') this.#attributes[node.target] = this.#gm.attribute(node.target)
  }

  #emitCall(partition: Partition): void {
    const results = [...partition.outputs].map((node) => partition.environment.get(node))
    partition.graph.output(results.length === 1 ? results[0] : tuple(...results))
    for (const input of partition.inputs) this.#copyToBase(input)
    this.#attributes[partition.path] = new GraphModule(partition.targets, partition.graph)
    const call = this.#base.callModule(
      partition.path,
      [...partition.inputs].map((input) => this.#values.get(input)),
    )
    for (const [i, output] of [...partition.outputs].entries()) {
      if (results.length === 1) {
        this.#values.set(output, call)
        continue
      }
      const item = this.#base.callFunction(operator.getitem, [call, i])
      item.copyMeta(output)
      this.#values.set(output, item)
    }
  }
}

/**
 * Replaces a call_module node that calls a GraphModule with the nodes of that module's graph. Returns the new nodes. Throws ArgumentError if the node calls anything
 * else or lacks an argument, and GraphError if a node uses a returned list as a whole, or a returned constant.
 */
export function inlineModule(gm: GraphModule, call: Node): Node[] {
  checkCount('inlineModule', arguments, 2)
  checkGraphModule('inlineModule', gm)
  checkNode('inlineModule', call, 'call')
  const child = call.op === 'call_module' ? gm.attribute(call.target) : undefined
  if (!(child instanceof GraphModule))
    throw new ArgumentError(`inlineModule: node '${call.name}' does not call a GraphModule; only a GraphModule has a graph to copy.`)
  const values = new Map<Node, Argument>()
  child.graph.findNodes({ op: 'placeholder' }).forEach((input, i) => {
    const given = call.kwargs[input.name] ?? (i < call.args.length ? call.args[i] : input.args[0])
    if (given === undefined) throw new ArgumentError(`inlineModule: the call '${call.name}' has no argument for the parameter '${input.name}'.`)
    values.set(input, given)
  })
  const inputs = new Set(values.values())
  const result = gm.graph.insertingBefore(call, () => gm.graph.graphCopy(child.graph, values))
  const made = [...values.values()].filter((value): value is Node => value instanceof Node && !inputs.has(value) && value.graph === gm.graph)
  for (const node of made) if (node.op === 'call_module' || node.op === 'get_attr') adopt(gm, child, node)
  if (result instanceof Node) call.replaceAllUsesWith(result)
  else {
    for (const user of call.users) {
      const [, index] = user.args
      const item = Array.isArray(result) && user.target === operator.getitem && typeof index === 'number' ? result[index] : undefined
      if (!(item instanceof Node))
        throw new GraphError(`inlineModule: '${user.name}' uses the whole value that '${call.name}' returns, which is not a single node.`)
      user.replaceAllUsesWith(item)
      gm.graph.eraseNode(user)
    }
  }
  gm.graph.eraseNode(call)
  return made
}

/** Gives `gm` the attribute that an inlined node refers to, under another name if `gm` has another attribute of that name. */
function adopt(gm: GraphModule, child: GraphModule, node: GetAttrNode | CallModuleNode): void {
  const value = child.attribute(node.target)
  const free = freePath(gm, node.target, value)
  if (gm.attribute(free) === undefined) gm.assignAttribute(free, value)
  if (free !== node.target) node.target = free
}
