// relu_, which F.relu uses. All other in-place forms are generated: see inPlaceForms.ts.
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { relu } from './activation.ts'

/**
 * `self = max(self, 0)`, in place. PyTorch's `torch.relu_`.
 *
 * Shape: that of `self`. Returns `self`.
 *
 * @throws ArgumentError if `self` is an expanded view.
 * @example torch.relu_(torch.tensor([-1, 2])).toArray() // [0, 2]
 */
export const relu_: Op['relu_'] = defineOp({
  schema: 'relu_(Tensor(a!) self) -> Tensor',
  method: true,
  functional: relu,
})
