// splitModule: a graph cut into submodules, one per partition. PyTorch's torch.fx.passes.split_module.
import { ArgumentError } from '../../errors/index.ts'
import { GraphError } from '../errors.ts'
import { Graph } from '../graph.ts'
import { GraphModule } from '../graphModule.ts'
import { mapArg } from '../node.ts'
import type { Argument, Node } from '../node.ts'
import { operator } from '../operator.ts'
import { tuple } from '../tuple.ts'
import type { TargetFunction } from '../../protocol/index.ts'

/** Options of {@link splitModule}. */
export interface SplitOptions {
  /** Filled with the new path of each submodule and attribute that moved -> its old path. */
  readonly qualnameMap?: Map<string, string>
  /** Call the submodules in the order in which their first nodes stand, not in topological order. Default false. */
  readonly keepOriginalOrder?: boolean
  /** Nodes inside the submodules keep their names. Default false: they are named afresh, as PyTorch does. */
  readonly keepOriginalNodeName?: boolean
  /** Parameters of submodules are named after the values that they take (default true), else arg_0, arg_1, … */
  readonly keepOriginalInputName?: boolean
  /** `submod_AFFIX_0` instead of `submod_0`. */
  readonly partitionAffix?: string
}

/** One submodule while it is put together. */
class Partition {
  readonly name: string
  readonly graph = new Graph()
  readonly inputs = new Set<Node>()
  readonly outputs = new Set<Node>()
  readonly dependencies = new Set<string>()
  readonly dependents = new Set<string>()
  readonly environment = new Map<Node, Node>()
  readonly targets: Record<string, unknown> = {}

  constructor(name: string) {
    this.name = name
  }

  get path(): string {
    return `submod_${this.name}`
  }
}

/**
 * Cuts `gm` into submodules: `partitionOf` gives each node (not placeholders, attributes or the output) the number or name of its part. The result calls
 * the parts in turn: `submod_0`, `submod_1`, … Attributes that a part needs are read outside and passed in. Nodes keep their meta. `gm` is not changed.
 * Throws GraphError when parts would need each other's results in a circle. PyTorch's split_module.
 */
export function splitModule(gm: GraphModule, partitionOf: (node: Node) => number | string, options: SplitOptions = {}): GraphModule {
  if (!(gm instanceof GraphModule))
    throw new ArgumentError('splitModule: the first argument must be a GraphModule; trace the model with symbolicTrace first.')
  if (typeof partitionOf !== 'function')
    throw new ArgumentError(
      `splitModule: the second argument must be a function from node to the number of its part, got ${partitionOf === null ? 'null' : typeof partitionOf}. There is no root module to give: PyTorch's split_module(m, root, callback) is splitModule(m, callback).`,
    )
  return new Splitter(gm, partitionOf, options).split()
}

