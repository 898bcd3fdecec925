// Operations on the bits of integers; on booleans they are the logical ones. They have no derivative. ('promote' computes booleans as integers,
// where and, or and xor come out the same; 'first' leaves them booleans.)
import { DTypeError } from '../../errors/index.ts'
import { call, constant } from '../../kernels/index.ts'
import type { Expr, ScalarOp } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'

type Bitwise = OpFunction<(self: Tensor, other: Tensor | number) => Tensor>

function checkBits(name: string, x: Expr, booleans: boolean): void {
  if (x.dtype === 'int32' || (booleans && x.dtype === 'bool')) return
  throw new DTypeError(
    `torch.${name}: expected integers${booleans ? ' or booleans' : ''}, got ${x.dtype}; convert with x.int()${booleans ? ' or compare' : ''} first.`,
  )
}

const bitwise = (name: string, op: ScalarOp): Bitwise =>
  defineOp({
    schema: `${name}.Tensor(Tensor self, Tensor other) -> Tensor`,
    method: true,
    pointwise: {
      promotion: 'promote',
      compute: (a: Expr, b: Expr) => {
        checkBits(name, a, true)
        return call(op, a, b)
      },
    },
  })

/** The bits that both have. PyTorch's `torch.bitwise_and`. */
export const bitwiseAnd: Bitwise = bitwise('bitwise_and', 'bitAnd')
/** The bits that one has. PyTorch's `torch.bitwise_or`. */
export const bitwiseOr: Bitwise = bitwise('bitwise_or', 'bitOr')
/** The bits that only one has. PyTorch's `torch.bitwise_xor`. */
export const bitwiseXor: Bitwise = bitwise('bitwise_xor', 'bitXor')

/** The bits that it has not. PyTorch's `torch.bitwise_not`. */
export const bitwiseNot: OpFunction<(self: Tensor) => Tensor> = defineOp({
  schema: 'bitwise_not(Tensor self) -> Tensor',
  method: true,
  pointwise: {
    promotion: 'first',
    compute: (a: Expr) => {
      checkBits('bitwise_not', a, true)
      return a.dtype === 'bool' ? call('not', a) : call('bitXor', a, constant('int32', -1))
    },
  },
})

/** self * 2^other, for counts from 0 to 31. PyTorch's `torch.bitwise_left_shift`. */
export const bitwiseLeftShift: Bitwise = defineOp({
  schema: 'bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: {
    promotion: 'first',
    compute: (a: Expr, b: Expr) => {
      checkBits('bitwise_left_shift', a, false)
      return call('shl', a, b)
    },
  },
})

/** self / 2^other, rounded down, for counts from 0 to 31. PyTorch's `torch.bitwise_right_shift`. */
export const bitwiseRightShift: Bitwise = defineOp({
  schema: 'bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor',
  method: true,
  pointwise: {
    promotion: 'first',
    compute: (a: Expr, b: Expr) => {
      checkBits('bitwise_right_shift', a, false)
      // There is only a shift that brings in zeros; a negative number is turned over, shifted, and turned back.
      const sign = call('where', call('lt', a, constant('int32', 0)), constant('int32', -1), constant('int32', 0))
      return call('bitXor', call('shrU', call('bitXor', a, sign), b), sign)
    },
  },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    bitwiseAnd(other: Tensor | number): Tensor
    bitwiseOr(other: Tensor | number): Tensor
    bitwiseXor(other: Tensor | number): Tensor
    bitwiseNot(): Tensor
    bitwiseLeftShift(other: Tensor | number): Tensor
    bitwiseRightShift(other: Tensor | number): Tensor
  }
}
