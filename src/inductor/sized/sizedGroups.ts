// Which operators of a graph with sizes become one kernel for any sizes. The scheduler groups the graph as it is for a sample of sizes; a group that turns out to be one kernel for any of them is taken, and all else stays as it is.
import { writeBacksOf } from '../../aot/meta/compiled.ts'
import { noGrad } from '../../autograd/index.ts'
import { FakeTensorMode, withMode } from '../../dispatch/index.ts'
import { Graph, GraphModule, Interpreter, operator } from '../../fx/index.ts'
import type { Node } from '../../fx/index.ts'
import { opOf } from '../../ops/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { known } from '../known.ts'
import { isViewForSizes } from '../lowering.ts'
import { nodesOf } from '../groups.ts'
import { schedule } from '../scheduler.ts'
import type { Sample } from './layouts.ts'
import { SizedKernel, lowerSample } from './sizedKernel.ts'

/** Operators that one kernel computes. */
export interface FusedNodes {
  readonly kernel: SizedKernel
  /** What it reads, in the order in which the kernel takes it. */
  readonly inputs: readonly Node[]
  /** What it returns. */
  readonly outputs: readonly Node[]
  /** What it computes; the views among it are not. */
  readonly computed: ReadonlySet<Node>
}

/** What runs after each other: a node as it is, or a kernel. */
export type Unit = Node | FusedNodes

/** The nodes of a group, and the views through which they read. */
interface Candidate {
  readonly computed: ReadonlySet<Node>
  readonly views: ReadonlySet<Node>
}

/** Whether a unit is a kernel. */
export const isFused = (unit: Unit): unit is FusedNodes => 'kernel' in unit

/**
 * What computes the outputs of a functional graph for any sizes, in order. `a` and `b`: two samples of its inputs, in which everything that differs from call to call differs.
 * Throws UnsupportedError for graphs that are not flat calls of operators.
 */
export function fuseForSizes(gm: GraphModule, a: readonly Sample[], b: readonly Sample[]): readonly Unit[] {
  const values = [valuesFor(gm, a), valuesFor(gm, b)] as const
  const given = new Map<Node, number>(gm.graph.findNodes({ op: 'placeholder' }).map((node, i) => [node, i]))
  const taken: FusedNodes[] = []
  let order = orderOf(gm, []) ?? []
  for (const candidate of candidatesOf(gm, a)) {
    const fused = fusedOf(gm, candidate, (node, sample) => {
      const position = given.get(node)
      const samples = sample === 0 ? a : b
      return position === undefined ? sampleOf(values[sample].get(node)) : (samples[position] ?? null)
    })
    if (fused === null) continue
    // Without operators that are in several groups, two groups may need each other's results.
    const next = orderOf(gm, [...taken, fused])
    if (next === null) continue
    taken.push(fused)
    order = next
  }
  return order
}

/** The values of all nodes for a sample, as tensors without data. */
function valuesFor(gm: GraphModule, samples: readonly Sample[]): ReadonlyMap<Node, unknown> {
  const values = new Map<Node, unknown>()
  class Values extends Interpreter {
    override runNode(node: Node): unknown {
      const value = super.runNode(node)
      values.set(node, value)
      return value
    }
  }
  const inputs = samples.map((sample) => (sample.kind === 'tensor' ? Tensor.fake({ ...sample.spec, offset: 0 }) : sample.value))
  noGrad(() => withMode(new FakeTensorMode(), () => new Values(gm).run(...inputs)))
  return values
}

const sampleOf = (value: unknown): Sample | null =>
  value instanceof Tensor ? { kind: 'tensor', spec: { shape: value.sizes, dtype: value.dtype, strides: value.steps } } : null

const isView = (node: Node): boolean => {
  const op = node.op === 'call_function' ? opOf(node.target) : undefined
  return op !== undefined && isViewForSizes(op)
}

/** The groups of the scheduler, of at least two operators that are in no other group. */
function candidatesOf(gm: GraphModule, samples: readonly Sample[]): readonly Candidate[] {
  const groups = schedule(lowerSample(gm, samples, null))
  const groupsOf = new Map<string, Set<number>>()
  groups.forEach((group, i) => {
    for (const { origin } of nodesOf(group)) groupsOf.set(origin, (groupsOf.get(origin) ?? new Set()).add(i))
  })
  return groups.flatMap((group, i) => {
    if (group.kind !== 'loops') return []
    const computed = new Set<Node>()
    for (const node of gm.graph.nodes) {
      const own = groupsOf.get(node.name)
      const [source] = node.allInputNodes
      const isItem = node.target === operator.getitem && source !== undefined && computed.has(source)
      if (isItem || (own?.size === 1 && own.has(i))) computed.add(node)
    }
    if ([...computed].filter((node) => node.target !== operator.getitem).length < 2) return []
    return [{ computed, views: viewsInto(gm, computed) }]
  })
}

