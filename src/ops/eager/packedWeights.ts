// Weights that eager calls read packed: a copy of an operand in the form that its kernel needs is kept with the operand's memory while the data stays, and is read instead of it.
import { CopiesOf, PackedCopies } from '../../kernels/index.ts'
import type { CompiledKernel, PackedCopy } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { addressesOf, byteOffset, scratchIfRoom } from './launch.ts'
import { launches } from './launchLog.ts'

/** All of them. A call looks at its copy after everything else has its memory, so that it may be given back at any time before. */
const weights = new PackedCopies('packed weights', 64 * 2 ** 20, () => true)

/** A form of a weight: what reads it, numbers that say how the weight lies from its first element on, and the bytes of a copy. */
export interface PackedForm {
  readonly reader: object
  readonly numbers: readonly number[]
  readonly bytes: number
}

/** The copy of a weight, which `pack` writes if it is due in this call, from one address to another; null if there is none. */
export function packedCopy(weight: Tensor, { reader, numbers, bytes }: PackedForm, pack: (from: number, to: number) => void): PackedCopy | null {
  const storage = weight.realize()
  const { block, home } = storage
  if (block.ptr === 0) return null
  const copy = (home.copies ??= new CopiesOf()).of(reader, [weight.offset, ...numbers], weights)
  if (copy === null) return null
  if (copy.isDue(home.writes) && copy.make(bytes) !== 0) pack(block.ptr + byteOffset(weight), copy.address)
  if (copy.address === 0) return null
  launches.listener?.runsOnCopies()
  return copy
}

/** A copy that a kernel reads in place of the tensor at `position`. */
export interface CopyAt {
  readonly copy: PackedCopy
  readonly position: number
}

/** Launches a kernel with scratch memory, whose address is the last argument. Returns false, and does nothing, where there is no room, or a tensor is off the heap. */
export function launchOnCopy(
  { run }: CompiledKernel,
  tensors: readonly Tensor[],
  numbers: readonly number[],
  { copy, position }: CopyAt,
  scratchBytes: number,
): boolean {
  const scratch = scratchIfRoom(scratchBytes)
  const args = addressesOf(tensors)
  // The scratch memory may have taken the copy's place.
  if (scratch === null || args === null || copy.address === 0) return false
  args[position] = copy.address
  run(...args, ...numbers, scratch)
  return true
}
