// The reference: a graph node by node, each node in float64 on inputs that were rounded to the dtypes of the graph. What a node gives is then wrong only by its
// own rounding, so a backend that is fed the same inputs can be judged node by node.
import { noGrad, versionOf } from '../../autograd/index.ts'
import { isCall } from '../../fx/passes/nodes/calls.ts'
import { Graph, GraphModule, Interpreter, operator } from '../../fx/index.ts'
import type { Argument, Node } from '../../fx/index.ts'
import { clone, opOf, to } from '../../ops/index.ts'
import { treeMap } from '../../pytree/index.ts'
import { getRngState, setRngState, Tensor } from '../../tensor/index.ts'
import type { GeneratorState } from '../../tensor/index.ts'
import { isolatedInputs } from '../runs/isolated.ts'
import { inFloat64, tensorsIn } from './float64.ts'
import { heldBy, sameValues } from './moduleTensors.ts'
import type { Held } from './moduleTensors.ts'
import type { Expected } from './measure.ts'
import { alternativesOf, movedRuns, noiseOfNode, slackOf } from './noise.ts'
import type { Computed } from './noise.ts'

/** What results are compared with: the graph in float64, or the graph as it is, on eager kernels. */
export type ReferenceKind = 'float64' | 'eager'

/** What a graph is to compute, and the state of the program that it starts from. */
export interface Task extends Expected {
  readonly gm: GraphModule
  readonly inputs: readonly unknown[]
  /** The state of the random generator before the run. */
  readonly state: GeneratorState
  /** What it changes of the tensors that its module holds, by name: the values after one run, such as the statistics of BatchNorm. */
  readonly heldAfter: Held
  /** What it changes of the tensors among its inputs, by position: the values after one run. */
  readonly inputsAfter: ReadonlyMap<number, Tensor>
  /** Whether it draws random numbers. */
  readonly isRandom: boolean
}

/** One node as a graph of its own, with inputs and the results that it should give. */
export interface Step extends Task, Computed {
  readonly node: Node
  readonly inputs: readonly Tensor[]
  /** The results of eager kernels, in the dtypes of the graph. */
  readonly like: readonly [Tensor, ...Tensor[]]
}

const once = <T>(compute: () => T): (() => T) => {
  let known: { readonly value: T } | null = null
  return () => (known ??= { value: compute() }).value
}

/** Runs `fn`, and puts the random generator back to where it was. */
export function keepingDraws<T>(fn: () => T): T {
  const state = getRngState()
  try {
    return fn()
  } finally {
    setRngState(state)
  }
}

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
  noGrad(() => run.run(...isolatedInputs(inputs)))
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
    const { native, step } = stepOf(this.module, node, this.env, this.#kind)
    if (step === null) return native
    this.steps.push(step)
    let i = 0
    return treeMap(native, (leaf) => (leaf instanceof Tensor ? rounded(step.want[i++] ?? leaf, leaf) : leaf))
  }
}

const versionIn = (value: unknown): number => (value instanceof Tensor ? versionOf(value) : 0)

const rounded = (wide: Tensor, like: Tensor): Tensor => (wide.dtype === like.dtype ? wide : to(wide, like.dtype))

/** What a node should give on the values of `env`, from the state that the random generator has, or from `state`. Its step is null if it gives no tensor. */
export function stepOf(
  module: GraphModule,
  node: Node,
  env: ReadonlyMap<Node, unknown>,
  kind: ReferenceKind,
  state: GeneratorState = getRngState(),
): { readonly native: unknown; readonly step: Step | null } {
  const alone = partOf(module, node, env)
  const { inputs } = alone
  // A layer may keep statistics: the step is what it does from the ones that it has now.
  const own = alone.part.deepCopy()
  const given = isolatedInputs(inputs)
  const versions = given.map(versionIn)
  const held = heldBy(alone.part)
  const heldBefore = heldBy(own)
  setRngState(state)
  const native = noGrad(() => new Interpreter(alone.part).run(...given))
  const after = getRngState()
  // A node that writes to its argument writes to a copy: not all backends can write to an input.
  const writes = given.some((value, i) => versionIn(value) !== versions[i])
  const gm = writes ? partOf(module, node, env, { copies: true }).part : own
  const [first, ...others] = tensorsIn(native)
  if (first === undefined) return { native, step: null }
  const like: Step['like'] = [first, ...others]
  const isRandom = after.offset !== state.offset || after.seed !== state.seed
  // Random numbers in float64 are other numbers.
  const want = !isRandom && kind === 'float64' ? noGrad(() => inFloat64(gm, inputs)) : like
  const heldAfter = new Map(
    [...held].filter(([name, tensor]) => !sameValues(tensor, heldBefore.get(name))).map(([name, tensor]) => [name, noGrad(() => clone(tensor))]),
  )
  // Random numbers are drawn, and not rounded.
  const noise = once(() => (isRandom ? like.map(({ numel }) => new Float64Array(numel)) : keepingDraws(() => noiseOfNode(gm, inputs, want, like))))
  const slack = once(() => slackOf(noise()))
  const alternatives = once(() => (isRandom ? [] : keepingDraws(() => alternativesOf(gm, inputs))))
  return { native, step: { node, gm, inputs, want, like, noise, slack, alternatives, state, heldAfter, inputsAfter: new Map(), isRandom } }
}

/** What a whole graph should give. It is run on copies; a graph that writes to its inputs must have been made functional, up to the copies back at its end. */
export function taskOf(
  gm: GraphModule,
  inputs: readonly unknown[],
  kind: ReferenceKind,
  state: GeneratorState = getRngState(),
): Task & { readonly run: ReferenceRun } {
  return keepingDraws(() => {
    const own = gm.deepCopy()
    const run = new ReferenceRun(own, kind)
    setRngState(state)
    const want = tensorsIn(run.walk(isolatedInputs(inputs)))
    const native = gm.deepCopy()
    const copies = isolatedInputs(inputs)
    const given = tensorsIn(copies)
    setRngState(state)
    const like = noGrad(() => tensorsIn(new Interpreter(native).run(...copies)))
    const before = tensorsIn(inputs)
    const inputsAfter = new Map([...given.entries()].filter(([i, tensor]) => !sameValues(tensor, before[i])))
    const heldAfter = new Map([...heldBy(native)].filter(([name, tensor]) => !sameValues(tensor, heldBy(gm).get(name))))
    const isRandom = run.steps.some((step) => step.isRandom)
    const computed = new Map(run.steps.map((step) => [step.node.name, step]))
    const runs = once(() => keepingDraws(() => movedRuns(gm, inputs, computed, state)))
    return { gm, inputs, want, like, runs, state, heldAfter, inputsAfter, isRandom, run }
  })
}

/** A node as a graph of its own, under its own name. Tensors that it takes become inputs, or with `copies` copies of them; other values are constants. */
export function partOf(
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
