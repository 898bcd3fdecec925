// A graph that takes sizes as numbers, as a program of steps: a half of a joint graph, whose operators no segment has recorded.
import type { CompiledCode } from '../../aot/index.ts'
import { InternalError } from '../../errors/index.ts'
import { isTensorRecord, recordedValue } from '../../fx/graph/nodeValue.ts'
import type { TensorRecord } from '../../fx/graph/nodeValue.ts'
import { Graph, GraphModule, Node, mapArg, operator } from '../../fx/index.ts'
import { isDType } from '../../kernels/index.ts'
import { opOf } from '../../ops/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { FuseForSizes } from '../backends/backend.ts'
import { stepProgram } from '../run/stepProgram.ts'
import type { SizedLayout } from '../tree/sizes.ts'
import { anySize } from '../tree/marks.ts'
import { Step } from '../tree/traceTree.ts'
import type { ArgStep } from '../tree/traceTree.ts'
import { fusingOf } from './fuseGraph.ts'

const isConstant = (value: unknown): value is number | boolean | string => ['number', 'boolean', 'string'].includes(typeof value)

/** The steps of a graph. */
class GraphSteps {
  end = Step.root()
  readonly nodes = new Map<number, Node>()
  readonly #slots = new Map<Node, number>()
  /** The slot of the first result of a node that has several. */
  readonly #firsts = new Map<Node, number>()
  readonly #hintOf: (size: number) => number
  #next = 0

  constructor(hintOf: (size: number) => number) {
    this.#hintOf = hintOf
  }

  placeholder(node: Node): number {
    return this.#set(node, this.#next++)
  }

  slotOf(node: Node): number {
    return this.#slots.get(node) ?? -1
  }

