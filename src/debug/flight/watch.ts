// One step, watched operator by operator on eager kernels: where bad elements come from, and the step as a graph, which can run again elsewhere.
import { readableArguments } from '../../aot/index.ts'
import { OpNode, backwardState, placeOf } from '../../autograd/index.ts'
import type { GradNode } from '../../autograd/index.ts'
import { dispatchBelowAutograd, dispatchState, isArgList, withoutModes } from '../../dispatch/index.ts'
import type { Arg, DispatchMode, OpDef, Result } from '../../dispatch/index.ts'
import { Graph, operator } from '../../fx/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { Argument as NodeArgument, Node } from '../../fx/index.ts'
import { asStrided, clone } from '../../ops/index.ts'
import { captureStack } from '../../provenance/index.ts'
import { sameShape, Tensor } from '../../tensor/index.ts'
import type { Storage } from '../../tensor/index.ts'
import { badnessOf, elementAt, indexOf, isBad, largestOf } from './badness.ts'
import type { BadKind, Badness } from './badness.ts'
import { Origins } from './origins.ts'
import type { Argument } from './origins.ts'
import type { Given, OperatorPlace, Phase, Place } from './places.ts'
import type { StateTensor } from './state.ts'

/** What the watch asks of the recorder. */
export interface WatchContext {
  /** What a tensor from outside is. */
  describe(tensor: Tensor): Pick<StateTensor, 'kind' | 'name'>
  /** Whether a bad element of a tensor from outside is no fault. */
  isIntended(tensor: Tensor, bad: BadKind): boolean
}

/** A tensor that the step took from outside. */
export interface Outside {
  readonly node: Node
  /** What it held when the step first used it. */
  readonly value: Tensor
  readonly isIntended: boolean
}

/** The mode of one step. */
export class StepWatch implements DispatchMode {
  readonly name = 'FlightRecorder'
  readonly origins = new Origins<Place>()
  readonly graph = new Graph()
  readonly outside: Outside[] = []
  /** The first tensor of the state that each origin, by its order, was written to. */
  readonly reached = new Map<number, string>()
  readonly #context: WatchContext
  readonly #nodes = new WeakMap<Tensor, Node>()
  /** Memory that the step made. */
  readonly #own = new WeakSet<Storage>()
  /** Memory from outside, by the tensor that stands for all of it. */
  readonly #wholes = new Map<Storage, Tensor>()
  readonly #badness = new WeakMap<Tensor, { readonly version: number; readonly badness: Badness }>()
  readonly #backwards = backwardState.started
  /** The tensors of one element that were computed, by their values: what a program reads of a loss. */
  readonly #scalars = new Map<number, Tensor[]>()

  constructor(context: WatchContext) {
    this.#context = context
  }

