// One-hot encodings.
import { ArgumentError } from '../../../errors/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import { arange } from '../../create/creation.ts'
import { sizeEq } from '../../../tensor/index.ts'
import { defineOp } from '../../define/defineOp.ts'
import type { Op } from '../../generated/signatures.ts'
import { checkIndexType, checkedIndices } from '../../view/indices.ts'
import { to } from '../../pointwise/cast.ts'
import { eq } from '../../pointwise/comparison.ts'
import { unsqueeze } from '../../view/reshape.ts'

const NAME = 'torch.nn.functional.one_hot'

/** bool [count]: true at `position`. */
export const oneHotMask = (count: number, position: number): Tensor => eq(arange(count, { dtype: 'int32' }), position)

/**
 * Rows of zeros with a 1 at the class; without `numClasses`, one class more than the largest in `self`, whose data is then read. PyTorch's `F.one_hot`.
 *
 * Shape: that of `self`, with numClasses appended. The result is int64.
 *
 * @throws DTypeError if `self` does not hold integers, ArgumentError if a class is negative or not below `numClasses`.
 * @example F.oneHot(torch.tensor([0, 2]).long()).toArray() // [[1, 0, 0], [0, 0, 1]]
 */
export const oneHot: Op['oneHot'] = defineOp({
  schema: 'one_hot(Tensor self, int num_classes=-1) -> Tensor',
  namespace: 'torch.nn.functional',
  meta: (self, numClasses) => {
    if (numClasses < 0) throw new ArgumentError(`${NAME}: without data the number of classes is not known; give numClasses.`)
    return { shape: [...self.symSizes, numClasses], dtype: 'int64' }
  },
  decompose: (self, numClasses) => {
    checkIndexType(NAME, 'self', self)
    const count = numClasses >= 0 ? numClasses : sizeEq(self.symNumel, 0) ? 0 : Number(self.max().item()) + 1
    return to(eq(unsqueeze(checkedIndices(self, count, null, NAME, 'self'), -1), arange(count, { dtype: 'int32' })), 'int64')
  },
})
