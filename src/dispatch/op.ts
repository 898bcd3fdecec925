// An operator as the dispatcher sees it: one object with everything that is known about it. ops/define/defineOp.ts builds it from a declaration.
import type { Combine, DType, Expr } from '../kernels/index.ts'
import type { FunctionSchema, Size, SymbolicSize, TargetFunction } from '../protocol/index.ts'
import type { Tensor, TensorSpec } from '../tensor/index.ts'
import type { AutocastClass, BatchRule, OnnxRule } from './facts.ts'

/** An argument after normalization: one per schema argument, in schema order, defaults filled in. Dtypes are strings. */
export type Arg = Tensor | number | SymbolicSize | boolean | string | null | readonly Arg[]

/** What an operator returns: a tensor, or several (a tuple in PyTorch). */
export type Result = Tensor | readonly Tensor[]

/** What an operator's `meta` returns: one spec per result. */
export type ResultSpec<S extends Size = Size> = TensorSpec<S> | readonly TensorSpec<S>[]

/** What an operator is like, for passes and tests that treat such operators alike. */
export type OpTag =
  | 'pointwise'
  | 'reduction'
  | 'view'
  | 'mutates'
  | 'random'
  | 'creation'
  /** Creates a tensor with one value, `fill_value`, everywhere. */
  | 'fill'
  /** Creates `start + i * step` at each position i. */
  | 'range'
  /** Divides its first argument by its second; the result is the quotient, rounded or not, or what is left over. */
  | 'quotient'
  /** Takes a number in place of its first tensor, as well as of the others: 2 ^ x. */
  | 'numberFirst'
  /** Compilers have a kernel of their own for it: a graph keeps it whole rather than decompose it. */
  | 'template'
  /** Its eager kernel does at once what its decomposition does in several passes: compilers call the kernel. */
  | 'fusedKernel'
  /** Backward hands out the gradient of its last argument first: PyTorch computes it as another operator, whose first argument that is. */
  | 'lastGradientFirst'
  /** Its kernel throws for some data, such as a singular matrix: capture computes it where it is called, and so the program can catch the error there. */
  | 'rejectsData'
  /** Its result is its argument on the same memory, in another dtype; nothing else uses the argument, so that it is no view. */
  | 'takesMemory'
  /** Its result has a size that only the data tells. */
  | 'dataShape'
  /** Computed by a program's own JavaScript, which may look at numbers: they stay constants of a captured graph. */
  | 'custom'

/** The call whose derivative is wanted. */
export interface DerivativeContext {
  /** The call's arguments, in schema order. */
  readonly args: readonly Arg[]
  /** The call's results. */
  readonly outputs: readonly Tensor[]
  /** For each argument, whether its gradient is wanted (false for anything but tensors; for a list of tensors, whether any of them wants one). */
  readonly needs: readonly boolean[]
}

/** Gradients of the arguments: null where there is none, an array for a list of tensors. */
export type Gradients = readonly (Tensor | null | readonly (Tensor | null)[])[]

/**
 * The vector-Jacobian product of an operator, written with operators so that it can itself be traced.
 * `grads[i]` is the gradient of output i, or null if the loss does not depend on that output.
 */
export type Derivative = (grads: readonly (Tensor | null)[], ctx: DerivativeContext) => Gradients

/** How a pointwise operator chooses the dtype it computes in and returns. */
export type PromotionRule =
  | 'promote' // the common dtype of the operands (a fraction lifts integers to the default dtype)
  | 'float' // as promote, and integers are lifted to the default dtype (exp, …)
  | 'quotient' // as float, but as promote if an argument names a rounding mode
  | 'compare' // computes in the common dtype, returns bool
  | 'logical' // operands as bool, returns bool
  | 'first' // the dtype of argument 0 (what in-place copies and fills compute)
  | 'to' // computes as promote, returns the dtype that an argument names

/** The dtypes that an operator is defined for, if not all: all but bool, integers and bool, integers, floating-point ones, only int32. */
export type DTypeSet = 'numeric' | 'integral' | 'integer' | 'floating' | 'int32'

