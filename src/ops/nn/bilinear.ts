// The bilinear form behind nn.Bilinear.
import { ShapeError } from '../../errors/index.ts'
import { formatShape, sameShape, sizeEq, sizeMul } from '../../tensor/index.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { matmul } from '../linalg/matmul.ts'
import { add } from '../pointwise/arithmetic.ts'
import { sizeAt } from '../shared/shapes.ts'
import { permute } from '../view/permute.ts'
import { reshape, squeeze, unsqueeze } from '../view/reshape.ts'

const NAME = 'torch.nn.functional.bilinear'

/**
 * x1^T W_o x2 + b_o for each output o. PyTorch's `F.bilinear`.
 *
 * Shapes: input1 [.., I], input2 [.., J], weight [O, I, J] and bias [O] give [.., O].
 *
 * @throws ShapeError if the shapes do not fit.
 * @throws DTypeError if the dtypes differ.
 * @example F.bilinear(torch.tensor([[1, 2]]), torch.tensor([[3]]), torch.tensor([[[10], [1]]])).toArray() // [[36]]
 */
export const bilinear: Op['bilinear'] = defineOp({
  schema: 'bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor',
  namespace: 'torch.nn.functional',
  decompose: (x1, x2, weight, bias) => {
    const lead = x1.symSizes.slice(0, -1)
    if (
      weight.ndim !== 3 ||
      x1.ndim < 1 ||
      !sameShape(lead, x2.symSizes.slice(0, -1)) ||
      !sizeEq(x1.symSizes.at(-1), weight.symSizes[1]) ||
      !sizeEq(x2.symSizes.at(-1), weight.symSizes[2]) ||
      (bias !== null && !sameShape(bias.symSizes, [sizeAt(weight.symSizes, 0)]))
    )
      throw new ShapeError(
        `${NAME}: expected input1 [.., I], input2 [.., J], weight [O, I, J] and bias [O], got shapes ${[x1, x2, weight, ...(bias === null ? [] : [bias])].map((t) => formatShape(t.symSizes)).join(', ')}.`,
      )
    const [outputs = 0, i = 0, j = 0] = weight.symSizes
    // [.., O, J]: each matrix times input1.
    const rows = reshape(matmul(x1, reshape(permute(weight, [1, 0, 2]), [i, sizeMul(outputs, j)])), [...lead, outputs, j])
    const out = squeeze(matmul(rows, unsqueeze(x2, -1)), -1)
    return bias === null ? out : add(out, bias)
  },
})
