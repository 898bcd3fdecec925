// splitByTags: cuts a graph into components by the tags of its nodes. PyTorch's torch.fx.passes.split_utils.
import { ArgumentError } from '../../errors/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import { GraphError } from '../errors.ts'
import { Graph } from '../graph.ts'
import { GraphModule } from '../graphModule.ts'
import { mapArg } from '../node.ts'
import type { Argument, Node } from '../node.ts'
import { operator } from '../operator.ts'
import { tuple } from '../tuple.ts'

/** Options of {@link splitByTags}. */
export interface SplitByTagsOptions {
  /** Components return a tuple also when they compute one value. Default false. */
  readonly returnTuple?: boolean
}

/** What {@link splitByTags} returns. */
export interface TagSplit {
  /** Calls one submodule per tag, in the order of the tags. */
  readonly graphModule: GraphModule
  /** Path of each attribute that a node refers to -> where it is now: `linear1` -> `red.linear1`. PyTorch's return_fqn_mapping. */
  readonly qualnames: ReadonlyMap<string, string>
}

/** One tag's graph while it is put together. */
class Component {
  readonly name: string
  readonly order: number
  readonly graph = new Graph()
  /** Values from outside -> the component's placeholders. */
  readonly inputs = new Map<Node, Node>()
  /** The component's own reads of attributes. */
  readonly attributes = new Map<Node, Node>()
  /** Nodes of the original graph that others need. */
  readonly outputs = new Set<Node>()

  constructor(name: string, order: number) {
    this.name = name
    this.order = order
  }
}

/**
 * Cuts `gm` by `node.meta.tag`: each of `tags` becomes a submodule of that name with the nodes of the tag, and the result calls them in this order. Nodes must be
 * tagged, except placeholders, attributes (which every component reads for itself) and the output; no node may need a value of a later tag. `gm` is not changed.
 * Throws ArgumentError for a node without tag or with an unknown one, GraphError for an order that the values do not allow. PyTorch's split_by_tags (its `node.tag`
 * is `node.meta.tag` here).
 */
export function splitByTags(gm: GraphModule, tags: readonly string[], options: SplitByTagsOptions = {}): TagSplit {
  if (!(gm instanceof GraphModule))
    throw new ArgumentError('splitByTags: the first argument must be a GraphModule; trace the model with symbolicTrace first.')
  if (!Array.isArray(tags) || new Set(tags).size !== tags.length) throw new ArgumentError('splitByTags: tags must be an array of different names.')
  return new TagSplitter(gm, tags, options.returnTuple === true).split()
}

class TagSplitter {
  readonly #gm: GraphModule
  readonly #returnTuple: boolean
  readonly #components: ReadonlyMap<string, Component>
  /** Where each node of the original graph went. */
  readonly #home = new Map<Node, Component>()
  readonly #copies = new Map<Node, Node>()
  readonly #main = new Graph()
  readonly #values = new Map<Node, Node>()
  readonly #attributes: Record<string, unknown> = {}
  readonly #qualnames = new Map<string, string>()

  constructor(gm: GraphModule, tags: readonly string[], returnTuple: boolean) {
    this.#gm = gm
    this.#returnTuple = returnTuple
    this.#components = new Map(tags.map((tag, i) => [tag, new Component(tag, i)]))
  }

  split(): TagSplit {
    const { graph } = this.#gm
    const output = [...graph.nodes].filter((n) => n.op === 'output')
    if (output.length > 1) throw new GraphError('Multiple output nodes in graph!')
    if (output[0] === undefined) throw new GraphError('Graph had no output node!')
    for (const node of graph.nodes) this.#place(node)
    for (const node of output[0].allInputNodes) this.#home.get(node)?.outputs.add(node)
    for (const component of this.#components.values()) for (const input of component.inputs.keys()) this.#home.get(input)?.outputs.add(input)
    for (const component of this.#components.values()) this.#emitCall(component)
    const result = this.#main.output(
      mapArg(output[0].args[0] as Argument, (n) => this.#valueOf(n)),
      output[0].type,
    )
    result.copyMeta(output[0])
    this.#main.setCodegen(graph.codegen.clone())
    return { graphModule: new GraphModule(this.#attributes, this.#main, this.#gm.className), qualnames: this.#qualnames }
  }

  #place(node: Node): void {
    if (node.op === 'output' || node.op === 'get_attr') return
    if (node.op === 'placeholder') {
      this.#values.set(node, this.#main.nodeCopy(node))
      return
    }
    const component = this.#componentOf(node)
    const latest = Math.max(0, ...node.allInputNodes.map((n) => this.#home.get(n)?.order ?? 0))
    if (component.order < latest)
      throw new GraphError(
        `splitByTags: node '${node.name}' of '${component.name}' needs a value of '${[...this.#components.keys()][latest] as string}', which comes later in tags; put that one before it.`,
      )
    this.#home.set(node, component)
    this.#copies.set(
      node,
      component.graph.nodeCopy(node, (n) => this.#inside(component, n)),
    )
    if (node.op === 'call_module') this.#refer(component, node)
  }

  #componentOf(node: Node): Component {
    const { tag } = node.meta
    const component = this.#components.get(tag as string)
    if (component === undefined)
      throw new ArgumentError(
        `splitByTags: node '${node.name}' has ${tag === undefined ? 'no tag' : `the tag '${String(tag)}', which is none of ${[...this.#components.keys()].join(', ')}`}; set node.meta.tag of every operation.`,
      )
    return component
  }

  /** The value of a node of the original graph inside of a component. */
  #inside(component: Component, node: Node): Node {
    if (this.#home.get(node) === component) return this.#copies.get(node) as Node
    const known = node.op === 'get_attr' ? component.attributes : component.inputs
    let inside = known.get(node)
    if (inside === undefined) {
      const { graph } = component
      inside = node.op === 'get_attr' ? graph.getAttr(node.target as string, node.type) : placeholderIn(graph, node)
      inside.copyMeta(node)
      known.set(node, inside)
      if (node.op === 'get_attr') this.#refer(component, node)
    }
    return inside
  }

  #refer(component: Component, node: Node): void {
    this.#qualnames.set(node.target as string, `${component.name}.${node.target as string}`)
  }

  #emitCall(component: Component): void {
    const { graph, name } = component
    const outputs = [...component.outputs]
    const results = outputs.map((node) => this.#copies.get(node) as Node)
    const single = results.length === 1 && !this.#returnTuple
    graph.output(single ? (results[0] as Node) : tuple(...results))
    this.#attributes[name] = new GraphModule(this.#gm, graph, name)
    const call = this.#main.callModule(
      name,
      [...component.inputs.keys()].map((node) => this.#valueOf(node)),
    )
    outputs.forEach((node, i) => this.#values.set(node, single ? call : this.#main.callFunction(operator.getitem as TargetFunction, [call, i])))
  }

  /** The value of a node of the original graph in the main one. */
  #valueOf(node: Node): Node {
    let value = this.#values.get(node)
    if (value === undefined) {
      value = this.#main.getAttr(node.target as string, node.type)
      this.#attributes[node.target as string] = this.#gm.attribute(node.target as string)
      this.#values.set(node, value)
    }
    return value
  }
}

function placeholderIn(graph: Graph, node: Node): Node {
  const operation = [...graph.nodes].find((n) => n.op !== 'placeholder')
  const make = (): Node => graph.placeholder(node.name, node.type)
  return operation === undefined ? make() : graph.insertingBefore(operation, make)
}
