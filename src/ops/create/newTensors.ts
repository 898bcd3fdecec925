// New tensors in the dtype of another one: methods of tensors.
import type { DType } from '../../kernels/index.ts'
import type { Size } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { ComplexNumber } from '../../tensor/index.ts'
import type { CreationOptions, SizeArguments } from './creation.ts'
import { empty, full, ones, zeros } from './creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { checkMethod } from '../../protocol/index.ts'
import type { Op } from '../generated/signatures.ts'
import { to } from '../pointwise/cast.ts'
import { where } from '../pointwise/select.ts'
import { tensor } from './tensor.ts'
import type { TensorData } from './tensor.ts'

/**
 * Zeros in the dtype of `self`. PyTorch's `Tensor.new_zeros`.
 *
 * Shape: `size`.
 *
 * @throws ShapeError if a size is negative.
 * @example torch.tensor([1.5, 2]).newZeros([2]).toArray() // [0, 0]
 */
export const newZeros: OpFunction<(self: Tensor, ...size: SizeArguments<CreationOptions>) => Tensor> = defineOp({
  schema: 'new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, size, dtype, requiresGrad) => zeros(size, { dtype: dtype ?? self.dtype, requiresGrad }),
})

/**
 * Ones in the dtype of `self`. PyTorch's `Tensor.new_ones`.
 *
 * Shape: `size`.
 *
 * @throws ShapeError if a size is negative.
 * @example torch.tensor([1, 2]).newOnes([3]).toArray() // [1, 1, 1]
 */
export const newOnes: OpFunction<(self: Tensor, ...size: SizeArguments<CreationOptions>) => Tensor> = defineOp({
  schema: 'new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, size, dtype, requiresGrad) => ones(size, { dtype: dtype ?? self.dtype, requiresGrad }),
})

/**
 * A tensor in the dtype of `self` whose values are unspecified. PyTorch's `Tensor.new_empty`.
 *
 * Shape: `size`.
 *
 * @throws ShapeError if a size is negative.
 * @example torch.tensor([1, 2]).newEmpty([2, 3]).shape // [2, 3]
 */
export const newEmpty: OpFunction<(self: Tensor, ...size: SizeArguments<CreationOptions>) => Tensor> = defineOp({
  schema: 'new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, size, dtype, requiresGrad) => empty(size, { dtype: dtype ?? self.dtype, requiresGrad }),
})

/**
 * One value everywhere, in the dtype of `self`. PyTorch's `Tensor.new_full`.
 *
 * Shape: `size`.
 *
 * @throws ShapeError if a size is negative.
 * @example torch.tensor([1, 2]).newFull([2], 7).toArray() // [7, 7]
 */
export const newFull: OpFunction<(self: Tensor, size: readonly Size[], fillValue: number | ComplexNumber, options?: CreationOptions) => Tensor> =
  defineOp({
    schema: 'new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, bool requires_grad=False) -> Tensor',
    namespace: 'torch.Tensor',
    method: true,
    decompose: (self, size, value, dtype, requiresGrad) => full(size, Number(value), { dtype: dtype ?? self.dtype, requiresGrad }),
  })

/**
 * `self` in the dtype of `other`. PyTorch's `Tensor.type_as`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `other` is not a Tensor.
 * @example torch.tensor([1.5]).typeAs(torch.zeros([1]).int()).toArray() // [1]
 */
export const typeAs: Op['typeAs'] = defineOp({
  schema: 'type_as(Tensor self, Tensor other) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, other) => to(self, other.dtype),
})

/** Methods that are not operators of their own. */
export const newTensorMethods = {
  newTensor(this: Tensor, data: TensorData, options: { readonly dtype?: DType; readonly requiresGrad?: boolean } = {}): Tensor {
    return tensor(data, { dtype: this.dtype, device: this.device, ...options })
  },
  cpu(this: Tensor): Tensor {
    checkMethod(this, 'cpu', arguments, 0)
    return to(this, 'cpu')
  },
  where(this: Tensor, condition: Tensor, other: Tensor | number | ComplexNumber): Tensor {
    return where(condition, this, other)
  },
}

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    /** This tensor where `condition` holds, else `other`, elementwise. PyTorch's `Tensor.where`. */
    where(condition: Tensor, other: Tensor | number | ComplexNumber): Tensor
    /** The tensor in the program's memory: itself if it is there, else a copy. PyTorch's `Tensor.cpu`. */
    cpu(): Tensor
    /** A tensor of `data`, numbers or nested arrays of them, in the dtype of this one. PyTorch's `Tensor.new_tensor`. */
    newTensor(data: TensorData, options?: { readonly dtype?: DType; readonly requiresGrad?: boolean }): Tensor
  }
}
