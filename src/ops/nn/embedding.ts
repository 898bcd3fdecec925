// Embedding: rows of a table by index; its backward adds gradient rows up.
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
import { at, bufferParam, compileKernel, constant, declare, forLoop, load, local, loopVar, read, sizeParam, store } from '../../kernels/index.ts'
import type { CompiledKernel, DType } from '../../kernels/index.ts'
import { formatShape, Tensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { oneHotMask } from './oneHot.ts'
import { contiguous } from '../view/index.ts'
import { to } from '../pointwise/cast.ts'
import { kernelCache, launch } from '../eager/launch.ts'

const NAME = 'torch.nn.functional.embedding'

/** Options of embedding. */
export interface EmbeddingOptions {
  /** Rows of this index get no gradient. */
  readonly paddingIdx?: number | null
}

function check(input: Tensor, weight: Tensor): TensorSpec {
  if (weight.ndim !== 2)
    throw new ShapeError(`${NAME}: weight must have 2 dimensions [numEmbeddings, embeddingDim], got shape ${formatShape(weight.shape)}.`)
  if (input.dtype !== 'int32')
    throw new DTypeError(
      `${NAME}: input holds indices and must be int32, got ${input.dtype} (shape ${formatShape(input.shape)}). Convert it: input.int().`,
    )
  return { shape: [...input.shape, weight.shape[1] as number], dtype: weight.dtype }
}

/** Throws when an index is outside 0..count-1: kernels do not check addresses. */
export function checkIndices(op: string, argument: string, indices: Tensor, count: number, ignore: number | null = null): void {
  const values = indices.toTypedArray() as Int32Array
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number
    if ((value < 0 || value >= count) && value !== ignore) {
      throw new ArgumentError(`${op}: ${argument} has the index ${value} at flat position ${i}, but only 0 to ${count - 1} exist.`)
    }
  }
}

const forwardKernel = kernelCache((dtype: DType): CompiledKernel => {
  const out = bufferParam('out', dtype, 'write')
  const weight = bufferParam('weight', dtype)
  const indices = bufferParam('indices', 'int32')
  const [count, width, rowStride, colStride] = [sizeParam('count'), sizeParam('width'), sizeParam('rowStride'), sizeParam('colStride')]
  const [i, d] = [loopVar('i', count), loopVar('d', width)]
  const row = local('row', 'int32')
  return compileKernel({
    name: 'embedding',
    params: [out, weight, indices, count, width, rowStride, colStride],
    body: [
      forLoop(i, 'serial', [
        declare(row, load(indices, at([i, 1]))),
        forLoop(d, 'simd', [
          store(out, at([i, width], [d, 1]), load(weight, { ...at([d, colStride]), dynamic: [{ value: read(row), stride: rowStride }] })),
        ]),
      ]),
    ],
  })
})

const backwardKernel = kernelCache((dtype: DType): CompiledKernel => {
  const out = bufferParam('gradWeight', dtype, 'readwrite')
  const grad = bufferParam('grad', dtype)
  const indices = bufferParam('indices', 'int32')
  const [total, count, width] = [sizeParam('total'), sizeParam('count'), sizeParam('width')]
  const [z, i, d] = [loopVar('z', total), loopVar('i', count), loopVar('d', width)]
  const row = local('row', 'int32')
  return compileKernel({
    name: 'embedding_backward',
    params: [out, grad, indices, total, count, width],
    body: [
      forLoop(z, 'simd', [store(out, at([z, 1]), constant(dtype, 0))]),
      forLoop(i, 'serial', [
        declare(row, load(indices, at([i, 1]))),
        // Lanes are the columns of one row, so they never collide.
        forLoop(d, 'simd', [
          store(out, { ...at([d, 1]), dynamic: [{ value: read(row), stride: width }] }, load(grad, at([i, width], [d, 1])), 'add'),
        ]),
      ]),
    ],
  })
})

/** Gradient of the embedding table: row r is the sum of the gradient rows whose index is r. Internal. */
export const embeddingBackward: OpFunction<(grad: Tensor, indices: Tensor, numWeights: number, paddingIdx: number) => Tensor> = defineOp({
  schema: 'embedding_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  meta: (grad: Tensor, _indices: Tensor, numWeights: number): TensorSpec => ({
    shape: [numWeights, grad.shape[grad.ndim - 1] as number],
    dtype: grad.dtype,
  }),
  kernel: (grad: Tensor, indices: Tensor, numWeights: number, paddingIdx: number): Tensor => {
    const width = grad.shape[grad.ndim - 1] as number
    const out = Tensor.empty([numWeights, width], grad.dtype)
    launch(backwardKernel(grad.dtype), [out, contiguous(grad), contiguous(indices)], [numWeights * width, indices.numel, width])
    if (paddingIdx < 0) return out
    return out.mul(oneHotMask(numWeights, paddingIdx).logicalNot().to(grad.dtype).unsqueeze(1))
  },
  derivative: ([g], { args }) => {
    const [, indices, , paddingIdx] = args as [Tensor, Tensor, number, number]
    const rows = embedding(indices, g as Tensor)
    return [paddingIdx < 0 ? rows : rows.mul(to(indices.ne(paddingIdx), rows.dtype).unsqueeze(-1)), null, null, null]
  },
})

/** Rows of `weight` [numEmbeddings, embeddingDim] at `input` (int32): shape [...input.shape, embeddingDim]. PyTorch's `F.embedding`. */
export const embedding: OpFunction<{
  (input: Tensor, weight: Tensor, paddingIdx?: number | null): Tensor
  (input: Tensor, weight: Tensor, options?: EmbeddingOptions): Tensor
}> = defineOp({
  schema: 'embedding(Tensor input, Tensor weight, int? padding_idx=None) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  meta: check,
  kernel: (input: Tensor, weight: Tensor): Tensor => {
    const spec = check(input, weight)
    const indices = contiguous(input)
    checkIndices(NAME, 'input', indices, weight.shape[0] as number)
    const out = Tensor.empty(spec.shape, spec.dtype)
    const [rowStride, colStride] = weight.strides as [number, number]
    launch(forwardKernel(weight.dtype), [out, weight, indices], [input.numel, weight.shape[1] as number, rowStride, colStride])
    return out
  },
  derivative: ([g], { args }) => {
    const [input, weight, paddingIdx] = args as [Tensor, Tensor, number | null]
    const rows = weight.shape[0] as number
    const padding = paddingIdx === null ? -1 : paddingIdx < 0 ? paddingIdx + rows : paddingIdx
    return [null, embeddingBackward(g as Tensor, input, rows, padding), null]
  },
})
