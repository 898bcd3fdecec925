// One declaration per operator. From it come: the public function and the Tensor method, argument checks and their errors, the target name
// that graphs print, meta (fake tensors), autograd, decompositions, inductor's lowering, and the row of the coverage table.
//
//     export const relu = defineOp<(self: Tensor) => Tensor>({
//       schema: 'relu(Tensor self) -> Tensor',
//       method: true,
//       pointwise: { promotion: 'promote', compute: (x: Expr) => call('max', x, constant(x.dtype, 0)) },
//       derivative: ([g], { outputs: [out] }) => [thresholdBackward(g, out, 0)],
//     })
//     declare module '../tensor/tensor.ts' { interface Tensor { relu(): Tensor } }
import type { Derivative, OpDef, OpTag, PointwiseRule, ReductionRule, Result } from '../dispatch/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import type { TensorSpec } from '../tensor/index.ts'

export interface OpDeclaration {
  /** PyTorch's schema. Arguments after `*` are given in the trailing options object; the others by position or in the options object. */
  readonly schema: string
  /** Where the public function lives: 'torch' (default), 'torch.nn.functional', 'torch.ops.tensorfx' (internal primitives, e.g. backward operators). */
  readonly namespace?: string
  /** Install as a method of Tensor under the schema's name. */
  readonly method?: boolean
  readonly tags?: readonly OpTag[]
  /** Derived for pointwise and reduction operators and from `functional`. */
  readonly meta?: (...args: never[]) => TensorSpec | readonly TensorSpec[]
  readonly pointwise?: PointwiseRule
  readonly reduction?: ReductionRule
  readonly kernel?: (...args: never[]) => Result
  readonly decompose?: (...args: never[]) => Result
  readonly derivative?: Derivative
  /** For `relu_`: the functional operator's public function. */
  readonly functional?: TargetFunction
  readonly dynamicScalars?: readonly string[]
  readonly template?: string
}

export type { OpDef }
