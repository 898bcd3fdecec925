// ProxyTensorMode: records every operator that reaches the dispatcher, below autograd, as a node of a graph; values are fake tensors.
import {
  dataValue,
  decomposed,
  dispatchBelowAutograd,
  dispatchState,
  isArgList,
  markView,
  specsOf,
  withMode,
  withoutModes,
} from '../../dispatch/index.ts'
import type { Arg, DispatchMode, OpDef, Result } from '../../dispatch/index.ts'
import { UnsupportedError } from '../../errors/index.ts'
import { recordValue } from '../../fx/graph/nodeValue.ts'
import { Graph, layoutReaders, operator } from '../../fx/index.ts'
import type { Argument, Node } from '../../fx/index.ts'
import { captureStack } from '../../provenance/index.ts'
import { isSymbolic } from '../../protocol/index.ts'
import type { Size, SymbolicValue, TargetFunction } from '../../protocol/index.ts'
import { Storage, Tensor, asTensor, layoutSeen, makeFake, sameShape, sizeEq } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { asStrided, asStrided_, clone, copy_, detach, philoxPermutation, set_, to, unbind } from '../../ops/index.ts'
import { checkOptions } from '../../protocol/index.ts'
import { Aliases } from './aliases.ts'
import type { Memory } from './aliases.ts'
import { drawPositions, drawing, isDraw } from './draws.ts'
import { layoutOf, sameLayout } from '../meta/layout.ts'
import type { TensorLayout } from '../meta/layout.ts'
import { proxyOptions } from './proxyOptions.ts'
import type { Decomposition, ProxyTensorModeOptions } from './proxyOptions.ts'
import { readableArguments } from './readableArguments.ts'
import type { SizeNodes } from './sizeNodes.ts'

/** Records into `graph`. PyTorch's ProxyTorchDispatchMode. */
export class ProxyTensorMode implements DispatchMode {
  readonly name = 'ProxyTensorMode'
  readonly graph: Graph
  /** See {@link ProxyTensorModeOptions.decompose}. */
  readonly decompose: boolean
  /** Real tensors that the program used: its constants, by attribute name. */
  readonly constants = new Map<string, Tensor>()
  /** Nodes of symbolic sizes, in a symbolic trace. */
  readonly sizes: SizeNodes | null
  /** Which tensors share memory, and what they hold. */
  readonly #aliases = new Aliases()
  /** Constants by the storage that they were first met with, and the storages of which others see other parts. */
  readonly #storages = new Map<Storage, Tensor>()
  readonly #shared = new Set<Storage>()
  #parameters = 0
  /** The history that each constant, and what it is a view of, had before the trace. */
  readonly #histories = new Map<Tensor, Pick<Tensor, 'ownHistory' | 'gradFn' | 'outputNr'>>()
  /** Whether an input or a constant requires grad. */
  #anyGrad = false
  readonly #nodes = new Map<Tensor, Node>()
  readonly #resolve: ProxyTensorModeOptions['resolve']
  readonly #decompositions: ReadonlyMap<TargetFunction, Decomposition>
  readonly #decomposing = new Set<OpDef>()
  readonly #onNode: (node: Node) => void
  /** The values of the fake tensors, if they are computed. */
  readonly #reals: Map<Tensor, Tensor> | null
  readonly #drawsAsInputs: boolean
  readonly #constantsAsInputs: boolean
  /** Storages made later than this belong to the trace: the program makes them anew at each run. */
  readonly #firstOwn = Storage.made
  /** The placeholders of each draw, by its numbers. */
  readonly #draws = new Map<string, readonly Node[]>()
  #drawCount = 0
  /** The last placeholders of tensors and of draws. */
  #lastTensor: Node | null = null
  #lastDraw: Node | null = null

  constructor(options: ProxyTensorModeOptions = {}) {
    checkOptions('ProxyTensorMode', options, proxyOptions)
    this.decompose = options.decompose ?? false
    this.graph = options.graph ?? new Graph()
    this.sizes = options.sizes?.(this.graph) ?? null
    this.#resolve = options.resolve
    this.#drawsAsInputs = options.drawsAsInputs ?? false
    this.#constantsAsInputs = options.constantsAsInputs ?? false
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
    this.#lastTensor = node
    recordValue(node, { ...layoutSeen(tensor), requiresGrad: tensor.requiresGrad })
    this.#anyGrad ||= tensor.requiresGrad
    this.#nodes.set(tensor, node)
    this.sizes?.addTensor(node, tensor)
    return node
  }

