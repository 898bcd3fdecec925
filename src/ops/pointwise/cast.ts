// Casts between dtypes.
import { isDevice, moved, noDevice } from '../../dispatch/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { Tensor, namesDType, notADType } from '../../tensor/index.ts'
import type { Device } from '../../tensor/index.ts'

export type { Device } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { inFormat } from '../shared/memoryFormat.ts'
import type { FormatOptions } from '../shared/memoryFormat.ts'

/**
 * A new tensor with the values of `self` cast to `dtype`. Internal; PyTorch's `aten._to_copy`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `dtype` is not a dtype.
 * @example torch.ops.tensorfx.toCopy(torch.tensor([1.7, -1.7]), 'int32').toArray() // [1, -1]
 */
export const toCopy: Op['toCopy'] = defineOp({
  schema: 'to_copy(Tensor self, ScalarType dtype) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  pointwise: { promotion: 'to', compute: (x) => x },
  derivative: ([g], { args: [x] }) => [dtypeInfo[x.dtype].floating ? to(g, x.dtype) : null, null],
})

/** What {@link to} changes. */
export interface ToOptions extends FormatOptions {
  readonly dtype?: DType
  readonly device?: Device
  /** PyTorch's option for other devices; it changes nothing. */
  readonly nonBlocking?: boolean
  /** Whether the result is a copy even if nothing changes. */
  readonly copy?: boolean
}

/** What `to` was asked for: by a dtype, the device, both, or a tensor, followed by PyTorch's `non_blocking`, which changes nothing, and `copy`. */
function conversionOf(
  first: unknown,
  ...rest: readonly unknown[]
): { readonly dtype: DType | null; readonly device: Device | null; readonly copy: boolean } {
  const given = [first, ...rest]
  const like = given[0] instanceof Tensor ? given[0].dtype : null
  const named = given.slice(0, 2).filter((value) => typeof value !== 'boolean' && value !== null && !(value instanceof Tensor))
  const dtypes = named.filter((value) => !isDevice(value))
  const [dtype = like] = dtypes
  const unknown = dtypes.length > 1 || first === null ? dtypes.find((value) => !namesDType(value)) : undefined
  if (unknown !== undefined) throw new ArgumentError(`Tensor.to: ${noDevice(unknown)}`)
  if (dtype !== null && !namesDType(dtype))
    throw new ArgumentError(`Tensor.to: the target is neither a dtype nor a device ('cpu', 'webgpu'): ${notADType(dtype)}`)
  // After a single target come non_blocking and copy; by name, copy is the last.
  const flags = typeof given[1] === 'boolean' ? given.slice(1, 3) : given.slice(2, 4)
  const device = named.find(isDevice) ?? (given[0] instanceof Tensor ? given[0].device : null)
  return { dtype, device, copy: flags[1] === true || given[3] === true }
}

/**
 * The tensor in another dtype or on another device ('cpu'; 'webgpu' with tensorfx/webgpu); `self` itself if nothing changes. PyTorch's `Tensor.to`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `target` is neither a dtype nor a device.
 * @example torch.tensor([1.7, 0]).to('bool').toArray() // [true, false]
 */
export const to: OpFunction<
  (self: Tensor, target: DType | Device | Tensor | ToOptions, ...options: readonly (DType | boolean | ToOptions)[]) => Tensor
