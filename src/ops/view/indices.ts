// Tensors of indices: checked, and brought into the form that kernels read.
import { ArgumentError, DTypeError } from '../../errors/index.ts'
import {
  accumulate,
  at,
  bufferParam,
  compileKernel,
  declare,
  dtypeInfo,
  forLoop,
  identityOf,
  load,
  local,
  loopVar,
  read,
  sizeParam,
  store,
} from '../../kernels/index.ts'
import type { CompiledKernel, DType } from '../../kernels/index.ts'
import { withoutModes } from '../../dispatch/index.ts'
import { Tensor, collapseDims, exactElements, formatShape, tensorFromValues, windowOf } from '../../tensor/index.ts'
import { to } from '../pointwise/cast.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { kernelCache, launch } from '../eager/launch.ts'
import { clone, contiguous } from './reshape.ts'

/** Throws DTypeError, which names the operator and the argument, unless the tensor holds integers. */
export function checkIndexType(op: string, argument: string, indices: Tensor): void {
  if (dtypeInfo[indices.dtype].kind === 'integer') return
  throw new DTypeError(
    `${op}: argument '${argument}' holds indices and must have an integer dtype, got ${indices.dtype} (shape ${formatShape(indices.symSizes)}). Convert it: ${argument}.long().`,
  )
}

/** The least and the greatest of `n` neighbours. */
const extremesKernel = kernelCache((dtype: DType): CompiledKernel => {
  const n = sizeParam('n')
  const i = loopVar('i', n)
  const [out, indices] = [bufferParam('out', dtype, 'write'), bufferParam('indices', dtype)]
  const [least, greatest] = [local('least', dtype), local('greatest', dtype)]
  const index = load(indices, at([i, 1]))
  return compileKernel({
    name: 'index_extremes',
    params: [out, indices, n],
    body: [
      declare(least, identityOf('min', dtype)),
      declare(greatest, identityOf('max', dtype)),
      forLoop(i, 'simd', [accumulate(least, 'min', index), accumulate(greatest, 'max', index)]),
      store(out, at(), read(least)),
      store(out, { ...at(), base: 1 }, read(greatest)),
    ],
  })
})

/** From this many indices on, a kernel looks at them. */
const MANY = 4096

/** Whether a kernel finds all indices inside 0..count-1; false too where one might be `ignore`, or they do not lie in a row. */
function areManyInside(indices: Tensor, count: number): boolean {
  if (indices.numel < MANY || (indices.dtype !== 'int32' && indices.dtype !== 'int64')) return false
  const { dims, strides } = collapseDims(indices.sizes, [indices.steps])
  const own = strides[0]?.filter((stride) => stride !== 0) ?? []
  const numel = dims.reduce((n, size, d) => (strides[0]?.[d] === 0 ? n : n * size), 1)
  if (numel < MANY || own.length !== 1 || own[0] !== 1) return false
  const extremes = Tensor.empty([2], indices.dtype)
  launch(extremesKernel(indices.dtype), [extremes, indices], [numel])
  const [least, greatest] = Array.from(exactElements(extremes), Number)
  return least !== undefined && greatest !== undefined && least >= 0 && greatest < count
}

/**
 * Whether every index is inside 0..count-1 or is `ignore`. It reads the memory as int32, where an int64 has two words, and each index once, however often an expanded
 * dimension repeats it: this runs at every call of an embedding, a gather or a loss.
 */
function areInside(indices: Tensor, count: number, ignore: number | null): boolean {
  if (areManyInside(indices, count)) return true
  const { data, base } = windowOf(indices)
  const words = data instanceof BigInt64Array ? new Int32Array(data.buffer, data.byteOffset, 2 * data.length) : data
  const step = data instanceof BigInt64Array ? 2 : 1
  const dims = indices.sizes
    .map((size, d) => ({ size, stride: step * (indices.steps[d] ?? 0) }))
    .filter(({ size, stride }) => size !== 1 && stride !== 0)
  const last = dims.pop() ?? { size: 1, stride: 0 }
  const visit = (depth: number, from: number): boolean => {
    const dim = dims[depth]
    if (dim === undefined) return isLineInside(words, from, last.size, last.stride, step, count, ignore)
    for (let i = 0, at = from; i < dim.size; i++, at += dim.stride) if (!visit(depth + 1, at)) return false
    return true
  }
  return indices.numel === 0 || visit(0, step * (base + indices.offset))
}

/** {@link areInside} for `size` indices, the first at `words[from]`. */
function isLineInside(
  words: ArrayLike<number>,
  from: number,
  size: number,
  stride: number,
  step: number,
  count: number,
  ignore: number | null,
): boolean {
  for (let i = 0, at = from; i < size; i++, at += stride) {
    const value = words[at] ?? 0
    if (value >= 0 && value < count && (step === 1 || words[at + 1] === 0)) continue
    if (value !== ignore || (step === 2 && words[at + 1] !== (value < 0 ? -1 : 0))) return false
  }
  return true
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

/** The indices as kernels with strides read them: int32, checked as by {@link kernelIndices}. Those of int64 are not copied: a kernel reads their lower words. */
export function strideIndices(op: string, argument: string, indices: Tensor, count: number): Tensor {
  checkIndexRange(op, argument, indices, count)
  if (indices.dtype !== 'int64') return to(indices, 'int32')
  const { sizes, steps, offset } = indices
  return new Tensor(
    sizes,
    'int32',
    indices.realize(),
    steps.map((step) => 2 * step),
    2 * offset,
  )
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
export const checkedIndices: Op['checkedIndices'] = defineOp({
  schema: 'checked_indices(Tensor indices, SymInt count, int? ignore, str op, str argument) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  vmap: { leading: ['indices'] },
  onnx: { node: 'Identity', inputs: ['indices'] },
  autocast: 'as is',
  meta: (indices) => ({ shape: indices.symSizes, dtype: indices.dtype }),
  indices: { argument: 'indices', check: (indices, count, ignore, op, argument) => checkIndexRange(op, argument, indices, count, ignore) },
  kernel: (indices, count, ignore, op, argument) => {
    checkIndexRange(op, argument, indices, count, ignore)
    // A kernel's result must not share memory with its argument.
    return clone(indices)
  },
})

/** Positions that the program's sizes decide, as a constant that tracers and captures hold. */
export const constantIndices = (positions: readonly number[]): Tensor => withoutModes(() => tensorFromValues(positions, [positions.length], 'int64'))