/** The views through which nodes read, and the views that these are of. */
function viewsInto(gm: GraphModule, computed: ReadonlySet<Node>): ReadonlySet<Node> {
  const views = new Set<Node>()
  for (const node of [...gm.graph.nodes].reverse())
    if (!computed.has(node) && isView(node) && [...node.users].some((user) => computed.has(user) || views.has(user))) views.add(node)
  return views
}

/** The kernel of a candidate; null if it is not one. */
function fusedOf(gm: GraphModule, { computed, views }: Candidate, sampleAt: (node: Node, sample: 0 | 1) => Sample | null): FusedNodes | null {
  const nodes = [...gm.graph.nodes].filter((node) => computed.has(node) || views.has(node))
  const inside = new Set(nodes)
  const inputs = [...new Set(nodes.flatMap((node) => node.allInputNodes))].filter((node) => !inside.has(node))
  // A view that something else needs too is taken of a result.
  const leaves = new Set<Node>()
  for (const node of nodes.toReversed())
    if ([...node.users].some((user) => !inside.has(user) || (views.has(user) && leaves.has(user)))) leaves.add(node)
  const outputs = nodes.filter((node) => computed.has(node) && leaves.has(node))
  const samples = ([0, 1] as const).map((sample) => inputs.map((node) => sampleAt(node, sample)).filter((one) => one !== null))
  const [a, b] = samples
  if (a?.length !== inputs.length || b?.length !== inputs.length) return null
  const part = graphOf(nodes, inputs, outputs)
  part.meta['writeBacks'] = writeBacksWithin(gm, inputs, outputs)
  const kernel = SizedKernel.compile(part, a, b)
  return kernel === null ? null : { kernel, inputs, outputs, computed }
}

/** Which of the outputs the caller of the whole graph writes to which of the inputs, by their positions. */
function writeBacksWithin(gm: GraphModule, inputs: readonly Node[], outputs: readonly Node[]): ReadonlyMap<number, number> {
  const [returned] = gm.graph.outputNode().args
  const placeholders = gm.graph.findNodes({ op: 'placeholder' })
  const within = new Map<number, number>()
  for (const [position, input] of writeBacksOf(gm)) {
    const output = Array.isArray(returned) ? outputs.indexOf(returned[position]) : -1
    const target = placeholders[input]
    if (output >= 0 && target !== undefined && inputs.includes(target)) within.set(output, inputs.indexOf(target))
  }
  return within
}

/** Nodes as a graph of their own. */
function graphOf(nodes: readonly Node[], inputs: readonly Node[], outputs: readonly Node[]): GraphModule {
  const graph = new Graph()
  const copies = new Map<Node, Node>(inputs.map((node, i) => [node, graph.placeholder(`in${i}`)]))
  const copyOf = (node: Node): Node => known(copies, node, `the copy of ${node.name}`)
  for (const node of nodes) copies.set(node, graph.nodeCopy(node, copyOf))
  graph.output(outputs.map(copyOf))
  return new GraphModule({}, graph, 'Fused')
}

/** What the outputs of the graph need, in an order in which it can run; null if there is none. */
function orderOf(gm: GraphModule, fused: readonly FusedNodes[]): readonly Unit[] | null {
  const ownerOf = new Map(fused.flatMap((unit) => [...unit.computed].map((node): [Node, FusedNodes] => [node, unit])))
  const needed = new Set<Node>(fused.flatMap(({ inputs }) => inputs))
  for (const node of [...gm.graph.nodes].reverse())
    if (node.op === 'output' || (needed.has(node) && !ownerOf.has(node))) for (const input of node.allInputNodes) needed.add(input)
  const units = [...new Set([...gm.graph.nodes].filter((node) => node.op === 'call_function').map((node): Unit => ownerOf.get(node) ?? node))].filter(
    (unit) => isFused(unit) || needed.has(unit),
  )
  const readers = new Map<Unit, Unit[]>()
  const waiting = new Map<Unit, number>()
  for (const unit of units) {
    const sources = new Set(
      (isFused(unit) ? unit.inputs : unit.allInputNodes).filter(({ op }) => op === 'call_function').map((node) => ownerOf.get(node) ?? node),
    )
    waiting.set(unit, sources.size)
    for (const source of sources) readers.set(source, [...(readers.get(source) ?? []), unit])
  }
  const order = units.filter((unit) => waiting.get(unit) === 0)
  // The list grows in the loop.
  for (const unit of order)
    for (const reader of readers.get(unit) ?? []) {
      const left = known(waiting, reader, 'a unit') - 1
      waiting.set(reader, left)
      if (left === 0) order.push(reader)
    }
  return order.length === units.length ? order : null
}
