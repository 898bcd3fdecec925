// What nodes cost: floating-point operations and bytes from the shapes of a graph, and time from a profile, which is shown as heat.
import type { GraphCosts, NodeCost } from '../cost.ts'
import { operation } from '../layout/boxes.ts'
import type { Item } from '../layout/tree.ts'
import type { PageGraph, PageNode } from '../pageData.ts'

interface Spec {
  readonly bytes: number
  readonly shape: readonly number[]
}

/** The shape of `f32[2, 3]` and its bytes; null for other texts. */
function specIn(text: string | null): Spec | null {
  const [, dtype = '', sizes = ''] = /^([a-z]+\d+)\w*\[([\d, ]*)\]/.exec(text ?? '') ?? []
  if (dtype === '') return null
  const shape = sizes === '' ? [] : sizes.split(',').map(Number)
  return { shape, bytes: (shape.reduce((product, size) => product * size, 1) * Number(dtype.replace(/\D/g, ''))) / 8 }
}

const count = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1)

/** Layers and functions that add up products: how many of them make an element of the result. FlopCounterMode counts two operations for each. */
const LAYERS = /^(?:Linear|Conv[123]d)$/
const FUNCTIONS = /(?:^|\.)(?:linear|conv[123]d|convolution)$/
const PRODUCTS = /(?:^|\.)(?:mm|bmm|matmul|addmm|baddbmm|mv)$/

function depthOf(node: PageNode, inputs: readonly (Spec | null)[]): number | null {
  const weight = node.tensors.find(({ name }) => name === 'weight')?.shape
  if (node.op === 'call_module') return weight !== undefined && LAYERS.test(node.type ?? '') ? count(weight.slice(1)) : null
  if (FUNCTIONS.test(node.target)) return inputs[1] === null || inputs[1] === undefined ? null : count(inputs[1].shape.slice(1))
  if (!PRODUCTS.test(operation(node)) && !PRODUCTS.test(node.target)) return null
  const factor = /add/.test(node.target) ? inputs[1] : inputs[0]
  return factor?.shape.at(-1) ?? null
}

/** What the shapes say; null for what they do not. Products and convolutions count 2 for each multiplication with its addition, all else counts 0. */
export function staticCost(node: PageNode, graph: PageGraph): { readonly flops: number | null; readonly bytes: number | null } {
  const result = specIn(node.spec)
  if (result === null || node.op === 'placeholder' || node.op === 'output' || node.op === 'get_attr') return { flops: null, bytes: null }
  const inputs = node.inputs.map((index) => specIn(graph.nodes[index]?.spec ?? null))
  const depth = depthOf(node, inputs)
  const widths = node.tensors.map(({ shape, dtype }) => (count(shape) * Number(dtype.replace(/\D/g, '') || 8)) / 8)
  const read = [...inputs.map((spec) => spec?.bytes ?? 0), ...widths].reduce((sum, bytes) => sum + bytes, 0)
  return { flops: depth === null ? 0 : 2 * depth * count(result.shape), bytes: read + result.bytes }
}

/** The profile of a graph, by the numbers of its nodes. */
export class Heat {
  readonly #costs: GraphCosts
  readonly #hottest: number
  readonly #times = new Map<Item, number>()

  constructor(costs: GraphCosts) {
    this.#costs = costs
    this.#hottest = Math.max(0, ...Object.values(costs.nodes).map(({ time }) => time))
  }

  of(node: PageNode): NodeCost | null {
    return Object.hasOwn(this.#costs.nodes, node.name) ? (this.#costs.nodes[node.name] ?? null) : null
  }

  /** The part of the time of all nodes. */
  share({ time }: NodeCost): number {
    return this.#costs.totalTime === 0 ? 0 : time / this.#costs.totalTime
  }

  /** From 0 to 1: the time of a box against that of the hottest node. A closed group has the time of its nodes. */
  warmth(item: Item): number {
    return this.#hottest === 0 ? 0 : Math.min(1, this.#time(item) / this.#hottest)
  }

  #time(item: Item): number {
    const known = this.#times.get(item)
    if (known !== undefined) return known
    const time = item.kind === 'node' ? (this.of(item.node)?.time ?? 0) : item.children.reduce((sum, child) => sum + this.#time(child), 0)
    this.#times.set(item, time)
    return time
  }
}