> = defineOp({
  schema: 'to.dtype(Tensor self, any? dtype=None, any? device=None, any? non_blocking=None, any? copy=None, *, str? memory_format=None) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, dtype, given, nonBlocking, copy, format) => {
    const target = conversionOf(dtype, given, nonBlocking, copy)
    const { dtype: wanted, device } = target
    const cast = (tensor: Tensor): Tensor => (wanted === null || tensor.dtype === wanted ? tensor : toCopy(tensor, wanted))
    const placed = (tensor: Tensor): Tensor => (device === null ? tensor : moved('Tensor.to', tensor, device))
    // The card has not all dtypes.
    const result = device === 'cpu' ? cast(placed(self)) : placed(cast(self))
    const formatted = inFormat('Tensor.to', result, format)
    return target.copy && formatted === self ? toCopy(self, self.dtype) : formatted
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
export const half: OpFunction<(self: Tensor, options?: FormatOptions) => Tensor> = defineOp({
  schema: 'half(Tensor self, *, str? memory_format=None) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, format) => inFormat('torch.Tensor.half', to(self, 'float16'), format),
})

/**
 * The tensor as bfloat16, which has the range of float32 and 8 bits of precision; itself if it is bfloat16 already. PyTorch's `Tensor.bfloat16`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1, 257]).bfloat16().toArray() // [1, 256]
 */
export const bfloat16: OpFunction<(self: Tensor, options?: FormatOptions) => Tensor> = defineOp({
  schema: 'bfloat16(Tensor self, *, str? memory_format=None) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, format) => inFormat('torch.Tensor.bfloat16', to(self, 'bfloat16'), format),
})

/**
 * The tensor as float32; itself if it is float32 already. PyTorch's `Tensor.float`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([true, false]).float().toArray() // [1, 0]
 */
export const float: OpFunction<(self: Tensor, options?: FormatOptions) => Tensor> = defineOp({
  schema: 'float(Tensor self, *, str? memory_format=None) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, format) => inFormat('torch.Tensor.float', to(self, 'float32'), format),
})

/**
 * The tensor as float64; itself if it is float64 already. PyTorch's `Tensor.double`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1]).double().dtype // 'float64'
 */
export const double: OpFunction<(self: Tensor, options?: FormatOptions) => Tensor> = defineOp({
  schema: 'double(Tensor self, *, str? memory_format=None) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, format) => inFormat('torch.Tensor.double', to(self, 'float64'), format),
})

/**
 * The tensor as int32, rounded toward zero; itself if it is int32 already. PyTorch's `Tensor.int`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1.7, -1.7]).int().toArray() // [1, -1]
 */
export const int: OpFunction<(self: Tensor, options?: FormatOptions) => Tensor> = defineOp({
  schema: 'int(Tensor self, *, str? memory_format=None) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, format) => inFormat('torch.Tensor.int', to(self, 'int32'), format),
})

/**
 * The tensor as int8, rounded toward zero; itself if it is int8 already. PyTorch's `Tensor.char`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1.7, -1.7]).char().toArray() // [1, -1]
 */
export const char: OpFunction<(self: Tensor, options?: FormatOptions) => Tensor> = defineOp({
  schema: 'char(Tensor self, *, str? memory_format=None) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, format) => inFormat('torch.Tensor.char', to(self, 'int8'), format),
})

/**
 * The tensor as uint8, rounded toward zero; itself if it is uint8 already. PyTorch's `Tensor.byte`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1.7, 255]).byte().toArray() // [1, 255]
 */
export const byte: OpFunction<(self: Tensor, options?: FormatOptions) => Tensor> = defineOp({
  schema: 'byte(Tensor self, *, str? memory_format=None) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, format) => inFormat('torch.Tensor.byte', to(self, 'uint8'), format),
})

/**
 * The tensor as int16, rounded toward zero; itself if it is int16 already. PyTorch's `Tensor.short`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1.7, -1.7]).short().toArray() // [1, -1]
 */
export const short: OpFunction<(self: Tensor, options?: FormatOptions) => Tensor> = defineOp({
  schema: 'short(Tensor self, *, str? memory_format=None) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, format) => inFormat('torch.Tensor.short', to(self, 'int16'), format),
})

/**
 * The tensor as int64, rounded toward zero; itself if it is int64 already. PyTorch's `Tensor.long`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([1.7, -1.7]).long().toArray() // [1, -1]
 */
export const long: OpFunction<(self: Tensor, options?: FormatOptions) => Tensor> = defineOp({
  schema: 'long(Tensor self, *, str? memory_format=None) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, format) => inFormat('torch.Tensor.long', to(self, 'int64'), format),
})

/**
 * Whether each value is non-zero; the tensor itself if it is bool already. PyTorch's `Tensor.bool`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `self` is not a Tensor.
 * @example torch.tensor([2, 0]).bool().toArray() // [true, false]
 */
export const bool: OpFunction<(self: Tensor, options?: FormatOptions) => Tensor> = defineOp({
  schema: 'bool(Tensor self, *, str? memory_format=None) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, format) => inFormat('torch.Tensor.bool', to(self, 'bool'), format),
})

/**
 * The tensor in another dtype; itself if it has that dtype already. PyTorch's `Tensor.type`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if `dtype` is not a dtype.
 * @example torch.tensor([1.7, -1.7]).type('int64').toArray() // [1, -1]
 */
export const type: Op['type'] = defineOp({
  schema: 'type(Tensor self, ScalarType dtype) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, dtype) => to(self, dtype),
})