  #set(node: Node, slot: number): number {
    this.#slots.set(node, slot)
    this.nodes.set(slot, node)
    return slot
  }

  /** Adds a call. Returns false if it calls no operator, or if nothing is known of its results. */
  add(node: Node): boolean {
    const [source, index] = node.args
    const first = source instanceof Node ? this.#firsts.get(source) : undefined
    if (node.target === operator.getitem && first !== undefined && typeof index === 'number') {
      this.#set(node, first + index)
      return true
    }
    const op = node.op === 'call_function' ? opOf(node.target) : undefined
    const value = recordedValue(node)
    const records: readonly unknown[] = Array.isArray(value) ? value : [value]
    if (op === undefined || !records.every(isTensorRecord)) return false
    const firstSlot = this.#next
    const single = !Array.isArray(value)
    this.end = new Step(this.end, {
      op,
      args: op.schema.args.map(({ name, default: otherwise, type }, i) =>
        this.#argument(node.args[i] ?? node.kwargs[name] ?? otherwise ?? null, type.isSize),
      ),
      results: records.map((record) => this.#fake(record)),
      single,
      firstSlot,
      stack: null,
      recording: false,
      sourceOffset: 0,
      isSized: true,
    })
    this.#next = this.end.nextSlot
    if (single) this.#set(node, firstSlot)
    else this.#firsts.set(node, firstSlot)
    return true
  }

  #argument(arg: unknown, isSize: boolean): ArgStep {
    if (arg instanceof Node) {
      const slot = this.slotOf(arg)
      return isTensorRecord(recordedValue(arg)) ? { kind: 'slot', slot } : { kind: 'scalar', slot, number: isSize ? 'size' : 'any' }
    }
    if (!Array.isArray(arg)) {
      if (arg !== null && !isConstant(arg)) throw new InternalError(`a graph with sizes has the constant ${String(arg)}`)
      return { kind: 'const', value: arg }
    }
    const items = arg.map((item) => this.#argument(item, isSize))
    const constants = items.flatMap((item) => (item.kind === 'const' ? [item.value] : []))
    return constants.length === items.length ? { kind: 'const', value: constants } : { kind: 'list', items }
  }

  #fake({ shape, dtype }: TensorRecord): Tensor {
    return Tensor.fake({ shape: shape.map(this.#hintOf), dtype: isDType(dtype) ? dtype : 'float32' })
  }
}

/** Where a call takes a number: which arguments, and whether as sizes. */
function usesOf(number: Node, user: Node): readonly { readonly name: string; readonly position: number; readonly isSize: boolean }[] {
  const op = opOf(user.target)
  const reads = (arg: unknown): boolean => arg === number || (Array.isArray(arg) && arg.some(reads))
  return (op?.schema.args ?? []).flatMap(({ name, type }, position) =>
    reads(user.args[position] ?? user.kwargs[name]) ? [{ name, position, isSize: type.isSize }] : [],
  )
}

/** A graph that computes something, and its placeholders with those of the given graph that they stand for. */
interface Computing {
  readonly gm: GraphModule
  readonly inputs: readonly { readonly node: Node; readonly of: Node; readonly isSize: boolean }[]
}

/** The graph with these outputs only, and each number among its inputs as one that is a size wherever it is used, or nowhere. */
function computing(gm: GraphModule, returned: readonly Node[]): Computing {
  const graph = new Graph()
  const copies = new Map<Node, Node>()
  const copyOf = (node: Node): Node => copies.get(node) ?? node
  for (const node of gm.graph.nodes) if (node.op !== 'output') copies.set(node, graph.nodeCopy(node, copyOf))
  graph.output(returned.map(copyOf))
  const inputs = gm.graph.findNodes({ op: 'placeholder' }).flatMap((of): Computing['inputs'] => {
    const node = copyOf(of)
    if (isTensorRecord(recordedValue(of))) return [{ node, of, isSize: false }]
    const uses = [...node.users.keys()].flatMap((user) => usesOf(node, user).map((use) => ({ ...use, user })))
    const others = uses.filter(({ isSize }) => !isSize)
    if (others.length === 0 || others.length === uses.length) return [{ node, of, isSize: uses.length > others.length }]
    const other = graph.insertingAfter(node, () => graph.placeholder(`${node.name}_value`))
    for (const { user, name, position } of others)
      if (position < user.args.length)
        user.updateArg(
          position,
          mapArg(user.args[position] ?? null, (arg) => (arg === node ? other : arg)),
        )
      else
        user.updateKwarg(
          name,
          mapArg(user.kwargs[name] ?? null, (arg) => (arg === node ? other : arg)),
        )
    return [
      { node, of, isSize: true },
      { node: other, of, isSize: false },
    ]
  })
  return { gm: new GraphModule({}, graph, gm.className), inputs }
}

/** What runs a graph for any sizes, on eager kernels and on those for any sizes that `fuse` finds; null for a graph with anything but calls of operators. `hintOf`: what a size was in the call for which the graph was made. */
export function graphProgram(gm: GraphModule, fuse: FuseForSizes | null, hintOf: (size: number) => number): CompiledCode | null {
  const [returned] = gm.graph.outputNode().args
  if (!Array.isArray(returned)) return null
  const wanted: readonly unknown[] = returned
  const computed = [...new Set(wanted.filter((value): value is Node => value instanceof Node && value.op !== 'placeholder'))]
  const { gm: own, inputs } = computing(gm, computed)
  const steps = new GraphSteps(hintOf)
  for (const { node } of inputs) steps.placeholder(node)
  for (const node of own.graph.nodes) if (node.op !== 'placeholder' && node.op !== 'output' && !steps.add(node)) return null
  const [results] = own.graph.outputNode().args
  const outputs = (Array.isArray(results) ? results : []).map((node) => (node instanceof Node ? steps.slotOf(node) : -1))
  const placeholders: readonly Node[] = gm.graph.findNodes({ op: 'placeholder' })
  const { end, nodes } = steps
  const inputSlots = inputs.map(({ node }) => steps.slotOf(node))
  const fusing = fuse === null ? null : fusingOf({ gm: own, nodes, inputSlots, end, outputs }, fuse)
  const program = stepProgram(end, { inputSlots, outputs }, fusing, inputs.map(sizedInput))
  const from = inputs.map(({ of }) => placeholders.indexOf(of))
  // What is returned of the inputs, or is null, is in no program.
  const places = wanted.map((value) => {
    if (!(value instanceof Node)) return () => null
    const [input, result] = [placeholders.indexOf(value), computed.indexOf(value)]
    return (given: readonly unknown[], made: readonly unknown[]): unknown => (input >= 0 ? given[input] : made[result])
  })
  return (...given) => {
    const made = outputs.length === 0 ? [] : program(...from.map((position) => given[position]))
    return places.map((place) => place(given, made))
  }
}

/** All that can be known of an input's layout: where rows of launches are kept, nothing is taken for granted. */
function sizedInput({ node, isSize }: Computing['inputs'][number]): SizedLayout | 'size' | null {
  const value = recordedValue(node)
  if (isTensorRecord(value)) return { dims: value.shape.map(() => anySize), isStrided: true }
  return isSize ? 'size' : null
}
