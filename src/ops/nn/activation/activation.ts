// The activations of torch.nn.functional that torch has too. They are operators of their own, so that graphs print what the user wrote.
import { ArgumentError } from '../../../errors/index.ts'
import type { DType } from '../../../kernels/index.ts'
import type { Tensor } from '../../../tensor/index.ts'
import type { OpFunction } from '../../define/declaration.ts'
import { defineOp } from '../../define/defineOp.ts'
import type { Op } from '../../generated/signatures.ts'
import { relu } from '../../pointwise/activation.ts'
import { to } from '../../pointwise/cast.ts'
import { relu_ } from '../../pointwise/inplace.ts'
import { sigmoid, tanh } from '../../pointwise/unary.ts'
import { logSoftmax, softmax } from '../../reduction/softmax.ts'

/**
 * max(x, 0), elementwise; `inplace` writes into the input. PyTorch's `F.relu`.
 *
 * Shape: that of `input`.
 *
 * @throws ArgumentError if `input` is not a Tensor, or `inplace` not a boolean.
 * @example F.relu(torch.tensor([-1, 2])).toArray() // [0, 2]
 */
export const functionalRelu: OpFunction<(input: Tensor, options?: { readonly inplace?: boolean }) => Tensor> = defineOp({
  schema: 'relu(Tensor input, bool inplace=False) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  decompose: (input, inplace) => (inplace ? relu_(input) : relu(input)),
})

/**
 * 1 / (1 + e^-x), elementwise. PyTorch's `F.sigmoid`.
 *
 * Shape: that of `input`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `input` is not a Tensor.
 * @example F.sigmoid(torch.tensor([0])).toArray() // [0.5]
 */
export const functionalSigmoid: Op['functionalSigmoid'] = defineOp({
  schema: 'sigmoid(Tensor input) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'method',
  decompose: (input) => sigmoid(input),
})

/**
 * The hyperbolic tangent, elementwise. PyTorch's `F.tanh`.
 *
 * Shape: that of `input`; integers become floats of the default dtype.
 *
 * @throws ArgumentError if `input` is not a Tensor.
 * @example F.tanh(torch.tensor([0, 1])).toArray() // [0, 0.761594]
 */
export const functionalTanh: Op['functionalTanh'] = defineOp({
  schema: 'tanh(Tensor input) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'method',
  decompose: (input) => tanh(input),
})

export interface SoftmaxOptions {
  readonly dim: number
  /** The input is cast to this dtype first. */
  readonly dtype?: DType | null
}

/** The dimension that the user must name; PyTorch guesses one, with a warning. */
function required(op: string, dim: number | null): number {
  if (dim === null) throw new ArgumentError(`torch.nn.functional.${op}: argument 'dim' is missing; say along which dimension, e.g. { dim: -1 }.`)
  return dim
}

/**
 * exp(x), scaled to sum 1 along `dim`. PyTorch's `F.softmax`.
 *
 * Shape: that of `input`; `dtype` casts the input first.
 *
 * @throws ArgumentError if `dim` is missing, ShapeError if it is out of range.
 * @throws DTypeError unless the input, or `dtype`, is floating.
 * @example F.softmax(torch.tensor([0, 0]), { dim: 0 }).toArray() // [0.5, 0.5]
 */
export const functionalSoftmax: OpFunction<(input: Tensor, dim: number | SoftmaxOptions) => Tensor> = defineOp({
  schema: 'softmax(Tensor input, int? dim=None, ScalarType? dtype=None) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  decompose: (input, dim, dtype) => softmax(dtype === null ? input : to(input, dtype), required('softmax', dim)),
})

/**
 * log(softmax(x)), computed without overflow. PyTorch's `F.log_softmax`.
 *
 * Shape: that of `input`; `dtype` casts the input first.
 *
 * @throws ArgumentError if `dim` is missing, ShapeError if it is out of range.
 * @throws DTypeError unless the input, or `dtype`, is floating.
 * @example F.logSoftmax(torch.tensor([0, 0]), 0).toArray() // [-0.693147, -0.693147]
 */
export const functionalLogSoftmax: OpFunction<(input: Tensor, dim: number | SoftmaxOptions) => Tensor> = defineOp({
  schema: 'log_softmax(Tensor input, int? dim=None, ScalarType? dtype=None) -> Tensor',
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  decompose: (input, dim, dtype) => logSoftmax(dtype === null ? input : to(input, dtype), required('log_softmax', dim)),
})
