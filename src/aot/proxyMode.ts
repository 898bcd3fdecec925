// ProxyTensorMode: records every operator that reaches the dispatcher, below autograd, as a node of a graph; values are fake tensors.
import { withMode, withoutModes } from '../dispatch/index.ts'
import type { Arg, DispatchMode, OpDef, Result } from '../dispatch/index.ts'
import { UnsupportedError } from '../errors/index.ts'
import { Graph, operator } from '../fx/index.ts'
import type { Argument, Node } from '../fx/index.ts'
import { captureStack } from '../provenance/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { Tensor, asTensor } from '../tensor/index.ts'
import type { TensorSpec } from '../tensor/index.ts'
import { copy_ } from '../ops/index.ts'
import { checkOptions } from '../protocol/index.ts'
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
  /** Tensors from outside that an in-place operator wrote to, with the node of their value before. */
  readonly #written = new Map<Tensor, Node>()
  #parameters = 0
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
    this.#nodes.set(tensor, node)
    return node
  }

  /** The node of a tensor; a real tensor from outside becomes a constant. */
  nodeOf(tensor: Tensor): Node {
    const known = this.#nodes.get(tensor) ?? this.#resolve?.(tensor)
    if (known !== undefined) return known
    // A pending tensor without a node is computed here, which may throw.
    if (!tensor.isFake) tensor.realize()
    if (this.#resolve !== undefined && !tensor.isFake) throw new UnsupportedError('a tensor from outside appears only in the backward.')
    if (tensor.isFake)
      throw new UnsupportedError('a fake tensor of another trace was used; make all tensors from the arguments of the traced function.')
    const name = tensor.isParameter ? `_param_constant${this.#parameters++}` : `_tensor_constant${this.constants.size - this.#parameters}`
    this.constants.set(name, tensor)
    const node = this.graph.createNode('get_attr', name)
    node.meta['val'] = specOf(tensor)
    this.#nodes.set(tensor, node)
    return node
  }

  handle(op: OpDef, args: readonly Arg[]): Result {
    if (op.functional !== null) return this.#inPlace(op.functional, args)
    if (this.decompose && op.decompose !== null && !op.tags.has('template') && op.pointwise === null && op.reduction === null) {
      return withMode(this, () => (op.decompose as (...a: readonly Arg[]) => Result)(...args))
    }
    const node = this.#record(op, args)
    const spec = withoutModes(() => (op.meta as (...a: readonly Arg[]) => TensorSpec | readonly TensorSpec[])(...args))
    if (!Array.isArray(spec)) {
      const result = this.#fake(spec as TensorSpec, op, args)
      node.meta['val'] = specOf(result)
      this.#nodes.set(result, node)
      return result
    }
    const results = (spec as readonly TensorSpec[]).map((s) => this.#fake(s, op, args))
    node.meta['val'] = results.map(specOf)
    results.forEach((result, i) => {
      const item = this.graph.callFunction(operator.getitem as unknown as TargetFunction, [node, i])
      item.meta['val'] = specOf(result)
      this.#nodes.set(result, item)
    })
    return results
  }

  #fake(spec: TensorSpec, op: OpDef, args: readonly Arg[]): Tensor {
    const result = Tensor.fake(spec)
    const [self] = args
    if (op.tags.has('view') && self instanceof Tensor) result.viewBase = self.viewBase ?? self
    return result
  }

  #record(op: OpDef, args: readonly Arg[]): Node {
    const value = (arg: Arg): Argument => {
      if (arg instanceof Tensor) return this.nodeOf(arg)
      if (Array.isArray(arg)) return (arg as readonly Arg[]).map(value)
      return arg as Argument
    }
    const { args: positional, kwargs } = spell(op.schema.args, args.map(value))
    const node = this.graph.callFunction(op.fn, positional, kwargs)
    node.meta['stack_trace'] = captureStack()
    return node
  }

  /** Records copies of what in-place operators wrote to tensors from outside. Call it at the end of the graph, before its output. */
  writeBack(): void {
    for (const [tensor, before] of this.#written) this.graph.callFunction(copy_ as TargetFunction, [before, this.nodeOf(tensor)])
  }

  /** Functionalization: from here on the tensor stands for the new value. */
  #inPlace(functional: OpDef, args: readonly Arg[]): Tensor {
    const self = asTensor(args[0], `the first argument of ${functional.qualname}`)
    if (self.viewBase !== null)
      throw new UnsupportedError('an in-place operator on a view cannot be traced; use the operator without the trailing underscore.')
    const before = this.nodeOf(self)
    const result = asTensor(this.handle(functional, args), `the result of ${functional.qualname}`)
    this.#nodes.set(self, this.nodeOf(result))
    if ((before.op === 'placeholder' || before.op === 'get_attr') && !this.#written.has(self)) this.#written.set(self, before)
    return self
  }
}
