// The value of a constant of the loop IR, in the code of any emitter.
import { dtypeInfo } from './dtype.ts'
import type { DType, ElementValue } from './dtype.ts'

/** What writes constants; `V` is a value in its code. */
export interface ConstantCode<V> {
  i32(value: number): V
  i64(value: bigint): V
  f32(value: number): V
  f64(value: number): V
}

/** A constant of a dtype, as the type in which the dtype is computed; true is -1, all bits. */
export function constantIn<V>(code: ConstantCode<V>, dtype: DType, value: ElementValue): V {
  const { compute } = dtypeInfo[dtype]
  if (compute === 'int64') return code.i64(BigInt(value))
  const number = Number(value)
  if (compute === 'float32') return code.f32(number)
  if (compute === 'float64') return code.f64(number)
  return code.i32(compute === 'bool' ? (number !== 0 ? -1 : 0) : number)
}
