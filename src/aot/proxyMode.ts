// ProxyTensorMode: records every operator that reaches the dispatcher, below autograd, as a node of a graph; values are fake tensors.
import { dispatchBelowAutograd, isArgList, withMode, withoutModes } from '../dispatch/index.ts'
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
  /** Functions to run in place of operators: their operators are recorded. */
  readonly decompositions?: ReadonlyMap<TargetFunction, Decomposition>
  /** Also compute the values, of what {@link ProxyTensorMode.placeholder} got. For operators whose shapes depend on data. Default false. */
  readonly real?: boolean
  /** Called with each node of an operator, and of a tensor from outside. */
  readonly onNode?: (node: Node) => void
}

/** Computes an operator with other operators. It gets the arguments as a program would write them, keyword arguments as an object. */
export type Decomposition = (...args: never[]) => Tensor | readonly Tensor[]

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
  readonly #decompositions: ReadonlyMap<TargetFunction, Decomposition>
  readonly #onNode: (node: Node) => void
  readonly #decomposing = new Set<OpDef>()
  /** The values of the fake tensors, if they are computed. */
  readonly #reals: Map<Tensor, Tensor> | null

  constructor(options: ProxyTensorModeOptions = {}) {
    checkOptions('ProxyTensorMode', options, { decompose: true, graph: true, resolve: true, decompositions: true, real: true, onNode: true })
    this.decompose = options.decompose ?? false
    this.graph = options.graph ?? new Graph()
    this.#resolve = options.resolve
    this.#decompositions = options.decompositions ?? new Map()
    this.#onNode = options.onNode ?? (() => {})
    this.#reals = options.real === true ? new Map() : null
  }

  /** Ties a fake tensor to a node that computes it. */
  track(tensor: Tensor, node: Node): void {
    this.#nodes.set(tensor, node)
  }

  /** A placeholder that stands for a fake tensor, whose value is `real`. */
  placeholder(name: string, tensor: Tensor, real?: Tensor): Node {
    const node = this.graph.placeholder(name)
    if (real !== undefined) this.#reals?.set(tensor, real)
    node.meta['val'] = { ...specOf(tensor), requiresGrad: tensor.requiresGrad }
    this.#nodes.set(tensor, node)
    return node
  }

  /** The node of a tensor; a real tensor from outside becomes a constant. */
  nodeOf(tensor: Tensor): Node {
    const known = this.#nodes.get(tensor) ?? this.#resolve?.(tensor)
    if (known !== undefined) return known
    // A pending tensor without a node is computed here, which may throw.
    if (tensor.storage === null && tensor.pending !== null) tensor.realize()
    if (this.#resolve !== undefined && !tensor.isFake) throw new UnsupportedError('a tensor from outside appears only in the backward.')
    if (tensor.isFake)
      throw new UnsupportedError('a fake tensor of another trace was used; make all tensors from the arguments of the traced function.')
    const name = tensor.isParameter ? `_param_constant${this.#parameters++}` : `_tensor_constant${this.constants.size - this.#parameters}`
    this.constants.set(name, tensor)
    const node = this.graph.createNode('get_attr', name)
    node.meta['val'] = specOf(tensor)
    this.#onNode(node)
    this.#nodes.set(tensor, node)
    return node
  }

  handle(op: OpDef, args: readonly Arg[]): Result {
    if (op.functional !== null) return this.#inPlace(op.functional, args)
    if (this.decompose && op.decompose !== null && !op.tags.has('template') && op.pointwise === null && op.reduction === null) {
      return withMode(this, () => (op.decompose as (...a: readonly Arg[]) => Result)(...args))
    }
    const rule = this.#decompositions.get(op.fn)
    if (rule !== undefined && !this.#decomposing.has(op)) return this.#decomposeWith(rule, op, args)
    const node = this.#record(op, args)
    if (this.#reals !== null) return this.#follow(node, op, args, this.#reals)
    const spec = withoutModes(() => (op.meta as (...a: readonly Arg[]) => TensorSpec | readonly TensorSpec[])(...args))
    return Array.isArray(spec) ? this.#several(node, op, args, spec) : this.#one(node, op, args, spec as TensorSpec)
  }

  #one(node: Node, op: OpDef, args: readonly Arg[], spec: TensorSpec): Tensor {
    const result = this.#fake(spec, op, args)
    node.meta['val'] = specOf(result)
    this.#nodes.set(result, node)
    return result
  }

  #several(node: Node, op: OpDef, args: readonly Arg[], specs: readonly TensorSpec[]): Tensor[] {
    const results = specs.map((s) => this.#fake(s, op, args))
    node.meta['val'] = results.map(specOf)
    results.forEach((result, i) => {
      const item = this.graph.callFunction(operator.getitem as unknown as TargetFunction, [node, i])
      item.meta['val'] = specOf(result)
      this.#nodes.set(result, item)
    })
    return results
  }

  #decomposeWith(rule: Decomposition, op: OpDef, args: readonly Arg[]): Result {
    const { args: positional, kwargs } = spell(op.schema.args, args)
    const given = Object.keys(kwargs).length === 0 ? positional : [...positional, kwargs]
    // A rule may call the operator itself.
    this.#decomposing.add(op)
    try {
      return withMode(this, () => Reflect.apply(rule, undefined, given))
    } finally {
      this.#decomposing.delete(op)
    }
  }

  /** Computes the operator on the values of its arguments. What it returns are fake tensors too, so that no program reads them. */
  #follow(node: Node, op: OpDef, args: readonly Arg[], reals: Map<Tensor, Tensor>): Result {
    const real = (arg: Arg): Arg => {
      if (arg instanceof Tensor) return reals.get(arg) ?? arg
      return isArgList(arg) ? arg.map(real) : arg
    }
    const values = withoutModes(() => dispatchBelowAutograd(op, args.map(real)))
    if (values instanceof Tensor) {
      const result = this.#one(node, op, args, specOf(values))
      reals.set(result, values)
      return result
    }
    const results = this.#several(node, op, args, values.map(specOf))
    for (const [i, result] of results.entries()) reals.set(result, values[i] ?? result)
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
    this.#onNode(node)
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
    const real = this.#reals?.get(result)
    if (real !== undefined) this.#reals?.set(self, real)
    if ((before.op === 'placeholder' || before.op === 'get_attr') && !this.#written.has(self)) this.#written.set(self, before)
    return self
  }
}
