// The bytes of contiguous tensors.
import { blockBytes, dtypeInfo } from '../kernels/index.ts'
import type { Tensor } from '../tensor/index.ts'

/** The bytes of a contiguous tensor themselves. Any allocation may detach the view: get a new one afterwards. */
export function tensorBytes(tensor: Tensor): Uint8Array {
  const { size } = dtypeInfo[tensor.dtype]
  return blockBytes(tensor.realize().block).subarray(tensor.offset * size, (tensor.offset + tensor.numel) * size)
}