  handle(op: OpDef, args: readonly Arg[]): Result {
    const tensors = tensorsOf(args)
    for (const tensor of tensors) this.nodeOf(tensor)
    const before = tensors.map((tensor) => this.#argument(tensor))
    const [self] = tensors
    const node = this.#record(op, args)
    const result = dispatchBelowAutograd(op, args)
    const results = result instanceof Tensor ? [result] : result
    for (const { storage } of results) if (storage !== null && !tensors.some((tensor) => tensor.storage === storage)) this.#own.add(storage)
    if (result instanceof Tensor) this.#nodes.set(result, node)
    else result.forEach((one, i) => this.#nodes.set(one, this.graph.callFunction(operator.getitem, [node, i])))
    const place = (): OperatorPlace => this.#place(op, args, results, node)
    withoutModes(() =>
      this.origins.computed(
        before,
        numbersOf(args),
        results.map((one) => this.#argument(one)),
        place,
      ),
    )
    if (op.functional !== null && self !== undefined) this.#noteReached(self)
    if (result instanceof Tensor && result.numel === 1 && dtypeInfo[result.dtype].floating) this.#noteScalar(result)
    return result
  }

  /** Tells of a derivative that was computed: it counts as one operator, whose results are the gradients. */
  derived(node: GradNode, gradients: readonly (Tensor | null)[], given: readonly (Tensor | null)[]): void {
    const results = gradients.map((gradient) => (gradient === null ? null : this.#argument(gradient)))
    this.origins.summarize(
      results,
      (where) => where.kind === 'operator' && where.derivative === node,
      (gradient, index, part) =>
        part.kind === 'operator'
          ? { ...part, given: derivativeOf(node, given, gradient.shape, index), node: this.#nodes.get(gradient) ?? part.node }
          : part,
    )
  }

  #noteScalar(tensor: Tensor): void {
    const value = elementAt(
      tensor,
      tensor.shape.map(() => 0),
    )
    const known = this.#scalars.get(value)
    if (known === undefined) this.#scalars.set(value, [tensor])
    else known.push(tensor)
  }

  /** The tensors of one element with this value, in the order in which they were computed. */
  scalars(value: number): readonly Tensor[] {
    return this.#scalars.get(value) ?? []
  }

  /** The node of a tensor. One from outside becomes a placeholder. */
  nodeOf(tensor: Tensor): Node {
    const known = this.#nodes.get(tensor)
    if (known !== undefined) return known
    const node = this.#isOwn(tensor) ? this.#alias(tensor) : this.#enter(tensor)
    if (!this.#isOwn(tensor)) this.#noteEntry(tensor, node)
    this.#nodes.set(tensor, node)
    return node
  }

  /** The node of a tensor that the step has used or computed; undefined for any other. */
  known(tensor: Tensor): Node | undefined {
    return this.#nodes.get(tensor)
  }

  #isOwn({ storage }: Tensor): boolean {
    return storage !== null && this.#own.has(storage)
  }

  /** A tensor object that autograd made for memory of the step. */
  #alias(tensor: Tensor): Node {
    const base = tensor.viewBase === null ? undefined : this.#nodes.get(tensor.viewBase)
    return base === undefined ? this.#placeholder(tensor) : this.graph.callFunction(asStrided, [base, tensor.shape, tensor.strides, tensor.offset])
  }

  #enter(tensor: Tensor): Node {
    const { storage, viewBase } = tensor
    if (storage !== null) {
      // Memory that several tensors see is one placeholder, of which the others are views.
      if (viewBase !== null && viewBase.offset === 0 && !this.#wholes.has(storage)) this.nodeOf(viewBase)
      const whole = this.#wholes.get(storage)
      if (whole !== undefined && whole.dtype === tensor.dtype) {
        const node = this.nodeOf(whole)
        if (sameShape(whole.shape, tensor.shape) && sameShape(whole.strides, tensor.strides) && whole.offset === tensor.offset) return node
        if (whole.offset === 0) return this.graph.callFunction(asStrided, [node, tensor.shape, tensor.strides, tensor.offset])
      }
      this.#wholes.set(storage, tensor)
    }
    return this.#placeholder(tensor)
  }

  #placeholder(tensor: Tensor): Node {
    const { kind, name } = this.#context.describe(tensor)
    const text = (kind === 'gradient' ? `grad_of_${name}` : name).replaceAll(/\W+/g, '_')
    const make = (): Node => this.graph.placeholder(/^\d/.test(text) ? `_${text}` : text)
    const last = this.outside.at(-1)?.node
    const node = last === undefined ? this.graph.insertingBefore(null, make) : this.graph.insertingAfter(last, make)
    const { badness } = this.#argument(tensor)
    const isIntended = badness.nan === null && badness.infinite !== null && this.#context.isIntended(tensor, 'infinite')
    this.outside.push({ node, value: withoutModes(() => clone(tensor.requiresGrad ? tensor.detach() : tensor)), isIntended })
    return node
  }

  /** Notes the bad elements of a tensor from outside, under its own name and index. */
  #noteEntry(tensor: Tensor, node: Node): void {
    const { badness } = this.#argument(tensor)
    if (!isBad(badness)) return
    const { kind, name } = this.#context.describe(tensor)
    this.origins.enters(
      tensor,
      badness,
      (bad) => this.#context.isIntended(tensor, bad),
      () => ({ kind, name, node }),
    )
  }

  #argument(tensor: Tensor): Argument {
    const version = tensor.storage?.version ?? 0
    const known = this.#badness.get(tensor)
    if (known !== undefined && known.version === version) return { tensor, badness: known.badness }
    const badness = badnessOf(tensor)
    this.#badness.set(tensor, { version, badness })
    return { tensor, badness }
  }

  #record(op: OpDef, args: readonly Arg[]): Node {
    const value = (arg: Arg): NodeArgument => (arg instanceof Tensor ? this.nodeOf(arg) : isArgList(arg) ? arg.map(value) : arg)
    const { args: positional, kwargs } = readableArguments(op.schema.args, args.map(value))
    return this.graph.callFunction(op.fn, positional, kwargs)
  }

