// The history of what a compiled graph returned: each call gets a node of the tape, whose backward is the compiled one. The node keeps the values that the forward saved.
import { attachGradNode, AutogradError, FunctionNode, isAsSaved, isGradEnabled, upcomingSeq, walkedBefore } from '../../autograd/index.ts'
import type { AttachOptions } from '../../autograd/index.ts'
import { UnsupportedError } from '../../errors/index.ts'
import type { Graph, GraphModule, Node } from '../../fx/index.ts'
import { clone } from '../../ops/index.ts'
import { Tensor, asTensor, sameShape } from '../../tensor/index.ts'
import type { Storage, TensorSpec } from '../../tensor/index.ts'
import { checkedGradients } from './anomaly.ts'
import type { CompiledCode } from '../meta/compiled.ts'
import type { JointGraph } from '../joint/jointGraph.ts'

/**
 * The tape of one call, behind the heads of its compiled graph: what is asked when a backward starts from some of the heads only, or is itself recorded.
 * `heads` are positions among the heads.
 */
export interface CallTape {
  /** Throws AutogradError if a backward has freed what these heads need. */
  check(heads: readonly number[]): void
  /** Notes that the backward of these heads has freed what it used. Returns whether nothing is left. */
  release(heads: readonly number[]): boolean
  /** Frees the recorded nodes behind these heads, which other tensors may lead to as well. */
  free(heads: readonly number[]): void
  /** Traces the backward of these heads into `graph`, the joint graph. */
  trace(heads: readonly number[], graph: Graph): Pick<JointGraph, 'tangents' | 'grads'>
  /** The gradients of the inputs, operator by operator; recorded if gradients are enabled. */
  differentiate(heads: readonly number[], grads: readonly Tensor[]): readonly (Tensor | null)[]
}

/** The backward of all heads: its graph, and the code. */
export interface WholeBackward {
  readonly graph: GraphModule
  readonly code: CompiledCode
}

/** The backward of some of the heads. It takes every saved value; `needs` says which ones it reads, and `reads` which memory its derivatives do. */
export interface BackwardPart extends WholeBackward {
  readonly needs: readonly boolean[]
  readonly reads: ReadonlySet<Node>
}

/** A tensor of the program that shares the memory of `root`, a node at the start of views. */
export interface Watched {
  readonly tensor: Tensor
  readonly root: Node
}

/** The backward of a compiled pair of graphs, for all calls. */
export interface BackwardCode {
  readonly joint: JointGraph
  /** The code for all heads, compiled when it is first asked for. */
  readonly whole: (args: readonly unknown[]) => WholeBackward
  /** The code for some of the heads. */
  readonly part: (heads: readonly number[], tape: CallTape | null, args: readonly unknown[]) => BackwardPart
}

/** Gives the heads among the `outputs` of a call a history; `kept` are the saved values. */
export function attachBackward(code: BackwardCode, inputs: readonly unknown[], outputs: unknown[], kept: readonly unknown[]): void {
  const { joint } = code
  // Each head gets a tensor object of its own, since a backend may return one object for two outputs, or an input.
  const heads = joint.heads.map((position) => {
    const given = asTensor(outputs[position], 'a differentiable output')
    const head = new Tensor(given.sizes, given.dtype, given.storage, undefined, undefined, given)
    outputs[position] = head
    return head
  })
  const call = new Call(code, heads, kept)
  const wanted = joint.gradInputs.map((i) => asTensor(inputs[i], 'an input that requires grad'))
  attachGradNode(heads, wanted, (grads) => call.backward(grads), call)
}

/** Tells the node of a compiled graph's outputs about the tape of its call, when the outputs have become the program's tensors. */
export function giveTape(gradFn: object, tape: CallTape): void {
  // The node itself leads to the call: V8 collects entries of a WeakMap late, with all that they hold.
  if (gradFn instanceof FunctionNode && gradFn.options instanceof Call) gradFn.options.useTape(tape)
}

/** Tells the node of a compiled graph's outputs which tensors the program may not write to before the backward, though the graph may have saved others. */
export function watchMemory(gradFn: object | null, watched: readonly Watched[]): void {
  if (gradFn instanceof FunctionNode && gradFn.options instanceof Call) gradFn.options.watch(watched)
}

/** One call of the forward: what its backward needs. */
class Call implements AttachOptions {
  readonly name = 'CompiledFunctionBackward'
  readonly #code: BackwardCode
  /** Not the heads themselves: the tape would keep their memory alive. */
  readonly #heads: readonly TensorSpec[]
  #kept: readonly unknown[]
  /** Versions of the kept values, which must not be written to before the backward. */
  readonly #versions: number[] = []
  #notedAt = 0
  /** Memory of the program's tensors, and its versions. Whoever drops a tensor cannot write to it. */
  #watched: readonly { readonly memory: WeakRef<Storage>; readonly version: number; readonly tensor: TensorSpec; readonly root: Node }[] = []
  #tape: CallTape | null = null
  /** The heads, as bits, behind which a backward has freed nodes of the tape; {@link CallTape} knows them where there is one. */
  #freed = 0n
  /** The heads that the latest backward started from. */
  #started: readonly number[] = []

  constructor(code: BackwardCode, heads: readonly Tensor[], kept: readonly unknown[]) {
    this.#code = code
    this.#heads = heads.map(({ shape, dtype }) => ({ shape, dtype }))
    this.#kept = kept
    this.#noteVersions()
  }

