// splitByTags: splits a graph into components by the tags of its nodes. PyTorch's torch.fx.passes.split_utils.
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import { ArgumentError } from '../../../errors/index.ts'
import { checkCount, checkOptions } from '../../../protocol/index.ts'
import { GraphError } from '../../graph/errors.ts'
import { Graph } from '../../graph/graph.ts'
import { GraphModule } from '../../run/graphModule.ts'
import { mapArg } from '../../graph/mapArg.ts'
import type { CallModuleNode, GetAttrNode, Node } from '../../graph/node.ts'
import { operator } from '../../graph/operator.ts'
import { tuple } from '../../graph/pythonValues.ts'
import { tagOf } from '../nodes/meta.ts'

/** Options of {@link splitByTags}. */
export interface SplitByTagsOptions {
  /** Let components that return a single value return a tuple. Default false. */
  readonly returnTuple?: boolean
  /** The class of the result; its parts are plain GraphModules. Default GraphModule. PyTorch's GraphModuleCls. */
  readonly graphModuleClass?: new (root: Readonly<Record<string, unknown>>, graph: Graph, className: string) => GraphModule
}

/** The result of {@link splitByTags}. */
export interface TagSplit {
  /** Calls one submodule per tag, in the order of the tags. */
  readonly graphModule: GraphModule
  /** From the old path of each attribute that a node refers to, to its new path: `linear1` -> `red.linear1`. PyTorch's return_fqn_mapping. */
  readonly qualnames: ReadonlyMap<string, string>
}

/** The graph of a tag under construction. */
class Component {
  readonly name: string
  readonly order: number
  readonly graph = new Graph()
  /** From outer node to the component's placeholder for it. */
  readonly inputs = new Map<Node, Node>()
  /** From get_attr node of the original graph to that of the component. */
  readonly attributes = new Map<Node, Node>()
  /** The nodes of the original graph whose values are needed outside. */
  readonly outputs = new Set<Node>()
  #lastPlaceholder: Node | null = null

  constructor(name: string, order: number) {
    this.name = name
    this.order = order
  }

  /** Adds a placeholder for an outer node, behind the other placeholders. */
  addPlaceholder(node: Node): Node {
    const make = (): Node => this.graph.placeholder(node.name, node.type)
    const last = this.#lastPlaceholder
    return (this.#lastPlaceholder = last === null ? this.graph.insertingBefore(null, make) : this.graph.insertingAfter(last, make))
  }
}

/**
 * Splits `gm` by `node.meta.tag` (in PyTorch, `node.tag`): the nodes with each of `tags` become a submodule of that name, and the result calls the submodules in the
 * order of `tags`. All nodes except placeholders, attributes and the output must have a tag; every component reads its attributes itself. `gm` does not change. Throws
 * ArgumentError for a node without a tag or with an unknown one, and GraphError if a node needs a value of a later tag. PyTorch's split_by_tags.
 */
export function splitByTags(gm: GraphModule, tags: readonly string[], options: SplitByTagsOptions = {}): TagSplit {
  checkCount('splitByTags', arguments, 3)
  checkOptions('splitByTags', options, { returnTuple: 'boolean', graphModuleClass: true })
  checkGraphModule('splitByTags', gm)
  if (!Array.isArray(tags) || new Set(tags).size !== tags.length) throw new ArgumentError('splitByTags: tags must be an array of different names.')
  return splitByTagOf(gm, tags, tagOf, options)
}

/** {@link splitByTags} with the tags that a function gives. */
export function splitByTagOf(gm: GraphModule, tags: readonly string[], tagOf: (node: Node) => unknown, options: SplitByTagsOptions = {}): TagSplit {
  return new TagSplitter(gm, tags, tagOf, options).split()
}

class TagSplitter {
  readonly #gm: GraphModule
  readonly #tagOf: (node: Node) => unknown
  readonly #options: SplitByTagsOptions
  readonly #components: ReadonlyMap<string, Component>
  /** The component of each node of the original graph. */
  readonly #home = new Map<Node, Component>()
  readonly #copies = new Map<Node, Node>()
  readonly #main = new Graph()
  readonly #values = new Map<Node, Node>()
  readonly #attributes: Record<string, unknown> = {}
  readonly #qualnames = new Map<string, string>()

