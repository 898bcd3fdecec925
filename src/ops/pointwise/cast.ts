// Casts between dtypes.
import { ArgumentError } from '../../errors/index.ts'
import { dtypeInfo, isDType } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { valueText } from '../../protocol/index.ts'
import { notADType } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../declaration.ts'
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
        `Tensor.to: the target is neither a dtype nor the only device, 'cpu': ${notADType(dtype)} There are no other devices: leave x.to('cuda') out.`,
      )
    if (device !== null && device !== 'cpu') throw new ArgumentError(`Tensor.to: there is no device ${valueText(device)}, only 'cpu'; leave it out.`)
    return dtype === null || self.dtype === dtype ? self : toCopy(self, dtype)
  },
})

/**
 * The tensor as float16; itself if it is float16 already. PyTorch's `Tensor.half`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1, 70000]).half().toArray() // [1, Infinity]
 */
export const half: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'half(Tensor self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self) => to(self, 'float16'),
})

/**
 * The tensor as bfloat16, which has the range of float32 and 8 bits of precision; itself if it is bfloat16 already. PyTorch's `Tensor.bfloat16`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1, 257]).bfloat16().toArray() // [1, 256]
 */
export const bfloat16: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'bfloat16(Tensor self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self) => to(self, 'bfloat16'),
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
 * The tensor as int8, rounded toward zero; itself if it is int8 already. PyTorch's `Tensor.char`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1.7, -1.7]).char().toArray() // [1, -1]
 */
export const char: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'char(Tensor self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self) => to(self, 'int8'),
})

/**
 * The tensor as uint8, rounded toward zero; itself if it is uint8 already. PyTorch's `Tensor.byte`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1.7, 255]).byte().toArray() // [1, 255]
 */
export const byte: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'byte(Tensor self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self) => to(self, 'uint8'),
})

/**
 * The tensor as int16, rounded toward zero; itself if it is int16 already. PyTorch's `Tensor.short`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1.7, -1.7]).short().toArray() // [1, -1]
 */
export const short: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'short(Tensor self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self) => to(self, 'int16'),
})

/**
 * The tensor as int64, rounded toward zero; itself if it is int64 already. PyTorch's `Tensor.long`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1.7, -1.7]).long().toArray() // [1, -1]
 */
export const long: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'long(Tensor self) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self) => to(self, 'int64'),
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

/**
 * The tensor in another dtype; itself if it has that dtype already. PyTorch's `Tensor.type`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `dtype` is not a dtype.
 * @example torch.tensor([1.7, -1.7]).type('int64').toArray() // [1, -1]
 */
export const type: OpFunction<(self: Tensor, dtype: DType) => Tensor> = defineOp({
  schema: 'type(Tensor self, ScalarType dtype) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, dtype) => to(self, dtype),
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    /** {@link to} */
    to(target: DType | Device | ToOptions): Tensor
    /** {@link half} */
    half(): Tensor
    /** {@link bfloat16} */
    bfloat16(): Tensor
    /** {@link float} */
    float(): Tensor
    /** {@link double} */
    double(): Tensor
    /** {@link char} */
    char(): Tensor
    /** {@link byte} */
    byte(): Tensor
    /** {@link short} */
    short(): Tensor
    /** {@link int} */
    int(): Tensor
    /** {@link long} */
    long(): Tensor
    /** {@link bool} */
    bool(): Tensor
    /** {@link type} */
    type(dtype: DType): Tensor
  }
}
