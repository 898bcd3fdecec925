// Shape and dtypes of a pointwise call: broadcasting and type promotion.
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { ArgumentError, DTypeError, InternalError } from '../../errors/index.ts'
import { dtypeInfo, isDType } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { SYMBOLIC, isSymbolic } from '../../protocol/index.ts'
import type { Size } from '../../protocol/index.ts'
import { Tensor, broadcastShapes } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { checkAdmits } from './admittedTypes.ts'
import { CommonType, accumulatedIn, asFloating, computedIn } from './promotion.ts'

/** What a launch needs to know of a pointwise operator. */
export type PointwiseOp = Pick<OpDef, 'id' | 'name' | 'qualname' | 'schema' | 'pointwise'>

/** The dtype that a pointwise call computes in, and that of its result. Throws DTypeError if the operator is not defined for the dtype of its operands. */
export function pointwiseDTypes(op: PointwiseOp, args: readonly Arg[]): { readonly compute: DType; readonly result: DType } {
  const rule = op.pointwise?.promotion
  if (rule === 'logical') return { compute: 'bool', result: 'bool' }
  if (rule === 'first') {
    const [self] = args
    if (!(self instanceof Tensor)) throw new InternalError(`${op.qualname}: argument 0 must be a tensor`)
    checkAdmits(op.qualname, op.pointwise?.dtypes, self.dtype)
    return { compute: accumulatedIn(self.dtype), result: self.dtype }
  }
  const operands = new CommonType()
  let optionFraction = false
  let named: DType | null = null
  let rounds = false
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (arg instanceof Tensor) operands.addTensor(arg)
    else if (typeof arg === 'number') {
      // Options such as alpha do not take part in promotion, nor do coefficients such as a negative slope.
      const declared = op.schema.args[i]
      if (declared?.kwargOnly === true) optionFraction ||= !Number.isInteger(arg)
      else if (declared?.type.base !== 'float') operands.addNumber(arg)
    } else if (isDType(arg)) named = arg
    else if (typeof arg === 'string') rounds = true
    else if (isSymbolic(arg)) operands.addSymbolic(arg[SYMBOLIC])
  }
  const common = operands.dtype
  checkAdmits(op.qualname, op.pointwise?.dtypes, common)
  const lifted = rule === 'float' || (rule === 'quotient' && !rounds) ? asFloating(common) : common
  if (optionFraction && !dtypeInfo[lifted].floating)
    throw new DTypeError(
      `${op.qualname}: integer tensors take integer options only (alpha, value), got a fraction; convert the tensors with float() first.`,
    )
  if (rule === 'to') return { compute: computedIn(lifted), result: named ?? lifted }
  // Comparisons compare values of the common dtype, to which a number is rounded first.
  if (rule === 'compare') return { compute: lifted === 'bool' ? 'int32' : lifted, result: 'bool' }
  return { compute: computedIn(lifted), result: lifted }
}

/** Shape and dtype of a pointwise call. Throws ShapeError if the operands do not broadcast, ArgumentError if none of them is a tensor. */
export function pointwiseSpec(op: PointwiseOp, args: readonly Arg[]): TensorSpec<Size> {
  let shape: readonly Size[] | null = null
  for (const arg of args) if (arg instanceof Tensor) shape = shape === null ? arg.symSizes : broadcastShapes(op.qualname, shape, arg.symSizes)
  if (shape === null)
    throw new ArgumentError(
      `${op.qualname}: one of the arguments must be a Tensor, got numbers only. Make one of them a tensor: torch.tensor(${String(args[0])}).`,
    )
  return { shape, dtype: pointwiseDTypes(op, args).result }
}