  constructor(gm: GraphModule, tags: readonly string[], tagOf: (node: Node) => unknown, options: SplitByTagsOptions) {
    this.#gm = gm
    this.#tagOf = tagOf
    this.#options = options
    this.#components = new Map(tags.map((tag, i) => [tag, new Component(tag, i)]))
  }

  split(): TagSplit {
    const { graph } = this.#gm
    const output = [...graph.nodes].filter((n) => n.op === 'output')
    if (output.length > 1) throw new GraphError('Multiple output nodes in graph!')
    if (output[0] === undefined) throw new GraphError('Graph had no output node!')
    for (const node of graph.nodes) this.#place(node)
    // Values leave a component in the order in which other components need them, those for the caller last.
    for (const node of output[0].allInputNodes) this.#home.get(node)?.outputs.add(node)
    for (const node of output[0].allInputNodes) if (node.op === 'get_attr') this.#valueOf(node)
    for (const component of this.#components.values()) this.#emitCall(component)
    const result = this.#main.output(
      mapArg(output[0].args[0], (n) => this.#valueOf(n)),
      output[0].type,
    )
    result.copyMeta(output[0])
    this.#main.setCodegen(graph.codegen.clone())
    const GraphModuleClass = this.#options.graphModuleClass ?? GraphModule
    return { graphModule: new GraphModuleClass(this.#attributes, this.#main, this.#gm.className), qualnames: this.#qualnames }
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
        `splitByTags: node '${node.name}' of '${component.name}' needs a value of '${[...this.#components.keys()][latest]}', which comes later in tags; put that tag first.`,
      )
    this.#home.set(node, component)
    this.#copies.set(
      node,
      component.graph.nodeCopy(node, (n) => this.#inside(component, n)),
    )
    if (node.op === 'call_module') this.#refer(component, node)
  }

  #componentOf(node: Node): Component {
    const tag = this.#tagOf(node)
    const component = typeof tag === 'string' ? this.#components.get(tag) : undefined
    if (component === undefined)
      throw new ArgumentError(
        `splitByTags: node '${node.name}' has ${tag === undefined ? 'no tag' : `the tag '${String(tag)}', which is not in tags (${[...this.#components.keys()].join(', ')})`}; set node.meta.tag of every operation.`,
      )
    return component
  }

  /** The node of a component for a node of the original graph. */
  #inside(component: Component, node: Node): Node {
    const copy = this.#home.get(node) === component ? this.#copies.get(node) : undefined
    if (copy !== undefined) return copy
    const known = node.op === 'get_attr' ? component.attributes : component.inputs
    let inside = known.get(node)
    if (inside === undefined) {
      inside = node.op === 'get_attr' ? component.graph.getAttr(node.target, node.type) : component.addPlaceholder(node)
      inside.copyMeta(node)
      known.set(node, inside)
      this.#home.get(node)?.outputs.add(node)
      if (node.op === 'get_attr') this.#refer(component, node)
    }
    return inside
  }

  #refer(component: Component, node: GetAttrNode | CallModuleNode): void {
    this.#qualnames.set(node.target, `${component.name}.${node.target}`)
  }

  #emitCall(component: Component): void {
    const { graph, name } = component
    const outputs = [...component.outputs]
    const results = outputs.map((node) => this.#copies.get(node))
    const single = results.length === 1 && this.#options.returnTuple !== true
    graph.output(single ? results[0] : tuple(...results))
    this.#attributes[name] = new GraphModule(this.#gm, graph, name)
    const call = this.#main.callModule(
      name,
      [...component.inputs.keys()].map((node) => this.#valueOf(node)),
    )
    outputs.forEach((node, i) => this.#values.set(node, single ? call : this.#main.callFunction(operator.getitem, [call, i])))
  }

  /** The node of the main graph for a node of the original graph. */
  #valueOf(node: Node): Node {
    const known = this.#values.get(node)
    if (known !== undefined) return known
    if (node.op !== 'get_attr') throw new GraphError(`splitByTags: '${node.name}' is used before it is computed; see lint.`)
    const read = this.#main.getAttr(node.target, node.type)
    this.#attributes[node.target] = this.#gm.attribute(node.target)
    this.#values.set(node, read)
    return read
  }
}
