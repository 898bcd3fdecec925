// The gradient of what has none. A backward pass that reaches it throws; one that is only traced, because a graph of it is made before anyone asks for it, does not.
import { ArgumentError } from '../../errors/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'

/**
 * Throws an error with this message when it is computed, unless `self` has no elements. Internal; PyTorch has no such operator.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` has elements.
 * @example torch.ops.tensorfx.refusedGradient(torch.zeros([0]), 'no gradient').shape // [0]
 */
export const refusedGradient: Op['refusedGradient'] = defineOp({
  schema: 'refused_gradient(Tensor self, str message) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  vmap: { leading: ['self'] },
  onnx: { none: 'it computes a gradient, and models are exported for inference' },
  autocast: 'as is',
  meta: (self) => ({ shape: self.symSizes, dtype: self.dtype }),
  kernel: (self, message) => {
    if (self.numel > 0) throw new ArgumentError(message)
    return Tensor.empty(self.sizes, self.dtype)
  },
})