  rename(tensor: Tensor, to: Tensor): void {
    const node = this.#nodes.get(tensor)
    this.#aliases.rename(tensor, to)
    const real = this.#reals?.get(tensor)
    if (real !== undefined) this.#reals?.set(to, real)
    if (node === undefined) return
    this.#nodes.delete(tensor)
    this.#nodes.set(to, node)
  }

  changeView(qualname: string, self: Tensor, change: () => Tensor): Tensor {
    if (!self.isFake && !this.isOwn(self))
      throw new UnsupportedError(
        `${qualname}: a tensor from outside (shape [${self.shape.join(', ')}]) cannot get another shape while the program is traced. Make it an argument of the program, or use a view of it.`,
      )
    return change()
  }

  /** The node of what a tensor holds now; a real tensor from outside becomes a constant. */
  nodeOf(tensor: Tensor): Node {
    const value = this.#valueOf(tensor)
    return this.#nodes.get(value) ?? this.#resolve?.(value) ?? this.#constant(value)
  }

  /** The node of a tensor that the graph computes or takes; undefined for any other tensor. */
  known(tensor: Tensor): Node | undefined {
    return this.#nodes.get(tensor) ?? this.#resolve?.(tensor)
  }

  /** The node of a symbolic number or truth value. Throws UnsupportedError for one of another trace. */
  sizeNode(value: SymbolicValue): Argument {
    if (this.sizes === null) throw new UnsupportedError('a symbolic size was used in a trace whose sizes are numbers.')
    return this.sizes.argumentOf(value)
  }

