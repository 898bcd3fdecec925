// Inductor's IR: what each operator of a graph computes, as loops over buffers, before fusion. `lowering.ts` makes it from a graph, `verifyIr.ts` is its
// specification and `print.ts` its text; `scheduler.ts` groups it, and `emit/` turns the groups into kernels.
import { drawNumbers } from '../aot/trace/draws.ts'
import type { OpDef } from '../dispatch/index.ts'
import type { BufferParam, Combine, ConvolutionSizes, DType, Expr, LoopVar, Param, Stmt, ScheduledKernel } from '../kernels/index.ts'
import { isFlatIdentity } from './spaces.ts'

/** A piece of memory of the compiled program: an input, or the contiguous result of one node. */
export interface Buffer {
  readonly name: string
  readonly shape: readonly number[]
  readonly dtype: DType
  readonly numel: number
  /** Set if the program has it as complex numbers, whose pairs are the last dimension here. */
  readonly isComplex?: true
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

/** A strided window of a buffer: what a tensor of the graph becomes in the IR. */
export interface BufferView extends Access {
  readonly shape: readonly number[]
  readonly dtype: DType
}

/** A scalar that is passed at each call (a learning rate, a random offset): the placeholder's position. */
export interface ScalarInput {
  readonly placeholder: number
}

interface NodeBase {
  /** The graph node that it came from. */
  readonly origin: string
  /** Name of the operator. */
  readonly op: string
}

/** out[i] = compute(reads...) for every i of `iter` (the shape of `out`). */
export interface PointwiseNode extends NodeBase {
  readonly kind: 'pointwise'
  readonly out: Buffer
  readonly iter: readonly number[]
  readonly reads: readonly Access[]
  readonly scalars: readonly { readonly input: ScalarInput; readonly dtype: DType }[]
  /** `indices` are the element's index in each dimension; empty unless `usesIndices`. */
  readonly compute: (reads: readonly Expr[], scalars: readonly Expr[], indices: readonly Expr[]) => Expr
  /** Whether `compute` uses the indices, as ranges do. The dimensions then must not be merged. */
  readonly usesIndices: boolean
  /** Expensive to recompute (exp, tanh, …): stored and read back where a later loop of the same kernel needs it. */
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
  /** The dtype in which the elements are combined. */
  readonly dtype: DType
  readonly combine: Combine
  readonly map: (x: Expr) => Expr
  readonly finish: (acc: Expr) => Expr
}

/** A kernel template (a matrix product, a convolution, …), bound to one problem. */
export interface TemplateNode extends NodeBase {
  readonly kind: 'template'
  readonly out: Buffer
  /** The result as the template's loops walk it, outermost first; its product is out.numel. */
  readonly iter: readonly number[]
  readonly reads: readonly BufferView[]
  /** Name of the template. */
  readonly template: string
  /** How many products are added up to each element of the result. */
  readonly depth: number
  /** Whether pointwise nodes may be fused into it: they compute on each element of the result before it is stored. */
  readonly fuses: boolean
  /** What it adds up; null if it does not say. */
  readonly sum: TemplateSum | null
  readonly emit: (io: TemplateIo) => ScheduledKernel
}

/** Where the elements of images or weights lie: that of (outer, channel, row, col) at the sum of `start` and the indices times these strides. */
export interface WindowLayout {
  readonly start: number
  readonly outer: number
  readonly channel: number
  readonly row: number
  readonly col: number
}

/**
 * What a template adds up for an element of its result, as data, for emitters that have no schedule for it. `matrices`: the products of a row of the first read
 * and a column of the second, whose last two dimensions are rows and columns. `windows`: those of the window of an image (the second read) and the weight of a feature (the first); with
 * `transposed` the gradient of that. `weights`: those of a pixel of the gradient (the first read) and of the image that a weight meets there (the second). Sizes are those of one of the `groups`.
 */
export type TemplateSum =
  | { readonly kind: 'matrices' }
  | {
      readonly kind: 'windows' | 'weights'
      readonly sizes: ConvolutionSizes
      readonly groups: number
      readonly transposed: boolean
      readonly first: WindowLayout
      readonly second: WindowLayout
    }

/** What a template needs to make its kernel. */
export interface TemplateIo {
  /** The name of the kernel. */
  readonly name: string
  /** The loops over `iter`, outermost first. */
  readonly loops: readonly LoopVar[]
  /** The parameters of what the template reads, in order. */
  readonly buffers: readonly BufferParam[]
  /** The statements for one element of the result: the fused nodes and the stores, at the current values of `loops`. */
  readonly epilogue: (value: Expr) => readonly Stmt[]
  /** The parameters of the kernel in call order. A template that needs scratch memory adds `scratch` at the end. */
  readonly params: readonly Param[]
  readonly scratch: BufferParam
}

/** The call of an eager kernel on views of the buffers. */
export interface ExternCall {
  readonly def: OpDef
  readonly args: readonly ExternArg[]
  readonly outs: readonly Buffer[]
}

/** An operator without a lowering: its eager kernel is called. */
export interface ExternNode extends NodeBase, ExternCall {
  readonly kind: 'extern'
  readonly reads: readonly Access[]
  /** Why no loops compute it. */
  readonly reason: string
}

export type ExternArg =
  | { readonly kind: 'view'; readonly view: BufferView }
  | { readonly kind: 'scalarInput'; readonly input: ScalarInput }
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'list'; readonly items: readonly ExternArg[] }

