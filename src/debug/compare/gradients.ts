// Gradients of a graph on several backends: the joint graph of forward and backward, its two halves as compile would give them to a backend, and the gradients by name.
import { drawNumbers, forgetDraw } from '../../aot/trace/draws.ts'
import { backwardModule, forwardModule, jointModule } from '../../aot/joint/jointParts.ts'
import { minCutPartition, traceJoint } from '../../aot/index.ts'
import type { JointGraph } from '../../aot/index.ts'
import { tensorSpec } from '../../aot/meta/valueSpec.ts'
import { ArgumentError, UnsupportedError, present } from '../../errors/index.ts'
import { GraphModule } from '../../fx/index.ts'
import type { Node } from '../../fx/index.ts'
import type { DType } from '../../kernels/index.ts'
import { randn } from '../../ops/index.ts'
import { isObject } from '../../protocol/index.ts'
import { treeFlatten, treeUnflatten } from '../../pytree/index.ts'
import { Generator, Tensor } from '../../tensor/index.ts'
import { describe } from '../common/describeError.ts'
import { isolated } from '../runs/isolated.ts'
import { tensorsOf } from '../runs/observe.ts'
import type { Candidate, Prepared } from './backends.ts'
import { tensorsIn } from './float64.ts'
import { statusOf } from './culprit.ts'
import type { Culprit, Status } from './culprit.ts'
import { measure, RIGHT } from './measure.ts'
import type { Measured } from './measure.ts'
import type { Task } from './reference.ts'
import { repeated, Trial, verdictOf } from './trial.ts'

/** A gradient in a comparison: the one that a program would get from a backend, whose backward reads what its own forward has saved. */
export interface GradientRow {
  /** The path of a parameter (`0.weight`), or `input 0`. */
  readonly name: string
  /** What computes it, in the graph of the comparison. */
  readonly node: Node
  readonly dtype: DType
  readonly shape: readonly number[]
  /** By backend: its error, and what is wrong with it. */
  readonly measured: Map<string, Measured>
  /** By backend. */
  readonly statuses: Map<string, Status>
}

/** One half of a joint graph. */
interface Half {
  readonly gm: GraphModule
  /** What it gets, by the values of the joint graph's nodes. */
  readonly inputs: (values: ReadonlyMap<string, unknown>) => readonly unknown[]
}

/** A graph with its gradients. */
export interface Joint {
  /** Forward and backward in one graph. It returns the results and then the gradients. */
  readonly gm: GraphModule
  /** One per placeholder. */
  readonly inputs: readonly unknown[]
  /** The placeholders that stand for tensors that were given. */
  readonly given: ReadonlySet<string>
  /** Each gradient, and its position among the tensors that the graph returns. */
  readonly gradients: readonly { readonly name: string; readonly node: string; readonly position: number }[]
  readonly forward: Half
  readonly backward: Half
  /** The names of the placeholders whose values the backward gets from the forward's tensors, by their position among these; others are inputs. */
  readonly saved: ReadonlyMap<string, number>
  /** How many tensors the forward returns for the program. */
  readonly results: number
  readonly isRandom: boolean
  readonly halfOf: (node: Node) => Pick<Culprit, 'half' | 'forward'>
}

const nothingToDo = (): ArgumentError =>
  new ArgumentError(
    'compareBackends: with options.gradients an input or a parameter must require grad, and a result must depend on it; here is none: set requiresGrad, or leave the option out.',
  )

/** The seed of the gradients that a backward starts from. */
const TANGENTS = 20_13

/**
 * The joint graph of a graph. Parameters and other tensors that it reads become inputs, random draws too. Throws ArgumentError if there is nothing to differentiate, UnsupportedError for
 * writes to inputs that share memory, and what the graph throws if it cannot be differentiated.
 */
