// Shape and dtypes of a pointwise call: broadcasting and type promotion.
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { DTypeError, InternalError } from '../../errors/index.ts'
import { dtypeInfo, isDType, promoteTypes } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { Tensor, broadcastShapes } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'

/** What a launch needs to know of a pointwise operator. */
export type PointwiseOp = Pick<OpDef, 'id' | 'name' | 'qualname' | 'schema' | 'pointwise'>

const kindOf = (dtype: DType): number => (dtype === 'bool' ? 0 : dtype === 'int32' ? 1 : 2)

/** Computations on bool use int32, and the result is cast to bool at the end: true + true is 2, then true. */
const arithmetic = (dtype: DType): DType => (dtype === 'bool' ? 'int32' : dtype)

/**
 * The dtype that a pointwise call computes in, and that of its result. A tensor without dimensions, or a number, lifts only the kind
 * (bool, integer, float).
 */
export function pointwiseDTypes(op: PointwiseOp, args: readonly Arg[]): { readonly compute: DType; readonly result: DType } {
  const rule = op.pointwise?.promotion
  if (rule === 'logical') return { compute: 'bool', result: 'bool' }
  if (rule === 'first') {
    const [self] = args
    if (!(self instanceof Tensor)) throw new InternalError(`${op.qualname}: argument 0 must be a tensor`)
    return { compute: self.dtype, result: self.dtype }
  }
  let dims: DType | null = null
  let zero: DType | null = null
  let number = false
  let fraction = false
  let optionFraction = false
  let named: DType | null = null
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (arg instanceof Tensor) {
      if (arg.ndim > 0) dims = dims === null ? arg.dtype : promoteTypes(dims, arg.dtype)
      else zero = zero === null ? arg.dtype : promoteTypes(zero, arg.dtype)
    } else if (typeof arg === 'number') {
      // Options such as alpha do not take part in promotion.
      if (op.schema.args[i]?.kwargOnly === true) optionFraction ||= !Number.isInteger(arg)
      else {
        number = true
        if (!Number.isInteger(arg)) fraction = true
      }
    } else if (isDType(arg)) named = arg
  }
  let common: DType = dims ?? zero ?? 'float32'
  if (dims !== null && zero !== null && kindOf(zero) > kindOf(dims)) common = zero
  if (number && common === 'bool') common = 'int32'
  if ((fraction || rule === 'float') && !dtypeInfo[common].floating) common = 'float32'
  if (optionFraction && !dtypeInfo[common].floating)
    throw new DTypeError(
      `${op.qualname}: integer tensors take integer options only (alpha, value), got a fraction; convert the tensors with float() first.`,
    )
  if (rule === 'to') return { compute: arithmetic(common), result: named ?? common }
  return { compute: arithmetic(common), result: rule === 'compare' ? 'bool' : common }
}

/** Shape and dtype of a pointwise call. Throws ShapeError if the operands do not broadcast. */
export function pointwiseSpec(op: PointwiseOp, args: readonly Arg[]): TensorSpec {
  let shape: readonly number[] | null = null
  for (const arg of args) if (arg instanceof Tensor) shape = shape === null ? arg.shape : broadcastShapes(op.qualname, shape, arg.shape)
  return { shape: shape ?? [], dtype: pointwiseDTypes(op, args).result }
}