class Splitter {
  readonly #gm: GraphModule
  readonly #options: SplitOptions
  readonly #partitions = new Map<string, Partition>()
  readonly #partitionOf = new Map<Node, Partition>()
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
      const output = this.#base.output(mapArg(node.args[0] as Argument, (n) => this.#values.get(n) as Node))
      output.meta = { ...node.meta }
    }
    // Nested inputs and options stay what they were.
    this.#base.setCodegen(this.#gm.graph.codegen.clone())
    return new GraphModule(this.#attributes, this.#base)
  }

  #recordUse(definition: Node, user: Node): void {
    const from = this.#partitionOf.get(definition)
    const to = this.#partitionOf.get(user)
    if (from === to) return
    if (from !== undefined) {
      from.outputs.add(definition)
      if (to !== undefined) from.dependents.add(to.name)
    }
    if (to === undefined) return
    to.inputs.add(definition)
    if (from !== undefined) to.dependencies.add(from.name)
  }

  #topologicalOrder(): Partition[] {
    const waiting = new Map([...this.#partitions.values()].map((p) => [p.name, new Set(p.dependencies)]))
    const ready = [...this.#partitions.values()].filter((p) => p.dependencies.size === 0)
    const order: Partition[] = []
    for (let partition = ready.pop(); partition !== undefined; partition = ready.pop()) {
      order.push(partition)
      for (const name of partition.dependents) {
        const left = waiting.get(name) as Set<string>
        left.delete(partition.name)
        if (left.size === 0) ready.push(this.#partitions.get(name) as Partition)
      }
    }
    if (order.length === this.#partitions.size) return order
    const circle = [...this.#partitions.keys()].filter((name) => !order.some((p) => p.name === name))
    throw new GraphError(
      `cycle exists between partitions! The parts ${circle.join(', ')} need each other's results; put the nodes between them into one part.`,
    )
  }

  #makeInputs(partition: Partition): void {
    let count = 0
    for (const input of partition.inputs) {
      const name = this.#options.keepOriginalInputName === false ? `arg_${count++}` : input.name
      const placeholder = partition.graph.placeholder(name, input.type)
      placeholder.meta = { ...input.meta }
      partition.environment.set(input, placeholder)
    }
  }

  #copyInto(node: Node): void {
    const partition = this.#partitionOf.get(node)
    if (partition === undefined) return
    const { environment, graph, path, targets } = partition
    const inside = (n: Node): Node => environment.get(n) as Node
    let target = node.target
    if (node.op === 'call_module') {
      target = (node.target as string).replaceAll('.', '_')
      targets[target] = this.#gm.attribute(node.target as string)
      this.#options.qualnameMap?.set(`${path}.${target}`, node.target as string)
    }
    const name = this.#options.keepOriginalNodeName === true ? node.name : null
    const args = node.args.map((arg) => mapArg(arg, inside))
    const kwargs = Object.fromEntries(Object.entries(node.kwargs).map(([key, value]) => [key, mapArg(value, inside)]))
    const copy = graph.createNode(node.op, target, args, kwargs, name, node.type)
    copy.meta = { ...node.meta }
    environment.set(node, copy)
  }

  #copyToBase(node: Node): void {
    if (this.#values.has(node)) return
    const name = this.#options.keepOriginalNodeName === true ? node.name : null
    const copy = this.#base.createNode(node.op, node.target, node.op === 'placeholder' ? node.args : [], {}, name, node.type)
    copy.meta = { ...node.meta }
    this.#values.set(node, copy)
    if (node.op === 'get_attr') this.#attributes[node.target as string] = this.#gm.attribute(node.target as string)
  }

  #emitCall(partition: Partition): void {
    const results = [...partition.outputs].map((node) => partition.environment.get(node) as Node)
    partition.graph.output(results.length === 1 ? (results[0] as Node) : tuple(...results))
    for (const input of partition.inputs) this.#copyToBase(input)
    this.#attributes[partition.path] = new GraphModule(partition.targets, partition.graph)
    const call = this.#base.callModule(
      partition.path,
      [...partition.inputs].map((input) => this.#values.get(input) as Node),
    )
    if (results.length === 1) {
      const [output] = partition.outputs
      this.#values.set(output as Node, call)
      return
    }
    ;[...partition.outputs].forEach((output, i) => {
      const item = this.#base.callFunction(operator.getitem as TargetFunction, [call, i])
      item.meta = { ...output.meta }
      this.#values.set(output, item)
    })
  }
}

/** Copies the body of the GraphModule that `call` (a call_module node) calls to its place, and removes the call. Returns the new nodes. */
export function inlineModule(gm: GraphModule, call: Node): Node[] {
  const child = gm.attribute(call.target as string)
  if (call.op !== 'call_module' || !(child instanceof GraphModule))
    throw new ArgumentError(`inlineModule: node '${call.name}' does not call a GraphModule; only those have a graph to copy.`)
  const values = new Map<Node, Argument>()
  child.graph.findNodes({ op: 'placeholder' }).forEach((input, i) => {
    const given = call.kwargs[input.name] ?? (i < call.args.length ? call.args[i] : input.args[0])
    if (given === undefined) throw new ArgumentError(`inlineModule: the call '${call.name}' does not give the parameter '${input.name}'.`)
    values.set(input, given)
  })
  const inputs = new Set(values.values())
  const result = gm.graph.insertingBefore(call, () => gm.graph.graphCopy(child.graph, values))
  for (const node of [...values.values()])
    if (!inputs.has(node) && isNodeOf(node, gm) && (node.op === 'call_module' || node.op === 'get_attr')) adopt(gm, child, node)
  if (Array.isArray(result)) {
    for (const user of call.users) {
      const item = user.target === operator.getitem ? (result as readonly Argument[])[user.args[1] as number] : undefined
      if (item === undefined || !isNodeOf(item, gm))
        throw new GraphError(`inlineModule: '${user.name}' uses the whole list that '${call.name}' returns.`)
      user.replaceAllUsesWith(item)
      gm.graph.eraseNode(user)
    }
  } else call.replaceAllUsesWith(result as Node)
  gm.graph.eraseNode(call)
  return [...values.values()].filter((value): value is Node => !inputs.has(value) && isNodeOf(value, gm))
}

const isNodeOf = (value: Argument, gm: GraphModule): value is Node =>
  typeof value === 'object' && value !== null && 'graph' in value && (value as Node).graph === gm.graph

/** What an inlined node refers to comes along; under another name where the module has something else of that name. */
function adopt(gm: GraphModule, child: GraphModule, node: Node): void {
  const path = node.target as string
  const value = child.attribute(path)
  let free = path
  for (let i = 1; gm.attribute(free) !== undefined && gm.attribute(free) !== value; i++) free = `${path}_${i}`
  if (gm.attribute(free) === undefined) gm.assignAttribute(free, value)
  if (free !== path) node.target = free
}