export function jointOf(gm: GraphModule, inputs: readonly unknown[]): Joint {
  const own = isolated(gm, inputs)
  const { leaves, spec } = treeFlatten(own.inputs)
  const tensors = [...new Set(leaves.filter((leaf) => leaf instanceof Tensor))]
  const forward = (...fakes: readonly Tensor[]): readonly Tensor[] => {
    const filled = leaves.map((leaf) => (leaf instanceof Tensor ? fakes[tensors.indexOf(leaf)] : leaf))
    const args = treeUnflatten(filled, spec)
    return tensorsIn(own.model.call(...(Array.isArray(args) ? args : [])))
  }
  const joint = traceJoint(forward, tensors, { names: namesOf(own.model, own.inputs, tensors) })
  for (const failure of joint.failures ?? []) if (failure !== null) throw failure
  if (joint.heads.length === 0 || joint.grads.every((node) => node === null)) throw nothingToDo()
  const memory = tensors.map(({ storage }) => storage)
  for (const i of joint.writeBacks.values())
    if (memory.some((storage, k) => k !== i && storage === memory[i]))
      throw new UnsupportedError(
        'compareBackends: gradients of a graph that writes to an input which shares memory with another one; clone one of them.',
      )
  return withValues(joint, own, tensors, gm.className)
}

/** Names for the placeholders of the tensors. */
function namesOf(gm: GraphModule, inputs: readonly unknown[], tensors: readonly Tensor[]): readonly string[] {
  const placeholders = gm.graph.findNodes({ op: 'placeholder' }).map((node) => node.name)
  return tensors.map((tensor, i) => placeholders[inputs.indexOf(tensor)] ?? `input_${i}`)
}

function withValues(
  joint: JointGraph,
  own: { readonly model: GraphModule; readonly inputs: readonly unknown[] },
  tensors: readonly Tensor[],
  className: string,
): Joint {
  const { constants = [], draws = 0, tangents, outputs, grads, gradInputs, forwardNodes } = joint
  const generator = new Generator(TANGENTS)
  const starts = tangents.map((node) => {
    const known = tensorSpec(node)
    if (known === null) throw nothingToDo()
    return randn(known.shape, { generator }).to(known.dtype)
  })
  const given = [...tensors, ...constants, ...drawNumbers(draws)]
  forgetDraw()
  const values = new Map<string, unknown>([...joint.inputs, ...tangents].map((node, i) => [node.name, [...given, ...starts][i]]))
  const saved = minCutPartition(joint)
  const half = (made: GraphModule): Half => ({
    gm: made,
    inputs: (known) => made.graph.findNodes({ op: 'placeholder' }).map(({ name }) => known.get(name)),
  })
  const [front, back] = [forwardModule(joint, saved, `${className}_forward`), backwardModule(joint, saved, `${className}_backward`)]
  // The comparison looks at what the forward returns, and writes nothing back.
  delete front.meta['writeBacks']
  const tensorsBefore = (nodes: readonly Node[]): number => nodes.filter((node) => isTensor(node)).length
  const positions = new Map(
    saved.flatMap((node, i) => (values.has(node.name) ? [] : [[node.name, tensorsBefore([...outputs, ...saved.slice(0, i)])]])),
  )
  const halves = new Map([...joint.graph.nodes].map((node) => [node.name, halfIn(joint, node)]))
  const whole = jointModule(joint, className)
  const names = gradientNames(own, [...tensors, ...constants])
  let position = tensorsBefore(outputs)
  return {
    gm: whole,
    inputs: whole.graph.findNodes({ op: 'placeholder' }).map(({ name }) => values.get(name)),
    given: new Set(joint.inputs.slice(0, tensors.length).map(({ name }) => name)),
    gradients: gradInputs.flatMap((input, i) => {
      const node = grads[i] ?? null
      return node === null ? [] : [{ name: names(input), node: node.name, position: position++ }]
    }),
    forward: half(front),
    backward: half(back),
    saved: positions,
    results: tensorsBefore(outputs),
    isRandom: draws > 0,
    halfOf: ({ name }) => halves.get(name) ?? { half: forwardNodes.size > 0 ? 'forward' : 'backward', forward: null },
  }
}

const isTensor = (node: Node): boolean => tensorSpec(node) !== null

/** Which half a node is in, and of which node it computes the derivative: that of the next value which is known to be one. */
function halfIn({ forwardNodes }: JointGraph, node: Node): Pick<Culprit, 'half' | 'forward'> {
  if (forwardNodes.has(node)) return { half: 'forward', forward: null }
  const seen = new Set([node])
  for (const next of seen) {
    const known = next.meta['gradient']
    if (isObject(known) && 'of' in known && typeof known.of === 'string') return { half: 'backward', forward: known.of }
    for (const user of next.users.keys()) seen.add(user)
  }
  return { half: 'backward', forward: null }
}

