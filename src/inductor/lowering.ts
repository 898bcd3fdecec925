// Lowers a graph to inductor's IR. The graph runs once on fake tensors under a dispatch mode. How an operator call is lowered follows from the operator's
// declaration: as a template, a pointwise or reduction rule, a view (which costs nothing), a decomposition, or otherwise as a call of its eager kernel.
import { drawPositions, forgetDraw, isDraw, keepingState } from '../aot/trace/draws.ts'
import { dispatch, markView, tensorAt, withMode } from '../dispatch/index.ts'
import type { Arg, DispatchMode, OpDef, PointwiseArg, PointwiseRule, ReductionRule, Result } from '../dispatch/index.ts'
import { InternalError, UnsupportedError } from '../errors/index.ts'
import type { GraphModule, Node, TargetFunction } from '../fx/index.ts'
import { Interpreter } from '../fx/index.ts'
import { call, cast, constant, isComplexDType, isCostly, numberType, realDType, rounded } from '../kernels/index.ts'
import type { DType, Expr } from '../kernels/index.ts'
import { accumulatedIn, asStrided, clone, computedIn, defineCustomOp, opOf, pointwiseDTypes } from '../ops/index.ts'
import type { OpFunction } from '../ops/index.ts'
import { remembered } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { TensorSpec } from '../tensor/index.ts'
import type { Access, Buffer, BufferView, ExternArg, IrGraph, IrNode, IrOutput, PointwiseNode, ScalarInput } from './ir.ts'
import { nth } from './known.ts'
import { loweringWayOf } from './loweringWay.ts'
import { OpCall, ScalarSymbol, isScalarSymbol } from './opCall.ts'
import { Rewrites } from './rewrites.ts'
import { templateFor } from './templates/index.ts'
import type { BoundTemplate } from './templates/template.ts'

/**
 * Lowers a functional graph. `inputs` are the placeholders' specs; for a number an example. Throws UnsupportedError for graphs that are not flat calls of operators.
 */
export function lower(gm: GraphModule, inputs: readonly (TensorSpec | number)[], options: LoweringOptions = {}): IrGraph {
  return new Lowering(gm, inputs, options).run()
}

export interface LoweringOptions {
  /** Operators whose own kernel is faster become what they decompose into, for engines that do not have that kernel. */
  readonly composed?: boolean
  /** Set if the graph is for other sizes too, so that nothing is chosen by them: neither templates nor rewrites. */
  readonly sized?: SizedLowering | null
}

/** What a graph with sizes needs to know while it is lowered for some of them. */
export interface SizedLowering {
  /** Whether the number at this placeholder is a size, which operators get as it is. */
  isSize(position: number): boolean
  /** A number that follows from sizes, as a kernel computes with it. */
  valueOf(count: number): Expr
}

const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value)

/** Views whose layouts are the same products of sizes for all sizes: they cut nothing off, as a slice does only for some sizes. */
const VIEWS_FOR_SIZES = new Set(['view', 'reshape', 'unsqueeze', 'squeeze', 'permute', 'transpose', 'expand', 'detach'])

/** Whether an operator is a view that a kernel for any sizes can contain. */
export const isViewForSizes = (op: OpDef): boolean => op.tags.has('view') && VIEWS_FOR_SIZES.has(op.name)

/** Arguments of an operator, of which numbers may be symbols. */
const asArgs = (values: readonly unknown[]): readonly Arg[] => values as readonly Arg[]

class Lowering implements DispatchMode {
  readonly name = 'inductor lowering'
  readonly #gm: GraphModule
  readonly #specs: readonly (TensorSpec | number)[]
  readonly #composed: boolean
  readonly #views = new Map<Tensor, BufferView>()
  readonly #nodes: IrNode[] = []
  readonly #rewrites = new Rewrites()
  readonly #rewritten: string[] = []
  readonly #inputs: (Buffer | null)[] = []
  /** What stands for the numbers of random draws, by these. */
  readonly #draws = new Map<string, readonly ScalarSymbol[]>()
  readonly #sized: SizedLowering | null
  #origin = ''

