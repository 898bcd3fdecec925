// Embedding: rows of a table by index. Its backward adds up the rows of the gradient.
import { ShapeError } from '../../../errors/index.ts'
import { at, bufferParam, compileKernel, constant, declare, forLoop, load, local, loopVar, read, sizeParam, store } from '../../../kernels/index.ts'
import type { CompiledKernel, DType } from '../../../kernels/index.ts'
import type { Size } from '../../../protocol/index.ts'
import { formatShape, numbersOf, Tensor } from '../../../tensor/index.ts'
import type { TensorSpec } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import { lateOperator } from '../../define/late.ts'
import type { Op } from '../../generated/signatures.ts'
import { kernelCache, launch } from '../../eager/launch.ts'
import { checkIndexRange, checkIndexType, kernelIndices } from '../../view/indices.ts'
import { ones } from '../../create/creation.ts'
import { div } from '../../pointwise/arithmetic.ts'
import { to } from '../../pointwise/cast.ts'
import { copy_ } from '../../pointwise/fill.ts'
import { maskedFill } from '../../pointwise/select.ts'
import { renorm } from '../../reduction/counts.ts'
import { checkOperand, pairOf, sizeAt } from '../../shared/shapes.ts'
import { indexSelect } from '../../view/indexing.ts'
import { indexCopy } from '../../view/positions.ts'
import { contiguous, reshape } from '../../view/reshape.ts'
import { detach } from '../../view/windows.ts'
import { oneHotMask } from './oneHot.ts'

const NAME = 'torch.nn.functional.embedding'

/** Options of embedding. */
export interface EmbeddingOptions {
  /** Rows of this index get no gradient. */
  readonly paddingIdx?: number | null
  /** Rows that are looked up are first scaled down to this norm, in `weight` itself and without a gradient. */
  readonly maxNorm?: number | null
  /** The p of that norm; default 2. */
  readonly normType?: number
  /** Divide the gradient of each row by how often its index occurs in the input. */
  readonly scaleGradByFreq?: boolean
}

