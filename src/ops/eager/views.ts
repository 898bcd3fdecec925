// Views: tensors over the same storage.
import { markView, tensorAt } from '../../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../../dispatch/index.ts'
import type { Size } from '../../protocol/index.ts'
import { Tensor, numbersOf } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'

/** The views of argument 0 that a view operator's meta describes. */
export function makeViews(op: Pick<OpDef, 'name'>, meta: OpDef['meta'], args: readonly Arg[]): Result {
  const self = tensorAt(args, 0)
  const specs = meta(...args)
  const one = (spec: TensorSpec<Size>): Tensor => {
    const { shape, dtype, strides, offset } = numbersOf(spec)
    const view = new Tensor(shape, dtype, self.realize(), strides, offset)
    markView(view, self, op)
    return view
  }
  return 'shape' in specs ? one(specs) : specs.map(one)
}