  #place(op: OpDef, args: readonly Arg[], results: readonly Tensor[], node: Node): OperatorPlace {
    const phase = this.#phase()
    const from = phase === 'backward' ? backwardState.node : null
    const stack = phase !== 'backward' ? captureStack() : from === null ? undefined : placeOf(from)
    const called = from instanceof OpNode ? from.op.name : op.name
    // The element itself is looked up by the origin; here the first bad one of the first bad result is meant.
    const bad = results.find((one) => isBad(badnessOf(one)))
    const given = bad === undefined ? [] : givenTo(op, args, bad, this.#argument(bad).badness)
    return { kind: 'operator', phase, operator: called, computedBy: op.name, gradFn: from?.name ?? null, given, stack, node, derivative: from }
  }

  #phase(): Phase {
    if (backwardState.depth > 0) return 'backward'
    const { internal, gradEnabled, recording } = dispatchState
    // After a backward, what the program computes without recording is an update that it writes itself.
    return internal || (backwardState.started > this.#backwards && !gradEnabled && !recording) ? 'optimizer' : 'forward'
  }

  #noteReached(tensor: Tensor): void {
    const { kind, name } = this.#context.describe(tensor)
    if (kind === 'tensor' || kind === 'input') return
    for (const bad of ['nan', 'infinite'] as const) {
      const origin = this.#argument(tensor).badness[bad] === null ? null : this.origins.of(tensor, bad)
      if (origin !== null && !this.reached.has(origin.order)) this.reached.set(origin.order, name)
    }
  }
}

/** All tensors among arguments. */
export function tensorsOf(args: readonly Arg[]): readonly Tensor[] {
  return args.flatMap((arg) => (arg instanceof Tensor ? [arg] : isArgList(arg) ? tensorsOf(arg) : []))
}

/** All numbers among arguments. */
export function numbersOf(args: readonly Arg[]): readonly number[] {
  return args.flatMap((arg) => (typeof arg === 'number' ? [arg] : isArgList(arg) ? numbersOf(arg) : []))
}

/** What the arguments have at the place of the bad element. An argument that was overwritten by the call is left out. */
function givenTo(op: OpDef, args: readonly Arg[], result: Tensor, badness: Badness): readonly Given[] {
  const index = indexOf(result.shape, badness.nan ?? badness.infinite ?? 0)
  const isElementwise = (op.functional ?? op).pointwise !== null
  return namedTensors(op, args).flatMap(({ argument, tensor }) => {
    if (tensor.numel === 0 || tensor.storage === result.storage) return []
    const at = isElementwise ? indexIn(tensor.shape, index) : null
    return [{ argument, index: at, element: at === null ? largestOf(tensor) : elementAt(tensor, at) }]
  })
}

/** The tensors among arguments, and what the schema calls the argument. */
const namedTensors = (op: OpDef, args: readonly Arg[]): readonly { readonly argument: string; readonly tensor: Tensor }[] =>
  args.flatMap((arg, i) => tensorsOf([arg]).map((tensor) => ({ argument: op.schema.args[i]?.name ?? 'argument', tensor })))

/** The index in an operand that is broadcast to the shape of the result. */
const indexIn = (shape: readonly number[], index: readonly number[]): readonly number[] =>
  shape.map((size, d) => (size === 1 ? 0 : (index[d + index.length - shape.length] ?? 0)))

/** What a derivative had at the place of a gradient: the incoming gradients, and the arguments of the operator. */
function derivativeOf(node: GradNode, gradients: readonly (Tensor | null)[], shape: readonly number[], index: readonly number[]): readonly Given[] {
  const at = (argument: string, tensor: Tensor): Given =>
    sameShape(tensor.shape, shape) ? { argument, index, element: elementAt(tensor, index) } : { argument, index: null, element: largestOf(tensor) }
  const incoming = gradients.flatMap((gradient) => (gradient === null ? [] : [at('gradient', gradient)]))
  if (!(node instanceof OpNode)) return incoming
  return [...incoming, ...namedTensors(node.op, node.args).map(({ argument, tensor }) => at(argument, tensor))]
}
