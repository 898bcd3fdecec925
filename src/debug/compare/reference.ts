// The reference: a graph node by node, each node in float64 on inputs that were rounded to the dtypes of the graph. What a node gives is then wrong only by its
// own rounding, so a backend that is fed the same inputs can be judged node by node.
import { noGrad, versionOf } from '../../autograd/index.ts'
import { Graph, GraphModule, Interpreter, operator } from '../../fx/index.ts'
import type { Argument, Node } from '../../fx/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { clone, opOf, to } from '../../ops/index.ts'
import { treeLeaves, treeMap } from '../../pytree/index.ts'
import { getRngState, Tensor } from '../../tensor/index.ts'
import { castToFp64, cloneInput } from '../twoModels.ts'
import { magnitude } from './error.ts'

/** What results are compared with: the graph in float64, or the graph as it is, on eager kernels. */
export type ReferenceKind = 'float64' | 'eager'

/** One node as a graph of its own, with inputs and the results that it should give. */
export interface Step {
  readonly node: Node
  /** The node alone; its inputs are those of `inputs`. */
  readonly part: GraphModule
  readonly inputs: readonly Tensor[]
  /** The results in float64 (integers and bools as they are). */
  readonly want: readonly Tensor[]
  /** The results of eager kernels, in the dtypes of the graph. */
  readonly eager: readonly [Tensor, ...Tensor[]]
  /** The magnitude of the inputs. */
  readonly scale: number
  /** Why it cannot be compared, e.g. because it draws random numbers. */
  readonly skipped: string | null
}

/** The tensors in a value, in the order of `treeLeaves`. */
export const tensorsIn = (value: unknown): readonly Tensor[] => treeLeaves(value).filter((leaf) => leaf instanceof Tensor)

/** Whether a node computes something. */
export const isCall = (node: Node): boolean => node.op === 'call_function' || node.op === 'call_method' || node.op === 'call_module'

/** What a graph writes in place. */
export interface Writes {
  /** The first node that writes to memory which a later node reads by another name, so that nodes cannot be looked at one by one; null if there is none. */
  readonly shared: Node | null
  /** The names of the nodes whose values are written over later, so that they are no outputs. */
  readonly overwritten: ReadonlySet<string>
}

/** Looks for writes in place. (An in-place relu whose argument nothing else reads is not shared.) The graph runs on copies of the module and the inputs. */
export function writesIn(gm: GraphModule, inputs: readonly unknown[]): Writes {
  const copy = gm.deepCopy()
  const run = new Interpreter(copy)
  const order = new Map([...copy.graph.nodes].map((node, i) => [node, i]))
  const holders = new Map<unknown, Node[]>()
  const versions = new Map<Tensor, number>()
  const overwritten = new Set<string>()
  let shared: string | null = null
  const isReadAfter = (holder: Node, writer: Node): boolean =>
    [...holder.users.keys()].some((user) => (order.get(user) ?? 0) > (order.get(writer) ?? 0))
  run.addHook({
    before: (_, args, kwargs) => {
      versions.clear()
      for (const tensor of tensorsIn([args, kwargs])) versions.set(tensor, versionOf(tensor))
    },
    after: (node, value) => {
      for (const [tensor, version] of versions) {
        if (versionOf(tensor) === version) continue
        for (const holder of holders.get(tensor.storage) ?? []) {
          overwritten.add(holder.name)
          if (isReadAfter(holder, node)) shared ??= node.name
        }
      }
      for (const { storage } of tensorsIn(value)) holders.set(storage, [...(holders.get(storage) ?? []), node])
    },
  })
  noGrad(() => run.run(...inputs.map((input) => treeMap(input, cloneInput))))
  return { shared: shared === null ? null : ([...gm.graph.nodes].find((node) => node.name === shared) ?? null), overwritten }
}

/** Runs a graph as the reference. The module is not changed: pass a copy if its layers keep statistics. */
export class ReferenceRun extends Interpreter {
  readonly #kind: ReferenceKind
  readonly steps: Step[] = []

  constructor(gm: GraphModule, kind: ReferenceKind) {
    super(gm)
    this.#kind = kind
  }

  /** All steps, and the values of all nodes in `env`. */
  walk(inputs: readonly unknown[]): unknown {
    return noGrad(() => this.runWith(inputs, { keep: 'all' }))
  }

  override runNode(node: Node): unknown {
    if (!isCall(node)) return super.runNode(node)
    // The copy back to an input or buffer, at the end of a functional graph.
    if (node.op === 'call_function' && opOf(node.target)?.tags.has('mutates') === true) return this.mapNodesToValues(node.args, node)[0]
    // Taking a tensor out of several computes nothing.
    const [list] = this.mapNodesToValues(node.args, node)
    if (node.target === operator.getitem && !(list instanceof Tensor)) return super.runNode(node)
    const alone = isolated(this.module, node, this.env)
    const { inputs } = alone
    const state = getRngState().offset
    const given = inputs.map(cloneInput)
    const versions = given.map(versionIn)
    const native = new Interpreter(alone.part).run(...given)
    // A node that writes to its argument writes to a copy: not all backends can write to an input.
    const writes = given.some((value, i) => versionIn(value) !== versions[i])
    const part = writes ? isolated(this.module, node, this.env, { copies: true }).part : alone.part
    const [first, ...others] = tensorsIn(native)
    if (first === undefined) return native
    const eager: Step['eager'] = [first, ...others]
    const skipped = getRngState().offset === state ? null : 'it draws random numbers'
    const want = skipped === null && this.#kind === 'float64' ? inFloat64(part, inputs) : eager
    this.steps.push({ node, part, inputs, want, eager, scale: magnitude(inputs), skipped })
    let i = 0
    return treeMap(native, (leaf) => (leaf instanceof Tensor ? rounded(want[i++] ?? leaf, leaf) : leaf))
  }
}

const versionIn = (value: unknown): number => (value instanceof Tensor ? versionOf(value) : 0)

const rounded = (wide: Tensor, like: Tensor): Tensor => (wide.dtype === like.dtype ? wide : to(wide, like.dtype))

/** What a part computes in float64. */
export function inFloat64(part: GraphModule, inputs: readonly Tensor[]): readonly Tensor[] {
  if (!inputs.some((input) => dtypeInfo[input.dtype].floating) && part.graph.findNodes({ op: 'call_module' }).length === 0)
    return tensorsIn(new Interpreter(part).run(...inputs.map(cloneInput)))
  const wide = castToFp64(part, inputs)
  return tensorsIn(new Interpreter(wide.gm).run(...wide.inputs))
}

/** A node as a graph of its own, under its own name. Tensors that it takes become inputs, or with `copies` copies of them; other values are constants. */
export function isolated(
  module: GraphModule,
  node: Node,
  env: ReadonlyMap<Node, unknown>,
  { copies = false }: { readonly copies?: boolean } = {},
): { readonly part: GraphModule; readonly inputs: Tensor[] } {
  const graph = new Graph()
  const inputs: Tensor[] = []
  const placeholders = new Map<Tensor, Node>()
  const given = (value: unknown): unknown =>
    treeMap(value, (leaf) => {
      if (!(leaf instanceof Tensor)) return leaf
      const known = placeholders.get(leaf)
      if (known !== undefined) return known
      const placeholder = graph.placeholder(`in_${inputs.push(leaf)}`)
      const taken = copies ? graph.callFunction(clone, [placeholder]) : placeholder
      placeholders.set(leaf, taken)
      return taken
    })
  const copy = graph.nodeCopy(node, (input) => given(env.get(input)) as Argument)
  graph.output(copy)
  return { part: new GraphModule(module, graph), inputs }
}
