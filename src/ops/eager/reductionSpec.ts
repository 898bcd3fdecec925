// Which dimensions a reduction walks, and the shape of its result.
import { isArgList, tensorAt } from '../../dispatch/index.ts'
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { ArgumentError, InternalError, ShapeError } from '../../errors/index.ts'
import type { Size } from '../../protocol/index.ts'
import { formatShape, hasNoElements, sizeEq, wrapDim } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { checkAdmits } from './admittedTypes.ts'

/** What a launch needs to know of a reduction. */
export type ReductionOp = Pick<OpDef, 'id' | 'name' | 'qualname' | 'schema' | 'reduction'>

/** For each dimension of the input, whether it is reduced; and whether reduced dimensions stay with size 1. */
export function reducedDims(op: ReductionOp, args: readonly Arg[]): { readonly reduced: readonly boolean[]; readonly keepdim: boolean } {
  const self = tensorAt(args, 0)
  const [, dim = null, keepdim = false] = args
  const list = isArgList(dim) ? dim : dim === null ? [] : [dim]
  const reduced = self.symSizes.map(() => list.length === 0)
  for (const d of list) {
    const wrapped = wrapDim(op.qualname, Number(d), self.ndim)
    if (self.ndim === 0) continue
    if (reduced[wrapped] === true) throw new ShapeError(`${op.qualname}: dim ${String(d)} appears twice in [${list.join(', ')}].`)
    reduced[wrapped] = true
  }
  return { reduced, keepdim: keepdim === true }
}

/** Shape and dtype of a reduction's result. */
export function reductionSpec(op: ReductionOp, args: readonly Arg[]): TensorSpec<Size> {
  const self = tensorAt(args, 0)
  const { reduced, keepdim } = reducedDims(op, args)
  const sizes = self.symSizes
  const shape = sizes.flatMap((size, i) => (reduced[i] === true ? (keepdim ? [1] : []) : [size]))
  const rule = op.reduction
  if (rule === null) throw new InternalError(`operator ${op.qualname} has no reduction rule`)
  checkAdmits(op.qualname, rule.dtypes, self.dtype)
  if (
    (rule.combine === 'max' || rule.combine === 'min') &&
    sizes.some((size, i) => reduced[i] === true && sizeEq(size, 0)) &&
    !hasNoElements(shape)
  ) {
    throw new ArgumentError(
      `${op.qualname}: self has no elements (shape ${formatShape(sizes)}), so it has no extreme value; reduce a tensor with elements.`,
    )
  }
  return { shape, dtype: rule.dtype(self.dtype) }
}
