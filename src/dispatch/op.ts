// An operator as the dispatcher knows it: one object with all facts. ops/defineOp.ts makes it from a declaration.
import type { Combine, DType, Expr } from '../kernels/index.ts'
import type { FunctionSchema, TargetFunction } from '../protocol/index.ts'
import type { Tensor, TensorSpec } from '../tensor/index.ts'

/** An argument after normalization: one per schema argument, in schema order, defaults filled in. Dtypes are strings. */
export type Arg = Tensor | number | boolean | string | null | readonly Arg[]

/** What an operator returns: a tensor, or several (PyTorch's tuple). */
export type Result = Tensor | readonly Tensor[]

export type OpTag = 'pointwise' | 'reduction' | 'view' | 'mutates' | 'random' | 'creation' | 'template'

/** A derivative: the vector-Jacobian product, written with operators so that it can itself be traced. */
export interface DerivativeContext {
  /** The call's arguments, in schema order. */
  readonly args: readonly Arg[]
  /** The call's results. */
  readonly outputs: readonly Tensor[]
  /** For each argument position, whether a gradient is wanted (false for non-tensors; for a Tensor[] argument, whether any is). */
  readonly needs: readonly boolean[]
}

/**
 * Gradients for each argument position (null where none; an array for a Tensor[] argument).
 * `grads[i]` is the gradient of output i, or null when that output does not contribute.
 */
export type Derivative = (grads: readonly (Tensor | null)[], ctx: DerivativeContext) => readonly (Tensor | null | readonly (Tensor | null)[])[]

/** How a pointwise operator chooses the dtype it computes in and returns. */
export type PromotionRule =
  | 'promote' // the common dtype of the operands (a float scalar lifts integers to float32)
  | 'float' // as promote, and integers are lifted to float32 (div, exp, …)
  | 'compare' // computes in the common dtype, returns bool
  | 'logical' // operands as bool, returns bool
  | 'first' // the dtype of argument 0 (what in-place copies and fills compute)
  | 'to' // computes as promote, returns the dtype that an argument names

export interface PointwiseRule {
  readonly promotion: PromotionRule
  /** Computes one element. `args` follow the schema: an Expr for tensors and scalars, the raw value for anything else. */
  readonly compute: (...args: readonly PointwiseArg[]) => Expr
  /** Names of scalar arguments that are baked into the kernel as constants, because `compute` looks at their value. */
  readonly baked?: readonly string[]
}
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- `compute` functions name their own parameter types
export type PointwiseArg = any

/** A reduction over the argument `dim` (null or [] = all dimensions), with `keepdim`. */
export interface ReductionRule {
  readonly combine: Combine
  /** dtype it accumulates in and returns, from the input's (sum of bool is int32). */
  readonly dtype: (input: DType) => DType
  /** Applied to each element before it is combined. */
  readonly map?: (x: Expr) => Expr
  /** Applied to the result; `count` is the number of combined elements as an Expr of the accumulator's dtype. */
  readonly finish?: (acc: Expr, count: Expr) => Expr
}

export interface OpDef {
  /** Small dense integer, unique per process. */
  readonly id: number
  /** 'relu'; the overload name is not part of it unless two overloads exist ('sum.dim_IntList'). */
  readonly name: string
  /** Qualified name of the public function, e.g. 'torch.relu'. */
  readonly qualname: string
  readonly schema: FunctionSchema
  readonly tags: ReadonlySet<OpTag>
  /** The public function, torch.relu; call_function targets in graphs are these. */
  readonly fn: TargetFunction
  /** Output specs from the arguments, without data. Throws ShapeError/DTypeError on bad arguments: it is the argument check of every mode. */
  readonly meta: (...args: never[]) => TensorSpec | readonly TensorSpec[]
  /** Eager implementation on real tensors; arguments are already checked by nobody: call meta (or launch helpers that do). */
  readonly kernel: ((...args: never[]) => Result) | null
  /** In terms of other operators. Without `derivative` the operator is composite: it is decomposed above autograd and the modes never see it. */
  readonly decompose: ((...args: never[]) => Result) | null
  readonly derivative: Derivative | null
  readonly pointwise: PointwiseRule | null
  readonly reduction: ReductionRule | null
  /** For in-place operators: the functional operator with the same arguments; the result is written to argument 0. */
  readonly functional: OpDef | null
  /** Scalar argument names that differ from call to call by design (random offsets): capture makes them inputs at once. */
  readonly dynamicScalars: readonly string[]
  /** Kernel template that inductor uses, e.g. 'matmul', 'convolution'. */
  readonly template: string | null
}
