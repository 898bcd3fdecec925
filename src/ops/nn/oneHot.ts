// One-hot encodings.
import { ArgumentError } from '../../errors/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import { arange } from '../creation.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { to } from '../pointwise/cast.ts'
import { eq } from '../pointwise/comparison.ts'
import { unsqueeze } from '../view/index.ts'

/** bool [count]: true at `position`. */
export const oneHotMask = (count: number, position: number): Tensor => eq(arange(count, { dtype: 'int32' }), position)

/** int32 [...self.shape, numClasses] with a 1 where the class is; without numClasses, one more than the largest class (reads the data). PyTorch's `F.one_hot`. */
export const oneHot: OpFunction<(self: Tensor, numClasses?: number) => Tensor> = defineOp({
  schema: 'one_hot(Tensor self, int num_classes=-1) -> Tensor',
  namespace: 'torch.nn.functional',
  meta: (self: Tensor, numClasses: number): TensorSpec => ({ shape: [...self.shape, numClasses], dtype: 'int32' }),
  decompose: (self: Tensor, numClasses: number): Tensor => {
    if (self.dtype !== 'int32') throw new ArgumentError(`torch.nn.functional.oneHot: self holds classes and must be int32, got ${self.dtype}.`)
    const count = numClasses >= 0 ? numClasses : self.numel === 0 ? 0 : Number(self.max().item()) + 1
    return to(eq(unsqueeze(self, -1), arange(count, { dtype: 'int32' })), 'int32')
  },
})