/** What `compute` gets for an argument: an Expr for a tensor or a number, the value itself for anything else. */
export type PointwiseArg = Expr | Arg

/** How an operator computes each element from those of its operands. */
export interface PointwiseRule {
  readonly promotion: PromotionRule
  /** The common dtypes of operands that it is defined for. Default: all. */
  readonly dtypes?: DTypeSet
  /** Names of numeric arguments that `compute` gets as numbers instead of Exprs, because it looks at their values. */
  readonly baked?: readonly string[]
  /** Computes one element; the parameters follow the schema. (A method, so that a rule may name the narrower types that its schema guarantees.) */
  compute(...args: readonly PointwiseArg[]): Expr
}

/** A reduction over the argument `dim` (null or [] = all dimensions), with `keepdim`. */
export interface ReductionRule {
  readonly combine: Combine
  /** The dtypes that it is defined for. Default: all. */
  readonly dtypes?: DTypeSet
  /** The dtype that it returns, from the input's (sum of bool is int64). float16 and bfloat16 are accumulated in float32. */
  readonly dtype: (input: DType) => DType
  /** Applied to each element before it is combined. */
  readonly map?: (x: Expr) => Expr
  /** Applied to the result; `count` is the number of combined elements as an Expr of the accumulator's dtype. */
  readonly finish?: (acc: Expr, count: Expr) => Expr
}

/** The indices among an operator's arguments. A capture checks them at the call, where the kernel would have thrown. */
export interface IndexRule {
  /** The name of the argument that holds them. */
  readonly argument: string
  /** Throws ArgumentError if one is out of range. The arguments are the call's. */
  check(...args: readonly Arg[]): void
}

/** An operator with everything that is known of it. */
export interface OpDef {
  /** Small dense integer, unique per process. */
  readonly id: number
  /** The schema's name without namespace and overload: 'relu', 'sum'. */
  readonly name: string
  /** Qualified name of the public function, e.g. 'torch.relu'. */
  readonly qualname: string
  readonly schema: FunctionSchema
  readonly tags: ReadonlySet<OpTag>
  /** The public function, torch.relu; call_function targets in graphs are these. */
  readonly fn: TargetFunction
  /** Whether Tensor has it as a method too. */
  readonly method: boolean
  /** Shapes and dtypes of the results, without reading data. Throws ShapeError or DTypeError for bad arguments: every mode relies on this check. */
  readonly meta: (...args: readonly Arg[]) => ResultSpec
  /** Eager implementation on real tensors. The arguments are unchecked: a kernel calls its `meta`, or a launch helper that does. */
  readonly kernel: ((...args: readonly Arg[]) => Result) | null
  /** In terms of other operators. Without `derivative` the operator is composite: it is decomposed above autograd, and modes never see it. */
  readonly decompose: ((...args: readonly Arg[]) => Result) | null
  readonly derivative: Derivative | null
  readonly pointwise: PointwiseRule | null
  readonly reduction: ReductionRule | null
  /** For in-place operators: the functional operator with the same arguments, whose result is written to argument 0. */
  readonly functional: OpDef | null
  /** The operator of which this one is another name, such as torch.mul for torch.multiply; null for others. */
  readonly aliasOf: OpDef | null
  /** For views: argument 0 with `value` in the place of the view. Null for operators whose views cannot be written in a trace. */
  readonly scatter: ((value: Tensor, ...args: readonly Arg[]) => Tensor) | null
  /** Names of numeric arguments that differ from call to call by design (random offsets): capture makes them inputs at once. */
  readonly dynamicScalars: readonly string[]
  readonly indices: IndexRule | null
  /** How vmap computes it for a batch; null if that follows from how it computes. */
  readonly vmap: BatchRule | null
  /** How it becomes nodes of an ONNX model; null if that follows from how it computes. */
  readonly onnx: OnnxRule | null
  readonly autocast: AutocastClass
  /** The arguments that the operator gets for those of a call: the same list, or another one, such as with `self` in the dtype that an argument names. */
  readonly prepare: ((args: readonly Arg[]) => readonly Arg[]) | null
  /** URL of the module that registers the operator when imported; null for tensorfx's own. */
  readonly module: string | null
}