function check(input: Tensor, weight: Tensor): TensorSpec<Size> {
  if (weight.ndim !== 2)
    throw new ShapeError(`${NAME}: weight must have 2 dimensions [numEmbeddings, embeddingDim], got shape ${formatShape(weight.symSizes)}.`)
  checkIndexType(NAME, 'input', input)
  return { shape: [...input.symSizes, sizeAt(weight.symSizes, 1)], dtype: weight.dtype }
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

/** The number of columns of the rows in `grad`. Throws ShapeError unless there is a row for each index. */
function widthOf(grad: Tensor, indices: Tensor): Size {
  checkIndexType(NAME, 'input', indices)
  const width = grad.symSizes.at(-1) ?? 1
  checkOperand(NAME, 'grad', grad, [...indices.symSizes, width], grad.dtype)
  return width
}

/**
 * The gradient of an embedding table: row r is the sum of the rows of `grad` whose index is r, and 0 for `paddingIdx` (-1: none). Internal; PyTorch's
 * `aten.embedding_dense_backward`.
 *
 * Shapes: grad [.., D] and indices [..] give [numWeights, D].
 *
 * @throws ArgumentError if `numWeights` or `paddingIdx` is not an integer.
 * @example torch.ops.tensorfx.embeddingBackward(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 1]).long(), 2, -1).toArray() // [[0, 0], [4, 6]]
 */
export const embeddingBackward: Op['embeddingBackward'] = defineOp({
  schema: 'embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, int padding_idx) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  halvesInFloat32: true,
  vmap: { none: 'each example adds to a weight of its own' },
  onnx: { none: 'it computes a gradient, and models are exported for inference' },
  autocast: 'as is',
  meta: (grad, indices, numWeights) => ({ shape: [numWeights, widthOf(grad, indices)], dtype: grad.dtype }),
  indices: { argument: 'indices', check: (_grad, indices, numWeights) => checkIndexRange(NAME, 'input', indices, numWeights) },
  kernel: (grad, indices, numWeights, paddingIdx) => {
    widthOf(grad, indices)
    const width = grad.sizes.at(-1) ?? 1
    const rows = kernelIndices(NAME, 'input', indices, numWeights)
    const out = Tensor.empty([numWeights, width], grad.dtype)
    launch(backwardKernel(grad.dtype), [out, contiguous(grad), rows], [numWeights * width, indices.numel, width])
    if (paddingIdx < 0) return out
    return maskedFill(out, oneHotMask(numWeights, paddingIdx).unsqueeze(1), 0)
  },
  derivative: ([g], { args: [, indices, , paddingIdx] }) => {
    const rows = embedding(indices, g)
    return [paddingIdx < 0 ? rows : maskedFill(rows, indices.eq(paddingIdx).unsqueeze(-1), 0), null, null, null]
  },
})

/** How often each index occurs: [.., 1], one number for each row of the result. */
function frequencies(input: Tensor, rows: Size, dtype: DType): Tensor {
  return embedding(
    input,
    lateOperator<Op['embeddingBackward']>('torch.ops.tensorfx.embedding_backward')(ones([...input.symSizes, 1], { dtype }), input, rows, -1),
  )
}

/** Scales the rows of `weight` at the indices `input` down to `maxNorm`, in place; null does nothing. PyTorch's `embedding_renorm_`. */
export function renormalizeRows(weight: Tensor, input: Tensor, maxNorm: number | null, normType: number): void {
  if (maxNorm === null) return
  const [rows, at] = [detach(weight), to(reshape(input, [-1]), 'int64')]
  copy_(rows, indexCopy(rows, 0, at, renorm(indexSelect(rows, 0, at), normType, 0, maxNorm)))
}

/**
 * The rows of `weight` at the indices `input`. Rows of index `paddingIdx` get no gradient; with `scaleGradByFreq` the others get it divided by
 * the number of times that they occur. With `maxNorm`, the rows are first scaled down in `weight`. PyTorch's `F.embedding`.
 *
 * Shapes: input [..] (any integer dtype) and weight [N, D] give [.., D].
 *
 * @throws ShapeError unless `weight` is a matrix, DTypeError if `input` does not hold integers.
 * @throws ArgumentError if an index is out of range.
 * @example F.embedding(torch.tensor([1, 0]).long(), torch.tensor([[1, 2], [3, 4]])).toArray() // [[3, 4], [1, 2]]
 */
export const embedding: OpFunction<{
  (input: Tensor, weight: Tensor, paddingIdx?: number | null, options?: Omit<EmbeddingOptions, 'paddingIdx'>): Tensor
  (
    input: Tensor,
    weight: Tensor,
    paddingIdx: number | null,
    maxNorm: number | null,
    normType?: number,
    scaleGradByFreq?: boolean | Pick<EmbeddingOptions, 'scaleGradByFreq'>,
  ): Tensor
  (input: Tensor, weight: Tensor, options?: EmbeddingOptions): Tensor
}> = defineOp({
  schema:
    'embedding(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  vmap: { leading: ['input'] },
  // The indices may not be negative, so that they are those of Gather.
  onnx: { node: 'Gather', inputs: ['weight', 'input'], attributes: { axis: 0 } },
  autocast: 'as is',
  before: (input, weight, _paddingIdx, maxNorm, normType) => {
    check(input, weight)
    renormalizeRows(weight, input, maxNorm, normType)
  },
  meta: (input, weight) => check(input, weight),
  indices: { argument: 'input', check: (input, weight) => checkIndexRange(NAME, 'input', input, sizeAt(weight.sizes, 0)) },
  kernel: (input, weight) => {
    const spec = numbersOf(check(input, weight))
    const [rows, width] = pairOf(weight.sizes)
    const indices = kernelIndices(NAME, 'input', input, rows)
    const out = Tensor.empty(spec.shape, spec.dtype)
    launch(forwardKernel(weight.dtype), [out, weight, indices], [input.numel, width, ...pairOf(weight.steps)])
    return out
  },
  derivative: ([g], { args: [input, weight, paddingIdx, , , byFrequency] }) => {
    const rows = sizeAt(weight.symSizes, 0)
    const padding = paddingIdx === null ? -1 : paddingIdx < 0 ? paddingIdx + sizeAt(weight.sizes, 0) : paddingIdx
    return [
      null,
      lateOperator<Op['embeddingBackward']>('torch.ops.tensorfx.embedding_backward')(
        byFrequency ? div(g, frequencies(input, rows, g.dtype)) : g,
        input,
        rows,
        padding,
      ),
      null,
      null,
      null,
      null,
    ]
  },
})