function gradientNames(own: { readonly model: GraphModule; readonly inputs: readonly unknown[] }, given: readonly Tensor[]): (i: number) => string {
  const names = new Map<unknown, string>([...tensorsOf(own.model).parameters].map(([name, tensor]) => [tensor, name]))
  for (const [i, input] of own.inputs.entries())
    treeFlatten(input).leaves.forEach((leaf, k) => names.set(leaf, leaf === input ? `input ${i}` : `input ${i}[${k}]`))
  return (i) => names.get(given[i]) ?? `tensor ${i}`
}

/** The rows of the gradients. */
export const gradientRows = ({ gm, gradients }: Joint): readonly GradientRow[] => {
  const nodes = new Map([...gm.graph.nodes].map((node) => [node.name, node]))
  return gradients.map(({ name, node: at }) => {
    const node = present(nodes.get(at), `the node ${at}`)
    const { dtype, shape } = present(tensorSpec(node), `the spec of ${at}`)
    return { name, node, dtype, shape, measured: new Map(), statuses: new Map() }
  })
}

/** Runs the halves one after the other: the backward gets what the backend's own forward has saved. The backend compiles each by itself. */
function composed(joint: Joint, forward: Prepared, backward: Prepared): Prepared {
  const names = joint.gm.graph.findNodes({ op: 'placeholder' }).map(({ name }) => name)
  return {
    held: new Map(),
    async run(inputs) {
      const values = new Map<string, unknown>(names.map((name, i) => [name, inputs[i]]))
      const { outputs } = await forward.run(joint.forward.inputs(values))
      for (const [name, position] of joint.saved) values.set(name, outputs[position])
      const gradients = await backward.run(joint.backward.inputs(values))
      return { outputs: [...outputs.slice(0, joint.results), ...gradients.outputs], given: [] }
    },
  }
}

/** How often forward and backward run together. */
const RUNS = 3

/** What a backend makes of forward and backward together: results and gradients. The gradients are noted in their rows. `values` are those of the joint graph's nodes. */
export async function composition(
  one: Candidate,
  joint: Joint,
  rows: readonly GradientRow[],
  task: Task,
  values: ReadonlyMap<string, unknown>,
  tol: number,
): Promise<Measured> {
  const runs = joint.gradients.map((): Measured[] => [])
  let overall: Measured
  try {
    overall = await one.with(joint.forward.gm, joint.forward.inputs(values), (forward) =>
      one.with(joint.backward.gm, joint.backward.inputs(values), async (backward) => {
        const trial = new Trial(composed(joint, forward, backward), task, tol)
        const judge = (got: readonly Tensor[]): Measured => {
          for (const [i, { position }] of joint.gradients.entries()) runs[i]?.push(measuredAt(task, got, position, tol))
          return measure(task, got, tol)
        }
        return repeated(async () => (await trial.run(judge)).measured, RUNS)
      }),
    )
  } catch (thrown) {
    overall = { ...RIGHT, status: 'failed', error: NaN, reason: describe(thrown), rate: 1, thrown }
  }
  for (const [i, row] of rows.entries()) note(row, one.name, overall.status === 'failed' ? overall : verdictOf(runs[i] ?? []))
  return overall
}

/** Notes what a gradient is; of several sets of inputs the worst is kept. */
export function note({ measured, statuses }: GradientRow, backend: string, found: Measured): void {
  const known = measured.get(backend)
  if (known !== undefined && (known.status !== 'ok' || (found.status === 'ok' && found.error <= known.error))) return
  measured.set(backend, found)
  statuses.set(backend, statusOf(found))
}

/** One of the results. */
function measuredAt(task: Task, got: readonly Tensor[], position: number, tol: number): Measured {
  const [value, want, like] = [got[position], task.want[position], task.like[position]]
  if (want === undefined || like === undefined) return RIGHT
  const runs = (): readonly (readonly Tensor[])[] => (task.runs?.() ?? []).map((results) => results.slice(position, position + 1))
  return measure({ want: [want], like: [like], runs }, value === undefined ? [] : [value], tol)
}
