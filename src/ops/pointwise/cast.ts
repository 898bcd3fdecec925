// Casts between dtypes.
import { ArgumentError } from '../../errors/index.ts'
import { dtypeInfo, isDType } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { valueText } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../declaration.ts'
import { dtypeHint, dtypeNames } from '../argumentHints.ts'
import { defineOp } from '../defineOp.ts'

/**
 * A new tensor with the values of `self` cast to `dtype`. Internal; PyTorch's `aten._to_copy`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `dtype` is not a dtype.
 * @example torch.ops.tensorfx.toCopy(torch.tensor([1.7, -1.7]), 'int32').toArray() // [1, -1]
 */
export const toCopy: OpFunction<(self: Tensor, dtype: DType) => Tensor> = defineOp({
  schema: 'to_copy(Tensor self, ScalarType dtype) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  pointwise: { promotion: 'to', compute: (x) => x },
  derivative: ([g], { args: [x] }) => [dtypeInfo[x.dtype].floating ? to(g, x.dtype) : null, null],
})

/** Where tensors can be. */
export type Device = 'cpu'

/** What {@link to} changes. */
export interface ToOptions {
  readonly dtype?: DType
  readonly device?: Device
}

/**
 * The tensor in another dtype; `self` itself if it has that dtype already. The only device is 'cpu'. PyTorch's `Tensor.to`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `target` is neither a dtype nor the device 'cpu'.
 * @example torch.tensor([1.7, 0]).to('bool').toArray() // [true, false]
 */
export const to: OpFunction<(self: Tensor, target: DType | Device | ToOptions) => Tensor> = defineOp({
  schema: 'to.dtype(Tensor self, any? dtype=None, *, any? device=None) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, target, given) => {
    const [dtype, device] = target === 'cpu' ? [null, target] : [target, given]
    if (dtype !== null && !isDType(dtype))
      throw new ArgumentError(
        `Tensor.to: ${valueText(dtype)} is neither a dtype (${dtypeNames()}) nor the only device, 'cpu'.${dtypeHint(dtype)} There are no other devices: leave x.to('cuda') out.`,
      )
    if (device !== null && device !== 'cpu') throw new ArgumentError(`Tensor.to: there is no device ${valueText(device)}, only 'cpu'; leave it out.`)
    return dtype === null || self.dtype === dtype ? self : toCopy(self, dtype)
  },
})

/**
 * The tensor as float32; itself if it is float32 already. PyTorch's `Tensor.float`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([true, false]).float().toArray() // [1, 0]
 */
export const float: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'float(Tensor self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self) => to(self, 'float32'),
})

/**
 * The tensor as float64; itself if it is float64 already. PyTorch's `Tensor.double`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1]).double().dtype // 'float64'
 */
export const double: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'double(Tensor self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self) => to(self, 'float64'),
})

/**
 * The tensor as int32, rounded toward zero; itself if it is int32 already. PyTorch's `Tensor.int`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1.7, -1.7]).int().toArray() // [1, -1]
 */
export const int: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'int(Tensor self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self) => to(self, 'int32'),
})

/**
 * Whether each value is non-zero; the tensor itself if it is bool already. PyTorch's `Tensor.bool`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([2, 0]).bool().toArray() // [true, false]
 */
export const bool: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'bool(Tensor self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self) => to(self, 'bool'),
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    /** {@link to} */
    to(target: DType | Device | ToOptions): Tensor
    /** {@link float} */
    float(): Tensor
    /** {@link double} */
    double(): Tensor
    /** {@link int} */
    int(): Tensor
    /** {@link bool} */
    bool(): Tensor
  }
}
