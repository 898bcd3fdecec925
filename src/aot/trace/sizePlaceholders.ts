// Sizes of a joint graph: each expression that an operator takes is a placeholder after those of the tensors, so that the graph computes with tensors only. Whoever calls the graph evaluates the expressions,
// once for each list of sizes.
import { recordValue } from '../../fx/graph/nodeValue.ts'
import type { Argument, Graph, Node } from '../../fx/index.ts'
import type { Expr, ShapeEnv } from '../../symbols/index.ts'
import { SizeNodes } from './sizeNodes.ts'

/** A placeholder, and what it stands for. */
interface SizePlaceholder {
  readonly node: Node
  readonly expr: Expr
}

export class SizePlaceholders extends SizeNodes {
  readonly #graph: Graph
  readonly #env: ShapeEnv
  readonly #made = new Map<Expr, SizePlaceholder>()
  /** The last placeholder. */
  #last: Node | null

  /** `last`: the last placeholder of the graph; null if it has none. */
  constructor(graph: Graph, env: ShapeEnv, last: Node | null) {
    super(graph, env)
    this.#graph = graph
    this.#env = env
    this.#last = last
  }

  /** In the order of the graph. */
  get placeholders(): readonly SizePlaceholder[] {
    return [...this.#made.values()]
  }

  /** Nothing is read off tensors. */
  override addTensor(): void {}

  override argumentOfExpr(of: Expr): Argument {
    const expr = this.#env.simplify(of)
    const value = this.#env.toValue(expr)
    if (typeof value === 'number' || typeof value === 'boolean') return value
    const known = this.#made.get(expr)
    if (known !== undefined) return known.node
    const make = (): Node => this.#graph.placeholder(`size${this.#made.size}`)
    const node = this.#last === null ? this.#graph.insertingBefore(null, make) : this.#graph.insertingAfter(this.#last, make)
    recordValue(node, value)
    this.#made.set(expr, { node, expr })
    this.#last = node
    return node
  }
}