  constructor(gm: GraphModule, specs: readonly (TensorSpec | number)[], { composed = false, sized = null }: LoweringOptions) {
    this.#gm = gm
    this.#specs = specs
    this.#composed = composed
    this.#sized = sized
  }

  run(): IrGraph {
    const args = this.#specs.map((spec, i) => this.#input(spec, i))
    const onNode = (node: Node): void => {
      this.#origin = node.name
    }
    class Lowerer extends Interpreter {
      override runNode(node: Node): unknown {
        onNode(node)
        return super.runNode(node)
      }

      /** Operators are dispatched directly: numbers may be symbols here, which the public functions would reject. */
      override callFunction(target: TargetFunction, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
        const op = opOf(target)
        if (op === undefined) return super.callFunction(target, args, kwargs)
        return dispatch(op, asArgs(op.schema.args.map((arg, i) => (i < args.length ? args[i] : (kwargs[arg.name] ?? arg.default ?? null)))))
      }
    }
    // A graph may call operators that draw.
    forgetDraw()
    const result = keepingState(() => withMode(this, () => new Lowerer(this.#gm).run(...args)))
    const outputs = isList(result) ? result : [result]
    const ends = { inputs: this.#inputs, outputs: outputs.map((value) => this.#output(value)) }
    return { ...ends, nodes: this.#nodes, rewritten: this.#rewritten, draws: this.#draws.size }
  }

  /** The arguments of an operator, whose numbers that were drawn just now become inputs: each run of the program draws others. */
  #withDraws(op: OpDef, args: readonly Arg[]): readonly Arg[] {
    const positions = drawPositions(op)
    if (positions.length === 0) return args
    const numbers = positions.map((position) => args[position])
    const key = String(numbers)
    if (!this.#draws.has(key) && !isDraw(numbers)) return args
    const symbols = remembered(this.#draws, key, () => numbers.map(() => new ScalarSymbol(this.#inputs.push(null) - 1, true)))
    return asArgs(args.map((arg, i) => (positions.includes(i) ? nth(symbols, positions.indexOf(i)) : arg)))
  }

  #input(spec: TensorSpec | number, position: number): unknown {
    if (typeof spec === 'number') {
      this.#inputs.push(null)
      if (this.#sized?.isSize(position) === true) return spec
      return new ScalarSymbol(position, Number.isInteger(spec))
    }
    const tensor = Tensor.fake({ ...spec, offset: 0 })
    const buffer: Buffer = { name: `in${position}`, ...memoryOf(tensor), input: position, producer: null }
    this.#inputs.push(buffer)
    this.#views.set(tensor, { buffer, shape: tensor.shape, strides: tensor.strides, offset: 0, dtype: tensor.dtype })
    return tensor
  }

  #output(value: unknown): IrOutput {
    if (value instanceof Tensor) return { kind: 'view', view: this.#viewOf(value) }
    if (isScalarSymbol(value)) return { kind: 'scalarInput', input: value }
    return { kind: 'value', value }
  }

  #viewOf(tensor: Tensor): BufferView {
    const view = this.#views.get(tensor)
    if (view !== undefined) return view
    if (tensor.isFake) throw new InternalError(`inductor: a fake tensor of another graph reached node ${this.#origin}`)
    throw new UnsupportedError(`inductor: the graph has a constant tensor at node ${this.#origin}; pass it as an input, as compile() does.`)
  }

  handle(op: OpDef, given: readonly Arg[]): Result {
    const args = this.#withDraws(op, given)
    const opCall = new OpCall(op, args)
    const rewritten = this.#sized === null ? this.#rewrites.find(opCall) : null
    if (rewritten !== null) {
      this.#rewritten.push(rewritten.name)
      return withMode(this, rewritten.replace)
    }
    if (op.functional !== null)
      throw new UnsupportedError(`inductor: ${op.qualname} writes in place; functionalize the graph first, as compile() does.`)
    // Loops have at least one step. Eager kernels know what becomes of no elements.
    if (!op.tags.has('view') && !op.tags.has('takesMemory') && touchesEmpty(opCall)) return this.#extern(opCall, 'a tensor has no elements')
    const template = this.#sized === null ? templateFor(opCall, (tensor) => this.#viewOf(tensor)) : null
    if (template !== null) return this.#template(op, template)
    const way = loweringWayOf(op, this.#composed)
    if (way.kind === 'pointwise') return this.#pointwise(opCall, way.rule)
    if (way.kind === 'reduction') return this.#reduction(opCall, way.rule)
    if (way.kind === 'view' && (this.#sized === null || isViewForSizes(op))) return this.#view(opCall)
    // The public functions that decompositions call would reject symbols.
    if (!opCall.hasSymbols) {
      if (way.kind === 'fill') return this.#fill(opCall, fillOf(opCall))
      if (way.kind === 'parts') return withMode(this, () => (way.decompose as (...a: readonly Arg[]) => Result)(...args))
    }
    return this.#extern(opCall, whyExtern(opCall))
  }

  /** A new contiguous buffer, and the fake tensor that represents it. */
  #newBuffer(spec: TensorSpec, suffix = ''): { buffer: Buffer; tensor: Tensor } {
    const tensor = Tensor.fake({ shape: spec.shape, dtype: spec.dtype })
    const name = `buf${this.#nodes.length}${suffix}`
    const buffer: Buffer = { name, ...memoryOf(tensor), input: -1, producer: null }
    this.#views.set(tensor, { buffer, shape: tensor.shape, strides: tensor.strides, offset: 0, dtype: spec.dtype })
    return { buffer, tensor }
  }

  #add(node: IrNode, ...outs: readonly Buffer[]): void {
    this.#nodes.push(node)
    for (const out of outs) out.producer = node
  }

  #addPointwise(op: OpDef, out: Buffer, node: Pick<PointwiseNode, 'iter' | 'reads' | 'compute'> & Partial<PointwiseNode>): void {
    this.#add({ scalars: [], usesIndices: false, expensive: false, ...node, kind: 'pointwise', origin: this.#origin, op: op.name, out }, out)
  }

  /** A view operator gives a new window of the same buffer. */
  #view(opCall: OpCall): Result {
    const self = tensorAt(opCall.args, 0)
    const { buffer } = this.#viewOf(self)
    const absolute = windowOnInput(opCall, buffer)
    if (absolute !== null) return this.#extern(absolute, 'where the window begins in the storage of an input is known only when the program runs')
    const one = (spec: TensorSpec): Tensor => {
      const tensor = Tensor.fake(spec)
      if (opCall.op.tags.has('view')) markView(tensor, self, opCall.op)
      this.#views.set(tensor, { buffer, shape: tensor.shape, strides: tensor.strides, offset: tensor.offset, dtype: tensor.dtype })
      return tensor
    }
    const spec = specsOf(opCall)
    return isSpec(spec) ? one(spec) : spec.map(one)
  }

  #pointwise(opCall: OpCall, rule: PointwiseRule): Tensor {
    const { op, args } = opCall
    const spec = specOf(opCall)
    const { buffer, tensor } = this.#newBuffer(spec)
    const { compute: dtype } = pointwiseDTypes(
      op,
      args.map((a) => (isScalarSymbol(a) ? a.representative : a)),
    )
    const reads: Access[] = []
    const scalars: { input: ScalarInput; dtype: DType }[] = []
    // How each argument reaches `compute`: as a read, as a scalar, or as the value itself.
    type Operand = (reads: readonly Expr[], scalars: readonly Expr[]) => PointwiseArg
    const operands = args.map((arg, i): Operand => {
      if (arg instanceof Tensor) {
        const at = reads.push(broadcastAccess(this.#viewOf(arg), spec.shape)) - 1
        return (r) => cast(nth(r, at), dtype)
      }
      if (isScalarSymbol(arg)) {
        const at = scalars.push({ input: arg, dtype: numberType(dtype) }) - 1
        return (_, s) => cast(nth(s, at), dtype)
      }
      const baked = rule.baked?.includes(op.schema.args[i]?.name ?? '') === true
      if ((typeof arg === 'number' || typeof arg === 'boolean') && !baked) {
        const value = constant(dtype, rounded(dtype, Number(arg)))
        return () => value
      }
      return () => arg
    })
    const compute = (r: readonly Expr[], s: readonly Expr[]): Expr => cast(rule.compute(...operands.map((o) => o(r, s))), spec.dtype)
    const probe = compute(
      reads.map((r) => constant(r.buffer.dtype, 0)),
      scalars.map((s) => constant(s.dtype, 0)),
    )
    this.#addPointwise(op, buffer, { iter: spec.shape, reads, scalars, compute, expensive: isCostly(probe) })
    return tensor
  }

  /** Constants and ranges are computed where they are used. */
  #fill(opCall: OpCall, fill: Fill): Tensor {
    const spec = specOf(opCall)
    const { buffer, tensor } = this.#newBuffer(spec)
    const compute = (_reads: readonly Expr[], _scalars: readonly Expr[], indices: readonly Expr[]): Expr => fill.value(spec.dtype, indices)
    this.#addPointwise(opCall.op, buffer, { iter: spec.shape, reads: [], compute, usesIndices: fill.usesIndices })
    return tensor
  }

  #reduction(opCall: OpCall, rule: ReductionRule): Result {
    const { op } = opCall
    const { buffer: input, shape, strides, offset, dtype: inputType } = this.#viewOf(opCall.tensor('self'))
    const spec = specOf(opCall)
    const { buffer, tensor } = this.#newBuffer(spec)
    const dim = opCall.value('dim')
    const dims = dim === null ? [] : typeof dim === 'number' ? [dim] : opCall.numbers('dim')
    const chosen = new Set(dims.map((d) => (d < 0 ? d + shape.length : d)))
    const reduced = shape.map((_, i) => chosen.size === 0 || chosen.has(i))
    const count = shape.reduce((n, size, i) => (reduced[i] === true ? n * size : n), 1)
    const dtype = accumulatedIn(rule.dtype(inputType))
    const number = this.#sized === null ? constant(dtype, count) : cast(this.#sized.valueOf(count), dtype)
    const finish = (acc: Expr): Expr => cast(rule.finish === undefined ? acc : rule.finish(acc, number), spec.dtype)
    const map = (x: Expr): Expr => (rule.map === undefined ? x : rule.map(x))
    const read: Access = { buffer: input, strides, offset }
    if (count === 1) {
      // Each result comes from a single element.
      this.#addPointwise(op, buffer, { iter: shape, reads: [read], compute: (r) => finish(map(cast(nth(r, 0), dtype))) })
    } else {
      const { combine } = rule
      const node = { origin: this.#origin, op: op.name, out: buffer, iter: shape, reduced, dtype, combine, map, finish }
      this.#add({ ...node, kind: 'reduction', reads: [read] }, buffer)
    }
    return tensor
  }

  #template(op: OpDef, { name, out, depth = 0, sum, finish, ...template }: BoundTemplate): Result {
    const { buffer, tensor } = this.#newBuffer(out)
    this.#add({ ...template, kind: 'template', origin: this.#origin, op: op.name, out: buffer, template: name, depth, sum: sum ?? null }, buffer)
    return finish === undefined ? tensor : withMode(this, () => finish(tensor))
  }

  #extern(opCall: OpCall, reason: string): Result {
    const { op, args } = opCall
    const reads: Access[] = []
    const convert = (arg: unknown): ExternArg => {
      if (arg instanceof Tensor) {
        const view = this.#viewOf(arg)
        reads.push(view)
        return { kind: 'view', view }
      }
      if (isScalarSymbol(arg)) return { kind: 'scalarInput', input: arg }
      if (isList(arg) && arg.some((a) => a instanceof Tensor || isScalarSymbol(a))) return { kind: 'list', items: arg.map(convert) }
      return { kind: 'value', value: arg }
    }
    const converted = args.map(convert)
    const spec = specsOf(opCall)
    const made = (isSpec(spec) ? [spec] : spec).map((s, i) => this.#newBuffer(s, `_${i}`))
    const outs = made.map((m) => m.buffer)
    this.#add({ kind: 'extern', origin: this.#origin, op: op.name, def: op, args: converted, outs, reads, reason }, ...outs)
    return isSpec(spec) ? nth(made, 0).tensor : made.map((m) => m.tensor)
  }
}

/** The memory of a tensor: complex numbers are pairs of real ones, since kernels compute on these. Views of it may be complex. */
const memoryOf = ({ shape, dtype, numel }: Tensor): Pick<Buffer, 'shape' | 'dtype' | 'numel' | 'isComplex'> =>
  isComplexDType(dtype) ? { shape: [...shape, 2], dtype: realDType(dtype), numel: 2 * numel, isComplex: true } : { shape, dtype, numel }

/** Why an operator is left to its eager kernel. */
function whyExtern({ op, hasSymbols }: OpCall): string {
  if (op.tags.has('fusedKernel')) return 'its own kernel is faster than what it decomposes into'
  return hasSymbols && op.decompose !== null ? 'it takes a number that is known only when the program runs' : 'it has no lowering'
}

const isSpec = (spec: TensorSpec | readonly TensorSpec[]): spec is TensorSpec => 'shape' in spec

/** Whether a tensor without elements goes in or comes out. */
function touchesEmpty(opCall: OpCall): boolean {
  if (opCall.args.some((arg) => isEmpty(arg) || (isList(arg) && arg.some(isEmpty)))) return true
  if (!opCall.op.tags.has('fill') && !opCall.op.tags.has('range')) return false
  const spec = specsOf(opCall)
  return isSpec(spec) && spec.shape.includes(0)
}

const isEmpty = (value: unknown): boolean => value instanceof Tensor && value.numel === 0

/** The specs of an operator's results. */
function specsOf({ op, args }: OpCall): TensorSpec | readonly TensorSpec[] {
  return (op.meta as (...a: readonly Arg[]) => TensorSpec | readonly TensorSpec[])(...args.map((a) => (isScalarSymbol(a) ? a.representative : a)))
}

/** The spec of an operator's only result. */
function specOf(opCall: OpCall): TensorSpec {
  const spec = specsOf(opCall)
  if (!isSpec(spec)) throw new InternalError(`inductor: ${opCall.op.qualname} has ${spec.length} results, but one is expected`)
  return spec
}

/** A window on the storage of an input, copied: only when the program runs is it known where in its storage the input begins, and how large that is. */
export const copiedWindow: OpFunction<(self: Tensor, size: readonly number[], stride: readonly number[], offset: number) => Tensor> = defineCustomOp({
  schema: 'copied_window(Tensor self, int[] size, int[] stride, int offset) -> Tensor',
  namespace: 'torch.ops.inductor',
  meta: (self, size) => ({ shape: size, dtype: self.dtype }),
  kernel: (self, size, stride, offset) => clone(asStrided(self, size, stride, offset)),
})

/** The call that copies the window, if `opCall` says where in the storage of an input it begins. */
const windowOnInput = (opCall: OpCall, buffer: Buffer): OpCall | null =>
  opCall.op === opOf(asStrided) && opCall.value('storageOffset') !== null && buffer.input >= 0 ? new OpCall(copiedWindow.op, opCall.args) : null

/** The value that a creation operator puts at each position. */
interface Fill {
  readonly usesIndices: boolean
  readonly value: (dtype: DType, indices: readonly Expr[]) => Expr
}

/** What a `fill` or a `range` puts there. */
function fillOf(opCall: OpCall): Fill {
  const number = (dtype: DType, name: string): Expr => constant(dtype, rounded(dtype, Number(opCall.value(name))))
  if (opCall.op.tags.has('fill')) return { usesIndices: false, value: (dtype) => number(dtype, 'fillValue') }
  return {
    usesIndices: true,
    value: (dtype, indices) => {
      const compute = computedIn(dtype)
      return cast(call('add', number(compute, 'start'), call('mul', cast(nth(indices, 0), compute), number(compute, 'step'))), dtype)
    },
  }
}

/** Reads `view` for every element of `shape`: stride 0 along broadcast dimensions. */
function broadcastAccess(view: BufferView, shape: readonly number[]): Access {
  const lead = shape.length - view.shape.length
  const strides = shape.map((_, i) => (view.shape[i - lead] === 1 ? 0 : (view.strides[i - lead] ?? 0)))
  return { buffer: view.buffer, strides, offset: view.offset }
}