/** The nodes that become loops which inductor itself emits. */
type LoopNode = PointwiseNode | ReductionNode

export type IrNode = LoopNode | TemplateNode | ExternNode

/** The whole program. */
export interface IrGraph {
  /** By placeholder position; null for a scalar. */
  readonly inputs: readonly (Buffer | null)[]
  /** In an order in which they can be computed. */
  readonly nodes: readonly IrNode[]
  /** One per graph output. */
  readonly outputs: readonly IrOutput[]
  /** Operators that were computed as others, by name. */
  readonly rewritten: readonly string[]
  /** How many random draws it makes. Its last inputs, four for each, are their seeds and offsets. */
  readonly draws: number
}

/** The inputs of a run of a program with that many random draws: the `count` ones that it is given, and numbers that are drawn for it. */
export function withDraws(draws: number, count: number, given: readonly unknown[]): readonly unknown[] {
  return draws === 0 ? given : [...Array.from({ length: count }, (_, i) => given[i]), ...drawNumbers(draws)]
}

/** A view, a constant, or a scalar input passed through. */
export type IrOutput =
  | { readonly kind: 'view'; readonly view: BufferView }
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'scalarInput'; readonly input: ScalarInput }

/** The buffers that a node writes. */
export const outputsOf = (node: IrNode): readonly Buffer[] => (node.kind === 'extern' ? node.outs : [node.out])

/** The buffers that the program returns, whole or in part. */
export const returnedBuffers = (graph: IrGraph): readonly Buffer[] => graph.outputs.flatMap((o) => (o.kind === 'view' ? [o.view.buffer] : []))

/** Whether a view covers its buffer row-major from the start. */
export const coversBuffer = (view: BufferView): boolean => isFlatIdentity(view.shape, view.strides, view.offset, view.buffer.numel)

/** The program without the nodes that no output needs. Those that write to their inputs stay. */
export function withoutDeadNodes(graph: IrGraph): IrGraph {
  const live = new Set<IrNode>()
  const stack = returnedBuffers(graph).flatMap(({ producer }) => producer ?? [])
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (live.has(node)) continue
    live.add(node)
    for (const { buffer } of node.reads) if (buffer.producer !== null) stack.push(buffer.producer)
  }
  return { ...graph, nodes: graph.nodes.filter((node) => live.has(node) || (node.kind === 'extern' && node.def.tags.has('mutates'))) }
}
