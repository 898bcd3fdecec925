// Copies elements between tensors of one shape, any layouts and dtypes.
import type { OpDef } from '../../dispatch/index.ts'
import type { Expr } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { parseSchema } from '../../protocol/index.ts'
import { launchPointwise } from './pointwise.ts'

/** The identity as a pointwise rule; never dispatched. */
const identity: OpDef = {
  id: -1,
  name: 'copy',
  qualname: 'torch.clone',
  schema: parseSchema('copy(Tensor self) -> Tensor'),
  tags: new Set(['pointwise']),
  fn: () => null,
  meta: () => ({ shape: [], dtype: 'float32' }),
  kernel: null,
  decompose: null,
  derivative: null,
  pointwise: { promotion: 'promote', compute: (x: Expr) => x },
  reduction: null,
  functional: null,
  dynamicScalars: [],
  template: null,
}

/** Writes the elements of `source` (broadcast, cast) into `target`. */
export function copyInto(source: Tensor, target: Tensor): void {
  launchPointwise(identity, [source], target)
}