  /** To be called before the nodes of the results are asked for: results that shared memory share it in the graph, too. */
  joinResults(results: readonly unknown[]): void {
    this.#aliases.join(results.filter((result) => result instanceof Tensor))
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
    for (const one of [tensor, tensor.viewBase]) {
      if (one === null || this.#histories.has(one)) continue
      const { ownHistory, gradFn, outputNr } = one
      this.#histories.set(one, { ownHistory, gradFn, outputNr })
    }
    const node = this.#constantsAsInputs
      ? (this.#lastTensor = this.#placeholderAfter(this.#lastTensor, name))
      : this.graph.createNode('get_attr', name)
    this.#onNode(node)
    recordValue(node, { ...layoutSeen(tensor), ...(this.#constantsAsInputs ? { requiresGrad: tensor.requiresGrad } : {}) })
    this.#nodes.set(tensor, node)
    if (!this.isOwn(tensor)) return node
    // The program makes this tensor anew at each run. PyTorch's lift_fresh_copy.
    const made = this.#call(clone.op, [tensor])
    recordValue(made, layoutSeen(tensor))
    this.#nodes.set(tensor, made)
    return made
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

  /** What the program reads of a fake tensor: in a symbolic trace symbols, which the graph computes by `item()`. */
  read(tensor: Tensor, whole: boolean): unknown {
    const { sizes } = this
    if (sizes === null) return undefined
    if (whole && tensor.ndim > 0) return withMode(this, () => unbind(tensor, 0)).map((part) => this.read(part, true))
    const value = dataValue(sizes.symbols, tensor)
    if (value === undefined) return undefined
    const node = this.graph.callFunction(layoutReaders.item, [this.nodeOf(tensor)])
    sizes.addData(node, value)
    this.#onNode(node)
    return value
  }

  #values(args: readonly Arg[]): readonly Arg[] {
    return args.map((arg) => (arg instanceof Tensor ? this.#valueOf(arg) : isArgList(arg) ? this.#values(arg) : arg))
  }

  handle(op: OpDef, args: readonly Arg[]): Result {
    if (op.functional !== null) return this.#inPlace(op, op.functional, args)
    const positions = drawPositions(op)
    if (positions.length > 0) {
      const drawn = this.#random(op, args, positions)
      if (drawn !== null) return drawn
    }
    const rule = this.#decompositions.get(op.fn)
    if (rule !== undefined && !this.#decomposing.has(op)) return this.#decomposeWith(rule, op, args)
    const { decompose } = op
    const isWhole = op.tags.has('template') || op.tags.has('fusedKernel') || op.pointwise !== null || op.reduction !== null
    if (this.decompose && decompose !== null && !isWhole) return withMode(this, () => decomposed(op.qualname, decompose, args))
    if (op.tags.has('view')) return this.#view(op, args)
    return this.#record(op, this.#values(args), makeFake)
  }

  /** The memory of a tensor. */
  memoryOf(tensor: Tensor): Memory {
    return this.#aliases.memoryOf(tensor)
  }

  /** How to make `tensor` of what covers its memory. */
  viewOf(tensor: Tensor): (whole: Tensor) => Tensor {
    return this.#aliases.viewOf(tensor)
  }

  /** A tensor that covers a memory, as it lies there, with the history that the memory has now. */
  rootOf(memory: Memory): Tensor {
    const { base, owner } = memory
    if (owner === null || this.#aliases.memoryOf(owner) !== memory) return base
    return withMode(this, () => asStrided(owner, base.sizes, base.steps, base.offset))
  }

  /** What stands for a constant as it was before the trace: a leaf that wants gradients for itself, any other one as a tensor with the history of then. */
  beforeTrace(constant: Tensor): Tensor {
    const history = this.#histories.get(constant)
    return history?.ownHistory === true && history.gradFn === null ? constant : Object.assign(Tensor.fake(constant), history)
  }

  /** Gives the constants back the history that they had. A write that the trace recorded gave them one in which there are only fake tensors. */
  restoreHistories(): void {
    for (const [tensor, history] of this.#histories) Object.assign(tensor, history)
  }

  /** Whether the program made this real tensor during the trace, and so makes it anew at each run. */
  isOwn(tensor: Tensor): boolean {
    const { storage } = tensor
    return storage !== null && storage.serial >= this.#firstOwn
  }

  #decomposeWith(rule: Decomposition, op: OpDef, args: readonly Arg[]): Result {
    const { args: positional, kwargs } = readableArguments(op.schema.args, args)
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
  #follow(op: OpDef, args: readonly Arg[], make: (spec: TensorSpec<Size>) => Tensor, reals: Map<Tensor, Tensor>): Result {
    const real = (arg: Arg): Arg => {
      if (arg instanceof Tensor) return reals.get(arg) ?? arg
      return isArgList(arg) ? arg.map(real) : arg
    }
    const values = withoutModes(() => dispatchBelowAutograd(op, args.map(real)))
    const fakeOf = (value: Tensor): Tensor => {
      const fake = make(layoutSeen(value))
      reals.set(fake, value)
      return fake
    }
    return values instanceof Tensor ? fakeOf(values) : values.map(fakeOf)
  }

  /** Whether an in-place operator wrote to the tensor, an input or a constant of the graph. (What the program makes anew at each run is none.) */
  isWritten(tensor: Tensor): boolean {
    const node = this.#nodes.get(tensor)
    return this.#aliases.isWritten(tensor) && node !== undefined && (node.op === 'placeholder' || node.op === 'get_attr')
  }

  /** How many draws have been recorded. */
  get drawCount(): number {
    return this.#drawCount
  }

  /** The placeholders of the draws, if they are inputs. */
  get drawInputs(): readonly Node[] {
    return [...this.#draws.values()].flat()
  }

  /** A random operator whose numbers have been drawn just now; null for numbers that the program gives. */
  #random(op: OpDef, args: readonly Arg[], positions: readonly number[]): Result | null {
    const numbers = positions.map((position) => args[position])
    const known = this.#draws.get(String(numbers))
    if (known === undefined) {
      if (!isDraw(numbers)) return null
      if (this.#resolve !== undefined) throw new UnsupportedError('a random operator in a backward cannot be traced.')
      this.#drawCount++
    }
    if (!this.#drawsAsInputs) {
      const { fn, args: given } = drawing(op, args)
      const result = this.#record(fn.op, given, makeFake)
      return result instanceof Tensor ? withMode(this, () => to(result, op === philoxPermutation.op ? 'int32' : result.dtype)) : result
    }
    const nodes = known ?? this.#drawPlaceholders(String(numbers))
    return this.#record(op, args, makeFake, new Map(positions.map((position, i) => [position, nodes[i]])))
  }

  #placeholderAfter(last: Node | null, name: string): Node {
    const make = (): Node => this.graph.placeholder(name)
    return last === null ? this.graph.insertingBefore(null, make) : this.graph.insertingAfter(last, make)
  }

  #drawPlaceholders(key: string): readonly Node[] {
    const name = `rng_${this.#draws.size + 1}`
    const nodes = ['seed_lo', 'seed_hi', 'offset_lo', 'offset_hi'].map((part) => {
      this.#lastDraw = this.#placeholderAfter(this.#lastDraw ?? this.#lastTensor, `${name}_${part}`)
      return this.#lastDraw
    })
    this.#draws.set(key, nodes)
    return nodes
  }

  #view(op: OpDef, args: readonly Arg[]): Result {
    const self = asTensor(args[0], `the first argument of ${op.qualname}`)
    const made: Tensor[] = []
    const result = (spec: TensorSpec<Size>): Tensor => {
      const fake = makeFake(spec)
      markView(fake, self, op)
      made.push(fake)
      return fake
    }
    // The view of a tensor that was written is made when it is read.
    const written = this.#aliases.isWritten(self)
    const results = written ? this.#resultsOf(op, args, result) : this.#record(op, args, result)
    made.forEach((fake, i) => this.#aliases.addView(fake, op, args, results instanceof Tensor ? null : i))
    return results
  }

  /** Fakes for the results of a call, made by `result`. */
  #resultsOf(op: OpDef, args: readonly Arg[], result: (spec: TensorSpec<Size>) => Tensor): Result {
    const spec = withoutModes(() => specsOf(op, args, this.sizes?.symbols))
    return 'shape' in spec ? result(spec) : spec.map(result)
  }

  /** The node of a call, and its results. `nodes` take the place of the arguments at those positions. */
  #record(op: OpDef, args: readonly Arg[], result: (spec: TensorSpec<Size>) => Tensor, nodes?: ReadonlyMap<number, Node | undefined>): Result {
    const node = this.#call(op, args, nodes)
    const results = this.#reals === null ? this.#resultsOf(op, args, result) : this.#follow(op, args, result, this.#reals)
    if (results instanceof Tensor) {
      if (op.tags.has('dataShape')) this.sizes?.addTensor(node, results)
      recordValue(node, layoutSeen(results))
      this.#nodes.set(results, node)
      return results
    }
    recordValue(node, results.map(layoutSeen))
    results.forEach((one, i) => {
      const item = this.graph.callFunction(operator.getitem, [node, i])
      recordValue(item, layoutSeen(one))
      this.#nodes.set(one, item)
    })
    return results
  }

  #call(op: OpDef, args: readonly Arg[], nodes?: ReadonlyMap<number, Node | undefined>): Node {
    const value = (arg: Arg): Argument => {
      if (arg instanceof Tensor) return this.nodeOf(arg)
      if (isSymbolic(arg)) return this.sizeNode(arg)
      return isArgList(arg) ? arg.map(value) : arg
    }
    const { args: positional, kwargs } = readableArguments(
      op.schema.args,
      args.map((arg, i) => nodes?.get(i) ?? value(arg)),
    )
    const node = this.graph.callFunction(op.fn, positional, kwargs)
    node.meta['stack_trace'] = captureStack()
    this.#onNode(node)
    return node
  }

  /** Records copies of what in-place operators wrote to tensors from outside. Call it at the end of the graph, before its output. */
  writeBack(): void {
    for (const base of this.#aliases.written()) {
      const node = this.#nodes.get(base)
      if (node === undefined || !this.isWritten(base)) continue
      const value = this.#valueOf(base)
      const itself = Tensor.fake(base)
      this.#nodes.set(itself, node)
      // What was written under noGrad has no history, and the graph does not know of noGrad.
      const cut = (of: Tensor): Tensor => (this.#anyGrad && base.gradFn === null ? this.#quietly(() => detach(of)) : of)
      const target = base.requiresGrad ? cut(itself) : itself
      this.graph.callFunction(copy_, [this.nodeOf(target), this.nodeOf(cut(value))])
      this.#aliases.settle(base, itself)
    }
  }

  /** Records that an input gets the shape, or the memory, that the program has given it; `memory` and `layout` are what it had before. Call it after {@link writeBack}. */
  relayBack(tensor: Tensor, memory: Memory, layout: TensorLayout): void {
    const input = this.nodeOf(memory.base)
    const now = layoutOf(tensor)
    if (this.#aliases.memoryOf(tensor) !== memory) this.graph.callFunction(set_, [input, this.nodeOf(tensor)])
    else if (!sameLayout(now, layout)) {
      const node = (size: Size): Argument => (isSymbolic(size) ? this.sizeNode(size) : size)
      const offset = sizeEq(now.offset, layout.offset) ? [] : [node(now.offset)]
      this.graph.callFunction(asStrided_, [input, now.sizes.map(node), now.steps.map(node), ...offset])
    }
  }

  /** Functionalization: from here on the tensor, and what shares its memory, stand for new values. */
  #inPlace(op: OpDef, functional: OpDef, args: readonly Arg[]): Tensor {
    const self = asTensor(args[0], `the first argument of ${op.qualname}`)
    withoutModes(() => specsOf(op, args))
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
