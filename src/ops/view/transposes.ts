// PyTorch's properties for transposes of tensors: mT, mH and H.
import { ShapeError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { Tensor, formatShape } from '../../tensor/index.ts'
import { adjoint } from './arrange.ts'
import { transpose } from './permute.ts'

/** The tensor whose property is read. Throws ShapeError unless it holds matrices: exactly one, if `one`. */
function matrixOf(self: unknown, name: string, one = false): Tensor {
  if (self instanceof Tensor && (one ? self.ndim === 2 : self.ndim >= 2)) return self
  throw new ShapeError(
    `x.${name}: expected a matrix${one ? '' : ' or a batch of them'}, got ${self instanceof Tensor ? `shape ${formatShape(self.symSizes)}` : valueText(self)}.`,
  )
}

/** PyTorch's properties for transposes. */
export const transposeAccessors: object = {
  get mT(): Tensor {
    return transpose(matrixOf(this, 'mT'), -2, -1)
  },
  get mH(): Tensor {
    return adjoint(matrixOf(this, 'mH'))
  },
  get H(): Tensor {
    return adjoint(matrixOf(this, 'H', true))
  },
}

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    /** The tensor with its last two dimensions exchanged. PyTorch's `Tensor.mT`. */
    readonly mT: Tensor
    /** The conjugate of {@link mT}, which is {@link mT} itself for real numbers. PyTorch's `Tensor.mH`. */
    readonly mH: Tensor
    /** {@link mH} of a matrix. PyTorch's `Tensor.H`. */
    readonly H: Tensor
  }
}
