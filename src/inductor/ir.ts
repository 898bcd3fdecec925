// Inductor's IR: what each operator of a graph computes, as loops over buffers, before fusion. `lowering.ts` makes it from a graph,
// `scheduler.ts` groups it, `codegen.ts` and `templates.ts` turn the groups into kernels.
import type { Arg, OpDef } from '../dispatch/index.ts'
import type { Combine, DType, Expr, GemmSpec } from '../kernels/index.ts'

/** A piece of memory of the compiled program: an input, or the contiguous result of one node. */
export interface Buffer {
  readonly name: string
  readonly shape: readonly number[]
  readonly dtype: DType
  readonly numel: number
  /** Placeholder position for inputs, else -1. */
  readonly input: number
  /** The node that computes it; null for inputs. */
  producer: IrNode | null
}

/** How a loop nest reads a buffer: offset + sum of index * stride, in elements, one stride per iteration dimension. */
export interface Access {
  readonly buffer: Buffer
  readonly strides: readonly number[]
  readonly offset: number
}

/** A scalar that arrives with each call (a learning rate, a random offset): the placeholder's position. */
export interface ScalarInput {
  readonly placeholder: number
}

interface NodeBase {
  /** Names of the graph nodes that it came from, and of the operator, for printing. */
  readonly origin: string
  readonly op: string
}

/** out[i] = compute(reads...) for every i of `iter` (the shape of `out`). */
export interface PointwiseNode extends NodeBase {
  readonly kind: 'pointwise'
  readonly out: Buffer
  readonly iter: readonly number[]
  readonly reads: readonly Access[]
  readonly scalars: readonly { readonly input: ScalarInput; readonly dtype: DType }[]
  readonly compute: (reads: readonly Expr[], scalars: readonly Expr[], indices: readonly Expr[]) => Expr
  /** Dear to compute twice (exp, tanh, …): stored rather than recomputed when a later loop of the same kernel needs it. */
  readonly expensive: boolean
}

/** out[kept] = finish(combine over the reduced dimensions of map(read)). */
export interface ReductionNode extends NodeBase {
  readonly kind: 'reduction'
  readonly out: Buffer
  /** The input's shape. */
  readonly iter: readonly number[]
  readonly reduced: readonly boolean[]
  readonly reads: readonly [Access]
  readonly dtype: DType
  readonly combine: Combine
  readonly map: (x: Expr) => Expr
  readonly finish: (acc: Expr) => Expr
}

/** A matrix product or convolution: a kernel template whose result can pass through fused pointwise nodes before it is stored. */
export interface TemplateNode extends NodeBase {
  readonly kind: 'template'
  readonly out: Buffer
  /** The result as the template's loops walk it: batch loops, rows, columns. Its product is out.numel. */
  readonly iter: readonly number[]
  readonly reads: readonly Access[]
  /** The template without its epilogue; the parameters are the reads in order, then what the epilogue needs, then scratch. */
  readonly build: (io: TemplateIo) => GemmSpec
  readonly scratchBytes: number
}

/** What a template gets when it is emitted. */
export interface TemplateIo extends Pick<GemmSpec, 'batch' | 'rows' | 'cols' | 'epilogue' | 'params'> {
  readonly name: string
  readonly buffers: readonly import('../kernels/index.ts').BufferParam[]
}

/** An operator without a lowering: its eager kernel is called on views of the buffers. */
export interface ExternNode extends NodeBase {
  readonly kind: 'extern'
  readonly def: OpDef
  readonly args: readonly ExternArg[]
  readonly outs: readonly Buffer[]
  readonly reads: readonly Access[]
}

export type ExternArg =
  | { readonly kind: 'view'; readonly view: BufferView }
  | { readonly kind: 'scalarInput'; readonly input: ScalarInput }
  | { readonly kind: 'value'; readonly value: Arg }
  | { readonly kind: 'list'; readonly items: readonly ExternArg[] }

/** A strided window of a buffer: what a tensor of the graph is at this level. */
export interface BufferView extends Access {
  readonly shape: readonly number[]
  readonly dtype: DType
}

export type IrNode = PointwiseNode | ReductionNode | TemplateNode | ExternNode

/** The whole program. */
export interface IrGraph {
  readonly inputs: readonly (Buffer | null)[]
  readonly nodes: readonly IrNode[]
  /** One per graph output: a view, a scalar passed through, or a constant (null). */
  readonly outputs: readonly IrOutput[]
}

export type IrOutput =
  | { readonly kind: 'view'; readonly view: BufferView }
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'scalarInput'; readonly input: ScalarInput }

/** The buffers that a node writes. */
export const outputsOf = (node: IrNode): readonly Buffer[] => (node.kind === 'extern' ? node.outs : [node.out])
