// Casting between dtypes.
import { ArgumentError } from '../../errors/index.ts'
import { dtypeInfo, isDType } from '../../kernels/index.ts'
import type { DType, Expr } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'

/** The primitive: always a new tensor. */
const toCopy: OpFunction<(self: Tensor, dtype: DType) => Tensor> = defineOp({
  schema: 'to_copy(Tensor self, ScalarType dtype) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  pointwise: { promotion: 'to', compute: (x: Expr) => x },
  derivative: ([g], { args: [x] }) => [dtypeInfo[(x as Tensor).dtype].floating ? to(g as Tensor, (x as Tensor).dtype) : null, null],
})

/** Where tensors can be. */
export type Device = 'cpu'

/** What {@link to} changes. */
export interface ToOptions {
  readonly dtype?: DType
  readonly device?: Device
}

/** The tensor in another dtype; itself when it has it already. The only device is 'cpu'. PyTorch's `Tensor.to`. */
export const to: OpFunction<(self: Tensor, target: DType | Device | ToOptions) => Tensor> = defineOp({
  schema: 'to.dtype(Tensor self, any? dtype=None, *, any? device=None) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self: Tensor, target: DType | Device | null, given: Device | null): Tensor => {
    const [dtype, device] = target === 'cpu' ? [null, target] : [target, given]
    if (dtype !== null && !isDType(dtype)) throw new ArgumentError(`Tensor.to: '${String(dtype)}' is neither a dtype nor the device 'cpu'.`)
    if (device !== null && device !== 'cpu') throw new ArgumentError(`Tensor.to: there is no device '${String(device)}', only 'cpu'.`)
    return dtype === null || self.dtype === dtype ? self : toCopy(self, dtype)
  },
})

const named = (name: string, dtype: DType): ((self: Tensor) => Tensor) =>
  defineOp({
    schema: `${name}(Tensor self) -> Tensor`,
    namespace: 'torch.Tensor',
    method: true,
    decompose: (self: Tensor): Tensor => to(self, dtype),
  })

/** As float32. PyTorch's `Tensor.float`. */
export const float: (self: Tensor) => Tensor = named('float', 'float32')
/** As float64. PyTorch's `Tensor.double`. */
export const double: (self: Tensor) => Tensor = named('double', 'float64')
/** As int32, rounding towards zero. PyTorch's `Tensor.int`. */
export const int: (self: Tensor) => Tensor = named('int', 'int32')
/** As bool: not zero. PyTorch's `Tensor.bool`. */
export const bool: (self: Tensor) => Tensor = named('bool', 'bool')

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    to(target: DType | Device | ToOptions): Tensor
    float(): Tensor
    double(): Tensor
    int(): Tensor
    bool(): Tensor
  }
}
