// How the tensors of a module are copied.
import { ArgumentError } from '../errors/index.ts'
import type { TensorLike } from '../protocol/index.ts'

/** A tensor that can be copied. The methods are those of tensors; this room knows nothing else about them. */
export interface CopyableTensor extends TensorLike {
  detach(): CopyableTensor
  clone(): CopyableTensor
  asParameter(requiresGrad: boolean): CopyableTensor
}

const isCopyable = (tensor: TensorLike): tensor is CopyableTensor => 'detach' in tensor && 'clone' in tensor && 'asParameter' in tensor

/** The tensor with its methods for copying. Throws ArgumentError if it lacks them. */
export function copyable(tensor: TensorLike): CopyableTensor {
  if (!isCopyable(tensor)) throw new ArgumentError('cannot copy this tensor: it has no methods detach, clone and asParameter.')
  return tensor
}

/** A new tensor with the same values, without history and gradient. A copy of a parameter is a parameter. */
export function copyTensor(tensor: TensorLike): TensorLike {
  const copy = copyable(tensor).detach().clone()
  if (tensor.isParameter) return copy.asParameter(tensor.requiresGrad)
  if (tensor.requiresGrad) copy.requiresGrad = true
  return copy
}
