// From a graph to inductor's IR. The graph runs once on fake tensors under a dispatch mode; each operator call becomes IR nodes by the facts
// of its declaration: a template, a pointwise or reduction rule, a view (which costs nothing), a decomposition, or else its eager kernel.
import { dispatch, withMode } from '../dispatch/index.ts'
import type { Arg, DispatchMode, OpDef, Result } from '../dispatch/index.ts'
import { InternalError, UnsupportedError } from '../errors/index.ts'
import type { GraphModule, Node, Target } from '../fx/index.ts'
import { Interpreter } from '../fx/index.ts'
import { call, cast, constant } from '../kernels/index.ts'
import type { DType, Expr } from '../kernels/index.ts'
import { opOf, pointwiseDTypes } from '../ops/index.ts'
import { Tensor, contiguousStrides } from '../tensor/index.ts'
import type { TensorSpec } from '../tensor/index.ts'
import type { Access, Buffer, BufferView, ExternArg, IrGraph, IrNode, IrOutput, ScalarInput } from './ir.ts'
import { Rewrites } from './rewrites.ts'
import { templateFor } from './templateRules.ts'

/** A number placeholder while the graph is lowered: operators receive it in place of the number. */
export class ScalarSymbol {
  readonly placeholder: number

  constructor(placeholder: number) {
    this.placeholder = placeholder
  }
}

/** Scalar functions worth more than a load and a store. */
const EXPENSIVE = new Set(['exp', 'expm1', 'log', 'log1p', 'sin', 'cos', 'tanh', 'erf', 'sigmoid', 'pow'])

/** Lowers a functional graph. `inputs` are the placeholders' specs; null for a number. Throws UnsupportedError for graphs that are not flat calls of operators. */
export function lower(gm: GraphModule, inputs: readonly (TensorSpec | null)[]): IrGraph {
  return new Lowering(gm, inputs).run()
}

class Lowering implements DispatchMode {
  readonly name = 'inductor lowering'
  readonly #gm: GraphModule
  readonly #specs: readonly (TensorSpec | null)[]
  readonly #views = new Map<Tensor, BufferView>()
  readonly #nodes: IrNode[] = []
  readonly #rewrites = new Rewrites()
  readonly #inputs: (Buffer | null)[] = []
  #origin = ''

  constructor(gm: GraphModule, specs: readonly (TensorSpec | null)[]) {
    this.#gm = gm
    this.#specs = specs
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

      /** Operators are dispatched as they stand: numbers may be symbols here, which the public functions would refuse. */
      override callFunction(target: Target, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
        const op = opOf(target)
        if (op === undefined) return super.callFunction(target, args, kwargs)
        return dispatch(
          op,
          op.schema.args.map((arg, i) => (i < args.length ? args[i] : (kwargs[arg.name] ?? arg.default ?? null)) as Arg),
        )
      }
    }
    const result = withMode(this, () => new Lowerer(this.#gm).run(...args))
    const list = Array.isArray(result) ? (result as readonly unknown[]) : [result]
    return { inputs: this.#inputs, nodes: this.#nodes, outputs: list.map((value) => this.#output(value)) }
  }

  #input(spec: TensorSpec | null, position: number): unknown {
    if (spec === null) {
      this.#inputs.push(null)
      return new ScalarSymbol(position)
    }
    const tensor = Tensor.fake({ ...spec, offset: 0 })
    const buffer: Buffer = { name: `in${position}`, shape: spec.shape, dtype: spec.dtype, numel: tensor.numel, input: position, producer: null }
    this.#inputs.push(buffer)
    this.#views.set(tensor, { buffer, shape: tensor.shape, strides: tensor.strides, offset: 0, dtype: tensor.dtype })
    return tensor
  }

  #output(value: unknown): IrOutput {
    if (value instanceof Tensor) return { kind: 'view', view: this.#viewOf(value) }
    if (value instanceof ScalarSymbol) return { kind: 'scalarInput', input: value }
    return { kind: 'value', value }
  }

  #viewOf(tensor: Tensor): BufferView {
    const view = this.#views.get(tensor)
    if (view !== undefined) return view
    if (tensor.isFake) throw new InternalError(`inductor: a fake tensor of another graph reached node ${this.#origin}`)
    throw new UnsupportedError(`inductor: the graph holds a constant tensor at node ${this.#origin}; pass it as an input (compile() does so).`)
  }

  handle(op: OpDef, args: readonly Arg[]): Result {
    const rewritten = this.#rewrites.find(op, args)
    if (rewritten !== null) return withMode(this, rewritten)
    if (op.functional !== null)
      throw new UnsupportedError(`inductor: ${op.qualname} writes in place; functionalize the graph first (compile() does so).`)
    const template = op.template === null ? null : templateFor(op, args, (t) => this.#viewOf(t))
    if (template !== null) return this.#template(op, args, template)
    if (op.pointwise !== null) return this.#pointwise(op, args)
    if (op.reduction !== null) return this.#reduction(op, args)
    if (op.tags.has('view')) return this.#view(op, args)
    if (op.tags.has('creation') && (op.name === 'full' || op.name === 'range') && !args.some(isScalarSymbol)) return this.#fill(op, args)
    // A symbol for a number cannot go through the public functions that decompositions call.
    if (op.decompose !== null && !args.some(isScalarSymbol)) return withMode(this, () => (op.decompose as (...a: readonly Arg[]) => Result)(...args))
    return this.#extern(op, args)
  }

  #spec(op: OpDef, args: readonly Arg[]): TensorSpec | readonly TensorSpec[] {
    return (op.meta as (...a: readonly Arg[]) => TensorSpec | readonly TensorSpec[])(...args.map((a) => (isScalarSymbol(a) ? 1 : a)))
  }

