// Which dimensions a reduction walks, and the shape of its result.
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { formatShape, wrapDim } from '../../tensor/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'

/** For each dimension of the input, whether it is reduced; and whether reduced dimensions stay with size 1. */
export function reducedDims(op: OpDef, args: readonly Arg[]): { readonly reduced: readonly boolean[]; readonly keepdim: boolean } {
  const self = args[0] as Tensor
  const at = op.schema.args.findIndex((a) => a.name === 'dim')
  const keep = op.schema.args.findIndex((a) => a.name === 'keepdim')
  const dim = at < 0 ? null : (args[at] as number | readonly number[] | null)
  const list = dim === null ? [] : typeof dim === 'number' ? [dim] : dim
  const reduced = self.shape.map(() => list.length === 0)
  for (const d of list) {
    const wrapped = wrapDim(op.qualname, d, self.ndim)
    if (self.ndim > 0 && reduced[wrapped] === true) throw new ShapeError(`${op.qualname}: dim ${d} appears twice in [${list.join(', ')}].`)
    reduced[wrapped] = true
  }
  return { reduced: reduced.slice(0, self.ndim), keepdim: keep >= 0 && args[keep] === true }
}

/** Shape and dtype of a reduction's result. */
export function reductionSpec(op: OpDef, args: readonly Arg[]): TensorSpec {
  const self = args[0] as Tensor
  const { reduced, keepdim } = reducedDims(op, args)
  const shape = self.shape.flatMap((size, i) => (reduced[i] === true ? (keepdim ? [1] : []) : [size]))
  const rule = op.reduction as NonNullable<OpDef['reduction']>
  if ((rule.combine === 'max' || rule.combine === 'min') && self.numel === 0 && !shape.includes(0)) {
    throw new ArgumentError(`${op.qualname}: no elements have no extreme value; self has shape ${formatShape(self.shape)}.`)
  }
  return { shape, dtype: rule.dtype(self.dtype) }
}
