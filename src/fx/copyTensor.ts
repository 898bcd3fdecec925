// Copies of tensors, through their own methods: this room knows no tensors.
import type { TensorLike } from '../protocol/index.ts'

interface Copyable extends TensorLike {
  detach(): Copyable
  clone(): Copyable
  asParameter(requiresGrad: boolean): Copyable
}

/** A tensor of its own with the same values; a parameter stays one. It has no history and no gradient. */
export function copyTensor(tensor: TensorLike): TensorLike {
  const copy = (tensor as Copyable).detach().clone()
  if (tensor.isParameter) return copy.asParameter(tensor.requiresGrad)
  if (tensor.requiresGrad) copy.requiresGrad = true
  return copy
}
