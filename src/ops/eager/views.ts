// Views: tensors over the same storage.
import { markView, tensorAt } from '../../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../../dispatch/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'

/** The views of argument 0 that a view operator's meta describes. */
export function makeViews(op: Pick<OpDef, 'name'>, meta: OpDef['meta'], args: readonly Arg[]): Result {
  const self = tensorAt(args, 0)
  const spec = meta(...args)
  const one = (s: TensorSpec): Tensor => {
    const view = new Tensor(s.shape, s.dtype, self.realize(), s.strides, s.offset)
    markView(view, self, op)
    return view
  }
  return 'shape' in spec ? one(spec) : spec.map(one)
}
