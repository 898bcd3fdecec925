// relu_, which F.relu uses. All other in-place forms are generated: see inPlaceForms.ts.
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../declaration.ts'
import { defineOp } from '../defineOp.ts'
import { relu } from './activation.ts'

/**
 * `self = max(self, 0)`, in place. PyTorch's `torch.relu_`.
 *
 * Shape: that of `self`. Returns `self`.
 *
 * @throws ArgumentError if `self` is an expanded view.
 * @example torch.relu_(torch.tensor([-1, 2])).toArray() // [0, 2]
 */
export const relu_: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'relu_(Tensor(a!) self) -> Tensor',
  method: true,
  functional: relu,
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    /** {@link relu_} */
    relu_(): Tensor
  }
}
