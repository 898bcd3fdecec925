// Triangles of matrices: tril, triu.
import { ShapeError } from '../../errors/index.ts'
import { formatShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { rangeOf } from '../create/creation.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { ge, le, logicalAnd } from '../pointwise/comparison.ts'
import { where } from '../pointwise/select.ts'
import { pairOf } from '../shared/shapes.ts'
import { unsqueeze } from '../view/reshape.ts'

/** Row and column numbers of the last two dimensions; the rows are shifted by the diagonal. */
function rowsAndColumns(op: string, self: Tensor, diagonal: number): readonly [Tensor, Tensor] {
  if (self.ndim < 2) throw new ShapeError(`${op}: self must have at least 2 dimensions, got shape ${formatShape(self.symSizes)}.`)
  const [height, width] = pairOf(self.symSizes.slice(-2))
  return [unsqueeze(rangeOf(diagonal, 1, height, 'int32'), 1), rangeOf(0, 1, width, 'int32')]
}

/** The elements where `mask` holds; 0, or false, elsewhere. */
const only = (mask: Tensor, self: Tensor): Tensor => (self.dtype === 'bool' ? logicalAnd(mask, self) : where(mask, self, 0))

/**
 * The lower triangle of matrices, with zeros above it; `diagonal` moves the border to the right. PyTorch's `torch.tril`.
 *
 * Shape: that of `self`, [.., m, n].
 *
 * @throws ShapeError for fewer than 2 dimensions.
 * @example torch.tril(torch.ones([3, 3])).toArray() // [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
 */
export const tril: Op['tril'] = defineOp({
  schema: 'tril(Tensor self, int diagonal=0) -> Tensor',
  method: true,
  inPlace: 'method',
  decompose: (self, diagonal) => {
    const [rows, columns] = rowsAndColumns('torch.tril', self, diagonal)
    return only(ge(rows, columns), self)
  },
})

/**
 * The upper triangle of matrices, with zeros below it; `diagonal` moves the border to the right. PyTorch's `torch.triu`.
 *
 * Shape: that of `self`, [.., m, n].
 *
 * @throws ShapeError for fewer than 2 dimensions.
 * @example torch.triu(torch.ones([2, 3]), 1).toArray() // [[0, 1, 1], [0, 0, 1]]
 */
export const triu: Op['triu'] = defineOp({
  schema: 'triu(Tensor self, int diagonal=0) -> Tensor',
  method: true,
  inPlace: 'method',
  decompose: (self, diagonal) => {
    const [rows, columns] = rowsAndColumns('torch.triu', self, diagonal)
    return only(le(rows, columns), self)
  },
})
