// DecompositionInterpreter: runs a graph and records the operators that it runs into another graph, some of them replaced by others.
import { checkCount } from '../../protocol/index.ts'
import { noGrad } from '../../autograd/index.ts'
import { fakeLike, withMode } from '../../dispatch/index.ts'
import { recordOf, recordValue } from '../../fx/graph/nodeValue.ts'
import { Interpreter } from '../../fx/index.ts'
import type { Argument, Graph, GraphModule, Node } from '../../fx/index.ts'
import { Module } from '../../module/index.ts'
import { checkGraph } from '../../protocol/graphChecks.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import { treeLeaves, treeMap } from '../../pytree/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { withoutDrawing } from '../trace/draws.ts'
import { ProxyTensorMode } from '../trace/proxyMode.ts'
import type { Decomposition } from '../trace/proxyOptions.ts'

/** What new nodes inherit from the node that they were recorded for. */
const INHERITED = ['stack_trace', 'nn_module_stack', 'source_fn_stack'] as const

/**
 * Records the operators that a graph runs into `newGraph`, on tensors without data: calls of operators in `decompositionTable` become the operators that its functions
 * run, and layers the operators that they run. Parameters and buffers keep their paths, so that the new graph fits the same module.
 *
 *     const graph = new Graph()
 *     new DecompositionInterpreter(gm, graph, new Map([[F.silu, (x) => x.mul(x.sigmoid())]])).run(torch.ones([2]))
 *     const decomposed = new GraphModule(gm, graph)
 *
 * `run` returns tensors without data. The tensors in an array or object become inputs of their own (`pair_1`, `pair_2`). PyTorch's
 * torch.fx.experimental.proxy_tensor.DecompositionInterpreter.
 */
export class DecompositionInterpreter extends Interpreter {
  readonly newGraph: Graph
  readonly #mode: ProxyTensorMode
  readonly #attributes = new Map<Tensor, Node>()
  #current: Node | null = null

  constructor(module: GraphModule, newGraph: Graph, decompositionTable: ReadonlyMap<TargetFunction, Decomposition> = new Map()) {
    checkCount('DecompositionInterpreter', arguments, 3)
    super(module)
    checkGraph('DecompositionInterpreter', newGraph, 'newGraph')
    this.newGraph = newGraph
    this.#mode = new ProxyTensorMode({ graph: newGraph, decompositions: decompositionTable, onNode: (node) => this.#inherit(node) })
  }

  /** Tensors that are neither inputs nor attributes of the module, such as those that a function makes from numbers, by the names that the new graph gives them. */
  get constants(): ReadonlyMap<string, Tensor> {
    return this.#mode.constants
  }

  override runWith(args: readonly unknown[], options: Parameters<Interpreter['runWith']>[1] = {}): unknown {
    const run = (): unknown => noGrad(() => withMode(this.#mode, () => super.runWith(args, options)))
    try {
      return withoutDrawing(run, () => this.#mode.drawCount)
    } finally {
      this.#mode.restoreHistories()
    }
  }

  override runNode(node: Node): unknown {
    this.#current = node
    return super.runNode(node)
  }

  override placeholder(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const value = super.placeholder(target, args, kwargs)
    if (!treeLeaves(value).some((leaf) => leaf instanceof Tensor)) {
      this.newGraph.placeholder(target)
      return value
    }
    let count = 0
    return treeMap(value, (leaf) => {
      if (!(leaf instanceof Tensor)) return leaf
      const fake = fakeLike(leaf)
      this.#mode.placeholder(value === leaf ? target : `${target}_${++count}`, fake, leaf)
      return fake
    })
  }

  override getAttr(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const value = super.getAttr(target, args, kwargs)
    if (value instanceof Tensor) this.#track(value, target)
    return value
  }

  override callModule(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const module = this.fetchAttr(target)
    if (module instanceof Module)
      for (const [path, tensor] of [...module.namedParameters(), ...module.namedBuffers()])
        if (tensor instanceof Tensor) this.#track(tensor, `${target}.${path}`)
    return super.callModule(target, args, kwargs)
  }

  override output(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const value = super.output(target, args, kwargs)
    this.#mode.writeBack()
    this.newGraph.output(treeMap(value, (leaf) => (leaf instanceof Tensor ? this.#mode.nodeOf(leaf) : leaf)) as Argument)
    for (const node of this.#attributes.values()) if (node.users.size === 0) this.newGraph.eraseNode(node)
    return value
  }

  /** The node of an attribute. The first path of a tensor that has several stands for all. */
  #track(tensor: Tensor, path: string): void {
    if (this.#attributes.has(tensor)) return
    const node = this.newGraph.getAttr(path)
    recordValue(node, recordOf(tensor))
    this.#mode.track(tensor, node)
    this.#attributes.set(tensor, node)
  }

  #inherit(node: Node): void {
    const meta = this.#current?.meta ?? {}
    for (const key of INHERITED) if (meta[key] !== undefined) node.meta[key] = meta[key]
  }
}
