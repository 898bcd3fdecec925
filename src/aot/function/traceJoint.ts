// The joint graph of a function: it runs on fake tensors, and what autograd recorded is differentiated into the same graph.
import { AutogradError, gradBetween, nodesBehind, upcomingSeq } from '../../autograd/index.ts'
import type { Edge } from '../../autograd/index.ts'
import { fakeLike, withMode } from '../../dispatch/index.ts'
import { ArgumentError, UnsupportedError, present } from '../../errors/index.ts'
import type { Node } from '../../fx/index.ts'
import { checkArray, checkCallable, valueText } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { JointGraph } from '../joint/jointGraph.ts'
import type { Memory } from '../trace/aliases.ts'
import { withoutDrawing } from '../trace/draws.ts'
import { ProxyTensorMode } from '../trace/proxyMode.ts'
import { originOf } from './effects.ts'
import type { Effects } from './effects.ts'
import { standIn } from './standIns.ts'
import { traceBackward } from './traceBackward.ts'
import type { Backward } from './traceBackward.ts'

interface TraceOptions {
  readonly names?: readonly string[]
  readonly heads?: readonly number[]
  readonly effects?: Effects
}

/**
 * The joint graph of a function of tensors, which runs it on fake tensors and differentiates what autograd recorded. `heads`: the outputs to differentiate;
 * default all that require grad. What the function wrote to its inputs becomes further outputs, which `writeBacks` lists. Throws ArgumentError if it returns no array of tensors.
 */
export function traceJoint(fn: TensorsFunction, inputs: readonly Tensor[], options: TraceOptions = {}): JointGraph {
  checkCallable('traceJoint', 'fn', fn)
  checkArray('traceJoint', 'inputs', inputs)
  return new JointTrace(inputs, options).run(fn)
}

type TensorsFunction = (...fakes: readonly Tensor[]) => readonly Tensor[]

/** The outputs of a joint graph and those of them that are differentiated: positions among the outputs, and the tensors themselves. */
interface Outputs {
  readonly nodes: Node[]
  readonly heads: number[]
  readonly roots: Tensor[]
}

/** A tensor from outside, as the function met it, which is an input of the graph. */
interface Constant {
  readonly tensor: Tensor
  readonly before: Tensor
}

/** What a joint graph says of its gradients. */
type Gradients = Backward & Required<Pick<JointGraph, 'gradInputs' | 'sharing' | 'failures'>>

/** One trace of a function. */
class JointTrace {
  readonly #mode = new ProxyTensorMode({ drawsAsInputs: true, constantsAsInputs: true })
  readonly #inputs: readonly Tensor[]
  readonly #options: TraceOptions
  readonly #placeholders: Node[] = []
  /** The inputs of the graph, which are its leaves. */
  readonly #leaves: readonly Tensor[]
  /** What the function gets for them, with their memories and origins when it begins. */
  readonly #given: readonly Tensor[]
  readonly #memories: readonly Memory[]
  readonly #origins: readonly Edge[]
  readonly #firstSeq: number