  /** A new contiguous buffer and the fake tensor that stands for it. */
  #newBuffer(spec: TensorSpec): { buffer: Buffer; tensor: Tensor } {
    const tensor = Tensor.fake({ shape: spec.shape, dtype: spec.dtype })
    const buffer: Buffer = { name: `buf${this.#nodes.length}`, shape: spec.shape, dtype: spec.dtype, numel: tensor.numel, input: -1, producer: null }
    this.#views.set(tensor, { buffer, shape: tensor.shape, strides: tensor.strides, offset: 0, dtype: spec.dtype })
    return { buffer, tensor }
  }

  #add(node: IrNode, ...outs: readonly Buffer[]): void {
    this.#nodes.push(node)
    for (const out of outs) out.producer = node
  }

  /** A view operator gives a new window of the same buffer; where the layout does not allow one, a copy. */
  #view(op: OpDef, args: readonly Arg[]): Result {
    const source = this.#viewOf(args[0] as Tensor)
    const one = (spec: TensorSpec): Tensor => {
      const tensor = Tensor.fake(spec)
      this.#views.set(tensor, { buffer: source.buffer, shape: tensor.shape, strides: tensor.strides, offset: tensor.offset, dtype: tensor.dtype })
      return tensor
    }
    const spec = this.#spec(op, args)
    return Array.isArray(spec) ? (spec as readonly TensorSpec[]).map(one) : one(spec as TensorSpec)
  }

  #pointwise(op: OpDef, args: readonly Arg[]): Tensor {
    const rule = op.pointwise as NonNullable<OpDef['pointwise']>
    const spec = this.#spec(op, args) as TensorSpec
    const { buffer, tensor } = this.#newBuffer(spec)
    const { compute: dtype } = pointwiseDTypes(
      op,
      args.map((a) => (isScalarSymbol(a) ? 1.5 : a)),
    )
    const reads: Access[] = []
    const scalars: { input: ScalarInput; dtype: DType }[] = []
    // How each argument reaches `compute`: the position of a read, of a scalar, or the value itself.
    type Operand = (reads: readonly Expr[], scalars: readonly Expr[]) => unknown
    const operands = args.map((arg, i): Operand => {
      if (arg instanceof Tensor) {
        const at = reads.push(broadcastAccess(this.#viewOf(arg), spec.shape)) - 1
        return (r) => cast(r[at] as Expr, dtype)
      }
      if (isScalarSymbol(arg)) {
        const at = scalars.push({ input: arg, dtype }) - 1
        return (_, s) => s[at] as Expr
      }
      const baked = rule.baked?.includes(op.schema.args[i]?.name ?? '') === true
      if ((typeof arg === 'number' || typeof arg === 'boolean') && !baked) {
        const value = constant(dtype, dtype === 'float32' ? Math.fround(Number(arg)) : Number(arg))
        return () => value
      }
      return () => arg
    })
    let expensive = false
    const probe = rule.compute(
      ...operands.map((o) =>
        o(
          reads.map((r) => ({ kind: 'const', dtype: r.buffer.dtype, value: 0 })),
          scalars.map((s) => constant(s.dtype, 0)),
        ),
      ),
    )
    visit(probe, (e) => {
      if (e.kind === 'call' && EXPENSIVE.has(e.op)) expensive = true
    })
    const compute = (r: readonly Expr[], s: readonly Expr[]): Expr => cast(rule.compute(...operands.map((o) => o(r, s))), spec.dtype)
    this.#add({ kind: 'pointwise', origin: this.#origin, op: op.name, out: buffer, iter: spec.shape, reads, scalars, compute, expensive }, buffer)
    return tensor
  }

  /** Constants and ranges are computed where they are used. */
  #fill(op: OpDef, args: readonly Arg[]): Tensor {
    const spec = this.#spec(op, args) as TensorSpec
    const { buffer, tensor } = this.#newBuffer(spec)
    const [first, step] = args as readonly number[]
    const value = (v: unknown): Expr => constant(spec.dtype, spec.dtype === 'float32' ? Math.fround(Number(v)) : Number(v))
    const compute =
      op.name === 'full'
        ? (): Expr => value(args[1])
        : (_reads: readonly Expr[], _scalars: readonly Expr[], indices: readonly Expr[]): Expr =>
            call('add', value(first), call('mul', cast(indices[0] as Expr, spec.dtype), value(step)))
    this.#add(
      { kind: 'pointwise', origin: this.#origin, op: op.name, out: buffer, iter: spec.shape, reads: [], scalars: [], compute, expensive: false },
      buffer,
    )
    return tensor
  }

  #reduction(op: OpDef, args: readonly Arg[]): Result {
    const rule = op.reduction as NonNullable<OpDef['reduction']>
    const source = this.#viewOf(args[0] as Tensor)
    const spec = this.#spec(op, args) as TensorSpec
    const { buffer, tensor } = this.#newBuffer(spec)
    const dimAt = op.schema.args.findIndex((a) => a.name === 'dim')
    const dims = dimAt < 0 ? null : (args[dimAt] as readonly number[] | number | null)
    const rank = source.shape.length
    const list = dims === null ? [] : Array.isArray(dims) ? (dims as readonly number[]) : [dims as number]
    const chosen = new Set(list.map((d) => (d < 0 ? d + rank : d)))
    const reduced = source.shape.map((_, i) => chosen.size === 0 || chosen.has(i))
    const count = source.shape.reduce((n, size, i) => ((reduced[i] as boolean) ? n * size : n), 1)
    const dtype = rule.dtype(source.dtype)
    const finish = (acc: Expr): Expr => cast(rule.finish === undefined ? acc : rule.finish(acc, constant(dtype, count)), spec.dtype)
    const map = (x: Expr): Expr => (rule.map === undefined ? x : rule.map(x))
    const read: Access = { buffer: source.buffer, strides: source.strides, offset: source.offset }
    if (count === 1) {
      const compute = (r: readonly Expr[]): Expr => finish(map(cast(r[0] as Expr, dtype)))
      this.#add(
        {
          kind: 'pointwise',
          origin: this.#origin,
          op: op.name,
          out: buffer,
          iter: source.shape,
          reads: [read],
          scalars: [],
          compute,
          expensive: false,
        },
        buffer,
      )
    } else {
      this.#add(
        {
          kind: 'reduction',
          origin: this.#origin,
          op: op.name,
          out: buffer,
          iter: source.shape,
          reduced,
          reads: [read],
          dtype,
          combine: rule.combine,
          map,
          finish,
        },
        buffer,
      )
    }
    return tensor
  }

  #template(op: OpDef, args: readonly Arg[], rule: NonNullable<ReturnType<typeof templateFor>>): Result {
    const { buffer, tensor } = this.#newBuffer(rule.spec)
    this.#add(
      {
        kind: 'template',
        origin: this.#origin,
        op: op.name,
        out: buffer,
        iter: rule.iter,
        reads: rule.reads,
        build: rule.build,
        scratchBytes: rule.scratchBytes,
      },
      buffer,
    )
    void args
    return rule.finish === null ? tensor : withMode(this, () => (rule.finish as (t: Tensor) => Result)(tensor))
  }

  #extern(op: OpDef, args: readonly Arg[]): Result {
    const reads: Access[] = []
    const convert = (arg: Arg | ScalarSymbol): ExternArg => {
      if (arg instanceof Tensor) {
        const view = this.#viewOf(arg)
        reads.push(view)
        return { kind: 'view', view }
      }
      if (isScalarSymbol(arg)) return { kind: 'scalarInput', input: arg }
      if (Array.isArray(arg) && arg.some((a) => a instanceof Tensor || isScalarSymbol(a))) return { kind: 'list', items: arg.map(convert) }
      return { kind: 'value', value: arg }
    }
    const converted = args.map(convert)
    const spec = this.#spec(op, args)
    const many = Array.isArray(spec)
    const made = (many ? (spec as readonly TensorSpec[]) : [spec as TensorSpec]).map((s, i) => {
      const m = this.#newBuffer(s)
      return { ...m, buffer: Object.assign(m.buffer, { name: `${m.buffer.name}_${i}` }) }
    })
    const outs = made.map((m) => m.buffer)
    this.#add({ kind: 'extern', origin: this.#origin, op: op.name, def: op, args: converted, outs, reads }, ...outs)
    const tensors = made.map((m) => m.tensor)
    return many ? tensors : (tensors[0] as Tensor)
  }
}

const isScalarSymbol = (value: unknown): value is ScalarSymbol => value instanceof ScalarSymbol

/** Reads `view` for every element of `shape`: stride 0 along broadcast dimensions. */
function broadcastAccess(view: BufferView, shape: readonly number[]): Access {
  const lead = shape.length - view.shape.length
  const strides = shape.map((_, i) => (i < lead || view.shape[i - lead] === 1 ? 0 : (view.strides[i - lead] as number)))
  return { buffer: view.buffer, strides, offset: view.offset }
}

function visit(expr: Expr, see: (expr: Expr) => void): void {
  see(expr)
  if (expr.kind === 'call') for (const arg of expr.args) visit(arg, see)
  else if (expr.kind === 'cast') visit(expr.value, see)
}

/** Whether a view covers its buffer row-major from the start. */
export const coversBuffer = (view: BufferView): boolean =>
  view.offset === 0 &&
  view.shape.reduce((a, b) => a * b, 1) === view.buffer.numel &&
  contiguousStrides(view.shape).every((s, i) => s === view.strides[i] || view.shape[i] === 1)
