// ProxyTensorMode: records every operator that reaches the dispatcher, below autograd, as a node of a graph; values are fake tensors.
import { dispatchState, isArgList, withMode, withoutModes } from '../dispatch/index.ts'
import type { Arg, DispatchMode, OpDef, Result } from '../dispatch/index.ts'
import { UnsupportedError } from '../errors/index.ts'
import { Graph, operator } from '../fx/index.ts'
import type { Argument, Node } from '../fx/index.ts'
import { captureStack } from '../provenance/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { Tensor, asTensor, sameShape } from '../tensor/index.ts'
import type { Storage, TensorSpec } from '../tensor/index.ts'
import { copy_, detach, to } from '../ops/index.ts'
import { checkOptions } from '../protocol/index.ts'
import { Aliases } from './aliases.ts'
import { spell } from './spell.ts'

const specOf = (t: Tensor): TensorSpec => ({ shape: t.shape, dtype: t.dtype, strides: t.strides })

/** Settings of {@link ProxyTensorMode}. */
export interface ProxyTensorModeOptions {
  /** Decompose operators that have a decomposition and neither a template nor a rule that fuses. Default false. */
  readonly decompose?: boolean
  /** Record at the end of this graph. Default: a new one. */
  readonly graph?: Graph
  /** Finds the node of a tensor that the mode did not make. If given, a real tensor without a node is an UnsupportedError, not a constant. */
  readonly resolve?: (tensor: Tensor) => Node | undefined
}

/** Records into `graph`. PyTorch's ProxyTorchDispatchMode. */
export class ProxyTensorMode implements DispatchMode {
  readonly name = 'ProxyTensorMode'
  readonly graph: Graph
  /** See {@link ProxyTensorModeOptions.decompose}. */
  readonly decompose: boolean
  /** Real tensors that the program used: its constants, by attribute name. */
  readonly constants = new Map<string, Tensor>()
  /** Which tensors share memory, and what they hold. */
  readonly #aliases = new Aliases()
  /** Constants by the storage that they were first met with, and the storages of which others see other parts. */
  readonly #storages = new Map<Storage, Tensor>()
  readonly #shared = new Set<Storage>()
  #parameters = 0
  /** Whether an input or a constant requires grad. */
  #anyGrad = false
  readonly #nodes = new Map<Tensor, Node>()
  readonly #resolve: ProxyTensorModeOptions['resolve']

  constructor(options: ProxyTensorModeOptions = {}) {
    checkOptions('ProxyTensorMode', options, { decompose: true, graph: true, resolve: true })
    this.decompose = options.decompose ?? false
    this.graph = options.graph ?? new Graph()
    this.#resolve = options.resolve
  }

  /** Ties a fake tensor to a node that computes it. */
  track(tensor: Tensor, node: Node): void {
    this.#nodes.set(tensor, node)
  }

  /** A placeholder that stands for a fake tensor. */
  placeholder(name: string, tensor: Tensor): Node {
    const node = this.graph.placeholder(name)
    node.meta['val'] = { ...specOf(tensor), requiresGrad: tensor.requiresGrad }
    this.#anyGrad ||= tensor.requiresGrad
    this.#nodes.set(tensor, node)
    return node
  }

  /** The node of what a tensor holds now; a real tensor from outside becomes a constant. */
  nodeOf(tensor: Tensor): Node {
    const value = this.#valueOf(tensor)
    return this.#nodes.get(value) ?? this.#resolve?.(value) ?? this.#constant(value)
  }

  #constant(tensor: Tensor): Node {
    // A pending tensor without a node is computed here, which may throw.
    if (!tensor.isFake) tensor.realize()
    if (this.#resolve !== undefined && !tensor.isFake) throw new UnsupportedError('a tensor from outside appears only in the backward.')
    const { storage } = tensor
    if (storage === null)
      throw new UnsupportedError('a fake tensor of another trace was used; make all tensors from the arguments of the traced function.')
    const first = this.#storages.get(storage)
    if (first === undefined) this.#storages.set(storage, tensor)
    else if (sameShape(first.shape, tensor.shape) && sameShape(first.strides, tensor.strides) && first.offset === tensor.offset) {
      this.#aliases.addTwin(tensor, first)
      return this.nodeOf(first)
    } else {
      this.#shared.add(storage)
      if (this.#aliases.isWritten(first)) this.#refuseShared(tensor)
    }
    const name = tensor.isParameter ? `_param_constant${this.#parameters++}` : `_tensor_constant${this.constants.size - this.#parameters}`
    this.constants.set(name, tensor)
    this.#anyGrad ||= tensor.requiresGrad
    const node = this.graph.createNode('get_attr', name)
    node.meta['val'] = specOf(tensor)
    this.#nodes.set(tensor, node)
    return node
  }

  #refuseShared(tensor: Tensor): never {
    throw new UnsupportedError(
      `a tensor from outside (shape [${tensor.shape.join(', ')}]) is written to while another tensor from outside is a view of it. Make the view inside of the traced function.`,
    )
  }