  constructor(inputs: readonly Tensor[], options: TraceOptions) {
    this.#inputs = inputs
    this.#options = options
    const mode = this.#mode
    this.#leaves = inputs.map((input, i) => {
      const { shape, dtype, strides, device } = fakeLike(input)
      const leaf = Tensor.fake({ shape, dtype, strides, device })
      leaf.requiresGrad = input.requiresGrad
      this.#placeholders.push(mode.placeholder(options.names?.[i] ?? `primals_${i + 1}`, leaf))
      return leaf
    })
    const { effects } = options
    this.#given = effects === undefined ? this.#leaves : this.#leaves.map((leaf, i) => standIn(present(inputs[i], 'an input'), leaf, mode))
    this.#memories = this.#given.map((tensor) => mode.memoryOf(tensor))
    this.#origins = this.#given.map(originOf)
    this.#firstSeq = upcomingSeq()
  }

  run(fn: TensorsFunction): JointGraph {
    const mode = this.#mode
    try {
      return withoutDrawing(
        () => this.#trace(fn),
        () => mode.drawCount,
      )
    } finally {
      mode.restoreHistories()
    }
  }

  #trace(fn: TensorsFunction): JointGraph {
    const outputs = this.#outputsOf(fn)
    const constants = [...this.#mode.constants.values()].map((tensor): Constant => ({ tensor, before: this.#mode.beforeTrace(tensor) }))
    const writeBacks = this.#writeBacks(outputs, constants)
    // What the function froze was a leaf before.
    for (const [i, leaf] of this.#leaves.entries()) if (this.#inputs[i]?.requiresGrad === true) leaf.requiresGrad = true
    const backward = this.#differentiate(outputs, constants)
    const { graph, drawInputs, drawCount: draws } = this.#mode
    const captured = [...this.#mode.constants.keys()].map((name) =>
      present(graph.findNodes({ op: 'placeholder', target: name })[0], `the input ${name}`),
    )
    return {
      ...backward,
      graph,
      inputs: [...this.#placeholders, ...captured, ...drawInputs],
      outputs: outputs.nodes,
      heads: outputs.heads,
      writeBacks,
      mayBeOverwritten: true,
      draws,
      // What only the backward draws or takes from outside comes in with the rest.
      forwardNodes: new Set([...backward.forwardNodes, ...captured, ...drawInputs]),
      constants: constants.map(({ tensor }) => tensor),
      relaysInputs: this.#options.effects?.relaysArguments ?? false,
    }
  }

  /** Runs the function. Its outputs, and those of them to be differentiated. */
  #outputsOf(fn: TensorsFunction): Outputs {
    const mode = this.#mode
    const { effects, heads: wanted } = this.#options
    effects?.enter(mode)
    const returned = withMode(mode, () => fn(...this.#given))
    if (!Array.isArray(returned)) throw new ArgumentError(`traceJoint: fn must return an array of tensors, got ${valueText(returned)}.`)
    const results = effects?.end(returned, () => this.#memoriesNow()) ?? returned
    mode.joinResults(results)
    const isHead = (result: Tensor, i: number): boolean =>
      result.requiresGrad && (effects === undefined || result.gradFn !== null) && (wanted?.includes(i) ?? true)
    return {
      nodes: results.map((result) => mode.nodeOf(result)),
      heads: [...results.keys()].filter((i) => results[i] !== undefined && isHead(results[i], i)),
      roots: results.filter(isHead),
    }
  }

  /** The memories of the inputs and of the tensors from outside that the function has met so far. */
  #memoriesNow(): readonly Memory[] {
    return [...this.#memories, ...[...this.#mode.constants.values()].map((constant) => this.#mode.memoryOf(constant))]
  }

  /** Adds to the outputs what the function wrote to its inputs; which input each of them belongs to, by its position. */
  #writeBacks({ nodes, heads, roots }: Outputs, constants: readonly Constant[]): ReadonlyMap<number, number> {
    const mode = this.#mode
    const origins = [...this.#origins, ...constants.map(({ before }) => originOf(before))]
    const writeBacks = new Map<number, number>()
    for (const [i, memory] of this.#memoriesNow().entries()) {
      const constant = constants[i - this.#leaves.length]
      // What the function makes is made anew at each call.
      if (memory.version === 0 || (constant !== undefined && mode.isOwn(constant.tensor))) continue
      const root = mode.rootOf(memory)
      const position = nodes.push(mode.nodeOf(root)) - 1
      writeBacks.set(position, i)
      // A write that was recorded gives the input a history.
      if (root.gradFn === null || originOf(root) === origins[i]) continue
      heads.push(position)
      roots.push(root)
    }
    return writeBacks
  }

  /** The gradient half: which inputs get gradients, which heads share nodes of the tape, and the error of each head whose gradients are impossible. */
  #differentiate({ roots }: Outputs, constants: readonly Constant[]): Gradients {
    // A gradient ends at an outer tensor that is not a leaf; from there it goes on at run time.
    const sources = [...this.#leaves, ...constants.map(({ before }) => before)]
    const gradInputs = [...sources.keys()].filter(
      (i) => sources[i]?.requiresGrad === true && (i >= this.#leaves.length || sources[i].gradFn === null),
    )
    const wanted = gradInputs.map((i) => present(sources[i], 'an input'))
    const sharing = sharedNodes(roots, this.#firstSeq)
    const versions = this.#memoriesNow().map(({ version }) => version)
    const { failures, ...backward } = traceWithFailures(this.#mode, roots, wanted)
    const writes = this.#memoriesNow().some(({ version }, i) => version !== (versions[i] ?? 0))
    const writing = writes
      ? new UnsupportedError('a backward writes to an input of the function, which a graph cannot do. Write to a clone() of what you have saved.')
      : null
    return { ...backward, gradInputs, sharing, failures: failures.map((failure) => failure ?? writing) }
  }
}

/** See {@link JointGraph.sharing}. Nodes before `firstSeq` are not the function's. */
function sharedNodes(roots: readonly Tensor[], firstSeq: number): readonly bigint[] {
  const behind = roots.map((root) => new Set(nodesBehind([root]).filter(({ seq }) => seq >= firstSeq)))
  const meet = (a: number, b: number): boolean => a === b || [...(behind[a] ?? [])].some((node) => behind[b]?.has(node))
  return roots.map((_, a) => roots.reduce((bits, _, b) => (meet(a, b) ? bits | (1n << BigInt(b)) : bits), 0n))
}

/**
 * The gradient half. If the gradients of a head are impossible, that is the business of a backward that starts from it, and neither of the forward nor of other heads: as in eager mode, where a
 * backward meets only what its results lead to.
 */
function traceWithFailures(
  mode: ProxyTensorMode,
  roots: readonly Tensor[],
  leaves: readonly Tensor[],
): Backward & { readonly failures: readonly (Error | null)[] } {
  const failures = roots.map((): Error | null => null)
  const backward = traceBackward(mode, roots, (tangents, heads) => {
    const of = (chosen: readonly number[]): readonly (Tensor | null)[] => {
      const pick = (tensors: readonly Tensor[]): Tensor[] => chosen.map((i) => present(tensors[i], 'a head'))
      return gradBetween(pick(heads), leaves, pick(tangents))
    }
    const all = [...heads.keys()]
    try {
      return of(all)
    } catch (error) {
      if (!isImpossible(error)) throw error
    }
    for (const i of all) {
      try {
        of([i])
      } catch (error) {
        if (!isImpossible(error)) throw error
        failures[i] = error
      }
    }
    const possible = all.filter((i) => failures[i] === null)
    return possible.length === 0 ? leaves.map(() => null) : of(possible)
  })
  return { ...backward, failures }
}

const isImpossible = (error: unknown): error is Error => error instanceof AutogradError || error instanceof UnsupportedError