  useTape(tape: CallTape): void {
    this.#tape = tape
    this.#noteVersions()
  }

  watch(watched: readonly Watched[]): void {
    // That an input has got another shape counts as a write, too.
    if (this.#code.joint.relaysInputs === true) this.#noteVersions()
    this.#watched = watched.map(({ tensor, root }) => {
      const storage = tensor.realize()
      return { memory: new WeakRef(storage), version: storage.version, tensor: { shape: tensor.shape, dtype: tensor.dtype }, root }
    })
  }

  release(): { readonly isLast: boolean; readonly afterwards: (() => void) | null } {
    const tape = this.#tape
    const heads = this.#started
    const isLast = tape === null ? this.#free(heads) : tape.release(heads)
    if (isLast) {
      this.#tape = null
      this.#kept = []
    }
    const afterwards = tape === null ? null : (): void => tape.free(heads)
    return { isLast, afterwards }
  }

  backward(grads: readonly (Tensor | null)[]): readonly (Tensor | null)[] {
    const code = this.#code
    const tape = this.#tape
    const kept = this.#kept
    const started: number[] = []
    const given: Tensor[] = []
    for (let i = 0; i < this.#heads.length; i++) {
      const grad = grads[i] ?? null
      if (grad === null) continue
      started.push(i)
      given.push(grad)
    }
    this.#started = started
    for (const i of started) {
      const failure = code.joint.failures?.[i] ?? null
      if (failure !== null) throw failure
    }
    if (tape === null) {
      if (started.some((i) => ((this.#freed >> BigInt(i)) & 1n) === 1n)) throw walkedBefore(this.name)
    } else tape.check(started)
    if (isGradEnabled()) {
      if (tape !== null) return tape.differentiate(started, given)
      throw new UnsupportedError(
        'a compiled function cannot be differentiated twice (createGraph) when the backward happens outside of it. Take the gradients inside the compiled function, or run it eagerly.',
      )
    }
    // What some of the heads lead to would be traced for the sizes of this call.
    if (code.joint.takesSizes === true && tape !== null && started.length < this.#heads.length) return tape.differentiate(started, given)
    const tangents = given.map(whole)
    const args = [...kept, ...tangents]
    if (started.length < this.#heads.length) {
      const part = code.part(started, tape, args)
      this.#checkVersions(part)
      const gradients = checkedGradients(part.graph, args, () => part.code(...args).map(asGradient))
      return withOwnMemory(gradients, kept, tangents)
    }
    this.#checkVersions(null)
    const { graph, code: compiled } = code.whole(args)
    const gradients = checkedGradients(graph, args, () => compiled(...args).map(asGradient))
    return withOwnMemory(gradients, kept, tangents)
  }

  /** Frees what these heads lead to. Returns whether nothing is left. */
  #free(heads: readonly number[]): boolean {
    const all = (1n << BigInt(this.#heads.length)) - 1n
    const { sharing } = this.#code.joint
    for (const i of heads) this.#freed |= sharing?.[i] ?? all
    return this.#freed === all
  }

  #noteVersions(): void {
    const kept = this.#kept
    this.#notedAt = upcomingSeq()
    for (let i = 0; i < kept.length; i++) {
      const value = kept[i]
      this.#versions[i] = value instanceof Tensor ? value.realize().version : 0
    }
  }

  /** Throws AutogradError if something was written to that the backward of all heads, or a part of it, reads. */
  #checkVersions(part: BackwardPart | null): void {
    const kept = this.#kept
    for (let i = 0; i < kept.length; i++) {
      const value = kept[i]
      if (!(value instanceof Tensor) || isAsSaved(value, this.#versions[i] ?? 0, this.#notedAt) || (part !== null && part.needs[i] !== true)) continue
      throw overwritten(value)
    }
    for (const { memory, version, tensor, root } of this.#watched)
      if ((memory.deref()?.version ?? version) !== version && (part === null || part.reads.has(root))) throw overwritten(tensor)
  }
}

const overwritten = ({ shape }: TensorSpec): AutogradError =>
  new AutogradError(
    `backward of a compiled function: a tensor of shape [${shape.join(', ')}] that it needs has been modified in place since the forward. Clone it before you modify it, or run the backward first.`,
  )

const whole = (grad: Tensor): Tensor => (grad.contiguousLayout ? grad : clone(grad))

const asGradient = (value: unknown): Tensor | null => (value === null ? null : asTensor(value, 'a gradient'))

/** A gradient that is an incoming gradient becomes that very tensor, which the engine can share; any other gradient gets memory of its own. */
function withOwnMemory(grads: readonly (Tensor | null)[], kept: readonly unknown[], tangents: readonly Tensor[]): readonly (Tensor | null)[] {
  const taken = new Set<Storage | null>()
  for (const value of kept) if (value instanceof Tensor) taken.add(value.storage)
  for (const tangent of tangents) taken.add(tangent.storage)
  return grads.map((g) => {
    if (g === null) return null
    const tangent = tangents.find(
      (t) =>
        t.storage === g.storage && t.dtype === g.dtype && t.offset === g.offset && sameShape(t.shape, g.shape) && sameShape(t.strides, g.strides),
    )
    if (tangent !== undefined) return tangent
    const own = taken.has(g.storage) ? clone(g) : g
    taken.add(own.storage)
    return own
  })
}