  /** What a tensor holds now. The operators that this takes are recorded, but not on the tape. */
  #valueOf(tensor: Tensor): Tensor {
    return this.#aliases.isWritten(tensor) ? this.#quietly(() => this.#aliases.valueOf(tensor)) : tensor
  }

  #quietly<T>(fn: () => T): T {
    const { gradEnabled, recording } = dispatchState
    dispatchState.gradEnabled = false
    dispatchState.recording = false
    try {
      return withMode(this, fn)
    } finally {
      dispatchState.gradEnabled = gradEnabled
      dispatchState.recording = recording
    }
  }

  #values(args: readonly Arg[]): readonly Arg[] {
    return args.map((arg) => (arg instanceof Tensor ? this.#valueOf(arg) : isArgList(arg) ? this.#values(arg) : arg))
  }

  handle(op: OpDef, args: readonly Arg[]): Result {
    if (op.functional !== null) return this.#inPlace(op, op.functional, args)
    const { decompose } = op
    if (this.decompose && decompose !== null && !op.tags.has('template') && op.pointwise === null && op.reduction === null)
      return withMode(this, () => decompose(...args))
    if (op.tags.has('view')) return this.#view(op, args)
    return this.#record(op, this.#values(args), (spec) => Tensor.fake(spec))
  }

  #view(op: OpDef, args: readonly Arg[]): Result {
    const self = asTensor(args[0], `the first argument of ${op.qualname}`)
    const made: Tensor[] = []
    const result = (spec: TensorSpec): Tensor => {
      const fake = Tensor.fake(spec)
      fake.viewBase = self.viewBase ?? self
      made.push(fake)
      return fake
    }
    // The view of a tensor that was written is made when it is read.
    const written = this.#aliases.isWritten(self)
    const results = written ? resultsOf(op, args, result) : this.#record(op, args, result)
    made.forEach((fake, i) => this.#aliases.addView(fake, op, args, results instanceof Tensor ? null : i))
    return results
  }

  /** The node of a call, and its results. */
  #record(op: OpDef, args: readonly Arg[], result: (spec: TensorSpec) => Tensor): Result {
    const node = this.#call(op, args)
    const results = resultsOf(op, args, result)
    if (results instanceof Tensor) {
      node.meta['val'] = specOf(results)
      this.#nodes.set(results, node)
      return results
    }
    node.meta['val'] = results.map(specOf)
    results.forEach((one, i) => {
      const item = this.graph.callFunction(operator.getitem as unknown as TargetFunction, [node, i])
      item.meta['val'] = specOf(one)
      this.#nodes.set(one, item)
    })
    return results
  }

  #call(op: OpDef, args: readonly Arg[]): Node {
    const value = (arg: Arg): Argument => {
      if (arg instanceof Tensor) return this.nodeOf(arg)
      return isArgList(arg) ? arg.map(value) : arg
    }
    const { args: positional, kwargs } = spell(op.schema.args, args.map(value))
    const node = this.graph.callFunction(op.fn, positional, kwargs)
    node.meta['stack_trace'] = captureStack()
    return node
  }

  /** Records copies of what in-place operators wrote to tensors from outside. Call it at the end of the graph, before its output. */
  writeBack(): void {
    for (const base of this.#aliases.written()) {
      const node = this.#nodes.get(base)
      if (node === undefined || (node.op !== 'placeholder' && node.op !== 'get_attr')) continue
      const value = this.#valueOf(base)
      const itself = Tensor.fake(base)
      this.#nodes.set(itself, node)
      // What was written under noGrad has no history, and the graph does not know of noGrad.
      const cut = (of: Tensor): Tensor => (this.#anyGrad && base.gradFn === null ? this.#quietly(() => detach(of)) : of)
      const target = base.requiresGrad ? cut(itself) : itself
      this.graph.callFunction(copy_ as TargetFunction, [this.nodeOf(target), this.nodeOf(cut(value))])
      this.#aliases.settle(base, itself)
    }
  }

  /** Functionalization: from here on the tensor, and what shares its memory, stand for new values. */
  #inPlace(op: OpDef, functional: OpDef, args: readonly Arg[]): Tensor {
    const self = asTensor(args[0], `the first argument of ${op.qualname}`)
    withoutModes(() => op.meta(...args))
    this.nodeOf(self)
    const { storage } = this.#aliases.baseOf(self)
    if (storage !== null && this.#shared.has(storage)) this.#refuseShared(self)
    const result = asTensor(this.handle(functional, args), `the result of ${functional.qualname}`)
    const [last] = this.graph.nodes.reversed()
    this.#quietly(() => this.#aliases.write(self, to(result, self.dtype)))
    // Not every scatter needs the views that lead to its place.
    const kept = [self, this.#aliases.baseOf(self)].map((tensor) => this.nodeOf(tensor))
    for (const node of this.graph.nodes.reversed()) {
      if (node === last) break
      if (node.users.size === 0 && !kept.includes(node)) this.graph.eraseNode(node)
    }
    return self
  }
}

/** Fakes for the results of a call, made by `result`. */
function resultsOf(op: OpDef, args: readonly Arg[], result: (spec: TensorSpec) => Tensor): Result {
  const spec = withoutModes(() => op.meta(...args))
  return 'shape' in spec ? result(spec) : spec.map(result)
}
