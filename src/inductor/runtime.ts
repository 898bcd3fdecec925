// What compiled programs use while they run: the arena of their temporaries, and addresses of tensors.
import { Block, ScratchMemory, dtypeInfo } from '../kernels/index.ts'
import type { BlockCopies, DType } from '../kernels/index.ts'
import { Storage, Tensor } from '../tensor/index.ts'

const memory = new ScratchMemory()

/** The address of the arena, which has at least `bytes` bytes. All programs share it: none of them leaves values in it between calls. */
export const arena = (bytes: number): number => memory.reserve(bytes)

/** A tensor over a temporary in the arena, as an argument of an eager kernel. It must not outlive the call. */
export const temporary = (address: number, shape: readonly number[], dtype: DType, strides: readonly number[], offset: number): Tensor =>
  new Tensor(shape, dtype, new Storage(new Block(address, 0, null), 0), strides, offset)

/** The byte address of a tensor's first element; that of a copy if the tensor is spilled. */
export function addressOf(tensor: Tensor, copies: BlockCopies): number {
  const { block } = tensor.storage ?? tensor.realize()
  return (block.ptr === 0 ? copies.address(block) : block.ptr) + tensor.offset * dtypeInfo[tensor.dtype].size
}
