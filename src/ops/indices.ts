// Tensors of indices: checked, and brought into the form that kernels read.
import { ArgumentError, DTypeError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { withoutModes } from '../dispatch/index.ts'
import { formatShape, tensorFromValues, windowOf } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { to } from './pointwise/cast.ts'
import type { OpFunction } from './declaration.ts'
import { defineOp } from './defineOp.ts'
import { clone, contiguous } from './view/reshape.ts'

/** Throws DTypeError, which names the operator and the argument, unless the tensor holds integers. */
export function checkIndexType(op: string, argument: string, indices: Tensor): void {
  if (dtypeInfo[indices.dtype].kind === 'integer') return
  throw new DTypeError(
    `${op}: argument '${argument}' holds indices and must have an integer dtype, got ${indices.dtype} (shape ${formatShape(indices.shape)}). Convert it: ${argument}.long().`,
  )
}

/**
 * Whether every index is inside 0..count-1 or is `ignore`. It reads the memory as int32, where an int64 has two words, and each index once, however often an expanded
 * dimension repeats it: this runs at every call of an embedding, a gather or a loss.
 */
function areInside(indices: Tensor, count: number, ignore: number | null): boolean {
  const { data, base } = windowOf(indices)
  const words = data instanceof BigInt64Array ? new Int32Array(data.buffer, data.byteOffset, 2 * data.length) : data
  const step = data instanceof BigInt64Array ? 2 : 1
  const dims = indices.shape
    .map((size, d) => ({ size, stride: step * (indices.strides[d] ?? 0) }))
    .filter(({ size, stride }) => size !== 1 && stride !== 0)
  const isInside = (at: number): boolean => {
    const value = words[at] ?? 0
    if (step === 2 && words[at + 1] !== (value < 0 ? -1 : 0)) return false
    return (value >= 0 && value < count) || value === ignore
  }
  const visit = (depth: number, from: number): boolean => {
    const dim = dims[depth]
    if (dim === undefined) return isInside(from)
    const isLast = depth === dims.length - 1
    for (let i = 0, at = from; i < dim.size; i++, at += dim.stride) if (!(isLast ? isInside(at) : visit(depth + 1, at))) return false
    return true
  }
  return indices.numel === 0 || visit(0, step * (base + indices.offset))
}

/** Throws ArgumentError if one of the indices is outside 0..count-1 and is not `ignore`. */
export function checkIndexRange(op: string, argument: string, indices: Tensor, count: number, ignore: number | null = null): void {
  if (areInside(indices, count, ignore)) return
  // An int64 beyond the integers that numbers represent is out of range too, and toTypedArray says so.
  for (const [i, value] of indices.toTypedArray().entries())
    if ((value < 0 || value >= count) && value !== ignore)
      throw new ArgumentError(`${op}: ${argument} has the index ${value} at flat position ${i}, but only 0 to ${count - 1} exist.`)
}

/** The indices as kernels read them: int32 and contiguous. They are checked, because kernels do not check addresses; see {@link checkIndexRange}. */
export function kernelIndices(op: string, argument: string, indices: Tensor, count: number, ignore: number | null = null): Tensor {
  checkIndexRange(op, argument, indices, count, ignore)
  return contiguous(to(indices, 'int32'))
}

/**
 * The indices, once they have been checked: decompositions into operators that know nothing of indices read them through this one. It stays a call of its own
 * in compiled programs. `op` and `argument` are what the error names. Internal; PyTorch has no such operator.
 *
 * Shape: that of `indices`.
 *
 * @throws ArgumentError if an index is outside 0 to count - 1, and is not `ignore`.
 * @example torch.ops.tensorfx.checkedIndices(torch.tensor([0, 2]).long(), 3, null, 'torch.gather', 'index').toArray() // [0, 2]
 */
export const checkedIndices: OpFunction<(indices: Tensor, count: number, ignore: number | null, op: string, argument: string) => Tensor> = defineOp({
  schema: 'checked_indices(Tensor indices, int count, int? ignore, str op, str argument) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  meta: (indices) => ({ shape: indices.shape, dtype: indices.dtype }),
  indices: { argument: 'indices', check: (indices, count, ignore, op, argument) => checkIndexRange(op, argument, indices, count, ignore) },
  kernel: (indices, count, ignore, op, argument) => {
    checkIndexRange(op, argument, indices, count, ignore)
    // A kernel's result must not share memory with its argument.
    return clone(indices)
  },
})

/** Positions that the program's sizes decide, as a constant that tracers and captures hold. */
export const constantIndices = (positions: readonly number[]): Tensor => withoutModes(() => tensorFromValues(positions, [positions.length], 'int64'))
