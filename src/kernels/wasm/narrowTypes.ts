// The dtypes that are computed in wider ones: how their elements become 32-bit lanes and back, and how a result is rounded to them.
// Lanes hold int8, uint8 and int16 as int32, and float16 and bfloat16 as float32; a value is always one that the narrow dtype has.
import type { DType } from '../numbers/dtype.ts'
import type { LaneCode } from './laneCode.ts'

/** The bits of a float16 without its sign, moved to those of a float32, are the number divided by this: the biases of the exponents differ by 112. */
const REBIAS = 2 ** 112
const SIGN = -0x80000000

/** Makes values of what was loaded into 32-bit lanes. The bits above a smaller element's are zero, or repeat it. Dtypes of 32 and 64 bits are loaded as they are. */
export function decodeElements<V>(code: LaneCode<V>, dtype: DType, loaded: V): V {
  switch (dtype) {
    case 'bool':
      return code.op2('i32x4.ne', loaded, code.i32(0))
    case 'uint8':
    case 'int8':
    case 'int16':
      return wrap(code, dtype, loaded)
    case 'bfloat16':
      return code.shift('i32x4.shl', loaded, 16)
    case 'float16': {
      const magnitude = code.op2('v128.and', loaded, code.i32(0x7fff))
      const value = code.op2('f32x4.mul', code.shift('i32x4.shl', magnitude, 13), code.f32(REBIAS))
      const special = code.op2('v128.and', code.op2('i32x4.gt_s', magnitude, code.i32(0x7bff)), code.i32(0x7f800000))
      const sign = code.op2('v128.and', code.shift('i32x4.shl', loaded, 16), code.i32(SIGN))
      return code.op2('v128.or', code.op2('v128.or', value, special), sign)
    }
    default:
      return loaded
  }
}

/** The lanes to store: the element is in the low bits of each. */
export function encodeElements<V>(code: LaneCode<V>, dtype: DType, value: V): V {
  switch (dtype) {
    case 'bool':
      return code.op2('v128.and', value, code.i32(1))
    case 'bfloat16':
      return code.shift('i32x4.shr_u', value, 16)
    case 'float16': {
      const magnitude = code.op2('f32x4.mul', code.op1('f32x4.abs', value), code.f32(1 / REBIAS))
      const bits = code.op2('v128.and', code.shift('i32x4.shr_u', magnitude, 13), code.i32(0x7fff))
      return code.op2('v128.or', bits, code.op2('v128.and', code.shift('i32x4.shr_u', value, 16), code.i32(0x8000)))
    }
    default:
      return value
  }
}

/** The result of a computation in the wide dtype as a value of the narrow one: integers wrap around, floats are rounded to the nearest, ties to even. */
export function roundToNarrow<V>(code: LaneCode<V>, dtype: DType, value: V): V {
  switch (dtype) {
    case 'uint8':
    case 'int8':
    case 'int16':
      return wrap(code, dtype, value)
    case 'bfloat16':
      return code.scope(() => roundToBfloat16(code, value))
    case 'float16':
      return code.scope(() => roundToFloat16(code, value))
    default:
      return value
  }
}

function wrap<V>(code: LaneCode<V>, dtype: 'uint8' | 'int8' | 'int16', value: V): V {
  if (dtype === 'uint8') return code.op2('v128.and', value, code.i32(255))
  const unused = dtype === 'int8' ? 24 : 16
  return code.shift('i32x4.shr_s', code.shift('i32x4.shl', value, unused), unused)
}

function roundToFloat16<V>(code: LaneCode<V>, value: V): V {
  const magnitude = code.op1('f32x4.abs', value)
  // Adding 2^13 times its power of two to a number leaves 11 bits of it; below the normal numbers of float16 fewer, beyond them it does not matter.
  const exponent = code.op2(
    'i32x4.min_s',
    code.op2('i32x4.max_s', code.op2('v128.and', magnitude, code.i32(0x7f800000)), code.i32(0x38800000)),
    code.i32(0x47000000),
  )
  const shifter = code.op2('i32x4.add', exponent, code.i32(13 << 23))
  const rounded = code.op2('f32x4.sub', code.op2('f32x4.add', magnitude, shifter), shifter)
  const bounded = code.select(code.op2('f32x4.gt', rounded, code.f32(65504)), code.f32(Infinity), rounded)
  return code.op2('v128.or', bounded, code.op2('v128.and', value, code.i32(SIGN)))
}

function roundToBfloat16<V>(code: LaneCode<V>, value: V): V {
  const odd = code.op2('v128.and', code.shift('i32x4.shr_u', value, 16), code.i32(1))
  const up = code.op2('i32x4.add', code.op2('i32x4.add', value, code.i32(0x7fff)), odd)
  const number = code.op2('f32x4.eq', value, value)
  return code.select(number, code.op2('v128.and', up, code.i32(-0x10000)), code.i32(0x7fc00000))
}
