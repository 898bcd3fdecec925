// Triangles of matrices: tril, triu.
import { ShapeError } from '../errors/index.ts'
import { formatShape } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { arange } from './creation.ts'
import { defineOp } from './defineOp.ts'
import type { OpFunction } from './defineOp.ts'
import { ge, le } from './pointwise/comparison.ts'
import { where } from './pointwise/select.ts'
import { unsqueeze } from './view/index.ts'

/** Row and column numbers of the last two dimensions; rows are shifted by the diagonal. */
function rowsAndColumns(op: string, self: Tensor, diagonal: number): readonly [Tensor, Tensor] {
  if (self.ndim < 2) throw new ShapeError(`${op}: self must have at least 2 dimensions, got shape ${formatShape(self.shape)}.`)
  const rows = arange(diagonal, (self.shape.at(-2) as number) + diagonal, { dtype: 'int32' })
  return [unsqueeze(rows, 1), arange(self.shape.at(-1) as number, { dtype: 'int32' })]
}

/** The lower triangle of matrices, zeros above; `diagonal` shifts the border to the right. PyTorch's `torch.tril`. */
export const tril: OpFunction<(self: Tensor, diagonal?: number | { readonly diagonal?: number }) => Tensor> = defineOp({
  schema: 'tril(Tensor self, int diagonal=0) -> Tensor',
  method: true,
  decompose: (self: Tensor, diagonal: number): Tensor => {
    const [rows, columns] = rowsAndColumns('torch.tril', self, diagonal)
    return where(ge(rows, columns), self, 0)
  },
})

/** The upper triangle of matrices, zeros below; `diagonal` shifts the border to the right. PyTorch's `torch.triu`. */
export const triu: OpFunction<(self: Tensor, diagonal?: number | { readonly diagonal?: number }) => Tensor> = defineOp({
  schema: 'triu(Tensor self, int diagonal=0) -> Tensor',
  method: true,
  decompose: (self: Tensor, diagonal: number): Tensor => {
    const [rows, columns] = rowsAndColumns('torch.triu', self, diagonal)
    return where(le(rows, columns), self, 0)
  },
})

declare module '../tensor/tensor.ts' {
  interface Tensor {
    tril(diagonal?: number | { readonly diagonal?: number }): Tensor
    triu(diagonal?: number | { readonly diagonal?: number }): Tensor
  }
}
