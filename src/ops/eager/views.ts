// Views: tensors over the same storage.
import type { Arg, OpDef, Result } from '../../dispatch/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'

/** The views that a view operator's meta describes. */
export function makeViews(op: OpDef, args: readonly Arg[]): Result {
  const self = args[0] as Tensor
  const spec = (op.meta as (...a: readonly Arg[]) => TensorSpec | readonly TensorSpec[])(...args)
  const one = (s: TensorSpec): Tensor => {
    const view = new Tensor(s.shape, s.dtype, self.realize(), s.strides, s.offset)
    view.viewBase = self.viewBase ?? self
    return view
  }
  return Array.isArray(spec) ? (spec as readonly TensorSpec[]).map(one) : one(spec as TensorSpec)
}
