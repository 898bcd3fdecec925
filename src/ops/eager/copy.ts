// Copies elements between tensors of one shape, any layouts and dtypes.
import { isComplexDType } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import { parseSchema } from '../../protocol/index.ts'
import { pairsOf } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { launchPointwise } from './pointwise.ts'
import type { PointwiseOp } from './pointwiseTypes.ts'

/** The identity as a pointwise operator. It is only launched, never dispatched. */
const identity: PointwiseOp = {
  id: -1,
  name: 'copy',
  qualname: 'torch.clone',
  schema: parseSchema('copy(Tensor self) -> Tensor'),
  pointwise: { promotion: 'promote', compute: (x: Expr) => x },
}

/** Writes the elements of `source` (cast) into `target`, which has the same shape. Both are complex, or neither. */
export function copyInto(source: Tensor, target: Tensor): void {
  if (isComplexDType(target.dtype)) launchPointwise(identity, [pairsOf(source)], pairsOf(target))
  else launchPointwise(identity, [source], target)
  target.storage?.noteWrite()
}
